"""Kernels of a routing: forward kinematics, lengths and moment arms, and the derivative of the moment arms, all exact.

`measure_at` and `moment_arm_derivative_at` are the entries from Python; they take a packed routing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from humanoid_control.jit import kernel
from humanoid_control.kinematics.forward_kinematics import place_joint
from humanoid_control.numerics.vec3 import Vec, along, cross, dot, mul, norm, rotate, row, sub, unrotate
from humanoid_control.tendons.routing.arrays import Placed, Routing, placed_in, unpacked
from humanoid_control.tendons.routing.wrapping import APART, Contact, wrap, wrap_rates

SHORTEST = 1e-12  # [m] a segment of no length has no direction, and no moment arm


class MovingSegment(NamedTuple):
    """Straight part of a path: ends x0, x1 [m] and their velocities v0, v1, all (3,) in the frame of body 0."""

    x0: Vec
    x1: Vec
    v0: Vec
    v1: Vec


# -------- Forward kinematics


@kernel
def place(routing: Routing, theta: np.ndarray, at: Placed) -> None:
    """Fill R, p, a and x for the joint values theta (D,) [rad, m]."""
    R, p = at.R, at.p
    for j in range(1, routing.parent.shape[0]):
        place_joint(routing.joints, j, theta[routing.coordinate[j]], routing.parent[j], j, R, p, at.a)
    for k in range(routing.point.shape[0]):
        b = routing.point_body[k]
        at.x[k, 0], at.x[k, 1], at.x[k, 2] = along(row(p, b), 1.0, rotate(R[b], row(routing.point, k)))


@kernel
def move(routing: Routing, rate: np.ndarray, at: Placed) -> None:
    """Fill w, v and xd for the joint velocities rate (D,), after `place`."""
    for j in range(1, routing.parent.shape[0]):
        b = routing.parent[j]
        value = rate[routing.coordinate[j]]
        w, arm, a = row(at.w, b), sub(row(at.p, j), row(at.p, b)), row(at.a, j)
        v = along(row(at.v, b), 1.0, cross(w, arm))
        if routing.joints.slides[j]:
            v = along(v, value, a)
        else:
            w = along(w, 1.0, mul(value, a))
        at.w[j, 0], at.w[j, 1], at.w[j, 2] = w
        at.v[j, 0], at.v[j, 1], at.v[j, 2] = v
    for k in range(routing.point.shape[0]):
        b = routing.point_body[k]
        arm = sub(row(at.x, k), row(at.p, b))
        at.xd[k, 0], at.xd[k, 1], at.xd[k, 2] = along(row(at.v, b), 1.0, cross(row(at.w, b), arm))


# -------- Lengths and moment arms


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
                        add_moment_arms(routing, at, 3 * s + 1, x0, t0, share, G, m)
                        add_moment_arms(routing, at, 3 * s + 2, t1, x1, share, G, m)
            if met == APART:
                total += share * norm(sub(x1, x0))
                if arms:
                    add_moment_arms(routing, at, 3 * s, x0, x1, share, G, m)
        length[m] = total


@kernel
def contact_of(routing: Routing, at: Placed, s: int) -> Contact:
    """Contact of segment s with its solid, in the frame of the solid."""
    k = routing.solid[s]
    p0 = to_solid(routing, at, k, row(at.x, routing.start[s]))
    p1 = to_solid(routing, at, k, row(at.x, routing.end[s]))
    return wrap(routing.ball[k], routing.mode[k], routing.radius[k], row(routing.side, k), p0, p1)


@kernel
def contact_in_world(routing: Routing, at: Placed, s: int) -> tuple[int, float, Vec, Vec]:
    """Contact of segment s: its kind, the length on the solid [m], and its two ends in the frame of body 0."""
    c, k = contact_of(routing, at, s), routing.solid[s]
    return c.kind, c.arc, from_solid(routing, at, k, c.first), from_solid(routing, at, k, c.last)


@kernel
def to_solid(routing: Routing, at: Placed, k: int, x: Vec) -> Vec:
    """A point of the frame of body 0 in the frame of solid k."""
    b = routing.solid_body[k]
    in_body = unrotate(at.R[b], sub(x, row(at.p, b)))
    return unrotate(routing.solid_R[k], sub(in_body, row(routing.solid_p, k)))


@kernel
def from_solid(routing: Routing, at: Placed, k: int, t: Vec) -> Vec:
    """A point of the frame of solid k in the frame of body 0."""
    b = routing.solid_body[k]
    in_body = along(row(routing.solid_p, k), 1.0, rotate(routing.solid_R[k], t))
    return along(row(at.p, b), 1.0, rotate(at.R[b], in_body))


@kernel
def add_moment_arms(
    routing: Routing, at: Placed, which: int, x0: Vec, x1: Vec, share: float, G: np.ndarray, m: int
) -> None:
    """Add the moment arms of the straight part from x0 to x1 to row m; `which` of the lists of joints."""
    d = sub(x1, x0)
    size = norm(d)
    if size < SHORTEST:
        return
    u = mul(share / size, d)
    for i in range(routing.list_first[which], routing.list_first[which + 1]):
        j, sign = routing.list_joint[i], routing.list_sign[i]
        a = row(at.a, j)
        if routing.joints.slides[j]:
            arm = dot(u, a)
        else:
            arm = dot(u, cross(a, sub(x1 if sign > 0.0 else x0, row(at.p, j))))
        G[m, routing.coordinate[j]] += sign * arm


# -------- Derivative of the moment arms


@kernel
def moment_arm_derivative(routing: Routing, theta: np.ndarray, rate: np.ndarray, at: Placed, out: np.ndarray) -> None:
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
                contact = contact_of(routing, at, s)
                met = contact.kind
                if met != APART:
                    k = routing.solid[s]
                    p0, p1 = to_solid(routing, at, k, x0), to_solid(routing, at, k, x1)
                    w0, w1 = _seen_from_solid(routing, at, k, x0, v0), _seen_from_solid(routing, at, k, x1, v1)
                    c0, c1 = wrap_rates(routing.ball[k], routing.radius[k], contact, p0, p1, w0, w1)
                    y0, y1 = from_solid(routing, at, k, contact.first), from_solid(routing, at, k, contact.last)
                    z0, z1 = _seen_from_world(routing, at, k, y0, c0), _seen_from_world(routing, at, k, y1, c1)
                    add_moment_arm_rates(routing, at, 3 * s + 1, MovingSegment(x0, y0, v0, z0), share, out, m)
                    add_moment_arm_rates(routing, at, 3 * s + 2, MovingSegment(y1, x1, z1, v1), share, out, m)
            if met == APART:
                add_moment_arm_rates(routing, at, 3 * s, MovingSegment(x0, x1, v0, v1), share, out, m)


@kernel
def add_moment_arm_rates(
    routing: Routing, at: Placed, which: int, segment: MovingSegment, share: float, out: np.ndarray, m: int
) -> None:
    """Add the rates of the moment arms of a straight part to row m; `which` of the lists of joints."""
    d, e = sub(segment.x1, segment.x0), sub(segment.v1, segment.v0)
    size = norm(d)
    if size < SHORTEST:
        return
    u = mul(1.0 / size, d)
    u_rate = mul(share / size, along(e, -dot(e, u), u))
    u = mul(share, u)
    for i in range(routing.list_first[which], routing.list_first[which + 1]):
        j, sign = routing.list_joint[i], routing.list_sign[i]
        a = row(at.a, j)
        a_rate = cross(row(at.w, routing.parent[j]), a)
        if routing.joints.slides[j]:
            change = dot(u_rate, a) + dot(u, a_rate)
        else:
            x, v = (segment.x1, segment.v1) if sign > 0.0 else (segment.x0, segment.v0)
            arm, arm_rate = sub(x, row(at.p, j)), sub(v, row(at.v, j))
            change = dot(u_rate, cross(a, arm)) + dot(u, along(cross(a_rate, arm), 1.0, cross(a, arm_rate)))
        out[m, routing.coordinate[j]] += sign * change


@kernel
def _seen_from_solid(routing: Routing, at: Placed, k: int, x: Vec, v: Vec) -> Vec:
    """The velocity of a point as seen from solid k, in its frame."""
    b = routing.solid_body[k]
    carried = along(row(at.v, b), 1.0, cross(row(at.w, b), sub(x, row(at.p, b))))
    return unrotate(routing.solid_R[k], unrotate(at.R[b], sub(v, carried)))


@kernel
def _seen_from_world(routing: Routing, at: Placed, k: int, x: Vec, v: Vec) -> Vec:
    """The velocity in the frame of body 0 of a point at x that moves with v as seen from solid k."""
    b = routing.solid_body[k]
    carried = along(row(at.v, b), 1.0, cross(row(at.w, b), sub(x, row(at.p, b))))
    return along(carried, 1.0, rotate(at.R[b], rotate(routing.solid_R[k], v)))


# -------- Entries from Python


@kernel
def measure_at(
    ints: np.ndarray, reals: np.ndarray, memory: np.ndarray, thetas: np.ndarray, lengths: np.ndarray, G: np.ndarray
) -> None:
    """Lengths (N, M) of the whole paths [m] and moment arms G (N, M, D) at thetas (N, D).

    Moment arms are left out where G has no postures, (0, M, D).
    """
    routing, at, arms, nothing = unpacked(ints, reals), placed_in(ints, memory), G.shape[0] > 0, np.empty((0, 0))
    for k in range(thetas.shape[0]):
        measure(routing, thetas[k], at, lengths[k], G[k] if arms else nothing, arms)


@kernel
def moment_arm_derivative_at(
    ints: np.ndarray, reals: np.ndarray, memory: np.ndarray, theta: np.ndarray, rate: np.ndarray, out: np.ndarray
) -> None:
    """d(G rate) / d theta (M, D) at theta (D,) for a velocity rate (D,)."""
    moment_arm_derivative(unpacked(ints, reals), theta, rate, placed_in(ints, memory), out)
