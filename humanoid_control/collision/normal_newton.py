"""The nearest normal of two solids to machine precision, from a good first guess, outside, touching and inside."""

from __future__ import annotations

import math

import numpy as np

from humanoid_control.collision.jit import Vec, add, dot, kernel, mul, norm, rotate, sub, unrotate
from humanoid_control.collision.shape_arrays import BOX

STEPS = 25
SMOOTH = 1e-6  # a swept disc seen along its axis has no unique farthest point


@kernel
def _edges(kind: int, size: np.ndarray, R: np.ndarray, W: np.ndarray, length: np.ndarray, count: int) -> int:
    """Append the segments whose sum (with the ellipsoid) is the shape: unit vectors to W, half lengths to length."""
    for k in range(3):
        half = size[k] if kind == BOX else (size[3] if k == 2 else 0.0)
        if half > 0.0:
            W[count, 0], W[count, 1], W[count, 2], length[count] = R[0, k], R[1, k], R[2, k], half
            count += 1
    return count


@kernel
def _bulge(kind: int, size: np.ndarray, R: np.ndarray, n: Vec, H: np.ndarray) -> tuple:
    """(ok, e): e the farthest point of the swept ellipsoid along n; its derivative by n is added to H (3, 3)."""
    if kind == BOX:
        return True, (0.0, 0.0, 0.0)
    l = unrotate(R, n)  # noqa: E741
    g = (size[0] * size[0] * l[0], size[1] * size[1] * l[1], size[2] * size[2] * l[2])
    m = math.sqrt(max(dot(g, l), 0.0))
    if m <= SMOOTH * size[0]:
        return False, g
    e = rotate(R, mul(1.0 / m, g))
    for r in range(3):
        for c in range(3):
            x = 0.0
            for k in range(3):
                x += R[r, k] * size[k] * size[k] * R[c, k]
            H[r, c] += (x - e[r] * e[c]) / m
    return True, e


@kernel
def _solve(A: np.ndarray, n: int) -> bool:
    """Solve the first n rows of A = [M | b] in place; the answer is in column n. False if singular."""
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
def newton(
    kind1: int,
    size1: np.ndarray,
    R1: np.ndarray,
    p1: Vec,
    kind2: int,
    size2: np.ndarray,
    R2: np.ndarray,
    p2: Vec,
    n: Vec,
    d: float,
) -> tuple:
    """Solve the conditions of nearest points for the normal n and the signed distance d.

    Both shapes are a sum of segments (half lengths l_j, unit vectors w_j) and ellipsoids (farthest points e_1, e_2):

        p2 - p1 - e_1(n) - e_2(n) - sum alpha_j w_j = d n,   |n| = 1,
        alpha_j = l_j sign(n . w_j),  or  |alpha_j| <= l_j where n . w_j = 0.

    Which segments are at right angles to n is guessed and mended on the way.

    Returns:
        (ok, d, n, x1): ok is False if it did not converge near the guess; x1 lies on shape 1.
    """
    W, length, alpha = np.empty((6, 3)), np.empty(6), np.empty(6)
    H, A = np.empty((3, 3)), np.empty((6, 7))
    free = np.zeros(6, dtype=np.bool_)
    first = _edges(kind1, size1, R1, W, length, 0)
    count = _edges(kind2, size2, R2, W, length, first)
    start, scale = n, norm(sub(p2, p1)) + size1[0] + size2[0]
    for j in range(count):
        lean = n[0] * W[j, 0] + n[1] * W[j, 1] + n[2] * W[j, 2]
        free[j] = abs(lean) < 1e-5
        alpha[j] = 0.0 if free[j] else math.copysign(length[j], lean)
    for _ in range(STEPS):
        H[:] = 0.0
        ok1, e1 = _bulge(kind1, size1, R1, n, H)
        ok2, e2 = _bulge(kind2, size2, R2, n, H)
        if not (ok1 and ok2):
            break
        rest = sub(sub(sub(p2, p1), add(e1, e2)), mul(d, n))
        A[:] = 0.0
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
        k = 4
        for j in range(count):
            lean = n[0] * W[j, 0] + n[1] * W[j, 1] + n[2] * W[j, 2]
            if free[j]:
                alpha[j] += A[k, size]
                k += 1
                if abs(alpha[j]) > length[j]:
                    free[j], alpha[j] = False, math.copysign(length[j], alpha[j])
            elif lean * alpha[j] < 0.0:
                free[j] = True
    return False, d, start, p1
