"""Mass, energies and momentum of the whole system, and how the momentum changes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from humanoid_control.jit import kernel
from humanoid_control.multibody.body_forces import force_needed, moment_of_rotor
from humanoid_control.multibody.dynamics import ForwardDynamics
from humanoid_control.multibody.layout import IO, IP, MASS, MC, NF, NW, OMEGA, PARENT, POS, RATE, ROT, SPIN, VEL, G
from humanoid_control.multibody.motion import forward1
from humanoid_control.multibody.spatial import cross, symmetric_times, turn

SUMS = 12  # mass, kinetic, potential energy, first moment (3,), momentum (3,), angular momentum about the origin (3,)


class Totals(NamedTuple):
    """Of all bodies, in the environment's axes.

    Attributes:
        mass [kg]. kinetic, potential [J]: the latter is zero at the environment's origin. com (3,) [m].
        linear (3,) [kg m/s]: momentum. angular (3,) [kg m^2/s]: momentum about the centre of gravity.
    """

    mass: float
    kinetic: float
    potential: float
    com: np.ndarray
    linear: np.ndarray
    angular: np.ndarray


def totals(dynamics: ForwardDynamics, q: np.ndarray, v: np.ndarray) -> Totals:
    """Mass, energies and momentum at a configuration (nq,) and velocity (nv,); inertia added as armature counts not."""
    t, w, out = dynamics.arrays.tables, dynamics.arrays.work, np.empty(SUMS)
    forward1(t, q, v, w)
    sums(t, w, out)
    com = out[3:6] / out[0]
    return Totals(out[0], out[1], out[2], com, out[6:9], out[9:12] - np.cross(com, out[6:9]))


def momentum_rate(dynamics: ForwardDynamics, qdd: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Change of momentum (3,) [N] and of angular momentum about the centre of gravity (3,) [N m].

    Args:
        dynamics: after the call by the recursive solver that gave the accelerations qdd (nv,).
    """
    t, w, out, rate = dynamics.arrays.tables, dynamics.arrays.work, np.empty(SUMS), np.empty(6)
    sums(t, w, out)
    rates(t, w, qdd, rate)
    com = out[3:6] / out[0]
    return rate[3:], rate[:3] - np.cross(com, rate[3:])


@kernel
def sums(t, w, out):
    """Fill out (SUMS,) after `forward1`."""
    ints, floats, W = t.ints, t.floats, w.W
    out[:] = 0.0
    for i in range(ints.shape[0]):
        o, po, k = (i + 1) * NW, ints[i, PARENT] * NW, i * NF
        if ints[i, SPIN] == 1:
            z, j, p = k + 6, k + IP, po + OMEGA  # the third row of A0 is the axis
            rate = W[o + RATE]
            wx, wy, wz = W[p] + floats[z] * rate, W[p + 1] + floats[z + 1] * rate, W[p + 2] + floats[z + 2] * rate
            m, x, y, z0, ux, uy, uz, e = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, po
        else:
            j, e = k + IO, o
            wx, wy, wz = W[o + OMEGA], W[o + OMEGA + 1], W[o + OMEGA + 2]
            ux, uy, uz = W[o + VEL], W[o + VEL + 1], W[o + VEL + 2]
            m, x, y, z0 = floats[k + MASS], floats[k + MC], floats[k + MC + 1], floats[k + MC + 2]
        sx, sy, sz = cross(wx, wy, wz, x, y, z0)
        px, py, pz = m * ux + sx, m * uy + sy, m * uz + sz
        cx, cy, cz = cross(x, y, z0, ux, uy, uz)
        lx, ly, lz = symmetric_times(floats, j, wx, wy, wz)
        lx, ly, lz = lx + cx, ly + cy, lz + cz
        out[0] += m
        out[1] += 0.5 * (wx * lx + wy * ly + wz * lz + ux * px + uy * py + uz * pz)
        ax, ay, az = W[e + POS], W[e + POS + 1], W[e + POS + 2]
        mx, my, mz = turn(W, e + ROT, x, y, z0)
        mx, my, mz = mx + m * ax, my + m * ay, mz + m * az
        out[2] -= W[G] * mx + W[G + 1] * my + W[G + 2] * mz
        px, py, pz = turn(W, e + ROT, px, py, pz)
        lx, ly, lz = turn(W, e + ROT, lx, ly, lz)
        cx, cy, cz = cross(ax, ay, az, px, py, pz)
        out[3] += mx
        out[4] += my
        out[5] += mz
        out[6] += px
        out[7] += py
        out[8] += pz
        out[9] += lx + cx
        out[10] += ly + cy
        out[11] += lz + cz


@kernel
def rates(t, w, qdd, out):
    """Fill out (6,) with the change of angular momentum about the origin, and of momentum."""
    ints, floats, W = t.ints, t.floats, w.W
    out[:] = 0.0
    for i in range(ints.shape[0]):
        if ints[i, SPIN] == 1:
            e = ints[i, PARENT] * NW
            nx, ny, nz = moment_of_rotor(ints, i, floats, W, e, qdd)
            fx = fy = fz = 0.0
        else:
            e = (i + 1) * NW
            nx, ny, nz, fx, fy, fz = force_needed(floats, i * NF, W, e)
        nx, ny, nz = turn(W, e + ROT, nx, ny, nz)
        fx, fy, fz = turn(W, e + ROT, fx, fy, fz)
        cx, cy, cz = cross(W[e + POS], W[e + POS + 1], W[e + POS + 2], fx, fy, fz)
        out[0] += nx + cx
        out[1] += ny + cy
        out[2] += nz + cz
        out[3] += fx
        out[4] += fy
        out[5] += fz
