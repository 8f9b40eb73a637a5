"""Many small plots over the same time, as directly written SVG, which is faster than matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape

import numpy as np

from humanoid_control.evaluation.report.plots import FONT

WIDTH, LEFT, RIGHT, TOP, BOTTOM = 1150.0, 44.0, 10.0, 22.0, 16.0  # [px]
MOST_POINTS = 500  # per curve
SMALL = 10  # [px] font size of axis numbers


@dataclass(frozen=True, eq=False)
class Curve:
    """Curve (T,) of a colour; `band` (T,) is the half width of a shaded area, or None."""

    values: np.ndarray
    color: str
    band: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class PlotPanel:
    """Small plot: title and curves over the common times."""

    title: str
    curves: Sequence[Curve] = field(default_factory=tuple)


def small_multiples(
    times: np.ndarray,
    panels: Sequence[PlotPanel],
    columns: int,
    title: str,
    legend: Sequence[tuple[str, str]] = (),
    height: float = 150.0,
) -> str:
    """Return the plots as a scalable <svg> element in page colours.

    Args:
        times: (T,) of all curves.
        height: of a plot [px].
    """
    rows = -(-len(panels) // columns)
    width = WIDTH / columns
    parts = [
        _panel(times, panel, (width * (k % columns), height * (k // columns)), (width, height))
        for k, panel in enumerate(panels)
    ]
    keys = "".join(f'<span><b style="color:{color}">\u25a0</b> {escape(label)}</span>' for label, color in legend)
    head = (
        f'<svg role="img" aria-label="{escape(title)}" viewBox="0 0 {WIDTH:.0f} {rows * height:.0f}" '
        f'style="max-width:{WIDTH:.0f}px" xmlns="http://www.w3.org/2000/svg" font-family="{FONT}" '
        f'font-size="{SMALL}" fill="var(--ink)">'
    )
    return (f'<p class="legend">{keys}</p>\n' if keys else "") + head + "".join(parts) + "</svg>"


def ticks(low: float, high: float, most: int = 4) -> np.ndarray:
    """Return round numbers between two values, at most `most`: steps of 1, 2 or 5 times a power of ten."""
    step = 10.0 ** np.floor(np.log10((high - low) / most))
    step *= next(s for s in (1.0, 2.0, 5.0, 10.0) if (high - low) / (s * step) <= most)
    return np.asarray(step * np.arange(np.ceil(low / step - 1e-9), np.floor(high / step + 1e-9) + 1))


def _panel(times: np.ndarray, panel: PlotPanel, corner: tuple[float, float], size: tuple[float, float]) -> str:
    x0, y0 = corner[0] + LEFT, corner[1] + TOP
    w, h = size[0] - LEFT - RIGHT, size[1] - TOP - BOTTOM
    low, high = _range(panel)
    t0, t1 = float(times[0]), float(max(times[-1], times[0] + 1e-9))
    stride = max(1, -(-len(times) // MOST_POINTS))
    x = x0 + w * (times[::stride] - t0) / (t1 - t0)

    def down(values: np.ndarray) -> np.ndarray:
        return np.asarray(y0 + h * (high - values[::stride]) / (high - low))

    out = [
        f'<text x="{x0 + w / 2:.0f}" y="{y0 - 8:.0f}" text-anchor="middle" font-size="12">{escape(panel.title)}</text>'
    ]
    for v in ticks(low, high):
        y = y0 + h * (high - v) / (high - low)
        out.append(f'<path d="M{x0:.0f} {y:.1f}h{w:.0f}" stroke="var(--line)" stroke-width="0.6"/>')
        out.append(f'<text x="{x0 - 4:.0f}" y="{y + 3:.1f}" text-anchor="end">{v + 0.0:.6g}</text>')
    for v in ticks(t0, t1, 3):
        at = x0 + w * (v - t0) / (t1 - t0)
        out.append(f'<text x="{at:.1f}" y="{y0 + h + 12:.0f}" text-anchor="middle">{v + 0.0:.6g}</text>')
    for c in panel.curves:
        if c.band is not None:
            out.append(_area(x, down(c.values - c.band), down(c.values + c.band), c.color))
    for c in panel.curves:
        line = _path(x, down(c.values))
        if line:
            out.append(f'<path d="{line}" fill="none" stroke="{c.color}" stroke-width="1.6" stroke-linejoin="round"/>')
    return "".join(out)


def _range(panel: PlotPanel) -> tuple[float, float]:
    ends = [c.values for c in panel.curves]
    ends += [c.values + s * c.band for c in panel.curves if c.band is not None for s in (-1, 1)]
    values = np.concatenate(ends) if ends else np.zeros(0)
    values = values[np.isfinite(values)]
    if not len(values):
        return 0.0, 1.0
    low, high = float(values.min()), float(values.max())
    margin = 0.05 * (high - low) or max(1e-3, 0.05 * abs(high))
    return low - margin, high + margin


def _runs(known: np.ndarray) -> list[tuple[int, int]]:
    """Return (first, last + 1) index of each run of known numbers."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], known, [False]]).astype(int)))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))


def _points(x: np.ndarray, y: np.ndarray) -> str:
    return " ".join(f"{a:.1f} {b:.1f}" for a, b in zip(x.tolist(), y.tolist(), strict=True))


def _path(x: np.ndarray, y: np.ndarray) -> str:
    return "".join(f"M{_points(x[a:b], y[a:b])}" for a, b in _runs(np.isfinite(y)))


def _area(x: np.ndarray, y_low: np.ndarray, y_high: np.ndarray, color: str) -> str:
    known = np.isfinite(y_low) & np.isfinite(y_high)
    shapes = "".join(
        f"M{_points(x[a:b], y_low[a:b])} {_points(x[a:b][::-1], y_high[a:b][::-1])}Z" for a, b in _runs(known)
    )
    return f'<path d="{shapes}" fill="{color}" fill-opacity="0.2"/>' if shapes else ""
