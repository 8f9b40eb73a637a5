"""Inverse dynamics of a person: the generalised forces of a motion, and its accelerations corrected by force plates.

Newton and Euler outwards and inwards over functional joints; forces and moments are about the ground's origin, so that
they simply add. The weighted least squares of Kuo 1998 and Simonidis et al. 2011 (equations 31 and 32) is solved in
closed form: it is the Kalman update of T0 = M q'' + h, of covariance M W_a M, by the plates' I_c T = I_c f, of
covariance W_c.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from humanoid_control.errors import ConfigError, NotANumberError, SizeError
from humanoid_control.human.kinematics import Chain, Pose, make_pose, place
from humanoid_control.human.marker_fit import root_coordinates
from humanoid_control.human.model import Person
from humanoid_control.jit import inlined, kernel
from humanoid_control.numerics.array_types import F1, F2, F3, I1
from humanoid_control.numerics.cholesky import cholesky, solve_factored
from humanoid_control.numerics.packed import Packed, unpack

Loads = Mapping[str, np.ndarray]
"""Wrenches by the name of the body that they act on: (T, 6) force and moment about the ground's origin [N, N m]."""

PLATE_VARIANCE = 100.0  # [N^2, N^2 m^2]: 10 N and 10 N m
ROOT = 6


@dataclass(frozen=True, eq=False)
class GeneralisedForces:
    """Generalised forces of a motion.

    Args:
        person: that moves.
        tau: (T, n) [N m, N], in the order of person.names; a coordinate's is the sum over all joints that it moves.
        residual: (T, 6) of the root, which nothing drives: what markers, plates and masses leave unexplained.
    """

    person: Person
    tau: np.ndarray
    residual: np.ndarray


@dataclass(frozen=True, eq=False)
class WeightedForces(GeneralisedForces):
    """Generalised forces of a motion whose accelerations the plates corrected.

    Args:
        qdd: (T, n) the corrected accelerations.
        residual_before: (T, 6) of the root without the correction.
    """

    qdd: np.ndarray
    residual_before: np.ndarray


def inverse_dynamics(
    person: Person, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray, loads: Loads | None = None
) -> GeneralisedForces:
    """The generalised forces that a motion takes beside gravity and the loads.

    Args:
        q, qd, qdd: (T, n) coordinates and their derivatives.
        loads: wrenches on bodies, those of the plates on the feet.

    Raises:
        SizeError: arrays that do not belong together. NotANumberError: one that holds no number.
        UnknownNameError: a body that the person lacks.
    """
    motion = _motion(person, q, qd, qdd)
    tau = np.zeros_like(motion[0])
    _run(person, motion, loads, Correction.none(person), (tau, np.zeros((0, 0)), np.zeros((0, 0))))
    return GeneralisedForces(person, tau, tau[:, root_coordinates(person)])


def weighted_inverse_dynamics(
    person: Person,
    motion: tuple[np.ndarray, np.ndarray, np.ndarray],
    loads: Loads,
    acceleration_variance: np.ndarray,
    plate_variance: float | np.ndarray = PLATE_VARIANCE,
) -> WeightedForces:
    """As `inverse_dynamics`, with accelerations that share the residual of the root with the plates by variance.

    Args:
        motion: q, qd, qdd (T, n).
        loads: wrenches on bodies.
        acceleration_variance: W_a (n,) or (T, n) [rad^2/s^4, m^2/s^4], such as `acceleration_variance` gives; 0 for a
            coordinate that is known.
        plate_variance: W_c, one number or (6,), of the root's forces [N^2 m^2, N^2]; towards 0 the plates are trusted
            wholly, without end the motion.

    Raises:
        SizeError, NotANumberError, UnknownNameError: as `inverse_dynamics`. ConfigError: a variance below zero, or a
            root without six coordinates.
    """
    checked = _motion(person, *motion)
    T, n = checked[0].shape
    root = root_coordinates(person)
    if len(root) != ROOT:
        raise ConfigError(f"{person.name}: its root has {len(root)} coordinates, the plates' correction takes {ROOT}")
    W_a = np.broadcast_to(np.asarray(acceleration_variance, dtype=float), (T, n)).copy()
    W_c = np.broadcast_to(np.asarray(plate_variance, dtype=float), (ROOT,)).copy()
    if not (np.isfinite(W_a).all() and (W_a >= 0).all() and np.isfinite(W_c).all() and (W_c > 0).all()):
        raise ConfigError("variances of accelerations must be finite and 0 or more, those of plates more than 0")
    tau, qdd, before = np.zeros((T, n)), checked[2].copy(), np.zeros((T, ROOT))
    correction = Correction(np.array(root, dtype=np.int64), W_a, W_c)
    _run(person, checked, loads, correction, (tau, qdd, before))
    return WeightedForces(person, tau, tau[:, root], qdd, before)


def acceleration_variance(std: np.ndarray, rate: float, cutoff: float) -> np.ndarray:
    """Variance of the second derivative of filtered white noise: s^2 (2 pi f_c)^4 2 f_c / (5 f_s).

    Args:
        std: standard deviations of the coordinates, such as those of a fit; infinite ones count as the largest finite.
        rate: f_s, frames a second [Hz]. cutoff: f_c, of the filter [Hz].

    Raises:
        ConfigError: a rate or cut-off that is not positive, or a cut-off of half the rate or more.
    """
    if not 0 < cutoff < rate / 2:
        raise ConfigError(f"the cut-off is {cutoff:g} Hz: it must be above 0 and below {rate / 2:g} Hz, half the rate")
    std = np.asarray(std, dtype=float)
    finite = std[np.isfinite(std)]
    filled = np.where(np.isfinite(std), std, finite.max() if finite.size else 0.0)
    return filled**2 * (2 * np.pi * cutoff) ** 4 * 2 * cutoff / (5 * rate)


def _motion(person: Person, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
    checked = tuple(person.check(a, name) for a, name in zip(arrays, ("q", "qd", "qdd"), strict=True))
    if len({len(a) for a in checked}) > 1:
        raise SizeError(f"q, qd and qdd have {', '.join(str(len(a)) for a in checked)} frames: give as many of each")
    for a, name in zip(checked, ("q", "qd", "qdd"), strict=True):
        if not np.isfinite(a).all():
            t, k = np.argwhere(~np.isfinite(a))[0]
            raise NotANumberError(f"{name} of '{person.names[k]}' in frame {t} is not a number")
    return checked


def _run(
    person: Person,
    motion: tuple[np.ndarray, ...],
    loads: Loads | None,
    correction: Correction,
    out: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> None:
    """Fill tau and, with a correction, accelerations and the residual before."""
    T = len(motion[0])
    wrenches, bodies = np.zeros((T, len(loads or {}), 6)), []
    for k, (name, wrench) in enumerate((loads or {}).items()):
        bodies.append(person.body_index(name))
        given = np.asarray(wrench, dtype=float)
        if given.shape != (T, 6):
            raise SizeError(f"the load of '{name}' must be ({T} frames, 6), got {given.shape}")
        if not np.isfinite(given).all():
            raise NotANumberError(
                f"the load of '{name}' in frame {np.argwhere(~np.isfinite(given))[0][0]} is no number"
            )
        wrenches[:, k] = given
    chain = person.chain.record
    q, qd, qdd = motion
    loaded = np.array(bodies, dtype=np.int64)
    work = make_pose(chain), make_motion(chain)
    record = DynamicsRecord(chain, *work, loaded, wrenches, correction, q, qd, qdd, *out)
    generalised_forces(Packed(record).table)


# -------- Compiled


class Motion(NamedTuple):
    """Memory: velocities and accelerations of the bodies, forces on them, and composite inertias, about the origin."""

    omega: F2
    alpha: F2
    a: F2
    force: F2
    moment: F2
    inertia: F2


class Correction(NamedTuple):
    """Correction by the plates: the root's coordinates (6,), W_a (T, n), W_c (6,); empty for none."""

    root: I1
    W_a: F2
    W_c: F1

    @classmethod
    def none(cls, person: Person) -> Correction:
        """No correction."""
        return cls(np.zeros(0, dtype=np.int64), np.zeros((0, person.n)), np.zeros(0))


class DynamicsRecord(NamedTuple):
    """All that inverse dynamics takes, fills and works in, as one record for `Packed`."""

    chain: Chain
    pose: Pose
    motion: Motion
    loaded: I1
    wrenches: F3
    correction: Correction
    q: F2
    qd: F2
    qdd: F2
    tau: F2
    corrected: F2
    before: F2


INERTIA = 10  # per body: m, m c (3), inertia about the origin (6)


def make_motion(chain: Chain) -> Motion:
    """Memory for a chain."""
    nb = len(chain.parent)
    omega, alpha, a, force, moment = (np.zeros((nb, 3)) for _ in range(5))
    return Motion(omega, alpha, a, force, moment, np.zeros((nb, INERTIA)))


@inlined
def add_cross(ax: float, ay: float, az: float, b: np.ndarray, out: np.ndarray) -> None:
    """out += a x b."""
    out[0] += ay * b[2] - az * b[1]
    out[1] += az * b[0] - ax * b[2]
    out[2] += ax * b[1] - ay * b[0]


@inlined
def carry(omega: np.ndarray, alpha: np.ndarray, x: float, y: float, z: float, a: np.ndarray) -> None:
    """a += alpha x r + omega x (omega x r) for r = (x, y, z) fixed to the body."""
    wx, wy, wz = omega[0], omega[1], omega[2]
    ux, uy, uz = wy * z - wz * y, wz * x - wx * z, wx * y - wy * x
    a[0] += alpha[1] * z - alpha[2] * y + wy * uz - wz * uy
    a[1] += alpha[2] * x - alpha[0] * z + wz * ux - wx * uz
    a[2] += alpha[0] * y - alpha[1] * x + wx * uy - wy * ux


@inlined
def accelerate(
    chain: Chain, pose: Pose, motion: Motion, b: int, qd: np.ndarray, qdd: np.ndarray, gravity: float
) -> None:
    """Velocity and acceleration of a body from those of its parent."""
    up, omega, alpha, a = chain.parent[b], motion.omega[b], motion.alpha[b], motion.a[b]
    o, p = pose.pivot[b], pose.p[b]
    if up < 0:
        for i in range(3):
            omega[i] = alpha[i] = 0.0
            a[i] = -gravity * chain.gravity[i]
    else:
        for i in range(3):
            omega[i], alpha[i], a[i] = motion.omega[up, i], motion.alpha[up, i], motion.a[up, i]
        carry(omega, alpha, o[0] - pose.p[up, 0], o[1] - pose.p[up, 1], o[2] - pose.p[up, 2], a)
    for k in range(chain.first[b], chain.first[b + 1]):
        c = chain.coordinate[k]
        if c < 0:
            continue
        W, rate = pose.W[k], pose.d1[k] * qd[c]
        change = pose.d1[k] * qdd[c] + pose.d2[k] * qd[c] * qd[c]
        if chain.turns[k]:
            add_cross(rate * omega[0], rate * omega[1], rate * omega[2], W, alpha)
            for i in range(3):
                alpha[i] += change * W[i]
                omega[i] += rate * W[i]
        else:
            add_cross(2.0 * rate * omega[0], 2.0 * rate * omega[1], 2.0 * rate * omega[2], W, a)
            for i in range(3):
                a[i] += change * W[i]
    carry(omega, alpha, p[0] - o[0], p[1] - o[1], p[2] - o[2], a)


@inlined
def world_inertia(R: np.ndarray, I_body: np.ndarray, j: int, k: int) -> float:
    """Entry of R I R^T."""
    total = 0.0
    for u in range(3):
        total += R[j, u] * (I_body[u, 0] * R[k, 0] + I_body[u, 1] * R[k, 1] + I_body[u, 2] * R[k, 2])
    return total


@inlined
def body_force(chain: Chain, pose: Pose, motion: Motion, b: int) -> None:
    """Force and moment about the origin that the motion of a body takes."""
    R, com, omega, alpha, m = pose.R[b], chain.com[b], motion.omega[b], motion.alpha[b], chain.mass[b]
    force, moment, a = motion.force[b], motion.moment[b], motion.a[b]
    cx = R[0, 0] * com[0] + R[0, 1] * com[1] + R[0, 2] * com[2]
    cy = R[1, 0] * com[0] + R[1, 1] * com[1] + R[1, 2] * com[2]
    cz = R[2, 0] * com[0] + R[2, 1] * com[1] + R[2, 2] * com[2]
    for i in range(3):
        force[i] = a[i]
        moment[i] = 0.0
    carry(omega, alpha, cx, cy, cz, force)
    for i in range(3):
        force[i] *= m
    add_cross(pose.p[b, 0] + cx, pose.p[b, 1] + cy, pose.p[b, 2] + cz, force, moment)
    # In the body's axes: R (I R^T alpha + R^T omega x I R^T omega).
    I_b = chain.inertia[b]
    wx = R[0, 0] * omega[0] + R[1, 0] * omega[1] + R[2, 0] * omega[2]
    wy = R[0, 1] * omega[0] + R[1, 1] * omega[1] + R[2, 1] * omega[2]
    wz = R[0, 2] * omega[0] + R[1, 2] * omega[1] + R[2, 2] * omega[2]
    ax = R[0, 0] * alpha[0] + R[1, 0] * alpha[1] + R[2, 0] * alpha[2]
    ay = R[0, 1] * alpha[0] + R[1, 1] * alpha[1] + R[2, 1] * alpha[2]
    az = R[0, 2] * alpha[0] + R[1, 2] * alpha[1] + R[2, 2] * alpha[2]
    hx = I_b[0, 0] * wx + I_b[0, 1] * wy + I_b[0, 2] * wz
    hy = I_b[1, 0] * wx + I_b[1, 1] * wy + I_b[1, 2] * wz
    hz = I_b[2, 0] * wx + I_b[2, 1] * wy + I_b[2, 2] * wz
    nx = I_b[0, 0] * ax + I_b[0, 1] * ay + I_b[0, 2] * az + wy * hz - wz * hy
    ny = I_b[1, 0] * ax + I_b[1, 1] * ay + I_b[1, 2] * az + wz * hx - wx * hz
    nz = I_b[2, 0] * ax + I_b[2, 1] * ay + I_b[2, 2] * az + wx * hy - wy * hx
    for i in range(3):
        moment[i] += R[i, 0] * nx + R[i, 1] * ny + R[i, 2] * nz


@kernel
def add_forces(chain: Chain, pose: Pose, motion: Motion, tau: np.ndarray) -> None:
    """Inwards: tau += the generalised forces of the bodies' forces, which become those of all that hangs on them."""
    for b in range(len(chain.parent) - 1, -1, -1):
        F, N, o, up = motion.force[b], motion.moment[b], pose.pivot[b], chain.parent[b]
        nx = N[0] - o[1] * F[2] + o[2] * F[1]
        ny = N[1] - o[2] * F[0] + o[0] * F[2]
        nz = N[2] - o[0] * F[1] + o[1] * F[0]
        for k in range(chain.first[b], chain.first[b + 1]):
            c, W = chain.coordinate[k], pose.W[k]
            if c < 0:
                continue
            if chain.turns[k]:
                tau[c] += pose.d1[k] * (W[0] * nx + W[1] * ny + W[2] * nz)
            else:
                tau[c] += pose.d1[k] * (W[0] * F[0] + W[1] * F[1] + W[2] * F[2])
        if up >= 0:
            for i in range(3):
                motion.force[up, i] += F[i]
                motion.moment[up, i] += N[i]


@kernel
def newton_euler(
    chain: Chain, pose: Pose, motion: Motion, rates: tuple[np.ndarray, np.ndarray], gravity: float
) -> None:
    """Forces on all bodies, for qd and qdd at a placed pose; gravity 1 or 0."""
    for b in range(len(chain.parent)):
        accelerate(chain, pose, motion, b, rates[0], rates[1], gravity)
        body_force(chain, pose, motion, b)


@kernel
def composite_inertias(chain: Chain, pose: Pose, inertia: np.ndarray) -> None:
    """Mass, first moment and inertia about the origin of each body with all that hangs on it."""
    for b in range(len(chain.parent)):
        R, com, m, s = pose.R[b], chain.com[b], chain.mass[b], inertia[b]
        x = pose.p[b, 0] + R[0, 0] * com[0] + R[0, 1] * com[1] + R[0, 2] * com[2]
        y = pose.p[b, 1] + R[1, 0] * com[0] + R[1, 1] * com[1] + R[1, 2] * com[2]
        z = pose.p[b, 2] + R[2, 0] * com[0] + R[2, 1] * com[1] + R[2, 2] * com[2]
        I_b = chain.inertia[b]
        s[0], s[1], s[2], s[3] = m, m * x, m * y, m * z
        s[4] = world_inertia(R, I_b, 0, 0) + m * (y * y + z * z)
        s[5] = world_inertia(R, I_b, 0, 1) - m * x * y
        s[6] = world_inertia(R, I_b, 0, 2) - m * x * z
        s[7] = world_inertia(R, I_b, 1, 1) + m * (x * x + z * z)
        s[8] = world_inertia(R, I_b, 1, 2) - m * y * z
        s[9] = world_inertia(R, I_b, 2, 2) + m * (x * x + y * y)
    for b in range(len(chain.parent) - 1, -1, -1):
        up = chain.parent[b]
        if up >= 0:
            for i in range(INERTIA):
                inertia[up, i] += inertia[b, i]


@kernel
def root_rows(chain: Chain, pose: Pose, inertia: np.ndarray, root: np.ndarray, B: np.ndarray) -> None:
    """B (6, n): rows of the root's coordinates of the mass matrix, from composite inertias."""
    B[:] = 0.0
    row_of = np.full(chain.n, -1, dtype=np.int64)
    for i in range(len(root)):
        row_of[root[i]] = i
    for b in range(len(chain.parent)):
        s, o = inertia[b], pose.pivot[b]
        for k in range(chain.first[b], chain.first[b + 1]):
            c, W, d = chain.coordinate[k], pose.W[k], pose.d1[k]
            if c < 0:
                continue
            wx, wy, wz, vx, vy, vz = 0.0, 0.0, 0.0, d * W[0], d * W[1], d * W[2]
            if chain.turns[k]:
                wx, wy, wz = vx, vy, vz
                vx, vy, vz = o[1] * wz - o[2] * wy, o[2] * wx - o[0] * wz, o[0] * wy - o[1] * wx
            fx = s[0] * vx + wy * s[3] - wz * s[2]
            fy = s[0] * vy + wz * s[1] - wx * s[3]
            fz = s[0] * vz + wx * s[2] - wy * s[1]
            nx = s[4] * wx + s[5] * wy + s[6] * wz + s[2] * vz - s[3] * vy
            ny = s[5] * wx + s[7] * wy + s[8] * wz + s[3] * vx - s[1] * vz
            nz = s[6] * wx + s[8] * wy + s[9] * wz + s[1] * vy - s[2] * vx
            add_root_column(chain, pose, (fx, fy, fz, nx, ny, nz), row_of, B[:, c])


@inlined
def add_root_column(
    chain: Chain,
    pose: Pose,
    wrench: tuple[float, float, float, float, float, float],
    row_of: np.ndarray,
    column: np.ndarray,
) -> None:
    """column += what the root's coordinates feel of a wrench about the origin."""
    fx, fy, fz, nx, ny, nz = wrench
    o = pose.pivot[0]
    for k in range(chain.first[0], chain.first[1]):
        if chain.coordinate[k] < 0:
            continue
        row, W, d = row_of[chain.coordinate[k]], pose.W[k], pose.d1[k]
        if row < 0:
            continue
        if chain.turns[k]:
            mx, my, mz = nx - o[1] * fz + o[2] * fy, ny - o[2] * fx + o[0] * fz, nz - o[0] * fy + o[1] * fx
            column[row] += d * (W[0] * mx + W[1] * my + W[2] * mz)
        else:
            column[row] += d * (W[0] * fx + W[1] * fy + W[2] * fz)


@kernel
def correct(
    record: DynamicsRecord, t: int, B: np.ndarray, S: np.ndarray, L: np.ndarray, rest: tuple[np.ndarray, np.ndarray]
) -> None:
    """Accelerations that share the root's residual: q'' += W_a B^T y with (B W_a B^T + W_c) y = I_c (f - T0)."""
    correction, (y, change) = record.correction, rest
    root, W_a = correction.root, correction.W_a[t]
    composite_inertias(record.chain, record.pose, record.motion.inertia)
    root_rows(record.chain, record.pose, record.motion.inertia, root, B)
    for i in range(ROOT):
        y[i] = -record.tau[t, root[i]]
        record.before[t, i] = record.tau[t, root[i]]
        for j in range(i + 1):
            total = correction.W_c[i] if i == j else 0.0
            for c in range(len(W_a)):
                total += B[i, c] * W_a[c] * B[j, c]
            S[i, j] = S[j, i] = total
    if not cholesky(S, ROOT, L):
        return
    solve_factored(L, ROOT, y)
    for c in range(len(W_a)):
        total = 0.0
        for i in range(ROOT):
            total += B[i, c] * y[i]
        change[c] = W_a[c] * total
        record.corrected[t, c] += change[c]
    zero = np.zeros(len(W_a))
    newton_euler(record.chain, record.pose, record.motion, (zero, change), 0.0)
    add_forces(record.chain, record.pose, record.motion, record.tau[t])


@kernel
def generalised_forces(table: np.ndarray) -> None:
    """All frames of a `DynamicsRecord`."""
    record = unpack(table, DynamicsRecord)
    chain, pose, motion, n = record.chain, record.pose, record.motion, record.chain.n
    B, S, L = np.zeros((ROOT, n)), np.zeros((ROOT, ROOT)), np.zeros((ROOT, ROOT))
    rest = (np.zeros(ROOT), np.zeros(n))
    for t in range(len(record.q)):
        place(chain, record.q[t], pose)
        newton_euler(chain, pose, motion, (record.qd[t], record.qdd[t]), 1.0)
        for k in range(len(record.loaded)):
            b = record.loaded[k]
            for i in range(3):
                motion.force[b, i] -= record.wrenches[t, k, i]
                motion.moment[b, i] -= record.wrenches[t, k, 3 + i]
        add_forces(chain, pose, motion, record.tau[t])
        if len(record.correction.root) == ROOT:
            correct(record, t, B, S, L, rest)
