"""Wrapping of a tendon around a sphere or cylinder: contact points and their rates.

Vectors are in the solid frame: centre at the origin, cylinder along z. The path around a sphere is planar, the
projection along z of a path around a cylinder too: both reduce to tangents of a circle. Contact rules follow MuJoCo 4
(XML reference, "sidesite").
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from humanoid_control.compiled.jit import kernel
from humanoid_control.numerics.vec3 import Vec, along, cross, dot, mul, norm, sub

FREE, SIDED, THROUGH = 0, 1, 2  # path mode: shorter way, given side, through a ring
APART, AROUND, TOUCH = 0, 1, 2  # contact kind: none, along an arc, at one point
TINY = 1e-15


class Contact(NamedTuple):
    """Contact with a solid, in its frame.

    Attributes:
        kind: APART, AROUND or TOUCH.
        arc: length on the solid [m].
        first: contact point (3,).
        last: contact point (3,).
        sense: -1 for a positive turn about n, else +1.
    """

    kind: int
    arc: float
    first: Vec
    last: Vec
    sense: float


@kernel
def _contact(kind: int, arc: float, first: Vec, last: Vec, sense: float) -> Contact:
    # A single constructor keeps one type of the record in compiled code.
    return Contact(kind, arc, first, last, sense)


@kernel
def wrap(ball: bool, mode: int, r: float, side: Vec, p0: Vec, p1: Vec) -> Contact:
    """Return the contact of a tendon from p0 to p1 (3,) with a solid.

    Args:
        ball: sphere, else cylinder along z.
        mode: FREE, SIDED or THROUGH.
        r: radius [m].
        side: point (3,) to pass, if SIDED.
        p0: first end.
        p1: second end.
    """
    d0, d1, n, e0, e1 = plane(ball, p0, p1)
    l0, l1 = norm(d0), norm(d1)
    # An end inside the solid has no tangent: the tendon ignores the solid.
    if l0 < r or l1 < r or min(l0, l1) < TINY:
        return _contact(APART, 0.0, d0, d1, 0.0)
    # Through a ring the path touches the circle once, with equal angles on both parts.
    if mode == THROUGH:
        found, t0 = _reflection(r, d0, d1)
        if not found:
            return _contact(APART, 0.0, d0, d1, 0.0)
        t1, sense, arc = t0, 0.0, 0.0
    else:
        turn = _winding(mode, side, d0, d1, e0, e1)
        # Arc angle: winding angle less the angles acos(r / d) that the straight parts span at the centre. If it is
        # negative, the path of this winding direction leaves the solid.
        arc = r * (abs(turn) - np.arccos(r / l0) - np.arccos(r / l1))
        if arc <= 0.0:
            return _contact(APART, 0.0, d0, d1, 0.0)
        # A positive turn leaves d0 ahead (k = +1) and reaches d1 from behind (k = -1).
        sense = -1.0 if turn > 0.0 else 1.0
        t0, t1 = tangent(r, d0, n, -sense), tangent(r, d1, n, sense)
    if not ball:
        # An unrolled helix is straight: z grows in proportion to the projected length.
        a, b = norm(sub(d0, t0)), norm(sub(d1, t1))
        climb = (p1[2] - p0[2]) / (a + arc + b)
        t0, t1 = (t0[0], t0[1], p0[2] + climb * a), (t1[0], t1[1], p0[2] + climb * (a + arc))
        arc *= np.sqrt(1.0 + climb * climb)
    return _contact(TOUCH if mode == THROUGH else AROUND, arc, t0, t1, sense)


@kernel
def plane(ball: bool, p0: Vec, p1: Vec) -> tuple[Vec, Vec, Vec, Vec, Vec]:
    """Return the ends in the plane of the circle, its normal, and two axes in it."""
    if not ball:
        return (p0[0], p0[1], 0.0), (p1[0], p1[1], 0.0), (0.0, 0.0, 1.0), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0)
    e0 = mul(1.0 / max(norm(p0), TINY), p0)
    n = cross(p0, p1)
    size = norm(n)
    if size < TINY:  # collinear with the centre: any plane through the ends works
        # A helper vector that is not parallel to e0.
        x, y, z = abs(e0[0]), abs(e0[1]), abs(e0[2])
        n = cross(e0, (0.0, 1.0, 1.0) if x >= max(y, z) else (1.0, 0.0, 1.0) if y >= z else (1.0, 1.0, 0.0))
        size = norm(n)
    n = mul(1.0 / size, n)
    return p0, p1, n, e0, cross(n, e0)


@kernel
def tangent(r: float, d: Vec, n: Vec, k: float) -> Vec:
    """Return the contact point of the tangent from d."""
    # t = (r^2 d + k r sqrt(d^2 - r^2) n x d) / d^2, k = +1 or -1, n the plane normal.
    q = dot(d, d)
    s = np.sqrt(max(q - r * r, 0.0))
    return mul(r / q, along(mul(r, d), k * s, cross(n, d)))


@kernel
def _winding(mode: int, side: Vec, d0: Vec, d1: Vec, e0: Vec, e1: Vec) -> float:
    """Return the counterclockwise angle end - side - end about the centre, -2 pi to 2 pi [rad]."""
    x0, y0, x1, y1 = dot(d0, e0), dot(d0, e1), dot(d1, e0), dot(d1, e1)
    sx, sy = dot(side, e0), dot(side, e1)
    if mode == FREE or sx * sx + sy * sy < TINY * TINY:
        return np.arctan2(x0 * y1 - y0 * x1, x0 * x1 + y0 * y1)
    # Sum of two signed angles, so the winding direction of the side point is kept.
    before = np.arctan2(x0 * sy - y0 * sx, x0 * sx + y0 * sy)
    return before + np.arctan2(sx * y1 - sy * x1, sx * x1 + sy * y1)


@kernel
def _reflection(r: float, d0: Vec, d1: Vec) -> tuple[bool, Vec]:
    """Return the circle point of the shortest path d0 - point - d1; none if the chord cuts the circle."""
    l0, l1 = norm(d0), norm(d1)
    line = sub(d1, d0)
    square = dot(line, line)
    if square > TINY:
        # The chord comes closer to the centre than r: it already passes through the ring.
        a = -dot(line, d0) / square
        if 0.0 < a < 1.0 and norm(along(d0, a, line)) <= r:
            return False, d0
    e0, e1, G = fan(d0, d1)
    x = angle_on_circle(l0, l1, r, G)
    return True, along(mul(r * np.cos(x), e0), r * np.sin(x), e1)


@kernel
def angle_on_circle(l0: float, l1: float, r: float, G: float) -> float:
    """Return the angle [rad] from an outer point to the circle point of the shortest path to a second outer point.

    Args:
        l0: first radius [m].
        l1: second radius [m].
        r: circle radius [m].
        G: angle between the outer points [rad].
    """
    low, high, x = 0.0, G, G * l1 / (l0 + l1)
    for _ in range(100):
        # Newton on the derivative of the path length; bisection where a step leaves the bracket.
        f = distance_slope(l0, r, x) - distance_slope(l1, r, G - x)
        if f < 0.0:
            low = x
        else:
            high = x
        slope = distance_curvature(l0, r, x) + distance_curvature(l1, r, G - x)
        step = x - f / slope if slope > 0.0 else low
        if not low < step < high:
            step = 0.5 * (low + high)
        if abs(step - x) < 1e-16 * max(G, 1e-3):
            break
        x = step
    return x


@kernel
def fan(d0: Vec, d1: Vec) -> tuple[Vec, Vec, float]:
    """Return the direction of d0, the perpendicular towards d1, and the angle [rad] between d0 and d1."""
    e0 = mul(1.0 / norm(d0), d0)
    ahead = dot(d1, e0)
    rest = along(d1, -ahead, e0)
    across = norm(rest)
    # Parallel directions: no perpendicular is defined, the angle is 0.
    if across < TINY:
        return e0, (0.0, 0.0, 0.0), 0.0
    return e0, mul(1.0 / across, rest), np.arctan2(across, ahead)


@kernel
def distance_slope(l: float, r: float, x: float) -> float:  # noqa: E741
    """Return d/dx of the distance between a circle point and a point at radius l, x apart in angle."""
    return l * r * np.sin(x) / np.sqrt(l * l + r * r - 2.0 * l * r * np.cos(x))


@kernel
def distance_curvature(l: float, r: float, x: float) -> float:  # noqa: E741
    """Return d/dx of `distance_slope`."""
    square = l * l + r * r - 2.0 * l * r * np.cos(x)
    D = np.sqrt(square)
    s = l * r * np.sin(x)
    return l * r * np.cos(x) / D - s * s / (square * D)


# -------- Rates of the points of contact


@kernel
def wrap_rates(ball: bool, r: float, contact: Contact, p0: Vec, p1: Vec, v0: Vec, v1: Vec) -> tuple[Vec, Vec]:
    """Return velocities of the first and last contact points, in the solid frame.

    Args:
        ball: sphere, else cylinder.
        r: radius [m].
        contact: from `wrap`, not APART.
        p0: first end (3,).
        p1: second end (3,).
        v0: velocity of p0.
        v1: velocity of p1.
    """
    t0, t1, sense = contact.first, contact.last, contact.sense
    d0, d1, n, _, _ = plane(ball, p0, p1)
    w0, w1, turn = v0, v1, (0.0, 0.0, 0.0)
    if ball:
        size = norm(cross(p0, p1))
        if size > TINY:
            # The plane of a sphere's path turns with its ends: rate of n = (p0 x p1) / |p0 x p1|.
            rate = along(cross(v0, p1), 1.0, cross(p0, v1))
            turn = mul(1.0 / size, along(rate, -dot(rate, n), n))
    else:
        w0, w1 = (v0[0], v0[1], 0.0), (v1[0], v1[1], 0.0)
    if contact.kind == AROUND:
        out0, slide0 = _tangent_rate(r, d0, w0, n, turn, -sense)
        out1, slide1 = _tangent_rate(r, d1, w1, n, turn, sense)
    else:
        out0 = _reflection_rate(r, d0, d1, w0, w1)
        out1, slide0, slide1 = out0, 0.0, 0.0
    if ball:
        return out0, out1
    q0, q1 = (t0[0], t0[1], 0.0), (t1[0], t1[1], 0.0)
    # Derivative of the helix heights z = p0_z + rise * (projected length so far) / (projected length).
    a, a_rate = _length_rate(sub(d0, q0), sub(w0, out0))
    b, b_rate = _length_rate(sub(d1, q1), sub(w1, out1))
    around, around_rate = 0.0, 0.0
    if contact.kind == AROUND:
        a_rate, b_rate = slide0, slide1
        rise = t1[2] - t0[2]
        # Projected arc, from the helix arc and its rise.
        around = np.sqrt(max(contact.arc * contact.arc - rise * rise, 0.0))
        spin = (q1[0] * out1[1] - q1[1] * out1[0]) - (q0[0] * out0[1] - q0[1] * out0[0])
        around_rate = -sense * spin / r
    whole, whole_rate = a + around + b, a_rate + around_rate + b_rate
    rise, rise_rate = p1[2] - p0[2], v1[2] - v0[2]
    z0 = v0[2] + (rise_rate * a + rise * a_rate) / whole - rise * a * whole_rate / (whole * whole)
    c, c_rate = a + around, a_rate + around_rate
    z1 = v0[2] + (rise_rate * c + rise * c_rate) / whole - rise * c * whole_rate / (whole * whole)
    return (out0[0], out0[1], z0), (out1[0], out1[1], z1)


@kernel
def _tangent_rate(r: float, d: Vec, v: Vec, n: Vec, turn: Vec, k: float) -> tuple[Vec, float]:
    """Return the rates of a contact point and of the tangent length; `turn` is the rate of n."""
    q = dot(d, d)
    s = np.sqrt(max(q - r * r, TINY))
    q_rate = 2.0 * dot(d, v)
    s_rate = q_rate / (2.0 * s)
    across = cross(n, d)
    across_rate = along(cross(turn, d), 1.0, cross(n, v))
    point = mul(r / q, along(mul(r, d), k * s, across))
    rate = along(along(mul(r, v), k * s_rate, across), k * s, across_rate)
    return along(mul(r / q, rate), -q_rate / q, point), s_rate


@kernel
def _reflection_rate(r: float, d0: Vec, d1: Vec, v0: Vec, v1: Vec) -> Vec:
    l0, l1 = norm(d0), norm(d1)
    e0, e1, G = fan(d0, d1)
    # Parallel ends: the point lies on their common direction.
    if G < 1e-9:
        return mul(r / l0, along(v0, -dot(v0, e0), e0))
    u1 = mul(1.0 / l1, d1)
    l0_rate, l1_rate = dot(v0, e0), dot(v1, u1)
    e0_rate = mul(1.0 / l0, along(v0, -l0_rate, e0))
    u1_rate = mul(1.0 / l1, along(v1, -l1_rate, u1))
    G_rate = -(dot(e0_rate, u1) + dot(e0, u1_rate)) / np.sin(G)
    n = cross(e0, e1)
    normal = cross(d0, d1)
    change = along(cross(v0, d1), 1.0, cross(d0, v1))
    turn = mul(1.0 / norm(normal), along(change, -dot(change, n), n))
    e1_rate = along(cross(turn, e0), 1.0, cross(n, e0_rate))
    x = angle_on_circle(l0, l1, r, G)
    s0, s1 = distance_curvature(l0, r, x), distance_curvature(l1, r, G - x)
    # Implicit function theorem on slope(l0, x) - slope(l1, G - x) = 0.
    pull = _by_radius(l0, r, x) * l0_rate - _by_radius(l1, r, G - x) * l1_rate - s1 * G_rate
    x_rate = -pull / (s0 + s1)
    c, s = np.cos(x), np.sin(x)
    out = along(mul(-r * s * x_rate, e0), r * c * x_rate, e1)
    return along(along(out, r * c, e0_rate), r * s, e1_rate)


@kernel
def _by_radius(l: float, r: float, x: float) -> float:  # noqa: E741
    square = l * l + r * r - 2.0 * l * r * np.cos(x)
    D = np.sqrt(square)
    return r * np.sin(x) / D - l * r * np.sin(x) * (l - r * np.cos(x)) / (square * D)


@kernel
def _length_rate(d: Vec, v: Vec) -> tuple[float, float]:
    size = max(norm(d), TINY)
    return size, dot(d, v) / size
