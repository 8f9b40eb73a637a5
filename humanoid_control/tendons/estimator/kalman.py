"""Extended Kalman filter, the update: independent measurements, a gate, limits, and borrowed angles.

Taking independent measurements in some at a time (`tiled_update`) is the same as taking them together, needs no inverse
of a large matrix, leaves out a tendon by leaving out its row, and yields whitened innovations whose squares add up to
the NIS.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from humanoid_control.jit import inlined, kernel
from humanoid_control.numerics.array_types import F1, F2
from humanoid_control.tendons.estimator.tiled_update import (
    DENSE,
    Measurements,
    UpdateMemory,
    absorb,
    count_entries,
    leave_one_out,
    list_entries,
    load_rows,
    store_covariance,
)


class Estimate(NamedTuple):
    """State of a filter and how sure it is, changed in place.

    Attributes:
        x: (n,) state, the D angles first [rad]. P: (n, n) its covariance.
    """

    x: F1
    P: F2


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


class AngleLimits(NamedTuple):
    """Range of the angles, lower and upper (D,) [rad], and the variance of a limit as a measurement [rad^2]."""

    lower: F1
    upper: F1
    variance: float


@inlined
def update(estimate: Estimate, measured: Measurements, gate: Gate, memory: UpdateMemory) -> Innovations:
    """Take in all measurements in use, and leave out those that contradict the rest.

    Each measurement is compared with what all others together say of it (leave-one-out innovation, from the residual
    after the update). While the worst one exceeds the gate it is left out and the update is made again.
    """
    m, n = measured.H.shape
    before, prior = estimate.P.reshape(-1), memory.P0.reshape(-1)
    for a in range(n):
        memory.x0[a] = estimate.x[a]
    for a in range(n * n):
        prior[a] = before[a]
    # rows that fit into a tile are not worth a look
    dense = n <= 8 or count_entries(measured.H, memory) > DENSE * m * n
    if dense:
        load_rows(measured.H, memory.rows)
    else:
        list_entries(measured.H, memory)
    dropped, all_nis, all_count, largest = 0, 0.0, 0, 0.0
    while True:
        nis, count = absorb(measured, memory, dense)
        worst = leave_one_out(measured, memory, dense)
        size = abs(measured.score[worst]) if worst >= 0 else 0.0
        if dropped == 0:
            all_nis, all_count, largest = nis, count, size * size
        if size <= gate.limit or dropped >= gate.most:
            break
        measured.use[worst] = 0
        dropped += 1
    for a in range(n):
        estimate.x[a] += memory.dx[a]
    store_covariance(memory.panels, estimate.P)
    return Innovations(all_nis, all_count, largest, nis, count, dropped)


@inlined
def allow(measured: Measurements, allowed: np.ndarray) -> None:
    """Use all tendons that were measured and are allowed, (M,) 1."""
    for i in range(allowed.shape[0]):
        measured.use[i] = allowed[i] if measured.nu[i] - measured.nu[i] == 0.0 else 0


@kernel
def hold_limits(estimate: Estimate, limits: AngleLimits) -> int:
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
