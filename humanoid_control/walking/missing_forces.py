"""Foot forces without force sensors, from the motion of the trunk.

The trunk accelerometer approximates the CoM acceleration a. Newton's law gives total force and ZMP:

    F = m (g + a_z),    p = c_xy - (c_z - z_ground) a_xy / (g + a_z).

One silent foot carries the rest of the force; two share it by the position of p between them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pinocchio as pin

from humanoid_control.estimation.floating_base import FloatingBaseEstimator
from humanoid_control.walking.feet import Feet
from humanoid_control.walking.gait import GRAVITY

LIGHT = 0.05  # share of the weight below which a foot has no centre of pressure
FORCE = (0.3, 2.0)  # bounds of the total force, over the weight


def wrenches_of_motion(
    feet: Feet,
    estimator: FloatingBaseEstimator,
    measured: Mapping[str, np.ndarray],
    silent: Sequence[bool],
    in_air: int | None,
) -> np.ndarray:
    """Return normal force [N] and moments about x, y [N m] in the sole frames (2, 3); zero for feet with sensors.

    Args:
        estimator: after `kinematics` of this tick.
        measured: sole -> (6,), of feet with sensors.
        silent: whether each foot lacks force data.
        in_air: foot that cannot have landed yet.
    """
    data, mass = estimator.data, estimator.robot.mass
    a = np.zeros(3) if estimator.acceleration is None else estimator.acceleration
    X = [data.oMf[frame] for frame in feet.frames]
    stands = [k for k in (0, 1) if k != in_air]
    middle = np.array([X[k].act(np.array([*feet.middle[k], 0.0])) for k in (0, 1)])
    whole = mass * GRAVITY * float(np.clip(1.0 + a[2] / GRAVITY, *FORCE))
    center = np.array(data.com[0])
    zmp = center[:2] - (center[2] - middle[stands, 2].mean()) * a[:2] * mass / whole
    out, places = np.zeros((2, 3)), middle[:, :2].copy()
    if all(silent):
        between = places[0] - places[1]
        left = float(np.clip((zmp - places[1]) @ between / max(between @ between, 1e-9), 0.0, 1.0))
        shares = np.array([left, 1.0 - left]) if in_air is None else np.eye(2)[stands[0]]
        out[:, 0] = whole * shares
        places += zmp - shares @ places
    elif (k := list(silent).index(True)) != in_air:
        nothing = {sole.name: np.zeros(6) for sole in feet.soles[k]}
        other = feet.wrenches(data, {**measured, **nothing})[1 - k, 2:5]
        out[k, 0] = max(whole - other[0], 0.0)
        if out[k, 0] > LIGHT * mass * GRAVITY:
            taken = other[0] * _pressure(X[1 - k], other) if other[0] > LIGHT * mass * GRAVITY else np.zeros(2)
            places[k] = (whole * zmp - taken) / out[k, 0]
    for k in [k for k in (0, 1) if silent[k]]:
        at = X[k].actInv(np.array([*places[k], X[k].translation[2]]))[:2]
        x, y = np.clip(at, feet.lower[k], feet.upper[k])
        out[k, 1:] = out[k, 0] * y, -out[k, 0] * x
    return out


def sensed_wrenches(feet: Feet, data: pin.Data, pressed: np.ndarray) -> dict[str, np.ndarray]:
    """Return the sensor wrenches that foot forces (2, 3), as in `Balance`, would produce."""
    out = {}
    for side, frame in enumerate(feet.frames):
        f, mx, my = pressed[side]
        for k, sole in enumerate(feet.soles[side]):
            X = data.oMf[frame].actInv(data.oMi[sole.joint] * sole.X_joint_sensor)
            force = pin.Force(np.array([0.0, 0.0, f, mx, my, 0.0]) if k == 0 else np.zeros(6))
            out[sole.name] = X.actInv(force).vector
    return out


def _pressure(X: pin.SE3, wrench: np.ndarray) -> np.ndarray:
    f, mx, my = wrench
    local = np.array([-my / f, mx / f, 0.0]) if f > 1.0 else np.zeros(3)
    return np.asarray(X.act(local)[:2])
