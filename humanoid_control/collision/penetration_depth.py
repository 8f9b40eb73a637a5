"""Penetration depth: the shortest translation that separates two overlapping convex solids.

Along a unit vector n the gap is f(n) = n . (b - a), with the farthest points a of the first solid along n and b of the
second along -n. The signed distance is the largest f, the only local maximum outside, possibly one of many inside. With
w = b - a, f(m) <= m . w(n) for all m and n (a supporting plane of the Minkowski difference): this bound makes the
search complete.
"""

from __future__ import annotations

import numpy as np

from humanoid_control.collision.convex_distance import EXACT, ROUGH, Solid, gjk, newton, support
from humanoid_control.collision.shapes import BOX, CAPSULE
from humanoid_control.compiled.jit import kernel
from humanoid_control.numerics.vec3 import Vec, add, along, cross, dot, mul, norm, sub

NEAR = 1e-5  # [m] below this distance the direction between nearest points is inaccurate
ASCENTS = 20
SETTLED = 1e-12  # [m]
MARGIN = 0.05  # distance to which overlapping shapes are pulled apart, relative to their size


# -------- Separation along a direction


@kernel
def _difference(solid1: Solid, solid2: Solid, n: Vec) -> Vec:
    return sub(support(solid2, mul(-1.0, n)), support(solid1, n))


@kernel
def separation(solid1: Solid, solid2: Solid, n: Vec) -> float:
    """Return the gap along the unit vector n; negative for overlap."""
    return dot(n, _difference(solid1, solid2, n))


@kernel
def _best_axis(solid1: Solid, solid2: Solid, n: Vec) -> Vec:
    """Return the direction of least overlap among n, the line of centres, all axes and their cross products."""
    best = separation(solid1, solid2, n)
    centres, R1, R2 = sub(solid2.p, solid1.p), solid1.R, solid2.R
    for k in range(16):
        if k < 6:
            R = R1 if k < 3 else R2
            v = (R[0, k % 3], R[1, k % 3], R[2, k % 3])
        elif k < 15:
            i, j = (k - 6) // 3, (k - 6) % 3
            v = cross((R1[0, i], R1[1, i], R1[2, i]), (R2[0, j], R2[1, j], R2[2, j]))
        else:
            v = centres
        m = norm(v)
        if m < 1e-6:
            continue
        v = mul((1.0 if dot(v, centres) >= 0.0 else -1.0) / m, v)
        gap = separation(solid1, solid2, v)
        if gap > best + 1e-12:
            best, n = gap, v
    return n


@kernel
def _climb(solid1: Solid, solid2: Solid, n: Vec, x1: Vec, tolerance: float) -> tuple:
    """Climb to the local maximum of the separation from n.

    Overlapping shapes are pulled apart along n; their nearest normal n' is next. Its gap is never smaller (that would
    need |n . n'| > 1). Newton's method makes the result exact.

    Returns:
        (d, n, x1): x1 on the first shape, x1 + d n on the second.
    """
    size1, size2, flat = solid1.size, solid2.size, tolerance == EXACT
    d = separation(solid1, solid2, n)
    margin = MARGIN * (norm((size1[0], size1[1], size1[2])) + norm((size2[0], size2[1], size2[2])))
    for k in range(ASCENTS):
        moved = Solid(solid2.kind, size2, solid2.R, along(solid2.p, margin - d, n))
        apart, m, y1, _ = gjk(solid1, moved, tolerance)
        if apart <= 0.0:  # round-off in GJK reports an overlap
            margin *= 1.5
            continue
        gap = separation(solid1, solid2, m)
        x1, climbed = y1, gap - d
        if climbed > 0.0:
            n, d = m, gap
        # For curved shapes try Newton's method. If it fails, further steps use GJK at full accuracy.
        if not flat and (k % 4 == 1 or climbed <= SETTLED):
            ok, e, m, y1 = newton(solid1, solid2, n, d)
            if ok and e >= d - SETTLED:
                return e, m, y1
            tolerance = EXACT
        if climbed <= SETTLED:
            break
    return d, n, x1


# -------- Search over all directions

ROOM = 2048  # largest number of cones of directions in a level
LEVELS = 24
SLACK = 1e-4  # relative to the size: allowed deficit of the result


@kernel
def _bound(cone: np.ndarray) -> float:
    """Return an upper bound on the separation along all directions between three corners.

    With n = sum l_i n_i / |sum l_i n_i|, l_i >= 0: f(n) <= n . w_j <= max_i n_i . w_j if that is negative.
    """
    bound = np.inf
    for j in range(3):
        w, worst = (cone[j, 3], cone[j, 4], cone[j, 5]), -np.inf
        for i in range(3):
            worst = max(worst, cone[i, 0] * w[0] + cone[i, 1] * w[1] + cone[i, 2] * w[2])
        bound = min(bound, worst)
    return bound


@kernel
def _corner(solid1: Solid, solid2: Solid, n: Vec, out: np.ndarray) -> float:
    """Fill a corner (6,) and return the separation along n."""
    w = _difference(solid1, solid2, n)
    for c in range(3):
        out[c], out[3 + c] = n[c], w[c]
    return dot(n, w)


@kernel(allocates=True)
def _best_direction(solid1: Solid, solid2: Solid, n: Vec, d: float, slack: float) -> tuple:
    """Return (d, n): separation within `slack` [m] of the maximum.

    Branch and bound: eight triangles of the sphere are divided by four, and dropped if they cannot contain a better
    direction. Exhausted memory (concentric balls) ends the search early.
    """
    cones = np.empty((2, ROOM, 3, 6))
    R, count = solid1.R, 8
    # Octants of the first shape's axes.
    for t in range(8):
        for c in range(3):
            sign = 1.0 if (t >> c) & 1 else -1.0
            axis = (sign * R[0, c], sign * R[1, c], sign * R[2, c])
            f = _corner(solid1, solid2, axis, cones[0, t, c])
            if f > d:
                d, n = f, axis
    middle = np.empty((3, 6))
    for level in range(LEVELS):
        here, below, kept = cones[level % 2], cones[1 - level % 2], 0
        for t in range(count):
            if _bound(here[t]) <= d + slack:
                continue
            if kept + 4 > ROOM:
                return d, n
            for c in range(3):
                p, q = here[t, c], here[t, (c + 1) % 3]
                v = (p[0] + q[0], p[1] + q[1], p[2] + q[2])
                v = mul(1.0 / norm(v), v)
                f = _corner(solid1, solid2, v, middle[c])
                if f > d:
                    d, n = f, v
            # Three corner triangles and the middle one.
            for c in range(3):
                below[kept + c, 0], below[kept + c, 1], below[kept + c, 2] = here[t, c], middle[c], middle[(c + 2) % 3]
            below[kept + 3] = middle
            kept += 4
        count = kept
        if count == 0:
            break
    return d, n


# -------- Signed distance


@kernel
def overlap(solid1: Solid, solid2: Solid, n: Vec, x1: Vec) -> tuple:
    """Return the signed distance of shapes in contact: minus the shortest separating translation.

    For polyhedra and capsules it is along an axis of `_best_axis` (the Minkowski difference has no other normals).
    Otherwise the local maximum is compared with all directions.

    Returns:
        (d, n, x1, x2): normal to the second shape, witness points x2 = x1 + d n.
    """
    flat1, flat2 = solid1.kind == BOX, solid2.kind == BOX
    tolerance = EXACT if flat1 and flat2 else ROUGH
    n = _best_axis(solid1, solid2, n)
    d, n, x1 = _climb(solid1, solid2, n, x1, tolerance)
    straight = (flat1 or solid1.kind <= CAPSULE) and (flat2 or solid2.kind <= CAPSULE)
    slack = SLACK * (norm(sub(solid2.p, solid1.p)) + solid1.size[0] + solid2.size[0])
    if not straight and d < -slack:
        better, m = _best_direction(solid1, solid2, n, d, slack)
        if better > d + SETTLED:
            e, m, y1 = _climb(solid1, solid2, m, x1, tolerance)
            if e > d:
                d, n, x1 = e, m, y1
    return d, n, x1, along(x1, d, n)


@kernel
def solid_solid(solid1: Solid, solid2: Solid) -> tuple:
    """Return the signed distance of two solids other than swept spheres.

    Returns:
        (d, n, x1, x2) as in `overlap`.
    """
    flat = solid1.kind == BOX and solid2.kind == BOX
    d, n, x1, _ = gjk(solid1, solid2, EXACT if flat else ROUGH)
    # Separated: GJK is exact for polyhedra; curved shapes need Newton's method from its result.
    if d > NEAR:
        if flat:
            return d, n, x1, add(x1, mul(d, n))
        ok, e, m, y1 = newton(solid1, solid2, n, d)
        if ok:
            return e, m, y1, along(y1, e, m)
        d, n, x1, _ = gjk(solid1, solid2, EXACT)
        return d, n, x1, add(x1, mul(d, n))
    return overlap(solid1, solid2, n, x1)
