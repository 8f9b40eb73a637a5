"""Conversion of readings of an IMU on any link to the root link, by joint positions."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from humanoid_control.errors import ConfigError
from humanoid_control.kinematics.joint_state import ImuReading
from humanoid_control.robots import Robot

SMOOTH = 0.02  # [s] time constant for the link acceleration, a difference of noisy readings
WINDOW = 0.5  # [s] window of the comparison of turns
# factor and margin [rad] by which integrated angular velocity may exceed the turn of the orientation
TIMES, ROOM = 10.0, 0.5
LONGEST = 0.1  # [s] maximum time between readings for a difference


class ImuFrame:
    """Conversion of IMU readings from a link to the root link.

    R, p: orientation and origin of the link in the root link; w: angular velocity of the root; u = w x p + dp/dt:
    velocity of the link origin relative to the root origin, all in root axes:

        X_world_root = X_world_link R^T,  w = R w_link - w_rel,  f = R f_link - (du/dt + w x u)

    f is the acceleration minus gravity; du/dt is a smoothed difference between readings.
    """

    def __init__(self, robot: Robot) -> None:
        self._robot, self._model, self._data = robot, robot.model, robot.model.createData()
        self._links = {f.name: k for k, f in enumerate(robot.model.frames) if f.type == pin.FrameType.BODY}
        self._between: dict[str, list[int]] = {}  # joints between the root and links used so far
        self.restart()

    def restart(self) -> None:
        self._before: tuple[str, float, np.ndarray] | None = None  # link, time [s], u [m/s] of the last reading
        self._change = np.zeros(3)

    def to_root(self, frame: str, reading: ImuReading, time: float, q: np.ndarray, v: np.ndarray) -> ImuReading:
        """Return the reading at the origin and in the axes of the root link.

        Args:
            frame: link of the IMU; empty: the root link.
            time: time of the reading [s].
            q: joint positions (n,) [rad].
            v: joint velocities (n,) [rad/s].

        Raises:
            ConfigError: if the link is unknown, or joints are not measured yet.
        """
        if frame in ("", self._robot.root_link):
            return reading
        if frame not in self._links:
            raise ConfigError(
                f"imu in frame '{frame[:60]}': not the root link '{self._robot.root_link}' or another link of this "
                "robot: ignored"
            )
        R, p, turn, slide = self._placed(frame, q, v)
        w = R @ reading.angular_velocity - turn
        u = np.cross(w, p) + slide
        force = R @ reading.linear_acceleration - self._smoothed(frame, time, u) - np.cross(w, u)
        orientation = pin.Quaternion(reading.orientation) * pin.Quaternion(R.T)
        return ImuReading(orientation.normalized().coeffs(), w, force)

    def _placed(self, frame: str, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return rotation (3, 3), origin [m], angular [rad/s] and linear velocity [m/s] in the root link."""
        model, data, robot = self._model, self._data, self._robot
        link = model.frames[self._links[frame]]
        root = model.frames[self._links[robot.root_link]]
        if frame not in self._between:
            moving = {*model.supports[link.parentJoint]} - {*model.supports[root.parentJoint]}
            names = enumerate(robot.joint_names)
            self._between[frame] = [k for k, name in names if model.getJointId(name) in moving]
        rows = self._between[frame]
        if not (np.isfinite(q[rows]).all() and np.isfinite(v[rows]).all()):
            raise ConfigError(f"imu in frame '{frame[:60]}': the joints in between are not measured yet: ignored")
        full = np.zeros(robot.nv)
        full[robot.iv :] = np.where(np.isfinite(v), v, 0.0)
        pin.forwardKinematics(model, data, robot.q(np.where(np.isfinite(q), q, 0.0)), full)
        X_world_root = data.oMi[root.parentJoint] * root.placement
        X = X_world_root.actInv(data.oMi[link.parentJoint] * link.placement)
        # relative to a fixed root
        moved = pin.getFrameVelocity(model, data, self._links[frame], pin.ReferenceFrame.LOCAL)
        return X.rotation, X.translation, X.rotation @ moved.angular, X.rotation @ moved.linear

    def _smoothed(self, frame: str, time: float, u: np.ndarray) -> np.ndarray:
        """Return the smoothed du/dt (3,) [m/s^2]."""
        before, self._before = self._before, (frame, time, u)
        since = time - before[1] if before is not None and before[0] == frame else 0.0
        if not 0.0 < since <= LONGEST:
            self._change = np.zeros(3)
            return self._change
        assert before is not None
        self._change = self._change + (1.0 - np.exp(-since / SMOOTH)) * ((u - before[2]) / since - self._change)
        return self._change


class TurnBalance:
    """Comparison of integrated angular velocity with turns of the orientation, to detect deg/s."""

    def __init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        self._before: tuple[float, np.ndarray] | None = None
        self._gyro_angle = self._orientation_angle = 0.0

    def fault(self, reading: ImuReading, time: float) -> str:
        """Describe an angular velocity that contradicts the orientation; empty: consistent."""
        before, self._before = self._before, (time, reading.orientation)
        since = time - before[0] if before is not None else 0.0
        if before is None or not 0.0 < since <= LONGEST:
            return ""
        kept = float(np.exp(-since / WINDOW))
        turned = 2.0 * np.arccos(min(1.0, abs(float(before[1] @ reading.orientation))))
        self._gyro_angle = kept * self._gyro_angle + since * float(np.linalg.norm(reading.angular_velocity))
        self._orientation_angle = kept * self._orientation_angle + turned
        if self._gyro_angle <= TIMES * self._orientation_angle + ROOM:
            return ""
        turns = f"rotated it by {self._gyro_angle:.2g} rad recently, its orientation by {self._orientation_angle:.2g}"
        return f"its angular velocity {turns}: is it in deg/s?"
