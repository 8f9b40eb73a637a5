"""Shapes at random, and distances by dense brute force that share nothing with the code under test."""

from __future__ import annotations

import sys
from types import ModuleType

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from humanoid_control.collision.shapes import ShapeArrays

KINDS = ("sphere", "capsule", "box", "cylinder", "ellipsoid", "elliptic_capsule")
TORSOS = [(0.15, 0.10, 0.04, 0.125), (0.18, 0.09, 0.03, 0.10), (0.15, 0.12, 0.06, 0.075)]


def random_size(kind: str, rng: np.random.Generator) -> tuple[float, float, float, float]:
    a, b, c, h = rng.uniform(0.04, 0.2, 4)
    return {
        "sphere": (a, a, a, 0.0),
        "capsule": (a, a, a, h),
        "box": (a, b, c, 0.0),
        "cylinder": (a, a, 0.0, h),
        "ellipsoid": (a, b, c, 0.0),
        "elliptic_capsule": (a, b, c, h),
    }[kind]


def two_shapes(kind1: str, kind2: str, rng: np.random.Generator, spread: float = 0.18) -> ShapeArrays:
    """Two shapes; their frames in the joint are their poses in the world."""
    sizes = [random_size(k, rng) for k in (kind1, kind2)]
    R = Rotation.random(2, rng=rng).as_matrix()
    return ShapeArrays.build([kind1, kind2], sizes, [0, 0], R, rng.normal(size=(2, 3)) * spread)


def forearms_and_torsos(count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Random capsules around three torsos at the origin: sizes (P, 4), centres, half axes (P, 3), radii (P,)."""
    rng = np.random.default_rng(21)
    size = np.array(TORSOS)[np.arange(count) % 3]
    p = rng.uniform(-1, 1, (count, 3)) * [0.35, 0.35, 0.4]
    u = rng.normal(size=(count, 3))
    u *= (rng.uniform(0.08, 0.15, count) / np.linalg.norm(u, axis=1))[:, None]
    return size, p, u, rng.uniform(0.03, 0.06, count)


def directions(n: int) -> np.ndarray:
    """n unit vectors spread evenly (a spherical Fibonacci lattice)."""
    k = np.arange(n) + 0.5
    z, turn = 1 - 2 * k / n, np.pi * (1 + 5**0.5) * k
    rho = np.sqrt(1 - z * z)
    return np.stack([rho * np.cos(turn), rho * np.sin(turn), z], axis=1)


def reach(kind: str, size: np.ndarray, R: np.ndarray, n: np.ndarray) -> np.ndarray:
    """How far a shape extends from its centre along unit vectors n (k, 3)."""
    local = n @ R
    if kind == "box":
        return np.abs(local) @ size[:3]
    return np.sqrt(local**2 @ size[:3] ** 2) + size[3] * np.abs(local[:, 2])


def surface_excess(kind: str, size: np.ndarray, R: np.ndarray, x: np.ndarray) -> float:
    """How far a point, seen from the centre of a shape, lies outside it, by that shape's own definition."""
    l = x @ R  # noqa: E741
    if kind == "box":
        return float(np.max(np.abs(l) - size[:3]))
    above = np.copysign(max(abs(l[2]) - size[3], 0.0), l[2])
    if kind == "cylinder":
        return float(max(np.hypot(l[0], l[1]) - size[0], abs(above)))
    return float((np.linalg.norm(np.array([l[0], l[1], above]) / size[:3]) - 1) * max(size[:3]))


def best_gap(A: ShapeArrays, rng: np.random.Generator) -> tuple[float, np.ndarray]:
    """The widest gap between two shapes over all directions, by search: distance outside, least overlap inside."""
    kinds = [KINDS[k] for k in A.kinds]

    def gap(n: np.ndarray) -> np.ndarray:
        return n @ (A.p[1] - A.p[0]) - sum(reach(kinds[k], A.sizes[k], A.R[k], n) for k in (0, 1))

    lattice = directions(40000)
    widths, value, best = gap(lattice), -np.inf, lattice[0]
    order = lattice[np.argsort(-widths)][:4000]
    for _ in range(5):  # the best direction, then the best of those 15 degrees away from all before
        if not len(order):
            break
        n, w, here = order[0], 0.02, order[:1]
        order = order[order @ n < np.cos(np.radians(15))]
        for _ in range(14):
            near = np.vstack([here, here[:1] + w * rng.normal(size=(600, 3))])
            near /= np.linalg.norm(near, axis=1)[:, None]
            g = gap(near)
            here, w = near[[g.argmax()]], 0.45 * w
        if g.max() > value:
            value, best = float(g.max()), here[0]
    return value, best


def length(x: np.ndarray) -> np.ndarray:
    return np.sqrt(x[..., 0] ** 2 + x[..., 1] ** 2 + x[..., 2] ** 2)


def to_segment(x: np.ndarray, p0: np.ndarray, p1: np.ndarray) -> np.ndarray:
    """Distance of points x (..., 3) from segments."""
    u = p1 - p0
    s = np.clip(((x - p0) * u).sum(-1) / np.maximum((u * u).sum(-1), 1e-300), 0, 1)
    return length(x - p0 - s[..., None] * u)


def capsule_surface(size: np.ndarray, n: np.ndarray) -> np.ndarray:
    """Where rays from the centre along n (..., 3) leave an elliptic capsule of size a, b, c, h (..., 4)."""
    a, b, c, h = np.moveaxis(size, -1, 0)
    flat, z = (n[..., 0] / a) ** 2 + (n[..., 1] / b) ** 2, np.abs(n[..., 2])
    wall = 1 / np.sqrt(np.maximum(flat, 1e-300))
    # On a cap: flat t^2 + ((t z - h) / c)^2 = 1.
    A, B, C = flat + (z / c) ** 2, z * h / c**2, (h / c) ** 2 - 1
    cap = (B + np.sqrt(np.maximum(B * B - A * C, 0))) / A
    return n * np.where(wall * z <= h, wall, cap)[..., None]


def inside_elliptic(x: np.ndarray, size: np.ndarray) -> np.ndarray:
    a, b, c, h = np.moveaxis(size, -1, 0)
    return (x[..., 0] / a) ** 2 + (x[..., 1] / b) ** 2 + (np.maximum(np.abs(x[..., 2]) - h, 0) / c) ** 2 < 1


COARSE = directions(1500)


def to_surface(p0: np.ndarray, p1: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Distances (P,) of P segments from the surfaces of P elliptic capsules at the origin, by ever finer sampling."""
    p0, p1, size = (np.ascontiguousarray(x)[:, None, None] for x in (p0, p1, size))
    d = np.concatenate(
        [
            to_segment(capsule_surface(size[k : k + 200, 0], COARSE), p0[k : k + 200, 0], p1[k : k + 200, 0])
            for k in range(0, len(p0), 200)
        ]
    )
    # More than one start: in the middle several places are about as near.
    n = COARSE[np.argpartition(d, 4, axis=1)[:, :4]][:, :, None]
    side = np.linspace(-1, 1, 5)
    patch = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2, 1)
    best, width = np.full(len(p0), np.inf), 0.12
    for _ in range(30):
        e = np.cross(n, np.where(np.abs(n[..., :1]) < 0.7, [1.0, 0, 0], [0, 1.0, 0]))
        near = n + width * (patch[:, 0] * e + patch[:, 1] * np.cross(n, e))
        near /= length(near)[..., None]
        d = to_segment(capsule_surface(size, near), p0, p1)
        n = np.take_along_axis(near, d.argmin(axis=2)[..., None, None], 2)
        best, width = np.minimum(best, d.min(axis=(1, 2))), 0.68 * width
    return best


def brute_points(p: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Signed distances (P,) of P points from P elliptic capsules at the origin."""
    return np.where(inside_elliptic(p, size), -1, 1) * to_surface(p, p, size)


def brute_segments(p0: np.ndarray, p1: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Least signed distance (P,) of P segments from P elliptic capsules; within 1 mm where the segment enters."""
    s = np.linspace(0, 1, 201)[:, None]
    inside = inside_elliptic(p0[:, None] + s * (p1 - p0)[:, None], size[:, None])
    out = to_surface(p0, p1, size)
    k = np.flatnonzero(inside.any(axis=1))
    first, last = inside[k].argmax(axis=1), 200 - inside[k, ::-1].argmax(axis=1)
    low, high = s[first, 0], s[last, 0]
    for _ in range(3):  # a convex function of s
        t = np.linspace(low, high, 9, axis=1)
        points = p0[k, None] + t[..., None] * (p1 - p0)[k, None]
        d = brute_points(points.reshape(-1, 3), np.repeat(size[k], 9, axis=0)).reshape(-1, 9)
        m, row = d.argmin(axis=1), np.arange(len(k))
        low, high = t[row, np.maximum(m - 1, 0)], t[row, np.minimum(m + 1, 8)]
    out[k] = d.min(axis=1)
    return out


@pytest.fixture(scope="session")
def brute() -> ModuleType:
    """The functions of this file."""
    return sys.modules[__name__]


@pytest.fixture(scope="session")
def forearms() -> tuple[np.ndarray, ...]:
    """600 capsules around torsos, and the distance of each capsule's axis from its torso by brute force."""
    size, p, u, r = forearms_and_torsos(600)
    return size, p, u, r, brute_segments(p - u, p + u, size)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(7)
