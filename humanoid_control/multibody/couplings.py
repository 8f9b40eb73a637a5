"""Couplings: a body's angle as a function of shared joint coordinates.

Functions read `par` at offset `at` and return the value, first and second derivatives; NaN if the loop cannot close.
The rotor angle of a screw is 2 pi / lead times its length (Schwienbacher 2014, eq. (3.3), (3.22)).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from humanoid_control.compiled.array_types import F1, I1, I2
from humanoid_control.compiled.jit import inlined, kernel
from humanoid_control.errors import RobotError
from humanoid_control.multibody.layout import BIAS, COORD, COUPLING, GRAD, NC, PAR, RATE
from humanoid_control.numerics.spline import LINEAR_TERMS, polynomial_at, spline_at, spline_data

# -------- Screws

HINGE_SIZE = 5  # a_x a_y b_x b_y h
COUPLER_SIZE = 20  # r_0, axis_1, r_pc, axis_2, r_bot, e (3 each), coupler length, branch


@kernel
def hinge_screw(par: np.ndarray, at: int, q: float) -> tuple[float, float, float]:
    """Return l [m], dl/dq, d2l/dq2 of a screw between hinge B on the parent and pivot A on the child at q [rad].

    Equations (3.4) to (3.6); (3.11) and (3.14) print |r'| instead of r^T r' / l. Parameters a_x a_y b_x b_y h [m].
    """
    # In the plane normal to the joint axis r = R(q) a - b, with constant h along the axis; l = |r|.
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
    """Return the right-handed angle [rad] of the screw about the joint axis, and two derivatives.

    Parameters of `hinge_screw`. Within half a turn; (3.17) and (3.19) have the opposite sign.
    """
    s, c = np.sin(q), np.cos(q)
    ax, ay = c * par[at] - s * par[at + 1], s * par[at] + c * par[at + 1]
    bx, by = par[at + 2], par[at + 3]
    x, y = ax - bx, ay - by
    rr = x * x + y * y
    # Angular velocity of the screw: (r x r') / |r|^2.
    alpha_q = (x * ax + y * ay) / rr
    turn = ay * bx - ax * by  # derivative of the numerator, and half that of |r|^2
    alpha_qq = turn * (1.0 - 2.0 * alpha_q) / rr
    return np.arctan2(y, x), alpha_q, alpha_qq


@kernel
def rotate_about(n0: float, n1: float, n2: float, s: float, c: float, x: float, y: float, z: float) -> tuple:
    """Rotate (x, y, z) about the unit vector n by an angle with sine s and cosine c."""
    # Rodrigues' formula.
    k = (1.0 - c) * (n0 * x + n1 * y + n2 * z)
    return (
        c * x + s * (n1 * z - n2 * y) + k * n0,
        c * y + s * (n2 * x - n0 * z) + k * n1,
        c * z + s * (n0 * y - n1 * x) + k * n2,
    )


@kernel
def coupler_screw(par: np.ndarray, at: int, q1: float, q2: float) -> tuple[float, float, float, float, float, float]:
    """Return l [m] and derivatives l_1, l_2, l_11, l_12, l_22 of a carriage's travel, eq. (3.22) to (3.35).

    A screw moves a two-joint link by a rigid coupler; the axes are arbitrary. The joint of q1 [rad] is nearer to the
    screw.
    """
    # r = r_0 + R_1(q1) (R_2(q2) r_bot + r_pc) is the lower coupler end from the start of the screw, e the screw
    # direction: l = e^T r +- sqrt(l_c^2 + r^T P r), P = e e^T - E. Branch -1 has the carriage before the lower end.
    n0, n1, n2 = par[at + 3], par[at + 4], par[at + 5]
    m0, m1, m2 = par[at + 9], par[at + 10], par[at + 11]
    e0, e1, e2 = par[at + 15], par[at + 16], par[at + 17]
    length, branch = par[at + 18], par[at + 19]
    s1, c1, s2, c2 = np.sin(q1), np.cos(q1), np.sin(q2), np.cos(q2)
    # d and dd are the first and second derivatives of R_2 r_bot by q2.
    b0, b1, b2 = rotate_about(m0, m1, m2, s2, c2, par[at + 12], par[at + 13], par[at + 14])
    d0, d1, d2 = m1 * b2 - m2 * b1, m2 * b0 - m0 * b2, m0 * b1 - m1 * b0
    dd0, dd1, dd2 = m1 * d2 - m2 * d1, m2 * d0 - m0 * d2, m0 * d1 - m1 * d0
    w0, w1, w2 = rotate_about(n0, n1, n2, s1, c1, b0 + par[at + 6], b1 + par[at + 7], b2 + par[at + 8])
    r0, r1, r2 = w0 + par[at], w1 + par[at + 1], w2 + par[at + 2]
    f0, f1, f2 = n1 * w2 - n2 * w1, n2 * w0 - n0 * w2, n0 * w1 - n1 * w0  # r by q1
    g0, g1, g2 = rotate_about(n0, n1, n2, s1, c1, d0, d1, d2)  # r by q2
    ff0, ff1, ff2 = n1 * f2 - n2 * f1, n2 * f0 - n0 * f2, n0 * f1 - n1 * f0
    fg0, fg1, fg2 = n1 * g2 - n2 * g1, n2 * g0 - n0 * g2, n0 * g1 - n1 * g0
    gg0, gg1, gg2 = rotate_about(n0, n1, n2, s1, c1, dd0, dd1, dd2)
    u = e0 * r0 + e1 * r1 + e2 * r2
    u_1, u_2 = e0 * f0 + e1 * f1 + e2 * f2, e0 * g0 + e1 * g1 + e2 * g2
    u_11, u_12 = e0 * ff0 + e1 * ff1 + e2 * ff2, e0 * fg0 + e1 * fg1 + e2 * fg2
    u_22 = e0 * gg0 + e1 * gg1 + e2 * gg2
    # Derivatives of k = (l_c^2 + r^T P r) / 2, with d = +-sqrt(2 k).
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


# -------- Gears and levers

LINEAR_SIZE = 2  # ratio, offset
FOUR_BAR_SIZE = 7  # crank, coupler, rocker, ground, crank zero, branch, rocker zero


@kernel
def linear(par: np.ndarray, at: int, q: float) -> tuple[float, float, float]:
    """Return N q + offset: a gear (Schwienbacher 2014, eq. (3.1), (3.2)) or a mimic joint."""
    return par[at] * q + par[at + 1], par[at], 0.0


@kernel
def four_bar(par: np.ndarray, at: int, q: float) -> tuple[float, float, float]:
    """Return the rocker angle p - p_0 of a planar four-bar at the crank angle q [rad], and two derivatives.

    Within half a turn. Parameters a, b, c, d [m], t_0, branch, p_0; branch +1: rocker counter-clockwise from the line
    to A.
    """
    # A = a (cos t, sin t), t = q + t_0; B = (d, 0) + c (cos p, sin p); |B - A| = b.
    a, b, c, d = par[at], par[at + 1], par[at + 2], par[at + 3]
    t = q + par[at + 4]
    ax, ay = a * np.cos(t), a * np.sin(t)
    x, y = ax - d, ay
    far = np.sqrt(x * x + y * y)
    # Law of cosines in the triangle of rocker pivot, crank end and coupler.
    p = np.arctan2(y, x) + par[at + 5] * np.arccos((c * c + far * far - b * b) / (2.0 * c * far))
    bx, by = c * np.cos(p), c * np.sin(p)
    ex, ey = bx - x, by - y  # coupler, A to B
    lever = ey * bx - ex * by  # e^T dB/dp
    p_q = (ey * ax - ex * ay) / lever
    vx, vy = -by * p_q + ay, bx * p_q - ax  # velocity of B relative to A
    # The closure e^T e = b^2, differentiated twice.
    p_qq = -(vx * vx + vy * vy - (ex * bx + ey * by) * p_q * p_q + ex * ax + ey * ay) / lever
    turn = p - par[at + 6]
    return turn - 2.0 * np.pi * np.round(turn / (2.0 * np.pi)), p_q, p_qq


@kernel
def vergence_lever(par: np.ndarray, at: int, q: float) -> tuple[float, float, float]:
    """Return the lever angle of a camera pair at vergence q [rad] (Schwienbacher 2014, eq. (3.38) to (3.45)).

    Published axes: the lever turns about x, the receptacle about y, by share q.
    Parameters r_ax, l, l_c, r_kx, r_kz, b_x, b_z [m], share, branch, phi_0.
    """
    # A = (r_ax, l sin phi, l cos phi), B = r_k + A_y(share q) b, |A - B| = l_c.
    rax, lever, coupler = par[at], par[at + 1], par[at + 2]
    share = par[at + 7]
    s, c = np.sin(share * q), np.cos(share * q)
    kx, kz = c * par[at + 5] + s * par[at + 6], c * par[at + 6] - s * par[at + 5]
    x, z = rax - par[at + 3] - kx, par[at + 4] + kz
    gx, gz = share * kz, -share * kx  # derivative of B by q
    phi = par[at + 8] * np.arccos((x * x + lever * lever - coupler * coupler + z * z) / (2.0 * lever * z))
    sp, cp = np.sin(phi), np.cos(phi)
    arm = lever * z * sp
    phi_q = (x * gx - z * gz + lever * gz * cp) / arm
    hx, hz = -share * share * kx, -share * share * kz
    # the closure |A - B|^2 = l_c^2, differentiated twice by q
    rest = gx * gx - x * hx + gz * gz + (z - lever * cp) * hz
    rest += phi_q * (2.0 * lever * sp * gz + lever * z * cp * phi_q)
    return phi - par[at + 9], phi_q, -rest / arm


# -------- Measured motions


@kernel
def spline(par: np.ndarray, at: int, q: float) -> tuple[float, float, float]:
    """Return a cubic spline through points, linear outside; par: number of points, `numerics.spline.spline_data`."""
    return spline_at(par, at + 1, int(par[at]), q)


@kernel
def polynomial(par: np.ndarray, at: int, q: float) -> tuple[float, float, float]:
    """Return c_0 + c_1 q + c_2 q^2 ...; par: their number, then the coefficients."""
    return polynomial_at(par, at + 1, int(par[at]), q)


# -------- Parameters

Vector = Sequence[float] | np.ndarray


def unit_vector(v: Vector, what: str) -> np.ndarray:
    """Return the direction (3,) of a non-zero vector."""
    a = checked_vector(v, what)
    size = float(np.linalg.norm(a))
    if size < 1e-12:
        raise RobotError(f"{what} must not be zero")
    return a / size


def checked_vector(v: Vector, what: str) -> np.ndarray:
    """Return three finite numbers as an array."""
    a = np.asarray(v, dtype=float)
    if a.shape != (3,) or not np.isfinite(a).all():
        raise RobotError(f"{what} must be three numbers, got {v}")
    return a


def positive(x: float, what: str) -> float:
    """Return a finite positive number."""
    if not (np.isfinite(x) and x > 0):
        raise RobotError(f"{what} must be above zero, got {x:g}")
    return float(x)


def linear_parameters(ratio: float, offset: float = 0.0) -> np.ndarray:
    if not np.isfinite(ratio) or ratio == 0:
        raise RobotError(f"a ratio must not be zero, got {ratio:g}")
    return np.array([ratio, offset], dtype=float)


def spline_parameters(x: Vector, y: Vector) -> np.ndarray:
    """Return parameters of `spline` through points with increasing x."""
    return np.concatenate([[len(x)], spline_data(x, y)])


def polynomial_parameters(coefficients: Vector) -> np.ndarray:
    """Return parameters of `polynomial`, from at least c_0 and c_1."""
    c = np.asarray(coefficients, dtype=float)
    if c.ndim != 1 or len(c) < LINEAR_TERMS or not np.isfinite(c).all():
        raise RobotError(f"a polynomial must have two finite coefficients or more, got {coefficients}")
    return np.concatenate([[len(c)], c])


def hinge_parameters(r_b: Vector, r_a: Vector, axis: Vector) -> np.ndarray:
    """Return parameters of `hinge_screw` and `hinge_tilt`, with zero tilt at q = 0.

    Args:
        r_b: hinge (3,), from the joint [m].
        r_a: pivot (3,), from the joint [m]; axes agree at q = 0.
        axis: joint axis (3,).
    """
    n = unit_vector(axis, "the joint axis")
    r = checked_vector(r_a, "r_a") - checked_vector(r_b, "r_b")
    h = float(n @ r)
    first = unit_vector(r - h * n, "the distance of hinge and pivot across the joint axis")
    plane = np.array([first, np.cross(n, first)])
    return np.concatenate([plane @ np.asarray(r_a, float), plane @ np.asarray(r_b, float), [h]])


class CouplerGeometry(NamedTuple):
    """Screw that moves a two-joint link by a rigid coupler (Schwienbacher 2014, eq. (3.23)).

    All frames are parallel at zero angles. Lengths are in [m].

    Attributes:
        r_pc_a: first joint, from the screw's link.
        axis_1: first axis.
        r_pc_f: second joint, from the first.
        axis_2: second axis.
        r_bot: lower coupler end, from the second joint.
        r_top: start of the screw on its link.
        direction: of travel.
        length: of the coupler.
        branch: -1: carriage before the lower coupler end (Lola), +1: beyond.
    """

    r_pc_a: Vector
    axis_1: Vector
    r_pc_f: Vector
    axis_2: Vector
    r_bot: Vector
    r_top: Vector
    direction: Vector
    length: float
    branch: int = -1


def coupler_parameters(g: CouplerGeometry) -> np.ndarray:
    _check_branch(g.branch)
    first = checked_vector(g.r_pc_a, "r_pc_a") - checked_vector(g.r_top, "r_top")
    parts = [first, unit_vector(g.axis_1, "the axis of the first joint")]
    parts += [checked_vector(g.r_pc_f, "r_pc_f"), unit_vector(g.axis_2, "the axis of the second joint")]
    parts += [checked_vector(g.r_bot, "r_bot"), unit_vector(g.direction, "the direction of the screw")]
    return np.concatenate([*parts, [positive(g.length, "the coupler"), g.branch]])


class FourBarGeometry(NamedTuple):
    """Planar four-bar of lengths [m]: the rocker drives the joint's crank by the coupler; ground joins the pivots.

    Attributes:
        crank_zero: crank angle from the ground line at q = 0 [rad].
        branch: 1: rocker counter-clockwise from the line to the crank end; -1: clockwise.
    """

    crank: float
    coupler: float
    rocker: float
    ground: float
    crank_zero: float
    branch: int = 1


def four_bar_parameters(g: FourBarGeometry) -> np.ndarray:
    """Return parameters of `four_bar`, zero at joint angle zero."""
    _check_branch(g.branch)
    lengths = [positive(getattr(g, name), f"the {name}") for name in ("crank", "coupler", "rocker", "ground")]
    par = np.array([*lengths, g.crank_zero, g.branch, 0.0])
    at_zero = four_bar(par, 0, 0.0)[0]
    par[6] = at_zero if np.isfinite(at_zero) else 0.0
    return par


class VergenceGeometry(NamedTuple):
    """Double lever of a camera pair (Schwienbacher 2014, eq. (3.38) to (3.45)), lengths in [m].

    Attributes:
        r_ax: distance of the axes.
        r_k: receptacle pivot in the tilt frame, x-z plane.
        r_b: receptacle lever in its own frame, x-z plane.
        share: 1/2 if q is the angle between viewing directions, 1 for one camera.
        branch: 1 or -1: side of the lever.
    """

    r_ax: float
    lever: float
    coupler: float
    r_k: Vector
    r_b: Vector
    share: float = 0.5
    branch: int = 1


def vergence_parameters(g: VergenceGeometry) -> np.ndarray:
    """Return parameters of `vergence_lever`, zero at vergence zero (3.43)."""
    k, b = checked_vector(g.r_k, "r_k"), checked_vector(g.r_b, "r_b")
    if abs(k[1] + b[1]) > 1e-9:
        raise RobotError(f"r_k and r_b must put the receptacle's end into the x-z plane, got y = {k[1] + b[1]:g} m")
    _check_branch(g.branch)
    lengths = [positive(g.lever, "the lever"), positive(g.coupler, "the coupler")]
    par = np.array([g.r_ax, *lengths, k[0], k[2], b[0], b[2], g.share, g.branch, 0.0])
    at_zero = vergence_lever(par, 0, 0.0)[0]
    par[9] = at_zero if np.isfinite(at_zero) else 0.0
    return par


def _check_branch(branch: int) -> None:
    if branch not in (-1, 1):
        raise RobotError(f"branch must be -1 or 1, got {branch}")


# -------- Joint coordinates in the recursions

IDENTITY, LINEAR, QUADRATIC, HINGE_SCREW, HINGE_TILT, COUPLER_SCREW, FOUR_BAR = 0, 1, 2, 3, 4, 5, 6
SPLINE, POLYNOMIAL = 7, 8


@inlined
def joint_coordinate(ints: I2, i: int, par: F1, qpos: I1, q: F1, v: F1, W: F1, o: int) -> float:
    """Return the angle or displacement of body i; store gradient, rate and bias acceleration in its row at o."""
    # Chain rule: rate = g' v, bias = v^T g'' v, for every kind of coupling.
    kind = ints[i, COUPLING]
    first = ints[i, COORD]
    if kind == IDENTITY:
        W[o + GRAD], W[o + RATE], W[o + BIAS] = 1.0, v[first], 0.0
        return q[qpos[first]]
    at, x, u = ints[i, PAR], q[qpos[first]], v[first]
    if kind == LINEAR:
        W[o + GRAD], W[o + RATE], W[o + BIAS] = par[at], par[at] * u, 0.0
        return par[at] * x + par[at + 1]
    # A gear (ratio, offset) precedes the parameters of every mechanism.
    if kind == COUPLER_SCREW:
        y, w = q[qpos[ints[i, COORD + 1]]], v[ints[i, COORD + 1]]
        n = par[at]
        z, z1, z2, z11, z12, z22 = coupler_screw(par, at + 2, x, y)
        W[o + GRAD], W[o + GRAD + 1] = n * z1, n * z2
        W[o + RATE] = n * (z1 * u + z2 * w)
        W[o + BIAS] = n * (z11 * u * u + 2 * z12 * u * w + z22 * w * w)
        return n * z + par[at + 1]
    if kind >= HINGE_SCREW:
        if kind == HINGE_SCREW:
            z, z1, z11 = hinge_screw(par, at + 2, x)
        elif kind == HINGE_TILT:
            z, z1, z11 = hinge_tilt(par, at + 2, x)
        elif kind == FOUR_BAR:
            z, z1, z11 = four_bar(par, at + 2, x)
        elif kind == SPLINE:
            z, z1, z11 = spline(par, at + 2, x)
        else:
            z, z1, z11 = polynomial(par, at + 2, x)
        n = par[at]
        W[o + GRAD], W[o + RATE], W[o + BIAS] = n * z1, n * z1 * u, n * z11 * u * u
        return n * z + par[at + 1]
    return _quadratic(ints, i, par, qpos, q, v, W, o)


@inlined
def _quadratic(ints: I2, i: int, par: F1, qpos: I1, q: F1, v: F1, W: F1, o: int) -> float:
    # c + g^T q + q^T H q / 2, with the lower triangle of H stored by rows.
    n, at = ints[i, NC], ints[i, PAR]
    value, rate, bias = par[at], 0.0, 0.0
    for a in range(n):
        W[o + GRAD + a] = par[at + 1 + a]
    h = at + 1 + n
    for a in range(n):
        ca = ints[i, COORD + a]
        value += par[at + 1 + a] * q[qpos[ca]]
        for b in range(a + 1):
            cb, s = ints[i, COORD + b], par[h]
            h += 1
            W[o + GRAD + a] += s * q[qpos[cb]]
            # Off-diagonal entries stand for both triangles.
            twice = 0.5
            if a != b:
                W[o + GRAD + b] += s * q[qpos[ca]]
                twice = 1.0
            value += twice * s * q[qpos[ca]] * q[qpos[cb]]
            bias += 2 * twice * s * v[ca] * v[cb]
    for a in range(n):
        rate += W[o + GRAD + a] * v[ints[i, COORD + a]]
    W[o + RATE], W[o + BIAS] = rate, bias
    return value
