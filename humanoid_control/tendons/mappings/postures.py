"""Postures for fits, on grids or random, fit costs, and random walks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb, prod

import numpy as np

from humanoid_control.errors import ConfigError
from humanoid_control.tendons.mappings.mapping import Array

MAX_JOINTS = 8  # of a group; more are impractical (Kawaharazuka 2018, III-B)
MAX_POSTURES = 20_000_000
KEPT = 0.9  # retained velocity per step of a random walk


@dataclass(frozen=True)
class FitCost:
    """Cost of a polynomial fit.

    Attributes:
        postures: prod N_d.
        monomials: (D + P choose P) unknowns per muscle.
        seconds: at `seconds_per_posture`.
        dense_bytes: size of a regression matrix.
    """

    postures: int
    monomials: int
    seconds: float
    dense_bytes: int


def fit_cost(counts: Sequence[int], degree: int, seconds_per_posture: float = 2e-6) -> FitCost:
    """Return the cost of a grid with N_d values per joint at degree P (Kawaharazuka 2018, II-B)."""
    postures, m = prod(counts), comb(len(counts) + degree, degree)
    return FitCost(postures, m, postures * seconds_per_posture, 8 * postures * m)


def check_cost(counts: Sequence[int], degree: int, max_joints: int = MAX_JOINTS, budget: int = MAX_POSTURES) -> FitCost:
    """Return the cost if within bounds.

    Raises:
        ConfigError: if joints or postures exceed their maximum, or a count or the degree is too low.
    """
    if degree < 1 or min(counts, default=0) < 2:
        raise ConfigError(f"mapping: degree {degree} with counts {tuple(counts)}: degree >= 1 and counts >= 2 needed")
    if len(counts) > max_joints:
        raise ConfigError(
            f"mapping: {len(counts)} joints in one group, at most {max_joints}; split the group, or use a network or "
            "a table"
        )
    cost = fit_cost(counts, degree)
    if cost.postures > budget:
        raise ConfigError(
            f"mapping: a grid of {cost.postures:,} postures is beyond the budget of {budget:,}; use fewer values per "
            "joint, a smaller group, or random postures"
        )
    return cost


def grid_axes(limits: Array, counts: Sequence[int]) -> list[Array]:
    """Return N_d even angles over each range (D, 2), ends included [rad]."""
    return [np.linspace(lo, hi, n) for (lo, hi), n in zip(limits, counts, strict=True)]


def grid_postures(axes: Sequence[Array]) -> Array:
    """Return all combinations (prod N_d, D) [rad], last joint fastest."""
    mesh = np.meshgrid(*axes, indexing="ij")
    return np.stack([m.reshape(-1) for m in mesh], axis=1)


def random_postures(limits: Array, n: int, seed: int = 0) -> Array:
    """Return uniform angles (n, D) within limits (D, 2) [rad]."""
    return np.random.default_rng(seed).uniform(limits[:, 0], limits[:, 1], (n, len(limits)))


def counts_by_range(limits: Array, fewest: int = 5, most: int = 9) -> tuple[int, ...]:
    """Return grid sizes N_d by joint range (D, 2); 5 to 9 as in Kawaharazuka 2018, V-A."""
    span = limits[:, 1] - limits[:, 0]
    share = (span - span.min()) / max(span.max() - span.min(), 1e-12)
    return tuple(round(float(fewest + (most - fewest) * s)) for s in share)


def random_walk(limits: Array, start: Array, steps: int, sigma: float, seed: int = 0) -> Array:
    """Return a random walk (steps + 1, D) [rad] from start (D,), reflected at limits (D, 2).

    Steps are v <- 0.9 v + sqrt(1 - 0.81) sigma xi, xi normal, of standard deviation sigma [rad].

    Raises:
        ConfigError: if the start is beyond limits, or sigma is negative or at least a tenth of a range.
    """
    limits, start = np.asarray(limits, float), np.asarray(start, float)
    low, high = limits.T
    if start.shape != low.shape or not ((low <= start) & (start <= high)).all():
        raise ConfigError(f"random walk: start {np.round(start, 3).tolist()} is not within the joint limits")
    if not 0 <= sigma < 0.1 * (high - low).min():
        raise ConfigError(f"random walk: sigma {sigma} rad must be from 0 to a tenth of the smallest range of a joint")
    rng = np.random.default_rng(seed)
    q, v = start.copy(), np.zeros(len(start))
    out = np.empty((steps + 1, len(start)))
    out[0] = q
    for k in range(1, steps + 1):
        v = KEPT * v + np.sqrt(1.0 - KEPT**2) * sigma * rng.standard_normal(len(v))
        q = q + v
        beyond = np.where(q < low, low - q, np.where(q > high, high - q, 0.0))
        q = np.clip(q + 2.0 * beyond, low, high)
        v = np.where(beyond != 0.0, -v, v)
        out[k] = q
    return out
