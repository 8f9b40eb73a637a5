"""Acceleration limits of a robot's joints: those of its file, or what each drive can give against load and weight.

URDF has no limit on acceleration before its version 1.2. A joint whose drive is weak for what it carries cannot speed
up or stop as fast as a light one. What its drive can give in a posture is

    a_i(q) = (tau_i - |g_i(q)|) / (M_ii(q) + J_i),

of its effort limit tau_i, the torque g_i that holds the outboard part against gravity, the inertia M_ii of that part
about the axis (the diagonal of the mass matrix: the other joints are held), and the inertia J_i of the rotor. It is
sampled all over the joint ranges, a share is taken, since other joints accelerate too, and what the drive can give in
half of these postures is the joint's limit: with more it would lag behind its commands nearly always, with what it can
give in the worst posture the joint would be slow everywhere. But where it must stop, before the end of its range, it
counts on the worst posture, and on a part of what is left then: a drive gives way under load, and what runs into its
stop shakes all others. A URDF of version 1.2, or a robot file, may say otherwise, joint by joint.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pinocchio as pin

from humanoid_control.files import mirrored_name
from humanoid_control.numerics.array_types import F1
from humanoid_control.robots.drive_mechanisms import reflected_inertia
from humanoid_control.robots.robot import Robot

SHARE = 0.8  # of what a drive can give in a posture
STOPPING = 0.5  # of its share in the worst posture that a joint counts on before the end of its range
HALF = 0.5  # of the postures, in which it can give the limit on acceleration
LEAST = 0.2  # of its effort limit that a drive is left with in a posture that it can hardly hold, or not at all
ROTOR_PER_EFFORT = 1e-3  # [kg m^2 / N m] of drives that nothing is known of: a brushless motor, a harmonic drive
POSTURES = 1024  # that are sampled, in which
AT_ENDS = 0.5  # of the joints are at an end of their range
MOST = 1e12  # [rad/s^2] stands for infinite, of which no quantile can be taken
NOTHING = 1e-12  # [kg m^2, kg] of a part that has no inertia


class DriveAccelerations(NamedTuple):
    """Limits of n joints [rad/s^2, of sliding joints m/s^2]; infinite: not known.

    Attributes:
        acceleration: (n,) of any change of speed.
        braking: (n,) that a joint counts on before the end of its range, nowhere above that.
    """

    acceleration: F1
    braking: F1


def acceleration_limits(robot: Robot) -> DriveAccelerations:
    """Limits of the robot file or of the URDF; else computed, of what a joint carries away from the anchor.

    Infinite where the URDF does not say the effort limit. Left and right get the less of both sides, which sampling
    finds a little different. No joint asks of those that mimic it what they cannot do.

    Raises:
        UnknownNameError: a joint of the file that the robot does not have. RobotError: a bad file of drives.
    """
    sampled = np.minimum(drive_accelerations(robot), MOST)
    limits = SHARE * np.array([np.quantile(sampled, HALF, axis=0), STOPPING * sampled.min(axis=0)])
    limits[limits > MOST / 10] = np.inf
    limits[:, ~robot.effort_known] = np.inf
    sides = [robot.index.get(mirrored_name(name), k) for k, name in enumerate(robot.joint_names)]
    limits = np.minimum(limits, limits[:, sides])
    for name, value in {**robot.stated_accelerations, **robot.file.acceleration_limits}.items():
        limits[:, robot.joint_index(name)] = value, STOPPING * value
    for follower, leader, multiplier, _ in reversed(robot.mimic):
        if multiplier:
            limits[:, leader] = np.minimum(limits[:, leader], limits[:, follower] / abs(multiplier))
    for follower, leader, multiplier, _ in robot.mimic:
        if multiplier:
            limits[:, follower] = limits[:, leader] * abs(multiplier)
    return DriveAccelerations(*limits)


def drive_accelerations(robot: Robot) -> np.ndarray:
    """Acceleration (POSTURES, n) that each drive can give in each of the sampled postures [rad/s^2, m/s^2].

    The anchor is held, be the robot's base fixed or floating: its trunk moves against the legs that it stands on.
    """
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
    """Postures (POSTURES, n) all over the ranges, many joints at their ends: the same ones for the same robot."""
    rng, postures = np.random.default_rng(0), np.empty((POSTURES, robot.n))
    by_name = np.argsort(robot.joint_names)  # whatever their order is, which depends on the base
    lower, upper = (limit[by_name] for limit in robot.range_within(np.pi))
    places = rng.uniform(lower, upper, (POSTURES, robot.n))
    at_end, side = rng.random((2, POSTURES, robot.n)) < np.array([AT_ENDS, 0.5])[:, None, None]
    postures[:, by_name] = np.where(at_end, np.where(side, lower, upper), places)
    return np.array([robot.follow(joints) for joints in postures])


def rotor_inertia(robot: Robot) -> np.ndarray:
    """Inertia (n,) of the rotors at the joints [kg m^2]: of the file of drives, else by the rule for unknown ones."""
    known = reflected_inertia(robot)
    return np.where(known > 0.0, known, ROTOR_PER_EFFORT * robot.effort)
