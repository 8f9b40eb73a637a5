"""Forces on the bodies of one step, contact among them with its force at the end of the step; compiled."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from humanoid_control.jit import inlined
from humanoid_control.multibody.backward import backward
from humanoid_control.multibody.forward2 import forward2
from humanoid_control.multibody.layout import ACC, NW, ROT
from humanoid_control.multibody.motion import add_wrenches, forward1
from humanoid_control.multibody.spatial import add_point_inertia, cross, symmetric_up, turn, turn_back
from humanoid_control.simulation.contact.forces import add_wrench, contact_step
from humanoid_control.simulation.contact.ground import ground_height
from humanoid_control.simulation.contact.robot_contact import place_carriers


class PushTable(NamedTuple):
    """Pushes: body, until when [s], point in the body's frame (3,), force and torque in the world (6,)."""

    body: np.ndarray
    until: np.ndarray
    point: np.ndarray
    wrench: np.ndarray


def push_table(rows: Sequence[tuple[int, float, np.ndarray, np.ndarray]]) -> PushTable:
    """A table of rows (body, until, point, wrench)."""
    n = len(rows)
    return PushTable(
        np.array([r[0] for r in rows], dtype=np.int64),
        np.array([r[1] for r in rows], dtype=float),
        np.array([r[2] for r in rows], dtype=float).reshape(n, 3),
        np.array([r[3] for r in rows], dtype=float).reshape(n, 6),
    )


@inlined
def impressed_forces(t, w, x, c, p, now, h):
    """Kinematics, then contact and pushes as impressed forces."""
    forward1(t, x.q, x.v, w)
    if c.body.shape[0] > 0:
        place_carriers(w.W, c)
        contact_step(c, x.layers, h, x.forces)
    else:
        c.wrench[:] = 0.0
    for k in range(p.body.shape[0]):
        if now < p.until[k] - 1e-9:
            _push(w.W, p, k, c.wrench)


@inlined
def solve_step(t, w, x, c, tau, armature, h):
    """Accelerations under these forces; contact counts with its force at the end of the step."""
    add_wrenches(t, c.wrench, w)
    for k in range(c.body.shape[0]):
        if c.gains[k, 0] + c.gains[k, 3] + c.gains[k, 5] > 0.0:
            _stiffen(w.W, c, k, h)
    backward(t, tau, armature, w)
    forward2(t, w, x.acceleration)


@inlined
def _stiffen(W, c, k, h):
    """Add h J^T K J of a contact point to the inertia of its body."""
    o = (c.body[k] + 1) * NW
    e = o + ROT
    x, y, z = turn_back(W, e, c.arms[k, 0], c.arms[k, 1], c.arms[k, 2])
    xx, xy, xz, yy, yz, zz = symmetric_up(
        W, e, c.gains[k, 0], c.gains[k, 1], c.gains[k, 2], c.gains[k, 3], c.gains[k, 4], c.gains[k, 5]
    )
    add_point_inertia(W, o, x, y, z, h * xx, h * xy, h * xz, h * yy, h * yz, h * zz)


@inlined
def _fall(W, c, k, h):
    """By how much the force at a point falls during the step, in the world: h K a."""
    o = (c.body[k] + 1) * NW
    a, e = o + ACC, o + ROT
    x, y, z = turn(W, e, W[a], W[a + 1], W[a + 2])
    u, v, w = turn(W, e, W[a + 3], W[a + 4], W[a + 5])
    cx, cy, cz = cross(x, y, z, c.arms[k, 0], c.arms[k, 1], c.arms[k, 2])
    u, v, w = h * (u + cx), h * (v + cy), h * (w + cz)
    g = c.gains
    return (
        g[k, 0] * u + g[k, 1] * v + g[k, 2] * w,
        g[k, 1] * u + g[k, 3] * v + g[k, 4] * w,
        g[k, 2] * u + g[k, 4] * v + g[k, 5] * w,
    )


@inlined
def correct_contact(W, x, c, h):
    """Points whose force would leave the friction cone at the end of the step; True if there are any.

    Those that the ground would have to pull are let go; those that would be held too much slide.
    """
    corrected = False
    f, mu = x.forces, c.par[4]
    for k in range(c.body.shape[0]):
        if c.gains[k, 0] + c.gains[k, 3] + c.gains[k, 5] > 0.0:
            b = c.body[k]
            dx, dy, dz = _fall(W, c, k, h)
            _, nx, ny, nz = ground_height(c.ground, c.r[b, 0] + c.arms[k, 0], c.r[b, 1] + c.arms[k, 1])
            ex, ey, ez = f[k, 0] - dx, f[k, 1] - dy, f[k, 2] - dz
            normal = nx * ex + ny * ey + nz * ez
            tx, ty, tz = ex - normal * nx, ey - normal * ny, ez - normal * nz
            held = math.sqrt(tx * tx + ty * ty + tz * tz)
            if normal < 0.0:
                gx, gy, gz = 0.0, 0.0, 0.0
                c.gains[k, :] = 0.0
            elif held > 1.0001 * mu * normal:
                now, s = nx * f[k, 0] + ny * f[k, 1] + nz * f[k, 2], mu * normal / held
                gx, gy, gz = now * nx + s * tx, now * ny + s * ty, now * nz + s * tz
                d = c.par[1] + h * c.par[0]
                c.gains[k, 0], c.gains[k, 1], c.gains[k, 2] = d * nx * nx, d * nx * ny, d * nx * nz
                c.gains[k, 3], c.gains[k, 4], c.gains[k, 5] = d * ny * ny, d * ny * nz, d * nz * nz
            else:
                continue
            corrected = True
            ax, ay, az = c.arms[k, 0], c.arms[k, 1], c.arms[k, 2]
            add_wrench(c.R, b, ax, ay, az, gx - f[k, 0], gy - f[k, 1], gz - f[k, 2], c.wrench)
            f[k, 0], f[k, 1], f[k, 2] = gx, gy, gz
    return corrected


@inlined
def forces_at_the_end(W, x, c, h):
    """The forces that acted: those at the end of the step."""
    for k in range(c.body.shape[0]):
        if c.gains[k, 0] + c.gains[k, 3] + c.gains[k, 5] > 0.0:
            dx, dy, dz = _fall(W, c, k, h)
            x.forces[k, 0] -= dx
            x.forces[k, 1] -= dy
            x.forces[k, 2] -= dz


@inlined
def _push(W, p, k, wrench):
    i = p.body[k]
    e = (i + 1) * NW + ROT
    fx, fy, fz = turn_back(W, e, p.wrench[k, 0], p.wrench[k, 1], p.wrench[k, 2])
    mx, my, mz = turn_back(W, e, p.wrench[k, 3], p.wrench[k, 4], p.wrench[k, 5])
    x, y, z = p.point[k, 0], p.point[k, 1], p.point[k, 2]
    wrench[i, 0] += mx + y * fz - z * fy
    wrench[i, 1] += my + z * fx - x * fz
    wrench[i, 2] += mz + x * fy - y * fx
    wrench[i, 3] += fx
    wrench[i, 4] += fy
    wrench[i, 5] += fz
