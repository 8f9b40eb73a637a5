"""Where a tendon touches a sphere or a cylinder, and how these points move with its ends.

All in the frame of the solid: its centre at the origin, the cylinder along z. The way around a sphere lies in the plane
of the two ends and the centre; around a cylinder it is a helix, whose projection along z is the way around a circle. So
both come down to two tangents of a circle, in a plane with the unit normal n:

    t = (r^2 d + k r sqrt(d^2 - r^2) n x d) / d^2,     k = +1 or -1

Of all ways that go around the centre as the polyline from one end over the side point to the other does, the shortest
is taken: it leaves the solid alone where its winding angle is less than what the two tangents need, acos(r / d0) +
acos(r / d1). The way of a tendon that is led through a ring touches the circle once, where both parts make the same
angle with it. These are the rules of MuJoCo 4 (its XML reference, "sidesite"), so that its models have the same lengths
here; before version 4 it decided otherwise about tendons that are off the solid.
"""

from __future__ import annotations

import numpy as np

from humanoid_control.jit import kernel
from humanoid_control.tendons.routing.vectors import Vec, cross, dot, norm, plus, scaled, sub

FREE, SIDED, THROUGH = 0, 1, 2  # how a solid is passed: the shorter way, on a given side, led through
APART, AROUND, TOUCH = 0, 1, 2  # how a tendon and a solid meet: not, over an arc, at one point
TINY = 1e-15

# What `wrap` tells: (how they meet, length on the solid [m], first and last point on it, sense of the way: +1 or -1).
Contact = tuple[int, float, Vec, Vec, float]


@kernel
def wrap(ball: bool, mode: int, r: float, side: Vec, p0: Vec, p1: Vec) -> Contact:
    """How a tendon from p0 to p1 meets a solid.

    Args:
        ball: a sphere, otherwise a cylinder along z.
        mode: FREE, SIDED or THROUGH.
        r: radius [m].
        side: a point (3,) of the side to pass, in the frame of the solid; read where the mode is SIDED.
        p0, p1: the ends (3,) in the frame of the solid.
    """
    d0, d1, n, e0, e1 = plane(ball, p0, p1)
    l0, l1 = norm(d0), norm(d1)
    if l0 < r or l1 < r or min(l0, l1) < TINY:
        return APART, 0.0, d0, d1, 0.0
    if mode == THROUGH:
        found, t0 = _reflection(r, d0, d1)
        if not found:
            return APART, 0.0, d0, d1, 0.0
        t1, sense, arc = t0, 0.0, 0.0
    else:
        turn = _winding(mode, side, d0, d1, e0, e1)
        arc = r * (abs(turn) - np.arccos(r / l0) - np.arccos(r / l1))
        if arc <= 0.0:
            return APART, 0.0, d0, d1, 0.0
        sense = -1.0 if turn > 0.0 else 1.0
        t0, t1 = tangent(r, d0, n, -sense), tangent(r, d1, n, sense)
    if not ball:
        a, b = norm(sub(d0, t0)), norm(sub(d1, t1))
        climb = (p1[2] - p0[2]) / (a + arc + b)
        t0, t1 = (t0[0], t0[1], p0[2] + climb * a), (t1[0], t1[1], p0[2] + climb * (a + arc))
        arc *= np.sqrt(1.0 + climb * climb)
    return TOUCH if mode == THROUGH else AROUND, arc, t0, t1, sense


@kernel
def plane(ball: bool, p0: Vec, p1: Vec) -> tuple[Vec, Vec, Vec, Vec, Vec]:
    """The ends in the plane of the circle, its normal, and two axes in it."""
    if not ball:
        return (p0[0], p0[1], 0.0), (p1[0], p1[1], 0.0), (0.0, 0.0, 1.0), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0)
    e0 = scaled(1.0 / max(norm(p0), TINY), p0)
    n = cross(p0, p1)
    size = norm(n)
    if size < TINY:  # one behind the other: any plane will do
        x, y, z = abs(e0[0]), abs(e0[1]), abs(e0[2])
        n = cross(e0, (0.0, 1.0, 1.0) if x >= max(y, z) else (1.0, 0.0, 1.0) if y >= z else (1.0, 1.0, 0.0))
        size = norm(n)
    n = scaled(1.0 / size, n)
    return p0, p1, n, e0, cross(n, e0)


@kernel
def tangent(r: float, d: Vec, n: Vec, k: float) -> Vec:
    """Where the tangent from d touches the circle."""
    q = dot(d, d)
    s = np.sqrt(max(q - r * r, 0.0))
    return scaled(r / q, plus(scaled(r, d), k * s, cross(n, d)))


@kernel
def _winding(mode: int, side: Vec, d0: Vec, d1: Vec, e0: Vec, e1: Vec) -> float:
    """The angle [rad] about the centre, against the clock, from one end over the side to the other; -2 pi to 2 pi."""
    x0, y0, x1, y1 = dot(d0, e0), dot(d0, e1), dot(d1, e0), dot(d1, e1)
    sx, sy = dot(side, e0), dot(side, e1)
    if mode == FREE or sx * sx + sy * sy < TINY * TINY:
        return np.arctan2(x0 * y1 - y0 * x1, x0 * x1 + y0 * y1)
    before = np.arctan2(x0 * sy - y0 * sx, x0 * sx + y0 * sy)
    return before + np.arctan2(sx * y1 - sy * x1, sx * x1 + sy * y1)


@kernel
def _reflection(r: float, d0: Vec, d1: Vec) -> tuple[bool, Vec]:
    """The point of the circle that makes the way from d0 over it to d1 shortest; none where the way cuts the circle."""
    l0, l1 = norm(d0), norm(d1)
    line = sub(d1, d0)
    square = dot(line, line)
    if square > TINY:
        a = -dot(line, d0) / square
        if 0.0 < a < 1.0 and norm(plus(d0, a, line)) <= r:
            return False, d0
    e0, e1, G = fan(d0, d1)
    x = angle_on_circle(l0, l1, r, G)
    return True, plus(scaled(r * np.cos(x), e0), r * np.sin(x), e1)


@kernel
def angle_on_circle(l0: float, l1: float, r: float, G: float) -> float:
    """The angle [rad] from an outer point to the point of the circle that makes the way to another one shortest.

    Args:
        l0, l1: distances of the outer points from the centre [m]. G: angle between them [rad].
    """
    low, high, x = 0.0, G, G * l1 / (l0 + l1)
    for _ in range(100):
        f = sway(l0, r, x) - sway(l1, r, G - x)
        if f < 0.0:
            low = x
        else:
            high = x
        slope = sway_slope(l0, r, x) + sway_slope(l1, r, G - x)
        step = x - f / slope if slope > 0.0 else low
        if not low < step < high:
            step = 0.5 * (low + high)
        if abs(step - x) < 1e-16 * max(G, 1e-3):
            break
        x = step
    return x


@kernel
def fan(d0: Vec, d1: Vec) -> tuple[Vec, Vec, float]:
    """The direction of d0, the one across it towards d1, and the angle [rad] between d0 and d1."""
    e0 = scaled(1.0 / norm(d0), d0)
    along = dot(d1, e0)
    rest = plus(d1, -along, e0)
    across = norm(rest)
    if across < TINY:
        return e0, (0.0, 0.0, 0.0), 0.0
    return e0, scaled(1.0 / across, rest), np.arctan2(across, along)


@kernel
def sway(l: float, r: float, x: float) -> float:  # noqa: E741
    """How the distance from a point of the circle to one at radius l changes with the angle x between them."""
    return l * r * np.sin(x) / np.sqrt(l * l + r * r - 2.0 * l * r * np.cos(x))


@kernel
def sway_slope(l: float, r: float, x: float) -> float:  # noqa: E741
    """The derivative of `sway` by x."""
    square = l * l + r * r - 2.0 * l * r * np.cos(x)
    D = np.sqrt(square)
    s = l * r * np.sin(x)
    return l * r * np.cos(x) / D - s * s / (square * D)
