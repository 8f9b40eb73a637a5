"""Joint groups (arms, legs, waist) of a robot, from the joints between its points."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from humanoid_control.errors import RobotError
from humanoid_control.robots.robot import Robot

NEEDED = ("sternum", "l_wrist", "r_wrist", "l_foot_tcp", "r_foot_tcp")


@dataclass(frozen=True)
class JointGroups:
    """Joint indices, each in exactly one group.

    Attributes:
        l_arm: chest to hand, in model order.
        r_arm: chest to hand, in model order.
        l_leg: pelvis to sole.
        r_leg: pelvis to sole.
        waist: between chest and pelvis.
        rest: neck, head, toes, fingers.
    """

    l_arm: np.ndarray
    r_arm: np.ndarray
    l_leg: np.ndarray
    r_leg: np.ndarray
    waist: np.ndarray
    rest: np.ndarray

    @classmethod
    def of(cls, robot: Robot) -> JointGroups:
        """Return the groups of a robot with arms and legs.

        Raises:
            RobotError: if points are missing, or if the base is fixed.
        """
        missing = [p for p in NEEDED if p not in robot.points]
        if missing or robot.nv == robot.n:
            what = f"lacks the points {', '.join(missing)}" if missing else "has a fixed base"
            raise RobotError(f"{robot.name} {what}: walking needs a floating base, two arms and two legs")
        chest = _moving(robot, "sternum")
        l_foot, r_foot = (_moving(robot, f"{s}_foot_tcp") for s in "lr")
        pelvis = l_foot & r_foot
        groups = [chest ^ _moving(robot, _hand(robot, s)) for s in "lr"]
        groups += [l_foot & ~pelvis, r_foot & ~pelvis, chest ^ pelvis]
        groups.append(~np.any(groups, axis=0))
        return cls(*(np.flatnonzero(g) for g in groups))

    @property
    def arms(self) -> np.ndarray:
        """Both arms."""
        return np.concatenate([self.l_arm, self.r_arm])

    @property
    def legs(self) -> np.ndarray:
        """Both legs."""
        return np.concatenate([self.l_leg, self.r_leg])


def _moving(robot: Robot, point: str) -> np.ndarray:
    """Return the mask (n,) of joints that move a point."""
    return np.asarray(robot.ancestor_mask[robot.model.frames[robot.points[point]].parentJoint][robot.iv :] != 0)


def _hand(robot: Robot, side: str) -> str:
    tip = f"{side}_fingertip"
    return tip if tip in robot.points else f"{side}_wrist"


def controlled_joints(robot: Robot) -> list[str]:
    """Return all joints except mimic joints."""
    led = {follower for follower, *_ in robot.mimic}
    return [name for k, name in enumerate(robot.joint_names) if k not in led]
