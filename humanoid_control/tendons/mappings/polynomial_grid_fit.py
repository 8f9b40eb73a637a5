"""The polynomial regression on a full grid, axis by axis: the same answer as the regression matrix, without it.

On a grid the products of polynomials that are orthonormal on each axis are orthonormal on the grid. The least-squares
coefficients are then inner products with the lengths, and these are sums over one axis at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from time import perf_counter

import numpy as np

from humanoid_control.tendons.mappings.mapping import Array, FitReport, Geometry, MappingInterrupted, Progress
from humanoid_control.tendons.mappings.monomials import monomials, to_monomials
from humanoid_control.tendons.mappings.polynomial_mapping import PolynomialMapping
from humanoid_control.tendons.mappings.posture_grid import MAX_JOINTS, check_cost, grid_axes, grid_postures

_BLOCK = 40_000  # postures evaluated at once


def fit_polynomial_on_grid(
    geometry: Geometry,
    joint_names: Sequence[str],
    muscle_names: Sequence[str],
    limits: Array,
    counts: Sequence[int],
    degree: int = 5,
    model_hash: str = "",
    progress: Progress | None = None,
    max_joints: int = MAX_JOINTS,
) -> PolynomialMapping:
    """Least-squares polynomial of total degree P through the lengths at all postures of a grid.

    A joint with N values cannot tell powers from N on apart from lower ones; these monomials are left out, which does
    not change the fit on the grid. The lengths are evaluated block by block and never kept.

    Args:
        geometry: gives the lengths; only their first output is used, so that it may leave the Jacobians empty.
        limits: (D, 2) [rad]. counts: N_d per joint.
        progress: called after each block; answering False interrupts.

    Raises:
        ConfigError: too many joints or postures. MappingInterrupted: by `progress`.
    """
    check_cost(counts, degree, max_joints)
    begin = perf_counter()
    limits = np.asarray(limits, float)
    axes = grid_axes(limits, counts)
    caps = np.minimum(np.array(counts) - 1, degree)
    factors, tables = zip(*(_orthonormal(n, k + 1) for n, k in zip(counts, caps, strict=True)), strict=True)
    lead = next(k for k in range(len(counts)) if prod(counts[k:]) <= _BLOCK or k == len(counts) - 1)
    inner = monomials(len(counts) - lead, degree, caps[lead:])
    basis = monomials(len(counts), degree, caps)
    block = np.empty((prod(counts[lead:]), len(counts)))
    block[:, lead:] = grid_postures(axes[lead:])
    outer = grid_postures(axes[:lead]) if lead else np.empty((1, 0))
    sums = np.empty((len(outer), len(inner.exponents), len(muscle_names)))
    squares = 0.0
    for b, angles in enumerate(outer):
        block[:, :lead] = angles
        lengths = geometry(block)[0]
        squares += float(np.einsum("sm,sm->", lengths, lengths))
        tensor = lengths.reshape(*counts[lead:], -1)
        sums[b] = _contract(tensor, factors[lead:])[tuple(inner.exponents.T)]
        if progress is not None and progress((b + 1) / len(outer)) is False:
            raise MappingInterrupted(f"mapping: interrupted after {b + 1} of {len(outer)} blocks; nothing was kept")
    whole = _contract(sums.reshape(*counts[:lead], *sums.shape[1:]), factors[:lead])
    at = {row.tobytes(): i for i, row in enumerate(inner.exponents)}
    rows = np.array([at[np.ascontiguousarray(e).tobytes()] for e in basis.exponents[:, lead:]])
    picks = (*basis.exponents[:, :lead].T, rows)
    coefficients = whole[picks]
    n = prod(counts)
    left = max(squares - float(np.einsum("am,am->", coefficients, coefficients)), 0.0)
    rms = float(np.sqrt(left / (n * len(muscle_names))))
    coefficients = to_monomials(basis, coefficients, list(tables))
    mapping = PolynomialMapping(basis, coefficients, joint_names, muscle_names, limits, model_hash)
    # The offset that was taken off is partly the posture's own length: compare with the geometry there.
    there = geometry(np.zeros((1, len(counts))))[0][0]
    zero = float(np.abs(mapping.zero_offset - there).max())
    mapping.fit = FitReport(n, rms, zero, perf_counter() - begin)
    return mapping


def _orthonormal(n: int, k: int) -> tuple[Array, Array]:
    """k polynomials orthonormal on n even points of [-1, 1]: their values (n, k) and their coefficients (k, k)."""
    powers = np.vander(np.linspace(-1.0, 1.0, n), k, increasing=True)
    q, r = np.linalg.qr(powers)
    return q, np.linalg.inv(r).T


def _contract(tensor: Array, factors: Sequence[Array]) -> Array:
    """Sum over each leading axis with its factor (N, K); the axes become powers, in the same order."""
    for factor in factors:
        tensor = np.moveaxis(np.tensordot(factor, tensor, axes=(0, 0)), 0, len(factors) - 1)
    return tensor
