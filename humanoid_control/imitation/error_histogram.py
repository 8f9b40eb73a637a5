"""Histogram of a link's error, and its description in the grades of the source."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

BIN = 0.02  # [m] width of a bin: every mode the source prints is an even number of centimetres
SPREAD_STEP = 0.10  # [m]
HEIGHT_STEP = 200  # frames
SPREADS = ("very low", "low", "moderate", "high", "very high", "extremely high")
HEIGHTS = ("extremely low", "very low", "low", "medium", "high", "very high")
SKEWS = ((0.25, "almost symmetrical"), (0.5, "slight {} skew"), (1.0, "{} skew"), (np.inf, "distinct {} skew"))
"""Skewness below which a shape has a name. 0.5 and 1 are Bulmer's bounds of a moderate and a high skewness; 0.25 halves
the lower one. The source gives the names, not the bounds."""


@dataclass(frozen=True)
class Histogram:
    """How often a link had which error (Dube 2012, section 6.1, Tables 6.1 to 6.5).

    Attributes:
        edges: (B + 1,) bin edges, from 0 in steps of 2 cm [m].
        counts: (B,) frames in each bin; their sum is the number of frames.
        skewness: third standardised moment m3 / m2^1.5, 0 where all errors are equal.
        shape: the name of that skewness, from "almost symmetrical" to "distinct right skew".
        spread: largest minus smallest error [m]; spread_grade: its name in steps of 10 cm.
        height: frames in the fullest bin; height_grade: its name in steps of 200 frames, as the source grades it,
            which compares clips only of about the same number of frames; height_share: height over all frames.
        mode: lower edge of the fullest bin [m].
    """

    edges: np.ndarray
    counts: np.ndarray
    skewness: float
    shape: str
    spread: float
    spread_grade: str
    height: int
    height_grade: str
    height_share: float
    mode: float


def error_histogram(errors: np.ndarray) -> Histogram:
    """Histogram of errors (T,) [m] with its graded description; T must be at least 1."""
    bins = int(np.floor(errors.max() / BIN)) + 1
    # Multiples by division and not by adding up, so that an error of exactly k bins falls into bin k.
    counts = np.bincount(np.minimum(np.floor(errors / BIN).astype(int), bins - 1), minlength=bins)
    fullest = int(np.argmax(counts))
    skew = skewness(errors)
    spread, height = float(np.ptp(errors)), int(counts[fullest])
    return Histogram(
        edges=BIN * np.arange(bins + 1),
        counts=counts,
        skewness=skew,
        shape=shape_name(skew),
        spread=spread,
        spread_grade=grade(spread, SPREAD_STEP, SPREADS),
        height=height,
        height_grade=grade(height, HEIGHT_STEP, HEIGHTS),
        height_share=height / len(errors),
        mode=BIN * fullest,
    )


def skewness(values: np.ndarray) -> float:
    """Third standardised moment; 0 where the values do not differ by more than rounding."""
    d = values - values.mean()
    variance = float(np.mean(d**2))
    if variance <= (1e-12 * max(1.0, float(np.abs(values).max()))) ** 2:
        return 0.0
    return float(np.mean(d**3) / variance**1.5)


def shape_name(skew: float) -> str:
    """The source's word for a skewness."""
    name = next(text for bound, text in SKEWS if abs(skew) < bound)
    return name.format("right" if skew > 0 else "left")


def grade(value: float, step: float, names: tuple[str, ...]) -> str:
    """The name of the interval [k step, (k + 1) step) that holds a value; the last one is open."""
    return names[min(int(value / step), len(names) - 1)]
