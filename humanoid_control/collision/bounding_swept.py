"""Swept-sphere volumes around the test shapes: balls and upright capsules that together hold the shape.

The source gives the number of balls a profile (square 4, rectangle 6, ellipse 3, circle 1) and cuts frustums into four
layers; how they are placed is ours. Counting a ball as one face and a capsule as three, the nine shapes need 74 faces,
8.2 on average, which is the published figure.
"""

from __future__ import annotations

import math

import numpy as np

from humanoid_control.collision.bounding_shapes import BALL, ELLIPSE, TestShape

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
