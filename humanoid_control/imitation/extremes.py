"""Peaks and troughs of an error, and what the joints do there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from humanoid_control.errors import UnknownNameError
from humanoid_control.robots import Robot

DEVIATIONS = 2.0
NEAR_LIMIT = 0.2
LIMIT_MARGIN = np.radians(1.0)  # a joint this near to a limit counts as being at it
ROUNDING = 1e-12  # [m]
TROUGH_RULES = ("auto", "both", "limit")


@dataclass(frozen=True)
class Extreme:
    """One peak or trough: an unbroken run of frames beyond the thresholds, told by its most extreme frame.

    Attributes:
        frame: of the largest (smallest) error; time: of it [s].
        error: there [m].
        first, last: frames between which the error stays beyond the thresholds.
        angles: imitation joint -> angle in that frame [rad].
        at_limit: imitation joint -> "lower" or "upper", of those within 1 degree of a limit in that frame.
    """

    frame: int
    time: float
    error: float
    first: int
    last: int
    angles: dict[str, float]
    at_limit: dict[str, str]


def peak_frames(errors: np.ndarray) -> list[tuple[int, int, int]]:
    """Peaks of an error (T,) [m]: P > M + 2 S (6.1) and P > Emax - 0.2 S (6.2).

    M and S are mean and standard deviation, Emax the largest error of the series.

    Returns:
        (frame, first, last) of every unbroken run beyond both; none where the errors do not differ.
    """
    M, S = float(errors.mean()), float(errors.std())
    beyond = (errors > M + DEVIATIONS * S) & (errors > errors.max() - NEAR_LIMIT * S)
    return _runs(beyond, errors)


def trough_frames(errors: np.ndarray, rule: str = "auto") -> list[tuple[int, int, int]]:
    """Troughs of an error (T,) [m]: T < M - 2 S (6.3) and T < Emin + 0.2 S (6.4).

    Errors that are skewed to the right never come down to M - 2 S, and the printed rule finds no trough at all.

    Args:
        errors: of one link.
        rule: "both" as printed, "limit" for (6.4) alone, "auto" for both where the series comes below M - 2 S,
            else (6.4) alone.

    Returns:
        (frame, first, last) of every unbroken run.
    """
    if rule not in TROUGH_RULES:
        raise UnknownNameError("trough rule", rule, TROUGH_RULES)
    M, S, low = float(errors.mean()), float(errors.std()), float(errors.min())
    below = errors < low + NEAR_LIMIT * S
    if rule == "both" or (rule == "auto" and low < M - DEVIATIONS * S):
        below &= errors < M - DEVIATIONS * S
    return _runs(below, -errors)


def describe(
    robot: Robot, joints: np.ndarray, rate: float, errors: np.ndarray, frames: list[tuple[int, int, int]]
) -> tuple[Extreme, ...]:
    """What the joints (T, n) do at the peaks or troughs of an error (T,), most extreme first."""
    names = [robot.joint_names[j] for j in robot.imitation_joints]
    rows = []
    for frame, first, last in frames:
        angles = joints[frame, robot.imitation_joints]
        rows.append(
            Extreme(
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
    """Imitation joints within 1 degree of a limit at joint angles (n,), and which: "lower" or "upper"."""
    out = {}
    for j in robot.imitation_joints:
        if joints[j] - robot.lower[j] < LIMIT_MARGIN:
            out[robot.joint_names[j]] = "lower"
        elif robot.upper[j] - joints[j] < LIMIT_MARGIN:
            out[robot.joint_names[j]] = "upper"
    return out


def _runs(mask: np.ndarray, height: np.ndarray) -> list[tuple[int, int, int]]:
    """(highest frame, first, last) of each unbroken run of True; none in a series that is constant but for rounding."""
    if np.ptp(height) <= ROUNDING:
        return []
    edges = np.flatnonzero(np.diff(np.concatenate([[False], mask, [False]]).astype(int)))
    return [
        (int(first + np.argmax(height[first:end])), int(first), int(end - 1))
        for first, end in zip(edges[::2], edges[1::2], strict=True)
    ]
