"""Sets of monomials: which products of joint angles a polynomial of total degree P has, and how they hang together."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations_with_replacement

import numpy as np
from numpy.typing import NDArray

from humanoid_control.tendons.mappings.mapping import Ints


@dataclass(frozen=True)
class Monomials:
    """The monomials of D variables up to total degree P, lowest degree first.

    Attributes:
        exponents: (m, D) power of each variable in each monomial; row 0 is the constant.
        parent, variable: (m,) monomial a is monomial parent[a] times variable[a]; parent[a] < a.
        lower: (m, D) monomial with one power of d less, or -1 where d does not occur.
        low: number of monomials of degree < P; all derivatives are made of these.
    """

    exponents: Ints
    parent: Ints
    variable: Ints
    lower: Ints
    low: int

    @property
    def degree(self) -> int:
        """Total degree P."""
        return int(self.exponents.sum(axis=1).max())


def monomials(variables: int, degree: int, caps: Ints | None = None) -> Monomials:
    """All monomials of total degree <= P, (D + P choose P) of them; fewer when powers are capped.

    Args:
        variables: D. degree: P >= 1.
        caps: (D,) highest power of each variable, e.g. N - 1 where a grid has only N values.
    """
    rows = []
    for total in range(degree + 1):
        for picks in combinations_with_replacement(range(variables), total):
            row = np.bincount(np.array(picks, int), minlength=variables)
            if caps is None or (row <= caps).all():
                rows.append(row)
    exponents = np.array(rows, dtype=np.int64)
    at = {row.tobytes(): a for a, row in enumerate(exponents)}
    lower = np.full(exponents.shape, -1, dtype=np.int64)
    for a, row in enumerate(exponents):
        for d in np.flatnonzero(row):
            less = row.copy()
            less[d] -= 1
            lower[a, d] = at[less.tobytes()]
    variable = np.array([int(np.flatnonzero(r)[-1]) if r.any() else 0 for r in exponents], dtype=np.int64)
    parent = np.maximum(lower[np.arange(len(lower)), variable], 0)
    low = int((exponents.sum(axis=1) < degree).sum())
    return Monomials(exponents, parent, variable, lower, low)


def to_monomials(
    basis: Monomials, coefficients: NDArray[np.float64], tables: list[NDArray[np.float64]]
) -> NDArray[np.float64]:
    """Coefficients (m, M) of products of one-variable polynomials, turned into coefficients of monomials.

    Args:
        basis: which products there are; `exponents` are the degrees of the factors.
        coefficients: (m, M) of the products prod_d p_{exponents[a, d]}(x_d).
        tables: per variable (K, K): p_k(x) = sum_j table[k, j] x^j, lower triangular.
    """
    out = coefficients
    for d, table in enumerate(tables):
        new = np.zeros_like(out)
        source = np.arange(len(out))  # the monomial reached from each product by lowering the power of d step by step
        start = basis.exponents[:, d]
        for step in range(int(start.max()) + 1):
            reached = source >= 0
            k = start[reached]
            np.add.at(new, source[reached], table[k, k - step][:, None] * out[reached])
            source = np.where(reached, basis.lower[source, d], -1)
        out = new
    return out
