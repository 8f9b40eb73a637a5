"""Live reference motions for tracking policies, blended at start and end."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pinocchio as pin

from humanoid_control.errors import ConfigError, NotANumberError, UnknownNameError
from humanoid_control.numerics.minimum_jerk import minimum_jerk
from humanoid_control.policy import MotionFrame, MotionReference, Policy
from humanoid_control.policy.reference import blend_frames

BLEND = 1.0  # [s] blend between idle posture and reference
FARTHEST, FASTEST = 1e3, 100.0  # bounds of plausible motion: [m] and [rad], [m/s] and [rad/s]


REAL_TIME = 0.9  # pace above which a robot counts as real time


def quickened(frame: MotionFrame, pace: float) -> MotionFrame:
    """Scale frame velocities to the time of a robot slower than the clock."""
    if pace >= REAL_TIME:
        return frame
    v = frame.joint_velocity
    return frame._replace(
        velocity=frame.velocity / pace,
        yaw_rate=frame.yaw_rate / pace,
        joint_velocity=None if v is None else v / pace,
    )


class LiveReference:
    """Newest reference frame for a policy with a `MotionReference`.

    Attributes:
        active: frames are arriving.
    """

    def __init__(self, policy: Policy) -> None:
        assert isinstance(policy.reference, MotionReference)
        self._policy, self._reference, self._robot = policy, policy.reference, policy.robot
        self._data = self._robot.model.createData()
        self._order: tuple[list[str], np.ndarray] = ([], np.zeros(0, int))
        self.restart()

    def restart(self) -> None:
        """Return to the idle posture."""
        self._joints: tuple[np.ndarray, np.ndarray] | None = None
        self._frame, self._received = self._reference.idle, -np.inf
        self._given = self._from = self._reference.idle
        self._since, self.active, self.count = BLEND, False, 0
        self._R_start = np.eye(3)  # initial heading of the motion, which becomes the robot's own

    def on_joints(self, m: Any) -> None:
        """Accept joint positions and velocities.

        Raises:
            HumanoidError: if a policy joint is missing or a value not finite.
        """
        if m.name != self._order[0]:
            index = {name: k for k, name in enumerate(m.name)}
            for joint in self._policy.model.joints:
                if joint not in index:
                    raise UnknownNameError("joint", joint, index, hint="(reference_joint_states: ignored)")
            self._order = (list(m.name), np.array([index[j] for j in self._policy.model.joints]))
        rows = self._order[1]
        if len(m.position) != len(m.name) or len(m.velocity) not in (0, len(m.name)):
            raise ConfigError("reference_joint_states without a position and a velocity for each name: ignored")
        q = np.asarray(m.position, dtype=float)[rows]
        v = np.asarray(m.velocity, dtype=float)[rows] if len(m.velocity) else np.zeros(len(rows))
        if not (np.abs(q) < FARTHEST).all() or not (np.abs(v) < FASTEST).all():
            raise NotANumberError("reference_joint_states: a value is non-numeric or implausible: ignored")
        self._joints = q, v

    def on_odometry(self, m: Any) -> None:
        """Accept the root link; with the last joints it forms a frame.

        Raises:
            NotANumberError: if a value is not finite or implausible.
        """
        p, o = m.pose.pose.position, m.pose.pose.orientation
        v, w = m.twist.twist.linear, m.twist.twist.angular
        numbers = np.array([p.x, p.y, p.z, o.x, o.y, o.z, o.w, v.x, v.y, v.z, w.x, w.y, w.z])
        quaternion = numbers[3:7]
        good = (np.abs(numbers[:3]) < FARTHEST).all() and (np.abs(numbers[7:]) < FASTEST).all()
        if not good or not 0.5 < np.linalg.norm(quaternion) < 2.0:
            raise NotANumberError("reference_odometry: a value is non-numeric or implausible: ignored")
        if self._joints is None:
            return
        q, qd = self._joints
        R = pin.Quaternion(quaternion / np.linalg.norm(quaternion)).toRotationMatrix()
        roll, pitch, _ = pin.rpy.matrixToRpy(R)
        self._frame = MotionFrame(numbers[7:9], numbers[2], roll, pitch, numbers[12], q, qd, self._anchor(R, q))
        self._received, self.count = time.monotonic(), self.count + 1

    def _anchor(self, R: np.ndarray, q: np.ndarray) -> np.ndarray | None:
        """Return the anchor link's rotation in the motion's world."""
        anchor, robot = self._policy.model.anchor, self._robot
        if anchor in ("", robot.root_link):
            return R if anchor else None
        joints = self._policy.rest.copy()
        joints[self._policy.observed] = q
        pin.forwardKinematics(robot.model, self._data, robot.q(joints, pin.SE3(R, np.zeros(3))))
        frame = robot.model.getFrameId(anchor, pin.FrameType.BODY)
        return np.asarray(pin.updateFramePlacement(robot.model, self._data, frame).rotation)

    def advance(self, now: float, timeout: float, period: float, pace: float = 1.0) -> None:
        """Pass the frame of this step to the policy.

        Args:
            now: monotonic time [s].
            timeout: silence that ends the motion [s].
            period: period of the policy [s].
            pace: robot time per clock time.
        """
        active = now - self._received <= timeout
        if active != self.active:
            self.active, self._from, self._since = active, self._given, 0.0
            if self._frame.R_anchor is not None:
                self._R_start = pin.rpy.rpyToMatrix(0.0, 0.0, pin.rpy.matrixToRpy(self._frame.R_anchor)[2])
        self._since += period
        goal = quickened(self._frame, pace) if active else self._reference.idle
        if goal.R_anchor is not None:
            goal = goal._replace(R_anchor=self._R_start.T @ goal.R_anchor)
        share = min(self._since / BLEND, 1.0)
        self._given = goal if share >= 1.0 else blend_frames(self._from, goal, minimum_jerk(share))
        self._reference.give(self._given)
