"""Nearest points of points and line segments, the cores of point and line swept-sphere volumes, without a branch.

Every choice is a selection between two numbers, so that the compiler can measure several pairs at once.
"""

from __future__ import annotations

from humanoid_control.collision.jit import Vec, cross, dot
from humanoid_control.jit import inlined

# Two lines are parallel when sin^2 of their angle is below this, whatever their lengths (eq. (6.33)). The source takes
# 1e-15 or more, because its N = u^2 v^2 - (u.v)^2 is a difference of large numbers; ours is |u x v|^2, which is not.
# At 1e-20 the midpoint rule costs less than 1e-10 of a length.
PARALLEL = 1e-20
POINT = 1e-30  # [m^2] an edge with a smaller square is a point


@inlined
def unit(x: float) -> float:
    """x clamped to 0..1; 0 for what is not a number."""
    return min(max(x, 0.0), 1.0)


@inlined
def inverse(x: float) -> float:
    """1 / x for the square of an edge; 0 for an edge without length, which puts its parameter at 0."""
    return 1.0 / x if x > POINT else 0.0


@inlined
def is_parallel(N: float, uu: float, vv: float, epsilon: float) -> bool:
    """Whether two edges are parallel or one of them has no length: N <= epsilon u^2 v^2, free of scale."""
    return epsilon * uu * vv >= N


@inlined
def point_line(w: Vec, u: Vec, iu: float) -> float:
    """Parameter s in 0..1 of the point s u nearest to a point w (Schwienbacher 2014, eq. (6.17)); iu = inverse(u.u)."""
    return unit(dot(w, u) * iu)


@inlined
def line_line(u: Vec, uu: float, iu: float, v: Vec, vv: float, iv: float, w: Vec) -> tuple:
    """Parameters (s, t) in 0..1 of the nearest points s u and w + t v of two segments (algorithms B.1 to B.3).

    t of the infinite lines is clamped, s is the nearest to it, clamped, and t the nearest to that: the two steps of
    algorithm B.3. As t comes from cross products, nothing cancels when the lines are nearly parallel. Where parallel
    segments overlap, the middle of the overlap is taken (table 6.5, all nine cells in one formula).

    Args:
        u, v: edges; uu, vv: their squares; iu, iv: `inverse` of these.
        w: from the start of the first to the start of the second.
    """
    uv, uw, vw = dot(u, v), dot(u, w), dot(v, w)
    m = cross(u, v)
    N = dot(m, m)
    t = unit(-dot(m, cross(u, w)) / N)
    a, b = uw * iu, (uw + uv) * iu  # where the ends of the second lie along the first
    middle = 0.5 * (max(0.0, min(a, b)) + min(1.0, max(a, b)))
    s = unit(middle if is_parallel(N, uu, vv, PARALLEL) else (uw + t * uv) * iu)
    return s, unit((s * uv - vw) * iv)
