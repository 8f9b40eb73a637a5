"""How fast the points where a tendon touches a solid move over it, when its ends move."""

from __future__ import annotations

import numpy as np

from humanoid_control.jit import kernel
from humanoid_control.tendons.routing.vectors import Vec, cross, dot, norm, plus, scaled, sub
from humanoid_control.tendons.routing.wrapping import AROUND, TINY, angle_on_circle, fan, plane, sway_slope


@kernel
def wrap_rates(
    ball: bool, meet: int, r: float, arc: float, sense: float, p0: Vec, p1: Vec, v0: Vec, v1: Vec, t0: Vec, t1: Vec
) -> tuple[Vec, Vec]:
    """Velocities of the first and the last point of contact, all in the frame of the solid.

    Args:
        ball, r, p0, p1: as for `wrap`. meet, arc, t0, t1, sense: what it told.
        v0, v1: velocities (3,) of the ends.
    """
    d0, d1, n, _, _ = plane(ball, p0, p1)
    w0, w1, turn = v0, v1, (0.0, 0.0, 0.0)
    if ball:
        size = norm(cross(p0, p1))
        if size > TINY:
            rate = plus(cross(v0, p1), 1.0, cross(p0, v1))
            turn = scaled(1.0 / size, plus(rate, -dot(rate, n), n))
    else:
        w0, w1 = (v0[0], v0[1], 0.0), (v1[0], v1[1], 0.0)
    if meet == AROUND:
        out0, slide0 = _tangent_rate(r, d0, w0, n, turn, -sense)
        out1, slide1 = _tangent_rate(r, d1, w1, n, turn, sense)
    else:
        out0 = _reflection_rate(r, d0, d1, w0, w1)
        out1, slide0, slide1 = out0, 0.0, 0.0
    if ball:
        return out0, out1
    q0, q1 = (t0[0], t0[1], 0.0), (t1[0], t1[1], 0.0)
    a, a_rate = _length_rate(sub(d0, q0), sub(w0, out0))
    b, b_rate = _length_rate(sub(d1, q1), sub(w1, out1))
    around, around_rate = 0.0, 0.0
    if meet == AROUND:
        a_rate, b_rate = slide0, slide1
        rise = t1[2] - t0[2]
        around = np.sqrt(max(arc * arc - rise * rise, 0.0))
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
    """Velocity of a tangent's point of contact, and how fast the tangent grows; `turn` is the velocity of n."""
    q = dot(d, d)
    s = np.sqrt(max(q - r * r, TINY))
    q_rate = 2.0 * dot(d, v)
    s_rate = q_rate / (2.0 * s)
    across = cross(n, d)
    across_rate = plus(cross(turn, d), 1.0, cross(n, v))
    point = scaled(r / q, plus(scaled(r, d), k * s, across))
    rate = plus(plus(scaled(r, v), k * s_rate, across), k * s, across_rate)
    return plus(scaled(r / q, rate), -q_rate / q, point), s_rate


@kernel
def _reflection_rate(r: float, d0: Vec, d1: Vec, v0: Vec, v1: Vec) -> Vec:
    """Velocity of the point where a tendon is led through a ring: what keeps it the shortest way."""
    l0, l1 = norm(d0), norm(d1)
    e0, e1, G = fan(d0, d1)
    if G < 1e-9:
        return scaled(r / l0, plus(v0, -dot(v0, e0), e0))
    u1 = scaled(1.0 / l1, d1)
    l0_rate, l1_rate = dot(v0, e0), dot(v1, u1)
    e0_rate = scaled(1.0 / l0, plus(v0, -l0_rate, e0))
    u1_rate = scaled(1.0 / l1, plus(v1, -l1_rate, u1))
    G_rate = -(dot(e0_rate, u1) + dot(e0, u1_rate)) / np.sin(G)
    n = cross(e0, e1)
    normal = cross(d0, d1)
    change = plus(cross(v0, d1), 1.0, cross(d0, v1))
    turn = scaled(1.0 / norm(normal), plus(change, -dot(change, n), n))
    e1_rate = plus(cross(turn, e0), 1.0, cross(n, e0_rate))
    x = angle_on_circle(l0, l1, r, G)
    s0, s1 = sway_slope(l0, r, x), sway_slope(l1, r, G - x)
    pull = _by_radius(l0, r, x) * l0_rate - _by_radius(l1, r, G - x) * l1_rate - s1 * G_rate
    x_rate = -pull / (s0 + s1)
    c, s = np.cos(x), np.sin(x)
    out = plus(scaled(-r * s * x_rate, e0), r * c * x_rate, e1)
    return plus(plus(out, r * c, e0_rate), r * s, e1_rate)


@kernel
def _by_radius(l: float, r: float, x: float) -> float:  # noqa: E741
    """The derivative of `sway` by the radius of the outer point."""
    square = l * l + r * r - 2.0 * l * r * np.cos(x)
    D = np.sqrt(square)
    return r * np.sin(x) / D - l * r * np.sin(x) * (l - r * np.cos(x)) / (square * D)


@kernel
def _length_rate(d: Vec, v: Vec) -> tuple[float, float]:
    size = max(norm(d), TINY)
    return size, dot(d, v) / size
