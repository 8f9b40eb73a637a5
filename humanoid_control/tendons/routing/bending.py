"""How moment arms change when the joints move, exactly: the second derivatives of the lengths times a velocity."""

from __future__ import annotations

import numpy as np

from humanoid_control.jit import kernel
from humanoid_control.tendons.routing.measuring import SHORTEST, contact_of, from_solid, to_solid
from humanoid_control.tendons.routing.placing import move, place
from humanoid_control.tendons.routing.routing import Placed, Routing
from humanoid_control.tendons.routing.vectors import Vec, cross, dot, norm, plus, row, scaled, sub, turned, turned_back
from humanoid_control.tendons.routing.wrapping import APART
from humanoid_control.tendons.routing.wrapping_rates import wrap_rates


@kernel
def bend(routing: Routing, theta: np.ndarray, rate: np.ndarray, at: Placed, out: np.ndarray) -> None:
    """d(G(theta) rate) / d theta (M, D), filled; it is also the derivative of G by time.

    Args:
        theta, rate: (D,) joint values and velocities.
        at: memory that is used again and again.
    """
    place(routing, theta, at)
    move(routing, rate, at)
    out[:] = 0.0
    for m in range(routing.first.shape[0] - 1):
        for s in range(routing.first[m], routing.first[m + 1]):
            a, b, share = routing.start[s], routing.end[s], routing.share[s]
            x0, x1, v0, v1 = row(at.x, a), row(at.x, b), row(at.xd, a), row(at.xd, b)
            met = APART
            if routing.solid[s] >= 0:
                met, arc, t0, t1, sense = contact_of(routing, at, s)
                if met != APART:
                    k = routing.solid[s]
                    p0, p1 = to_solid(routing, at, k, x0), to_solid(routing, at, k, x1)
                    w0, w1 = _seen_from_solid(routing, at, k, x0, v0), _seen_from_solid(routing, at, k, x1, v1)
                    ball, r = routing.ball[k], routing.radius[k]
                    c0, c1 = wrap_rates(ball, met, r, arc, sense, p0, p1, w0, w1, t0, t1)
                    y0, y1 = from_solid(routing, at, k, t0), from_solid(routing, at, k, t1)
                    z0, z1 = _seen_from_world(routing, at, k, y0, c0), _seen_from_world(routing, at, k, y1, c1)
                    lever_rates(routing, at, 3 * s + 1, x0, y0, v0, z0, share, out, m)
                    lever_rates(routing, at, 3 * s + 2, y1, x1, z1, v1, share, out, m)
            if met == APART:
                lever_rates(routing, at, 3 * s, x0, x1, v0, v1, share, out, m)


@kernel
def lever_rates(
    routing: Routing,
    at: Placed,
    which: int,
    x0: Vec,
    x1: Vec,
    v0: Vec,
    v1: Vec,
    share: float,
    out: np.ndarray,
    m: int,
) -> None:
    """Add how the moment arms of the straight part from x0 to x1 change, its ends moving with v0 and v1."""
    d, e = sub(x1, x0), sub(v1, v0)
    size = norm(d)
    if size < SHORTEST:
        return
    u = scaled(1.0 / size, d)
    u_rate = scaled(share / size, plus(e, -dot(e, u), u))
    u = scaled(share, u)
    for i in range(routing.lever_first[which], routing.lever_first[which + 1]):
        j, sign = routing.lever_joint[i], routing.lever_sign[i]
        a = row(at.a, j)
        a_rate = cross(row(at.w, routing.parent[j]), a)
        if routing.slides[j]:
            change = dot(u_rate, a) + dot(u, a_rate)
        else:
            x, v = (x1, v1) if sign > 0.0 else (x0, v0)
            arm, arm_rate = sub(x, row(at.p, j)), sub(v, row(at.v, j))
            change = dot(u_rate, cross(a, arm)) + dot(u, plus(cross(a_rate, arm), 1.0, cross(a, arm_rate)))
        out[m, routing.coordinate[j]] += sign * change


@kernel
def _seen_from_solid(routing: Routing, at: Placed, k: int, x: Vec, v: Vec) -> Vec:
    """The velocity of a point as seen from solid k, in its frame."""
    b = routing.solid_body[k]
    carried = plus(row(at.v, b), 1.0, cross(row(at.w, b), sub(x, row(at.p, b))))
    return turned_back(routing.solid_R, k, turned_back(at.R, b, sub(v, carried)))


@kernel
def _seen_from_world(routing: Routing, at: Placed, k: int, x: Vec, v: Vec) -> Vec:
    """The velocity in the frame of body 0 of a point at x that moves with v as seen from solid k."""
    b = routing.solid_body[k]
    carried = plus(row(at.v, b), 1.0, cross(row(at.w, b), sub(x, row(at.p, b))))
    return plus(carried, 1.0, turned(at.R, b, turned(routing.solid_R, k, v)))
