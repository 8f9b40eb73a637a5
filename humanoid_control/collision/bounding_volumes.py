"""Four bounding volumes compared on nine shapes: number of faces and difference in volume (Dube 2012, Table 4.2)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from humanoid_control.collision.bounding_hull import hull
from humanoid_control.collision.bounding_shapes import BALL, RECTANGLE, TestShape, nine_shapes, random_nine_shapes
from humanoid_control.collision.bounding_swept import COLUMNS, faces, swept_spheres, union_volume

HULL, SWEPT, ELLIPTICAL, CIRCULAR = "convex hull", "swept sphere", "elliptical capsule", "circular capsule"
VOLUMES = (HULL, SWEPT, ELLIPTICAL, CIRCULAR)
# Volume -> average faces, average difference in volume [%], as printed in Table 4.2.
PUBLISHED = {HULL: (71.8, 3.5), SWEPT: (8.2, 93.7), ELLIPTICAL: (2.6, 75.8), CIRCULAR: (2.3, 173.0)}
# Only the hull's differences are the same for any sizes; the source's sizes are not printed.
DIFFERENCE_DEPENDS_ON_SIZES = {HULL: False, SWEPT: True, ELLIPTICAL: True, CIRCULAR: True}
CAP = 0.01  # [m] "c = 1" in the source, without a unit: 1 cm


@dataclass(frozen=True)
class Fit:
    """A bounding volume around a shape.

    Attributes:
        faces: what has to be tested for contact, a measure of cost.
        volume: [m^3].
        difference: how much larger or smaller than the shape [%], unsigned.
    """

    faces: int
    volume: float
    difference: float


def elliptical_capsule(shape: TestShape, cap: float = CAP) -> tuple[int, float]:
    """(faces, volume) of the elliptical capsule: through the corners of a rectangle, as tall as the shape.

    One equation for both half axes of the ellipse leaves a choice: the ellipse of least area is taken.
    """
    if shape.profile == BALL:
        return 1, shape.volume()
    grow = math.sqrt(2) if shape.profile == RECTANGLE else 1.0
    return 3, math.pi * (grow * shape.a) * (grow * shape.b) * (shape.h + 4 / 3 * cap)


def circular_capsule(shape: TestShape) -> tuple[int, float]:
    """(faces, volume) of the circular capsule: the circle around the base, as short as still holds the shape.

    A ball suffices for sphere, ellipsoid and cube.
    """
    if shape.profile == BALL:
        return 1, 4 / 3 * math.pi * max(shape.a, shape.b, shape.h) ** 3
    if shape.name == "cube":
        return 1, 4 / 3 * math.pi * (math.sqrt(3) * shape.a) ** 3
    r = shape.outer_radius()
    length = max(0.0, shape.h - r * math.sqrt(1 - shape.top**2))  # the cap reaches over a smaller top
    return 3, math.pi * r**2 * length + 4 / 3 * math.pi * r**3


def fit(volume: str, shape: TestShape, cap: float = CAP, columns: int = COLUMNS) -> Fit:
    """One bounding volume around one shape; `columns` sets how finely a union of balls is measured."""
    if volume == HULL:
        count, size = hull(shape)
    elif volume == SWEPT:
        spheres = swept_spheres(shape)
        exact = len(spheres) == 1 and spheres[0, 2] == spheres[0, 3]
        count, size = faces(spheres), shape.volume() if exact else union_volume(spheres, columns)
    elif volume == ELLIPTICAL:
        count, size = elliptical_capsule(shape, cap)
    else:
        count, size = circular_capsule(shape)
    return Fit(count, size, 100 * abs(size / shape.volume() - 1))


def compare(
    shapes: tuple[TestShape, ...] | None = None, cap: float = CAP, columns: int = COLUMNS
) -> dict[str, dict[str, Fit]]:
    """All four volumes on all shapes: volume -> shape -> fit."""
    shapes = shapes or nine_shapes()
    return {v: {s.name: fit(v, s, cap, columns) for s in shapes} for v in VOLUMES}


def averages(table: dict[str, dict[str, Fit]]) -> dict[str, tuple[float, float]]:
    """Volume -> (average faces, average difference [%]) over the shapes: the two columns of Table 4.2."""
    return {
        v: (float(np.mean([f.faces for f in row.values()])), float(np.mean([f.difference for f in row.values()])))
        for v, row in table.items()
    }


def elliptical_is_the_better_capsule(mean: dict[str, tuple[float, float]]) -> tuple[bool, bool, bool]:
    """The source's conclusion about the elliptical capsule in three parts.

    Returns:
        (about as few faces as the circular capsule: within half a face; closer in volume than the circular capsule;
        closer in volume than the swept spheres).
    """
    (n, d), (n_circular, d_circular) = mean[ELLIPTICAL], mean[CIRCULAR]
    return n - n_circular <= 0.5, d < d_circular, d < mean[SWEPT][1]


def share_of_random_sizes(count: int, seed: int = 0, cap: float = CAP) -> tuple[float, float, float]:
    """In which share of `count` random sets of nine shapes each part of that conclusion holds."""
    rng = np.random.default_rng(seed)
    sets = [compare(random_nine_shapes(rng), cap, columns=60) for _ in range(count)]
    held = [elliptical_is_the_better_capsule(averages(table)) for table in sets]
    a, b, c = np.mean(held, axis=0)
    return float(a), float(b), float(c)
