"""Signed distance of two solids of which neither is a swept sphere: box, cylinder, ellipsoid, elliptic capsule."""

from __future__ import annotations

import numpy as np

from humanoid_control.collision.gjk import EXACT, ROUGH, gjk, support
from humanoid_control.collision.jit import Vec, add, along, cross, dot, kernel, mul, norm, sub
from humanoid_control.collision.normal_newton import newton
from humanoid_control.collision.shape_arrays import BOX

NEAR = 1e-5  # [m] nearer than this, the direction between nearest points is too short to trust
ASCENTS = 20
SETTLED = 1e-12  # [m]
MARGIN = 0.05  # of the shapes' size: how far apart overlapping shapes are pulled to measure them


@kernel
def separation(
    kind1: int,
    size1: np.ndarray,
    R1: np.ndarray,
    p1: Vec,
    kind2: int,
    size2: np.ndarray,
    R2: np.ndarray,
    p2: Vec,
    n: Vec,
) -> float:
    """Width of the gap between the shapes along the unit vector n, negative by how far they overlap along it."""
    a, b = support(kind1, size1, R1, p1, n), support(kind2, size2, R2, p2, mul(-1.0, n))
    return dot(n, sub(b, a))


@kernel
def _best_axis(
    kind1: int,
    size1: np.ndarray,
    R1: np.ndarray,
    p1: Vec,
    kind2: int,
    size2: np.ndarray,
    R2: np.ndarray,
    p2: Vec,
    n: Vec,
) -> Vec:
    """Of n, the line of centres, the axes of both shapes and their cross products, the one of least overlap."""
    best = separation(kind1, size1, R1, p1, kind2, size2, R2, p2, n)
    centres = sub(p2, p1)
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
        gap = separation(kind1, size1, R1, p1, kind2, size2, R2, p2, v)
        if gap > best + 1e-12:
            best, n = gap, v
    return n


@kernel
def solid_solid(
    kind1: int, size1: np.ndarray, R1: np.ndarray, p1: Vec, kind2: int, size2: np.ndarray, R2: np.ndarray, p2: Vec
) -> tuple:
    """Signed distance; when the shapes overlap, minus the shortest translation found that takes them apart.

    Overlapping shapes are pulled apart along the best direction known and their nearest normal is taken as the next
    one. The gap along it is never smaller (it would be only if |n . n'| > 1), so this climbs to a locally shortest way
    out. Newton's method makes the result exact, unless both are boxes, which are exact already.

    Returns:
        (d, n, x1, x2): normal from the first to the second, nearest points of both surfaces.
    """
    flat = kind1 == BOX and kind2 == BOX
    tolerance = EXACT if flat else ROUGH
    d, n, x1, _ = gjk(kind1, size1, R1, p1, kind2, size2, R2, p2, tolerance)
    if d > NEAR:
        if flat:
            return d, n, x1, add(x1, mul(d, n))
        ok, e, m, y1 = newton(kind1, size1, R1, p1, kind2, size2, R2, p2, n, d)
        if ok:
            return e, m, y1, along(y1, e, m)
        d, n, x1, _ = gjk(kind1, size1, R1, p1, kind2, size2, R2, p2, EXACT)
        return d, n, x1, add(x1, mul(d, n))
    n = _best_axis(kind1, size1, R1, p1, kind2, size2, R2, p2, n)
    d = separation(kind1, size1, R1, p1, kind2, size2, R2, p2, n)
    margin = MARGIN * (norm((size1[0], size1[1], size1[2])) + norm((size2[0], size2[1], size2[2])))
    for k in range(ASCENTS):
        apart, m, y1, _ = gjk(kind1, size1, R1, p1, kind2, size2, R2, along(p2, margin - d, n), tolerance)
        if apart <= 0.0:
            break
        gap = separation(kind1, size1, R1, p1, kind2, size2, R2, p2, m)
        x1, climbed = y1, gap - d
        if climbed > 0.0:
            n, d = m, gap
        if not flat and (k % 4 == 1 or climbed <= SETTLED):
            ok, e, m, y1 = newton(kind1, size1, R1, p1, kind2, size2, R2, p2, n, d)
            if ok and e >= d - SETTLED:
                return e, m, y1, along(y1, e, m)
            tolerance = EXACT
        if climbed <= SETTLED:
            break
    return d, n, x1, add(x1, mul(d, n))
