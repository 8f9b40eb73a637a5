"""Inverse-kinematics tasks of balance: soles, centre of mass, chest, momentum and posture.

The balance law is in `stabilizer`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pinocchio as pin

from humanoid_control.errors import check_time_step
from humanoid_control.ik.limits.limit import JointSideLimit, Limit
from humanoid_control.ik.limits.self_collision import default_limits
from humanoid_control.ik.solver import IkSettings
from humanoid_control.ik.tasks.centroidal import CenterOfMassTask
from humanoid_control.ik.tasks.frames import FrameTask, OrientationTask
from humanoid_control.ik.tasks.joints import PostureTask
from humanoid_control.ik.tasks.points import PointTask
from humanoid_control.ik.tasks.task import Task
from humanoid_control.numerics.minimum_jerk import minimum_jerk
from humanoid_control.robots.joint_groups import JointGroups
from humanoid_control.robots.robot import Robot
from humanoid_control.walking.arm_swing import ArmSwing
from humanoid_control.walking.dancing.upper_body import ARM_POINTS, UpperGoal
from humanoid_control.walking.feet import Feet

STANCE, SWING, CENTER, CHEST = 100.0, 10.0, 30.0, 5.0
SWING_TURN = 0.2  # [m/rad] of a swing sole: it may tilt where an ankle reaches its range
UPPER_BODY, SPARE_LEGS, POSTURE_GAIN = 3.0, 0.1, 5.0
# weights of shoulders, elbows, wrists that follow a person [s/m]; gain [1/s]
GESTURE, GESTURE_GAIN = (0.7, 1.5, 3.0), 25.0
FREE_WAIST, FREE_ARMS = 0.5, 0.03  # posture weights while following a person
# A waist that cannot bend as far as the chest target leaves the rest to the pelvis, until a leg reaches its limit.
PELVIS, LEAN = 10.0, (np.radians(14.0), np.radians(20.0))  # weight above the second lean angle; 0 below the first


def walking_settings(dt: float) -> IkSettings:
    """Return inverse-kinematics settings for swinging legs.

    The joints' acceleration limits are off, since they assume a fixed base.

    Raises:
        ConfigError: if `dt` [s] is not positive and finite.
    """
    check_time_step(dt, "walking")
    return IkSettings(
        acceleration=400.0,
        acceleration_scale=np.inf,
        base_velocity=5.0,
        barrier_gain=max(40.0, 0.2 / dt),
        smoothing=0.01,
        range_ease=0.0,
    )


def walking_limits(robot: Robot, self_collision: bool = True) -> list[Limit]:
    """Return the default limits plus a minimum knee bend."""
    limits = default_limits(robot, self_collision)
    return [*limits[:-2], bent_knees(robot), *limits[-2:]]


class BalanceTasks:
    """Whole-body tasks that remove their errors within one tick.

    Attributes:
        feet: a FrameTask per sole.
        swing: arm swing, unless a person is followed.
        pelvis: lean limit while the chest follows a person; only with a waist.
    """

    def __init__(self, robot: Robot, feet: Feet, dt: float, arms: str = "still") -> None:
        """Create the tasks.

        Args:
            arms: one of ARM_SWINGS.
        """
        gain, g = 1.0 / dt, JointGroups.of(robot)
        self.robot = robot
        pelvis = robot.model.parents[robot.model.getJointId(robot.joint_names[g.l_leg[0]])]
        link = next(f for f, x in enumerate(robot.model.frames) if x.parentJoint == pelvis and x.type == pin.BODY)
        self.pelvis = OrientationTask(robot, link, weight=0.0, gain=gain)
        self.feet = [FrameTask(robot, f, weight=STANCE, gain=gain, orientation_weight=1.0) for f in feet.frames]
        self.center = CenterOfMassTask(robot, weight=CENTER, gain=gain)
        self.chest = OrientationTask(robot, "sternum", weight=CHEST, gain=gain)
        weights = np.full(robot.n, UPPER_BODY)
        self.swing = ArmSwing(robot, arms)
        weights[g.arms] = self.swing.weight
        weights[g.legs] = SPARE_LEGS if len(g.l_leg) > 6 else 0.0
        self.posture = PostureTask(robot, weights=weights, weight=1.0, gain=POSTURE_GAIN)
        self._weights, self._freed = weights, weights.copy()
        self._freed[g.arms], self._freed[g.waist] = FREE_ARMS, FREE_WAIST
        self.arms = gesture_tasks(robot) if all(p in robot.points for p in ARM_POINTS) else []
        balance: list[Task] = [*self.feet, self.center, self.chest, self.posture]
        bends = [self.pelvis] if len(g.waist) else []
        self._alone, self._following = [*balance, *self.swing.tasks], [*balance, *bends, *self.arms]
        self.tasks, self._rest = self._alone, robot.postures["neutral"]
        pin.framesForwardKinematics(robot.model, robot.data, robot.q("neutral"))
        self.R_upright = robot.data.oMf[robot.points["sternum"]].rotation.copy()
        self._pelvis_up = robot.data.oMf[link].rotation[2].copy()  # world vertical in the axes of the upright pelvis

    def set(
        self,
        soles: Sequence[pin.SE3],
        center: np.ndarray,
        heading: np.ndarray,
        swinging: int | None,
        upper: UpperGoal | None = None,
    ) -> None:
        """Set the targets at the end of the coming tick.

        Args:
            center: (3,) CoM [m].
            upper: goal of chest and arms; None: upright chest.
        """
        for k, (task, X) in enumerate(zip(self.feet, soles, strict=True)):
            task.set_target(X)
            task.weight, task.orientation_weight = (SWING, SWING_TURN) if k == swinging else (STANCE, 1.0)
        self.center.set_target(center)
        self.tasks = self._alone if upper is None else self._following
        self.posture.weights = self._weights if upper is None else self._freed
        if upper is None:
            self.chest.set_target(heading @ self.R_upright)
            return
        self.posture.set_target(self._rest)
        self.chest.set_target(heading @ upper.chest @ self.R_upright)
        points, velocity = upper.points @ self.R_upright, upper.velocity @ self.R_upright
        for arm, x, v in zip(self.arms, points, velocity, strict=True):
            arm.set_target(x, v)

    def hold_pelvis(self, q: np.ndarray) -> None:
        """Limit the pelvis lean to LEAN while the chest follows a person."""
        if self.tasks is not self._following:
            return
        model, data = self.robot.model, self.robot.data
        pin.forwardKinematics(model, data, q)
        R = pin.updateFramePlacement(model, data, self.pelvis.frame).rotation
        up = R @ self._pelvis_up
        lean, (low, high) = math.acos(min(max(float(up[2]), -1.0), 1.0)), LEAN
        self.pelvis.weight = PELVIS * minimum_jerk(min(max((lean - low) / (high - low), 0.0), 1.0))
        if lean > low:  # target: the first lean angle, reached about the current lean axis
            axis = np.array([up[1], -up[0], 0.0]) / math.hypot(up[0], up[1])
            self.pelvis.set_target(pin.exp3((lean - low) * axis) @ R)
        else:
            self.pelvis.set_target(R)

    def swing_arms(self, q: np.ndarray, v: np.ndarray, spin: float, heading: np.ndarray) -> None:
        """Set the arm targets unless the arms follow a person; arguments as in `ArmSwing.rates`."""
        if self.swing.way == "still" or self.tasks is self._following:
            return
        arms, swing = self.swing.arms, self.swing
        rates = swing.rates(q, v, spin, heading)
        self.posture.posture[arms] = q[swing.first + arms] + rates / POSTURE_GAIN

    def turn_toes(self, robot: Robot, joints: Sequence[int], q: np.ndarray, goal: np.ndarray, dt: float) -> None:
        """Move the toe joints to `goal` (2,) within the coming tick [rad]."""
        at = q[[robot.iq + k for k in joints]]
        self.posture.posture[list(joints)] = at + (goal - at) / (dt * POSTURE_GAIN)


def gesture_tasks(robot: Robot) -> list[PointTask]:
    """Return tasks of ARM_POINTS relative to the sternum, in sternum axes, without targets."""
    weights = np.repeat(GESTURE, 2).tolist()
    pairs = zip(ARM_POINTS, weights, strict=True)
    return [PointTask(robot, p, "sternum", "sternum", weight=w, gain=GESTURE_GAIN) for p, w in pairs]


def bent_knees(robot: Robot, bend: float = 0.12, gain: float = 20.0) -> JointSideLimit:
    """Return a limit that keeps the knees bent: a straight leg is singular and may bend backward.

    Args:
        bend: least angle from the straight leg [rad].
    """
    g = JointGroups.of(robot)
    joints, straight, side = zip(*(_knee(robot, leg) for leg in (g.l_leg, g.r_leg)), strict=True)
    return JointSideLimit(joints, [a + s * bend for a, s in zip(straight, side, strict=True)], side, gain)


def _knee(robot: Robot, leg: np.ndarray) -> tuple[int, float, float]:
    """Return the index of the knee, its angle of the straight leg [rad], and the sign of its bend."""
    first, last = (robot.model.getJointId(robot.joint_names[k]) for k in (leg[0], leg[-1]))

    def length(joint: int, angle: float) -> float:
        joints = robot.postures["zero"].copy()
        joints[joint] = angle
        pin.forwardKinematics(robot.model, robot.data, robot.q(joints))
        return float(np.linalg.norm(robot.data.oMi[first].translation - robot.data.oMi[last].translation))

    low, high = robot.range_within(np.pi)
    angles = {k: np.linspace(low[k], high[k], 181) for k in leg[1:-1]}
    lengths = {k: np.array([length(k, a) for a in angles[k]]) for k in angles}
    knee = max(lengths, key=lambda k: float(np.ptp(lengths[k])))
    straight = float(angles[knee][np.argmax(lengths[knee])])
    return int(knee), straight, 1.0 if high[knee] - straight > straight - low[knee] else -1.0
