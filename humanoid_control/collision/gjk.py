"""Distance of two convex solids from their support points alone (Gilbert, Johnson, Keerthi 1988)."""

from __future__ import annotations

import math

import numpy as np

from humanoid_control.collision.jit import Vec, add, dot, kernel, mul, norm, rotate, sub, unrotate
from humanoid_control.collision.shape_arrays import BOX

ITERATIONS = 128
EXACT = 1e-14  # relative gap between the upper and the lower bound of the squared distance
ROUGH = 1e-9  # enough to start Newton's method from
TOUCH = 1e-10  # [m] closer than this counts as overlapping


@kernel
def support(kind: int, size: np.ndarray, R: np.ndarray, p: Vec, n: Vec) -> Vec:
    """The point of a shape that lies farthest along n."""
    l0, l1, l2 = unrotate(R, n)
    if kind == BOX:
        return add(p, rotate(R, (math.copysign(size[0], l0), math.copysign(size[1], l1), math.copysign(size[2], l2))))
    a, b, c = size[0] * size[0] * l0, size[1] * size[1] * l1, size[2] * size[2] * l2
    m = math.sqrt(a * l0 + b * l1 + c * l2)
    if m > 0.0:
        a, b, c = a / m, b / m, c / m
    return add(p, rotate(R, (a, b, c + math.copysign(size[3], l2))))


@kernel
def _solve_subset(W: np.ndarray, i: int, j: int, k: int, size: int, bary: np.ndarray) -> bool:
    """Weights (in bary) of the point nearest the origin in the affine hull of 1-3 rows of W; True if all positive."""
    o = (W[i, 0], W[i, 1], W[i, 2])
    if size == 1:
        bary[0] = 1.0
        return True
    e = (W[j, 0] - o[0], W[j, 1] - o[1], W[j, 2] - o[2])
    ee, eo = dot(e, e), -dot(e, o)
    if size == 2:
        if ee <= 0.0:
            return False
        t = eo / ee
        bary[0], bary[1] = 1.0 - t, t
        return 0.0 < t < 1.0
    f = (W[k, 0] - o[0], W[k, 1] - o[1], W[k, 2] - o[2])
    ff, ef, fo = dot(f, f), dot(e, f), -dot(f, o)
    det = ee * ff - ef * ef
    if det <= 1e-14 * ee * ff:
        return False
    s, t = (eo * ff - fo * ef) / det, (fo * ee - eo * ef) / det
    bary[0], bary[1], bary[2] = 1.0 - s - t, s, t
    return s > 0.0 and t > 0.0 and s + t < 1.0


@kernel
def _holds_origin(W: np.ndarray) -> bool:
    """Whether the tetrahedron of the four rows of W holds the origin."""
    for k in range(4):
        a, b, c, d = W[(k + 1) % 4], W[(k + 2) % 4], W[(k + 3) % 4], W[k]
        e, f = (b[0] - a[0], b[1] - a[1], b[2] - a[2]), (c[0] - a[0], c[1] - a[1], c[2] - a[2])
        n = (e[1] * f[2] - e[2] * f[1], e[2] * f[0] - e[0] * f[2], e[0] * f[1] - e[1] * f[0])
        to_origin = -(n[0] * a[0] + n[1] * a[1] + n[2] * a[2])
        to_fourth = n[0] * (d[0] - a[0]) + n[1] * (d[1] - a[1]) + n[2] * (d[2] - a[2])
        if to_origin * to_fourth < 0.0 or to_fourth == 0.0:
            return False
    return True


@kernel
def _reduce(W: np.ndarray, n: int, bary: np.ndarray, best: np.ndarray, keep: np.ndarray) -> int:
    """The subset of the n rows of W nearest the origin; every one holds the newest row, n - 1.

    Returns:
        its size, with its rows in `keep` and weights in `best`; 4 when the simplex holds the origin.
    """
    if n == 4 and _holds_origin(W):
        return 4
    last, size, least = n - 1, 0, np.inf
    for i in range(-1, last):
        for j in range(i if i == -1 else i + 1, last):
            if i == -1 and j == -1:
                m = 1
            elif i == -1:
                m = 2
            else:
                m = 3
            if not _solve_subset(W, last, j if m == 2 else i, j, m, bary):
                continue
            v2 = 0.0
            for c in range(3):
                x = bary[0] * W[last, c]
                if m == 2:
                    x += bary[1] * W[j, c]
                elif m == 3:
                    x += bary[1] * W[i, c] + bary[2] * W[j, c]
                v2 += x * x
            if v2 < least:
                least, size = v2, m
                keep[0], keep[1], keep[2] = last, (j if m == 2 else i), j
                best[0], best[1], best[2] = bary[0], bary[1], bary[2]
    return size


@kernel
def gjk(
    kind1: int,
    size1: np.ndarray,
    R1: np.ndarray,
    p1: Vec,
    kind2: int,
    size2: np.ndarray,
    R2: np.ndarray,
    p2: Vec,
    tolerance: float,
) -> tuple:
    """Distance of two shapes, to a tolerance between ROUGH and EXACT.

    Returns:
        (d, n, x1, x2): d = 0 when they overlap, n then only the last direction searched.
    """
    W, X = np.empty((4, 3)), np.empty((4, 3))  # the simplex: difference points, and what shape 1 gave to each
    work = np.empty((2, 3))
    keep = np.empty(4, dtype=np.int64)
    order = np.empty((3, 6))
    v = sub(p2, p1)
    if norm(v) <= TOUCH:
        v = (0.0, 0.0, 1.0)
    x1, n, count, first = p1, mul(1.0 / norm(v), v), 0, True
    for _ in range(ITERATIONS):
        a, b = support(kind1, size1, R1, p1, v), support(kind2, size2, R2, p2, (-v[0], -v[1], -v[2]))
        w = sub(b, a)
        vv = dot(v, v)
        if not first and vv - dot(v, w) <= tolerance * vv:
            break
        for c in range(3):
            W[count, c], X[count, c] = w[c], a[c]
        count = _reduce(W, count + 1, work[0], work[1], keep)
        if count == 4:
            return 0.0, n, x1, x1
        new = (0.0, 0.0, 0.0)
        at = (0.0, 0.0, 0.0)
        for r in range(count):
            for c in range(3):
                order[r, c], order[r, 3 + c] = W[keep[r], c], X[keep[r], c]
            t = work[1, r]
            new = (new[0] + t * order[r, 0], new[1] + t * order[r, 1], new[2] + t * order[r, 2])
            at = (at[0] + t * order[r, 3], at[1] + t * order[r, 4], at[2] + t * order[r, 5])
        for r in range(count):
            for c in range(3):
                W[r, c], X[r, c] = order[r, c], order[r, 3 + c]
        if not first and dot(new, new) >= vv:  # rounding: no further progress
            break
        v, x1, first = new, at, False
        if norm(v) <= TOUCH:
            return 0.0, n, x1, x1
        n = mul(1.0 / norm(v), v)
    return norm(v), n, x1, add(x1, v)
