"""Distribution of joint torques over tensions: exact where tendons can give the torques, nearest where they cannot.

minimise  1/2 sum_i w_i (f_i - b_i)^2 + 1/(2 eps) |G^T f + tau|^2
subject to  least <= f <= most

G = dl/dq are the moment arms, so that tensions f give the joint torques -G^T f, and tau are the torques to be given.
One program serves full, rank-deficient and infeasible cases: torque that no tensions give is missed by the least
squares, `missed = G^T f + tau` tells how much. With eps = 1e-6 the torque missed in feasible cases stays below
0.01 N m. Weights count relative to their mean, so that eps keeps its meaning in every unit of the weights.

With linear wires, co-contraction (a bias b above the least tension) does not stiffen a joint: only the change of the
moment arms dG/dq does, often with the wrong sign.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from humanoid_control.errors import ConfigError, NotANumberError, SizeError
from humanoid_control.jit import kernel
from humanoid_control.numerics.array_types import B1, F1, F2, I1
from humanoid_control.numerics.box_program import BoxQp, Guess
from humanoid_control.numerics.box_qp import solve_box_qp_from
from humanoid_control.numerics.finite import all_finite
from humanoid_control.numerics.packed import Packed, Table, unpack

EPS = 1e-6  # price of a tension against that of a missed torque, weights of 1 / N^2
STRONGEST = 1e4  # [N] of a tendon without a greatest tension: the quadratic program needs a box of finite size


class DistributionTables(NamedTuple):
    """Arrays of a distribution of D torques over M tensions.

    Attributes:
        least, most: (M,) range of the tensions [N]. weight: (M,) >= 0, price of a tension away from its bias.
        bias: (M,) b [N]. tau: (D,) torques that the tendons have to give [N m].
        f: (M,) tensions [N]. missed: (D,) torque that they do not give [N m].
        H: (M, M). g: (M,). multipliers: (M + 1,). no_rows: (1, M). no_bound: (1,): of the quadratic program.
        side: (M,) which bound holds a tension, guess of the next solution. works: (1,).
    """

    least: F1
    most: F1
    weight: F1
    bias: F1
    tau: F1
    f: F1
    missed: F1
    H: F2
    g: F1
    multipliers: F1
    no_rows: F2
    no_bound: F1
    side: I1
    works: B1


def distribution_tables(least: np.ndarray, most: np.ndarray, weight: np.ndarray, joints: int) -> DistributionTables:
    """Return tables to be filled.

    Args:
        least, most: (M,) range of the tensions [N]. weight: (M,). joints: D.
    """
    m = len(least)
    return DistributionTables(
        least=np.array(least, dtype=float),
        most=np.array(most, dtype=float),
        weight=np.array(weight, dtype=float),
        bias=np.array(least, dtype=float),
        tau=np.zeros(joints),
        f=np.array(least, dtype=float),
        missed=np.zeros(joints),
        H=np.zeros((m, m)),
        g=np.zeros(m),
        multipliers=np.zeros(m + 1),
        no_rows=np.zeros((1, m)),
        no_bound=np.zeros(1),
        side=np.ones(m, dtype=np.int64),  # most tensions of a solution are the least ones
        works=np.zeros(1, dtype=np.bool_),
    )


@kernel
def distribute(t: DistributionTables, G: np.ndarray) -> int:
    """Fill `f` and `missed` of the tables by the program of this file.

    Args:
        t: tables; `tau`, `bias`, `weight` and the range are read. G: (M, D) moment arms [m].

    Returns:
        iterations used; below 0 where numbers are not finite or no solution was found: `f` is then inside its range.
    """
    m, d = G.shape
    mean = 0.0
    for i in range(m):
        mean += t.weight[i]
    mean = mean / m if mean > 0.0 else 1.0
    for i in range(m):
        at = 0.0
        for k in range(d):
            at += G[i, k] * t.tau[k]
        w = t.weight[i] / mean + 1e-9  # a tension without any price is still determined
        t.g[i] = at / EPS - w * t.bias[i]
        for j in range(i + 1):
            total = 0.0
            for k in range(d):
                total += G[i, k] * G[j, k]
            t.H[i, j] = total / EPS
        t.H[i, i] += w
    problem = BoxQp(t.H, t.g, t.least, t.most, t.no_rows, t.no_bound)
    used = solve_box_qp_from(problem, 0, 1.0, t.f, t.multipliers, Guess(t.side, t.works))
    for i in range(m):
        if not np.isfinite(t.f[i]):
            used = min(used, -1)
            t.f[i] = t.least[i]
    for k in range(d):
        total = t.tau[k]
        for i in range(m):
            total += G[i, k] * t.f[i]
        t.missed[k] = total
    if used < 0:
        t.side[:] = 1
    return used


@kernel
def distribute_at(table: Table[DistributionTables], G: np.ndarray) -> int:
    """As `distribute`, of the packed tables."""
    return distribute(unpack(table, DistributionTables), G)


class TensionDistribution:
    """Tensions of M tendons for the torques of D joints, from the last solution's guess.

    Attributes:
        least, most: (M,) range of the tensions [N]. weight: (M,) price of each tension. They may be changed in place:
            a tendon that is left out has most = least.
        missed: (D,) torque that the tendons do not give [N m], G^T f + tau.
        used: iterations of the last program; below 0 where it had no solution.
    """

    def __init__(self, joints: int, least: np.ndarray, most: np.ndarray, weight: np.ndarray | None = None) -> None:
        """Create the tension distribution.

        Args:
            joints: D. least, most: (M,) range of the tensions [N]. weight: (M,); default 1 of each.

        Raises:
            SizeError: arrays of different sizes. ConfigError: a tendon whose least tension is below 0 or above its
                most, a weight below 0. NotANumberError: not a number.
        """
        least, most = np.array(least, dtype=float), np.minimum(most, STRONGEST)
        weight = np.ones(len(least)) if weight is None else np.array(weight, dtype=float)
        for what, row in (("most", most), ("weight", weight)):
            if row.shape != least.shape:
                raise SizeError(f"tension distribution: {what} must be {least.shape}, got {row.shape}")
        for what, row in (("least", least), ("most", most), ("weight", weight)):
            bad = ~np.isfinite(row)
            if bad.any():
                raise NotANumberError(f"tension distribution: {what} of tendon {int(np.argmax(bad))} is not a number")
        for bad, words in (
            (least < 0, "has a least tension below 0"),
            (least > most, "has a least tension above its most"),
            (weight < 0, "has a weight below 0"),
        ):
            if bad.any():
                raise ConfigError(f"tension distribution: tendon {int(np.argmax(bad))} {words}")
        self.packed = Packed(distribution_tables(least, most, weight, joints))
        t = self.packed.record
        self.least, self.most, self.weight, self.missed, self.tensions = t.least, t.most, t.weight, t.missed, t.f
        self.used = 0

    def solve(self, G: np.ndarray, tau: np.ndarray, bias: np.ndarray | None = None) -> np.ndarray:
        """Return the tensions (M,) [N] for torques, in an array that is used again.

        Args:
            G: (M, D) moment arms dl/dq [m]. tau: (D,) torques that the tendons have to give [N m].
            bias: (M,) tensions to be near to [N]; default: the least ones.

        Raises:
            SizeError: another shape. NotANumberError: a number that is not finite.
        """
        t = self.packed.record
        shape = len(t.least), len(t.tau)
        if G.shape != shape or np.shape(tau) != shape[1:]:
            raise SizeError(
                f"tension distribution: needs G {shape} and tau ({shape[1]},), got {G.shape} and {np.shape(tau)}"
            )
        t.tau[:], t.bias[:] = tau, t.least if bias is None else bias
        for what, numbers in (("G", G), ("tau", t.tau), ("bias", t.bias), ("most", t.most), ("weight", t.weight)):
            if not all_finite(numbers):
                raise NotANumberError(f"tension distribution: {what} contains a value that is not finite")
        if (t.least > t.most).any():
            raise ConfigError(
                f"tension distribution: tendon {int(np.argmax(t.least > t.most))} has a least tension above its most"
            )
        self.used = int(distribute_at(self.packed.table, np.ascontiguousarray(G, dtype=float)))
        return t.f
