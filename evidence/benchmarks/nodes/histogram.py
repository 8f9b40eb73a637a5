"""Histogram of times in logarithmic bins: runs can be merged, and percentiles are rounded up."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from evidence.benchmarks import Row

LEAST, DECADES, PER_DECADE = 0.1, 8, 100  # [us]; bins of 2.3 %
PERCENTILES = {"median": 50.0, "p99": 99.0, "p99.9": 99.9, "p99.99": 99.99}
FEWEST = 10  # values beyond a percentile; with fewer it is left blank


class LogHistogram:
    """Counts of times in bins that grow by 2.3 % from 0.1 us to 10 s.

    Attributes:
        counts: (B + 2,) times below the first edge, in the B bins, and above the last edge.
        largest: [us]; -inf without times.
    """

    edges = LEAST * 10.0 ** (np.arange(DECADES * PER_DECADE + 1) / PER_DECADE)

    def __init__(self) -> None:
        self.counts = np.zeros(len(self.edges) + 1, dtype=np.int64)
        self.largest = -np.inf

    def add(self, us: float) -> None:
        """Count one time [us]."""
        self.counts[int(np.searchsorted(self.edges, us, side="right"))] += 1
        self.largest = max(self.largest, us)

    def add_all(self, us: np.ndarray) -> None:
        """Count many times (n,) [us]."""
        if len(us):
            np.add.at(self.counts, np.searchsorted(self.edges, us, side="right"), 1)
            self.largest = max(self.largest, float(np.max(us)))

    def merge(self, other: LogHistogram) -> None:
        """Add the counts of another histogram."""
        self.counts += other.counts
        self.largest = max(self.largest, other.largest)

    @property
    def n(self) -> int:
        """Number of times."""
        return int(self.counts.sum())

    def percentile(self, percent: float) -> float:
        """Return the upper end [us] of the bin that holds a percentile, at most the largest time.

        NaN if fewer than ten times lie beyond it: it would be a single event.
        """
        beyond = self.n * (1.0 - percent / 100.0)
        if beyond < FEWEST - 1e-6 or not self.n:
            return float("nan")
        k = int(np.searchsorted(np.cumsum(self.counts), self.n - beyond - 1e-6, side="left"))
        return min(float(self.edges[k]) if k < len(self.edges) else np.inf, self.largest)

    def row(self, name: str) -> Row:
        """Return the row of a bench, with empty cells for percentiles that the number of times does not allow."""
        found = {key: self.percentile(p) for key, p in PERCENTILES.items()}
        cells = {key: round(v, 1) if np.isfinite(v) else "" for key, v in found.items()}
        most = round(self.largest, 1) if self.n else ""
        return {"name": name, "unit": "us", **cells, "max": most, "n": self.n, "histogram": self.to_json()}

    def to_json(self) -> dict[str, Any]:
        """Return the bins that are not empty: index -> count."""
        bins = {str(k): int(c) for k, c in enumerate(self.counts.tolist()) if c}
        return {"bins": bins, "largest": self.largest if self.n else None}

    @classmethod
    def from_json(cls, d: Mapping[str, Any]) -> LogHistogram:
        """Return the histogram that `to_json` wrote."""
        out = cls()
        for k, count in d["bins"].items():
            out.counts[int(k)] = count
        out.largest = -np.inf if d["largest"] is None else float(d["largest"])
        return out


def draw(histograms: Mapping[str, LogHistogram], path: Path) -> bool:
    """Draw the shares of times above a time, on two logarithmic axes; False without matplotlib."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        return False
    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.add_subplot(xscale="log", yscale="log", xlabel="time [us]", ylabel="share of times above")
    for name, h in histograms.items():
        if h.n:
            above = 1.0 - np.cumsum(h.counts)[: len(h.edges)] / h.n
            shown = (above > 0.5 / h.n) & (h.edges >= 1.0)
            axes.step(h.edges[shown], above[shown], where="post", label=f"{name} ({h.n:,})")
    axes.grid(True, which="both", alpha=0.3)
    axes.legend()
    FigureCanvasAgg(figure).print_png(str(path))
    return True
