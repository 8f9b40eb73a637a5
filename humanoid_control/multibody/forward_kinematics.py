"""Members of a sub-system relative to the sub-system's own frame: eq. (2.77a), (2.78).

Also here:

* Six free coordinates: a quaternion with velocities in the body's axes, or Euler angles Z-X-Z.
* First recursion: where the bodies are, how they move, and which force acts on each.
* Configurations: moved along a velocity, and their rates of change; quaternions stay on the unit sphere.
"""

from __future__ import annotations

import math

from humanoid_control.jit import inlined, kernel
from humanoid_control.multibody.couplings import set_angle
from humanoid_control.multibody.layout import (
    A0,
    BIAS,
    COORD,
    CROSS,
    FREE,
    GRAD,
    GROUP,
    HAT_A,
    HAT_B,
    HAT_R,
    INERTIA,
    IO,
    JHAT,
    LEVEL,
    LINEAR,
    LOCAL,
    MASS,
    MC,
    MOTION,
    NC,
    NF,
    NW,
    OMEGA,
    PARENT,
    POS,
    PRISMATIC,
    QPOS,
    R0,
    RATE,
    REVOLUTE,
    ROT,
    SPIN,
    VEL,
    A,
    B,
    F,
    G,
    R,
)
from humanoid_control.multibody.spatial import cross, motion_down, symmetric_times, turn, turn_back

# -------- Members of a sub-system relative to the sub-system's own frame: eq. (2.77a), (2.78)


@inlined
def extend_group(ints, i, W, o, po, J, columns):
    """Turn, origin, Jacobian and velocity-dependent acceleration of member i in its group.

    Args:
        columns: (bodies,) number of coordinates of each body's group.
    """
    n, j0 = columns[i], ints[i, JHAT]
    b, h = o + B, o + HAT_B
    if ints[i, LEVEL] == 0:
        for j in range(9):
            W[o + HAT_A + j] = W[o + A + j]
        for j in range(3):
            W[o + HAT_R + j] = W[o + R + j]
        for j in range(6):
            W[h + j] = W[b + j]
        if ints[i, MOTION] >= FREE:
            return
        for j in range(6 * n):
            J[j0 + j] = 0.0
    else:
        _below_a_member(W, o, po)
        p0 = ints[ints[i, PARENT] - 1, JHAT]
        for c in range(n):
            s = p0 + 6 * c
            t = j0 + 6 * c
            J[t], J[t + 1], J[t + 2], J[t + 3], J[t + 4], J[t + 5] = motion_down(
                W, o + A, o + R, J[s], J[s + 1], J[s + 2], J[s + 3], J[s + 4], J[s + 5]
            )
    if ints[i, MOTION] <= PRISMATIC:
        row = 2 if ints[i, MOTION] == REVOLUTE else 5
        for c in range(ints[i, NC]):
            J[j0 + 6 * ints[i, LOCAL + c] + row] += W[o + GRAD + c]


@inlined
def _below_a_member(W, o, po):
    e, pe = o + HAT_A, po + HAT_A
    for row in range(3):
        x, y, z = W[o + A + 3 * row], W[o + A + 3 * row + 1], W[o + A + 3 * row + 2]
        for c in range(3):
            W[e + 3 * row + c] = x * W[pe + c] + y * W[pe + 3 + c] + z * W[pe + 6 + c]
    x, y, z = turn_back(W, pe, W[o + R], W[o + R + 1], W[o + R + 2])
    W[o + HAT_R] = W[po + HAT_R] + x
    W[o + HAT_R + 1] = W[po + HAT_R + 1] + y
    W[o + HAT_R + 2] = W[po + HAT_R + 2] + z
    b, h, ph = o + B, o + HAT_B, po + HAT_B
    wx, wy, wz, ux, uy, uz = motion_down(W, o + A, o + R, W[ph], W[ph + 1], W[ph + 2], W[ph + 3], W[ph + 4], W[ph + 5])
    W[h], W[h + 1], W[h + 2] = wx + W[b], wy + W[b + 1], wz + W[b + 2]
    W[h + 3], W[h + 4], W[h + 5] = ux + W[b + 3], uy + W[b + 4], uz + W[b + 5]


# -------- Six free coordinates: a quaternion with velocities in the body's axes, or Euler angles Z-X-Z


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


# -------- First recursion: where the bodies are, how they move, and which force acts on each


@kernel
def forward1(t, q, v, w):
    """Kinematics of all bodies, their inertias and the forces of gravity and rotation on them (algorithm 2.2).

    Args:
        t: `Tables` of the model. q, v: configuration and velocity. w: `Work`.
    """
    ints, floats, par, qpos, columns, W, J = t.ints, t.floats, t.par, t.qpos, t.columns, w.W, w.J
    for i in range(ints.shape[0]):
        o, k = (i + 1) * NW, i * NF
        po = ints[i, PARENT] * NW
        if ints[i, MOTION] <= PRISMATIC:
            angle = set_angle(ints, i, par, qpos, q, v, W, o)
            if ints[i, SPIN] == 1:
                continue
            _one_axis(ints[i, MOTION], floats, k, angle, W, o, po)
        else:
            free_joint(ints[i, MOTION] == FREE, ints, i, floats, k, q, v, W, o, po, J)
        if ints[i, GROUP] >= 0:
            extend_group(ints, i, W, o, po, J, columns)
        _load(floats, k, W, o, po)


@inlined
def _one_axis(motion, floats, k, angle, W, o, po):
    """A body that turns about, or slides along, the z axis of its joint: eq. (2.45)-(2.49)."""
    a, c = o + A, k + A0
    if motion == REVOLUTE:
        cq, sq = math.cos(angle), math.sin(angle)
        for j in range(3):
            W[a + j] = cq * floats[c + j] + sq * floats[c + 3 + j]
            W[a + 3 + j] = cq * floats[c + 3 + j] - sq * floats[c + j]
            W[a + 6 + j] = floats[c + 6 + j]
            W[o + R + j] = floats[k + R0 + j]
    else:
        for j in range(3):
            W[a + j] = floats[c + j]
            W[a + 3 + j] = floats[c + 3 + j]
            W[a + 6 + j] = floats[c + 6 + j]
            W[o + R + j] = floats[k + R0 + j] + angle * floats[c + 6 + j]
    rate, bias = W[o + RATE], W[o + BIAS]
    px, py, pz = W[po + OMEGA], W[po + OMEGA + 1], W[po + OMEGA + 2]
    rx, ry, rz = W[o + R], W[o + R + 1], W[o + R + 2]
    cx, cy, cz = cross(px, py, pz, rx, ry, rz)
    wx, wy, wz = turn(W, a, px, py, pz)
    ux, uy, uz = turn(W, a, W[po + VEL] + cx, W[po + VEL + 1] + cy, W[po + VEL + 2] + cz)
    ccx, ccy, ccz = cross(px, py, pz, cx, cy, cz)
    bx, by, bz = turn(W, a, ccx, ccy, ccz)
    b = o + B
    if motion == REVOLUTE:
        W[b], W[b + 1], W[b + 2] = wy * rate, -wx * rate, bias
        W[b + 3], W[b + 4], W[b + 5] = bx, by, bz
        wz += rate
    else:
        W[b], W[b + 1], W[b + 2] = 0.0, 0.0, 0.0
        W[b + 3], W[b + 4], W[b + 5] = bx + 2 * wy * rate, by - 2 * wx * rate, bz + bias
        uz += rate
    W[o + OMEGA], W[o + OMEGA + 1], W[o + OMEGA + 2] = wx, wy, wz
    W[o + VEL], W[o + VEL + 1], W[o + VEL + 2] = ux, uy, uz


@inlined
def _load(floats, k, W, o, po):
    """Pose in the environment, gravity, the body's own inertia, and eq. (2.56) without impressed forces."""
    g = o + G
    W[g], W[g + 1], W[g + 2] = turn(W, o + A, W[po + G], W[po + G + 1], W[po + G + 2])
    e, pe = o + ROT, po + ROT
    for row in range(3):  # R_world_body = R_world_parent A^T
        j = pe + 3 * row
        W[e + 3 * row], W[e + 3 * row + 1], W[e + 3 * row + 2] = turn(W, o + A, W[j], W[j + 1], W[j + 2])
        W[o + POS + row] = W[po + POS + row] + W[j] * W[o + R] + W[j + 1] * W[o + R + 1] + W[j + 2] * W[o + R + 2]
    for j in range(6):
        W[o + INERTIA + j] = floats[k + IO + j]
    m = floats[k + MASS]
    x, y, z = floats[k + MC], floats[k + MC + 1], floats[k + MC + 2]
    h = o + CROSS
    W[h], W[h + 1], W[h + 2] = 0.0, -z, y
    W[h + 3], W[h + 4], W[h + 5] = z, 0.0, -x
    W[h + 6], W[h + 7], W[h + 8] = -y, x, 0.0
    m0 = o + LINEAR
    W[m0], W[m0 + 1], W[m0 + 2], W[m0 + 3], W[m0 + 4], W[m0 + 5] = m, 0.0, 0.0, m, 0.0, m
    wx, wy, wz = W[o + OMEGA], W[o + OMEGA + 1], W[o + OMEGA + 2]
    lx, ly, lz = symmetric_times(floats, k + IO, wx, wy, wz)
    tx, ty, tz = cross(wx, wy, wz, lx, ly, lz)
    sx, sy, sz = cross(wx, wy, wz, x, y, z)
    sx, sy, sz = cross(wx, wy, wz, sx, sy, sz)
    nx, ny, nz = cross(x, y, z, W[g], W[g + 1], W[g + 2])
    f = o + F
    W[f], W[f + 1], W[f + 2] = nx - tx, ny - ty, nz - tz
    W[f + 3], W[f + 4], W[f + 5] = m * W[g] - sx, m * W[g + 1] - sy, m * W[g + 2] - sz


@kernel
def add_wrenches(t, wrench, w):
    """Add impressed forces (bodies, 6), each in its body's frame at its origin, angular first."""
    ints, W = t.ints, w.W
    for i in range(wrench.shape[0]):
        if ints[i, SPIN] == 0:
            f = (i + 1) * NW + F
            for j in range(6):
                W[f + j] += wrench[i, j]


# -------- Configurations: moved along a velocity, and their rates of change; quaternions stay on the unit sphere


@kernel
def integrate(t, q, v, h):
    """Move q (nq,) along v (nv,) for the time h, in place: exact for constant v.

    Args:
        t: `Tables` of the model.
    """
    for k in range(t.qpos.shape[0]):
        if t.single[k] == 1:
            q[t.qpos[k]] += h * v[k]
    for i in range(t.ints.shape[0]):
        if t.ints[i, MOTION] == FREE:
            _move_free(q, v, h, t.ints[i, QPOS], t.ints[i, COORD])


@inlined
def _move_free(q, v, h, p, k):
    """q = q exp(h v): pinocchio's integration of a free flyer."""
    wx, wy, wz = h * v[k + 3], h * v[k + 4], h * v[k + 5]
    ux, uy, uz = h * v[k], h * v[k + 1], h * v[k + 2]
    a2 = wx * wx + wy * wy + wz * wz
    a = math.sqrt(a2)
    if a < 1e-4:
        half, b, c = 0.5 - a2 / 48, 0.5 - a2 / 24, 1 / 6 - a2 / 120
        cosine = 1 - a2 / 8
    else:
        half, b, c = math.sin(a / 2) / a, (1 - math.cos(a)) / a2, (a - math.sin(a)) / (a2 * a)
        cosine = math.cos(a / 2)
    # displacement in the body's axes: u + b w x u + c w x (w x u)
    cx, cy, cz = wy * uz - wz * uy, wz * ux - wx * uz, wx * uy - wy * ux
    dx, dy, dz = wy * cz - wz * cy, wz * cx - wx * cz, wx * cy - wy * cx
    ux, uy, uz = ux + b * cx + c * dx, uy + b * cy + c * dy, uz + b * cz + c * dz
    x, y, z, w = q[p + 3], q[p + 4], q[p + 5], q[p + 6]
    tx, ty, tz = 2 * (y * uz - z * uy), 2 * (z * ux - x * uz), 2 * (x * uy - y * ux)
    q[p] += ux + w * tx + y * tz - z * ty
    q[p + 1] += uy + w * ty + z * tx - x * tz
    q[p + 2] += uz + w * tz + x * ty - y * tx
    ex, ey, ez = half * wx, half * wy, half * wz
    nx = w * ex + x * cosine + y * ez - z * ey
    ny = w * ey + y * cosine + z * ex - x * ez
    nz = w * ez + z * cosine + x * ey - y * ex
    nw = w * cosine - x * ex - y * ey - z * ez
    s = 1 / math.sqrt(nx * nx + ny * ny + nz * nz + nw * nw)
    q[p + 3], q[p + 4], q[p + 5], q[p + 6] = s * nx, s * ny, s * nz, s * nw


@kernel
def configuration_rate(t, q, v, rate):
    """Time derivative of q (nq,) at velocity v (nv,), for integrators that know nothing of quaternions."""
    for k in range(t.qpos.shape[0]):
        if t.single[k] == 1:
            rate[t.qpos[k]] = v[k]
    for i in range(t.ints.shape[0]):
        if t.ints[i, MOTION] == FREE:
            p, k = t.ints[i, QPOS], t.ints[i, COORD]
            x, y, z, w = q[p + 3], q[p + 4], q[p + 5], q[p + 6]
            ux, uy, uz, wx, wy, wz = v[k], v[k + 1], v[k + 2], v[k + 3], v[k + 4], v[k + 5]
            tx, ty, tz = 2 * (y * uz - z * uy), 2 * (z * ux - x * uz), 2 * (x * uy - y * ux)
            rate[p] = ux + w * tx + y * tz - z * ty
            rate[p + 1] = uy + w * ty + z * tx - x * tz
            rate[p + 2] = uz + w * tz + x * ty - y * tx
            rate[p + 3] = 0.5 * (w * wx + y * wz - z * wy)
            rate[p + 4] = 0.5 * (w * wy + z * wx - x * wz)
            rate[p + 5] = 0.5 * (w * wz + x * wy - y * wx)
            rate[p + 6] = -0.5 * (x * wx + y * wy + z * wz)
