"""Where the bodies and points of a routing are, and how fast they move: kinematics of the needed joints only."""

from __future__ import annotations

import numpy as np

from humanoid_control.jit import kernel
from humanoid_control.tendons.routing.routing import Placed, Routing
from humanoid_control.tendons.routing.vectors import cross, plus, row, scaled, sub, turned


@kernel
def place(routing: Routing, theta: np.ndarray, at: Placed) -> None:
    """Fill R, p, a and x for the joint values theta (D,) [rad, m]."""
    R, p, R0, p0 = at.R, at.p, routing.R0, routing.p0
    for j in range(1, routing.parent.shape[0]):
        b = routing.parent[j]
        value = theta[routing.coordinate[j]]
        ux, uy, uz = routing.axis[j, 0], routing.axis[j, 1], routing.axis[j, 2]
        if routing.slides[j]:
            c, s = 1.0, 0.0
            reach = value
        else:
            c, s = np.cos(value), np.sin(value)
            reach = 0.0
        t = 1.0 - c
        e00, e01, e02 = c + ux * ux * t, ux * uy * t - uz * s, ux * uz * t + uy * s
        e10, e11, e12 = uy * ux * t + uz * s, c + uy * uy * t, uy * uz * t - ux * s
        e20, e21, e22 = uz * ux * t - uy * s, uz * uy * t + ux * s, c + uz * uz * t
        for i in range(3):
            b0, b1, b2 = R[b, i, 0], R[b, i, 1], R[b, i, 2]
            a0 = b0 * R0[j, 0, 0] + b1 * R0[j, 1, 0] + b2 * R0[j, 2, 0]
            a1 = b0 * R0[j, 0, 1] + b1 * R0[j, 1, 1] + b2 * R0[j, 2, 1]
            a2 = b0 * R0[j, 0, 2] + b1 * R0[j, 1, 2] + b2 * R0[j, 2, 2]
            along = a0 * ux + a1 * uy + a2 * uz
            at.a[j, i] = along
            R[j, i, 0] = a0 * e00 + a1 * e10 + a2 * e20
            R[j, i, 1] = a0 * e01 + a1 * e11 + a2 * e21
            R[j, i, 2] = a0 * e02 + a1 * e12 + a2 * e22
            p[j, i] = p[b, i] + b0 * p0[j, 0] + b1 * p0[j, 1] + b2 * p0[j, 2] + along * reach
    for k in range(routing.point.shape[0]):
        b = routing.point_body[k]
        at.x[k, 0], at.x[k, 1], at.x[k, 2] = plus(row(p, b), 1.0, turned(R, b, row(routing.point, k)))


@kernel
def move(routing: Routing, rate: np.ndarray, at: Placed) -> None:
    """Fill w, v and xd for the joint velocities rate (D,), after `place`."""
    for j in range(1, routing.parent.shape[0]):
        b = routing.parent[j]
        value = rate[routing.coordinate[j]]
        w, arm, a = row(at.w, b), sub(row(at.p, j), row(at.p, b)), row(at.a, j)
        v = plus(row(at.v, b), 1.0, cross(w, arm))
        if routing.slides[j]:
            v = plus(v, value, a)
        else:
            w = plus(w, 1.0, scaled(value, a))
        at.w[j, 0], at.w[j, 1], at.w[j, 2] = w
        at.v[j, 0], at.v[j, 1], at.v[j, 2] = v
    for k in range(routing.point.shape[0]):
        b = routing.point_body[k]
        arm = sub(row(at.x, k), row(at.p, b))
        at.xd[k, 0], at.xd[k, 1], at.xd[k, 2] = plus(row(at.v, b), 1.0, cross(row(at.w, b), arm))
