"""Inverse dynamics of a serial arm with first and exact second derivatives, and torque rate."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from humanoid_control.compiled.jit import kernel
from humanoid_control.reaching.optimal.spatial_motion import (
    ArmModel,
    Six,
    add,
    along,
    cross,
    cross_force,
    cross_motion,
    dot,
    momentum,
    put,
    six,
    times,
    times_transposed,
)

STEP = 1e-100  # complex step, too small to round

# -------- Equations
#
# For a virtual motion u_b = sum_{i <= b} lambda_i S_i of the bodies,
#
#     lambda . tau = sum_b u_b . (I_b A_b + V_b x* I_b V_b)
#
# Seen from the distal bodies, rotating joint j changes the motion before it: psi_j = V_p x S_j, chi_j = A_p x S_j + V_p
# x psi_j, upsilon_j = u_p x S_j, p the previous body. With sums over distal bodies (inertia I_j, force F_j, momentum
# H_j) and
#
#     B(V) u = V x* I u - u x* I V - I (V x u) = (2 [p_V x l + v x (w x h) + E (omega x w)], 0),   E = tr(I) / 2 - I
#
# (u = (w, l), V = (omega, v), momentum p_V, first moment h) the derivatives are (Singh, Russell and Wensing 2022)
#
#     d tau_i / d q_j = S_i . (I_j chi_j + B_j' psi_j + S_j x* F_j)  if i <= j, else chi_j . I_i S_i + psi_j . B_i S_i
#     d tau_i / d v_j = S_i . (2 I_j psi_j + B_j' S_j)               if i <= j, else 2 psi_j . I_i S_i + S_j . B_i S_i


class ArmMotion(NamedTuple):
    """Kinematics and distal sums of one state; rows are joints and their bodies.

    Attributes:
        R: (N, 3, 3) poses.
        o: (N, 3) poses.
        S: (N, 6) joint motions at unit speed.
        V: (N + 1, 6) velocities, base first.
        A: (N + 1, 6) accelerations with gravity, base first.
        psi: (N, 6).
        chi: (N, 6).
        m: (N,) distal mass.
        h: (N, 3) distal first moment.
        I: (N, 3, 3) distal inertia about the origin.
        E: (N, 3, 3) of single bodies.
        W: (N, 3, 3) rotational block of B, distal sum.
        H: (N, 6) distal momentum.
        F: (N, 6) distal force.
    """

    R: np.ndarray
    o: np.ndarray
    S: np.ndarray
    V: np.ndarray
    A: np.ndarray
    psi: np.ndarray
    chi: np.ndarray
    m: np.ndarray
    h: np.ndarray
    I: np.ndarray  # noqa: E741 - the field's symbol
    E: np.ndarray
    W: np.ndarray
    H: np.ndarray
    F: np.ndarray


@kernel(allocates=True)
def arm_motion(q: np.ndarray) -> ArmMotion:
    """Return memory of the number type of q (N,)."""
    n, kind = q.shape[0], q.dtype
    return ArmMotion(
        np.zeros((n, 3, 3), kind),
        np.zeros((n, 3), kind),
        np.zeros((n, 6), kind),
        np.zeros((n + 1, 6), kind),
        np.zeros((n + 1, 6), kind),
        np.zeros((n, 6), kind),
        np.zeros((n, 6), kind),
        np.zeros(n, kind),
        np.zeros((n, 3), kind),
        np.zeros((n, 3, 3), kind),
        np.zeros((n, 3, 3), kind),
        np.zeros((n, 3, 3), kind),
        np.zeros((n, 6), kind),
        np.zeros((n, 6), kind),
    )


@kernel
def place_joint(arm: ArmModel, j: int, angle: float, s: ArmMotion) -> None:
    """Place body j and its joint motion S_j after the previous body."""
    x, y, z = arm.axis[j, 0], arm.axis[j, 1], arm.axis[j, 2]
    c, d = np.cos(angle), np.sin(angle)
    t = 1.0 - c
    turn = (
        (c + x * x * t, x * y * t - z * d, x * z * t + y * d),
        (y * x * t + z * d, c + y * y * t, y * z * t - x * d),
        (z * x * t - y * d, z * y * t + x * d, c + z * z * t),
    )
    for i in range(3):
        if j == 0:
            a = (arm.R[0, i, 0] + 0 * c, arm.R[0, i, 1] + 0 * c, arm.R[0, i, 2] + 0 * c)
            s.o[0, i] = arm.p[0, i]
        else:
            r0, r1, r2 = s.R[j - 1, i, 0], s.R[j - 1, i, 1], s.R[j - 1, i, 2]
            a = (
                r0 * arm.R[j, 0, 0] + r1 * arm.R[j, 1, 0] + r2 * arm.R[j, 2, 0],
                r0 * arm.R[j, 0, 1] + r1 * arm.R[j, 1, 1] + r2 * arm.R[j, 2, 1],
                r0 * arm.R[j, 0, 2] + r1 * arm.R[j, 1, 2] + r2 * arm.R[j, 2, 2],
            )
            s.o[j, i] = s.o[j - 1, i] + r0 * arm.p[j, 0] + r1 * arm.p[j, 1] + r2 * arm.p[j, 2]
        s.S[j, i] = a[0] * x + a[1] * y + a[2] * z
        for k in range(3):
            s.R[j, i, k] = a[0] * turn[0][k] + a[1] * turn[1][k] + a[2] * turn[2][k]
    w, o = (s.S[j, 0], s.S[j, 1], s.S[j, 2]), (s.o[j, 0], s.o[j, 1], s.o[j, 2])
    at_origin = cross(o, w)
    for i in range(3):
        s.S[j, 3 + i] = at_origin[i]


@kernel
def place_body(arm: ArmModel, j: int, s: ArmMotion) -> None:
    """Fill mass, first moment, inertia and E of body j alone, in base axes."""
    c0 = times(s.R, j, (arm.com[j, 0], arm.com[j, 1], arm.com[j, 2]))
    c = (s.o[j, 0] + c0[0], s.o[j, 1] + c0[1], s.o[j, 2] + c0[2])
    m = arm.mass[j]
    s.m[j] = m
    far = c[0] * c[0] + c[1] * c[1] + c[2] * c[2]
    # tr(I) of the body about the origin, for E = tr(I) / 2 - I.
    trace = arm.inertia[j, 0, 0] + arm.inertia[j, 1, 1] + arm.inertia[j, 2, 2] + 2.0 * m * far
    for i in range(3):
        s.h[j, i] = m * c[i]
        r0, r1, r2 = s.R[j, i, 0], s.R[j, i, 1], s.R[j, i, 2]
        a0 = r0 * arm.inertia[j, 0, 0] + r1 * arm.inertia[j, 1, 0] + r2 * arm.inertia[j, 2, 0]
        a1 = r0 * arm.inertia[j, 0, 1] + r1 * arm.inertia[j, 1, 1] + r2 * arm.inertia[j, 2, 1]
        a2 = r0 * arm.inertia[j, 0, 2] + r1 * arm.inertia[j, 1, 2] + r2 * arm.inertia[j, 2, 2]
        for k in range(3):
            t = a0 * s.R[j, k, 0] + a1 * s.R[j, k, 1] + a2 * s.R[j, k, 2] - m * c[i] * c[k]
            s.I[j, i, k], s.E[j, i, k] = t, -t
        s.I[j, i, i] += m * far
        s.E[j, i, i] += 0.5 * trace - m * far


@kernel
def move_arm(arm: ArmModel, q: np.ndarray, v: np.ndarray, a: np.ndarray, s: ArmMotion) -> None:
    """Fill an `ArmMotion` at q, v, a (N,): outward pass, then distal sums."""
    n = q.shape[0]
    for i in range(3):
        s.V[0, i], s.V[0, 3 + i], s.A[0, i], s.A[0, 3 + i] = 0.0, 0.0, 0.0, -arm.gravity[i]
    for j in range(n):
        place_joint(arm, j, q[j], s)
        place_body(arm, j, s)
        # Gravity enters as an upward base acceleration.
        S, Vp, Ap = six(s.S, j), six(s.V, j), six(s.A, j)
        psi = cross_motion(Vp, S)
        V, A = along(Vp, v[j], S), along(along(Ap, a[j], S), v[j], psi)
        put(s.psi, j, psi)
        put(s.chi, j, add(cross_motion(Ap, S), cross_motion(Vp, psi)))
        put(s.V, j + 1, V)
        put(s.A, j + 1, A)
        h = (s.h[j, 0], s.h[j, 1], s.h[j, 2])
        H = momentum(s.m[j], h, s.I, j, V)
        put(s.H, j, H)
        put(s.F, j, add(momentum(s.m[j], h, s.I, j, A), cross_force(V, H)))
        w, lin = (V[0], V[1], V[2]), (V[3], V[4], V[5])
        far = h[0] * lin[0] + h[1] * lin[1] + h[2] * lin[2]
        for i in range(3):  # W = 2 (E [omega]x - [v]x [h]x);  [v]x [h]x = h v' - (v . h)
            row = cross((s.E[j, i, 0], s.E[j, i, 1], s.E[j, i, 2]), w)
            for k in range(3):
                s.W[j, i, k] = 2.0 * (row[k] - h[i] * lin[k])
            s.W[j, i, i] += 2.0 * far
    # Sum inward: each joint carries all distal bodies.
    for j in range(n - 2, -1, -1):
        s.m[j] += s.m[j + 1]
        for i in range(3):
            s.h[j, i] += s.h[j + 1, i]
            for k in range(3):
                s.I[j, i, k] += s.I[j + 1, i, k]
                s.W[j, i, k] += s.W[j + 1, i, k]
        for i in range(6):
            s.H[j, i] += s.H[j + 1, i]
            s.F[j, i] += s.F[j + 1, i]


@kernel
def beyond(s: ArmMotion, j: int, u: Six) -> Six:
    """Return I_j u: momentum of the distal bodies moving by u."""
    return momentum(s.m[j], (s.h[j, 0], s.h[j, 1], s.h[j, 2]), s.I, j, u)


@kernel
def coriolis(s: ArmMotion, j: int, u: Six) -> Six:
    """Return B_j u."""
    a = times(s.W, j, (u[0], u[1], u[2]))
    b = cross((s.H[j, 3], s.H[j, 4], s.H[j, 5]), (u[3], u[4], u[5]))
    zero = 0.0 * u[0]
    return (a[0] + 2.0 * b[0], a[1] + 2.0 * b[1], a[2] + 2.0 * b[2], zero, zero, zero)


@kernel
def coriolis_transposed(s: ArmMotion, j: int, u: Six) -> Six:
    """Return B_j' u."""
    w = (u[0], u[1], u[2])
    a = times_transposed(s.W, j, w)
    b = cross(w, (s.H[j, 3], s.H[j, 4], s.H[j, 5]))
    return (a[0], a[1], a[2], 2.0 * b[0], 2.0 * b[1], 2.0 * b[2])


@kernel
def torque(s: ArmMotion, tau: np.ndarray) -> None:
    """Fill torques (N,) [N m], after `move_arm`."""
    for j in range(tau.shape[0]):
        tau[j] = dot(six(s.S, j), six(s.F, j))


@kernel
def torque_derivatives(s: ArmMotion, by_q: np.ndarray, by_v: np.ndarray, M: np.ndarray) -> None:
    """Fill derivatives (N, N) of the torques by q, v and a, after `move_arm`; M is full."""
    n = M.shape[0]
    for j in range(n):
        S, psi, chi = six(s.S, j), six(s.psi, j), six(s.chi, j)
        P, Q = beyond(s, j, S), coriolis(s, j, S)
        D = add(add(beyond(s, j, chi), coriolis_transposed(s, j, psi)), cross_force(S, six(s.F, j)))
        G = along(coriolis_transposed(s, j, S), 2.0, beyond(s, j, psi))
        for i in range(j + 1):
            Si, psi_i = six(s.S, i), six(s.psi, i)
            by_q[i, j], by_v[i, j] = dot(Si, D), dot(Si, G)
            M[i, j] = M[j, i] = dot(Si, P)
            if i < j:
                by_q[j, i] = dot(six(s.chi, i), P) + dot(psi_i, Q)
                by_v[j, i] = 2.0 * dot(psi_i, P) + dot(Si, Q)


# -------- Exact second derivatives


class SecondDerivatives(NamedTuple):
    """Non-zero second derivatives of lambda . tau, (N, N) each; first index, first letter."""

    qq: np.ndarray
    vq: np.ndarray
    vv: np.ndarray
    aq: np.ndarray


@kernel(allocates=True)
def torque_second_derivatives(s: ArmMotion, factor: np.ndarray, out: SecondDerivatives) -> None:
    """Fill the second derivatives of factor . tau, factor (N,), after `move_arm`."""
    n = factor.shape[0]
    kind = s.S.dtype
    U, P, Q, K = np.zeros((n + 1, 6), kind), np.zeros((n, 6), kind), np.zeros((n, 6), kind), np.zeros((n, 3, 3), kind)
    for j in range(n):
        put(U, j + 1, along(six(U, j), factor[j], six(s.S, j)))
    _sum_virtual(s, U, P, Q, K)
    for j in range(n):
        S, psi, chi, F, H = six(s.S, j), six(s.psi, j), six(s.chi, j), six(s.F, j), six(s.H, j)
        Pj, Qj = six(P, j), six(Q, j)
        upsilon = cross_motion(six(U, j), S)
        # dF and dchi are the changes of F_j and chi_j by coordinate k <= j.
        for k in range(j + 1):
            Sk, psi_k, chi_k = six(s.S, k), six(s.psi, k), six(s.chi, k)
            ups_k = cross_motion(six(U, k), Sk)
            turned, carried = cross_motion(Sk, S), cross_motion(psi_k, S)
            I_ups, K_psi, K_S = beyond(s, j, ups_k), _steady(Pj, K, j, psi_k), _steady(Pj, K, j, Sk)
            B_ups = coriolis(s, j, ups_k)
            dF = along(add(beyond(s, j, chi_k), coriolis(s, j, psi_k)), 2.0, cross_force(psi_k, H))
            dchi = along(cross_motion(chi_k, S), 2.0, cross_motion(psi_k, psi))
            qq = dot(cross_motion(ups_k, S), F) + dot(upsilon, dF) + dot(dchi, Pj) + dot(chi, I_ups)
            qq += dot(carried, Qj) + dot(psi, add(B_ups, K_psi))
            vq = 2.0 * dot(carried, Pj) + 2.0 * dot(psi, I_ups) + dot(S, add(B_ups, K_psi))
            dF = along(along(coriolis(s, j, Sk), 2.0, beyond(s, j, psi_k)), 2.0, cross_force(Sk, H))
            qv = dot(upsilon, dF) + 2.0 * dot(add(cross_motion(psi_k, S), cross_motion(Sk, psi)), Pj)
            qv += dot(turned, Qj) + dot(psi, K_S)
            out.qq[j, k] = out.qq[k, j] = qq
            out.vv[j, k] = out.vv[k, j] = 2.0 * dot(turned, Pj) + dot(S, K_S)
            out.vq[j, k], out.aq[j, k] = vq, dot(S, I_ups)
            if k < j:
                out.vq[k, j] = qv
                out.aq[k, j] = dot(upsilon, beyond(s, j, Sk)) + dot(turned, Pj)


@kernel
def _sum_virtual(s: ArmMotion, U: np.ndarray, P: np.ndarray, Q: np.ndarray, K: np.ndarray) -> None:
    """Fill distal sums of I u, B(V) u, and the matrix of B(V) u by omega for a common V."""
    n = P.shape[0]
    for j in range(n - 1, -1, -1):
        last = j == n - 1  # single bodies again, as differences of two sums
        m = s.m[j] - (0.0 if last else s.m[j + 1])
        h = (
            s.h[j, 0] - (0.0 if last else s.h[j + 1, 0]),
            s.h[j, 1] - (0.0 if last else s.h[j + 1, 1]),
            s.h[j, 2] - (0.0 if last else s.h[j + 1, 2]),
        )
        u = six(U, j + 1)
        w, lin = (u[0], u[1], u[2]), (u[3], u[4], u[5])
        far = h[0] * lin[0] + h[1] * lin[1] + h[2] * lin[2]
        swing = cross(w, h)
        for i in range(3):
            P[j, 3 + i] = m * lin[i] + swing[i]
            row = cross((s.E[j, i, 0], s.E[j, i, 1], s.E[j, i, 2]), w)
            for k in range(3):  # (omega x h) x l + E (omega x w)
                K[j, i, k] = h[i] * lin[k] - row[k]
            K[j, i, i] -= far
        B = coriolis(s, j, u)
        L = beyond(s, j, u)
        if not last:
            B = along(B, -1.0, coriolis(s, j + 1, u))
            L = along(L, -1.0, beyond(s, j + 1, u))
        for i in range(3):
            P[j, i], Q[j, i] = L[i], B[i]
            Q[j, 3 + i] = 0.0
        if not last:
            for i in range(6):
                P[j, i] += P[j + 1, i]
                Q[j, i] += Q[j + 1, i]
            for i in range(3):
                for k in range(3):
                    K[j, i, k] += K[j + 1, i, k]


@kernel
def _steady(P: Six, K: np.ndarray, j: int, V: Six) -> Six:
    """Return the distal sum of B(V) u for a common V."""
    a = cross((V[3], V[4], V[5]), (P[3], P[4], P[5]))
    b = times(K, j, (V[0], V[1], V[2]))
    zero = 0.0 * a[0]
    return (2.0 * (a[0] + b[0]), 2.0 * (a[1] + b[1]), 2.0 * (a[2] + b[2]), zero, zero, zero)


# -------- Rate of the torque


class TorqueRate(NamedTuple):
    """Torque rate [N m/s] and its derivatives (N, N)."""

    rate: np.ndarray
    by_q: np.ndarray
    by_v: np.ndarray
    by_a: np.ndarray
    by_jerk: np.ndarray


@kernel(allocates=True)
def torque_rate(
    arm: ArmModel, q: np.ndarray, v: np.ndarray, a: np.ndarray, jerk: np.ndarray, s: ArmMotion, out: TorqueRate
) -> None:
    """Fill `out` with the exact torque rate along a motion and its derivatives; s is complex memory."""
    # tau' = tau_q v + tau_v a + M jerk. Its derivatives are (tau_q)', tau_q + (tau_v)', tau_v + M' and M, with rates
    # from one complex step along the motion.
    n = q.shape[0]
    qc, vc, ac = np.empty(n, np.complex128), np.empty(n, np.complex128), np.empty(n, np.complex128)
    for i in range(n):
        qc[i], vc[i], ac[i] = complex(q[i], STEP * v[i]), complex(v[i], STEP * a[i]), complex(a[i], STEP * jerk[i])
    move_arm(arm, qc, vc, ac, s)
    by_q, by_v, M = np.empty((n, n), np.complex128), np.empty((n, n), np.complex128), np.empty((n, n), np.complex128)
    torque_derivatives(s, by_q, by_v, M)
    for i in range(n):
        out.rate[i] = dot(six(s.S, i), six(s.F, i)).imag / STEP
        for j in range(n):
            out.by_q[i, j] = by_q[i, j].imag / STEP
            out.by_v[i, j] = by_q[i, j].real + by_v[i, j].imag / STEP
            out.by_a[i, j] = by_v[i, j].real + M[i, j].imag / STEP
            out.by_jerk[i, j] = M[i, j].real
