"""Extended Kalman filter, the update: measurements one after the other, a gate, limits, and borrowed angles.

Taking independent measurements one by one is the same as taking them together, needs no matrix inverse, leaves out a
tendon by leaving out its row, and yields whitened innovations whose squares add up to the NIS.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from humanoid_control.jit import kernel
from humanoid_control.numerics.array_types import F1, F2, I1


class Estimate(NamedTuple):
    """State of a filter and how sure it is, changed in place.

    Attributes:
        x: (n,) state, the D angles first [rad]. P: (n, n) its covariance.
    """

    x: F1
    P: F2


class Measurements(NamedTuple):
    """M linearised measurements.

    Attributes:
        H: (M, n) Jacobian by the state. nu: (M,) innovations at the prior [m]; NaN where nothing was measured.
        r: (M,) variances [m^2]. use: (M,) 1 to use, 0 to leave out; cleared where the gate closes.
        score: (M,), written: leave-one-out innovation [standard deviations].
    """

    H: F2
    nu: F1
    r: F1
    use: I1
    score: F1


class Gate(NamedTuple):
    """Test that leaves out tendons which contradict the rest.

    Attributes:
        limit: largest admitted innovation [standard deviations]. most: how many tendons may be left out in a step.
    """

    limit: float
    most: int


class Innovations(NamedTuple):
    """Innovations of an update, normalised and squared: first as they came, then as far as they were used.

    Attributes:
        nis, degrees: of all measurements, before the gate; how many. largest: largest squared leave-one-out innovation
            of one of them. used_nis, used: of those that the gate let through; how many. dropped: those it left out.
    """

    nis: float
    degrees: int
    largest: float
    used_nis: float
    used: int
    dropped: int


class JointLimits(NamedTuple):
    """Range of the angles, lower and upper (D,) [rad], and the variance of a limit as a measurement [rad^2]."""

    lower: F1
    upper: F1
    variance: float


class UpdateMemory(NamedTuple):
    """Memory of an update: the prior x0 (n,) and P0 (n, n), w (n,), and indices at (n,)."""

    x0: F1
    P0: F2
    w: F1
    at: I1


@kernel
def _nonzero(h: np.ndarray, at: np.ndarray) -> int:
    """Positions of the entries of h that are not zero, into at; their number. Most tendons cross few joints."""
    count = 0
    for a in range(h.shape[0]):
        at[count] = a  # without a branch, which would be guessed wrongly most of the time
        count += h[a] != 0.0
    return count


@kernel
def _residual(nu: float, h: np.ndarray, x: np.ndarray, memory: UpdateMemory, count: int) -> float:
    """The innovation nu at the prior, less what the state has moved since."""
    for c in range(count):
        a = memory.at[c]
        nu -= h[a] * (x[a] - memory.x0[a])
    return nu


@kernel
def _absorb(estimate: Estimate, h: np.ndarray, e: float, r: float, memory: UpdateMemory, count: int) -> float:
    """Take in one measurement: e = h (truth - x) + noise of variance r.

    P <- P - v v^T with v = P h^T / sqrt(h P h^T + r): Joseph's form of it, with the best gain put in. Every entry has
    the same product as its mirror image, so that P stays symmetric to the last digit.

    Args:
        count: how many entries of h (n,) are not zero, at the positions memory.at.

    Returns:
        Variance of e.
    """
    x, P, w, at = estimate.x, estimate.P, memory.w, memory.at
    n = x.shape[0]
    for j in range(n):
        w[j] = 0.0
    for c in range(count):
        g, row = h[at[c]], P[at[c]]
        for j in range(n):
            w[j] += g * row[j]
    s = r
    for c in range(count):
        s += h[at[c]] * w[at[c]]
    gain, root = e / s, 1.0 / s**0.5
    for j in range(n):
        x[j] += w[j] * gain
        w[j] *= root
    for a in range(n):
        v, row = w[a], P[a]
        for j in range(n):
            row[j] -= v * w[j]
    return s


@kernel
def _variance(P: np.ndarray, h: np.ndarray, at: np.ndarray, count: int) -> float:
    """h P h^T of a symmetric P."""
    total = 0.0
    for c in range(count):
        g, row = h[at[c]], P[at[c]]
        total += g * g * row[at[c]]
        for d in range(c + 1, count):
            total += 2.0 * g * h[at[d]] * row[at[d]]
    return total


@kernel
def _leave_one_out(estimate: Estimate, measured: Measurements, memory: UpdateMemory) -> int:
    """Score every measurement against what all others together say of it; the worst of those in use, or -1."""
    nu, r, score, at = measured.nu, measured.r, measured.score, memory.at
    worst, worst_at = 0.0, -1
    for i in range(nu.shape[0]):
        if nu[i] != nu[i]:
            score[i] = 0.0
            continue
        h = measured.H[i]
        count = _nonzero(h, at)
        e = _residual(nu[i], h, estimate.x, memory, count)
        share = _variance(estimate.P, h, at, count) / r[i]
        if measured.use[i] == 0:
            score[i] = e / ((1.0 + share) * r[i]) ** 0.5
            continue
        free = 1.0 - share
        if free < 1e-9:  # nothing else speaks of what this tendon measures
            score[i] = 0.0
            continue
        score[i] = e / (free * r[i]) ** 0.5
        if abs(score[i]) > worst:
            worst, worst_at = abs(score[i]), i
    return worst_at


@kernel
def update(estimate: Estimate, measured: Measurements, gate: Gate, memory: UpdateMemory) -> Innovations:
    """Take in all measurements in use, and leave out those that contradict the rest.

    Each measurement is compared with what all others together say of it (leave-one-out innovation, from the residual
    after the update). While the worst one exceeds the gate it is left out and the update is made again.
    """
    x, P, x0, P0 = estimate.x, estimate.P, memory.x0, memory.P0
    n = x.shape[0]
    for a in range(n):
        x0[a] = x[a]
        for b in range(n):
            P0[a, b] = P[a, b]
    dropped, all_nis, all_count, largest = 0, 0.0, 0, 0.0
    while True:
        nis, count = 0.0, 0
        for i in range(measured.nu.shape[0]):
            if measured.use[i] != 0:
                h = measured.H[i]
                crossed = _nonzero(h, memory.at)
                e = _residual(measured.nu[i], h, x, memory, crossed)
                s = _absorb(estimate, h, e, measured.r[i], memory, crossed)
                nis += e * e / s
                count += 1
        worst = _leave_one_out(estimate, measured, memory)
        size = abs(measured.score[worst]) if worst >= 0 else 0.0
        if dropped == 0:
            all_nis, all_count, largest = nis, count, size * size
        if size <= gate.limit or dropped >= gate.most:
            return Innovations(all_nis, all_count, largest, nis, count, dropped)
        measured.use[worst] = 0
        dropped += 1
        for a in range(n):
            x[a] = x0[a]
            for b in range(n):
                P[a, b] = P0[a, b]


@kernel
def update_allowed(
    estimate: Estimate, measured: Measurements, allowed: np.ndarray, gate: Gate, memory: UpdateMemory
) -> Innovations:
    """`update` with all tendons that were measured and are allowed, (M,) 1."""
    for i in range(allowed.shape[0]):
        measured.use[i] = allowed[i] if measured.nu[i] - measured.nu[i] == 0.0 else 0
    return update(estimate, measured, gate, memory)


@kernel
def hold_limits(estimate: Estimate, limits: JointLimits) -> int:
    """Pull the state back where an angle is beyond its limit, as a measurement of it would; count them.

    The covariance stays: a limit that is touched step after step says nothing new, and a filter that takes it for news
    becomes sure of a wrong posture.
    """
    x, P = estimate.x, estimate.P
    count = 0
    for d in range(limits.lower.shape[0]):
        e = 0.0
        if x[d] < limits.lower[d]:
            e = limits.lower[d] - x[d]
        elif x[d] > limits.upper[d]:
            e = limits.upper[d] - x[d]
        if e != 0.0:
            gain = e / (P[d, d] + limits.variance)
            for a in range(x.shape[0]):
                x[a] += gain * P[a, d]
            count += 1
    return count


@kernel
def copy_angles(to: Estimate, at: np.ndarray, owner: Estimate, there: np.ndarray) -> None:
    """Copy angles and their covariance from another filter (Kawaharazuka 2018, eqs (8)-(10)).

    What tied them to the rest is dropped.

    Args:
        to: changed at positions at (k,). owner: its estimate at positions there (k,).
    """
    x, P = to.x, to.P
    for i in range(at.shape[0]):
        x[at[i]] = owner.x[there[i]]
        for j in range(x.shape[0]):
            P[at[i], j] = 0.0
            P[j, at[i]] = 0.0
    for i in range(at.shape[0]):
        for j in range(at.shape[0]):
            P[at[i], at[j]] = owner.P[there[i], there[j]]
