"""Parts of motions, and their images in a mirror and elsewhere."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pinocchio as pin

from humanoid_control.mocap import load_body_points
from humanoid_control.retargeting import retarget_whole_body

MIRROR = np.diag([1.0, -1.0, 1.0])


def retargeted_dance(robot, seconds=8.0):
    """Return the beginning of the built-in dance on a robot; the whole dance takes three times as long."""
    body = load_body_points("dance")
    return retarget_whole_body(body.cropped(round(seconds * body.rate)), robot, method="clip")


def piece(trajectory, begin, end):
    """Return the frames of a trajectory between two times [s]."""
    T, a, b = len(trajectory.positions), round(begin * trajectory.rate), round(end * trajectory.rate)
    cut = {f.name: getattr(trajectory, f.name) for f in fields(trajectory)}
    cut = {k: v[a:b] if isinstance(v, np.ndarray) and len(v) == T else v for k, v in cut.items()}
    return replace(trajectory, **cut)


def elsewhere(trajectory, yaw, at):
    """Return the trajectory turned about the vertical, then shifted by `at` (2,)."""
    turn = pin.rpy.rpyToMatrix(0.0, 0.0, yaw)
    R = [turn @ pin.Quaternion(x).toRotationMatrix() for x in trajectory.root_quaternion]
    return replace(
        trajectory,
        root_position=trajectory.root_position @ turn.T + [*at, 0.0],
        root_quaternion=np.array([pin.Quaternion(x).coeffs() for x in R]),
    )


def mirrored(trajectory, robot):
    """Return the mirror image: left and right change places, and what turns about x or z changes its sign."""
    pin.forwardKinematics(robot.model, robot.data, robot.q("zero"))
    where, axis = robot.data.oMi, {}
    for name in robot.joint_names:
        j = robot.model.getJointId(name)
        data = robot.model.joints[j].createData()
        robot.model.joints[j].calc(data, pin.neutral(robot.model))
        axis[name] = where[j].rotation @ np.array(data.S, dtype=float).ravel()[3:]
    q = np.empty_like(trajectory.positions)
    for k, name in enumerate(robot.joint_names):
        other = {"l_": "r_", "r_": "l_"}.get(name[:2], name[:2]) + name[2:]
        # A turn about an axis is in the mirror one about its image, the other way round.
        q[:, robot.index[other]] = -np.sign(MIRROR @ axis[name] @ axis[other]) * trajectory.positions[:, k]
    R = [MIRROR @ pin.Quaternion(x).toRotationMatrix() @ MIRROR for x in trajectory.root_quaternion]
    return replace(
        trajectory,
        positions=q,
        root_position=trajectory.root_position @ MIRROR,
        root_quaternion=np.array([pin.Quaternion(x).coeffs() for x in R]),
        contacts=trajectory.contacts[:, [2, 3, 0, 1]],
    )
