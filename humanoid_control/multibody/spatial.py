"""Spatial algebra between neighbouring frames, inlined and without allocation.

Spatial vectors are six numbers, angular first; symmetric matrices are xx xy xz yy yz zz. Offsets: see `layout`.
"""

from __future__ import annotations

from humanoid_control.compiled.array_types import F1
from humanoid_control.compiled.jit import inlined
from humanoid_control.multibody.layout import ACC, CROSS, INERTIA, LINEAR, ORIGIN, TURN

Vector3 = tuple[float, float, float]
Vector6 = tuple[float, float, float, float, float, float]


@inlined
def turn(W: F1, a: int, x: float, y: float, z: float) -> Vector3:
    """Return A x for the rotation at offset a."""
    return (
        W[a] * x + W[a + 1] * y + W[a + 2] * z,
        W[a + 3] * x + W[a + 4] * y + W[a + 5] * z,
        W[a + 6] * x + W[a + 7] * y + W[a + 8] * z,
    )


@inlined
def turn_back(W: F1, a: int, x: float, y: float, z: float) -> Vector3:
    """Return A^T x for the rotation at offset a."""
    return (
        W[a] * x + W[a + 3] * y + W[a + 6] * z,
        W[a + 1] * x + W[a + 4] * y + W[a + 7] * z,
        W[a + 2] * x + W[a + 5] * y + W[a + 8] * z,
    )


@inlined
def cross(ax: float, ay: float, az: float, bx: float, by: float, bz: float) -> Vector3:
    return ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx


@inlined
def six(W: F1, k: int) -> Vector6:
    """Return six numbers at offset k."""
    return W[k], W[k + 1], W[k + 2], W[k + 3], W[k + 4], W[k + 5]


@inlined
def spatial_dot(W: F1, k: int, f: Vector6) -> float:
    """Return the scalar product with the vector at offset k."""
    return W[k] * f[0] + W[k + 1] * f[1] + W[k + 2] * f[2] + W[k + 3] * f[3] + W[k + 4] * f[4] + W[k + 5] * f[5]


@inlined
def subtract_vector(W: F1, k: int, f: Vector6) -> None:
    W[k] -= f[0]
    W[k + 1] -= f[1]
    W[k + 2] -= f[2]
    W[k + 3] -= f[3]
    W[k + 4] -= f[4]
    W[k + 5] -= f[5]


@inlined
def symmetric_times(S: F1, s: int, x: float, y: float, z: float) -> Vector3:
    """Return S x for the symmetric matrix at offset s."""
    return (
        S[s] * x + S[s + 1] * y + S[s + 2] * z,
        S[s + 1] * x + S[s + 3] * y + S[s + 4] * z,
        S[s + 2] * x + S[s + 4] * y + S[s + 5] * z,
    )


@inlined
def motion_down(W: F1, a: int, r: int, m: Vector6) -> Vector6:
    """Return C m: a parent's motion at the child's origin in child axes (Schwienbacher 2014, eq. (2.36)).

    Rotation at offset a, origin at offset r.
    """
    # v' = A (v + w x r), w' = A w.
    wx, wy, wz, vx, vy, vz = m
    cx, cy, cz = cross(wx, wy, wz, W[r], W[r + 1], W[r + 2])
    ox, oy, oz = turn(W, a, wx, wy, wz)
    lx, ly, lz = turn(W, a, vx + cx, vy + cy, vz + cz)
    return ox, oy, oz, lx, ly, lz


@inlined
def force_up(W: F1, a: int, r: int, f: Vector6) -> Vector6:
    """Return C^T f: a child's force at the parent's origin in parent axes."""
    # f' = A^T f, n' = A^T n + r x f'.
    nx, ny, nz, fx, fy, fz = f
    tx, ty, tz = turn_back(W, a, nx, ny, nz)
    lx, ly, lz = turn_back(W, a, fx, fy, fz)
    mx, my, mz = cross(W[r], W[r + 1], W[r + 2], lx, ly, lz)
    return tx + mx, ty + my, tz + mz, lx, ly, lz


@inlined
def inertia_times(W: F1, o: int, m: Vector6) -> Vector6:
    """Return M m for the articulated inertia of the row at o."""
    # M = [I H; H^T L] in blocks: angular, cross, linear.
    i, h, k = o + INERTIA, o + CROSS, o + LINEAR
    wx, wy, wz, vx, vy, vz = m
    return (
        W[i] * wx + W[i + 1] * wy + W[i + 2] * wz + W[h] * vx + W[h + 1] * vy + W[h + 2] * vz,
        W[i + 1] * wx + W[i + 3] * wy + W[i + 4] * wz + W[h + 3] * vx + W[h + 4] * vy + W[h + 5] * vz,
        W[i + 2] * wx + W[i + 4] * wy + W[i + 5] * wz + W[h + 6] * vx + W[h + 7] * vy + W[h + 8] * vz,
        W[h] * wx + W[h + 3] * wy + W[h + 6] * wz + W[k] * vx + W[k + 1] * vy + W[k + 2] * vz,
        W[h + 1] * wx + W[h + 4] * wy + W[h + 7] * wz + W[k + 1] * vx + W[k + 3] * vy + W[k + 4] * vz,
        W[h + 2] * wx + W[h + 5] * wy + W[h + 8] * wz + W[k + 2] * vx + W[k + 4] * vy + W[k + 5] * vz,
    )


@inlined
def symmetric_up(W: F1, a: int, K: Vector6) -> Vector6:
    """Return A^T K A."""
    xx, xy, xz, yy, yz, zz = K
    a0, a1, a2 = W[a], W[a + 1], W[a + 2]
    a3, a4, a5 = W[a + 3], W[a + 4], W[a + 5]
    a6, a7, a8 = W[a + 6], W[a + 7], W[a + 8]
    p0, p1, p2 = xx * a0 + xy * a3 + xz * a6, xx * a1 + xy * a4 + xz * a7, xx * a2 + xy * a5 + xz * a8
    p3, p4, p5 = xy * a0 + yy * a3 + yz * a6, xy * a1 + yy * a4 + yz * a7, xy * a2 + yy * a5 + yz * a8
    p6, p7, p8 = xz * a0 + yz * a3 + zz * a6, xz * a1 + yz * a4 + zz * a7, xz * a2 + yz * a5 + zz * a8
    return (
        a0 * p0 + a3 * p3 + a6 * p6,
        a0 * p1 + a3 * p4 + a6 * p7,
        a0 * p2 + a3 * p5 + a6 * p8,
        a1 * p1 + a4 * p4 + a7 * p7,
        a1 * p2 + a4 * p5 + a7 * p8,
        a2 * p2 + a5 * p5 + a8 * p8,
    )


@inlined
def add_inertia_up(W: F1, o: int, a: int, r: int, t: int) -> None:
    """Add C^T M C of the body at o to the inertia at t, with rotation at a and origin at r."""
    # Rotate the three blocks first, then shift the reference point.
    i, h, m = o + INERTIA, o + CROSS, o + LINEAR
    ixx, ixy, ixz, iyy, iyz, izz = symmetric_up(W, a, six(W, i))
    lxx, lxy, lxz, lyy, lyz, lzz = symmetric_up(W, a, six(W, m))
    a0, a1, a2 = W[a], W[a + 1], W[a + 2]
    a3, a4, a5 = W[a + 3], W[a + 4], W[a + 5]
    a6, a7, a8 = W[a + 6], W[a + 7], W[a + 8]
    h0, h1, h2 = W[h], W[h + 1], W[h + 2]
    h3, h4, h5 = W[h + 3], W[h + 4], W[h + 5]
    h6, h7, h8 = W[h + 6], W[h + 7], W[h + 8]
    # H' = A^T H A of the unsymmetric cross block.
    p0, p1, p2 = h0 * a0 + h1 * a3 + h2 * a6, h0 * a1 + h1 * a4 + h2 * a7, h0 * a2 + h1 * a5 + h2 * a8
    p3, p4, p5 = h3 * a0 + h4 * a3 + h5 * a6, h3 * a1 + h4 * a4 + h5 * a7, h3 * a2 + h4 * a5 + h5 * a8
    p6, p7, p8 = h6 * a0 + h7 * a3 + h8 * a6, h6 * a1 + h7 * a4 + h8 * a7, h6 * a2 + h7 * a5 + h8 * a8
    h0, h1, h2 = a0 * p0 + a3 * p3 + a6 * p6, a0 * p1 + a3 * p4 + a6 * p7, a0 * p2 + a3 * p5 + a6 * p8
    h3, h4, h5 = a1 * p0 + a4 * p3 + a7 * p6, a1 * p1 + a4 * p4 + a7 * p7, a1 * p2 + a4 * p5 + a7 * p8
    h6, h7, h8 = a2 * p0 + a5 * p3 + a8 * p6, a2 * p1 + a5 * p4 + a8 * p7, a2 * p2 + a5 * p5 + a8 * p8
    x, y, z = W[r], W[r + 1], W[r + 2]
    # G = H' + r~ L'
    g0, g1, g2 = h0 + y * lxz - z * lxy, h1 + y * lyz - z * lyy, h2 + y * lzz - z * lyz
    g3, g4, g5 = h3 + z * lxx - x * lxz, h4 + z * lxy - x * lyz, h5 + z * lxz - x * lzz
    g6, g7, g8 = h6 + x * lxy - y * lxx, h7 + x * lyy - y * lxy, h8 + x * lyz - y * lxz
    # I' + r~ H'^T - G r~
    W[t] += ixx + y * h2 - z * h1 + y * g2 - z * g1
    W[t + 1] += ixy + y * h5 - z * h4 + z * g0 - x * g2
    W[t + 2] += ixz + y * h8 - z * h7 + x * g1 - y * g0
    W[t + 3] += iyy + z * h3 - x * h5 + z * g3 - x * g5
    W[t + 4] += iyz + z * h6 - x * h8 + x * g4 - y * g3
    W[t + 5] += izz + x * h7 - y * h6 + x * g7 - y * g6
    W[t + 6] += g0
    W[t + 7] += g1
    W[t + 8] += g2
    W[t + 9] += g3
    W[t + 10] += g4
    W[t + 11] += g5
    W[t + 12] += g6
    W[t + 13] += g7
    W[t + 14] += g8
    W[t + 15] += lxx
    W[t + 16] += lxy
    W[t + 17] += lxz
    W[t + 18] += lyy
    W[t + 19] += lyz
    W[t + 20] += lzz


@inlined
def subtract_square(W: F1, t: int, b: Vector6, s: float) -> None:
    """Subtract s b b^T from the inertia at t."""
    n0, n1, n2, f0, f1, f2 = b
    c0, c1, c2 = s * n0, s * n1, s * n2
    d0, d1, d2 = s * f0, s * f1, s * f2
    W[t] -= c0 * n0
    W[t + 1] -= c0 * n1
    W[t + 2] -= c0 * n2
    W[t + 3] -= c1 * n1
    W[t + 4] -= c1 * n2
    W[t + 5] -= c2 * n2
    W[t + 6] -= c0 * f0
    W[t + 7] -= c0 * f1
    W[t + 8] -= c0 * f2
    W[t + 9] -= c1 * f0
    W[t + 10] -= c1 * f1
    W[t + 11] -= c1 * f2
    W[t + 12] -= c2 * f0
    W[t + 13] -= c2 * f1
    W[t + 14] -= c2 * f2
    W[t + 15] -= d0 * f0
    W[t + 16] -= d0 * f1
    W[t + 17] -= d0 * f2
    W[t + 18] -= d1 * f1
    W[t + 19] -= d1 * f2
    W[t + 20] -= d2 * f2


@inlined
def acceleration_down(W: F1, o: int, po: int) -> Vector6:
    """Return C a of the parent row at po for the body at o."""
    return motion_down(W, o + TURN, o + ORIGIN, six(W, po + ACC))


@inlined
def add_point_inertia(W: F1, o: int, point: Vector3, K: Vector6) -> None:
    """Add J^T K J to the inertia at o, J the Jacobian of a point (3), K symmetric, in body axes."""
    # J = [-point~, E]: J^T K J = [-p~ K p~, p~ K; (p~ K)^T, K].
    x, y, z = point
    xx, xy, xz, yy, yz, zz = K
    i, h, m = o + INERTIA, o + CROSS, o + LINEAR
    # G = point~ K
    g0, g1, g2 = y * xz - z * xy, y * yz - z * yy, y * zz - z * yz
    g3, g4, g5 = z * xx - x * xz, z * xy - x * yz, z * xz - x * zz
    g6, g7, g8 = x * xy - y * xx, x * yy - y * xy, x * yz - y * xz
    W[i] += y * g2 - z * g1
    W[i + 1] += z * g0 - x * g2
    W[i + 2] += x * g1 - y * g0
    W[i + 3] += z * g3 - x * g5
    W[i + 4] += x * g4 - y * g3
    W[i + 5] += x * g7 - y * g6
    W[h] += g0
    W[h + 1] += g1
    W[h + 2] += g2
    W[h + 3] += g3
    W[h + 4] += g4
    W[h + 5] += g5
    W[h + 6] += g6
    W[h + 7] += g7
    W[h + 8] += g8
    W[m] += xx
    W[m + 1] += xy
    W[m + 2] += xz
    W[m + 3] += yy
    W[m + 4] += yz
    W[m + 5] += zz
