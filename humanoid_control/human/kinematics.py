"""Compiled kinematics of functional joints.

W_k is the direction of an axis in the ground when it acts, O the joint's moved origin. A point x of the body, or of a
descendant, moves with the coordinate by f' W_k x (x - O) for a rotation and by f' W_k for a translation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from humanoid_control.compiled.array_types import F1, F2, F3, I1
from humanoid_control.compiled.jit import inlined, kernel
from humanoid_control.compiled.packed import Packed, Table, unpack
from humanoid_control.human.elements import AnatomicalJoint, CoordinateAxis, Coupling, PersonBody
from humanoid_control.human.functions import Function, FunctionTable, evaluate, pack_functions

STRAIGHT = -2  # coupling code of an axis that is a straight line of its coordinate
GENERAL = 3  # axis that is not x, y or z of its frame
_LINE = Function((0.0, 1.0))


class Chain(NamedTuple):
    """Flat arrays of nb bodies, parents first, and na joint axes.

    Attributes:
        parent: (nb,) -1: ground.
        R_P: (nb, 3, 3) frame P in the parent.
        p_P: (nb, 3) frame P in the parent [m].
        R_C: (nb, 3, 3) inverse of frame C.
        p_C: (nb, 3) inverse of frame C [m].
        simple: (nb,) bit 1: R_P is the identity; bit 2: C is.
        first: (nb + 1,) first axis: translations, then rotations.
        turns: (na,) 1: rotation.
        own: (na,) 0, 1, 2: axis x, y, z of the frame; or GENERAL.
        axis: (na, 3) in frame P (translation) or body (rotation).
        coordinate: (na,) index in q; -1: constant.
        function: (na,) row of `functions`.
        coupling: (na,) row of the function from q to the axis coordinate; -1: none; STRAIGHT: offset + slope q.
        offset: (na,) if straight.
        slope: (na,) if straight.
        mass: (nb,) [kg].
        com: (nb, 3) body axes [m].
        inertia: (nb, 3, 3) about com, body axes [kg m^2].
        gravity: (3,) [m/s^2].
        n: number of coordinates.
    """

    parent: I1
    R_P: F3
    p_P: F2
    R_C: F3
    p_C: F2
    simple: I1
    first: I1
    turns: I1
    own: I1
    axis: F2
    coordinate: I1
    function: I1
    coupling: I1
    offset: F1
    slope: F1
    functions: FunctionTable
    mass: F1
    com: F2
    inertia: F3
    gravity: F1
    n: int


class Pose(NamedTuple):
    """Poses of one frame, in the ground.

    Attributes:
        R: (nb, 3, 3) of the bodies.
        p: (nb, 3) origins [m].
        pivot: (nb, 3) joint origins O [m].
        W: (na, 3) axis directions.
        f: (na,) axis values.
        d1: (na,) f'.
        d2: (na,) f''.
    """

    R: F3
    p: F2
    pivot: F2
    W: F2
    f: F1
    d1: F1
    d2: F1


def lay_out(
    bodies: Sequence[PersonBody],
    joints: Sequence[AnatomicalJoint],
    names: Sequence[str],
    couplings: Sequence[Coupling],
    gravity: np.ndarray,
) -> Packed[Chain]:
    """Return flat arrays; `names`: independent coordinates."""
    index = {body.name: k for k, body in enumerate(bodies)}
    place = {name: k for k, name in enumerate(names)}
    functions: list[Function] = []
    coupling_of = {c.dependent: (place[c.independent], k) for k, c in enumerate(couplings)}
    functions += [c.function for c in couplings]
    rows: list[tuple[int, int, np.ndarray, int, int, int]] = []
    lines, first = list[tuple[float, float]](), [0]
    for joint in joints:
        for turns, axes in ((0, joint.translations), (1, joint.rotations)):
            for axis in axes:
                # Axes that are constantly zero need no row.
                if axis.function.constant and float(axis.function(0.0)) == 0.0:
                    continue
                vector, own, f = _own_axis(axis)
                functions.append(f)
                # q, coupling: constant (-1, -1), coupled (q of the leader, its row), else (own q, -1).
                q, through = (-1, -1) if f.constant else coupling_of.get(axis.coordinate, (-2, -1))
                q = place[axis.coordinate] if q == -2 else q
                straight = f.linear and through < 0
                rows.append((turns, own, vector, q, len(functions) - 1, STRAIGHT if straight else through))
                lines.append(_line(f) if straight else (0.0, 0.0))
        first.append(len(rows))
    turns_, own_, vectors, entries, which, through_ = zip(*rows, strict=True) if rows else ((),) * 6
    inverse = [j.C.inverse() for j in joints]
    ints = [np.array(v, dtype=np.int64) for v in (turns_, own_, entries, which, through_)]
    return Packed(
        Chain(
            np.array([index.get(j.parent, -1) for j in joints], dtype=np.int64),
            _stack([j.P.R for j in joints]),
            _stack([j.P.p for j in joints]),
            _stack([x.R for x in inverse]),
            _stack([x.p for x in inverse]),
            np.array([_is_identity(j.P.R) + 2 * _is_identity(j.C.R, *j.C.p) for j in joints], dtype=np.int64),
            np.array(first, dtype=np.int64),
            ints[0],
            ints[1],
            np.array(vectors, dtype=float).reshape(-1, 3),
            ints[2],
            ints[3],
            ints[4],
            np.array([line[0] for line in lines], dtype=float),
            np.array([line[1] for line in lines], dtype=float),
            pack_functions(functions or [_LINE]),
            np.array([b.mass for b in bodies], dtype=float),
            _stack([b.com for b in bodies]),
            _stack([b.inertia for b in bodies]),
            np.array(gravity, dtype=float),
            len(names),
        )
    )


def _own_axis(axis: CoordinateAxis) -> tuple[np.ndarray, int, Function]:
    """Return unit vector, frame axis and function; -x becomes x."""
    vector = np.asarray(axis.vector, dtype=float) / np.linalg.norm(axis.vector)
    for k in range(3):
        if abs(vector[k]) == 1.0:
            return np.eye(3)[k], k, axis.function.scaled(float(vector[k]))
    return vector, GENERAL, axis.function


def _is_identity(R: np.ndarray, *p: float) -> int:
    return int(np.array_equal(R, np.eye(3)) and not any(p))


def _line(f: Function) -> tuple[float, float]:
    """Return offset and slope of a straight line."""
    return f.gain * f.coefficients[0], f.gain * f.coefficients[1] if len(f.coefficients) > 1 else 0.0


def _stack(arrays: list[np.ndarray]) -> np.ndarray:
    return np.ascontiguousarray(np.array(arrays, dtype=float))


@kernel
def axis_value(chain: Chain, a: int, q: np.ndarray) -> tuple[float, float, float]:
    """Return a non-straight axis value with two derivatives."""
    c, k = chain.coordinate[a], chain.coupling[a]
    if k < 0:
        return evaluate(chain.functions, chain.function[a], q[c])
    # Chain rule through the coupling u(q): f' = f_u u', f'' = f_uu u'^2 + f_u u''.
    u, u1, u2 = evaluate(chain.functions, k, q[c])
    f, f1, f2 = evaluate(chain.functions, chain.function[a], u)
    return f, f1 * u1, f2 * u1 * u1 + f1 * u2


@kernel
def find_values(chain: Chain, q: np.ndarray, pose: Pose) -> None:
    """Fill values and derivatives of all axes."""
    # Before `place_body`, whose loop stays tight without the branches of the functions.
    for a in range(len(chain.turns)):
        if chain.coupling[a] == STRAIGHT:
            c = chain.coordinate[a]
            pose.d1[a], pose.d2[a] = chain.slope[a], 0.0
            pose.f[a] = chain.offset[a] + (chain.slope[a] * q[c] if c >= 0 else 0.0)
        else:
            pose.f[a], pose.d1[a], pose.d2[a] = axis_value(chain, a, q)


@inlined
def turn(R: np.ndarray, b: int, own: int, axis: tuple[float, float, float], angle: float) -> None:
    """Rotate a body in place: R_b := R_b Rot(axis, angle)."""
    c, s = math.cos(angle), math.sin(angle)
    # A rotation about a frame axis mixes only the two other columns of R_b.
    if own != GENERAL:
        j, k = (own + 1) % 3, (own + 2) % 3
        for i in range(3):
            u, v = R[b, i, j], R[b, i, k]
            R[b, i, j], R[b, i, k] = c * u + s * v, c * v - s * u
        return
    # Rodrigues' formula, multiplied from the right.
    x, y, z = axis
    t = 1.0 - c
    for i in range(3):
        u, v, w = R[b, i, 0], R[b, i, 1], R[b, i, 2]
        R[b, i, 0] = u * (t * x * x + c) + v * (t * x * y + s * z) + w * (t * x * z - s * y)
        R[b, i, 1] = u * (t * x * y - s * z) + v * (t * y * y + c) + w * (t * y * z + s * x)
        R[b, i, 2] = u * (t * x * z + s * y) + v * (t * y * z - s * x) + w * (t * z * z + c)


@inlined
def place_body(chain: Chain, b: int, pose: Pose) -> None:
    """Fill pose and axis directions of a body."""
    up, R, p, o, W = chain.parent[b], pose.R, pose.p, pose.pivot, pose.W
    P, r = chain.R_P, chain.p_P
    # Full indices instead of row views: a view costs more than the arithmetic on it.
    for i in range(3):
        # On the ground frame P is constant.
        if up < 0:
            o[b, i] = r[b, i]
            R[b, i, 0], R[b, i, 1], R[b, i, 2] = P[b, i, 0], P[b, i, 1], P[b, i, 2]
            continue
        x, y, z = R[up, i, 0], R[up, i, 1], R[up, i, 2]
        o[b, i] = p[up, i] + x * r[b, 0] + y * r[b, 1] + z * r[b, 2]
        if chain.simple[b] & 1:
            R[b, i, 0], R[b, i, 1], R[b, i, 2] = x, y, z
        else:
            R[b, i, 0] = x * P[b, 0, 0] + y * P[b, 1, 0] + z * P[b, 2, 0]
            R[b, i, 1] = x * P[b, 0, 1] + y * P[b, 1, 1] + z * P[b, 2, 1]
            R[b, i, 2] = x * P[b, 0, 2] + y * P[b, 1, 2] + z * P[b, 2, 2]
    # Translations come first, along the axes of P; each rotation axis is fixed in the body turned so far.
    for a in range(chain.first[b], chain.first[b + 1]):
        f, own = pose.f[a], chain.own[a]
        ax, ay, az = chain.axis[a, 0], chain.axis[a, 1], chain.axis[a, 2]
        for i in range(3):
            W[a, i] = R[b, i, own] if own != GENERAL else R[b, i, 0] * ax + R[b, i, 1] * ay + R[b, i, 2] * az
        if chain.turns[a]:
            if f != 0.0:
                turn(R, b, own, (ax, ay, az), f)
        else:
            for i in range(3):
                o[b, i] += f * W[a, i]
    # X_b = X_joint X_C^-1; bit 2 of `simple` skips an identity C.
    C, c = chain.R_C, chain.p_C
    for i in range(3):
        x, y, z = R[b, i, 0], R[b, i, 1], R[b, i, 2]
        p[b, i] = o[b, i]
        if not chain.simple[b] & 2:
            p[b, i] += x * c[b, 0] + y * c[b, 1] + z * c[b, 2]
            R[b, i, 0] = x * C[b, 0, 0] + y * C[b, 1, 0] + z * C[b, 2, 0]
            R[b, i, 1] = x * C[b, 0, 1] + y * C[b, 1, 1] + z * C[b, 2, 1]
            R[b, i, 2] = x * C[b, 0, 2] + y * C[b, 1, 2] + z * C[b, 2, 2]


@kernel
def place(chain: Chain, q: np.ndarray, pose: Pose) -> None:
    """Fill the poses of all bodies at q (n,)."""
    find_values(chain, q, pose)
    for b in range(len(chain.parent)):
        place_body(chain, b, pose)


@kernel
def place_some(chain: Chain, bodies: np.ndarray, q: np.ndarray, pose: Pose) -> None:
    """Fill the poses of some bodies, parents first."""
    find_values(chain, q, pose)
    for b in bodies:
        place_body(chain, b, pose)


@kernel(allocates=True)
def make_pose(chain: Chain) -> Pose:
    """Return memory for one frame."""
    nb, na = len(chain.parent), len(chain.turns)
    bodies, axes = np.zeros((2, nb, 3)), np.zeros((3, na))
    return Pose(np.zeros((nb, 3, 3)), bodies[0], bodies[1], np.zeros((na, 3)), axes[0], axes[1], axes[2])


@kernel(allocates=True)
def place_clip(table: Table[Chain], q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return rotations (T, nb, 3, 3) and origins (T, nb, 3) at q (T, n)."""
    chain = unpack(table, Chain)
    pose = make_pose(chain)
    R, p = np.empty((len(q), len(chain.parent), 3, 3)), np.empty((len(q), len(chain.parent), 3))
    for t in range(len(q)):
        place(chain, q[t], pose)
        R[t], p[t] = pose.R, pose.p
    return R, p


@kernel(allocates=True)
def marker_positions(table: Table[Chain], q: np.ndarray, bodies: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Return (T, markers, 3) at q (T, n) for `places` (markers, 3) in `bodies` (markers,)."""
    chain = unpack(table, Chain)
    pose = make_pose(chain)
    out = np.empty((len(q), len(bodies), 3))
    for t in range(len(q)):
        place(chain, q[t], pose)
        for m in range(len(bodies)):
            R, p, r = pose.R[bodies[m]], pose.p[bodies[m]], places[m]
            for i in range(3):
                out[t, m, i] = p[i] + R[i, 0] * r[0] + R[i, 1] * r[1] + R[i, 2] * r[2]
    return out


@kernel(allocates=True)
def axis_directions(table: Table[Chain], q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return axis directions (T, na, 3) and f' (T, na) at q (T, n)."""
    chain = unpack(table, Chain)
    pose, na = make_pose(chain), len(chain.turns)
    W, d = np.empty((len(q), na, 3)), np.empty((len(q), na))
    for t in range(len(q)):
        place(chain, q[t], pose)
        W[t], d[t] = pose.W, pose.d1
    return W, d


@kernel(allocates=True)
def body_velocities(table: Table[Chain], q: np.ndarray, qd: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return angular and origin velocities, (T, nb, 3) each."""
    chain = unpack(table, Chain)
    pose, nb = make_pose(chain), len(chain.parent)
    omega, v = np.zeros((len(q), nb, 3)), np.zeros((len(q), nb, 3))
    for t in range(len(q)):
        place(chain, q[t], pose)
        for b in range(nb):
            up, w, u = chain.parent[b], omega[t, b], v[t, b]
            # Until the last line u is the velocity of the body point at the world origin, where twists add.
            if up >= 0:
                w[:] = omega[t, up]
                u[:] = v[t, up] - np.cross(w, pose.p[up])
            for a in range(chain.first[b], chain.first[b + 1]):
                if chain.coordinate[a] < 0:
                    continue
                rate = pose.d1[a] * qd[t, chain.coordinate[a]]
                if chain.turns[a]:
                    w += rate * pose.W[a]
                    u -= rate * np.cross(pose.W[a], pose.pivot[b])
                else:
                    u += rate * pose.W[a]
            u += np.cross(w, pose.p[b])
    return omega, v
