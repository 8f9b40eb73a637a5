"""Exact signed distances of points and segments (cores of spheres and capsules) to each other and to solids.

Solids are at the origin; d [m] is negative inside, p - d n is the nearest surface point. The signed distance of a
convex solid is convex in p, also inside.
"""

from __future__ import annotations

import math

import numpy as np

from humanoid_control.collision.shapes import BOX, CYLINDER, ELLIPSOID
from humanoid_control.compiled.jit import inlined, kernel
from humanoid_control.numerics.vec3 import Vec, along, cross, dot, mul, norm, perpendicular, sub

NEWTON_STEPS, BRACKET_STEPS = 64, 100
SMOOTH_STEPS = 8  # of a bracket: smooth distances need at most six
CONVERGED = 4e-16
ZERO = 1e-140  # smaller coordinates count as zero: their squares would lose digits
TINY = 1e-14
PARALLEL = 1e-12

# -------- Point and solid: (d, nx, ny, nz)


@kernel
def _product(e: float, y: float) -> float:
    g = e * y
    return g if g > ZERO else 0.0


@kernel
def ellipse(x: float, y: float, a: float, b: float) -> Vec:
    """Return (d, nx, ny) of a point and an ellipse, half axes a, b (Dube 2012, (4.51)).

    tau = t + e1^2 (e1 the smaller half axis) is the only root >= 0. Newton's method on the concave 1 / sqrt(G)
    approaches it from the left. tau = 0 (inside, on the longer axis) has a closed form.
    """
    swap = a < b
    e0, e1 = (b, a) if swap else (a, b)
    y0, y1 = (abs(y), abs(x)) if swap else (abs(x), abs(y))
    k, g0, g1 = (e0 - e1) * (e0 + e1), _product(e0, y0), _product(e1, y1)
    # Lower bounds of the root; Newton starts from the largest.
    tau = max(max(g1, g0 - k), math.sqrt(g0 * g0 + g1 * g1) - k)
    if tau > 0.0:
        r0, r1 = g0 / (tau + k), g1 / tau
        for _ in range(NEWTON_STEPS):
            G = r0 * r0 + r1 * r1
            if G <= 1.0 + CONVERGED:
                break
            step = G * (math.sqrt(G) - 1.0) / (r0 * r0 / (tau + k) + r1 * r1 / tau)
            tau += step
            r0, r1 = g0 / (tau + k), g1 / tau
            if step <= CONVERGED * tau:
                break
    else:
        r0 = g0 / k if k > 0.0 else 0.0
        r1 = math.sqrt(max(0.0, 1.0 - r0 * r0))
    # The surface point is e * r, its normal r / e; d = (tau - e1^2) |normal|.
    m0, m1 = r0 / e0, r1 / e1
    m = math.sqrt(m0 * m0 + m1 * m1)
    d = (tau - e1 * e1) * m if tau > 0.0 else -e1 * e1 * m
    nx, ny = (m1 / m, m0 / m) if swap else (m0 / m, m1 / m)
    return d, math.copysign(nx, x), math.copysign(ny, y)


@kernel
def _ratio(g: float, w: float) -> float:
    return g / w if g > 0.0 else 0.0


@kernel
def _ellipsoid_sorted(y0: float, y1: float, y2: float, e0: float, e1: float, e2: float) -> tuple:
    """Return `ellipsoid` for y >= 0 and smallest half axis e2 (Dube 2012, (4.56)), as in `ellipse`."""
    k0, k1 = (e0 - e2) * (e0 + e2), (e1 - e2) * (e1 + e2)
    g0, g1, g2 = _product(e0, y0), _product(e1, y1), _product(e2, y2)
    tau = max(max(g2, math.sqrt(g0 * g0 + g1 * g1 + g2 * g2) - max(k0, k1)), max(g0 - k0, g1 - k1))
    tau = max(tau, 0.0)
    r0, r1, r2 = _ratio(g0, tau + k0), _ratio(g1, tau + k1), _ratio(g2, tau)
    # tau = 0: a point near the centre, in the plane of the longer axes; r2 follows from |r| = 1.
    if tau == 0.0 and r0 * r0 + r1 * r1 <= 1.0:
        r2 = math.sqrt(1.0 - r0 * r0 - r1 * r1)
    else:
        for _ in range(NEWTON_STEPS):
            G = r0 * r0 + r1 * r1 + r2 * r2
            if G <= 1.0 + CONVERGED:
                break
            slope = _ratio(r0 * r0, tau + k0) + _ratio(r1 * r1, tau + k1) + _ratio(r2 * r2, tau)
            step = G * (math.sqrt(G) - 1.0) / slope
            tau += step
            r0, r1, r2 = _ratio(g0, tau + k0), _ratio(g1, tau + k1), _ratio(g2, tau)
            if step <= CONVERGED * tau:
                break
    m0, m1, m2 = r0 / e0, r1 / e1, r2 / e2
    m = math.sqrt(m0 * m0 + m1 * m1 + m2 * m2)
    return (tau - e2 * e2) * m, m0 / m, m1 / m, m2 / m


@kernel
def ellipsoid(p: Vec, a: float, b: float, c: float) -> tuple:
    """Return (d, nx, ny, nz) for an ellipsoid with half axes a, b, c along x, y, z."""
    x, y, z = abs(p[0]), abs(p[1]), abs(p[2])
    # Sort the smallest half axis to the end.
    if c <= a and c <= b:
        d, nx, ny, nz = _ellipsoid_sorted(x, y, z, a, b, c)
    elif b <= a:
        d, nx, nz, ny = _ellipsoid_sorted(x, z, y, a, c, b)
    else:
        d, nz, ny, nx = _ellipsoid_sorted(z, y, x, c, b, a)
    return d, math.copysign(nx, p[0]), math.copysign(ny, p[1]), math.copysign(nz, p[2])


@kernel
def _flat_cap(x: float, y: float, z: float, a: float, b: float, c: float) -> tuple:
    """Return (found, d, nx, ny, nz) of the half ellipsoid z >= 0 for a point below its rim, x and y >= 0.

    Only flat caps can be nearer than the wall. With w = -(t + c^2), Newton's method approaches the smallest root of
    G(w) = 1 from the left, where G is convex and falling.
    """
    ka, kb = (a - c) * (a + c), (b - c) * (b + c)
    end, gz, gx, gy = min(ka, kb), -c * z, a * x, b * y
    w = gz
    for _ in range(NEWTON_STEPS):
        if w >= end:
            return False, 0.0, 0.0, 0.0, 0.0
        rx, ry, rz = gx / (ka - w), gy / (kb - w), gz / w
        excess = rx * rx + ry * ry + rz * rz - 1.0
        fall = 2.0 * (rz * rz / w - rx * rx / (ka - w) - ry * ry / (kb - w))
        if excess <= CONVERGED:
            break
        # Past the minimum of G there is no root: the wall is nearer.
        if fall <= 0.0:
            return False, 0.0, 0.0, 0.0, 0.0
        w += excess / fall
        if excess <= CONVERGED * fall * w:
            break
    rx, ry, rz = gx / (ka - w), gy / (kb - w), gz / w
    mx, my, mz = rx / a, ry / b, rz / c
    m = math.sqrt(mx * mx + my * my + mz * mz)
    return True, -(w + c * c) * m, mx / m, my / m, mz / m


@kernel
def elliptic_capsule(p: Vec, a: float, b: float, c: float, h: float) -> tuple:
    """Return (d, nx, ny, nz) for an elliptic cylinder from -h to h along z with half-ellipsoid caps of height c."""
    z = abs(p[2]) - h
    if z >= 0.0:
        d, nx, ny, nz = ellipsoid((p[0], p[1], z), a, b, c)
        return d, nx, ny, math.copysign(nz, p[2])
    d, nx, ny = ellipse(p[0], p[1], a, b)
    nz = 0.0
    if d < z and c < a and c < b:  # deeper below the wall than below the rim: a flat cap may be nearer
        found, dc, cx, cy, cz = _flat_cap(abs(p[0]), abs(p[1]), z, a, b, c)
        if found and dc > d:
            return dc, math.copysign(cx, p[0]), math.copysign(cy, p[1]), math.copysign(cz, p[2])
    return d, nx, ny, nz


@kernel
def box(p: Vec, x: float, y: float, z: float) -> tuple:
    """Return (d, nx, ny, nz) for a box with half sides x, y, z."""
    dx, dy, dz = abs(p[0]) - x, abs(p[1]) - y, abs(p[2]) - z
    ox, oy, oz = max(dx, 0.0), max(dy, 0.0), max(dz, 0.0)
    d = math.sqrt(ox * ox + oy * oy + oz * oz)
    if d > 0.0:
        return d, math.copysign(ox / d, p[0]), math.copysign(oy / d, p[1]), math.copysign(oz / d, p[2])
    # Inside, the nearest face is the one with the smallest depth.
    if dx >= dy and dx >= dz:
        return dx, math.copysign(1.0, p[0]), 0.0, 0.0
    if dy >= dz:
        return dy, 0.0, math.copysign(1.0, p[1]), 0.0
    return dz, 0.0, 0.0, math.copysign(1.0, p[2])


@kernel
def cylinder(p: Vec, r: float, h: float) -> tuple:
    """Return (d, nx, ny, nz) for a flat cylinder of radius r from -h to h along z."""
    rho = math.sqrt(p[0] * p[0] + p[1] * p[1])
    ux, uy = (p[0] / rho, p[1] / rho) if rho > 0.0 else (1.0, 0.0)
    dr, dz = rho - r, abs(p[2]) - h
    if dr > 0.0 and dz > 0.0:
        d = math.sqrt(dr * dr + dz * dz)
        return d, ux * dr / d, uy * dr / d, math.copysign(dz / d, p[2])
    if dr >= dz:
        return dr, ux, uy, 0.0
    return dz, 0.0, 0.0, math.copysign(1.0, p[2])


@kernel
def point_solid(kind: int, p: Vec, x: float, y: float, z: float, h: float) -> tuple:
    """Return (d, nx, ny, nz) for any solid except swept spheres."""
    if kind == BOX:
        return box(p, x, y, z)
    if kind == CYLINDER:
        return cylinder(p, x, h)
    if kind == ELLIPSOID:
        return ellipsoid(p, x, y, z)
    return elliptic_capsule(p, x, y, z, h)


# -------- Segment, segment and solid


@inlined
def _clip(x: float, low: float, high: float) -> float:
    return min(max(x, low), high)


@inlined
def segment_segment(a: Vec, u: Vec, b: Vec, w: Vec) -> tuple:
    """Return (s, t) in -1..1 of the nearest points a + s u and b + t w of two segments.

    For parallel segments it is the middle of the overlap.
    """
    r = sub(a, b)
    uu, ww, uw, ur, wr = dot(u, u), dot(w, w), dot(u, w), dot(u, r), dot(w, r)
    if uu == 0.0 and ww == 0.0:
        return 0.0, 0.0
    if uu == 0.0:
        return 0.0, _clip(wr / ww, -1.0, 1.0)
    if ww == 0.0:
        return _clip(-ur / uu, -1.0, 1.0), 0.0
    det = uu * ww - uw * uw
    # Parallel: the interval of s that overlaps the other segment, its middle if there is an overlap.
    if det <= PARALLEL * uu * ww:
        middle, half = -ur / uu, abs(uw) / uu
        low, high = max(-1.0, middle - half), min(1.0, middle + half)
        s = _clip(0.5 * (low + high), -1.0, 1.0)
        return s, _clip((wr + s * uw) / ww, -1.0, 1.0)
    # Minimum of the infinite lines, clipped in s, then t, then s again.
    s = _clip((uw * wr - ww * ur) / det, -1.0, 1.0)
    t = (wr + s * uw) / ww
    if abs(t) > 1.0:
        t = math.copysign(1.0, t)
        s = _clip((t * uw - ur) / uu, -1.0, 1.0)
    return s, t


@inlined
def capsule_capsule(a: Vec, u: Vec, ra: float, b: Vec, w: Vec, rb: float) -> tuple:
    """Return the signed distance of two swept spheres with centres a, b and half axes u, w."""
    s, t = segment_segment(a, u, b, w)
    p, q = along(a, s, u), along(b, t, w)
    v = sub(q, p)
    gap = norm(v)
    if gap > TINY:
        n = mul(1.0 / gap, v)
    else:  # the axes cross: both sides are equally near
        v = cross(u, w)
        m = norm(v)
        n = mul(1.0 / m, v) if m > TINY else perpendicular(u if dot(u, u) > 0.0 else w)
    return gap - ra - rb, n, along(p, ra, n), along(q, -rb, n)


@inlined
def cubic_minimum(s: float, f: float, g: float, t: float, f_t: float, g_t: float) -> float:
    """Return the minimum of the cubic with values f, f_t and slopes g, g_t at s and t, or NaN."""
    z = 3.0 * (f - f_t) / (t - s) + g + g_t
    w = math.copysign(math.sqrt(max(z * z - g * g_t, 0.0)), t - s)
    return t - (t - s) * (g_t + w - z) / (g_t - g + 2.0 * w)


@kernel
def segment_solid(kind: int, x: float, y: float, z: float, h: float, a: Vec, u: Vec) -> tuple:
    """Return the least signed distance of the points a + s u, s in -1..1, from a solid, in its frame.

    f(s) is convex: the minimum is at the sign change of the slope g = n . u, or at an end, the nearer end first.
    Between both ends it is found by cubics, or by the Illinois method with bisection.

    Returns:
        (d, n, s): n is the outward normal, the gradient of d.
    """
    length = norm(u)
    if length == 0.0:
        d, n0, n1, n2 = point_solid(kind, a, x, y, z, h)
        return d, (n0, n1, n2), 0.0
    flat, near = TINY * length, -1.0 if dot(a, u) > 0.0 else 1.0
    d, n0, n1, n2 = point_solid(kind, along(a, near, u), x, y, z, h)
    n, g = (n0, n1, n2), n0 * u[0] + n1 * u[1] + n2 * u[2]
    if near * g < -flat:
        return d, n, near
    d_far, n0, n1, n2 = point_solid(kind, along(a, -near, u), x, y, z, h)
    n_far, g_far = (n0, n1, n2), n0 * u[0] + n1 * u[1] + n2 * u[2]
    if abs(g) <= flat and abs(g_far) <= flat:  # parallel to a flat side: all points are equally near
        d, n0, n1, n2 = point_solid(kind, a, x, y, z, h)
        return d, (n0, n1, n2), 0.0
    # A slope that does not change sign puts the minimum at an end.
    if near * g <= flat:
        return d, n, near
    if near * g_far >= -flat:
        return d_far, n_far, -near
    d_lo, n_lo, g_lo, d_hi, n_hi, g_hi = d, n, g, d_far, n_far, g_far
    if near > 0.0:
        d_lo, n_lo, g_lo, d_hi, n_hi, g_hi = d_far, n_far, g_far, d, n, g
    lo, hi, w_lo, w_hi, width = -1.0, 1.0, g_lo, g_hi, 2.0
    s, side, s_before, d_before, g_before = near, 0, -near, d_far, g_far
    # Bracket lo < s < hi with g_lo < 0 < g_hi; w_lo, w_hi are the Illinois weights.
    for k in range(BRACKET_STEPS):
        t = cubic_minimum(s_before, d_before, g_before, s, d, g) if k < SMOOTH_STEPS and d > 0.0 else np.nan
        s_before, d_before, g_before = s, d, g
        if lo < t < hi:
            s = t
        else:
            s = (lo * w_hi - hi * w_lo) / (w_hi - w_lo)
            # Every third step each: tangents (kinks), bisection (guaranteed progress), Illinois.
            if k % 3 == 1:
                t = (d_lo - d_hi + g_hi * hi - g_lo * lo) / (g_hi - g_lo)
                if lo < t < hi:
                    s = t
            elif k % 3 == 2:
                if hi - lo > 0.5 * width:
                    s = 0.5 * (lo + hi)
                width = hi - lo
        d, n0, n1, n2 = point_solid(kind, along(a, s, u), x, y, z, h)
        n = (n0, n1, n2)
        g = dot(n, u)
        if abs(g) <= flat:
            return d, n, s
        if g < 0.0:
            lo, n_lo, g_lo, w_lo, d_lo = s, n, g, g, d
            w_hi = 0.5 * w_hi if side == -1 else g_hi
            side = -1
        else:
            hi, n_hi, g_hi, w_hi, d_hi = s, n, g, g, d
            w_lo = 0.5 * w_lo if side == 1 else g_lo
            side = 1
        if hi - lo <= TINY:
            break
    # Kink: the convex combination of both normals that is orthogonal to u.
    mix = g_hi / (g_hi - g_lo)
    v = along(mul(mix, n_lo), 1.0 - mix, n_hi)
    m = norm(v)
    if m < 1e-9:  # the segment passes straight through: leave sideways, away from the centre of the solid
        p = along(a, s, u)
        v = along(p, -dot(p, u) / (length * length), u)
        m = norm(v)
        if m < 1e-9:
            return min(d_lo, d_hi), perpendicular(u), s
    return min(d_lo, d_hi), mul(1.0 / m, v), s
