"""Configurations: moved along a velocity, and their rates of change; quaternions stay on the unit sphere."""

from __future__ import annotations

import math

from humanoid_control.jit import inlined, kernel
from humanoid_control.multibody.layout import COORD, FREE, MOTION, QPOS


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
