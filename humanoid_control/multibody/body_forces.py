"""The force that a moving body needs: Newton and Euler backwards, once the accelerations are known."""

from __future__ import annotations

from humanoid_control.jit import inlined
from humanoid_control.multibody.layout import ACC, COORD, GRAD, IO, IP, MASS, MC, NC, NF, NW, OMEGA
from humanoid_control.multibody.spatial import cross, symmetric_times
from humanoid_control.multibody.spinning import rotor_terms


@inlined
def force_needed(floats, k, W, o):
    """M a + h of the body at o, eq. (2.22): moment and force at its origin in its axes, gravity not counted."""
    ax, ay, az, lx, ly, lz = W[o + ACC], W[o + ACC + 1], W[o + ACC + 2], W[o + ACC + 3], W[o + ACC + 4], W[o + ACC + 5]
    wx, wy, wz = W[o + OMEGA], W[o + OMEGA + 1], W[o + OMEGA + 2]
    m, x, y, z = floats[k + MASS], floats[k + MC], floats[k + MC + 1], floats[k + MC + 2]
    i = k + IO
    hx, hy, hz = symmetric_times(floats, i, wx, wy, wz)
    hx, hy, hz = cross(wx, wy, wz, hx, hy, hz)
    cx, cy, cz = cross(x, y, z, lx, ly, lz)
    nx, ny, nz = symmetric_times(floats, i, ax, ay, az)
    nx, ny, nz = nx + hx + cx, ny + hy + cy, nz + hz + cz
    sx, sy, sz = cross(wx, wy, wz, x, y, z)
    sx, sy, sz = cross(wx, wy, wz, sx, sy, sz)
    cx, cy, cz = cross(ax, ay, az, x, y, z)
    return nx, ny, nz, m * lx + cx + sx, m * ly + cy + sy, m * lz + cz + sz


@inlined
def moment_of_rotor(ints, i, floats, W, po, qdd):
    """The moment that a spinning leaf needs, in its parent's axes; it has no mass."""
    ex, ey, ez, jz, nx, ny, nz = rotor_terms(ints, i, floats, W, po)
    spun, j, a = 0.0, i * NF + IP, po + ACC
    for c in range(ints[i, NC]):
        spun += W[(i + 1) * NW + GRAD + c] * qdd[ints[i, COORD + c]]
    spun *= jz
    hx, hy, hz = symmetric_times(floats, j, W[a], W[a + 1], W[a + 2])
    return nx + spun * ex + hx, ny + spun * ey + hy, nz + spun * ez + hz
