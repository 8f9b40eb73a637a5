"""Compiled joint-space inertia of a pinocchio model by composite rigid bodies (Walker and Orin 1982), in world axes.

All inertias are about the world origin, so the inertia of a subtree is a plain sum.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pinocchio as pin

from humanoid_control.compiled.array_types import F1, F2, F3, I1
from humanoid_control.compiled.jit import inlined, kernel
from humanoid_control.kinematics.forward_kinematics import ModelTree, WorldPoses

BASE = 6  # velocities of a floating base: linear, angular, own axes


class ModelInertia(NamedTuple):
    """Inertias of a model, and memory.

    Attributes:
        mass: (njoints,) [kg].
        center: (njoints, 3) centre of mass, joint frame [m].
        about_center: (njoints, 3, 3) joint axes [kg m^2].
        armature: (nv,) [kg m^2].
        joint: (nv,) joint of a velocity.
        above: (nv,) next velocity towards the root, or -1.
        composite: (njoints, 10) subtree: mass, first moment, and xx, xy, xz, yy, yz, zz of the inertia, world.
        motion: (6, nv) Jacobian at the world origin, linear before angular.
        M: (nv, nv) joint-space inertia, lower triangle.
    """

    mass: F1
    center: F2
    about_center: F3
    armature: F1
    joint: I1
    above: I1
    composite: F2
    motion: F2
    M: F2

    @classmethod
    def of(cls, model: pin.Model) -> ModelInertia:
        """Return the inertias of a model that `ModelTree` accepts, with its armature."""
        n, nv = model.njoints, model.nv
        joint, above = np.zeros(nv, dtype=np.int64), np.full(nv, -1, dtype=np.int64)
        for j in range(1, n):
            first, size, up = model.joints[j].idx_v, model.joints[j].nv, model.joints[model.parents[j]]
            for k in range(size):
                joint[first + k] = j
                above[first + k] = first + k - 1 if k else (up.idx_v + up.nv - 1 if model.parents[j] else -1)
        bodies = list(model.inertias)
        mass = np.array([body.mass for body in bodies])
        center = np.array([body.lever for body in bodies])
        about_center = np.array([body.inertia for body in bodies])
        memory = np.zeros((n, 10)), np.zeros((6, nv)), np.zeros((nv, nv))
        return cls(mass, center, about_center, np.array(model.armature), joint, above, *memory)


@kernel
def motion_columns(tree: ModelTree, poses: WorldPoses, a: ModelInertia) -> None:
    """Fill `motion` from the world poses of the joints."""
    S = a.motion
    for c in range(a.joint.shape[0]):
        j = a.joint[c]
        x, y, z = poses.p[j, 0], poses.p[j, 1], poses.p[j, 2]
        if tree.floating and c < BASE:
            ax, ay, az = poses.R[1, 0, c % 3], poses.R[1, 1, c % 3], poses.R[1, 2, c % 3]
            slides = c < 3
        else:
            ax, ay, az = poses.axes[j, 0], poses.axes[j, 1], poses.axes[j, 2]
            slides = tree.joints.slides[j]
        if slides:
            S[0, c], S[1, c], S[2, c], S[3, c], S[4, c], S[5, c] = ax, ay, az, 0.0, 0.0, 0.0
        else:  # rotation about an axis through p moves the origin by p x a
            S[0, c], S[1, c], S[2, c] = y * az - z * ay, z * ax - x * az, x * ay - y * ax
            S[3, c], S[4, c], S[5, c] = ax, ay, az


@kernel
def composite_inertias(tree: ModelTree, poses: WorldPoses, a: ModelInertia) -> None:
    """Fill `composite` from the world poses of the joints."""
    C, n = a.composite, a.mass.shape[0]
    for j in range(1, n):
        R, m, c = poses.R[j], a.mass[j], a.center[j]
        x = poses.p[j, 0] + R[0, 0] * c[0] + R[0, 1] * c[1] + R[0, 2] * c[2]
        y = poses.p[j, 1] + R[1, 0] * c[0] + R[1, 1] * c[1] + R[1, 2] * c[2]
        z = poses.p[j, 2] + R[2, 0] * c[0] + R[2, 1] * c[1] + R[2, 2] * c[2]
        C[j, 0], C[j, 1], C[j, 2], C[j, 3] = m, m * x, m * y, m * z
        # parallel axes: R I R^T + m (c.c E - c c^T)
        k = 4
        for r in range(3):
            for s in range(r, 3):
                C[j, k] = _turned(a.about_center[j], R, r, s)
                k += 1
        C[j, 4] += m * (y * y + z * z)
        C[j, 5] -= m * x * y
        C[j, 6] -= m * x * z
        C[j, 7] += m * (x * x + z * z)
        C[j, 8] -= m * y * z
        C[j, 9] += m * (x * x + y * y)
    for j in range(n - 1, 0, -1):  # children follow their parents
        if tree.parent[j] > 0:
            for k in range(10):
                C[tree.parent[j], k] += C[j, k]


@inlined
def _turned(inertia: np.ndarray, R: np.ndarray, r: int, s: int) -> float:
    """Return element (r, s) of R I R^T."""
    out = 0.0
    for k in range(3):
        out += R[r, k] * (inertia[k, 0] * R[s, 0] + inertia[k, 1] * R[s, 1] + inertia[k, 2] * R[s, 2])
    return out


@inlined
def momentum_of(a: ModelInertia, c: int) -> tuple[float, float, float, float, float, float]:
    """Return linear and angular momentum about the world origin of the subtree at unit velocity c."""
    S, C, j = a.motion, a.composite, a.joint[c]
    m, x, y, z = C[j, 0], C[j, 1], C[j, 2], C[j, 3]
    vx, vy, vz, wx, wy, wz = S[0, c], S[1, c], S[2, c], S[3, c], S[4, c], S[5, c]
    px, py, pz = m * vx + wy * z - wz * y, m * vy + wz * x - wx * z, m * vz + wx * y - wy * x
    lx = C[j, 4] * wx + C[j, 5] * wy + C[j, 6] * wz + y * vz - z * vy
    ly = C[j, 5] * wx + C[j, 7] * wy + C[j, 8] * wz + z * vx - x * vz
    lz = C[j, 6] * wx + C[j, 8] * wy + C[j, 9] * wz + x * vy - y * vx
    return px, py, pz, lx, ly, lz


@inlined
def power_of(S: np.ndarray, c: int, h: tuple[float, float, float, float, float, float]) -> float:
    """Return the product of motion column c with a momentum."""
    return S[0, c] * h[0] + S[1, c] * h[1] + S[2, c] * h[2] + S[3, c] * h[3] + S[4, c] * h[4] + S[5, c] * h[5]


@kernel
def inertia_diagonal(a: ModelInertia, first: int, out: np.ndarray) -> None:
    """Fill the diagonal of M from velocity `first` on, after `motion_columns` and `composite_inertias`."""
    for c in range(first, a.joint.shape[0]):
        out[c - first] = power_of(a.motion, c, momentum_of(a, c)) + a.armature[c]


@kernel
def joint_inertia(a: ModelInertia) -> None:
    """Fill the lower triangle of M on the paths to the root, after `motion_columns` and `composite_inertias`."""
    for c in range(a.joint.shape[0]):
        h, k = momentum_of(a, c), c
        while k >= 0:
            a.M[c, k] = power_of(a.motion, k, h)
            k = a.above[k]
        a.M[c, c] += a.armature[c]
