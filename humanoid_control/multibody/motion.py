"""First recursion: where the bodies are, how they move, and which force acts on each."""

from __future__ import annotations

import math

from humanoid_control.jit import inlined, kernel
from humanoid_control.multibody.angle import set_angle
from humanoid_control.multibody.free_motion import free_joint
from humanoid_control.multibody.group_motion import extend_group
from humanoid_control.multibody.layout import (
    A0,
    BIAS,
    CROSS,
    FREE,
    GROUP,
    INERTIA,
    IO,
    LINEAR,
    MASS,
    MC,
    MOTION,
    NF,
    NW,
    OMEGA,
    PARENT,
    POS,
    PRISMATIC,
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
from humanoid_control.multibody.spatial import cross, symmetric_times, turn


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
