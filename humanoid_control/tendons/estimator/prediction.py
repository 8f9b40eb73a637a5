"""Prediction of an extended Kalman filter from length changes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from humanoid_control.compiled.array_types import F1, F2, I1
from humanoid_control.compiled.jit import kernel
from humanoid_control.numerics.cholesky import cholesky, cholesky_inverse
from humanoid_control.tendons.estimator.kalman import Estimate, Gate


class LengthChanges(NamedTuple):
    """Changes of M lengths in a step.

    Attributes:
        now: (M,) lengths [m], NaN if missing.
        last: (M,) last measured lengths [m], updated.
        allowed: (M,) 1: usable.
        use: (M,) output: 1: used.
        G: (M, D) moment arms at the last estimate [m/rad].
        dz: (M,) output: changes, 0 if unknown [m].
        delta: (D,) output: angle change by eq. (7) [rad].
    """

    now: F1
    last: F1
    allowed: I1
    use: I1
    G: F2
    dz: F1
    delta: F1


class ProcessNoise(NamedTuple):
    """Process noise of a step, filled from `EstimatorSettings`.

    Attributes:
        owned: (D,) 1.0: own angle, 0.0: borrowed.
        step: (D,) deviation per step [rad].
        motion: (D,) output: variance due to motion [rad^2].
        fastest: maximum angle change per step [rad].
        motion_factor: motion variance relative to its mean square.
        change_variance: of a length change [m^2].
        cutoff: relative cutoff of singular values.
    """

    owned: F1
    step: F1
    motion: F1
    fastest: float
    motion_factor: float
    change_variance: float
    cutoff: float


class PredictionMemory(NamedTuple):
    """Memory of a prediction: A, B, L (D, D); `neglected` (M,) variance due to errors of G [m^2]."""

    A: F2
    B: F2
    L: F2
    neglected: F1


@kernel
def length_changes(changes: LengthChanges) -> None:
    """Compute the change of each length since its last measurement."""
    now, last = changes.now, changes.last
    for i in range(now.shape[0]):
        change = now[i] - last[i]
        known = change - change == 0.0  # neither NaN nor infinite
        changes.use[i] = changes.allowed[i] if known else 0
        changes.dz[i] = change if known else 0.0
        # A missing length keeps its last value, so the next change spans the gap.
        if now[i] - now[i] == 0.0:
            last[i] = now[i]


@kernel
def squared_angle_increments(G: np.ndarray, dz: np.ndarray, fastest: float, out: np.ndarray) -> None:
    """Fill the mean square change (D,) [rad^2] of each angle for length changes dz (M,), at most fastest^2."""
    for a in range(G.shape[1]):
        # Each angle alone explains its tendons: scale-free for mixed angles and distances.
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
    """Fill out (M,) with r + factor sum K_ae^2 u_a v_e [m^2], the variance with linearisation error.

    Args:
        hessian: (M, D, D) mean squares of K [m^2/rad^4].
        u: (D,) [rad^2].
        v: (D,) [rad^2].
        factor: of the second term.
        r: (M,) [m^2].
    """
    m, d = hessian.shape[0], hessian.shape[1]
    for i in range(m):
        total = 0.0
        for a in range(d):
            # K vanishes for joints that the tendon does not cross.
            if hessian[i, a, a] > 0.0:
                for e in range(d):
                    total += hessian[i, a, e] * u[a] * v[e]
        out[i] = r[i] + factor * total


@kernel(allocates=True)
def squared_pseudo_inverse(
    G: np.ndarray, use: np.ndarray, cutoff: float, A: np.ndarray, out: np.ndarray, L: np.ndarray
) -> int:
    """Fill out (D, D) with (G^T G)^+ for tendons in use, with a relative cutoff of singular values; return the rank."""
    m, n = G.shape
    A[:] = 0.0
    # Tendons cross few joints: skip the zeros of G.
    for i in range(m):
        if use[i] != 0:
            for a in range(n):
                g = G[i, a]
                if g != 0.0:
                    for b in range(n):
                        A[a, b] += g * G[i, b]
    # Cholesky is the fast path; the eigenvalue path handles rank deficiency.
    if cholesky(A, n, L):
        cholesky_inverse(L, n, out)
        size, inverse = 0.0, 0.0
        for a in range(n):
            for b in range(n):
                size += A[a, b] * A[a, b]
                inverse += out[a, b] * out[a, b]
        # The Frobenius norms bound the condition number: there is nothing to cut off.
        if (size * inverse) ** 0.5 * max(cutoff * cutoff, 1e-13) < 1.0:
            return n
    values, vectors = np.linalg.eigh(A)
    out[:] = 0.0
    rank = 0
    # Squaring leaves zero singular values near 1e-8, so a smaller cutoff cannot be resolved.
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
            # Leave-one-out residual: e / (1 - leverage).
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
    """Predict theta += S G^+ dz (Kawaharazuka 2018, eq. (7)), P += diag(step^2 + S motion) + S G^+ r G^+T S.

    S selects owned angles. `motion` stands for the error of G. Contradicting tendons are rejected.

    Returns:
        Rank of G.
    """
    x, P, G, A, B = estimate.x, estimate.P, changes.G, memory.A, memory.B
    owned, r, delta = process.owned, process.change_variance, changes.delta
    m, n = G.shape
    dropped = 0
    while True:
        rank = squared_pseudo_inverse(G, changes.use, process.cutoff, A, B, memory.L)
        # G^T dz goes to the first row of A, which is free again.
        for a in range(n):
            A[0, a] = 0.0
            for i in range(m):
                if changes.use[i] != 0:
                    A[0, a] += G[i, a] * changes.dz[i]
        for a in range(n):
            delta[a] = 0.0
            for b in range(n):
                delta[a] += B[a, b] * A[0, b]
        # Rejecting one tendon changes the fit of all others, so the fit is repeated.
        at = _most_contradicting(changes, r, gate.limit, memory) if dropped < gate.most else -1
        if at < 0:
            break
        changes.use[at] = 0
        dropped += 1
    # Borrowed angles belong to other groups and do not move here.
    for a in range(n):
        delta[a] *= owned[a]
        x[a] += delta[a]
    for a in range(n):
        P[a, a] += process.step[a] * process.step[a] + owned[a] * process.motion[a]
        for b in range(n):
            # B may be asymmetric in the last digit; the mean keeps P symmetric
            P[a, b] += owned[a] * owned[b] * r * 0.5 * (B[a, b] + B[b, a])
    return rank


@kernel(allocates=True)
def predict_by_lengths(
    estimate: Estimate,
    changes: LengthChanges,
    process: ProcessNoise,
    gate: Gate,
    hessian: np.ndarray,
    memory: PredictionMemory,
) -> int:
    """Run `predict` on measured lengths, tolerating moment-arm errors."""
    # The error of G is K e theta: variance of the angles times squared motion.
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
    """Keep the angles and add noise with the length changes: P += diag(step^2 + S motion)."""
    length_changes(changes)
    squared_angle_increments(changes.G, changes.dz, process.fastest, process.motion)
    for a in range(process.motion.shape[0]):
        process.motion[a] *= process.motion_factor
        changes.delta[a] = 0.0
        estimate.P[a, a] += process.step[a] * process.step[a] + process.owned[a] * process.motion[a]
