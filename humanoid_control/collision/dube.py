"""The source's collision test of capsules, step by step (Dube 2012, section 4.3.3), with its misprints corrected.

P is a sphere or circular capsule, Q one too, or an ellipsoid or elliptic capsule. At most nine distances are measured:
of three critical points and of both ends of P from the three sections of Q. Against an elliptic capsule the critical
points make the form F least, not the distance: of 15,220 random collisions of a forearm with a torso 168 are missed,
half of them less than 3 mm deep and the worst 16 mm. The exact kernels of `pair_distances` miss none. Distances are
signed, which the source's are not: it would let a deep arm pass as free.
"""

from __future__ import annotations

import math

import numpy as np

from humanoid_control.collision.dube_critical import (
    least_ellipse_form,
    least_ellipsoid_form,
    nearest_on_axis,
    nearest_to_axis,
)
from humanoid_control.collision.jit import Vec, along, dot, kernel, mul, norm, row, sub, unrotate
from humanoid_control.collision.point_distance import ellipse, ellipsoid
from humanoid_control.collision.shape_arrays import CAPSULE, ELLIPSOID

TOP, CYLINDER, BOTTOM = range(3)
SECTION_NAMES = ("top", "cylinder", "bottom")
ON_SEGMENT = 1e-9


@kernel
def _foot(s: Vec, q0: Vec, w: Vec) -> float:
    """Where the foot of s lies on Q's axis, 0 at the top end and 1 at the bottom end; 0.5 for a ball."""
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
        collision where an end of P touches but no critical point does: step 3 has then passed over it.
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


@kernel
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


@kernel
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
        out_collides, out_distance [m], out_section: (P,) filled; False, NaN, -1 for a pair the source has no test
            for: two solids of which none is a sphere or capsule, boxes, flat cylinders.
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
