"""Critical points of the source's collision test: where the axis of a capsule P may come nearest to a section of Q.

Q has three sections: its top cap, its cylinder and its bottom cap. A point of P's axis is p0 + lambda (p1 - p0), so it
lies on the segment where lambda is in 0..1; the conditions |p - p0| + |p - p1| = l_p of the source say the same.
Lambda is NaN where there is no such point.
"""

from __future__ import annotations

import math

from humanoid_control.collision.jit import Vec, cross, dot, kernel, sub

PARALLEL = 1e-12  # of the squared sine of the angle between the axes


@kernel
def nearest_on_axis(p0: Vec, u: Vec, q: Vec) -> float:
    """Lambda of the point of P's axis nearest to a point q (Dube 2012, eq. (4.39), second factor corrected)."""
    uu = dot(u, u)
    return dot(sub(q, p0), u) / uu if uu > 0.0 else math.nan


@kernel
def nearest_to_axis(p0: Vec, u: Vec, q0: Vec, w: Vec) -> float:
    """Lambda of the point of P's axis nearest to Q's axis (Dube 2012, eqs. (4.36)-(4.38)); u, w are u_p l_p, u_q l_q.

    Parallel axes have no single such point: the middle of their overlap is taken.
    """
    uu, ww, n = dot(u, u), dot(w, w), cross(u, w)
    nn = dot(n, n)
    if uu == 0.0:
        return math.nan
    if nn > PARALLEL * uu * ww:
        return -dot(cross(sub(p0, q0), w), n) / nn
    a, b = nearest_on_axis(p0, u, q0), nearest_on_axis(p0, u, (q0[0] + w[0], q0[1] + w[1], q0[2] + w[2]))
    low, high = max(0.0, min(a, b)), min(1.0, max(a, b))
    return 0.5 * (low + high) if low <= high else math.nan


@kernel
def least_ellipsoid_form(p0: Vec, u: Vec, a: float, b: float, c: float, z: float) -> float:
    """Lambda where F = (x/a)^2 + (y/b)^2 + ((z - z_cap)/c)^2 - 1 is least, -beta / (2 alpha) (eqs. (4.44)-(4.46))."""
    alpha = (u[0] / a) ** 2 + (u[1] / b) ** 2 + (u[2] / c) ** 2
    half_beta = p0[0] * u[0] / a**2 + p0[1] * u[1] / b**2 + (p0[2] - z) * u[2] / c**2
    return -half_beta / alpha if alpha > 0.0 else math.nan


@kernel
def least_ellipse_form(p0: Vec, u: Vec, a: float, b: float, l: float) -> float:  # noqa: E741
    """Lambda where F = (x/a)^2 + (y/b)^2 - 1 is least (eqs. (4.43), (4.44)).

    Parallel to Q's axis, from z = 0 down to -l, F is constant: the middle of the axial overlap is taken.
    """
    alpha = (u[0] / a) ** 2 + (u[1] / b) ** 2
    if alpha * min(a, b) ** 2 > PARALLEL * dot(u, u):
        return -(p0[0] * u[0] / a**2 + p0[1] * u[1] / b**2) / alpha
    if u[2] == 0.0:
        return math.nan
    s, t = -p0[2] / u[2], (-l - p0[2]) / u[2]
    low, high = max(0.0, min(s, t)), min(1.0, max(s, t))
    return 0.5 * (low + high) if low <= high else math.nan
