"""Four bounding volumes compared on nine shapes by faces and volume (Dube 2012, section 4.3.1 and Table 4.2)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

# -------- nine shapes with sizes of a person

ELLIPSE, RECTANGLE, BALL = "ellipse", "rectangle", "ball"


@dataclass(frozen=True)
class TestShape:
    """A cylinder or frustum on an elliptic or rectangular profile, or an ellipsoid; upright, its base at z = 0.

    Attributes:
        name: as in Dube 2012.
        profile: ELLIPSE (a = b: circle), RECTANGLE (a = b: square), or BALL for sphere and ellipsoid.
        a, b: half width and half depth of the base [m].
        h: height [m]; of a ball its half axis along z.
        top: size of the top profile relative to the base; 1 for a cylinder.
    """

    __test__ = False  # not a test case, whatever the name suggests

    name: str
    profile: str
    a: float
    b: float
    h: float
    top: float = 1.0

    def volume(self) -> float:
        """Volume [m^3] (Dube 2012, Table 4.1)."""
        if self.profile == BALL:
            return 4 / 3 * math.pi * self.a * self.b * self.h
        base = (math.pi if self.profile == ELLIPSE else 4.0) * self.a * self.b
        end = base * self.top**2
        return self.h / 3 * (base + end + math.sqrt(base * end))

    def outer_radius(self) -> float:
        """Radius of the smallest circle around the base [m]: half the diagonal, or the semi-major axis."""
        return math.hypot(self.a, self.b) if self.profile == RECTANGLE else max(self.a, self.b)

    def holds(self, x: np.ndarray) -> np.ndarray:
        """(n,) true for the points x (n, 3) that lie in the shape."""
        if self.profile == BALL:
            return (x[:, 0] / self.a) ** 2 + (x[:, 1] / self.b) ** 2 + (x[:, 2] / self.h) ** 2 <= 1
        scale = 1 + (self.top - 1) * x[:, 2] / self.h
        u, v = x[:, 0] / (self.a * scale), x[:, 1] / (self.b * scale)
        flat = u * u + v * v <= 1 if self.profile == ELLIPSE else (np.abs(u) <= 1) & (np.abs(v) <= 1)
        return flat & (x[:, 2] >= 0) & (x[:, 2] <= self.h)


def nine_shapes() -> tuple[TestShape, ...]:
    """The nine shapes in the size of an average adult (Dube 2012, Table 2.1); Dube's own sizes are not printed.

    Torso 465 mm wide, 250 mm deep, 555 mm tall; abdomen 270 mm deep; upper arm 365 mm long, 316 mm around; forearm 270
    mm long, 265 mm around, 167 mm at the wrist.
    """
    w, d, tall = 0.465 / 2, 0.250 / 2, 0.555
    arm, forearm, taper = 0.316 / (2 * math.pi), 0.265 / (2 * math.pi), 167 / 265
    return (
        TestShape("elliptical cylinder", ELLIPSE, w, d, tall),
        TestShape("rectangular cylinder", RECTANGLE, w, d, tall),
        TestShape("circular cylinder", ELLIPSE, arm, arm, 0.365),
        TestShape("elliptical frustum", ELLIPSE, w, d, tall, taper),
        TestShape("circular frustum", ELLIPSE, forearm, forearm, 0.270, taper),
        TestShape("pyramidal frustum", RECTANGLE, forearm, forearm, 0.270, taper),
        TestShape("cube", RECTANGLE, d, d, 2 * d),
        TestShape("sphere", BALL, d, d, d),
        TestShape("ellipsoid", BALL, w, 0.270 / 2, d),
    )


def random_nine_shapes(rng: np.random.Generator) -> tuple[TestShape, ...]:
    """The nine shapes in random sizes: widths 10-50 cm, depths 0.4-1 of that, heights 10-60 cm, tops 0.4-0.9."""

    def draw(name: str, profile: str, regular: bool, frustum: bool) -> TestShape:
        a = rng.uniform(0.05, 0.25)
        b = a if regular else a * rng.uniform(0.4, 1.0)
        return TestShape(name, profile, a, b, rng.uniform(0.1, 0.6), rng.uniform(0.4, 0.9) if frustum else 1.0)

    side, r, a = rng.uniform(0.05, 0.25, 3)
    b, c = a * rng.uniform(0.4, 1.0, 2)
    return (
        draw("elliptical cylinder", ELLIPSE, False, False),
        draw("rectangular cylinder", RECTANGLE, False, False),
        draw("circular cylinder", ELLIPSE, True, False),
        draw("elliptical frustum", ELLIPSE, False, True),
        draw("circular frustum", ELLIPSE, True, True),
        draw("pyramidal frustum", RECTANGLE, True, True),
        TestShape("cube", RECTANGLE, side, side, 2 * side),
        TestShape("sphere", BALL, r, r, r),
        TestShape("ellipsoid", BALL, a, b, c),
    )


# -------- swept spheres

LAYERS = 4
COLUMNS = 240  # a side, for the volume of a union


def cover_ellipse(a: float, b: float) -> tuple[float, float]:
    """Three equal circles on the long axis that cover an ellipse with half axes a >= b.

    Returns:
        (x, r): the outer centres are at -x and x, the middle one at 0; r is the radius.
    """
    y2 = lambda s: b * b * (1 - (s / a) ** 2)  # noqa: E731
    middle = lambda s: math.sqrt(s * s + y2(s))  # noqa: E731
    centre = lambda s: (a * a - s * s - y2(s)) / (2 * (a - s))  # noqa: E731  as far from the tip as from the seam
    outer = lambda s: a - centre(s)  # noqa: E731
    if a - b < 1e-12:
        return 0.0, a
    from scipy.optimize import brentq  # slow to import, and seldom needed

    s = brentq(lambda s: middle(s) - outer(s), 0.0, a * (1 - 1e-12))
    return centre(s), max(middle(s), outer(s))


def profile_circles(shape: TestShape) -> list[tuple[float, float, float]]:
    """Circles (x, y, r) that cover the base profile."""
    a, b = shape.a, shape.b
    if shape.profile == ELLIPSE:
        if a == b:
            return [(0.0, 0.0, a)]
        x, r = cover_ellipse(max(a, b), min(a, b))
        return [(x * k, 0.0, r) if a > b else (0.0, x * k, r) for k in (-1, 0, 1)]
    nx, ny = (2, 2) if a == b else ((3, 2) if a > b else (2, 3))
    r = math.hypot(a / nx, b / ny)
    return [(a * (2 * i + 1 - nx) / nx, b * (2 * j + 1 - ny) / ny, r) for i in range(nx) for j in range(ny)]


def _ball_around_discs(c0: float, r0: float, c1: float, r1: float, h: float) -> tuple[float, float, float]:
    """The smallest ball (c, z, r) around two level discs, centred c0, c1 off the axis, h apart."""

    def fit(c: float) -> tuple[float, float]:
        low, high = (abs(c - c0) + r0) ** 2, (abs(c - c1) + r1) ** 2
        z = min(max((high - low + h * h) / (2 * h), 0.0), h)
        return z, math.sqrt(max(low + z * z, high + (h - z) ** 2))

    span = sorted((c0, c1))
    from scipy.optimize import minimize_scalar  # slow to import, and seldom needed

    c = c0 if c0 == c1 else float(minimize_scalar(lambda x: fit(x)[1], bounds=span, method="bounded").x)
    return (c, *fit(c))


def swept_spheres(shape: TestShape) -> np.ndarray:
    """Balls and upright capsules (k, 5) that hold the shape: x, y, lower and upper end of the axis, radius [m]."""
    if shape.profile == BALL:
        axes = (shape.a, shape.b, shape.h)
        if min(axes) == max(axes):
            return np.array([[0.0, 0.0, 0.0, 0.0, shape.a]])
        k, (_, b, a) = int(np.argmax(axes)), sorted(axes)
        x, r = cover_ellipse(a, b)
        centre = np.outer([-x, 0.0, x], np.eye(3)[k])
        return np.column_stack([centre, centre[:, 2], np.full(3, r)])
    if shape.name == "cube":
        q = shape.a / 2
        return np.array(
            [[x, y, z, z, q * math.sqrt(3)] for x in (-q, q) for y in (-q, q) for z in (q, shape.h - q)],
        )
    circles = profile_circles(shape)
    if shape.top == 1.0:
        return np.array([[x, y, 0.0, shape.h, r] for x, y, r in circles])
    rows, step = [], shape.h / LAYERS
    for k in range(LAYERS):
        low, high = (1 + (shape.top - 1) * (k + e) / LAYERS for e in (0, 1))
        for x, y, r in circles:
            off = math.hypot(x, y)
            c, z, ball = _ball_around_discs(off * low, r * low, off * high, r * high, step)
            scale = c / off if off > 0 else 0.0
            rows.append([x * scale, y * scale, k * step + z, k * step + z, ball])
    return np.array(rows)


def faces(spheres: np.ndarray) -> int:
    """One face a ball, three a capsule."""
    return int(np.where(spheres[:, 2] == spheres[:, 3], 1, 3).sum())


def union_volume(spheres: np.ndarray, columns: int = COLUMNS) -> float:
    """Volume of the union [m^3]: exact along z, on a grid of columns across; 0.1 % with the default grid."""
    low, high = ((spheres[:, :2] + s * spheres[:, 4:]) for s in (-1, 1))
    x, y = (
        np.linspace(low[:, k].min(), high[:, k].max(), columns, endpoint=False)
        + (high[:, k].max() - low[:, k].min()) / columns / 2
        for k in (0, 1)
    )
    half2 = (
        spheres[:, 4, None, None] ** 2
        - (x[None, :, None] - spheres[:, 0, None, None]) ** 2
        - (y[None, None, :] - spheres[:, 1, None, None]) ** 2
    )
    half = np.sqrt(np.maximum(half2, 0))
    start = np.where(half2 > 0, spheres[:, 2, None, None] - half, np.inf)
    end = np.where(half2 > 0, spheres[:, 3, None, None] + half, -np.inf)
    order = np.argsort(start, axis=0)
    start, end = np.take_along_axis(start, order, 0), np.take_along_axis(end, order, 0)
    done = np.concatenate([np.full((1, *start.shape[1:]), -np.inf), np.maximum.accumulate(end, axis=0)[:-1]])
    gained = np.where(np.isfinite(start), np.maximum(end - np.maximum(start, done), 0), 0)
    return float(gained.sum() * (x[1] - x[0]) * (y[1] - y[0]))


# -------- convex hulls of sampled shapes

# Points at which a hull is off by 5 %: 11 on a circle (5.35 %, the nearest), 114 or 115 on a ball (4.99, 4.94 %).
# The published mean of 71.8 triangles is reached with one ball of each, and with no other counts.
PROFILE_POINTS = 11
BALL_POINTS = {"sphere": 114, "ellipsoid": 115}


def spiral_points(n: int) -> np.ndarray:
    """n points (n, 3) spread over the unit sphere on a spiral (Dube 2012, eqs. (4.27)-(4.33))."""
    z = 1 - (2 * np.arange(n) + 1) / n
    r = np.sqrt(1 - z * z)
    turn = np.concatenate([[0.0], np.cumsum(3.6 / np.sqrt(n) / r[1:])])
    return np.stack([np.cos(turn) * r, np.sin(turn) * r, z], axis=1)


def surface_points(shape: TestShape) -> np.ndarray:
    """Points (n, 3) on the surface whose hull stands for the shape."""
    if shape.profile == BALL:
        return spiral_points(BALL_POINTS[shape.name]) * [shape.a, shape.b, shape.h]
    if shape.profile == RECTANGLE:
        ring = np.array([[1, 1], [-1, 1], [-1, -1], [1, -1]], dtype=float)
    else:
        angle = 2 * np.pi * np.arange(PROFILE_POINTS) / PROFILE_POINTS
        ring = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    ring = ring * [shape.a, shape.b]
    base = np.column_stack([ring, np.zeros(len(ring))])
    return np.vstack([base, np.column_stack([ring * shape.top, np.full(len(ring), shape.h)])])


def hull(shape: TestShape) -> tuple[int, float]:
    """(triangles, volume [m^3]) of the convex hull."""
    from scipy.spatial import ConvexHull  # slow to import, and seldom needed

    h = ConvexHull(surface_points(shape))
    return len(h.simplices), float(h.volume)


# -------- comparison

HULL, SWEPT, ELLIPTICAL, CIRCULAR = "convex hull", "swept sphere", "elliptical capsule", "circular capsule"
VOLUMES = (HULL, SWEPT, ELLIPTICAL, CIRCULAR)
# Volume -> average faces, average difference in volume [%], as printed in Table 4.2.
PUBLISHED = {HULL: (71.8, 3.5), SWEPT: (8.2, 93.7), ELLIPTICAL: (2.6, 75.8), CIRCULAR: (2.3, 173.0)}
# Only the hull's differences are the same for any sizes; Dube's sizes are not printed.
DIFFERENCE_DEPENDS_ON_SIZES = {HULL: False, SWEPT: True, ELLIPTICAL: True, CIRCULAR: True}
CAP = 0.01  # [m] "c = 1" in Dube 2012, without a unit: 1 cm


@dataclass(frozen=True)
class VolumeFit:
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


def fit_bounding_volume(volume: str, shape: TestShape, cap: float = CAP, columns: int = COLUMNS) -> VolumeFit:
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
    return VolumeFit(count, size, 100 * abs(size / shape.volume() - 1))


def compare(
    shapes: tuple[TestShape, ...] | None = None, cap: float = CAP, columns: int = COLUMNS
) -> dict[str, dict[str, VolumeFit]]:
    """All four volumes on all shapes: volume -> shape -> fit."""
    shapes = shapes or nine_shapes()
    return {v: {s.name: fit_bounding_volume(v, s, cap, columns) for s in shapes} for v in VOLUMES}


def averages(table: dict[str, dict[str, VolumeFit]]) -> dict[str, tuple[float, float]]:
    """Volume -> (average faces, average difference [%]) over the shapes: the two columns of Table 4.2."""
    return {
        v: (float(np.mean([f.faces for f in row.values()])), float(np.mean([f.difference for f in row.values()])))
        for v, row in table.items()
    }


def elliptical_is_the_better_capsule(mean: dict[str, tuple[float, float]]) -> tuple[bool, bool, bool]:
    """Conclusion of Dube 2012 about the elliptical capsule in three parts.

    Returns:
        (about as few faces as the circular capsule: within half a face; closer in volume than the circular capsule;
        closer in volume than the swept spheres).
    """
    (n, d), (n_circular, d_circular) = mean[ELLIPTICAL], mean[CIRCULAR]
    return n - n_circular <= 0.5, d < d_circular, d < mean[SWEPT][1]


def share_of_random_sizes(count: int, seed: int = 0, cap: float = CAP) -> tuple[float, float, float]:
    """Shares of `count` random sets of nine shapes for which each part of that conclusion holds."""
    rng = np.random.default_rng(seed)
    sets = [compare(random_nine_shapes(rng), cap, columns=60) for _ in range(count)]
    held = [elliptical_is_the_better_capsule(averages(table)) for table in sets]
    a, b, c = np.mean(held, axis=0)
    return float(a), float(b), float(c)
