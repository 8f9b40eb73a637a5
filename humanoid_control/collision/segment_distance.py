"""Distances of a segment, the core of a sphere or capsule, from another segment and from a solid."""

from __future__ import annotations

import math

from humanoid_control.collision.jit import Vec, along, cross, dot, kernel, mul, norm, perpendicular, sub
from humanoid_control.collision.point_distance import point_solid

ITERATIONS = 100
TINY = 1e-14
PARALLEL = 1e-12


@kernel
def _clip(x: float, low: float, high: float) -> float:
    return min(max(x, low), high)


@kernel
def segment_segment(a: Vec, u: Vec, b: Vec, w: Vec) -> tuple:
    """The nearest points a + s u and b + t w of two segments, s and t in -1..1.

    Parallel segments have many: the middle of what they overlap is taken, so that two arms side by side push each
    other apart without turning.

    Returns:
        (s, t).
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
    if det <= PARALLEL * uu * ww:
        middle, half = -ur / uu, abs(uw) / uu
        low, high = max(-1.0, middle - half), min(1.0, middle + half)
        s = _clip(0.5 * (low + high), -1.0, 1.0)
        return s, _clip((wr + s * uw) / ww, -1.0, 1.0)
    s = _clip((uw * wr - ww * ur) / det, -1.0, 1.0)
    t = (wr + s * uw) / ww
    if abs(t) > 1.0:
        t = math.copysign(1.0, t)
        s = _clip((t * uw - ur) / uu, -1.0, 1.0)
    return s, t


@kernel
def capsule_capsule(a: Vec, u: Vec, ra: float, b: Vec, w: Vec, rb: float) -> tuple:
    """Signed distance of two swept spheres with centres a, b and half axes u, w (zero for a ball).

    Returns:
        (d, n, x1, x2): normal from the first to the second, points on both surfaces.
    """
    s, t = segment_segment(a, u, b, w)
    p, q = along(a, s, u), along(b, t, w)
    v = sub(q, p)
    gap = norm(v)
    if gap > TINY:
        n = mul(1.0 / gap, v)
    else:  # the axes cross: both sides are as near
        v = cross(u, w)
        m = norm(v)
        n = mul(1.0 / m, v) if m > TINY else perpendicular(u if dot(u, u) > 0.0 else w)
    return gap - ra - rb, n, along(p, ra, n), along(q, -rb, n)


@kernel
def segment_solid(kind: int, x: float, y: float, z: float, h: float, a: Vec, u: Vec) -> tuple:
    """The least signed distance of the points a + s u, s in -1..1, from a solid at the origin; all in its frame.

    f(s), the signed distance along the segment, is convex, so its minimum is where the slope g = n . u changes sign:
    bracketed by the ends, found by the Illinois method with bisection as a safeguard. Inside the solid, f may have a
    kink there (two surfaces as near), which is found where the tangents of both sides meet; the normal is then the mix
    of both sides that has no slope.

    Returns:
        (d, n, s): n the unit outward normal, the gradient of d.
    """
    lo, hi = -1.0, 1.0
    d, n0, n1, n2 = point_solid(kind, along(a, -1.0, u), x, y, z, h)
    n_lo, g_lo, d_lo = (n0, n1, n2), n0 * u[0] + n1 * u[1] + n2 * u[2], d
    length = norm(u)
    if length == 0.0:
        return d, n_lo, 0.0
    flat = TINY * length
    d, n0, n1, n2 = point_solid(kind, along(a, 1.0, u), x, y, z, h)
    n_hi, g_hi, d_hi = (n0, n1, n2), n0 * u[0] + n1 * u[1] + n2 * u[2], d
    if abs(g_lo) <= flat and abs(g_hi) <= flat:  # parallel to a flat side: all points are as near
        d, n0, n1, n2 = point_solid(kind, a, x, y, z, h)
        return d, (n0, n1, n2), 0.0
    if g_lo >= -flat:
        return d_lo, n_lo, -1.0
    if g_hi <= flat:
        return d_hi, n_hi, 1.0
    w_lo, w_hi, width = g_lo, g_hi, 2.0
    s, side = 0.0, 0
    for k in range(ITERATIONS):
        s = (lo * w_hi - hi * w_lo) / (w_hi - w_lo)
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
    mix = g_hi / (g_hi - g_lo)
    v = along(mul(mix, n_lo), 1.0 - mix, n_hi)
    m = norm(v)
    if m < 1e-9:  # the segment runs straight through: leave sideways, away from the solid's centre
        p = along(a, s, u)
        v = along(p, -dot(p, u) / (length * length), u)
        m = norm(v)
        if m < 1e-9:
            return min(d_lo, d_hi), perpendicular(u), s
    return min(d_lo, d_hi), mul(1.0 / m, v), s
