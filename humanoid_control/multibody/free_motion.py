"""Six free coordinates: a quaternion with velocities in the body's axes, or Euler angles Z-X-Z."""

from __future__ import annotations

import math

from humanoid_control.jit import kernel
from humanoid_control.multibody.layout import A0, COORD, JHAT, OMEGA, QPOS, R0, VEL, A, B, R
from humanoid_control.multibody.spatial import cross, turn


@kernel
def free_joint(quaternion, ints, i, floats, k, q, v, W, o, po, J):
    """Body i moves freely relative to its parent.

    With a quaternion: q = [x y z, quaternion x y z w], v = [linear, angular] in the body's axes, as in pinocchio.
    With Euler angles: q = [phi theta psi, x y z] and v its rate, eq. (2.38)-(2.44) with E4 corrected.
    """
    p, first, c = ints[i, QPOS], ints[i, COORD], k + A0
    j0 = ints[i, JHAT]
    for j in range(36):
        J[j0 + j] = 0.0
    if quaternion:
        x, y, z, w = q[p + 3], q[p + 4], q[p + 5], q[p + 6]
        s = 2.0 / (x * x + y * y + z * z + w * w)
        # The transpose of the usual matrix: parent components to child components.
        e0, e1, e2 = 1 - s * (y * y + z * z), s * (x * y + z * w), s * (x * z - y * w)
        e3, e4, e5 = s * (x * y - z * w), 1 - s * (x * x + z * z), s * (y * z + x * w)
        e6, e7, e8 = s * (x * z + y * w), s * (y * z - x * w), 1 - s * (x * x + y * y)
        tx, ty, tz = q[p], q[p + 1], q[p + 2]
        ux, uy, uz = v[first], v[first + 1], v[first + 2]
        wx, wy, wz = v[first + 3], v[first + 4], v[first + 5]
        dx, dy, dz = cross(wx, wy, wz, ux, uy, uz)
        jx = jy = jz = 0.0
        for j in range(3):
            J[j0 + 6 * j + 3 + j] = 1.0
            J[j0 + 6 * (3 + j) + j] = 1.0
    else:
        c1, s1, c2, s2 = math.cos(q[p]), math.sin(q[p]), math.cos(q[p + 1]), math.sin(q[p + 1])
        c3, s3 = math.cos(q[p + 2]), math.sin(q[p + 2])
        e0, e1, e2 = c1 * c3 - s1 * c2 * s3, s1 * c3 + c1 * c2 * s3, s2 * s3
        e3, e4, e5 = -c1 * s3 - s1 * c2 * c3, -s1 * s3 + c1 * c2 * c3, s2 * c3
        e6, e7, e8 = s1 * s2, -c1 * s2, c2
        tx, ty, tz = q[p + 3], q[p + 4], q[p + 5]
        r1, r2, r3 = v[first], v[first + 1], v[first + 2]
        wx, wy, wz = s2 * s3 * r1 + c3 * r2, s2 * c3 * r1 - s3 * r2, c2 * r1 + r3
        x, y, z = v[first + 3], v[first + 4], v[first + 5]
        ux, uy, uz = e0 * x + e1 * y + e2 * z, e3 * x + e4 * y + e5 * z, e6 * x + e7 * y + e8 * z
        dx = dy = dz = 0.0  # the columns of A_kI stand still in the environment
        jx = (r2 * c2 * s3 + r3 * s2 * c3) * r1 - r3 * s3 * r2
        jy = (r2 * c2 * c3 - r3 * s2 * s3) * r1 - r3 * c3 * r2
        jz = -r2 * s2 * r1
        J[j0], J[j0 + 1], J[j0 + 2] = s2 * s3, s2 * c3, c2
        J[j0 + 6], J[j0 + 7] = c3, -s3
        J[j0 + 14] = 1.0
        J[j0 + 21], J[j0 + 22], J[j0 + 23] = e0, e3, e6
        J[j0 + 27], J[j0 + 28], J[j0 + 29] = e1, e4, e7
        J[j0 + 33], J[j0 + 34], J[j0 + 35] = e2, e5, e8
    a = o + A
    for j in range(3):
        f0, f1, f2 = floats[c + j], floats[c + 3 + j], floats[c + 6 + j]
        W[a + j] = e0 * f0 + e1 * f1 + e2 * f2
        W[a + 3 + j] = e3 * f0 + e4 * f1 + e5 * f2
        W[a + 6 + j] = e6 * f0 + e7 * f1 + e8 * f2
        W[o + R + j] = floats[k + R0 + j] + tx * f0 + ty * f1 + tz * f2
    px, py, pz = W[po + OMEGA], W[po + OMEGA + 1], W[po + OMEGA + 2]
    cx, cy, cz = cross(px, py, pz, W[o + R], W[o + R + 1], W[o + R + 2])
    ax, ay, az = turn(W, a, px, py, pz)
    lx, ly, lz = turn(W, a, W[po + VEL] + cx, W[po + VEL + 1] + cy, W[po + VEL + 2] + cz)
    ccx, ccy, ccz = cross(px, py, pz, cx, cy, cz)
    qx, qy, qz = turn(W, a, ccx, ccy, ccz)
    hx, hy, hz = cross(ax, ay, az, wx, wy, wz)
    gx, gy, gz = cross(ax, ay, az, ux, uy, uz)
    b = o + B
    W[b], W[b + 1], W[b + 2] = hx + jx, hy + jy, hz + jz
    W[b + 3], W[b + 4], W[b + 5] = qx + 2 * gx + dx, qy + 2 * gy + dy, qz + 2 * gz + dz
    W[o + OMEGA], W[o + OMEGA + 1], W[o + OMEGA + 2] = ax + wx, ay + wy, az + wz
    W[o + VEL], W[o + VEL + 1], W[o + VEL + 2] = lx + ux, ly + uy, lz + uz
