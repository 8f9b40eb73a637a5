"""The polynomial regression on any postures: normal equations summed chunk by chunk."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.linalg.blas import dsyrk

from humanoid_control.errors import ConfigError
from humanoid_control.tendons.mappings.mapping import Array, FitReport, Geometry, MappingInterrupted, Progress
from humanoid_control.tendons.mappings.monomials import monomials, to_monomials
from humanoid_control.tendons.mappings.polynomial_kernels import legendre_rows
from humanoid_control.tendons.mappings.polynomial_mapping import PolynomialMapping
from humanoid_control.tendons.mappings.posture_grid import MAX_JOINTS, check_cost

_CHUNK = 8192


def fit_polynomial(
    geometry: Geometry,
    joint_names: Sequence[str],
    muscle_names: Sequence[str],
    limits: Array,
    postures: Array,
    degree: int = 5,
    ridge: float = 1e-12,
    model_hash: str = "",
    progress: Progress | None = None,
    max_joints: int = MAX_JOINTS,
) -> PolynomialMapping:
    """Least-squares polynomial of total degree P through the lengths at the postures given (S, D) [rad].

    The regression matrix is never held: its Gram matrix is summed over chunks, O(S m^2) in time and O(m^2) in memory.
    It is set up in products of Legendre polynomials, whose Gram matrix is near diagonal for spread-out postures.

    Args:
        ridge: added to the Gram matrix's diagonal, as a share of its mean.
        progress: called after each chunk; answering False interrupts.

    Raises:
        ConfigError: too many joints, or fewer postures than unknowns. MappingInterrupted: by `progress`.
    """
    limits = np.asarray(limits, float)
    check_cost([2] * limits.shape[0], degree, max_joints)
    begin = perf_counter()
    basis = monomials(len(limits), degree)
    m, n = len(basis.exponents), len(postures)
    if n < m:
        raise ConfigError(f"mapping: {n} postures for {m} unknowns of degree {degree}; give more, or a lower degree")
    centre, scale = limits.mean(axis=1), 2.0 / (limits[:, 1] - limits[:, 0])
    gram, right, squares = np.zeros((m, m), order="F"), np.zeros((m, len(muscle_names))), 0.0
    values, phi = np.empty((len(limits), degree + 1)), np.empty((min(n, _CHUNK), m))
    for start in range(0, n, _CHUNK):
        theta = postures[start : start + _CHUNK]
        rows = phi[: len(theta)]
        legendre_rows((theta - centre) * scale, basis.exponents, values, rows)
        lengths = geometry(theta)[0]
        gram = dsyrk(1.0, rows.T, beta=1.0, c=gram, overwrite_c=1)
        right += rows.T @ lengths
        squares += float(np.einsum("sm,sm->", lengths, lengths))
        done = min(start + _CHUNK, n)
        if progress is not None and progress(done / n) is False:
            raise MappingInterrupted(f"mapping: interrupted after {done} of {n} postures; nothing was kept")
    gram[np.diag_indices(m)] += ridge * np.trace(gram) / m
    try:
        coefficients = cho_solve(cho_factor(gram), right)
    except np.linalg.LinAlgError as error:
        raise ConfigError("mapping: the postures do not determine all monomials; spread them over the range") from error
    left = max(squares - float(np.einsum("am,am->", coefficients, right)), 0.0)
    tables = [_legendre_table(degree)] * len(limits)
    coefficients = to_monomials(basis, coefficients, tables)
    mapping = PolynomialMapping(basis, coefficients, joint_names, muscle_names, limits, model_hash)
    zero = float(np.abs(mapping.zero_offset - geometry(np.zeros((1, len(limits))))[0][0]).max())
    mapping.fit = FitReport(n, float(np.sqrt(left / (n * len(muscle_names)))), zero, perf_counter() - begin)
    return mapping


def _legendre_table(degree: int) -> Array:
    """(P + 1, P + 1): the coefficients of each Legendre polynomial, lowest power first."""
    table = np.zeros((degree + 1, degree + 1))
    for k in range(degree + 1):
        table[k, : k + 1] = np.polynomial.legendre.leg2poly(np.eye(degree + 1)[k])[: k + 1]
    return table
