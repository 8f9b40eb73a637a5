"""An IMU that sits in another link than the root: its reading as one in the root link, by the measured joints."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from humanoid_control.errors import ConfigError
from humanoid_control.kinematics.joint_state import ImuReading
from humanoid_control.robots import Robot

SMOOTH = 0.02  # [s] over which the change of the link's velocity is smoothed: it is a difference of noisy readings
WINDOW = 0.5  # [s] over which turns are compared
TIMES, ROOM = 10.0, 0.5  # by which the angular velocity may turn farther than the orientation, and [rad] besides
LONGEST = 0.1  # [s] between readings from which that change is taken


class ImuFrame:
    """The way of readings from the links of a robot to its root link.

    With R and p the orientation and the origin of the link in the root link, w the angular velocity of the root and
    u = w x p + dp/dt the velocity of the link's origin beside the root's, all in axes of the root:

        X_world_root = X_world_link R^T,  w = R w_link - w_rel,  f = R f_link - (du/dt + w x u)

    with f the acceleration less gravity. du/dt is a smoothed difference between readings.
    """

    def __init__(self, robot: Robot) -> None:
        self._robot, self._model, self._data = robot, robot.model, robot.model.createData()
        self._links = {f.name: k for k, f in enumerate(robot.model.frames) if f.type == pin.FrameType.BODY}
        self._between: dict[str, list[int]] = {}  # joints between a link and the root, of links that were asked for
        self.restart()

    def restart(self) -> None:
        """Nothing was read yet."""
        self._before: tuple[str, float, np.ndarray] | None = None  # link, time [s], u [m/s] of the last reading
        self._change = np.zeros(3)

    def to_root(self, frame: str, reading: ImuReading, time: float, q: np.ndarray, v: np.ndarray) -> ImuReading:
        """The reading that an IMU in the root link, at its origin and in its axes, would give.

        Args:
            frame: link in which it was measured; empty: the root link. time: of the reading [s].
            q, v: (n,) measured joint positions [rad] and velocities [rad/s].

        Raises:
            ConfigError: no link of the robot has that name, or joints between it and the root are not measured yet.
        """
        if frame in ("", self._robot.root_link):
            return reading
        if frame not in self._links:
            raise ConfigError(
                f"imu in frame '{frame[:60]}': neither the root link '{self._robot.root_link}' nor another link of "
                "this robot has that name: passed over"
            )
        R, p, turn, slide = self._placed(frame, q, v)
        w = R @ reading.angular_velocity - turn
        u = np.cross(w, p) + slide
        force = R @ reading.linear_acceleration - self._smoothed(frame, time, u) - np.cross(w, u)
        orientation = pin.Quaternion(reading.orientation) * pin.Quaternion(R.T)
        return ImuReading(orientation.normalized().coeffs(), w, force)

    def _placed(self, frame: str, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, ...]:
        """Rotation (3, 3), origin [m], angular [rad/s] and linear velocity [m/s] of a link in the root link."""
        model, data, robot = self._model, self._data, self._robot
        link = model.frames[self._links[frame]]
        root = model.frames[self._links[robot.root_link]]
        if frame not in self._between:
            moving = {*model.supports[link.parentJoint]} - {*model.supports[root.parentJoint]}
            names = enumerate(robot.joint_names)
            self._between[frame] = [k for k, name in names if model.getJointId(name) in moving]
        rows = self._between[frame]
        if not (np.isfinite(q[rows]).all() and np.isfinite(v[rows]).all()):
            raise ConfigError(f"imu in frame '{frame[:60]}': the joints between are not measured yet: passed over")
        full = np.zeros(robot.nv)
        full[robot.iv :] = np.where(np.isfinite(v), v, 0.0)
        pin.forwardKinematics(model, data, robot.q(np.where(np.isfinite(q), q, 0.0)), full)
        X_world_root = data.oMi[root.parentJoint] * root.placement
        X = X_world_root.actInv(data.oMi[link.parentJoint] * link.placement)
        moved = pin.getFrameVelocity(model, data, self._links[frame], pin.ReferenceFrame.LOCAL)  # the root is at rest
        return X.rotation, X.translation, X.rotation @ moved.angular, X.rotation @ moved.linear

    def _smoothed(self, frame: str, time: float, u: np.ndarray) -> np.ndarray:
        """du/dt (3,) [m/s^2] at a reading, by those before."""
        before, self._before = self._before, (frame, time, u)
        since = time - before[1] if before is not None and before[0] == frame else 0.0
        if not 0.0 < since <= LONGEST:
            self._change = np.zeros(3)
            return self._change
        assert before is not None
        self._change = self._change + (1.0 - np.exp(-since / SMOOTH)) * ((u - before[2]) / since - self._change)
        return self._change


class TurnBalance:
    """Comparison of the turns that an IMU's angular velocity makes with those of its orientation.

    An angular velocity in degrees a second is 57 times too large, and looks like one that a body has.
    """

    def __init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Nothing was read yet."""
        self._before: tuple[float, np.ndarray] | None = None
        self._said = self._turned = 0.0

    def fault(self, reading: ImuReading, time: float) -> str:
        """Words for an angular velocity that is not that of the orientation; empty: it is.

        Args:
            reading: in any link. time: of the reading [s].
        """
        before, self._before = self._before, (time, reading.orientation)
        since = time - before[0] if before is not None else 0.0
        if before is None or not 0.0 < since <= LONGEST:
            return ""
        kept = float(np.exp(-since / WINDOW))
        turned = 2.0 * np.arccos(min(1.0, abs(float(before[1] @ reading.orientation))))
        self._said = kept * self._said + since * float(np.linalg.norm(reading.angular_velocity))
        self._turned = kept * self._turned + turned
        if self._said <= TIMES * self._turned + ROOM:
            return ""
        turns = f"turned it by {self._said:.2g} rad lately, its orientation by {self._turned:.2g}"
        return f"its angular velocity {turns}: is it in degrees a second?"
