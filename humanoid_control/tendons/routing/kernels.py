"""Kernels of tendon routing: forward kinematics, lengths, moment arms and their derivative, all exact."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from humanoid_control.compiled.array_types import B1, F1, F2, F3, I1
from humanoid_control.compiled.jit import kernel
from humanoid_control.compiled.packed import Packed, Table, unpack
from humanoid_control.kinematics.forward_kinematics import JointFrames, place_joint
from humanoid_control.numerics.vec3 import Vec, along, cross, dot, mul, norm, rotate, row, sub, unrotate
from humanoid_control.tendons.routing.wrapping import APART, Contact, wrap, wrap_rates

SHORTEST = 1e-12  # [m] a shorter segment has no direction, hence no moment arm


# -------- Arrays


class Routing(NamedTuple):
    """Posture-independent routing data.

    Body 0 carries the first joints, joint k moves body k, parents come first. Held joints are part of the bodies. A
    segment joins two points, with or without a solid. Segment s has joint lists 3 s to 3 s + 2: joints between its
    ends, between its start and the solid, between the solid and its end.

    Attributes:
        joints: (B,) frames; row 0 unused.
        parent: (B,) carrier body.
        coordinate: (B,) index in theta; a follower has its master's; -1 for body 0.
        polynomial: (B, K) joint value c_0 + c_1 theta + ...
        point_body: (P,).
        point: (P, 3) in body frames [m].
        first: (M + 1,) first segment of each tendon.
        start: (S,) point.
        end: (S,) point.
        solid: (S,) or -1.
        share: (S,) 1 / divisor.
        list_first: (3 S + 1,) start of each list.
        list_joint: (L,) bodies.
        list_sign: (L,) +1: moves the latter end, -1: the former.
        solid_body: (W,).
        solid_R: (W, 3, 3) in the body; cylinders along z.
        solid_p: (W, 3) in the body.
        ball: (W,) sphere.
        mode: (W,) FREE, SIDED or THROUGH.
        radius: (W,) [m].
        side: (W, 3) in the solid frame.
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
    """Reused memory of one posture's kinematics, in the frame of body 0.

    Attributes:
        R: (B, 3, 3) bodies.
        p: (B, 3) bodies.
        a: (B, 3) joint axes.
        x: (P, 3) points.
        w: (B, 3) angular velocities.
        v: (B, 3) velocities of origins.
        xd: (P, 3) point velocities.
        slope: (B,) derivative of a joint by its coordinate.
        bend: (B,) second derivative.
        slope_rate: (B,) rate of `slope`.
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
    """Routing, and memory for one thread."""

    routing: Routing
    placed: Placed


def routing_tables(routing: Routing) -> Packed[RoutingTables]:
    B, P = len(routing.parent), len(routing.point)
    rows = [np.zeros((n, 3)) for n in (B, B, P, B, B, P)]
    p, a, x, w, v, xd = rows
    placed = Placed(np.tile(np.eye(3), (B, 1, 1)), p, a, x, w, v, xd, np.ones(B), np.zeros(B), np.zeros(B))
    return Packed(RoutingTables(routing, placed))


class MovingSegment(NamedTuple):
    """Straight part of a path: ends [m] and velocities (3,) in the frame of body 0."""

    x0: Vec
    x1: Vec
    v0: Vec
    v1: Vec


# -------- Forward kinematics


@kernel
def place(routing: Routing, theta: np.ndarray, at: Placed) -> None:
    """Fill R, p, a, x, slope and bend at theta (D,) [rad, m]."""
    R, p, c = at.R, at.p, routing.polynomial
    for j in range(1, routing.parent.shape[0]):
        x, value, slope, half_bend = theta[routing.coordinate[j]], 0.0, 0.0, 0.0
        for k in range(c.shape[1] - 1, -1, -1):  # Horner's rule, also for both derivatives
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
    """Fill w, v, xd and slope_rate for joint velocities (D,), after `place`."""
    for j in range(1, routing.parent.shape[0]):
        # dq_j/dt = p'(x) x' for followers; p' = 1 for independent joints.
        b = routing.parent[j]
        value = rate[routing.coordinate[j]] * at.slope[j]
        at.slope_rate[j] = rate[routing.coordinate[j]] * at.bend[j]
        # Recursion v_j = v_parent + w_parent x arm, plus the joint's own motion along or about its axis.
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
    """Fill lengths (M,) [m] and, if `arms`, moment arms G = d length / d theta (M, D)."""
    place(routing, theta, at)
    # Several segments add to the same row.
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
                    # Only the two straight parts have moment arms: shifts of a contact point along the shortest path
                    # cancel to first order.
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
    """Return the contact of segment s, in the solid frame."""
    k = routing.solid[s]
    p0 = to_solid(routing, at, k, row(at.x, routing.start[s]))
    p1 = to_solid(routing, at, k, row(at.x, routing.end[s]))
    return wrap(routing.ball[k], routing.mode[k], routing.radius[k], row(routing.side, k), p0, p1)


@kernel
def contact_in_world(routing: Routing, at: Placed, s: int) -> tuple[int, float, Vec, Vec]:
    """Return kind, arc [m] and contact points of segment s, in the frame of body 0."""
    c, k = contact_of(routing, at, s), routing.solid[s]
    return c.kind, c.arc, from_solid(routing, at, k, c.first), from_solid(routing, at, k, c.last)


@kernel
def to_solid(routing: Routing, at: Placed, k: int, x: Vec) -> Vec:
    """Transform a point from body 0 to solid k."""
    b = routing.solid_body[k]
    in_body = unrotate(at.R[b], sub(x, row(at.p, b)))
    return unrotate(routing.solid_R[k], sub(in_body, row(routing.solid_p, k)))


@kernel
def from_solid(routing: Routing, at: Placed, k: int, t: Vec) -> Vec:
    """Transform a point from solid k to body 0."""
    b = routing.solid_body[k]
    in_body = along(row(routing.solid_p, k), 1.0, rotate(routing.solid_R[k], t))
    return along(row(at.p, b), 1.0, rotate(at.R[b], in_body))


@kernel
def add_moment_arms(
    routing: Routing, at: Placed, which: int, x0: Vec, x1: Vec, share: float, G: np.ndarray, m: int
) -> None:
    """Add the moment arms of the straight part x0 - x1 to row m, over joint list `which`."""
    d = sub(x1, x0)
    size = norm(d)
    # No direction, no moment arm.
    if size < SHORTEST:
        return
    u = mul(share / size, d)
    for i in range(routing.list_first[which], routing.list_first[which + 1]):
        j, sign = routing.list_joint[i], routing.list_sign[i]
        a = row(at.a, j)
        if routing.joints.slides[j]:
            arm = dot(u, a)
        else:
            # d length / d q_j = sign u . (a_j x (x - p_j)), with x the end that joint j moves.
            arm = dot(u, cross(a, sub(x1 if sign > 0.0 else x0, row(at.p, j))))
        G[m, routing.coordinate[j]] += sign * arm * at.slope[j]


# -------- Derivative of the moment arms


@kernel
def moment_arm_derivative(routing: Routing, theta: np.ndarray, rate: np.ndarray, at: Placed, out: np.ndarray) -> None:
    """Fill d(G(theta) rate) / d theta (M, D), equal to dG/dt as length Hessians are symmetric."""
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
                    # Contact points slide on the solid: wrap_rates gives their velocity in its frame.
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
    """Add the moment-arm rates of a straight part to row m, over joint list `which`."""
    d, e = sub(segment.x1, segment.x0), sub(segment.v1, segment.v0)
    size = norm(d)
    if size < SHORTEST:
        return
    u = mul(1.0 / size, d)
    # Rate of the unit vector: (e - (e . u) u) / |d|.
    u_rate = mul(share / size, along(e, -dot(e, u), u))
    u = mul(share, u)
    for i in range(routing.list_first[which], routing.list_first[which + 1]):
        j, sign = routing.list_joint[i], routing.list_sign[i]
        a = row(at.a, j)
        # The axis rotates with the carrier of the joint.
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
        # Product rule, since a following joint scales its moment arm by its slope.
        out[m, routing.coordinate[j]] += sign * (change * at.slope[j] + moment_arm * at.slope_rate[j])


@kernel
def _seen_from_solid(routing: Routing, at: Placed, k: int, x: Vec, v: Vec) -> Vec:
    """Return a point's velocity relative to solid k, in its frame."""
    b = routing.solid_body[k]
    carried = along(row(at.v, b), 1.0, cross(row(at.w, b), sub(x, row(at.p, b))))
    return unrotate(routing.solid_R[k], unrotate(at.R[b], sub(v, carried)))


@kernel
def _seen_from_world(routing: Routing, at: Placed, k: int, x: Vec, v: Vec) -> Vec:
    """Return the absolute velocity of a point at x that moves with v relative to solid k."""
    b = routing.solid_body[k]
    carried = along(row(at.v, b), 1.0, cross(row(at.w, b), sub(x, row(at.p, b))))
    return along(carried, 1.0, rotate(at.R[b], rotate(routing.solid_R[k], v)))


# -------- Entries from Python


@kernel(allocates=True)
def measure_at(table: Table[RoutingTables], thetas: np.ndarray, lengths: np.ndarray, G: np.ndarray) -> None:
    """Fill path lengths (N, M) [m] and moment arms G (N, M, D) at thetas (N, D); an empty G is skipped."""
    t, arms, nothing = unpack(table, RoutingTables), G.shape[0] > 0, np.empty((0, 0))
    for k in range(thetas.shape[0]):
        measure(t.routing, thetas[k], t.placed, lengths[k], G[k] if arms else nothing, arms)


@kernel
def moment_arm_derivative_at(table: Table[RoutingTables], theta: np.ndarray, rate: np.ndarray, out: np.ndarray) -> None:
    """Fill d(G rate) / d theta (M, D) at theta (D,)."""
    t = unpack(table, RoutingTables)
    moment_arm_derivative(t.routing, theta, rate, t.placed, out)
