"""Compiled joint twists and centroidal momentum map from the poses of `joint_poses`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pinocchio as pin

from humanoid_control.compiled.array_types import F1, F2, F3
from humanoid_control.compiled.jit import inlined, kernel
from humanoid_control.compiled.packed import local_matrix
from humanoid_control.kinematics.forward_kinematics import ModelTree, WorldPoses


@kernel
def fill_twists(tree: ModelTree, world: WorldPoses, J: np.ndarray) -> None:
    """Fill J (6, nv), the joint twists at the world origin, linear before angular (pinocchio's `data.J`).

    A turn about the axis a through p moves the origin at p x a.
    """
    R, p, axes = world.R, world.p, world.axes
    first = 1
    if tree.floating:
        # The velocity of a floating base is in its own axes: the columns of R are its directions.
        x, y, z = p[1, 0], p[1, 1], p[1, 2]
        for i in range(3):
            a, b, c = R[1, 0, i], R[1, 1, i], R[1, 2, i]
            J[0, i], J[1, i], J[2, i], J[3, i], J[4, i], J[5, i] = a, b, c, 0.0, 0.0, 0.0
            k = 3 + i
            J[0, k], J[1, k], J[2, k], J[3, k], J[4, k], J[5, k] = y * c - z * b, z * a - x * c, x * b - y * a, a, b, c
        first = 2
    for j in range(first, tree.parent.shape[0]):
        # idx_v = idx_q - 1 behind a floating base, which has a quaternion in q.
        k = tree.idx_q[j] - (1 if tree.floating else 0)
        a, b, c = axes[j, 0], axes[j, 1], axes[j, 2]
        if tree.joints.slides[j]:
            J[0, k], J[1, k], J[2, k], J[3, k], J[4, k], J[5, k] = a, b, c, 0.0, 0.0, 0.0
        else:
            x, y, z = p[j, 0], p[j, 1], p[j, 2]
            J[0, k], J[1, k], J[2, k], J[3, k], J[4, k], J[5, k] = y * c - z * b, z * a - x * c, x * b - y * a, a, b, c


class LinkInertias(NamedTuple):
    """Inertias of links, and memory for subtrees.

    Attributes:
        mass: (N,) [kg].
        lever: (N, 3) centre of mass, joint frame [m].
        inertia: (N, 3, 3) about it, joint axes [kg m^2].
        carried: (N, 10) of subtrees: mass, mass times position from the robot's centre of mass, inertia about it (xx,
            yy, zz, xy, xz, yz), world axes.
        center: (3,) world [m].
        momentum: (6, nv) centroidal map.
    """

    mass: F1
    lever: F2
    inertia: F3
    carried: F2
    center: F1
    momentum: F2

    @classmethod
    def of(cls, model: pin.Model) -> LinkInertias:
        """Return the inertias of a model."""
        n = model.njoints
        return cls(
            np.array([i.mass for i in model.inertias]),
            np.array([i.lever for i in model.inertias]),
            np.array([i.inertia for i in model.inertias]),
            np.zeros((n, 10)),
            np.zeros(3),
            np.zeros((6, model.nv)),
        )


@kernel
def fill_centroidal_map(tree: ModelTree, world: WorldPoses, links: LinkInertias) -> None:
    """Fill `links.momentum`: linear, then angular momentum about the centre of mass.

    A subtree of mass m, with centre s / m and inertia I relative to the robot's centre of mass c, has at the twist (u,
    w) of c the momentum m u + w x s and s x u + I w (Orin and Goswami 2008).
    """
    R, p, n = world.R, world.p, tree.parent.shape[0]
    carried, c, total = links.carried, links.center, 0.0
    c[0], c[1], c[2] = 0.0, 0.0, 0.0
    # Positions of the link centres in the world, and their weighted sum.
    for j in range(1, n):
        m, x, y, z = links.mass[j], links.lever[j, 0], links.lever[j, 1], links.lever[j, 2]
        carried[j, 0] = m
        total += m
        for i in range(3):
            at = p[j, i] + R[j, i, 0] * x + R[j, i, 1] * y + R[j, i, 2] * z
            carried[j, 1 + i] = at
            c[i] += m * at
    if not total > 0.0:
        links.momentum[:, :] = 0.0
        return
    for i in range(3):
        c[i] /= total
    # Inertia of each link about c (parallel axes): R I R^T + m (|d|^2 E - d d^T), with A = R I.
    A = local_matrix(3, 3)
    for j in range(1, n):
        m = links.mass[j]
        x, y, z = carried[j, 1] - c[0], carried[j, 2] - c[1], carried[j, 3] - c[2]
        carried[j, 1], carried[j, 2], carried[j, 3] = m * x, m * y, m * z
        for i in range(3):
            for k in range(3):
                A[i, k] = R[j, i, 0] * links.inertia[j, 0, k] + R[j, i, 1] * links.inertia[j, 1, k]
                A[i, k] += R[j, i, 2] * links.inertia[j, 2, k]
        carried[j, 4] = _turned(A, R[j], 0, 0) + m * (y * y + z * z)
        carried[j, 5] = _turned(A, R[j], 1, 1) + m * (x * x + z * z)
        carried[j, 6] = _turned(A, R[j], 2, 2) + m * (x * x + y * y)
        carried[j, 7] = _turned(A, R[j], 0, 1) - m * x * y
        carried[j, 8] = _turned(A, R[j], 0, 2) - m * x * z
        carried[j, 9] = _turned(A, R[j], 1, 2) - m * y * z
    # Leaves before roots: each subtree is complete before it is added to its parent.
    for j in range(n - 1, 1, -1):
        if tree.parent[j] > 0:
            for i in range(10):
                carried[tree.parent[j], i] += carried[j, i]
    first = 1
    if tree.floating:
        for i in range(3):
            _put_momentum(links, 1, i, (R[1, 0, i], R[1, 1, i], R[1, 2, i]), (0.0, 0.0, 0.0))
            _put_turn(links, 1, 3 + i, (R[1, 0, i], R[1, 1, i], R[1, 2, i]), p[1])
        first = 2
    for j in range(first, n):
        k = tree.idx_q[j] - (1 if tree.floating else 0)
        axis = (world.axes[j, 0], world.axes[j, 1], world.axes[j, 2])
        if tree.joints.slides[j]:
            _put_momentum(links, j, k, axis, (0.0, 0.0, 0.0))
        else:
            _put_turn(links, j, k, axis, p[j])


@inlined
def _turned(A: np.ndarray, R: np.ndarray, i: int, k: int) -> float:
    """Return entry (i, k) of A R^T."""
    return A[i, 0] * R[k, 0] + A[i, 1] * R[k, 1] + A[i, 2] * R[k, 2]


@inlined
def _put_turn(links: LinkInertias, j: int, k: int, w: tuple, at: np.ndarray) -> None:
    """Fill column k for a turn about w through `at`: the centre of mass moves at w x (c - at)."""
    x, y, z = links.center[0] - at[0], links.center[1] - at[1], links.center[2] - at[2]
    u = (w[1] * z - w[2] * y, w[2] * x - w[0] * z, w[0] * y - w[1] * x)
    _put_momentum(links, j, k, u, w)


@inlined
def _put_momentum(links: LinkInertias, j: int, k: int, u: tuple, w: tuple) -> None:
    """Fill column k for subtree j at the twist (u, w) of the centre of mass."""
    a, out = links.carried, links.momentum
    m, x, y, z = a[j, 0], a[j, 1], a[j, 2], a[j, 3]
    # p = m u + w x s, L = s x u + I w.
    out[0, k] = m * u[0] + w[1] * z - w[2] * y
    out[1, k] = m * u[1] + w[2] * x - w[0] * z
    out[2, k] = m * u[2] + w[0] * y - w[1] * x
    out[3, k] = y * u[2] - z * u[1] + a[j, 4] * w[0] + a[j, 7] * w[1] + a[j, 8] * w[2]
    out[4, k] = z * u[0] - x * u[2] + a[j, 7] * w[0] + a[j, 5] * w[1] + a[j, 9] * w[2]
    out[5, k] = x * u[1] - y * u[0] + a[j, 8] * w[0] + a[j, 9] * w[1] + a[j, 6] * w[2]
