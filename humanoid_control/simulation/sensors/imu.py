"""Inertial measurement unit in the root link, and the true state of that link, out of a world's state."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import pinocchio as pin

from humanoid_control.kinematics.joint_state import ImuReading
from humanoid_control.robots import Robot


class KinematicState(Protocol):
    """A robot, its pinocchio model with data to write into, and its state."""

    robot: Robot
    model: pin.Model
    data: pin.Data
    q: np.ndarray
    v: np.ndarray
    acceleration: np.ndarray


def read_imu(world: KinematicState) -> ImuReading:
    """The reading at the world's present state."""
    model, data = world.model, world.data
    pin.forwardKinematics(model, data, world.q, world.v, world.acceleration)
    pin.updateFramePlacements(model, data)
    frame = model.getFrameId(world.robot.root_link, pin.FrameType.BODY)
    X = data.oMf[frame]
    twist = pin.getFrameVelocity(model, data, frame, pin.ReferenceFrame.LOCAL)
    a = pin.getFrameClassicalAcceleration(model, data, frame, pin.ReferenceFrame.LOCAL)
    up = -np.array(model.gravity.linear)
    return ImuReading(pin.SE3ToXYZQUAT(X)[3:], twist.angular.copy(), a.linear + X.rotation.T @ up)


def base_state(world: KinematicState) -> tuple[np.ndarray, np.ndarray]:
    """Pose (7,) of the root link in the world (x y z, quaternion x y z w) and its twist (6,) in its own axes."""
    model, data = world.model, world.data
    pin.forwardKinematics(model, data, world.q, world.v)
    pin.updateFramePlacements(model, data)
    frame = model.getFrameId(world.robot.root_link, pin.FrameType.BODY)
    twist = pin.getFrameVelocity(model, data, frame, pin.ReferenceFrame.LOCAL)
    return pin.SE3ToXYZQUAT(data.oMf[frame]), np.concatenate([twist.linear, twist.angular])
