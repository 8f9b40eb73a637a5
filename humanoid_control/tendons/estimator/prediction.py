"""Extended Kalman filter, the prediction: angles moved by changes of length, and the uncertainty that a step adds."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from humanoid_control.jit import kernel
from humanoid_control.numerics.array_types import F1, F2, I1
from humanoid_control.numerics.cholesky import cholesky, cholesky_inverse
from humanoid_control.tendons.estimator.kalman import Estimate, Gate


class LengthChanges(NamedTuple):
    """Changes of M lengths in one step, and the moment arms that turn them into angles.

    Attributes:
        now, last: (M,) lengths now and when last measured [m]; NaN where missing. last is brought up to date.
        allowed: (M,) 1 for tendons that the step may use. use: (M,), written: 1 for those that it does use.
        G: (M, D) moment arms at the last estimate [m/rad]. dz: (M,), written: the changes, 0 where not known [m].
        delta: (D,), written: the change of the angles by eq. (7) [rad].
    """

    now: F1
    last: F1
    allowed: I1
    use: I1
    G: F2
    dz: F1
    delta: F1


class ProcessNoise(NamedTuple):
    """Uncertainty that a step adds.

    Attributes:
        owned: (D,) 1.0 for angles that the group estimates, 0.0 for borrowed ones.
        step: (D,) deviation that an angle may stray by in any step [rad].
        motion: (D,) variance for the motion of this step [rad^2]; written by `predict_by_lengths` and `predict_still`.
        fastest: no angle changes by more than this in one step [rad].
        motion_factor: variance of the motion as a share of its mean square.
        change_variance: of a measured change of length [m^2].
        cutoff: singular values of G below this share of the largest count as zero in eq. (7).
    """

    owned: F1
    step: F1
    motion: F1
    fastest: float
    motion_factor: float
    change_variance: float
    cutoff: float


class PredictionMemory(NamedTuple):
    """Memory of a prediction: A, B, L (D, D), `neglected` (M,) variance that the gate grants the error of G [m^2]."""

    A: F2
    B: F2
    L: F2
    neglected: F1


@kernel
def length_changes(changes: LengthChanges) -> None:
    """Change of each length since it was last measured; tendons not measured or not allowed are not used."""
    now, last = changes.now, changes.last
    for i in range(now.shape[0]):
        change = now[i] - last[i]
        known = change - change == 0.0  # neither NaN nor infinite
        changes.use[i] = changes.allowed[i] if known else 0
        changes.dz[i] = change if known else 0.0
        if now[i] - now[i] == 0.0:
            last[i] = now[i]


@kernel
def squared_angle_increments(G: np.ndarray, dz: np.ndarray, fastest: float, out: np.ndarray) -> None:
    """Mean square change of each angle that changes dz (M,) of the lengths admit, (D,) [rad^2].

    Each angle as if it alone had moved the tendons that cross it, so that angles and shifts can be mixed.

    Args:
        fastest: no angle changes by more than this in one step, whatever a faulty tendon says [rad].
    """
    for a in range(G.shape[1]):
        gain, size = 1e-12, 0.0
        for i in range(G.shape[0]):
            if G[i, a] != 0.0:
                gain += G[i, a] * G[i, a]
                size += dz[i] * dz[i]
        out[a] = min(size / gain, fastest * fastest)


@kernel
def linearisation_variance(
    hessian: np.ndarray, u: np.ndarray, v: np.ndarray, factor: float, r: np.ndarray, out: np.ndarray
) -> None:
    """Variance of lengths with what a linear filter neglects of them: r + factor sum K_ae^2 u_a v_e, (M,) [m^2].

    Args:
        hessian: (M, D, D) mean squares of the second derivatives K [m^2/rad^4].
        u, v: (D,) squares of angles [rad^2].
        r: (M,) [m^2]. out: (M,), written.
    """
    m, d = hessian.shape[0], hessian.shape[1]
    for i in range(m):
        total = 0.0
        for a in range(d):
            if hessian[i, a, a] > 0.0:
                for e in range(d):
                    total += hessian[i, a, e] * u[a] * v[e]
        out[i] = r[i] + factor * total


@kernel
def squared_pseudo_inverse(
    G: np.ndarray, use: np.ndarray, cutoff: float, A: np.ndarray, out: np.ndarray, L: np.ndarray
) -> int:
    """(G^T G)^+ (D, D), singular values of G below cutoff times the largest counted as zero; returns the rank.

    Args:
        G: (M, D). use: (M,) rows with 0 are left out. A, L: (D, D) memory. out: (D, D), written.
    """
    m, n = G.shape
    A[:] = 0.0
    for i in range(m):
        if use[i] != 0:
            for a in range(n):
                g = G[i, a]
                if g != 0.0:
                    for b in range(n):
                        A[a, b] += g * G[i, b]
    if cholesky(A, n, L):
        cholesky_inverse(L, n, out)
        size, inverse = 0.0, 0.0
        for a in range(n):
            for b in range(n):
                size += A[a, b] * A[a, b]
                inverse += out[a, b] * out[a, b]
        # The product of the Frobenius norms bounds the condition number: nothing to cut off.
        if (size * inverse) ** 0.5 * max(cutoff * cutoff, 1e-13) < 1.0:
            return n
    values, vectors = np.linalg.eigh(A)
    out[:] = 0.0
    rank = 0
    # Squaring leaves zero singular values at the root of the rounding error, 1e-8; a smaller cut-off cannot be told.
    least = max(cutoff * cutoff, 1e-15 * n) * values[n - 1]
    for c in range(n):
        if values[c] > least:
            rank += 1
            for a in range(n):
                for b in range(n):
                    out[a, b] += vectors[a, c] * vectors[b, c] / values[c]
    return rank


@kernel
def _most_contradicting(changes: LengthChanges, r: float, limit: float, memory: PredictionMemory) -> int:
    """The tendon whose change of length contradicts the others most, or -1 when none is beyond the limit."""
    G, delta, inverse = changes.G, changes.delta, memory.B
    m, n = G.shape
    worst, at = limit, -1
    for i in range(m):
        if changes.use[i] != 0:
            e, own = changes.dz[i], 0.0
            for a in range(n):
                e -= G[i, a] * delta[a]
                for b in range(n):
                    own += G[i, a] * inverse[a, b] * G[i, b]
            free = 1.0 - own
            if free > 1e-9:
                score = abs(e) / free / (r / free + memory.neglected[i]) ** 0.5
                if score > worst:
                    worst, at = score, i
    return at


@kernel
def predict(
    estimate: Estimate, changes: LengthChanges, process: ProcessNoise, gate: Gate, memory: PredictionMemory
) -> int:
    """theta += S G^+ dz (Kawaharazuka 2018, eq. (7)), and P += diag(step^2 + S motion) + S G^+ r G^+T S.

    The measured changes move the angles here and are compared with them once more afterwards. `process.motion` keeps
    that from counting twice, and stands for the error of G, which grows with the motion.

    Equation (7) as printed has rows for the owned angles only; S keeps the borrowed ones in place with zeros.
    A tendon whose change cannot be explained together with the others' is left out.

    Returns:
        Rank of G.
    """
    x, P, G, A, B = estimate.x, estimate.P, changes.G, memory.A, memory.B
    owned, r, delta = process.owned, process.change_variance, changes.delta
    m, n = G.shape
    dropped = 0
    while True:
        rank = squared_pseudo_inverse(G, changes.use, process.cutoff, A, B, memory.L)
        for a in range(n):
            A[0, a] = 0.0
            for i in range(m):
                if changes.use[i] != 0:
                    A[0, a] += G[i, a] * changes.dz[i]
        for a in range(n):
            delta[a] = 0.0
            for b in range(n):
                delta[a] += B[a, b] * A[0, b]
        at = _most_contradicting(changes, r, gate.limit, memory) if dropped < gate.most else -1
        if at < 0:
            break
        changes.use[at] = 0
        dropped += 1
    for a in range(n):
        delta[a] *= owned[a]
        x[a] += delta[a]
    for a in range(n):
        P[a, a] += process.step[a] * process.step[a] + owned[a] * process.motion[a]
        for b in range(n):
            # (a, b) and (b, a) of B may differ in the last digit; their mean keeps P symmetric
            P[a, b] += owned[a] * owned[b] * r * 0.5 * (B[a, b] + B[b, a])
    return rank


@kernel
def predict_by_lengths(
    estimate: Estimate,
    changes: LengthChanges,
    process: ProcessNoise,
    gate: Gate,
    hessian: np.ndarray,
    memory: PredictionMemory,
) -> int:
    """`predict` with lengths as they came; the gate grants what the error of the angles does to the moment arms."""
    length_changes(changes)
    squared_angle_increments(changes.G, changes.dz, process.fastest, process.motion)
    memory.neglected[:] = 0.0
    variance = np.diag(estimate.P)
    linearisation_variance(hessian, variance, process.motion, 1.0, memory.neglected, memory.neglected)
    for a in range(process.motion.shape[0]):
        process.motion[a] *= process.motion_factor
    return predict(estimate, changes, process, gate, memory)


@kernel
def predict_still(estimate: Estimate, changes: LengthChanges, process: ProcessNoise) -> None:
    """The angles stay, and become less sure the more the lengths have changed: P += diag(step^2 + S motion)."""
    length_changes(changes)
    squared_angle_increments(changes.G, changes.dz, process.fastest, process.motion)
    for a in range(process.motion.shape[0]):
        process.motion[a] *= process.motion_factor
        changes.delta[a] = 0.0
        estimate.P[a, a] += process.step[a] * process.step[a] + process.owned[a] * process.motion[a]
