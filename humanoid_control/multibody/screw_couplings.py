"""Screw drives: how long the screw is at a joint angle, with gradient and Hessian, as compiled functions of numbers.

Every function reads its parameters from a flat array `par` at the offset `at` (written by `coupling_parameters`) and
returns the value, the first and the second derivatives by the joint coordinates; NaN where the loop cannot close.
The rotor's angle is 2 pi / lead times the length (Schwienbacher 2014, eq. (3.3), (3.22)).
"""

from __future__ import annotations

import numpy as np

from humanoid_control.jit import kernel

HINGE_SIZE = 5  # a_x a_y b_x b_y h
COUPLER_SIZE = 20  # r_0, axis_1, r_pc, axis_2, r_bot, e (3 each), coupler length, branch


@kernel
def hinge_screw(par: np.ndarray, at: int, q: float) -> tuple[float, float, float]:
    """Length l of a screw unit between hinge B on the parent link and pivot A on the child link, (3.4) to (3.6).

    In the plane normal to the joint axis: r = R(q) a - b, with the constant h along the axis; l = |r|. The derivative
    by the angle is r^T r' / l; the source's (3.11) and (3.14), which have |r'| in its place, are not.

    Args:
        par: a_x a_y b_x b_y h at `at` [m].
        q: joint angle [rad].

    Returns:
        l [m], dl/dq, d2l/dq2.
    """
    s, c = np.sin(q), np.cos(q)
    ax, ay = c * par[at] - s * par[at + 1], s * par[at] + c * par[at + 1]
    bx, by, h = par[at + 2], par[at + 3], par[at + 4]
    x, y = ax - bx, ay - by
    length = np.sqrt(x * x + y * y + h * h)
    l_q = (ay * bx - ax * by) / length  # r^T r' with r' = (-ay, ax)
    l_qq = (ax * bx + ay * by - l_q * l_q) / length
    return length, l_q, l_qq


@kernel
def hinge_tilt(par: np.ndarray, at: int, q: float) -> tuple[float, float, float]:
    """Angle by which the unit of `hinge_screw` has turned on its hinge B, about the joint axis.

    Right-handed about the axis, so its rate is the angular velocity (r x r') / l^2 of the screw itself; (3.17) and
    (3.19) of the source have the opposite sign. Zero where the screw points along the first axis of the plane.

    Args:
        par: as for `hinge_screw`.
        q: joint angle [rad].

    Returns:
        alpha [rad], within half a turn of its zero, and its two derivatives.
    """
    s, c = np.sin(q), np.cos(q)
    ax, ay = c * par[at] - s * par[at + 1], s * par[at] + c * par[at + 1]
    bx, by = par[at + 2], par[at + 3]
    x, y = ax - bx, ay - by
    rr = x * x + y * y
    alpha_q = (x * ax + y * ay) / rr
    turn = ay * bx - ax * by  # both the derivative of the numerator and half that of |r|^2
    alpha_qq = turn * (1.0 - 2.0 * alpha_q) / rr
    return np.arctan2(y, x), alpha_q, alpha_qq


@kernel
def turned(n0: float, n1: float, n2: float, s: float, c: float, x: float, y: float, z: float) -> tuple:
    """The vector x y z turned about the unit vector n by the angle with this sine and cosine."""
    k = (1.0 - c) * (n0 * x + n1 * y + n2 * z)
    return (
        c * x + s * (n1 * z - n2 * y) + k * n0,
        c * y + s * (n2 * x - n0 * z) + k * n1,
        c * z + s * (n0 * y - n1 * x) + k * n2,
    )


@kernel
def coupler_screw(par: np.ndarray, at: int, q1: float, q2: float) -> tuple[float, float, float, float, float, float]:
    """Travel l of a carriage on a screw that moves a link with two joints by a rigid coupler, (3.22) to (3.35).

    r = r_0 + R_1(q1) (R_2(q2) r_bot + r_pc) is the coupler's lower end seen from the start of the screw, e the screw's
    direction, l_c the coupler's length: l = e^T r +- sqrt(l_c^2 + r^T P r), P = e e^T - E. The branch -1 has the
    carriage before the coupler's lower end (above the foot). The axes may lie anyhow and need not intersect.

    Args:
        par: r_0, axis of the first joint, r_pc, axis of the second, r_bot, e, l_c, branch, at `at`.
        q1, q2: angles of the joint nearer to the screw's link and of the one after it [rad].

    Returns:
        l [m], l_1, l_2, l_11, l_12, l_22; NaN where the coupler is too short.
    """
    n0, n1, n2 = par[at + 3], par[at + 4], par[at + 5]
    m0, m1, m2 = par[at + 9], par[at + 10], par[at + 11]
    e0, e1, e2 = par[at + 15], par[at + 16], par[at + 17]
    length, branch = par[at + 18], par[at + 19]
    s1, c1, s2, c2 = np.sin(q1), np.cos(q1), np.sin(q2), np.cos(q2)
    b0, b1, b2 = turned(m0, m1, m2, s2, c2, par[at + 12], par[at + 13], par[at + 14])
    d0, d1, d2 = m1 * b2 - m2 * b1, m2 * b0 - m0 * b2, m0 * b1 - m1 * b0
    dd0, dd1, dd2 = m1 * d2 - m2 * d1, m2 * d0 - m0 * d2, m0 * d1 - m1 * d0
    w0, w1, w2 = turned(n0, n1, n2, s1, c1, b0 + par[at + 6], b1 + par[at + 7], b2 + par[at + 8])
    r0, r1, r2 = w0 + par[at], w1 + par[at + 1], w2 + par[at + 2]
    f0, f1, f2 = n1 * w2 - n2 * w1, n2 * w0 - n0 * w2, n0 * w1 - n1 * w0  # r by q1
    g0, g1, g2 = turned(n0, n1, n2, s1, c1, d0, d1, d2)  # r by q2
    ff0, ff1, ff2 = n1 * f2 - n2 * f1, n2 * f0 - n0 * f2, n0 * f1 - n1 * f0
    fg0, fg1, fg2 = n1 * g2 - n2 * g1, n2 * g0 - n0 * g2, n0 * g1 - n1 * g0
    gg0, gg1, gg2 = turned(n0, n1, n2, s1, c1, dd0, dd1, dd2)
    u = e0 * r0 + e1 * r1 + e2 * r2
    u_1, u_2 = e0 * f0 + e1 * f1 + e2 * f2, e0 * g0 + e1 * g1 + e2 * g2
    u_11, u_12 = e0 * ff0 + e1 * ff1 + e2 * ff2, e0 * fg0 + e1 * fg1 + e2 * fg2
    u_22 = e0 * gg0 + e1 * gg1 + e2 * gg2
    p0, p1, p2 = u * e0 - r0, u * e1 - r1, u * e2 - r2  # P r
    square = length * length - (p0 * p0 + p1 * p1 + p2 * p2)
    d = branch * np.sqrt(square) if square > 0.0 else np.nan
    k_1, k_2 = p0 * f0 + p1 * f1 + p2 * f2, p0 * g0 + p1 * g1 + p2 * g2
    k_11 = u_1 * u_1 - (f0 * f0 + f1 * f1 + f2 * f2) + p0 * ff0 + p1 * ff1 + p2 * ff2
    k_12 = u_1 * u_2 - (f0 * g0 + f1 * g1 + f2 * g2) + p0 * fg0 + p1 * fg1 + p2 * fg2
    k_22 = u_2 * u_2 - (g0 * g0 + g1 * g1 + g2 * g2) + p0 * gg0 + p1 * gg1 + p2 * gg2
    cube = d * d * d
    return (
        u + d,
        u_1 + k_1 / d,
        u_2 + k_2 / d,
        u_11 + k_11 / d - k_1 * k_1 / cube,
        u_12 + k_12 / d - k_1 * k_2 / cube,
        u_22 + k_22 / d - k_2 * k_2 / cube,
    )
