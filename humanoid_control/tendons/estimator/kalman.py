"""Update of an extended Kalman filter: independent measurements, gate, limits and borrowed angles."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from humanoid_control.compiled.array_types import F1, F2
from humanoid_control.compiled.jit import inlined, kernel
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
    """State and covariance, changed in place.

    Attributes:
        x: (n,) state, D angles first [rad].
        P: (n, n).
    """

    x: F1
    P: F2


class Gate(NamedTuple):
    """Rejection of contradicting tendons.

    Attributes:
        limit: maximum innovation [standard deviations].
        most: maximum number rejected.
    """

    limit: float
    most: int


class Innovations(NamedTuple):
    """Squared normalised innovations of an update.

    Attributes:
        nis: of all measurements.
        degrees: number of measurements.
        largest: largest squared leave-one-out innovation.
        used_nis: after the gate.
        used: number after the gate.
        dropped: rejected by the gate.
    """

    nis: float
    degrees: int
    largest: float
    used_nis: float
    used: int
    dropped: int


class AngleLimits(NamedTuple):
    """Angle limits (D,) [rad], and their variance as measurements [rad^2]."""

    lower: F1
    upper: F1
    variance: float


@inlined
def update(estimate: Estimate, measured: Measurements, gate: Gate, memory: UpdateMemory) -> Innovations:
    """Update with all measurements in use, rejecting those in contradiction."""
    m, n = measured.H.shape
    before, prior = estimate.P.reshape(-1), memory.P0.reshape(-1)
    # Keep the prior: every pass after a rejection starts from it.
    for a in range(n):
        memory.x0[a] = estimate.x[a]
    for a in range(n * n):
        prior[a] = before[a]
    # up to eight states one tile per block is cheaper than a sparsity test
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
        # The innovation test needs the statistics before any rejection.
        if dropped == 0:
            all_nis, all_count, largest = nis, count, size * size
        # Reject the worst measurement by its leave-one-out innovation and repeat from the prior.
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
    """Use measured tendons that are allowed, (M,) 1."""
    for i in range(allowed.shape[0]):
        # nu - nu is 0 only for finite nu.
        measured.use[i] = allowed[i] if measured.nu[i] - measured.nu[i] == 0.0 else 0


@kernel
def hold_limits(estimate: Estimate, limits: AngleLimits) -> int:
    """Pull angles beyond their limits back, as a measurement would; return their number.

    The covariance stays: a limit repeated at each step carries no information.
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
            # Kalman gain of a direct measurement of angle d at its limit.
            gain = e / (P[d, d] + limits.variance)
            for a in range(x.shape[0]):
                x[a] += gain * P[a, d]
            count += 1
    return count


@kernel
def copy_angles(to: Estimate, at: np.ndarray, owner: Estimate, there: np.ndarray) -> None:
    """Copy angles and covariance from another filter (Kawaharazuka 2018, eqs (8)-(10)).

    Args:
        to: changed.
        at: (k,) target indices.
        owner: source.
        there: (k,) source indices.
    """
    x, P = to.x, to.P
    for i in range(at.shape[0]):
        x[at[i]] = owner.x[there[i]]
        # The owner's errors have no known correlation with the rest of the state.
        for j in range(x.shape[0]):
            P[at[i], j] = 0.0
            P[j, at[i]] = 0.0
    for i in range(at.shape[0]):
        for j in range(at.shape[0]):
            P[at[i], at[j]] = owner.P[there[i], there[j]]
