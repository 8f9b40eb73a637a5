"""What motors, gears and their friction do to the coordinates of a robot, as compiled loops over all shafts."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from humanoid_control.jit import kernel
from humanoid_control.multibody.layout import COORD, GRAD, NC, NW, RATE
from humanoid_control.simulation.drives.drive_train import DriveTrain
from humanoid_control.simulation.drives.gear import GearFriction, friction_torque, gear_torque
from humanoid_control.simulation.drives.parts import elastic_gear, gear_friction, motor_settings


class ShaftTable(NamedTuple):
    """Shafts (m,): rotor's body, joint coordinates (m, 2) (-1: none), elastic gear (ratio, stiffness, damping; 0 if
    rigid), rows of `MotorSettings` and of `GearFriction`, and motor torques [N m].
    """

    body: np.ndarray
    joints: np.ndarray
    gear: np.ndarray
    motor: np.ndarray
    friction: np.ndarray
    torque: np.ndarray


def shaft_table(train: DriveTrain, friction: bool = True) -> ShaftTable:
    """The shafts of a drive train as arrays.

    Args:
        friction: False leaves it out.
    """
    model, m = train.model, len(train.shafts)
    number = {c: k for k, c in enumerate(model.coordinates)}
    joints = np.full((m, 2), -1, dtype=np.int64)
    gear = np.zeros((m, 3))
    for k, s in enumerate(train.shafts):
        joints[k, : len(s.joints)] = [number[j] for j in s.joints]
        own = elastic_gear(s.drive) if s.elastic else None
        if own is not None:
            gear[k] = own.array()
    return ShaftTable(
        np.array([model.body(s.body) for s in train.shafts]),
        joints,
        gear,
        np.array([motor_settings(s.drive).array() for s in train.shafts]),
        np.array([(gear_friction(s.drive) if friction else GearFriction()).array() for s in train.shafts]),
        np.zeros(m),
    )


def no_shafts() -> ShaftTable:
    """The table of a robot without motors."""
    return ShaftTable(
        np.zeros(0, np.int64),
        np.zeros((0, 2), np.int64),
        np.zeros((0, 3)),
        np.zeros((0, 6)),
        np.zeros((0, 6)),
        np.zeros(0),
    )


@kernel
def shaft_forces(t, W, s, q, v, h, tau, armature):
    """Add the generalised forces of all shafts to tau (nv,); after `forward1`, with the motors' torques in `s`.

    Args:
        t: `Tables`. W: rows of the bodies. s: `ShaftTable`.
        q, v: of the model.
        h: length of an implicit step [s]; friction then counts with the speed at its end: what it would take from
            the inertia is added to armature (nv,). 0: rates.
    """
    for k in range(s.body.shape[0]):
        i = s.body[k]
        o = (i + 1) * NW
        lost, slope = friction_torque(W[o + RATE], s.torque[k], s.friction[k])
        if abs(W[o + RATE]) > 1e-9:
            slope = lost / W[o + RATE]
        whole = 0.0
        for c in range(t.ints[i, NC]):
            tau[t.ints[i, COORD + c]] += W[o + GRAD + c] * (s.torque[k] - lost)
            whole += abs(W[o + GRAD + c])
        for c in range(t.ints[i, NC]):  # sums of rows: more than the matrix, where a screw moves two joints
            armature[t.ints[i, COORD + c]] += h * slope * abs(W[o + GRAD + c]) * whole
        if s.gear[k, 1] > 0.0:
            own, joint = t.ints[i, COORD], s.joints[k, 0]
            passed, back = gear_torque(q[t.qpos[own]], v[own], q[t.qpos[joint]], v[joint], s.gear[k])
            tau[joint] += passed
            tau[own] += back


@kernel
def wanted_currents(t, W, s, torque, current):
    """Motor currents (m,) that would give the joints their torques [N m], without friction; after `forward1`.

    Args:
        t, W, s: as for `shaft_forces`. torque: (nv,) wanted at the joints' coordinates. current: (m,) written.
    """
    k = 0
    while k < s.body.shape[0]:
        i = s.body[k]
        o = (i + 1) * NW + GRAD
        first = s.joints[k, 0]
        if t.ints[i, NC] == 2:  # two screws that move two joints: G^T tau = Q
            e = (s.body[k + 1] + 1) * NW + GRAD
            det = W[o] * W[e + 1] - W[o + 1] * W[e]
            a, b = torque[first], torque[s.joints[k, 1]]
            current[k] = (W[e + 1] * a - W[e] * b) / det / s.motor[k, 3]
            current[k + 1] = (W[o] * b - W[o + 1] * a) / det / s.motor[k + 1, 3]
            k += 2
        else:
            ratio = s.gear[k, 0] if s.gear[k, 1] > 0.0 else W[o]
            current[k] = torque[first] / ratio / s.motor[k, 3]
            k += 1
