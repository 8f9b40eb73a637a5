"""Collision test of capsules of Dube 2012, section 4.3.3, step by step, with its misprints corrected.

It tests critical points, where the axis of a capsule P may come nearest to a section of Q. Q has three sections: its
top cap, its cylinder and its bottom cap. A point of P's axis is p0 + lambda (p1 - p0), so it lies on the segment where
lambda is in 0..1; Dube's conditions |p - p0| + |p - p1| = l_p say the same. Lambda is NaN where there is no such point.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from humanoid_control.collision.capsule_distance import ellipse, ellipsoid
from humanoid_control.collision.pair_distance import CollisionPairs
from humanoid_control.collision.shapes import CAPSULE, ELLIPSOID
from humanoid_control.compiled.jit import kernel
from humanoid_control.numerics.vec3 import Vec, along, cross, dot, mul, norm, row, sub, unrotate

# -------- critical points

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


# -------- test

TOP, CYLINDER, BOTTOM = range(3)
SECTION_NAMES = ("top", "cylinder", "bottom")
ON_SEGMENT = 1e-9


@kernel
def _foot(s: Vec, q0: Vec, w: Vec) -> float:
    """Place of the foot of s on Q's axis: 0 at the top end and 1 at the bottom end; 0.5 for a ball."""
    ww = dot(w, w)
    return dot(sub(s, q0), w) / ww if ww > 0.0 else 0.5


@kernel
def _on_segment(x: float) -> bool:
    return -ON_SEGMENT <= x <= 1.0 + ON_SEGMENT  # False for NaN


@kernel
def _circular_gap(s: Vec, section: int, q0: Vec, w: Vec) -> float:
    """Distance of a point from a section's axis or centre (Dube 2012, eqs. (4.47), (4.48))."""
    r = sub(s, q0)
    if section == TOP:
        return norm(r)
    if section == BOTTOM:
        return norm(sub(r, w))
    ww = dot(w, w)
    t = dot(r, w) / ww if ww > 0.0 else 0.0
    return norm(along(r, -t, w))


@kernel
def _elliptic_gap(s: Vec, section: int, a: float, b: float, c: float, l: float) -> float:  # noqa: E741
    """Signed distance of a point from a section of an elliptic capsule (Dube 2012, eqs. (4.49)-(4.57))."""
    if section == CYLINDER:
        return ellipse(s[0], s[1], a, b)[0]
    return ellipsoid((s[0], s[1], s[2] if section == TOP else s[2] + l), a, b, c)[0]


@kernel
def _decide(gap: np.ndarray, critical: np.ndarray, foot: np.ndarray, d_m: float) -> tuple:
    """Steps 3 to 8. Row i < 3: P's critical point i against section i; rows 3-5 and 6-8: P's ends against all three.

    Args:
        gap: (9,) distances [m]. critical: (3,) lambda of the critical points. foot: (9,) where on Q's axis.
        d_m: the distance at which P touches.

    Returns:
        (collides, d - d_m, section): the least of the distances that count and its section. It is negative without a
        collision where an end of P touches but no critical point does: step 3 has then ignored it.
    """
    crossing = gap[0] <= d_m or gap[1] <= d_m or gap[2] <= d_m  # step 3: else the whole line counts as free
    hit, least, section = False, math.inf, CYLINDER
    for i in range(9):
        part = i % 3
        if (i < 3 and not _on_segment(critical[i])) or (part == CYLINDER and not _on_segment(foot[i])):
            continue  # step 4; the foot on Q's axis in steps 5 and 8
        if gap[i] <= d_m and crossing:  # steps 5 and 6
            hit = True
        if gap[i] < least:
            least, section = gap[i], part
    return hit, least - d_m, section


@kernel(allocates=True)
def dube_circular(p0: Vec, p1: Vec, rp: float, q0: Vec, q1: Vec, rq: float) -> tuple:
    """Two circular capsules; an axis of length zero makes a sphere.

    Args:
        p0, p1, rp: ends of P's axis and its radius [m].
        q0, q1, rq: top and bottom end of Q's axis and its radius [m].

    Returns:
        (collides, d, section): d [m] the gap between the surfaces, negative when they overlap; the section of Q.
    """
    u, w = sub(p1, p0), sub(q1, q0)
    gap, critical, foot = np.empty(9), np.empty(3), np.empty(9)
    critical[TOP], critical[BOTTOM] = nearest_on_axis(p0, u, q0), nearest_on_axis(p0, u, q1)
    critical[CYLINDER] = nearest_to_axis(p0, u, q0, w)
    for i in range(9):
        lam = critical[i] if i < 3 else (0.0 if i < 6 else 1.0)
        s = along(p0, lam if lam == lam else 0.0, u)
        gap[i], foot[i] = _circular_gap(s, i % 3, q0, w), _foot(s, q0, w)
    return _decide(gap, critical, foot, rp + rq)


@kernel(allocates=True)
def dube_elliptic(p0: Vec, p1: Vec, rp: float, a: float, b: float, c: float, l: float) -> tuple:  # noqa: E741
    """A circular capsule P against an elliptic capsule Q; everything in Q's frame (Dube 2012, eq. (4.40)).

    Args:
        p0, p1, rp: ends of P's axis and its radius [m]; the origin is the centre of Q's top cap, z up.
        a, b, c, l: half axes along x and y, height of the caps and length of the cylinder [m].

    Returns:
        (collides, d, section) as `dube_circular`.
    """
    u, w, q0 = sub(p1, p0), (0.0, 0.0, -l), (0.0, 0.0, 0.0)
    gap, critical, foot = np.empty(9), np.empty(3), np.empty(9)
    critical[TOP] = least_ellipsoid_form(p0, u, a, b, c, 0.0)
    critical[BOTTOM] = least_ellipsoid_form(p0, u, a, b, c, -l)
    critical[CYLINDER] = least_ellipse_form(p0, u, a, b, l)
    for i in range(9):
        lam = critical[i] if i < 3 else (0.0 if i < 6 else 1.0)
        s = along(p0, lam if lam == lam else 0.0, u)
        gap[i] = _elliptic_gap(s, i % 3, a, b, c, l)
        foot[i] = _foot(s, q0, w) if l > 0.0 else math.nan  # an ellipsoid has no cylinder
    return _decide(gap, critical, foot, rp)


@kernel
def dube_pairs(
    kinds: np.ndarray,
    sizes: np.ndarray,
    R: np.ndarray,
    p: np.ndarray,
    pairs: np.ndarray,
    out_collides: np.ndarray,
    out_distance: np.ndarray,
    out_section: np.ndarray,
) -> None:
    """The test for many pairs of shapes.

    Args:
        kinds, sizes: of ShapeArrays. R, p: poses of the shapes in the world. pairs: (P, 2) indices of shapes.
        out_collides, out_distance [m], out_section: (P,) filled; False, NaN, -1 for a pair without a published
            test: two solids of which none is a sphere or capsule, boxes, flat cylinders.
    """
    for k in range(pairs.shape[0]):
        i, j = pairs[k, 0], pairs[k, 1]
        if kinds[i] > CAPSULE:
            i, j = j, i
        out_collides[k], out_distance[k], out_section[k] = False, math.nan, -1
        if kinds[i] > CAPSULE or CAPSULE < kinds[j] < ELLIPSOID:
            continue
        u, a = mul(sizes[i, 3], (R[i, 0, 2], R[i, 1, 2], R[i, 2, 2])), row(p, i)
        p0, p1 = along(a, 1.0, u), along(a, -1.0, u)
        z, b = (R[j, 0, 2], R[j, 1, 2], R[j, 2, 2]), row(p, j)
        h = sizes[j, 3]
        q0 = along(b, h, z)
        if kinds[j] <= CAPSULE:
            hit, d, section = dube_circular(p0, p1, sizes[i, 0], q0, along(b, -h, z), sizes[j, 0])
        else:
            p0, p1 = unrotate(R[j], sub(p0, q0)), unrotate(R[j], sub(p1, q0))
            hit, d, section = dube_elliptic(p0, p1, sizes[i, 0], sizes[j, 0], sizes[j, 1], sizes[j, 2], 2.0 * h)
        out_collides[k], out_distance[k], out_section[k] = hit, d, section


@dataclass(frozen=True)
class DubeResult:
    """Results of the published test for P pairs.

    Attributes:
        collides: (P,).
        distance: (P,) gap [m], negative when they overlap, NaN for a pair without a published test.
        section: (P,) of SECTION_NAMES, -1 for such a pair.
    """

    collides: np.ndarray
    distance: np.ndarray
    section: np.ndarray


def dube_distances(placed: CollisionPairs) -> DubeResult:
    """Every pair of placed shapes by the published test (Dube 2012, section 4.3.3)."""
    n, s = len(placed.pairs), placed.shapes
    out = DubeResult(np.empty(n, dtype=np.bool_), np.empty(n), np.empty(n, dtype=np.int64))
    dube_pairs(s.kinds, s.sizes, placed.R, placed.p, placed.pairs, out.collides, out.distance, out.section)
    return out
