"""Capsules on two links, fitted by least squares to mesh distances in sampled postures.

Distances larger than the meshes' could miss a contact, so they weigh more.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.cluster.vq import kmeans2
from scipy.optimize import least_squares

COUNT, STARTS, REFINED = 6, 12, 3  # capsules per link; starts; starts that are refined
TOO_FAR = 3.0  # weight of distances larger than the meshes'
BELOW = 0.001  # [m] target: capsules nearer than meshes
FAR = 0.08  # [m] larger distances of both do not count
NEAR = 0.004  # [m] relative weighting: 1 / (NEAR + distance)
RADII, REACH = (0.005, 0.12), 0.5  # [m] of a capsule; of its ends from their start
LONG, DEEP = 0.08, (0.02, 0.07)  # [m] initial capsules: largest half length, depth
LINE = 1e-9  # squared sine below which segments count as parallel


@dataclass(frozen=True)
class MeshDistances:
    """Poses of two links in P postures, and their mesh distances.

    Attributes:
        poses: of each link, (P, 3, 4) in the world.
        distance: (P,) [m], 0 in contact.
        contacts: of each link, (n, 3) in its frame [m].
        middle: of each link, (3,) surface centre in its frame [m].
        mirror: (3, 4) from the first link to its mirror image, the second; else None.
    """

    poses: tuple[np.ndarray, np.ndarray]
    distance: np.ndarray
    contacts: tuple[np.ndarray, np.ndarray]
    middle: tuple[np.ndarray, np.ndarray]
    mirror: np.ndarray | None = None


def capsules_by_distance(measured: MeshDistances, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return capsules (COUNT, 7) of each link: ends and radius in its frame [m]."""
    rng = np.random.default_rng(seed)
    fit = CapsuleFit(measured)
    begun = [_improved(fit, np.vstack([_start(measured, k, rng) for k in range(fit.links)]), 20) for _ in range(STARTS)]
    promising = sorted(begun, key=lambda found: found[0])[:REFINED]
    _, best = min((_improved(fit, rows, 150) for _, rows in promising), key=lambda found: found[0])
    return fit.capsules(best)


def _improved(fit: CapsuleFit, rows: np.ndarray, most: int) -> tuple[float, np.ndarray]:
    """Return cost and capsules (n, 7) after some evaluations."""
    low, high = rows - REACH, rows + REACH
    low[:, 6], high[:, 6] = RADII
    bounds = low.ravel(), high.ravel()
    found = least_squares(fit.residuals, rows.ravel(), fit.jacobian, bounds, loss="soft_l1", max_nfev=most)
    return float(found.cost), found.x.reshape(-1, 7)


def _start(measured: MeshDistances, link: int, rng: np.random.Generator) -> np.ndarray:
    """Return capsules along clusters of contacts, below the surface."""
    points, depth = measured.contacts[link], rng.uniform(*DEEP)
    if measured.mirror is not None:
        Q, t = measured.mirror[:, :3], measured.mirror[:, 3]
        points = np.vstack([points, (measured.contacts[1] - t) @ Q])
    _, group = kmeans2(points, COUNT, seed=rng, minit="++")
    out = np.empty((COUNT, 7))
    for k in range(COUNT):
        members = points[group == k] if (group == k).sum() > 2 else points[rng.integers(len(points), size=5)]
        _, spread, axes = np.linalg.svd(members - members.mean(axis=0), full_matrices=False)
        half = axes[0] * min(LONG, 2 * spread[0] / np.sqrt(len(members)))
        inward = measured.middle[link] - members.mean(axis=0)
        at = members.mean(axis=0) + depth * inward / max(float(np.linalg.norm(inward)), depth)
        out[k] = *(at - half), *(at + half), np.clip(depth, *RADII)
    return out


class CapsuleFit:
    """Residuals of the least capsule distances, and their derivatives."""

    def __init__(self, measured: MeshDistances) -> None:
        self._of = measured
        self.links = 1 if measured.mirror is not None else 2
        self._weight = 1 / (NEAR + np.clip(measured.distance, 0.0, FAR))

    def capsules(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the capsules (COUNT, 7) of both links."""
        rows = x.reshape(-1, 7)
        if self._of.mirror is None:
            return rows[:COUNT], rows[COUNT:]
        Q, t = self._of.mirror[:, :3], self._of.mirror[:, 3]
        return rows, np.column_stack([rows[:, :3] @ Q.T + t, rows[:, 3:6] @ Q.T + t, rows[:, 6]])

    def residuals(self, x: np.ndarray) -> np.ndarray:
        """Return weighted distance errors (P,)."""
        d, *_ = self._nearest(x)
        error = d - self._of.distance + BELOW
        return error * self._weights(error, d)

    def jacobian(self, x: np.ndarray) -> np.ndarray:
        """Return the derivatives (P, n)."""
        d, (i, j), (s, t), n = self._nearest(x)
        row = np.arange(len(d))
        J = np.zeros((len(d), self.links * COUNT, 7))
        on = [np.einsum("pij,pi->pj", X[:, :, :3], n) for X in self._of.poses]
        on[1] = -on[1]
        if self._of.mirror is not None:
            on[1] = on[1] @ self._of.mirror[:, :3]
        for g, which, share in ((on[0], i, s), (on[1], j if self.links == 1 else COUNT + j, t)):
            J[row, which, :3] += g * (1 - share)[:, None]
            J[row, which, 3:6] += g * share[:, None]
            J[row, which, 6] -= 1.0
        error = d - self._of.distance + BELOW
        return J.reshape(len(d), -1) * self._weights(error, d)[:, None]

    def _weights(self, error: np.ndarray, d: np.ndarray) -> np.ndarray:
        far = (d > FAR) & (self._of.distance > FAR)
        return np.where(far, 0.0, np.where(error > 0, TOO_FAR, 1.0) * self._weight)

    def _nearest(self, x: np.ndarray) -> tuple[np.ndarray, tuple, tuple, np.ndarray]:
        """Return least distances (P,), capsule indices, places on axes (0 to 1), normals (P, 3)."""
        (a0, a1), (b0, b1) = (_ends(X, C) for X, C in zip(self._of.poses, self.capsules(x), strict=True))
        ra, rb = (C[:, 6] for C in self.capsules(x))
        u, w = (a1 - a0)[:, :, None], (b1 - b0)[:, None]
        s, t, apart = closest_on_segments(a0[:, :, None], u, b0[:, None], w)
        length = np.linalg.norm(apart, axis=-1)
        d = length - ra[:, None] - rb
        row, k = np.arange(len(d)), d.reshape(len(d), -1).argmin(axis=1)
        i, j = np.divmod(k, d.shape[2])
        normal = apart[row, i, j] / np.maximum(length[row, i, j], 1e-12)[:, None]
        return d[row, i, j], (i, j), (s[row, i, j], t[row, i, j]), normal


def _ends(X: np.ndarray, capsules: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    at = (np.einsum("pij,kj->pki", X[:, :, :3], capsules[:, c : c + 3]) + X[:, None, :, 3] for c in (0, 3))
    return next(at), next(at)


def closest_on_segments(
    a: np.ndarray, u: np.ndarray, b: np.ndarray, w: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return s and t (0 to 1) of the closest points of segments a + s u and b + t w (..., 3), and their difference."""
    r = a - b
    uu, ww = ((v * v).sum(axis=-1) + 1e-12 for v in (u, w))
    uw, ur, wr = (u * w).sum(axis=-1), (u * r).sum(axis=-1), (w * r).sum(axis=-1)
    sine = uu * ww - uw * uw
    apart = sine > LINE * uu * ww
    s = np.where(apart, np.clip((uw * wr - ur * ww) / np.where(apart, sine, 1.0), 0.0, 1.0), 0.5)
    t = np.clip((uw * s + wr) / ww, 0.0, 1.0)
    s = np.clip((uw * t - ur) / uu, 0.0, 1.0)
    t = np.clip((uw * s + wr) / ww, 0.0, 1.0)
    return s, t, r + s[..., None] * u - t[..., None] * w
