"""Compiled Newton-Euler dynamics of functional joints, about the ground origin."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from humanoid_control.compiled.array_types import F1, F2, F3, I1
from humanoid_control.compiled.jit import inlined, kernel
from humanoid_control.compiled.packed import Table, unpack
from humanoid_control.human.kinematics import Chain, Pose, place
from humanoid_control.numerics.cholesky import cholesky, solve_factored

ROOT = 6  # coordinates of a free root


class SegmentMotion(NamedTuple):
    """Work memory (nb, 3), composite inertias (nb, 10), about the origin."""

    omega: F2
    alpha: F2
    a: F2
    force: F2
    moment: F2
    inertia: F2


class Correction(NamedTuple):
    """Weights of the correction by plates; empty: none.

    Attributes:
        root: (6,) coordinates.
        W_a: (T, n) variance of accelerations; 0 for the root with `W_root`.
        W_c: (1,) of force and moment in space, or (6,) of generalised root forces.
        W_root: (T or 0, 6, 6) covariance of root accelerations.
    """

    root: I1
    W_a: F2
    W_c: F1
    W_root: F3

    @classmethod
    def none(cls, n: int) -> Correction:
        """Return an empty correction for n coordinates."""
        return cls(np.zeros(0, dtype=np.int64), np.zeros((0, n)), np.zeros(0), np.zeros((0, ROOT, ROOT)))


class CorrectionWork(NamedTuple):
    """Work memory: B (6, n), S and Cholesky factor L (6, 6), y (6,), change (n,), zeros (n,)."""

    B: F2
    S: F2
    L: F2
    y: F1
    change: F1
    zero: F1


class DynamicsRecord(NamedTuple):
    """Data and work memory of inverse dynamics."""

    chain: Chain
    pose: Pose
    motion: SegmentMotion
    loaded: I1
    wrenches: F3
    correction: Correction
    q: F2
    qd: F2
    qdd: F2
    tau: F2
    corrected: F2
    before: F2


INERTIA = 10  # values a body: m, m c (3), inertia about the origin (6)


def make_motion(chain: Chain) -> SegmentMotion:
    """Return work memory for a chain."""
    nb = len(chain.parent)
    omega, alpha, a, force, moment = (np.zeros((nb, 3)) for _ in range(5))
    return SegmentMotion(omega, alpha, a, force, moment, np.zeros((nb, INERTIA)))


@inlined
def add_cross(ax: float, ay: float, az: float, b: np.ndarray, out: np.ndarray) -> None:
    """Add a x b to out."""
    out[0] += ay * b[2] - az * b[1]
    out[1] += az * b[0] - ax * b[2]
    out[2] += ax * b[1] - ay * b[0]


@inlined
def carry(omega: np.ndarray, alpha: np.ndarray, x: float, y: float, z: float, a: np.ndarray) -> None:
    """Add alpha x r + omega x (omega x r) to a, for r = (x, y, z) fixed to the body."""
    wx, wy, wz = omega[0], omega[1], omega[2]
    ux, uy, uz = wy * z - wz * y, wz * x - wx * z, wx * y - wy * x
    a[0] += alpha[1] * z - alpha[2] * y + wy * uz - wz * uy
    a[1] += alpha[2] * x - alpha[0] * z + wz * ux - wx * uz
    a[2] += alpha[0] * y - alpha[1] * x + wx * uy - wy * ux


@inlined
def accelerate(
    chain: Chain, pose: Pose, motion: SegmentMotion, b: int, qd: np.ndarray, qdd: np.ndarray, gravity: float
) -> None:
    """Fill velocity and acceleration from the parent's."""
    up, omega, alpha, a = chain.parent[b], motion.omega[b], motion.alpha[b], motion.a[b]
    o, p = pose.pivot[b], pose.p[b]
    if up < 0:
        # The ground accelerates at -g, so gravity needs no force of its own.
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
        # f'(q) qd and its rate f' qdd + f'' qd^2.
        W, rate = pose.W[k], pose.d1[k] * qd[c]
        change = pose.d1[k] * qdd[c] + pose.d2[k] * qd[c] * qd[c]
        if chain.turns[k]:
            # W is fixed in the part turned so far: alpha += omega x W f' qd + W d(f' qd)/dt.
            add_cross(rate * omega[0], rate * omega[1], rate * omega[2], W, alpha)
            for i in range(3):
                alpha[i] += change * W[i]
                omega[i] += rate * W[i]
        else:
            # Coriolis acceleration of a sliding axis: 2 omega x W f' qd.
            add_cross(2.0 * rate * omega[0], 2.0 * rate * omega[1], 2.0 * rate * omega[2], W, a)
            for i in range(3):
                a[i] += change * W[i]
    carry(omega, alpha, p[0] - o[0], p[1] - o[1], p[2] - o[2], a)


@inlined
def world_inertia(R: np.ndarray, I_body: np.ndarray, j: int, k: int) -> float:
    """Return entry (j, k) of R I R^T."""
    total = 0.0
    for u in range(3):
        total += R[j, u] * (I_body[u, 0] * R[k, 0] + I_body[u, 1] * R[k, 1] + I_body[u, 2] * R[k, 2])
    return total


@inlined
def body_force(chain: Chain, pose: Pose, motion: SegmentMotion, b: int) -> None:
    """Fill force and moment about the origin."""
    R, com, omega, alpha, m = pose.R[b], chain.com[b], motion.omega[b], motion.alpha[b], chain.mass[b]
    force, moment, a = motion.force[b], motion.moment[b], motion.a[b]
    cx = R[0, 0] * com[0] + R[0, 1] * com[1] + R[0, 2] * com[2]
    cy = R[1, 0] * com[0] + R[1, 1] * com[1] + R[1, 2] * com[2]
    cz = R[2, 0] * com[0] + R[2, 1] * com[1] + R[2, 2] * com[2]
    # force = m a_com with a_com = a + alpha x c + omega x (omega x c).
    for i in range(3):
        force[i] = a[i]
        moment[i] = 0.0
    carry(omega, alpha, cx, cy, cz, force)
    for i in range(3):
        force[i] *= m
    add_cross(pose.p[b, 0] + cx, pose.p[b, 1] + cy, pose.p[b, 2] + cz, force, moment)
    # Moment about the centre of mass in body axes, then rotated: R (I R^T alpha + R^T omega x I R^T omega).
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
def add_forces(chain: Chain, pose: Pose, motion: SegmentMotion, tau: np.ndarray) -> None:
    """Add generalised forces to tau; body forces become subtree forces."""
    for b in range(len(chain.parent) - 1, -1, -1):
        F, N, o, up = motion.force[b], motion.moment[b], pose.pivot[b], chain.parent[b]
        # Moment about the pivot: N - o x F.
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
    chain: Chain, pose: Pose, motion: SegmentMotion, rates: tuple[np.ndarray, np.ndarray], gravity: float
) -> None:
    """Fill body forces for (qd, qdd); gravity: 1 or 0."""
    for b in range(len(chain.parent)):
        accelerate(chain, pose, motion, b, rates[0], rates[1], gravity)
        body_force(chain, pose, motion, b)


@kernel
def composite_inertias(chain: Chain, pose: Pose, inertia: np.ndarray) -> None:
    """Fill mass, first moment and inertia of each subtree."""
    for b in range(len(chain.parent)):
        R, com, m, s = pose.R[b], chain.com[b], chain.mass[b], inertia[b]
        x = pose.p[b, 0] + R[0, 0] * com[0] + R[0, 1] * com[1] + R[0, 2] * com[2]
        y = pose.p[b, 1] + R[1, 0] * com[0] + R[1, 1] * com[1] + R[1, 2] * com[2]
        z = pose.p[b, 2] + R[2, 0] * com[0] + R[2, 1] * com[1] + R[2, 2] * com[2]
        I_b = chain.inertia[b]
        s[0], s[1], s[2], s[3] = m, m * x, m * y, m * z
        # Parallel axes: R I R^T + m (|c|^2 E - c c^T), entries xx, xy, xz, yy, yz, zz.
        s[4] = world_inertia(R, I_b, 0, 0) + m * (y * y + z * z)
        s[5] = world_inertia(R, I_b, 0, 1) - m * x * y
        s[6] = world_inertia(R, I_b, 0, 2) - m * x * z
        s[7] = world_inertia(R, I_b, 1, 1) + m * (x * x + z * z)
        s[8] = world_inertia(R, I_b, 1, 2) - m * y * z
        s[9] = world_inertia(R, I_b, 2, 2) + m * (x * x + y * y)
    # Leaves before roots: each subtree is complete before it is added to its parent.
    for b in range(len(chain.parent) - 1, -1, -1):
        up = chain.parent[b]
        if up >= 0:
            for i in range(INERTIA):
                inertia[up, i] += inertia[b, i]


@kernel(allocates=True)
def root_rows(chain: Chain, pose: Pose, inertia: np.ndarray, root: np.ndarray, B: np.ndarray) -> None:
    """Fill B (6, n), the root rows of the mass matrix."""
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
            # Twist at the origin for unit acceleration: (w, v) = (d W, o x w) if it turns, (0, d W) if it slides.
            wx, wy, wz, vx, vy, vz = 0.0, 0.0, 0.0, d * W[0], d * W[1], d * W[2]
            if chain.turns[k]:
                wx, wy, wz = vx, vy, vz
                vx, vy, vz = o[1] * wz - o[2] * wy, o[2] * wx - o[0] * wz, o[0] * wy - o[1] * wx
            # Wrench of the subtree: f = m v + w x s, n = I w + s x v, with the first moment s.
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
    """Add generalised root forces of a wrench."""
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


@inlined
def add_plate_variance(chain: Chain, pose: Pose, W_c: np.ndarray, row_of: np.ndarray, S: np.ndarray) -> None:
    """Add W_c to S, mapped to generalised forces if scalar."""
    if len(W_c) == ROOT:
        for i in range(ROOT):
            S[i, i] += W_c[i]
        return
    # Isotropic W_c in space: J^T W_c J = W_c d_k d_m (W_k . W_m), separately for forces and moments.
    for k in range(chain.first[0], chain.first[1]):
        for m in range(chain.first[0], chain.first[1]):
            i, j = chain.coordinate[k], chain.coordinate[m]
            if i < 0 or j < 0 or row_of[i] < 0 or row_of[j] < 0 or chain.turns[k] != chain.turns[m]:
                continue
            U, V = pose.W[k], pose.W[m]
            along = U[0] * V[0] + U[1] * V[1] + U[2] * V[2]
            S[row_of[i], row_of[j]] += W_c[0] * pose.d1[k] * pose.d1[m] * along


@kernel(allocates=True)
def correct(record: DynamicsRecord, t: int, work: CorrectionWork) -> None:
    """Correct accelerations and forces: q'' += W_a B^T y with (B W_a B^T + W_c) y = I_c (f - T0)."""
    correction, B, S, L, y, change = record.correction, work.B, work.S, work.L, work.y, work.change
    root, W_a, row_of = correction.root, correction.W_a[t], np.full(record.chain.n, -1, dtype=np.int64)
    composite_inertias(record.chain, record.pose, record.motion.inertia)
    root_rows(record.chain, record.pose, record.motion.inertia, root, B)
    for i in range(ROOT):
        y[i] = -record.tau[t, root[i]]
        record.before[t, i] = record.tau[t, root[i]]
        row_of[root[i]] = i
        # S = B W_a B^T + B_root W_root B_root^T, symmetric.
        for j in range(i + 1):
            total = 0.0
            for c in range(len(W_a)):
                total += B[i, c] * W_a[c] * B[j, c]
            if len(correction.W_root):
                for k in range(ROOT):
                    for m in range(ROOT):
                        total += B[i, root[k]] * correction.W_root[t, k, m] * B[j, root[m]]
            S[i, j] = S[j, i] = total
    add_plate_variance(record.chain, record.pose, correction.W_c, row_of, S)
    # S is singular without any variance: the accelerations stay uncorrected.
    if not cholesky(S, ROOT, L):
        return
    solve_factored(L, ROOT, y)
    for c in range(len(W_a)):
        total = 0.0
        for i in range(ROOT):
            total += B[i, c] * y[i]
        change[c] = W_a[c] * total
    if len(correction.W_root):
        for k in range(ROOT):
            for m in range(ROOT):
                for i in range(ROOT):
                    change[root[k]] += correction.W_root[t, k, m] * B[i, root[m]] * y[i]
    record.corrected[t] += change
    # M times the change of acceleration: Newton-Euler without velocity and gravity, added to tau.
    newton_euler(record.chain, record.pose, record.motion, (work.zero, change), 0.0)
    add_forces(record.chain, record.pose, record.motion, record.tau[t])


@kernel(allocates=True)
def make_correction_work(n: int) -> CorrectionWork:
    """Return work memory for n coordinates."""
    square = np.zeros((2, ROOT, ROOT))
    return CorrectionWork(np.zeros((ROOT, n)), square[0], square[1], np.zeros(ROOT), np.zeros(n), np.zeros(n))


@kernel
def forces_of_frame(record: DynamicsRecord, t: int, work: CorrectionWork) -> None:
    """Fill the generalised forces of frame t, and correct it."""
    chain, pose, motion = record.chain, record.pose, record.motion
    place(chain, record.q[t], pose)
    newton_euler(chain, pose, motion, (record.qd[t], record.qdd[t]), 1.0)
    # External wrenches act on the bodies: subtract them from the required forces.
    for k in range(len(record.loaded)):
        b = record.loaded[k]
        for i in range(3):
            motion.force[b, i] -= record.wrenches[t, k, i]
            motion.moment[b, i] -= record.wrenches[t, k, 3 + i]
    record.tau[t] = 0.0
    add_forces(chain, pose, motion, record.tau[t])
    if len(record.correction.root) == ROOT:
        correct(record, t, work)


@kernel(allocates=True)
def generalised_forces(table: Table[DynamicsRecord]) -> None:
    """Process all frames of a `DynamicsRecord`."""
    record = unpack(table, DynamicsRecord)
    work = make_correction_work(record.chain.n)
    for t in range(len(record.q)):
        forces_of_frame(record, t, work)
