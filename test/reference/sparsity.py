"""Zeros of the mass matrix that the branches of the tree make, by graph: Schwienbacher 2014, Tables 2.1 and 2.4."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from humanoid_control.multibody.arrays import Arrays
from humanoid_control.multibody.model import Model


@dataclass(frozen=True)
class Sparsity:
    """Counts in one triangle of the inertia matrix, the diagonal with it.

    Attributes:
        nv: number of coordinates.
        n_nz: entries that branches do not make zero. n_dense: all entries.
    """

    nv: int
    n_nz: int
    n_dense: int

    @property
    def alpha(self) -> float:
        """Share of entries that are not zero."""
        return self.n_nz / self.n_dense

    @property
    def speed_up(self) -> float:
        """What a solver could gain at most, 1 / alpha^2."""
        return 1.0 / self.alpha**2


def structure(model: Model) -> np.ndarray:
    """(nv, nv) whether two coordinates move some body both; zero elsewhere in the inertia matrix, at any posture."""
    moves = np.zeros((len(model.bodies), model.nv), dtype=np.float32)
    for i, (own, p) in enumerate(zip(model.coords, model.parents, strict=True)):
        if p >= 0:
            moves[i] = moves[p]
        moves[i, list(own)] = 1.0
    return moves.T @ moves > 0


def sparsity(model: Model) -> Sparsity:
    """Count the pattern of a model's inertia matrix."""
    return Sparsity(model.nv, int(np.tril(structure(model)).sum()), model.nv * (model.nv + 1) // 2)


def solver_pattern(model: Model) -> np.ndarray:
    """(nv, nv) entries that the sparse solver works on, in the order of the coordinates; symmetric."""
    arrays = Arrays(model)
    place = np.argsort(arrays.rank)
    out = np.zeros((model.nv, model.nv), dtype=bool)
    for k in range(model.nv):
        j = k
        while j >= 0:
            out[place[k], place[j]] = out[place[j], place[k]] = True
            j = arrays.lam[j]
    return out
