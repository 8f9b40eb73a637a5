"""Random volumes, and a reference for their distances that shares nothing with the code under test."""

from __future__ import annotations

import itertools
import sys
from types import ModuleType

import numpy as np
import pytest

VERTICES = {"p": 1, "l": 2, "t": 3}
FUNCTIONS = ("pp", "pl", "pt", "ll", "lt", "tt")


def random_pairs(
    function: str, count: int, rng: np.random.Generator, spread: float = 0.5
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Vertices and radii of both volumes: sizes over two orders of magnitude, at distances of their own size."""
    v0, v1 = (
        rng.normal(size=(count, VERTICES[f], 3)) * np.exp(rng.uniform(-3, 0.5, (count, 1, 1)))
        + spread * rng.normal(size=(count, 1, 3))
        for f in function
    )
    r0, r1 = rng.uniform(0.01, 0.3, (2, count))
    return v0, r0, v1, r1


def exhaustive(v0: np.ndarray, v1: np.ndarray) -> np.ndarray:
    """Distance (P,) of cores (P, n, 3), (P, m, 3), by the best point of every pair of faces.

    For each choice of vertices of both, the nearest points of their hulls' affine spaces, pushed back into the
    simplex: always a pair of points of the cores, and for the right choice the nearest one.
    """
    best = np.full(len(v0), np.inf)
    faces = [
        [s for k in range(1, v.shape[1] + 1) for s in itertools.combinations(range(v.shape[1]), k)] for v in (v0, v1)
    ]
    for f0, f1 in itertools.product(*faces):
        a, b = v0[:, list(f0)], v1[:, list(f1)]
        D = np.concatenate([a[:, :1] - a[:, 1:], b[:, 1:] - b[:, :1]], axis=1).swapaxes(1, 2)
        w = b[:, 0] - a[:, 0]
        x = -(np.linalg.pinv(D, rcond=1e-14) @ w[..., None])[..., 0] if D.shape[2] else np.zeros((len(w), 0))
        p0, p1 = weighted(a, x[:, : len(f0) - 1]), weighted(b, x[:, len(f0) - 1 :])
        best = np.minimum(best, np.linalg.norm(p1 - p0, axis=1))
    return best


def weighted(v: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The points of simplices with weights x of all vertices but the first; weights below zero become zero."""
    w = np.concatenate([1 - x.sum(axis=1, keepdims=True), x], axis=1).clip(0)
    return ((w / w.sum(axis=1, keepdims=True))[..., None] * v).sum(axis=1)


@pytest.fixture(scope="session")
def reference() -> ModuleType:
    """The functions of this file."""
    return sys.modules[__name__]
