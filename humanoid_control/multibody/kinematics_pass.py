"""First pass of the solvers: poses, velocities and forces of all bodies; integration of configurations.

Schwienbacher 2014, algorithm 2.2; sub-system members also relative to the group frame, eq. (2.77a) and (2.78).
"""

from __future__ import annotations

import math

from humanoid_control.compiled.array_types import F1, F2, I1, I2
from humanoid_control.compiled.jit import inlined, kernel
from humanoid_control.multibody.arrays import Tables, Work
from humanoid_control.multibody.couplings import joint_coordinate
from humanoid_control.multibody.layout import (
    BIAS,
    BODY_INERTIA,
    COORD,
    CROSS,
    DRIFT,
    FIRST_MOMENT,
    FORCE,
    FREE,
    GRAD,
    GRAVITY,
    GROUP,
    GROUP_DRIFT,
    GROUP_JACOBIAN,
    GROUP_ORIGIN,
    GROUP_TURN,
    INERTIA,
    LEVEL,
    LINEAR,
    LOCAL,
    MASS,
    MOTION,
    NC,
    NF,
    NW,
    OMEGA,
    ORIGIN,
    ORIGIN_0,
    PARENT,
    POS,
    PRISMATIC,
    QPOS,
    RATE,
    REVOLUTE,
    ROT,
    SPIN,
    TURN,
    TURN_0,
    VEL,
)
from humanoid_control.multibody.spatial import cross, motion_down, six, symmetric_times, turn, turn_back


@kernel
def kinematics_pass(t: Tables, q: F1, v: F1, w: Work) -> None:
    """Compute kinematics, inertias, gravity and gyroscopic forces of all bodies at q, v."""
    ints, floats, par, qpos, columns, W, J = t.ints, t.floats, t.par, t.qpos, t.columns, w.W, w.J
    for i in range(ints.shape[0]):
        o, po = (i + 1) * NW, ints[i, PARENT] * NW
        if ints[i, MOTION] <= PRISMATIC:
            angle = joint_coordinate(ints, i, par, qpos, q, v, W, o)
            # The angle of a rotor moves no inertia, so it needs no pose.
            if ints[i, SPIN] == 1:
                continue
            _one_axis(ints[i, MOTION], floats, i * NF, angle, W, o, po)
        else:
            _free_joint(t, i, q, v, w)
        if ints[i, GROUP] >= 0:
            _extend_group(ints, i, W, o, po, J, columns)
        _load(floats, i * NF, W, o, po)


@inlined
def _one_axis(motion: int, floats: F1, k: int, angle: float, W: F1, o: int, po: int) -> None:
    # Rotation about or sliding along the joint's z axis, eq. (2.45)-(2.49).
    a, c = o + TURN, k + TURN_0
    if motion == REVOLUTE:
        cq, sq = math.cos(angle), math.sin(angle)
        for j in range(3):
            W[a + j] = cq * floats[c + j] + sq * floats[c + 3 + j]
            W[a + 3 + j] = cq * floats[c + 3 + j] - sq * floats[c + j]
            W[a + 6 + j] = floats[c + 6 + j]
            W[o + ORIGIN + j] = floats[k + ORIGIN_0 + j]
    else:
        for j in range(3):
            W[a + j] = floats[c + j]
            W[a + 3 + j] = floats[c + 3 + j]
            W[a + 6 + j] = floats[c + 6 + j]
            W[o + ORIGIN + j] = floats[k + ORIGIN_0 + j] + angle * floats[c + 6 + j]
    # Drift: centripetal, Coriolis and bias accelerations at qdd = 0.
    rate, bias = W[o + RATE], W[o + BIAS]
    # Velocity of the parent at the joint origin, in body axes.
    px, py, pz = W[po + OMEGA], W[po + OMEGA + 1], W[po + OMEGA + 2]
    rx, ry, rz = W[o + ORIGIN], W[o + ORIGIN + 1], W[o + ORIGIN + 2]
    cx, cy, cz = cross(px, py, pz, rx, ry, rz)
    wx, wy, wz = turn(W, a, px, py, pz)
    ux, uy, uz = turn(W, a, W[po + VEL] + cx, W[po + VEL + 1] + cy, W[po + VEL + 2] + cz)
    ccx, ccy, ccz = cross(px, py, pz, cx, cy, cz)
    bx, by, bz = turn(W, a, ccx, ccy, ccz)
    b = o + DRIFT
    # Coriolis: w x z rate of a rotating joint, 2 w x z rate of a sliding joint.
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
def _load(floats: F1, k: int, W: F1, o: int, po: int) -> None:
    """Set world pose, gravity, inertia, and the forces of eq. (2.56) without impressed forces."""
    g = o + GRAVITY
    W[g], W[g + 1], W[g + 2] = turn(W, o + TURN, W[po + GRAVITY], W[po + GRAVITY + 1], W[po + GRAVITY + 2])
    e, pe = o + ROT, po + ROT
    for row in range(3):  # R_world_body = R_world_parent A^T
        j = pe + 3 * row
        W[e + 3 * row], W[e + 3 * row + 1], W[e + 3 * row + 2] = turn(W, o + TURN, W[j], W[j + 1], W[j + 2])
        r = o + ORIGIN
        W[o + POS + row] = W[po + POS + row] + W[j] * W[r] + W[j + 1] * W[r + 1] + W[j + 2] * W[r + 2]
    for j in range(6):
        W[o + INERTIA + j] = floats[k + BODY_INERTIA + j]
    m = floats[k + MASS]
    x, y, z = floats[k + FIRST_MOMENT], floats[k + FIRST_MOMENT + 1], floats[k + FIRST_MOMENT + 2]
    # Cross block m c~ and linear block m E of the spatial inertia about the origin.
    h = o + CROSS
    W[h], W[h + 1], W[h + 2] = 0.0, -z, y
    W[h + 3], W[h + 4], W[h + 5] = z, 0.0, -x
    W[h + 6], W[h + 7], W[h + 8] = -y, x, 0.0
    m0 = o + LINEAR
    W[m0], W[m0 + 1], W[m0 + 2], W[m0 + 3], W[m0 + 4], W[m0 + 5] = m, 0.0, 0.0, m, 0.0, m
    wx, wy, wz = W[o + OMEGA], W[o + OMEGA + 1], W[o + OMEGA + 2]
    # Gyroscopic moment w x (I w) and centripetal force w x (w x m c).
    lx, ly, lz = symmetric_times(floats, k + BODY_INERTIA, wx, wy, wz)
    tx, ty, tz = cross(wx, wy, wz, lx, ly, lz)
    sx, sy, sz = cross(wx, wy, wz, x, y, z)
    sx, sy, sz = cross(wx, wy, wz, sx, sy, sz)
    nx, ny, nz = cross(x, y, z, W[g], W[g + 1], W[g + 2])
    f = o + FORCE
    W[f], W[f + 1], W[f + 2] = nx - tx, ny - ty, nz - tz
    W[f + 3], W[f + 4], W[f + 5] = m * W[g] - sx, m * W[g + 1] - sy, m * W[g + 2] - sz


@kernel
def add_wrenches(t: Tables, wrench: F2, w: Work) -> None:
    """Add impressed forces (bodies, 6) at body origins in body axes, angular first."""
    ints, W = t.ints, w.W
    for i in range(wrench.shape[0]):
        if ints[i, SPIN] == 0:
            f = (i + 1) * NW + FORCE
            for j in range(6):
                W[f + j] += wrench[i, j]


# -------- Members of a sub-system


@inlined
def _extend_group(ints: I2, i: int, W: F1, o: int, po: int, J: F1, columns: I1) -> None:
    n, j0 = columns[i], ints[i, GROUP_JACOBIAN]
    b, h = o + DRIFT, o + GROUP_DRIFT
    # A member on the outside parent starts the group's frame.
    if ints[i, LEVEL] == 0:
        for j in range(9):
            W[o + GROUP_TURN + j] = W[o + TURN + j]
        for j in range(3):
            W[o + GROUP_ORIGIN + j] = W[o + ORIGIN + j]
        for j in range(6):
            W[h + j] = W[b + j]
        if ints[i, MOTION] >= FREE:
            return
        for j in range(6 * n):
            J[j0 + j] = 0.0
    else:
        # Deeper members compose pose, Jacobian and drift with those of their parent.
        _below_a_member(W, o, po)
        p0 = ints[ints[i, PARENT] - 1, GROUP_JACOBIAN]
        for c in range(n):
            j = j0 + 6 * c
            x = motion_down(W, o + TURN, o + ORIGIN, six(J, p0 + 6 * c))
            J[j], J[j + 1], J[j + 2], J[j + 3], J[j + 4], J[j + 5] = x
    if ints[i, MOTION] <= PRISMATIC:
        row = 2 if ints[i, MOTION] == REVOLUTE else 5
        for c in range(ints[i, NC]):
            J[j0 + 6 * ints[i, LOCAL + c] + row] += W[o + GRAD + c]


@inlined
def _below_a_member(W: F1, o: int, po: int) -> None:
    e, pe = o + GROUP_TURN, po + GROUP_TURN
    for row in range(3):
        x, y, z = W[o + TURN + 3 * row], W[o + TURN + 3 * row + 1], W[o + TURN + 3 * row + 2]
        for c in range(3):
            W[e + 3 * row + c] = x * W[pe + c] + y * W[pe + 3 + c] + z * W[pe + 6 + c]
    x, y, z = turn_back(W, pe, W[o + ORIGIN], W[o + ORIGIN + 1], W[o + ORIGIN + 2])
    W[o + GROUP_ORIGIN] = W[po + GROUP_ORIGIN] + x
    W[o + GROUP_ORIGIN + 1] = W[po + GROUP_ORIGIN + 1] + y
    W[o + GROUP_ORIGIN + 2] = W[po + GROUP_ORIGIN + 2] + z
    b, h = o + DRIFT, o + GROUP_DRIFT
    wx, wy, wz, ux, uy, uz = motion_down(W, o + TURN, o + ORIGIN, six(W, po + GROUP_DRIFT))
    W[h], W[h + 1], W[h + 2] = wx + W[b], wy + W[b + 1], wz + W[b + 2]
    W[h + 3], W[h + 4], W[h + 5] = ux + W[b + 3], uy + W[b + 4], uz + W[b + 5]


# -------- Six free coordinates


@kernel
def _free_joint(t: Tables, i: int, q: F1, v: F1, w: Work) -> None:
    """Place body i with six free coordinates.

    FREE: q = [x y z, quaternion x y z w], v = [linear, angular] in body axes, as in pinocchio. FREE_EULER: q = [phi
    theta psi, x y z], v its rate, eq. (2.38)-(2.44), correcting s_2 to c_2 in (2.39).
    """
    ints, floats, W, J = t.ints, t.floats, w.W, w.J
    o, po, k = (i + 1) * NW, ints[i, PARENT] * NW, i * NF
    p, first, c, j0 = ints[i, QPOS], ints[i, COORD], k + TURN_0, ints[i, GROUP_JACOBIAN]
    for j in range(36):
        J[j0 + j] = 0.0
    if ints[i, MOTION] == FREE:
        x, y, z, e = q[p + 3], q[p + 4], q[p + 5], q[p + 6]
        s = 2.0 / (x * x + y * y + z * z + e * e)
        # Transpose of the usual matrix: parent components to child components.
        e0, e1, e2 = 1 - s * (y * y + z * z), s * (x * y + z * e), s * (x * z - y * e)
        e3, e4, e5 = s * (x * y - z * e), 1 - s * (x * x + z * z), s * (y * z + x * e)
        e6, e7, e8 = s * (x * z + y * e), s * (y * z - x * e), 1 - s * (x * x + y * y)
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
        dx = dy = dz = 0.0  # the columns of A_kI are constant in the environment
        jx = (r2 * c2 * s3 + r3 * s2 * c3) * r1 - r3 * s3 * r2
        jy = (r2 * c2 * c3 - r3 * s2 * s3) * r1 - r3 * c3 * r2
        jz = -r2 * s2 * r1
        J[j0], J[j0 + 1], J[j0 + 2] = s2 * s3, s2 * c3, c2
        J[j0 + 6], J[j0 + 7] = c3, -s3
        J[j0 + 14] = 1.0
        J[j0 + 21], J[j0 + 22], J[j0 + 23] = e0, e3, e6
        J[j0 + 27], J[j0 + 28], J[j0 + 29] = e1, e4, e7
        J[j0 + 33], J[j0 + 34], J[j0 + 35] = e2, e5, e8
    a = o + TURN
    for j in range(3):
        f0, f1, f2 = floats[c + j], floats[c + 3 + j], floats[c + 6 + j]
        W[a + j] = e0 * f0 + e1 * f1 + e2 * f2
        W[a + 3 + j] = e3 * f0 + e4 * f1 + e5 * f2
        W[a + 6 + j] = e6 * f0 + e7 * f1 + e8 * f2
        W[o + ORIGIN + j] = floats[k + ORIGIN_0 + j] + tx * f0 + ty * f1 + tz * f2
    px, py, pz = W[po + OMEGA], W[po + OMEGA + 1], W[po + OMEGA + 2]
    cx, cy, cz = cross(px, py, pz, W[o + ORIGIN], W[o + ORIGIN + 1], W[o + ORIGIN + 2])
    ax, ay, az = turn(W, a, px, py, pz)
    lx, ly, lz = turn(W, a, W[po + VEL] + cx, W[po + VEL + 1] + cy, W[po + VEL + 2] + cz)
    ccx, ccy, ccz = cross(px, py, pz, cx, cy, cz)
    qx, qy, qz = turn(W, a, ccx, ccy, ccz)
    hx, hy, hz = cross(ax, ay, az, wx, wy, wz)
    gx, gy, gz = cross(ax, ay, az, ux, uy, uz)
    # Drift: w_parent x w_relative, centripetal and Coriolis terms, and rates of the joint axes.
    b = o + DRIFT
    W[b], W[b + 1], W[b + 2] = hx + jx, hy + jy, hz + jz
    W[b + 3], W[b + 4], W[b + 5] = qx + 2 * gx + dx, qy + 2 * gy + dy, qz + 2 * gz + dz
    W[o + OMEGA], W[o + OMEGA + 1], W[o + OMEGA + 2] = ax + wx, ay + wy, az + wz
    W[o + VEL], W[o + VEL + 1], W[o + VEL + 2] = lx + ux, ly + uy, lz + uz


# -------- Configurations


@kernel
def integrate_configuration(t: Tables, q: F1, v: F1, h: float) -> None:
    """Move q (nq,) along constant v (nv,) for a time h [s], in place and exactly."""
    for k in range(t.qpos.shape[0]):
        if t.single[k] == 1:
            q[t.qpos[k]] += h * v[k]
    for i in range(t.ints.shape[0]):
        if t.ints[i, MOTION] == FREE:
            _move_free(q, v, h, t.ints[i, QPOS], t.ints[i, COORD])


@inlined
def _move_free(q: F1, v: F1, h: float, p: int, k: int) -> None:
    # q <- q exp(h v), as pinocchio integrates a free flyer.
    wx, wy, wz = h * v[k + 3], h * v[k + 4], h * v[k + 5]
    ux, uy, uz = h * v[k], h * v[k + 1], h * v[k + 2]
    a2 = wx * wx + wy * wy + wz * wz
    a = math.sqrt(a2)
    # Series near zero: the closed forms cancel.
    if a < 1e-4:
        half, b, c = 0.5 - a2 / 48, 0.5 - a2 / 24, 1 / 6 - a2 / 120
        cosine = 1 - a2 / 8
    else:
        half, b, c = math.sin(a / 2) / a, (1 - math.cos(a)) / a2, (a - math.sin(a)) / (a2 * a)
        cosine = math.cos(a / 2)
    # body-frame displacement: u + b w x u + c w x (w x u)
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
def configuration_rate(t: Tables, q: F1, v: F1, rate: F1) -> None:
    """Fill dq/dt (nq,) at v (nv,), for integrators without quaternions."""
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
