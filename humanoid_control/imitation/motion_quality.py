"""Quality of a joint motion frame by frame: limits, speed, acceleration, jerk."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from humanoid_control.imitation.extremes import LIMIT_MARGIN
from humanoid_control.imitation.retarget import JointTrajectory
from humanoid_control.robots import Robot

AT_SPEED_LIMIT = 0.999
PERCENTILE = 99


@dataclass(frozen=True)
class FrameQuality:
    """What every frame reports, of the imitation joints.

    Attributes:
        at_position_limit: (T,) share of the joints within 1 degree of a limit.
        at_speed_limit: (T,) share of the joints at 99.9 % of their speed limit or beyond.
        speed_share: (T,) largest joint speed over its limit.
        speed: (T,) largest joint speed [rad/s]; acceleration [rad/s^2]; jerk [rad/s^3]. They are differences of
            the positions: backward, zero where too few frames lie before.
    """

    at_position_limit: np.ndarray
    at_speed_limit: np.ndarray
    speed_share: np.ndarray
    speed: np.ndarray
    acceleration: np.ndarray
    jerk: np.ndarray


@dataclass(frozen=True)
class Level:
    """A quantity over a motion: its largest value and its 99th percentile over frames and joints."""

    max: float
    p99: float


@dataclass(frozen=True)
class MotionQuality:
    """The frames in one row.

    Attributes:
        at_position_limit, at_speed_limit: mean share of the imitation joints, over all frames.
        frames_at_speed_limit: share of the frames in which some joint is at its speed limit.
        beyond_position_limit: how far a joint is outside its range at the worst [rad]; 0 is right.
        speed [rad/s], acceleration [rad/s^2], jerk [rad/s^3]; speed_share: of the speed limit.
    """

    at_position_limit: float
    at_speed_limit: float
    frames_at_speed_limit: float
    beyond_position_limit: float
    speed_share: float
    speed: Level
    acceleration: Level
    jerk: Level


def motion_quality(robot: Robot, trajectory: JointTrajectory) -> tuple[MotionQuality, FrameQuality]:
    """Quality of a joint trajectory of a robot, over all and frame by frame."""
    moving = robot.imitation_joints
    q, lower, upper = trajectory.positions[:, moving], robot.lower[moving], robot.upper[moving]
    v = _difference(q, trajectory.rate, 1)
    a = _difference(q, trajectory.rate, 2)
    j = _difference(q, trajectory.rate, 3)
    share = np.abs(v) / robot.velocity[moving]
    frames = FrameQuality(
        at_position_limit=np.mean((q - lower < LIMIT_MARGIN) | (upper - q < LIMIT_MARGIN), axis=1),
        at_speed_limit=np.mean(share >= AT_SPEED_LIMIT, axis=1),
        speed_share=share.max(axis=1),
        speed=np.abs(v).max(axis=1),
        acceleration=np.abs(a).max(axis=1),
        jerk=np.abs(j).max(axis=1),
    )
    total = MotionQuality(
        at_position_limit=float(frames.at_position_limit.mean()),
        at_speed_limit=float(frames.at_speed_limit.mean()),
        frames_at_speed_limit=float(np.mean(frames.at_speed_limit > 0)),
        beyond_position_limit=max(0.0, float(np.maximum(lower - q, q - upper).max())),
        speed_share=float(frames.speed_share.max()),
        speed=_level(v[1:]),
        acceleration=_level(a[2:]),
        jerk=_level(j[3:]),
    )
    return total, frames


def _difference(q: np.ndarray, rate: float, order: int) -> np.ndarray:
    """Backward difference of an order (T, m), with zeros where it is not defined."""
    out = np.zeros_like(q)
    out[order:] = np.diff(q, order, axis=0) * rate**order
    return out


def _level(values: np.ndarray) -> Level:
    size = np.abs(values)
    return Level(float(size.max()), float(np.percentile(size, PERCENTILE))) if size.size else Level(0.0, 0.0)
