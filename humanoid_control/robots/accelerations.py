"""Acceleration limits of joints: from the robot file, the URDF, or drive capability.

The capability of a drive in a posture is

    a_i(q) = (tau_i - |g_i(q)|) / (M_ii(q) + J_i),

with the effort limit tau_i, the gravity torque g_i of the outboard part, its inertia M_ii about the axis (other joints
held), and the rotor inertia J_i. The limit is a share of the median over sampled postures. Braking before the end of a
range uses a part of the worst posture. URDF 1.2 or the robot file override single joints.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pinocchio as pin

from humanoid_control.compiled.array_types import F1
from humanoid_control.files import mirrored_name
from humanoid_control.robots.drive_mechanisms import reflected_inertia
from humanoid_control.robots.robot import Robot

SHARE = 0.8  # of the capability of a drive in a posture
BRAKING_SHARE = 0.5  # of the worst posture's limit, for braking at the end of a range
HALF = 0.5  # quantile over the postures: the median
LEAST = 0.2  # of the effort limit: least remainder in postures that a drive can hardly hold
ROTOR_PER_EFFORT = 1e-3  # [kg m^2 / N m] of unknown drives: brushless motor with harmonic drive
POSTURES = 1024  # sampled
AT_ENDS = 0.5  # share of joints at an end of their range
MOST = 1e12  # [rad/s^2] replaces infinity, for quantiles
NOTHING = 1e-12  # [kg m^2, kg] counts as no inertia


class DriveAccelerations(NamedTuple):
    """Limits of n joints [rad/s^2, of sliding joints m/s^2]; infinite: unknown.

    Attributes:
        acceleration: (n,) of any change of speed.
        braking: (n,) before the end of the range, at most `acceleration`.
    """

    acceleration: F1
    braking: F1


def acceleration_limits(robot: Robot) -> DriveAccelerations:
    """Return stated or computed limits; infinite without a known effort limit.

    Left and right share the lower value. Leaders respect the limits of joints that mimic them.

    Raises:
        UnknownNameError: if the file names an unknown joint.
        RobotError: if the drives file is invalid.
    """
    sampled = np.minimum(drive_accelerations(robot), MOST)
    limits = SHARE * np.array([np.quantile(sampled, HALF, axis=0), BRAKING_SHARE * sampled.min(axis=0)])
    limits[limits > MOST / 10] = np.inf
    limits[:, ~robot.effort_known] = np.inf
    sides = [robot.index.get(mirrored_name(name), k) for k, name in enumerate(robot.joint_names)]
    limits = np.minimum(limits, limits[:, sides])
    for name, value in {**robot.stated_accelerations, **robot.file.acceleration_limits}.items():
        limits[:, robot.joint_index(name)] = value, BRAKING_SHARE * value
    for follower, leader, multiplier, _ in reversed(robot.mimic):
        if multiplier:
            limits[:, leader] = np.minimum(limits[:, leader], limits[:, follower] / abs(multiplier))
    for follower, leader, multiplier, _ in robot.mimic:
        if multiplier:
            limits[:, follower] = limits[:, leader] * abs(multiplier)
    return DriveAccelerations(*limits)


def drive_accelerations(robot: Robot) -> np.ndarray:
    """Return drive capabilities (POSTURES, n) in sampled postures [rad/s^2, m/s^2], anchor fixed."""
    model = robot.anchored_model()
    data, q = model.createData(), np.empty(robot.n)
    order = [model.joints[model.getJointId(name)].idx_v for name in robot.joint_names]
    weight, inertia = np.empty((2, POSTURES, robot.n))
    for k, joints in enumerate(sampled_postures(robot)):
        q[order] = joints
        weight[k] = pin.computeGeneralizedGravity(model, data, q)
        inertia[k] = pin.crba(model, data, q).diagonal()
    weight, inertia = np.abs(weight[:, order]), inertia[:, order]
    left = np.maximum(robot.effort - weight, LEAST * robot.effort)
    return np.where(inertia > NOTHING, left / np.maximum(inertia + rotor_inertia(robot), NOTHING), np.inf)


def sampled_postures(robot: Robot) -> np.ndarray:
    """Return reproducible postures (POSTURES, n), many joints at their ends."""
    rng, postures = np.random.default_rng(0), np.empty((POSTURES, robot.n))
    by_name = np.argsort(robot.joint_names)  # the order of the joints depends on the base
    lower, upper = (limit[by_name] for limit in robot.range_within(np.pi))
    places = rng.uniform(lower, upper, (POSTURES, robot.n))
    at_end, side = rng.random((2, POSTURES, robot.n)) < np.array([AT_ENDS, 0.5])[:, None, None]
    postures[:, by_name] = np.where(at_end, np.where(side, lower, upper), places)
    return np.array([robot.follow(joints) for joints in postures])


def rotor_inertia(robot: Robot) -> np.ndarray:
    """Return the rotor inertia (n,) at the joints [kg m^2], from the drives file or estimated."""
    known = reflected_inertia(robot)
    return np.where(known > 0.0, known, ROTOR_PER_EFFORT * robot.effort)
