"""Distance of a separated cylinder and box.

The nearest box point q minimises the convex f(q), half the squared distance from the cylinder; grad f = q - p with the
nearest cylinder point p. With the axis u, the direction e away from it, t orthogonal to both, the radius r and the
distance rho from the axis,

    H = [q beyond an end] u u^T + [rho > r] e e^T + [rho > r] (1 - r / rho) t t^T.

Newton's method runs in the free coordinates; where it gains nothing, an alternating projection q -> p, clipped to the
box, does.
"""

from __future__ import annotations

import math

import numpy as np

from humanoid_control.compiled.jit import inlined, kernel
from humanoid_control.compiled.packed import local_indices, local_matrix, local_vector
from humanoid_control.numerics.vec3 import Vec, add, along, dot, mul, norm, rotate, sub, unrotate

STEPS = 30
EXACT = 1e-14  # relative to the size: largest remaining step of alternating projections
SEARCHES, ENOUGH = 20, 1e-9  # line search: iterations, and remaining share of the slope along the step
SINGULAR = 1e-12  # added to H, which is zero in directions of constant f
SETTLED = 1e-8  # relative to the size: after so short a step Newton's method is exact, since it doubles the digits
ROUNDING = 1e-15  # relative to f
ALIGNED = 1e-6  # [rad] angle of a disc and a face below which the nearest rim point is round-off
NEAR = 1e-5  # [m] below this distance the direction between nearest points is inaccurate


@inlined
def _clip(x: float, side: float) -> float:
    return min(max(x, -side), side)


@inlined
def _into(q: Vec, sides: Vec) -> Vec:
    return _clip(q[0], sides[0]), _clip(q[1], sides[1]), _clip(q[2], sides[2])


@inlined
def _room(q: float, step: float, side: float) -> float:
    """Return the share of a coordinate's step up to a side; 1 if it is already held there."""
    if abs(q + step) <= side or (abs(q) >= side and q * step > 0.0):
        return 1.0
    return (math.copysign(side, step) - q) / step


@inlined
def _towards(q: Vec, step: Vec, sides: Vec) -> Vec:
    """Return q + step, shortened to the box along its direction."""
    room = min(_room(q[0], step[0], sides[0]), _room(q[1], step[1], sides[1]), _room(q[2], step[2], sides[2]))
    return along(q, room, step)


@inlined
def _nearest(q: Vec, c: Vec, u: Vec, radius: float, half: float) -> tuple:
    """Return (p, e, end, out, turn): nearest cylinder point, e, factors of u u^T, e e^T and t t^T."""
    way = sub(q, c)
    z = dot(way, u)
    side = along(way, -z, u)
    rho = norm(side)
    end = 1.0 if abs(z) > half else 0.0
    at = along(c, _clip(z, half), u)
    # Within the radius only an end face matters: no curvature across the axis.
    if rho <= radius:
        return add(at, side), u, end, 0.0, 0.0
    e = mul(1.0 / rho, side)
    return along(at, radius, e), e, end, 1.0, 1.0 - radius / rho


@inlined
def _held(q: float, slope: float, side: float) -> bool:
    """Return True if a side of the box holds a coordinate."""
    return (q >= side and slope < 0.0) or (q <= -side and slope > 0.0)


@kernel
def _step(u: Vec, e: Vec, end: float, out: float, turn: float, g: Vec, q: Vec, sides: Vec) -> Vec:
    """Return -(H + SINGULAR)^-1 g in the free coordinates."""
    H, x, free = local_matrix(3, 3), local_vector(3), local_indices(3)
    t = (u[1] * e[2] - u[2] * e[1], u[2] * e[0] - u[0] * e[2], u[0] * e[1] - u[1] * e[0])
    for i in range(3):
        free[i], x[i] = 0 if _held(q[i], g[i], sides[i]) else 1, -g[i]
    for i in range(3):
        for j in range(3):
            # Held coordinates leave the system.
            both = free[i] and free[j]
            H[i, j] = end * u[i] * u[j] + out * e[i] * e[j] + turn * t[i] * t[j] if both else 0.0
        if free[i]:
            H[i, i] += SINGULAR
        else:
            H[i, i], x[i] = 1.0, 0.0
    for k in range(3):  # H is positive definite: elimination without pivoting
        for i in range(k + 1, 3):
            f = H[i, k] / H[k, k]
            for j in range(k, 3):
                H[i, j] -= f * H[k, j]
            x[i] -= f * x[k]
    for k in range(2, -1, -1):
        for j in range(k + 1, 3):
            x[k] -= H[k, j] * x[j]
        x[k] /= H[k, k]
    return x[0], x[1], x[2]


@inlined
def _over_face(c: Vec, u: Vec, radius: float, half: float, sides: Vec, k: int) -> tuple:
    """Return (proved, p, q): nearest points next to the box face across axis k."""
    i, j = (k + 1) % 3, (k + 2) % 3
    sign, uk, across = math.copysign(1.0, c[k]), u[k], math.hypot(u[i], u[j])
    gap = abs(c[k]) - sides[k] - half * abs(uk) - radius * across
    # A disc nearly parallel to the face has no accurate nearest rim point.
    if gap <= 0.0 or across <= ALIGNED:
        return False, c, c
    # Farthest towards the face: along the axis, then against the part of the face normal orthogonal to the axis.
    turned = -sign * uk
    rim = (turned * u[0], turned * u[1], turned * u[2])
    up = sign * across * across
    if k == 0:
        n, rim = (sign, 0.0, 0.0), (up, rim[1], rim[2])
    elif k == 1:
        n, rim = (0.0, sign, 0.0), (rim[0], up, rim[2])
    else:
        n, rim = (0.0, 0.0, sign), (rim[0], rim[1], up)
    p = along(along(c, -math.copysign(half, sign * uk), u), -radius / across, rim)
    q = along(p, -gap, n)
    inside = abs(q[i]) <= sides[i] and abs(q[j]) <= sides[j]
    return inside, p, q


@kernel
def cylinder_box(size: np.ndarray, R1: np.ndarray, p1: Vec, sides: Vec, R2: np.ndarray, p2: Vec) -> tuple:
    """Return the distance of a cylinder and a box.

    Args:
        size: radius, radius, 0, half length of the cylinder [m].
        sides: half sides of the box [m].

    Returns:
        (ok, d, n, x1, x2): normal to the box, nearest points; ok is False below NEAR or without convergence.
    """
    radius, half = size[0], size[3]
    c, u = unrotate(R2, sub(p1, p2)), unrotate(R2, (R1[0, 2], R1[1, 2], R1[2, 2]))
    # Closed form if the nearest points lie over a face; otherwise iterate in the frame of the box.
    for k in range(3):
        proved, p, q = _over_face(c, u, radius, half, sides, k)
        if proved:
            g = sub(q, p)
            d = norm(g)
            return d > NEAR, d, rotate(R2, mul(1.0 / d, g)), add(p2, rotate(R2, p)), add(p2, rotate(R2, q))
    q = _into(c, sides)
    p, e, end, out, turn = _nearest(q, c, u, radius, half)
    g = sub(q, p)
    f = dot(g, g)
    size_of_all = radius + half + sides[0] + sides[1] + sides[2]
    ok = False
    for _ in range(STEPS):
        there = _into(p, sides)
        left = sub(there, q)
        if norm(left) <= EXACT * size_of_all:
            ok = True
            break
        step = _step(u, e, end, out, turn, g, q, sides)
        newer = _into(_towards(q, step, sides), sides)
        p_new, e_new, end_new, out_new, turn_new = _nearest(newer, c, u, radius, half)
        g_new = sub(newer, p_new)
        f_new = dot(g_new, g_new)
        newton = not f_new > (1.0 + ROUNDING) * f
        if not newton:  # for example beyond an end of the cylinder, where f rises
            way = sub(newer, q)
            low, high, at_low, at_high = 0.0, 1.0, dot(g, way), dot(g_new, way)
            # Regula falsi on the slope along the step (convex f has one root).
            for _ in range(SEARCHES):
                s = low - at_low * (high - low) / (at_high - at_low) if at_high > at_low else 0.5 * (low + high)
                newer = along(q, s, way)
                p_new, e_new, end_new, out_new, turn_new = _nearest(newer, c, u, radius, half)
                g_new = sub(newer, p_new)
                slope = dot(g_new, way)
                if abs(slope) <= ENOUGH * abs(dot(g, way)):
                    break
                if slope < 0.0:
                    low, at_low, at_high = s, slope, 0.5 * at_high  # Illinois: otherwise one end may stay forever
                else:
                    high, at_high, at_low = s, slope, 0.5 * at_low
            f_new = dot(g_new, g_new)
        # No gain: take the step of alternating projections.
        if not newton and not f_new < f:
            newer = there
            p_new, e_new, end_new, out_new, turn_new = _nearest(newer, c, u, radius, half)
            g_new = sub(newer, p_new)
            f_new = dot(g_new, g_new)
        ok = newton and norm(step) <= SETTLED * size_of_all
        q, p, e, end, out, turn, g, f = newer, p_new, e_new, end_new, out_new, turn_new, g_new, f_new
        if ok:
            break
    d = math.sqrt(f)
    if not ok or d <= NEAR:
        return False, d, g, p1, p2
    n = mul(1.0 / d, g)
    return True, d, rotate(R2, n), add(p2, rotate(R2, p)), add(p2, rotate(R2, q))
