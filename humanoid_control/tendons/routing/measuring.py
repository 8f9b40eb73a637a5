"""Lengths of tendons and their moment arms, exactly.

A stretch from x0 to x1 has the length |x1 - x0| and the gradient u . (dx1 - dx0) with its direction u. Where a tendon
bends around a solid, its way is the shortest one there is, so that to first order the points of contact may be taken
as fixed on the solid: the two straight parts give the moment arms, the part on the solid gives none.
"""

from __future__ import annotations

import numpy as np

from humanoid_control.jit import kernel
from humanoid_control.tendons.routing.placing import place
from humanoid_control.tendons.routing.routing import Placed, Routing
from humanoid_control.tendons.routing.vectors import Vec, cross, dot, norm, plus, row, scaled, sub, turned, turned_back
from humanoid_control.tendons.routing.wrapping import APART, Contact, wrap

SHORTEST = 1e-12  # [m] a stretch of no length has no direction, and no moment arm


@kernel
def measure(routing: Routing, theta: np.ndarray, at: Placed, length: np.ndarray, G: np.ndarray, arms: bool) -> None:
    """Lengths (M,) [m] and, where `arms` asks for it, moment arms G (M, D) = d length / d theta, filled.

    Args:
        theta: (D,) joint values [rad, m].
        at: memory that is used again and again.
        G: may be empty where `arms` is False.
    """
    place(routing, theta, at)
    if arms:
        G[:] = 0.0
    for m in range(routing.first.shape[0] - 1):
        total = 0.0
        for s in range(routing.first[m], routing.first[m + 1]):
            x0, x1 = row(at.x, routing.start[s]), row(at.x, routing.end[s])
            share, met = routing.share[s], APART
            if routing.solid[s] >= 0:
                met, arc, t0, t1 = contact_in_world(routing, at, s)
                if met != APART:
                    total += share * (arc + norm(sub(t0, x0)) + norm(sub(x1, t1)))
                    if arms:
                        levers(routing, at, 3 * s + 1, x0, t0, share, G, m)
                        levers(routing, at, 3 * s + 2, t1, x1, share, G, m)
            if met == APART:
                total += share * norm(sub(x1, x0))
                if arms:
                    levers(routing, at, 3 * s, x0, x1, share, G, m)
        length[m] = total


@kernel
def contact_of(routing: Routing, at: Placed, s: int) -> Contact:
    """How stretch s meets its solid, in the frame of the solid."""
    k = routing.solid[s]
    p0 = to_solid(routing, at, k, row(at.x, routing.start[s]))
    p1 = to_solid(routing, at, k, row(at.x, routing.end[s]))
    return wrap(routing.ball[k], routing.mode[k], routing.radius[k], row(routing.side, k), p0, p1)


@kernel
def contact_in_world(routing: Routing, at: Placed, s: int) -> tuple[int, float, Vec, Vec]:
    """How stretch s meets its solid, its length on it [m], and the two points of contact in the frame of body 0."""
    met, arc, t0, t1, _ = contact_of(routing, at, s)
    k = routing.solid[s]
    return met, arc, from_solid(routing, at, k, t0), from_solid(routing, at, k, t1)


@kernel
def to_solid(routing: Routing, at: Placed, k: int, x: Vec) -> Vec:
    """A point of the frame of body 0 in the frame of solid k."""
    b = routing.solid_body[k]
    in_body = turned_back(at.R, b, sub(x, row(at.p, b)))
    return turned_back(routing.solid_R, k, sub(in_body, row(routing.solid_p, k)))


@kernel
def from_solid(routing: Routing, at: Placed, k: int, t: Vec) -> Vec:
    """A point of the frame of solid k in the frame of body 0."""
    b = routing.solid_body[k]
    in_body = plus(row(routing.solid_p, k), 1.0, turned(routing.solid_R, k, t))
    return plus(row(at.p, b), 1.0, turned(at.R, b, in_body))


@kernel
def levers(routing: Routing, at: Placed, which: int, x0: Vec, x1: Vec, share: float, G: np.ndarray, m: int) -> None:
    """Add the moment arms of the straight part from x0 to x1 to row m; `which` of the lists of levers."""
    d = sub(x1, x0)
    size = norm(d)
    if size < SHORTEST:
        return
    u = scaled(share / size, d)
    for i in range(routing.lever_first[which], routing.lever_first[which + 1]):
        j, sign = routing.lever_joint[i], routing.lever_sign[i]
        a = row(at.a, j)
        if routing.slides[j]:
            arm = dot(u, a)
        else:
            arm = dot(u, cross(a, sub(x1 if sign > 0.0 else x0, row(at.p, j))))
        G[m, routing.coordinate[j]] += sign * arm
