"""Distribution of joint torques over tensions, exact if feasible, else least squares.

minimise  1/2 sum_i w_i (f_i - b_i)^2 + 1/(2 eps) |G^T f + tau|^2
subject to  least <= f <= most

G = dl/dq; tensions f give joint torques -G^T f; `missed = G^T f + tau` is below 0.01 N m if feasible. Weights are
relative to their mean.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from humanoid_control.compiled.array_types import B1, F1, F2, I1
from humanoid_control.compiled.jit import kernel
from humanoid_control.compiled.packed import Packed, Table, unpack
from humanoid_control.errors import ConfigError, NotANumberError, SizeError
from humanoid_control.numerics.box_program import BoxQp, Guess
from humanoid_control.numerics.box_qp import solve_box_qp_from
from humanoid_control.numerics.finite import all_finite

EPS = 1e-6  # cost of tension relative to missed torque, for weights in 1 / N^2
STRONGEST = 1e4  # [N] default maximum: the quadratic program needs a finite box


class DistributionTables(NamedTuple):
    """Arrays of a distribution of D torques over M tensions; `H` to `no_bound` are the quadratic program.

    Attributes:
        least: (M,) [N].
        most: (M,) [N].
        weight: (M,) w >= 0.
        bias: (M,) b [N].
        tau: (D,) required [N m].
        f: (M,) tensions [N].
        missed: (D,) [N m].
        side: (M,) active bounds, for warm starts.
        works: (1,) warm start is valid.
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
    """Return tables for M tendons and `joints` torques."""
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
        side=np.ones(m, dtype=np.int64),  # most tensions of a solution are at their minimum
        works=np.zeros(1, dtype=np.bool_),
    )


@kernel
def distribute(t: DistributionTables, G: np.ndarray) -> int:
    """Fill `f` and `missed` from `tau`, `bias`, `weight`, the range and moment arms G (M, D) [m].

    Returns:
        Iterations; negative without a solution, with `f` still in range.
    """
    m, d = G.shape
    # Relative weights keep the meaning of EPS independent of their unit.
    mean = 0.0
    for i in range(m):
        mean += t.weight[i]
    mean = mean / m if mean > 0.0 else 1.0
    for i in range(m):
        at = 0.0
        for k in range(d):
            at += G[i, k] * t.tau[k]
        w = t.weight[i] / mean + 1e-9  # a tension without weight stays determined
        # Normal form of the program above: H = W + G G^T / eps, g = G tau / eps - W b.
        t.g[i] = at / EPS - w * t.bias[i]
        # Lower triangle only: the solver reads H as symmetric.
        for j in range(i + 1):
            total = 0.0
            for k in range(d):
                total += G[i, k] * G[j, k]
            t.H[i, j] = total / EPS
        t.H[i, i] += w
    # No inequality rows: the box of tensions is the only constraint.
    problem = BoxQp(t.H, t.g, t.least, t.most, t.no_rows, t.no_bound)
    used = solve_box_qp_from(problem, 0, 1.0, t.f, t.multipliers, Guess(t.side, t.works))
    # A failed solve leaves finite tensions within their range.
    for i in range(m):
        if not np.isfinite(t.f[i]):
            used = min(used, -1)
            t.f[i] = t.least[i]
    for k in range(d):
        total = t.tau[k]
        for i in range(m):
            total += G[i, k] * t.f[i]
        t.missed[k] = total
    # Discard the warm start of a failed solve.
    if used < 0:
        t.side[:] = 1
    return used


@kernel
def distribute_at(table: Table[DistributionTables], G: np.ndarray) -> int:
    return distribute(unpack(table, DistributionTables), G)


class TensionDistribution:
    """Warm-started tensions of M tendons for torques of D joints.

    Attributes:
        least: (M,) [N], changeable in place.
        most: (M,) [N], changeable in place; `least` leaves a tendon out.
        weight: (M,), changeable in place.
        missed: (D,) G^T f + tau [N m].
        used: iterations; negative without a solution.
    """

    def __init__(self, joints: int, least: np.ndarray, most: np.ndarray, weight: np.ndarray | None = None) -> None:
        """Create the distribution for D `joints`.

        Args:
            joints: D.
            least: (M,) [N].
            most: (M,) [N].
            weight: (M,); default: 1.

        Raises:
            SizeError: if sizes differ.
            ConfigError: if a minimum tension is negative or above its maximum, or a weight negative.
            NotANumberError: if a value is not finite.
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
            (least < 0, "has a minimum tension below 0"),
            (least > most, "has a minimum tension above its maximum"),
            (weight < 0, "has a weight below 0"),
        ):
            if bad.any():
                raise ConfigError(f"tension distribution: tendon {int(np.argmax(bad))} {words}")
        self.packed = Packed(distribution_tables(least, most, weight, joints))
        t = self.packed.record
        self.least, self.most, self.weight, self.missed, self.tensions = t.least, t.most, t.weight, t.missed, t.f
        self.used = 0

    def solve(self, G: np.ndarray, tau: np.ndarray, bias: np.ndarray | None = None) -> np.ndarray:
        """Return tensions (M,) [N], in a reused array.

        Args:
            G: moment arms dl/dq (M, D) [m].
            tau: required torques (D,) [N m].
            bias: preferred tensions (M,) [N]; default: minimum.

        Raises:
            SizeError: if a shape is wrong.
            NotANumberError: if a value is not finite.
            ConfigError: if a minimum tension exceeds its maximum.
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
                raise NotANumberError(f"tension distribution: {what} contains a non-finite value")
        if (t.least > t.most).any():
            raise ConfigError(
                f"tension distribution: tendon {int(np.argmax(t.least > t.most))} has a minimum tension above its "
                "maximum"
            )
        self.used = int(distribute_at(self.packed.table, np.ascontiguousarray(G, dtype=float)))
        return t.f
