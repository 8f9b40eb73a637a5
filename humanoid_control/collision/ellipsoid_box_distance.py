"""Signed distance of an ellipsoid and a box, exact for separation and shallow penetration.

Coordinates are those of the ellipsoid; the box has the centre t and the axes C (`TwoBoxes`, with half axes for a).

Over a face, the nearest ellipsoid point has a parallel tangent plane. Otherwise the nearest box point t + C y is on an
edge or corner, found by bounded Newton's method on the convex signed distance. A depth is accepted if the gap along its
normal proves it.
"""

from __future__ import annotations

import math

import numpy as np

from humanoid_control.collision.box_distance import TwoBoxes, two_boxes
from humanoid_control.collision.capsule_distance import ellipsoid
from humanoid_control.compiled.jit import inlined, kernel
from humanoid_control.numerics.vec3 import Vec, add, along, dot, mul, norm, rotate

STEPS = 40
SETTLED = 1e-9  # relative to the size: after so short a step Newton's method is exact, since it doubles the digits
FLAT = 1e-13  # slope along an edge that counts as zero


@inlined
def _from_face(bodies: TwoBoxes, lead: float, j: int, c: Vec) -> tuple:
    """Return (proved, d, n, x) for face j, its centre at `lead` along the normal c.

    Proven if the extreme ellipsoid point projects onto the face, or is inside and nearest to it.
    """
    e, b = bodies.a, bodies.b
    n = mul(math.copysign(1.0, lead), c)
    # Extreme point along n: E n / sqrt(n . E n) with E = diag(e^2).
    x = (e[0] * e[0] * n[0], e[1] * e[1] * n[1], e[2] * e[2] * n[2])
    m = math.sqrt(dot(x, n))
    x = mul(1.0 / m, x)
    d = abs(lead) - b[j] - m
    off = along(x, -1.0, bodies.t)
    depth = max(-d, 0.0)
    proved = d > -b[j]
    for k in range(3):
        axis = bodies.c0 if k == 0 else (bodies.c1 if k == 1 else bodies.c2)
        proved = proved and (k == j or abs(dot(axis, off)) <= b[k] - depth)
    return proved, d, n, x


@inlined
def _curvature(u: Vec, v: Vec, w: Vec, m: Vec, c: Vec, tau: float) -> float:
    """Return u^T H v with the second derivative H of the signed distance of q from an ellipsoid.

    With q = x + tau m, m = x / e^2, m . dx = 0, c = 1 / (e^2 + tau), w = c m and beta = |m|^2 - tau m . w:

        |m| H = diag(c) - (w m^T + m w^T) / beta + tau w w^T / beta + (m . w) m m^T / (|m|^2 beta).
    """
    mm, mw = dot(m, m), dot(m, w)
    wu, wv, mu, mv = dot(w, u), dot(w, v), dot(m, u), dot(m, v)
    mixed = tau * wu * wv - wu * mv - mu * wv + mw / mm * mu * mv
    straight = c[0] * u[0] * v[0] + c[1] * u[1] * v[1] + c[2] * u[2] * v[2]
    return (straight + mixed / (mm - tau * mw)) / math.sqrt(mm)


@inlined
def _bounded(y: float, half: float) -> float:
    return min(max(y, -half), half)


@inlined
def _is_free(y: float, half: float, slope: float) -> bool:
    """Return True if a coordinate can move in the direction of descent."""
    return abs(slope) > FLAT and not (y >= half and slope < 0.0) and not (y <= -half and slope > 0.0)


@kernel
def _from_edges(bodies: TwoBoxes) -> tuple:
    """Return (ok, d, n, q): box point q of least signed distance, on an edge or corner."""
    e, b, t, c0, c1, c2 = bodies
    y = (_bounded(-dot(c0, t), b[0]), _bounded(-dot(c1, t), b[1]), _bounded(-dot(c2, t), b[2]))
    size = norm(e) + norm(b)
    a = (e[0] * e[0], e[1] * e[1], e[2] * e[2])
    q, n, d, last = t, t, 0.0, False
    before, least = y, np.inf
    for _ in range(STEPS):
        q = along(along(along(t, y[0], c0), y[1], c1), y[2], c2)
        d, n0, n1, n2 = ellipsoid(q, e[0], e[1], e[2])
        n = (n0, n1, n2)
        if last:
            return True, d, n, q
        if d > least + 1e-15 * size:  # overshoot across a region of higher curvature: halve the step
            y = (0.5 * (y[0] + before[0]), 0.5 * (y[1] + before[1]), 0.5 * (y[2] + before[2]))
            continue
        before, least = y, d
        g = (dot(c0, n), dot(c1, n), dot(c2, n))
        f0, f1, f2 = _is_free(y[0], b[0], g[0]), _is_free(y[1], b[1], g[1]), _is_free(y[2], b[2], g[2])
        count = f0 + f1 + f2
        # No free coordinate: a corner is the minimum. Three: it is not on an edge, which this method does not cover.
        if count == 0:
            return True, d, n, q
        if count == 3:
            return False, d, n, q
        x = along(q, -d, n)
        m = (x[0] / a[0], x[1] / a[1], x[2] / a[2])
        tau = d / norm(m)
        c = (1.0 / (a[0] + tau), 1.0 / (a[1] + tau), 1.0 / (a[2] + tau))
        w = (c[0] * m[0], c[1] * m[1], c[2] * m[2])
        # Newton step in one or two free coordinates.
        s0, s1, s2 = 0.0, 0.0, 0.0
        if count == 1:
            u, slope = (c0, g[0]) if f0 else ((c1, g[1]) if f1 else (c2, g[2]))
            h = _curvature(u, u, w, m, c, tau)
            if not h > 0.0:
                return False, d, n, q
            step = -slope / h
            s0, s1, s2 = step if f0 else 0.0, step if f1 else 0.0, step if f2 else 0.0
        else:
            u, gu = (c0, g[0]) if f0 else (c1, g[1])
            v, gv = (c2, g[2]) if f2 else (c1, g[1])
            uu, vv = _curvature(u, u, w, m, c, tau), _curvature(v, v, w, m, c, tau)
            uv = _curvature(u, v, w, m, c, tau)
            det = uu * vv - uv * uv
            if not det > 1e-12 * uu * vv:
                return False, d, n, q
            su, sv = (uv * gv - vv * gu) / det, (uv * gu - uu * gv) / det
            s0, s1, s2 = su if f0 else 0.0, su if f1 and not f0 else (sv if f1 else 0.0), sv if f2 else 0.0
        moved = (_bounded(y[0] + s0, b[0]), _bounded(y[1] + s1, b[1]), _bounded(y[2] + s2, b[2]))
        last = abs(moved[0] - y[0]) + abs(moved[1] - y[1]) + abs(moved[2] - y[2]) <= SETTLED * size
        y = moved
    return False, d, n, q


@kernel
def ellipsoid_box(e: Vec, R1: np.ndarray, p1: Vec, b: Vec, R2: np.ndarray, p2: Vec) -> tuple:
    """Return the signed distance of an ellipsoid (half axes e) and a box (half sides b).

    Returns:
        (ok, d, n, x1, x2): normal to the box, witness points x2 = x1 + d n; ok is False for unproven depths and
        failures of Newton's method.
    """
    bodies = two_boxes(e, R1, p1, b, R2, p2)
    t, c0, c1, c2 = bodies.t, bodies.c0, bodies.c1, bodies.c2
    lead = (dot(c0, t), dot(c1, t), dot(c2, t))
    # Faces in closed form first, then edges and corners by iteration.
    ok, d, n, x = _from_face(bodies, lead[0], 0, c0)
    if not ok:
        ok, d, n, x = _from_face(bodies, lead[1], 1, c1)
    if not ok:
        ok, d, n, x = _from_face(bodies, lead[2], 2, c2)
    if not ok:
        ok, d, n, q = _from_edges(bodies)
        x = along(q, -d, n)
        if ok:
            # Proof of a depth: the gap along n must not be less than d.
            reach = math.sqrt((e[0] * n[0]) ** 2 + (e[1] * n[1]) ** 2 + (e[2] * n[2]) ** 2)
            reach += b[0] * abs(dot(c0, n)) + b[1] * abs(dot(c1, n)) + b[2] * abs(dot(c2, n))
            ok = dot(t, n) - reach >= d - 1e-12 * (norm(e) + norm(b) + norm(t))
    n, x1 = rotate(R1, n), add(p1, rotate(R1, x))
    return ok, d, n, x1, along(x1, d, n)
