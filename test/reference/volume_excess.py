"""Excess of swept-sphere volumes over the shapes that they hold, and exact distances of points from shapes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from humanoid_control.collision.capsule_distance import point_solid
from humanoid_control.collision.coal_backend import half_axes
from humanoid_control.collision.shapes import KIND_NAMES, Capsule, Shape, Sphere, fibonacci_sphere
from humanoid_control.collision.ssv.distance import volume_distances
from humanoid_control.collision.ssv.segments import Volume

SAMPLES = 20000


@dataclass(frozen=True)
class Enlargement:
    """Excess of volumes over the shape they hold.

    Attributes:
        excess: how far they stand out of the shape at the most [m].
        volume_ratio: their volume by that of the shape, sampled to about 1 %.
    """

    excess: float
    volume_ratio: float


def excess(shape: Shape, volumes: tuple[Volume, ...]) -> float:
    """Greatest distance by which volumes stand out of a shape [m].

    The distance from a convex shape is a convex function, so that it is largest on the balls around the vertices.
    """
    ball = fibonacci_sphere(2000)
    return float(max(signed_distances(shape, np.array(x) + v.radius * ball).max() for v in volumes for x in v.vertices))


def enlargement(shape: Shape, volumes: tuple[Volume, ...]) -> Enlargement:
    """Excess of volumes over the shape that they were made for."""
    low = np.min([np.array(x) - v.radius for v in volumes for x in v.vertices], axis=0)
    high = np.max([np.array(x) + v.radius for v in volumes for x in v.vertices], axis=0)
    x = np.random.default_rng(0).uniform(low, high, (SAMPLES, 3))
    held, zero = np.zeros(SAMPLES, dtype=bool), np.zeros(SAMPLES)
    for v in volumes:
        core = np.broadcast_to(np.array(v.vertices), (SAMPLES, len(v.vertices), 3))
        held |= volume_distances("p" + v.type[0], x[:, None], zero, core, zero + v.radius).distance <= 0
    own = signed_distances(shape, x) <= 0
    return Enlargement(excess(shape, volumes), float(held.sum() / max(own.sum(), 1)))


def signed_distances(shape: Shape, points: np.ndarray) -> np.ndarray:
    """Exact signed distance (n,) of points (n, 3) in the frame of the link from a shape."""
    if isinstance(shape, (Sphere, Capsule)):
        ends = [shape.center] if isinstance(shape, Sphere) else [shape.p0, shape.p1]
        core = np.broadcast_to(np.array(ends), (len(points), len(ends), 3))
        zero = np.zeros(len(points))
        return volume_distances(
            "p" + "pl"[core.shape[1] - 1], points[:, None], zero, core, zero + shape.radius
        ).distance
    size, X = half_axes(shape)
    kind = KIND_NAMES.index(shape.kind)
    local = (points - X.translation) @ X.rotation
    return np.array([point_solid(kind, tuple(x), *size)[0] for x in local])
