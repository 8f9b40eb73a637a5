"""Routing of tendons on a mechanism as plain arrays, and its kernels, all exact.

They are forward kinematics, lengths and moment arms, and the derivative of the moment arms.

`measure_at` and `moment_arm_derivative_at` are the entries from Python; they take packed `RoutingTables`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from humanoid_control.jit import kernel
from humanoid_control.kinematics.forward_kinematics import JointFrames, place_joint
from humanoid_control.numerics.array_types import B1, F1, F2, F3, I1
from humanoid_control.numerics.packed import Packed, Table, unpack
from humanoid_control.numerics.vec3 import Vec, along, cross, dot, mul, norm, rotate, row, sub, unrotate
from humanoid_control.tendons.routing.wrapping import APART, Contact, wrap, wrap_rates

SHORTEST = 1e-12  # [m] a segment of no length has no direction, and no moment arm


# -------- Arrays


class Routing(NamedTuple):
    """Everything that does not change with the posture.

    Body 0 is what the first joints are fixed to; body k is what joint k moves, in an order in which parents come
    first. Joints that are held still are part of the bodies. A segment is the path between two points, with a solid
    between them or not; it has three lists of joints: those that move one of its ends without the other, its start
    without the solid, and the solid without its end.

    Attributes:
        joints: (B,) frames of the joints; row 0 is none. parent: (B,) body that carries the joint.
        coordinate: (B,) its place in the joint vector, for a joint that follows another the place of that one; -1 for
            body 0.
        polynomial: (B, K) value of the joint by that coordinate: c_0 + c_1 theta + ... (0, 1 for most).
        point_body, point: (P,), (P, 3) points in the frames of their bodies [m].
        first: (M + 1,) where the segments of each tendon begin.
        start, end: (S,) points. solid: (S,) or -1. share: (S,) 1 / divisor of the branch.
        list_first: (3 S + 1,) where each list begins; list_joint (L,) bodies; list_sign (L,): +1 moves the latter of
            the two, -1 the former.
        solid_body, solid_R, solid_p: (W,), (W, 3, 3), (W, 3) pose in its body; a cylinder is along z.
        ball: (W,) sphere. mode: (W,) FREE, SIDED or THROUGH. radius: (W,) [m]. side: (W, 3) in the solid's frame.
    """

    joints: JointFrames
    parent: I1
    coordinate: I1
    polynomial: F2
    point_body: I1
    point: F2
    first: I1
    start: I1
    end: I1
    solid: I1
    share: F1
    list_first: I1
    list_joint: I1
    list_sign: F1
    solid_body: I1
    solid_R: F3
    solid_p: F2
    ball: B1
    mode: I1
    radius: F1
    side: F2


class Placed(NamedTuple):
    """Kinematics of one posture in the frame of body 0, in memory that is used again and again.

    Attributes:
        R, p: (B, 3, 3), (B, 3) bodies. a: (B, 3) axes of their joints. x: (P, 3) points.
        w, v: (B, 3) angular velocity of the bodies, velocity of their origins. xd: (P, 3) velocities of the points.
        slope, bend: (B,) first and second derivative of a joint by its coordinate. slope_rate: (B,) of slope.
    """

    R: F3
    p: F2
    a: F2
    x: F2
    w: F2
    v: F2
    xd: F2
    slope: F1
    bend: F1
    slope_rate: F1


class RoutingTables(NamedTuple):
    """Arguments of the kernels that are entries from Python: a routing, and memory for one thread."""

    routing: Routing
    placed: Placed


def routing_tables(routing: Routing) -> Packed[RoutingTables]:
    """The routing with memory of its size, as kernels take it."""
    B, P = len(routing.parent), len(routing.point)
    rows = [np.zeros((n, 3)) for n in (B, B, P, B, B, P)]
    p, a, x, w, v, xd = rows
    placed = Placed(np.tile(np.eye(3), (B, 1, 1)), p, a, x, w, v, xd, np.ones(B), np.zeros(B), np.zeros(B))
    return Packed(RoutingTables(routing, placed))


class MovingSegment(NamedTuple):
    """Straight part of a path: ends x0, x1 [m] and their velocities v0, v1, all (3,) in the frame of body 0."""

    x0: Vec
    x1: Vec
    v0: Vec
    v1: Vec


# -------- Forward kinematics


@kernel
def place(routing: Routing, theta: np.ndarray, at: Placed) -> None:
    """Fill R, p, a, x, slope and bend for the joint values theta (D,) [rad, m]."""
    R, p, c = at.R, at.p, routing.polynomial
    for j in range(1, routing.parent.shape[0]):
        x, value, slope, half_bend = theta[routing.coordinate[j]], 0.0, 0.0, 0.0
        for k in range(c.shape[1] - 1, -1, -1):  # Horner's rule, of both derivatives too
            half_bend = half_bend * x + slope
            slope = slope * x + value
            value = value * x + c[j, k]
        at.slope[j], at.bend[j] = slope, 2.0 * half_bend
        place_joint(routing.joints, j, value, routing.parent[j], j, R, p, at.a)
    for k in range(routing.point.shape[0]):
        b = routing.point_body[k]
        at.x[k, 0], at.x[k, 1], at.x[k, 2] = along(row(p, b), 1.0, rotate(R[b], row(routing.point, k)))


@kernel
def move(routing: Routing, rate: np.ndarray, at: Placed) -> None:
    """Fill w, v, xd and slope_rate for the joint velocities rate (D,), after `place`."""
    for j in range(1, routing.parent.shape[0]):
        b = routing.parent[j]
        value = rate[routing.coordinate[j]] * at.slope[j]
        at.slope_rate[j] = rate[routing.coordinate[j]] * at.bend[j]
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
        G[m, routing.coordinate[j]] += sign * arm * at.slope[j]


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
            moment_arm = dot(u, a)
        else:
            x, v = (segment.x1, segment.v1) if sign > 0.0 else (segment.x0, segment.v0)
            arm, arm_rate = sub(x, row(at.p, j)), sub(v, row(at.v, j))
            turned = cross(a, arm)
            change = dot(u_rate, turned) + dot(u, along(cross(a_rate, arm), 1.0, cross(a, arm_rate)))
            moment_arm = dot(u, turned)
        out[m, routing.coordinate[j]] += sign * (change * at.slope[j] + moment_arm * at.slope_rate[j])


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
def measure_at(table: Table[RoutingTables], thetas: np.ndarray, lengths: np.ndarray, G: np.ndarray) -> None:
    """Lengths (N, M) of the whole paths [m] and moment arms G (N, M, D) at thetas (N, D).

    Moment arms are left out where G has no postures, (0, M, D).
    """
    t, arms, nothing = unpack(table, RoutingTables), G.shape[0] > 0, np.empty((0, 0))
    for k in range(thetas.shape[0]):
        measure(t.routing, thetas[k], t.placed, lengths[k], G[k] if arms else nothing, arms)


@kernel
def moment_arm_derivative_at(table: Table[RoutingTables], theta: np.ndarray, rate: np.ndarray, out: np.ndarray) -> None:
    """d(G rate) / d theta (M, D) at theta (D,) for a velocity rate (D,)."""
    t = unpack(table, RoutingTables)
    moment_arm_derivative(t.routing, theta, rate, t.placed, out)
