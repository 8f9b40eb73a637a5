"""How often and how near a motion comes to the singular posture of a shoulder."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from humanoid_control.errors import RobotError
from humanoid_control.robots import Robot
from humanoid_control.robots.singularity import SingularStretch, gh_singularity, singular_stretches

NEAR = 0.2  # 12 degrees from the singular posture


@dataclass(frozen=True)
class ShoulderSingularity:
    """Nearness of the shoulders to their singularity over a motion.

    Attributes:
        smallest: least distance, 0 at the singularity and 1 far from it; NaN without such a shoulder.
        share_near: share of the frames in which a shoulder is below 0.2, which is 12 degrees.
        stretches: the unbroken runs of such frames.
    """

    smallest: float
    share_near: float
    stretches: tuple[SingularStretch, ...]


def nearness(robot: Robot, joints: np.ndarray) -> np.ndarray:
    """Distance (T, 2) of the left and right shoulder from the singularity at joint angles (T, n).

    NaN where the robot has no shoulder of flexion, abduction and rotation one after the other.
    """
    try:
        return gh_singularity(robot, joints)
    except RobotError:
        return np.full((len(joints), 2), np.nan)


def shoulder_singularity(values: np.ndarray) -> ShoulderSingularity:
    """The summary of distances (T, 2)."""
    near = values < NEAR  # False for NaN
    smallest = float(values.min())
    return ShoulderSingularity(smallest, float(near.any(axis=1).mean()), tuple(singular_stretches(values, NEAR)))
