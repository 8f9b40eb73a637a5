"""Tracking error of the seven points: distribution and peaks (Dube 2012, 6.1)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from humanoid_control.errors import UnknownNameError
from humanoid_control.retargeting.scaling import POINTS, Targets
from humanoid_control.robots.robot import Robot

MEAN = "mean"
LINKS = (*POINTS, MEAN)
LINK_ENDS = {"spine": slice(0, 1), "clavicles": slice(1, 3), "upper arms": slice(3, 5), "lower arms": slice(5, 7)}
"""Links, left and right together -> indices of their ends in POINTS."""


def reached_points(robot: Robot, joints: np.ndarray) -> np.ndarray:
    """Return tracked points (T, 7, 3) for joint angles (T, n), world frame [m]."""
    frames = [robot.point_frame(p) for p in POINTS]
    return np.array([robot.frame_positions(robot.q(row), frames) for row in joints])


def link_errors(reached: np.ndarray, targets: Targets) -> dict[str, np.ndarray]:
    """Return the error (T,) of each of LINKS per frame [m] (Dube 2012, section 6.1).

    The error is the distance of a link's end point from its target: spine at the sternum, clavicles at the glenohumeral
    centres, upper arms at the elbows, lower arms at the wrists. "mean" averages all seven.
    """
    distance = np.linalg.norm(reached - targets.positions, axis=2)
    errors = {name: distance[:, k] for k, name in enumerate(POINTS)}
    return errors | {MEAN: distance.mean(axis=1)}


# -------- Distribution

BIN = 0.02  # [m] bin width: all modes in Dube 2012 are even centimetres
SPREAD_STEP = 0.10  # [m]
HEIGHT_STEP = 200  # frames
SPREADS = ("very low", "low", "moderate", "high", "very high", "extremely high")
HEIGHTS = ("extremely low", "very low", "low", "medium", "high", "very high")
SKEWS = ((0.25, "almost symmetrical"), (0.5, "slight {} skew"), (1.0, "{} skew"), (np.inf, "distinct {} skew"))
"""Skewness below which a shape has a name. 0.5 and 1 are Bulmer's bounds of moderate and high skewness; 0.25 is half
the lower one. Dube 2012 gives only the names."""


@dataclass(frozen=True)
class Histogram:
    """Error distribution of a link (Dube 2012, section 6.1, Tables 6.1 to 6.5).

    Attributes:
        edges: (B + 1,) from 0 in steps of 2 cm [m].
        counts: (B,) frames per bin.
        skewness: third standardised moment m3 / m2^1.5; 0 for equal errors.
        spread: largest minus smallest error [m].
        spread_grade: its name, in steps of 10 cm.
        height: frames in the fullest bin.
        height_grade: its name in steps of 200 frames (Dube 2012); depends on the clip length.
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
    """Return the graded histogram of at least one error (T,) [m]."""
    bins = int(np.floor(errors.max() / BIN)) + 1
    # Division instead of accumulated edges: an error of exactly k bins falls into bin k.
    counts = np.bincount(np.floor(errors / BIN).astype(int), minlength=bins)
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
    """Return the third standardised moment; 0 for values equal within rounding."""
    d = values - values.mean()
    variance = float(np.mean(d**2))
    if variance <= (1e-12 * max(1.0, float(np.abs(values).max()))) ** 2:
        return 0.0
    return float(np.mean(d**3) / variance**1.5)


def shape_name(skew: float) -> str:
    """Return the term of Dube 2012 for a skewness."""
    name = next(text for bound, text in SKEWS if abs(skew) < bound)
    return name.format("right" if skew > 0 else "left")


def grade(value: float, step: float, names: tuple[str, ...]) -> str:
    """Return the name of the interval [k step, (k + 1) step) of a value; the last is open."""
    return names[min(int(value / step), len(names) - 1)]


# -------- Peaks and troughs

DEVIATIONS = 2.0
NEAR_LIMIT = 0.2
LIMIT_MARGIN = np.radians(1.0)  # a joint this close to a limit is at the limit
ROUNDING = 1e-12  # [m]
TROUGH_RULES = ("auto", "both", "limit")


@dataclass(frozen=True)
class ErrorPeak:
    """Peak or trough: a run of frames beyond the thresholds, described by its extreme frame.

    Attributes:
        frame: of the extreme `error` [m], at `time` [s]; the run lasts from `first` to `last`.
        angles: imitation joint -> angle in that frame [rad].
        at_limit: imitation joint within 1 degree of a limit -> "lower" or "upper".
    """

    frame: int
    time: float
    error: float
    first: int
    last: int
    angles: dict[str, float]
    at_limit: dict[str, str]


def peak_frames(errors: np.ndarray) -> list[tuple[int, int, int]]:
    """Return the peaks of an error (T,) [m]: P > M + 2 S (6.1) and P > Emax - 0.2 S (6.2).

    M and S are mean and standard deviation, Emax the maximum.

    Returns:
        (frame, first, last) of every run; none for constant errors.
    """
    M, S = float(errors.mean()), float(errors.std())
    beyond = (errors > M + DEVIATIONS * S) & (errors > errors.max() - NEAR_LIMIT * S)
    return _runs(beyond, errors)


def trough_frames(errors: np.ndarray, rule: str = "auto") -> list[tuple[int, int, int]]:
    """Return the troughs of an error (T,) [m]: T < M - 2 S (6.3) and T < Emin + 0.2 S (6.4).

    Args:
        rule: "both" as printed; "limit": (6.4) only; "auto": both if the series falls below M - 2 S, else (6.4).

    Returns:
        (frame, first, last) of every run.
    """
    if rule not in TROUGH_RULES:
        raise UnknownNameError("trough rule", rule, TROUGH_RULES)
    M, S, low = float(errors.mean()), float(errors.std()), float(errors.min())
    below = errors < low + NEAR_LIMIT * S
    if rule == "both" or (rule == "auto" and low < M - DEVIATIONS * S):
        below &= errors < M - DEVIATIONS * S
    return _runs(below, -errors)


def describe_peaks(
    robot: Robot, joints: np.ndarray, rate: float, errors: np.ndarray, frames: list[tuple[int, int, int]]
) -> tuple[ErrorPeak, ...]:
    """Describe peaks or troughs of an error (T,) with joint angles (T, n), most extreme first."""
    names = [robot.joint_names[j] for j in robot.imitation_joints]
    rows = []
    for frame, first, last in frames:
        angles = joints[frame, robot.imitation_joints]
        rows.append(
            ErrorPeak(
                frame=frame,
                time=frame / rate,
                error=float(errors[frame]),
                first=first,
                last=last,
                angles=dict(zip(names, angles.tolist(), strict=True)),
                at_limit=joints_at_limit(robot, joints[frame]),
            )
        )
    middle = float(np.median(errors))
    return tuple(sorted(rows, key=lambda e: -abs(e.error - middle)))


def joints_at_limit(robot: Robot, joints: np.ndarray) -> dict[str, str]:
    """Return the imitation joints within 1 degree of a limit at joint angles (n,): "lower" or "upper"."""
    out = {}
    for j in robot.imitation_joints:
        if joints[j] - robot.lower[j] < LIMIT_MARGIN:
            out[robot.joint_names[j]] = "lower"
        elif robot.upper[j] - joints[j] < LIMIT_MARGIN:
            out[robot.joint_names[j]] = "upper"
    return out


def _runs(mask: np.ndarray, height: np.ndarray) -> list[tuple[int, int, int]]:
    """Return (highest frame, first, last) of each run of True; none if constant within rounding."""
    if np.ptp(height) <= ROUNDING:
        return []
    return [(first + int(np.argmax(height[first:end])), first, end - 1) for first, end in unbroken_runs(mask)]


def unbroken_runs(mask: np.ndarray) -> list[tuple[int, int]]:
    """Return (first, last + 1) of each run of True in a mask (T,)."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], mask, [False]]).astype(int))).tolist()
    return list(zip(edges[::2], edges[1::2], strict=True))
