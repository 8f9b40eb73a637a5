"""IMU and true state of the root link."""

from __future__ import annotations

from collections import deque
from typing import Protocol

import numpy as np
import pinocchio as pin

from humanoid_control.kinematics.joint_state import ImuReading
from humanoid_control.robots import Robot

WINDOW = 0.005  # [s] over which the accelerometer takes the mean
BODY = pin.FrameType.BODY


class ImuMotion:
    """Velocity of the root link during the last milliseconds, since accelerometers average."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, np.ndarray]] = deque()

    def reset(self) -> None:
        self._seen.clear()

    def add(self, time: float, q: np.ndarray, v: np.ndarray, lever: np.ndarray) -> None:
        """Add a state of a floating base; lever: (3,) root link in the base [m]."""
        (a, b, c), (x, y, z) = v[3:6].tolist(), lever.tolist()
        local = v[:3] + (b * z - c * y, c * x - a * z, a * y - b * x)
        self._seen.append((time, pin.Quaternion(q[3:7]) * local))
        while self._seen[0][0] < time - WINDOW - 1e-9:
            self._seen.popleft()

    def acceleration(self) -> np.ndarray | None:
        """Return the mean over the window (3,) in the world [m/s^2]; None with fewer than two states."""
        if len(self._seen) < 2:
            return None
        (t0, v0), (t1, v1) = self._seen[0], self._seen[-1]
        return (v1 - v0) / (t1 - t0)


class KinematicState(Protocol):
    """Robot, pinocchio model and state."""

    robot: Robot
    model: pin.Model
    data: pin.Data
    q: np.ndarray
    v: np.ndarray
    acceleration: np.ndarray
    motion: ImuMotion
    X_base_root: pin.SE3 | None


def read_imu(world: KinematicState) -> ImuReading:
    X, twist = _root_link(world)
    up, mean, R_T = -world.model.gravity.linear, world.motion.acceleration(), X.rotation.T
    force = _acceleration(world) + R_T @ up if mean is None else R_T @ (mean + up)
    return ImuReading(pin.SE3ToXYZQUAT(X)[3:], twist.angular.copy(), force)


def base_state(world: KinematicState) -> tuple[np.ndarray, np.ndarray]:
    """Return root link pose (7,) (x y z, quaternion x y z w) and twist (6,) in its own axes."""
    X, twist = _root_link(world)
    return pin.SE3ToXYZQUAT(X), np.concatenate([twist.linear, twist.angular])


def _root_link(world: KinematicState) -> tuple[pin.SE3, pin.Motion]:
    X, q = world.X_base_root, world.q
    if X is not None:
        X_base = pin.SE3(pin.Quaternion(q[3:7]), q[:3])
        return X_base * X, X.actInv(pin.Motion(world.v[:6]))
    model, data = world.model, world.data
    pin.forwardKinematics(model, data, q, world.v)
    frame = model.getFrameId(world.robot.root_link, BODY)
    X = pin.updateFramePlacement(model, data, frame)
    return X, pin.getFrameVelocity(model, data, frame, pin.ReferenceFrame.LOCAL)


def _acceleration(world: KinematicState) -> np.ndarray:
    """Return the acceleration (3,) of the root link in its own axes [m/s^2]."""
    model, data = world.model, world.data
    pin.forwardKinematics(model, data, world.q, world.v, world.acceleration)
    frame = model.getFrameId(world.robot.root_link, BODY)
    acceleration = pin.getFrameClassicalAcceleration(model, data, frame, pin.ReferenceFrame.LOCAL)
    return np.array(acceleration.linear)
