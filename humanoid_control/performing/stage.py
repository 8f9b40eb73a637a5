"""Performance states: stand, perform, stop, fall."""

from __future__ import annotations

from enum import Enum

import numpy as np
import pinocchio as pin

from humanoid_control.estimation.floating_base import FloatingBaseEstimator
from humanoid_control.kinematics.joint_state import ImuReading, JointState, Measurement
from humanoid_control.performing.dynamic_motion import DynamicMotion
from humanoid_control.performing.performance import FALLEN_HEIGHT, FALLEN_TILT
from humanoid_control.performing.source_motion import RigidSoles
from humanoid_control.performing.transitions import coming_to_rest, placed_on, stopping_frame
from humanoid_control.performing.whole_body_controller import ControllerSettings, WholeBodyController
from humanoid_control.robots import Robot
from humanoid_control.walking.gait import GRAVITY
from humanoid_control.walking.missing_forces import sensed_wrenches

LONGEST_TICK = 0.02  # [s] longest tick; longer sensor gaps are not made up for


class StageState(Enum):
    """States of a performer."""

    STAND = "STAND"
    PERFORM = "PERFORM"
    STOP = "STOP"
    FALLEN = "FALLEN"


class Stage:
    """Controller with its motion and state.

    Attributes:
        plan: motion with approach, placed at the robot.
        performed: completed motions.
    """

    def __init__(self, robot: Robot, plan: DynamicMotion, settings: ControllerSettings | None = None) -> None:
        """Set up, and load compiled kernels by ticks at rest.

        Args:
            plan: starts in the standing posture.

        Raises:
            ClipError: if the motion belongs to another robot.
            RobotError: if soles or masses are missing.
        """
        self.robot, self.plan = robot, plan
        self.controller = WholeBodyController(robot, plan, settings)
        self._soles = RigidSoles.of(robot)
        self._rehearse()
        self.state, self.why, self.performed = StageState.STAND, "", 0
        self._rest: tuple[int, DynamicMotion] | None = None
        self._resting = False

    def _rehearse(self) -> None:
        r, c = self.robot, self.controller
        q = self.plan.q[0]
        root = pin.XYZQUATToSE3(q[:7]).rotation @ self._X_base_root.rotation
        imu = ImuReading(pin.Quaternion(root).coeffs(), np.zeros(3), root.T @ [0.0, 0.0, GRAVITY])
        joints = JointState(r.joint_names, q[r.iq :], np.zeros(r.n), np.zeros(r.n), 0.0)
        c.begin(q)
        c.estimator.kinematics(joints.q, joints.v, imu)
        wrenches = sensed_wrenches(c.feet_of, c.estimator.data, np.array([[0.5 * c.weight, 0.0, 0.0]] * 2))
        for _ in range(3):
            c.step(Measurement(joints, imu, wrenches))

    @property
    def _X_base_root(self) -> pin.SE3:
        model = self.robot.model
        return model.frames[model.getFrameId(self.robot.root_link, pin.FrameType.BODY)].placement

    def begin(self, measured: Measurement) -> None:
        """Stand at rest on both feet, and place the plan there."""
        q = standing_configuration(self.robot, self.controller.estimator, self._soles, measured)
        R, p = (x[0] for x in self._soles.poses(self.robot, q[None]))
        self.controller.follow(placed_on(self.plan, R, p))
        self.plan = self.controller.motion
        self.controller.begin(q)
        self.state, self.why, self._rest, self._resting = StageState.STAND, "", None, False

    # -- requests ---------------------------------------------------------------------------------------------------

    def start(self) -> bool:
        """Start the plan; False unless at its beginning."""
        if self.state != StageState.STAND or self._resting or self.controller.clock > 0.0:
            return False
        self.state = StageState.PERFORM
        return True

    def stop(self) -> bool:
        """Come to rest at the next double support; False if not performing."""
        if self.state != StageState.PERFORM:
            return False
        frame = stopping_frame(self.plan, self.controller.clock)
        self._rest = frame, coming_to_rest(self.robot, self.plan, frame)
        self.state = StageState.STOP
        return True

    def give(self, plan: DynamicMotion) -> bool:
        """Stand at the beginning of another plan; False while moving."""
        if self.state != StageState.STAND:
            return False
        self.plan, self._resting = plan, False
        self.controller.follow(plan)
        return True

    # -- a tick -----------------------------------------------------------------------------------------------------

    def step(self, measured: Measurement, dt: float) -> np.ndarray | None:
        """Return torques (n,) [N m]; None after a fall or if not finite.

        Args:
            dt: since the last reading [s].
        """
        if self.state == StageState.FALLEN:
            return None
        c = self.controller
        if self._rest is not None and c.clock * self.plan.rate >= self._rest[0]:
            c.follow(self._rest[1])
            self._rest, self._resting = None, True
        torque = c.step(measured, min(dt, LONGEST_TICK))
        if self.state == StageState.STAND and not self._at_end:
            c.clock = 0.0
        elif self.state == StageState.PERFORM and c.finished:
            self.state, self.performed = StageState.STAND, self.performed + 1
        elif self.state == StageState.STOP and self._rest is None and c.finished:
            self.state = StageState.STAND
        self._detect_fall()
        return torque if self.state != StageState.FALLEN and np.isfinite(torque).all() else None

    @property
    def _at_end(self) -> bool:
        return self._resting or self.controller.finished

    @property
    def needs_plan(self) -> bool:
        """True if standing at the end of a motion."""
        return self.state == StageState.STAND and self._at_end

    @property
    def configuration(self) -> np.ndarray:
        """Standing configuration (nq,), to start the next plan from."""
        estimate = self.controller.estimate
        assert estimate is not None
        return np.concatenate([estimate.q[:7], self.controller.motion.q[-1, 7:]])

    def _detect_fall(self) -> None:
        c = self.controller
        if c.estimate is None:
            return
        reference = c.motion.q[min(round(c.clock * c.motion.rate), len(c.motion) - 1)]
        up = pin.XYZQUATToSE3(c.estimate.q[:7]).rotation[:, 2]
        tilt = float(np.arccos(np.clip(up @ pin.XYZQUATToSE3(reference[:7]).rotation[:, 2], -1.0, 1.0)))
        height = float(c.estimate.q[2] / reference[2])
        if tilt > FALLEN_TILT:
            self.why = f"the root leans by {np.degrees(tilt):.0f} degrees"
        elif height < FALLEN_HEIGHT:
            self.why = f"the root is at {100 * height:.0f} % of its height"
        if self.why:
            self.state = StageState.FALLEN


def standing_configuration(
    robot: Robot, estimator: FloatingBaseEstimator, soles: RigidSoles, measured: Measurement
) -> np.ndarray:
    """Return q (nq,) of a robot at rest on both feet, with their middle at the floor origin.

    Args:
        estimator: with IMU mounting; its `data` change.
    """
    estimator.kinematics(measured.joints.q, measured.joints.v, measured.imu)
    q = np.concatenate([np.zeros(3), pin.Quaternion(estimator.data.oMi[1].rotation).coeffs(), measured.joints.q])
    _, p = soles.poses(robot, q[None])
    q[:3] = -p[0].mean(axis=0)
    return q
