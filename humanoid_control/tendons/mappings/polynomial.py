"""Polynomial joint-muscle mapping (Kawaharazuka 2018, eq. (4)): basis, kernels and fits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement
from math import prod
from time import perf_counter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from humanoid_control.compiled.array_types import F1, F2, I1
from humanoid_control.compiled.jit import kernel
from humanoid_control.compiled.packed import Packed, Table, unpack
from humanoid_control.errors import ConfigError
from humanoid_control.tendons.mappings.mapping import (
    Array,
    FitReport,
    FitTarget,
    Ints,
    JointMuscleMapping,
    MappingInterrupted,
    Progress,
)
from humanoid_control.tendons.mappings.postures import MAX_JOINTS, check_cost, grid_axes, grid_postures

CHUNK = 8192  # postures per chunk of the normal equations
BLOCK = 40_000  # grid postures per evaluation


@dataclass(frozen=True)
class Monomials:
    """Monomials of D variables up to total degree P, in order of degree.

    Attributes:
        exponents: (m, D) powers; row 0 is the constant.
        parent: (m,) monomial a is parent[a] times variable[a], parent[a] < a.
        variable: (m,).
        lower: (m, D) monomial with one power of d less, or -1.
        low: number of monomials of degree < P, the basis of all derivatives.
    """

    exponents: Ints
    parent: Ints
    variable: Ints
    lower: Ints
    low: int

    @property
    def degree(self) -> int:
        return int(self.exponents.sum(axis=1).max())


def monomials(variables: int, degree: int, caps: Ints | None = None) -> Monomials:
    """Return all (D + P choose P) monomials of total degree <= P, fewer with caps.

    Args:
        variables: D.
        degree: P >= 1.
        caps: (D,) maximum powers, e.g. N - 1 for a grid of N values.
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
    """Convert coefficients (m, M) of products prod_d p_{exponents[a, d]}(x_d) to monomials.

    Args:
        basis: `exponents` are the degrees of the factors.
        coefficients: (m, M).
        tables: per variable (K, K), lower triangular: p_k(x) = sum_j table[k, j] x^j.
    """
    out = coefficients
    for d, table in enumerate(tables):
        new = np.zeros_like(out)
        source = np.arange(len(out))  # monomial reached from each product by lowering the power of d
        start = basis.exponents[:, d]
        for step in range(int(start.max()) + 1):
            reached = source >= 0
            k = start[reached]
            np.add.at(new, source[reached], table[k, k - step][:, None] * out[reached])
            source = np.where(reached, basis.lower[source, d], -1)
        out = new
    return out


# -------- Evaluation


class Polynomials(NamedTuple):
    """Polynomials of D angles for kernels.

    Attributes:
        centre: (D,) variables are (theta - centre) * scale, within [-1, 1].
        scale: (D,).
        parent: (m,).
        variable: (m,).
        C: (m, M) coefficients of lengths.
        Cd: (low, M * D) coefficients of gradients.
        phi: (m,) memory.
        dphi: (low,) memory.
    """

    centre: F1
    scale: F1
    parent: I1
    variable: I1
    C: F2
    Cd: F2
    phi: F1
    dphi: F1


@kernel
def evaluate(theta: np.ndarray, p: Polynomials, lengths: np.ndarray, jacobian: np.ndarray) -> None:
    """Fill lengths (M,) and gradients (M, D) at theta (D,) [rad]."""
    phi = p.phi
    phi[0] = 1.0
    # Each monomial costs one product with its parent.
    for a in range(1, phi.shape[0]):
        d = p.variable[a]
        phi[a] = phi[p.parent[a]] * ((theta[d] - p.centre[d]) * p.scale[d])
    # Lengths and gradients share the monomials: one pass over the basis.
    _combine(phi, p.C, lengths)
    _combine(phi, p.Cd, jacobian.reshape(-1))


@kernel
def directional(theta: np.ndarray, v: np.ndarray, p: Polynomials, out: np.ndarray) -> None:
    """Fill the derivative of the gradients along v (D,), (M, D)."""
    phi, dphi = p.phi, p.dphi
    phi[0] = 1.0
    dphi[0] = 0.0
    # Forward differentiation of the monomials by the product rule.
    # Gradients need only monomials of degree < P, which come first.
    for a in range(1, p.Cd.shape[0]):
        d, up = p.variable[a], p.parent[a]
        x = (theta[d] - p.centre[d]) * p.scale[d]
        phi[a] = phi[up] * x
        dphi[a] = dphi[up] * x + phi[up] * v[d] * p.scale[d]
    _combine(dphi, p.Cd, out.reshape(-1))


@kernel
def evaluate_rows(thetas: np.ndarray, p: Polynomials, lengths: np.ndarray, jacobians: np.ndarray) -> None:
    for s in range(thetas.shape[0]):
        evaluate(thetas[s], p, lengths[s], jacobians[s])


@kernel
def evaluate_at(theta: np.ndarray, table: Table[Polynomials], lengths: np.ndarray, jacobian: np.ndarray) -> None:
    evaluate(theta, unpack(table, Polynomials), lengths, jacobian)


@kernel
def directional_at(theta: np.ndarray, v: np.ndarray, table: Table[Polynomials], out: np.ndarray) -> None:
    directional(theta, v, unpack(table, Polynomials), out)


@kernel
def _combine(phi: np.ndarray, C: np.ndarray, out: np.ndarray) -> None:
    n = out.shape[0]
    for i in range(n):
        out[i] = C[0, i] * phi[0]
    rows = C.shape[0]
    a = 1
    while a + 3 < rows:  # four rows at once need a quarter of the memory traffic for out
        p0, p1, p2, p3 = phi[a], phi[a + 1], phi[a + 2], phi[a + 3]
        for i in range(n):
            out[i] += (p0 * C[a, i] + p1 * C[a + 1, i]) + (p2 * C[a + 2, i] + p3 * C[a + 3, i])
        a += 4
    while a < rows:
        for i in range(n):
            out[i] += phi[a] * C[a, i]
        a += 1


@kernel
def legendre_rows(x: np.ndarray, exponents: np.ndarray, values: np.ndarray, out: np.ndarray) -> None:
    """Fill out (S, m) with products of Legendre polynomials at x (S, D) in [-1, 1], degrees (m, D)."""
    degree = values.shape[1] - 1
    for s in range(x.shape[0]):
        # Legendre polynomials keep the Gram matrix nearly diagonal.
        for d in range(x.shape[1]):
            values[d, 0] = 1.0
            if degree > 0:
                values[d, 1] = x[s, d]
            # Bonnet's recursion.
            for k in range(1, degree):
                values[d, k + 1] = ((2 * k + 1) * x[s, d] * values[d, k] - k * values[d, k - 1]) / (k + 1)
        for a in range(exponents.shape[0]):
            p = 1.0
            for d in range(x.shape[1]):
                if exponents[a, d] != 0:
                    p *= values[d, exponents[a, d]]
            out[s, a] = p


# -------- The mapping


class PolynomialMapping(JointMuscleMapping):
    """L = Phi C, with Phi the monomials of the joint angles, scaled to [-1, 1] over their ranges.

    This corrects eq. (4) of Kawaharazuka 2018, which has mismatched factors as printed. The value at the zero posture
    is subtracted, so f(0) = 0.

    Attributes:
        basis: monomials.
        coefficients: (m, M) [m] of the scaled variables.
    """

    kind = "polynomial"

    def __init__(
        self,
        basis: Monomials,
        coefficients: Array,
        joint_names: Sequence[str],
        muscle_names: Sequence[str],
        limits: Array,
        model_hash: str = "",
        fit: FitReport | None = None,
    ) -> None:
        super().__init__(joint_names, muscle_names, limits, model_hash, fit)
        if coefficients.shape != (len(basis.exponents), len(self.muscle_names)):
            expected = (len(basis.exponents), len(self.muscle_names))
            raise ConfigError(f"polynomial mapping: coefficients must be {expected}, got {coefficients.shape}")
        self.basis = basis
        self.centre = self.limits.mean(axis=1)
        self.scale = 2.0 / (self.limits[:, 1] - self.limits[:, 0])
        self.coefficients = np.ascontiguousarray(coefficients, float).copy()
        memory = (np.empty(len(basis.exponents)), np.empty(basis.low))
        self._packed = Packed(
            Polynomials(
                self.centre, self.scale, basis.parent, basis.variable, self.coefficients, self._differentiate(), *memory
            )
        )
        self.zero_offset = self.lengths(np.zeros(len(self.joint_names)))  # (M,) [m], subtracted
        self.coefficients[0] -= self.zero_offset

    def _differentiate(self) -> Array:
        m, d = len(self.muscle_names), len(self.joint_names)
        out = np.zeros((self.basis.low, m, d))
        for j in range(d):
            rows = np.flatnonzero(self.basis.lower[:, j] >= 0)
            powers = self.basis.exponents[rows, j]
            out[self.basis.lower[rows, j], :, j] = powers[:, None] * self.coefficients[rows] * self.scale[j]
        return np.ascontiguousarray(out.reshape(self.basis.low, m * d))

    @property
    def degree(self) -> int:
        return self.basis.degree

    def evaluate_into(self, theta: Array, lengths: Array, jacobian: Array) -> None:
        evaluate_at(theta, self._packed.table, lengths, jacobian)

    def directional_into(self, theta: Array, v: Array, out: Array) -> None:
        directional_at(theta, v, self._packed.table, out)

    def _evaluate_rows(self, rows: Array) -> tuple[Array, Array]:
        lengths = np.empty((len(rows), len(self.muscle_names)))
        jacobians = np.empty((*lengths.shape, len(self.joint_names)))
        evaluate_rows(rows, self._packed.record, lengths, jacobians)
        return lengths, jacobians


# -------- Regression on any postures


def fit_polynomial(
    target: FitTarget,
    postures: Array,
    degree: int = 5,
    ridge: float = 1e-12,
    progress: Progress | None = None,
    max_joints: int = MAX_JOINTS,
) -> PolynomialMapping:
    """Return the least-squares polynomial of total degree P at any postures (S, D) [rad].

    Args:
        target: lengths to fit.
        postures: (S, D).
        degree: P.
        ridge: added to the Gram diagonal, relative to its mean.
        max_joints: maximum D.

    Raises:
        ConfigError: if there are too many joints or too few postures.
        MappingInterrupted: by `progress`.
    """
    limits = np.asarray(target.limits, float)
    check_cost([2] * limits.shape[0], degree, max_joints)
    begin = perf_counter()
    basis = monomials(len(limits), degree)
    m, n, muscles = len(basis.exponents), len(postures), len(target.muscle_names)
    if n < m:
        raise ConfigError(f"mapping: {n} postures for {m} unknowns of degree {degree}; give more, or a lower degree")
    centre, scale = limits.mean(axis=1), 2.0 / (limits[:, 1] - limits[:, 0])
    # Only the Gram matrix is stored, summed over chunks: O(S m^2) time, O(m^2) memory. In Legendre products it is
    # nearly diagonal for spread postures.
    gram, right, squares = np.zeros((m, m), order="F"), np.zeros((m, muscles)), 0.0
    values, phi = np.empty((len(limits), degree + 1)), np.empty((min(n, CHUNK), m))
    from scipy.linalg import blas, cho_factor, cho_solve  # slow to import and rarely needed

    for start in range(0, n, CHUNK):
        theta = postures[start : start + CHUNK]
        rows = phi[: len(theta)]
        legendre_rows((theta - centre) * scale, basis.exponents, values, rows)
        lengths = target.geometry(theta)[0]
        gram = blas.dsyrk(1.0, rows.T, beta=1.0, c=gram, overwrite_c=1)
        right += rows.T @ lengths
        squares += float(np.einsum("sm,sm->", lengths, lengths))
        done = min(start + CHUNK, n)
        if progress is not None and progress(done / n) is False:
            raise MappingInterrupted(f"mapping: interrupted after {done} of {n} postures; nothing was kept")
    gram[np.diag_indices(m)] += ridge * np.trace(gram) / m
    try:
        coefficients = cho_solve(cho_factor(gram), right)
    except np.linalg.LinAlgError as error:
        raise ConfigError("mapping: the postures do not determine all monomials; spread them over the range") from error
    left = max(squares - float(np.einsum("am,am->", coefficients, right)), 0.0)
    coefficients = to_monomials(basis, coefficients, [_legendre_table(degree)] * len(limits))
    return _fitted(target, basis, coefficients, FitReport(n, float(np.sqrt(left / (n * muscles))), 0.0, 0.0), begin)


def _fitted(
    target: FitTarget, basis: Monomials, coefficients: Array, report: FitReport, begin: float
) -> PolynomialMapping:
    limits = np.asarray(target.limits, float)
    mapping = PolynomialMapping(basis, coefficients, target.joint_names, target.muscle_names, limits, target.model_hash)
    # The subtracted offset includes the posture's own length: compare with the geometry.
    there = target.geometry(np.zeros((1, len(limits))))[0][0]
    zero = float(np.abs(mapping.zero_offset - there).max())
    mapping.fit = replace(report, zero_error=zero, seconds=perf_counter() - begin)
    return mapping


def _legendre_table(degree: int) -> Array:
    """Return Legendre coefficients (P + 1, P + 1), lowest power first."""
    table = np.zeros((degree + 1, degree + 1))
    for k in range(degree + 1):
        table[k, : k + 1] = np.polynomial.legendre.leg2poly(np.eye(degree + 1)[k])[: k + 1]
    return table


# -------- Regression on a full grid


def fit_polynomial_on_grid(
    target: FitTarget,
    counts: Sequence[int],
    degree: int = 5,
    progress: Progress | None = None,
    max_joints: int = MAX_JOINTS,
) -> PolynomialMapping:
    """Return the least-squares polynomial of total degree P on a full grid, evaluated blockwise.

    Args:
        target: lengths to fit.
        counts: N_d per joint.
        degree: P.
        max_joints: maximum D.

    Raises:
        ConfigError: if there are too many joints or postures.
        MappingInterrupted: by `progress`.
    """
    check_cost(counts, degree, max_joints)
    begin = perf_counter()
    # N values of a joint cannot separate powers >= N from lower ones; without them the fit on the grid is the same.
    caps = np.minimum(np.array(counts) - 1, degree)
    factors, tables = zip(*(_orthonormal(n, k + 1) for n, k in zip(counts, caps, strict=True)), strict=True)
    lead = next(k for k in range(len(counts)) if prod(counts[k:]) <= BLOCK or k == len(counts) - 1)
    inner = monomials(len(counts) - lead, degree, caps[lead:])
    basis = monomials(len(counts), degree, caps)
    sums, squares = _block_sums(target, counts, factors[lead:], inner, progress)
    whole = _contract(sums.reshape(*counts[:lead], *sums.shape[1:]), factors[:lead])
    at = {row.tobytes(): i for i, row in enumerate(inner.exponents)}
    rows = np.array([at[np.ascontiguousarray(e).tobytes()] for e in basis.exponents[:, lead:]])
    picks = (*basis.exponents[:, :lead].T, rows)
    coefficients = whole[picks]
    n = prod(counts)
    left = max(squares - float(np.einsum("am,am->", coefficients, coefficients)), 0.0)
    rms = float(np.sqrt(left / (n * len(target.muscle_names))))
    return _fitted(target, basis, to_monomials(basis, coefficients, list(tables)), FitReport(n, rms, 0.0, 0.0), begin)


def _block_sums(
    target: FitTarget, counts: Sequence[int], factors: Sequence[Array], inner: Monomials, progress: Progress | None
) -> tuple[Array, float]:
    """Contract the lengths of each grid block with the factors of its axes.

    Returns:
        Sums (blocks, inner powers, M) [m], and the sum of squared lengths [m^2].
    """
    axes, lead = grid_axes(np.asarray(target.limits, float), counts), len(counts) - len(factors)
    block = np.empty((prod(counts[lead:]), len(counts)))
    block[:, lead:] = grid_postures(axes[lead:])
    outer = grid_postures(axes[:lead]) if lead else np.empty((1, 0))
    sums = np.empty((len(outer), len(inner.exponents), len(target.muscle_names)))
    squares = 0.0
    for b, angles in enumerate(outer):
        block[:, :lead] = angles
        lengths = target.geometry(block)[0]
        squares += float(np.einsum("sm,sm->", lengths, lengths))
        tensor = lengths.reshape(*counts[lead:], -1)
        sums[b] = _contract(tensor, factors)[tuple(inner.exponents.T)]
        if progress is not None and progress((b + 1) / len(outer)) is False:
            raise MappingInterrupted(f"mapping: interrupted after {b + 1} of {len(outer)} blocks; nothing was kept")
    return sums, squares


def _orthonormal(n: int, k: int) -> tuple[Array, Array]:
    """Return k polynomials orthonormal on n even points of [-1, 1]: values (n, k), coefficients (k, k)."""
    powers = np.vander(np.linspace(-1.0, 1.0, n), k, increasing=True)
    q, r = np.linalg.qr(powers)
    return q, np.linalg.inv(r).T


def _contract(tensor: Array, factors: Sequence[Array]) -> Array:
    """Contract each leading axis with its factor (N, K), keeping the order of axes."""
    for factor in factors:
        tensor = np.moveaxis(np.tensordot(factor, tensor, axes=(0, 0)), 0, len(factors) - 1)
    return tensor
