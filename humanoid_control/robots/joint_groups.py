"""Which joints of a robot are its arms, its legs and its waist, told by what lies between its tracked points."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from humanoid_control.errors import RobotError
from humanoid_control.robots.robot import Robot

NEEDED = ("sternum", "mid_hip", "l_wrist", "r_wrist", "l_foot_tcp", "r_foot_tcp")


@dataclass(frozen=True)
class JointGroups:
    """Indices of joints, each in exactly one group.

    Attributes:
        l_arm, r_arm: from the chest to the hand, in the order of the model.
        l_leg, r_leg: from the pelvis to the sole.
        waist: between chest and pelvis.
        rest: neck, head, toes, fingers.
    """

    l_arm: np.ndarray
    r_arm: np.ndarray
    l_leg: np.ndarray
    r_leg: np.ndarray
    waist: np.ndarray
    rest: np.ndarray

    @property
    def arms(self) -> np.ndarray:
        """Both arms."""
        return np.concatenate([self.l_arm, self.r_arm])

    @property
    def legs(self) -> np.ndarray:
        """Both legs."""
        return np.concatenate([self.l_leg, self.r_leg])


def joint_groups(robot: Robot) -> JointGroups:
    """Sort the joints of a robot with two arms and two legs.

    Raises:
        RobotError: points by which the limbs are found are missing, or the base is fixed.
    """
    missing = [p for p in NEEDED if p not in robot.points]
    if missing or robot.nv == robot.n:
        what = f"lacks the points {', '.join(missing)}" if missing else "has a fixed base"
        raise RobotError(f"{robot.name} {what}: walking needs a floating base, two arms and two legs")

    def between(a: str, b: str) -> np.ndarray:
        """Joints that move one point but not the other."""
        rows = [robot.support[robot.model.frames[robot.points[p]].parentJoint] for p in (a, b)]
        return np.flatnonzero((rows[0] != rows[1])[robot.iv :])

    l_arm, r_arm = (between("sternum", _hand(robot, s)) for s in "lr")
    l_leg, r_leg = (between("mid_hip", f"{s}_foot_tcp") for s in "lr")
    waist = between("sternum", "mid_hip")
    rest = np.setdiff1d(np.arange(robot.n), np.concatenate([l_arm, r_arm, l_leg, r_leg, waist]))
    return JointGroups(l_arm, r_arm, l_leg, r_leg, waist, rest)


def _hand(robot: Robot, side: str) -> str:
    tip = f"{side}_fingertip"
    return tip if tip in robot.points else f"{side}_wrist"
