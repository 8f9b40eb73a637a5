"""How much of each joint's range a motion uses."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from humanoid_control.imitation.extremes import LIMIT_MARGIN
from humanoid_control.robots import Robot


@dataclass(frozen=True)
class JointUse:
    """The range of one joint that a motion used (Dube 2012, section 6.2.1).

    Attributes:
        joint: its name.
        lower, upper: the range it has [rad].
        used_lower, used_upper: smallest and largest angle [rad].
        share: used over available range, 0 to 1.
        at_lower, at_upper: share of the frames within 1 degree of that limit.
    """

    joint: str
    lower: float
    upper: float
    used_lower: float
    used_upper: float
    share: float
    at_lower: float
    at_upper: float


def joint_use(robot: Robot, joints: np.ndarray) -> tuple[JointUse, ...]:
    """Range used by every imitation joint over joint angles (T, n)."""
    rows = []
    for j in robot.imitation_joints:
        q, lower, upper = joints[:, j], float(robot.lower[j]), float(robot.upper[j])
        used = float(q.min()), float(q.max())
        rows.append(
            JointUse(
                joint=robot.joint_names[j],
                lower=lower,
                upper=upper,
                used_lower=used[0],
                used_upper=used[1],
                share=(used[1] - used[0]) / (upper - lower) if upper > lower else 0.0,
                at_lower=float(np.mean(q - lower < LIMIT_MARGIN)),
                at_upper=float(np.mean(upper - q < LIMIT_MARGIN)),
            )
        )
    return tuple(rows)
