"""Nearest points of two convex solids of any kind.

GJK finds approximate nearest points (Gilbert, Johnson and Keerthi 1988), Newton's method exact ones. For overlap see
`penetration_depth`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from humanoid_control.collision.shapes import BOX
from humanoid_control.compiled.jit import inlined, kernel
from humanoid_control.compiled.packed import local_indices, local_matrix, local_vector
from humanoid_control.numerics.vec3 import Vec, add, dot, mul, norm, rotate, sub, unrotate


class Solid(NamedTuple):
    """Shape in the world.

    Attributes:
        size: row of `ShapeArrays.sizes` (4,).
        p: origin [m].
    """

    kind: int
    size: np.ndarray
    R: np.ndarray
    p: Vec


# -------- Gilbert, Johnson and Keerthi

ITERATIONS = 128
EXACT = 1e-14  # relative gap between the upper and the lower bound of the squared distance
ROUGH = 1e-9  # sufficient as a start of Newton's method
TOUCH = 1e-10  # [m] smaller distances count as overlap


@kernel
def support(solid: Solid, n: Vec) -> Vec:
    """Return the farthest point of a solid along n."""
    kind, size, R, p = solid
    l0, l1, l2 = unrotate(R, n)
    if kind == BOX:
        return add(p, rotate(R, (math.copysign(size[0], l0), math.copysign(size[1], l1), math.copysign(size[2], l2))))
    # Ellipsoid: D n / sqrt(n' D n) with D = diag(size^2); the segment adds its end.
    a, b, c = size[0] * size[0] * l0, size[1] * size[1] * l1, size[2] * size[2] * l2
    m = math.sqrt(a * l0 + b * l1 + c * l2)
    if m > 0.0:
        a, b, c = a / m, b / m, c / m
    return add(p, rotate(R, (a, b, c + math.copysign(size[3], l2))))


@kernel
def _solve_subset(W: np.ndarray, i: int, j: int, k: int, size: int, bary: np.ndarray) -> bool:
    """Store the barycentric weights of the point nearest to the origin for 1-3 rows of W; True if all positive."""
    o = (W[i, 0], W[i, 1], W[i, 2])
    if size == 1:
        bary[0] = 1.0
        return True
    e = (W[j, 0] - o[0], W[j, 1] - o[1], W[j, 2] - o[2])
    ee, eo = dot(e, e), -dot(e, o)
    # Normal equations of the nearest point in barycentric coordinates.
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
    """Return True if the tetrahedron of the rows of W contains the origin."""
    for k in range(4):
        a, b, c, d = W[(k + 1) % 4], W[(k + 2) % 4], W[(k + 3) % 4], W[k]
        e, f = (b[0] - a[0], b[1] - a[1], b[2] - a[2]), (c[0] - a[0], c[1] - a[1], c[2] - a[2])
        n = (e[1] * f[2] - e[2] * f[1], e[2] * f[0] - e[0] * f[2], e[0] * f[1] - e[1] * f[0])
        # The origin must be on the same side of each face as the opposite vertex.
        to_origin = -(n[0] * a[0] + n[1] * a[1] + n[2] * a[2])
        to_fourth = n[0] * (d[0] - a[0]) + n[1] * (d[1] - a[1]) + n[2] * (d[2] - a[2])
        if to_origin * to_fourth < 0.0 or to_fourth == 0.0:
            return False
    return True


@kernel
def _reduce(W: np.ndarray, n: int, bary: np.ndarray, best: np.ndarray, keep: np.ndarray) -> int:
    """Find the subset of n rows of W nearest to the origin, always with the newest row n - 1.

    Returns:
        Size of the subset (rows in `keep`, weights in `best`); 4 if the simplex contains the origin.
    """
    if n == 4 and _holds_origin(W):
        return 4
    last, size, least = n - 1, 0, np.inf
    # All subsets with the newest row: alone (m = 1), with one (m = 2) or two (m = 3) others.
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
def gjk(solid1: Solid, solid2: Solid, tolerance: float) -> tuple:
    """Return the distance of two shapes to a tolerance in EXACT..ROUGH.

    Returns:
        (d, n, x1, x2): d = 0 for overlap; n is then only a search direction.
    """
    W, X = local_matrix(4, 3), local_matrix(4, 3)  # simplex: difference points, and their points of shape 1
    work, order, keep = local_matrix(2, 3), local_matrix(3, 6), local_indices(4)
    p1 = solid1.p
    v = sub(solid2.p, p1)
    if norm(v) <= TOUCH:
        v = (0.0, 0.0, 1.0)
    x1, n, count, first = p1, mul(1.0 / norm(v), v), 0, True
    apart = False  # a separating plane was found: later signs of overlap are round-off
    for _ in range(ITERATIONS):
        a, b = support(solid1, v), support(solid2, (-v[0], -v[1], -v[2]))
        w = sub(b, a)
        vv, along_v = dot(v, v), dot(v, w)
        apart = apart or along_v > TOUCH * math.sqrt(vv)
        if not first and vv - along_v <= tolerance * vv:
            break
        for c in range(3):
            W[count, c], X[count, c] = w[c], a[c]
        count = _reduce(W, count + 1, work[0], work[1], keep)
        if count == 4:
            # Four nearly coplanar points, such as a face and an edge along it.
            if apart:
                break
            return 0.0, n, x1, x1
        new = (0.0, 0.0, 0.0)
        at = (0.0, 0.0, 0.0)
        # The point of the simplex nearest to the origin, and its counterpart on shape 1.
        for r in range(count):
            for c in range(3):
                order[r, c], order[r, 3 + c] = W[keep[r], c], X[keep[r], c]
            t = work[1, r]
            new = (new[0] + t * order[r, 0], new[1] + t * order[r, 1], new[2] + t * order[r, 2])
            at = (at[0] + t * order[r, 3], at[1] + t * order[r, 4], at[2] + t * order[r, 5])
        for r in range(count):
            for c in range(3):
                W[r, c], X[r, c] = order[r, c], order[r, 3 + c]
        if not first and dot(new, new) >= vv:  # no further progress within rounding
            break
        v, x1, first = new, at, False
        if norm(v) <= TOUCH:
            return 0.0, n, x1, x1
        n = mul(1.0 / norm(v), v)
    return norm(v), n, x1, add(x1, v)


# -------- Newton's method on the normal

STEPS = 25
SMOOTH = 1e-6  # a swept disc seen along its axis has no unique farthest point


@inlined
def _clear(A: np.ndarray) -> None:
    for r in range(A.shape[0]):
        for c in range(A.shape[1]):
            A[r, c] = 0.0


@kernel
def _edges(solid: Solid, W: np.ndarray, length: np.ndarray, count: int) -> int:
    """Append the segments of a shape: unit vectors to W, half lengths to length."""
    kind, size, R, _ = solid
    for k in range(3):
        half = size[k] if kind == BOX else (size[3] if k == 2 else 0.0)
        if half > 0.0:
            W[count, 0], W[count, 1], W[count, 2], length[count] = R[0, k], R[1, k], R[2, k], half
            count += 1
    return count


@kernel
def _bulge(solid: Solid, n: Vec, H: np.ndarray) -> tuple:
    """Return (ok, e): farthest point e of the swept ellipsoid along n; add its derivative to H (3, 3)."""
    kind, size, R, _ = solid
    if kind == BOX:
        return True, (0.0, 0.0, 0.0)
    l = unrotate(R, n)  # noqa: E741
    g = (size[0] * size[0] * l[0], size[1] * size[1] * l[1], size[2] * size[2] * l[2])
    m = math.sqrt(max(dot(g, l), 0.0))
    if m <= SMOOTH * size[0]:
        return False, g
    e = rotate(R, mul(1.0 / m, g))
    # d e / d n = (R D R' - e e') / m with D = diag(size^2) and m = sqrt(n' R D R' n).
    for r in range(3):
        for c in range(3):
            x = 0.0
            for k in range(3):
                x += R[r, k] * size[k] * size[k] * R[c, k]
            H[r, c] += (x - e[r] * e[c]) / m
    return True, e


@kernel
def _solve(A: np.ndarray, n: int) -> bool:
    """Solve the first n rows of A = [M | b] in place, into column n; False if singular."""
    for k in range(n):
        pivot = k
        for r in range(k + 1, n):
            if abs(A[r, k]) > abs(A[pivot, k]):
                pivot = r
        if abs(A[pivot, k]) < 1e-13:
            return False
        for c in range(n + 1):
            A[k, c], A[pivot, c] = A[pivot, c], A[k, c]
        for r in range(n):
            if r != k:
                f = A[r, k] / A[k, k]
                for c in range(k, n + 1):
                    A[r, c] -= f * A[k, c]
    for k in range(n):
        A[k, n] /= A[k, k]
    return True


@kernel
def newton(solid1: Solid, solid2: Solid, n: Vec, d: float) -> tuple:
    """Solve the conditions of nearest points for the normal n and the signed distance d.

    Both shapes are sums of segments (half lengths l_j, unit vectors w_j) and ellipsoids (farthest points e):

        p2 - p1 - e_1(n) - e_2(n) - sum alpha_j w_j = d n,   |n| = 1,
        alpha_j = l_j sign(n . w_j),  or  |alpha_j| <= l_j where n . w_j = 0.

    The set of orthogonal segments is guessed and updated.

    Returns:
        (ok, d, n, x1): ok if converged near the guess; x1 on shape 1.
    """
    p1, p2 = solid1.p, solid2.p
    W, length, alpha, free = local_matrix(6, 3), local_vector(6), local_vector(6), local_indices(6)
    H, A = local_matrix(3, 3), local_matrix(6, 7)
    first = _edges(solid1, W, length, 0)
    count = _edges(solid2, W, length, first)
    start, scale = n, norm(sub(p2, p1)) + solid1.size[0] + solid2.size[0]
    for j in range(count):
        lean = n[0] * W[j, 0] + n[1] * W[j, 1] + n[2] * W[j, 2]
        free[j] = 1 if abs(lean) < 1e-5 else 0
        alpha[j] = 0.0 if free[j] else math.copysign(length[j], lean)
    for _ in range(STEPS):
        _clear(H)
        ok1, e1 = _bulge(solid1, n, H)
        ok2, e2 = _bulge(solid2, n, H)
        if not (ok1 and ok2):
            break
        rest = sub(sub(sub(p2, p1), add(e1, e2)), mul(d, n))
        # Unknowns: n, d, and alpha_j of the free segments; the matrix is symmetric.
        _clear(A)
        size, error = 4, abs(dot(n, n) - 1.0)
        for r in range(3):
            for c in range(3):
                A[r, c] = H[r, c]
            A[r, r] += d
            A[r, 3], A[3, r] = n[r], n[r]
        x1 = add(p1, e1)
        for j in range(count):
            w = (W[j, 0], W[j, 1], W[j, 2])
            rest = sub(rest, mul(alpha[j], w))
            if j < first:
                x1 = add(x1, mul(alpha[j], w))
            if free[j]:
                if size == 6:
                    return False, d, n, x1
                for r in range(3):
                    A[r, size], A[size, r] = w[r], w[r]
                size += 1
                error = max(error, abs(dot(n, w)))
        for r in range(3):
            A[r, size] = rest[r]
        # Right-hand sides: the residual, the constraint |n| = 1, and n . w_j = 0 of the free segments.
        A[3, size] = 0.5 * (1.0 - dot(n, n))
        k = 4
        for j in range(count):
            if free[j]:
                A[k, size] = -(n[0] * W[j, 0] + n[1] * W[j, 1] + n[2] * W[j, 2])
                k += 1
        if max(norm(rest), scale * error) < 1e-14 * scale + 1e-15:
            return dot(n, start) > 0.98, d, n, x1
        if not _solve(A, size):
            break
        n = add(n, (A[0, size], A[1, size], A[2, size]))
        d += A[3, size]
        # A segment leaves the free set at its end, and enters it when its lean changes sign.
        k = 4
        for j in range(count):
            lean = n[0] * W[j, 0] + n[1] * W[j, 1] + n[2] * W[j, 2]
            if free[j]:
                alpha[j] += A[k, size]
                k += 1
                if abs(alpha[j]) > length[j]:
                    free[j], alpha[j] = 0, math.copysign(length[j], alpha[j])
            elif lean * alpha[j] < 0.0:
                free[j] = 1
    return False, d, start, p1
