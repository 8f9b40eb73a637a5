"""Energy, momentum, momentum rate and joint wrenches of a moving model."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from humanoid_control.compiled.array_types import F1, F2, I2
from humanoid_control.compiled.jit import inlined, kernel
from humanoid_control.multibody.arrays import Tables, Work
from humanoid_control.multibody.forward_dynamics import ForwardDynamics
from humanoid_control.multibody.inertia_pass import rotor_terms
from humanoid_control.multibody.kinematics_pass import kinematics_pass
from humanoid_control.multibody.layout import (
    ACC,
    BODY_INERTIA,
    COORD,
    FIRST_MOMENT,
    GRAD,
    GRAVITY,
    MASS,
    NC,
    NF,
    NW,
    OMEGA,
    ORIGIN,
    PARENT,
    PARENT_INERTIA,
    POS,
    RATE,
    ROT,
    SPIN,
    TURN,
    TURN_0,
    VEL,
)
from humanoid_control.multibody.spatial import Vector3, Vector6, cross, force_up, six, symmetric_times, turn

# -------- Force that a moving body needs


@inlined
def force_needed(floats: F1, k: int, W: F1, o: int) -> Vector6:
    """Return M a + h of the body at o, eq. (2.22): moment and force at its origin in its axes, without gravity."""
    ax, ay, az, lx, ly, lz = six(W, o + ACC)
    wx, wy, wz = W[o + OMEGA], W[o + OMEGA + 1], W[o + OMEGA + 2]
    c = k + FIRST_MOMENT
    m, x, y, z = floats[k + MASS], floats[c], floats[c + 1], floats[c + 2]
    i = k + BODY_INERTIA
    # Gyroscopic moment w x (I w), plus r x m a and I alpha.
    hx, hy, hz = symmetric_times(floats, i, wx, wy, wz)
    hx, hy, hz = cross(wx, wy, wz, hx, hy, hz)
    cx, cy, cz = cross(x, y, z, lx, ly, lz)
    nx, ny, nz = symmetric_times(floats, i, ax, ay, az)
    nx, ny, nz = nx + hx + cx, ny + hy + cy, nz + hz + cz
    # Force m (a + alpha x c + w x (w x c)), with x, y, z = m c.
    sx, sy, sz = cross(wx, wy, wz, x, y, z)
    sx, sy, sz = cross(wx, wy, wz, sx, sy, sz)
    cx, cy, cz = cross(ax, ay, az, x, y, z)
    return nx, ny, nz, m * lx + cx + sx, m * ly + cy + sy, m * lz + cz + sz


@inlined
def moment_of_rotor(ints: I2, i: int, floats: F1, W: F1, po: int, qdd: F1) -> Vector3:
    """Return the moment of a massless spinning leaf, in parent axes."""
    ex, ey, ez, jz, nx, ny, nz = rotor_terms(floats, i, W, po)
    spun, j, a = 0.0, i * NF + PARENT_INERTIA, po + ACC
    # A rotor spins by its coordinates, relative to the parent.
    for c in range(ints[i, NC]):
        spun += W[(i + 1) * NW + GRAD + c] * qdd[ints[i, COORD + c]]
    spun *= jz
    hx, hy, hz = symmetric_times(floats, j, W[a], W[a + 1], W[a + 2])
    return nx + spun * ex + hx, ny + spun * ey + hy, nz + spun * ez + hz


# -------- Whole system

SUMS = 12  # mass, kinetic, potential, first moment (3,), momentum (3,), angular momentum about the origin (3,)


class Totals(NamedTuple):
    """Totals of all bodies, in environment axes.

    Attributes:
        mass: [kg].
        kinetic: [J].
        potential: [J], zero at the environment's origin.
        com: (3,) [m].
        linear: (3,) momentum [kg m/s].
        angular: (3,) momentum about the centre of gravity [kg m^2/s].
    """

    mass: float
    kinetic: float
    potential: float
    com: np.ndarray
    linear: np.ndarray
    angular: np.ndarray


def totals(dynamics: ForwardDynamics, q: np.ndarray, v: np.ndarray) -> Totals:
    """Return mass, energies and momentum at q (nq,) and v (nv,), without armature."""
    t, w, out = dynamics.arrays.tables, dynamics.arrays.work, np.empty(SUMS)
    kinematics_pass(t, q, v, w)
    sums(t, w, out)
    com = out[3:6] / out[0]
    return Totals(out[0], out[1], out[2], com, out[6:9], out[9:12] - np.cross(com, out[6:9]))


def total_momentum_rate(dynamics: ForwardDynamics, qdd: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the rates of momentum [N] and of angular momentum about the centre of gravity [N m], (3,) each.

    Requires the recursive solver's call that gave qdd (nv,).
    """
    t, w, out, rate = dynamics.arrays.tables, dynamics.arrays.work, np.empty(SUMS), np.empty(6)
    sums(t, w, out)
    rates(t, w, qdd, rate)
    com = out[3:6] / out[0]
    return rate[3:], rate[:3] - np.cross(com, rate[3:])


@kernel
def sums(t: Tables, w: Work, out: F1) -> None:
    """Fill out (SUMS,) after `kinematics_pass`."""
    ints, floats, W = t.ints, t.floats, w.W
    out[:] = 0.0
    for i in range(ints.shape[0]):
        o, po, k = (i + 1) * NW, ints[i, PARENT] * NW, i * NF
        if ints[i, SPIN] == 1:
            z, j, p = k + 6, k + PARENT_INERTIA, po + OMEGA  # the third row of TURN_0 is the axis
            rate = W[o + RATE]
            wx, wy, wz = W[p] + floats[z] * rate, W[p + 1] + floats[z + 1] * rate, W[p + 2] + floats[z + 2] * rate
            m, x, y, z0, ux, uy, uz, e = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, po
        else:
            j, e = k + BODY_INERTIA, o
            wx, wy, wz = W[o + OMEGA], W[o + OMEGA + 1], W[o + OMEGA + 2]
            ux, uy, uz = W[o + VEL], W[o + VEL + 1], W[o + VEL + 2]
            c = k + FIRST_MOMENT
            m, x, y, z0 = floats[k + MASS], floats[c], floats[c + 1], floats[c + 2]
        # Momentum m u + w x (m c); angular momentum I w + (m c) x u about the body origin.
        sx, sy, sz = cross(wx, wy, wz, x, y, z0)
        px, py, pz = m * ux + sx, m * uy + sy, m * uz + sz
        cx, cy, cz = cross(x, y, z0, ux, uy, uz)
        lx, ly, lz = symmetric_times(floats, j, wx, wy, wz)
        lx, ly, lz = lx + cx, ly + cy, lz + cz
        out[0] += m
        out[1] += 0.5 * (wx * lx + wy * ly + wz * lz + ux * px + uy * py + uz * pz)
        # To the environment: rotate, then shift the moment to its origin.
        ax, ay, az = W[e + POS], W[e + POS + 1], W[e + POS + 2]
        mx, my, mz = turn(W, e + ROT, x, y, z0)
        mx, my, mz = mx + m * ax, my + m * ay, mz + m * az
        # Potential energy -g . (sum of m r).
        out[2] -= W[GRAVITY] * mx + W[GRAVITY + 1] * my + W[GRAVITY + 2] * mz
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
def rates(t: Tables, w: Work, qdd: F1, out: F1) -> None:
    """Fill out (6,) with the rates of angular momentum about the origin and momentum."""
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


# -------- Joint wrenches (Schwienbacher 2014, section 2.9)


def joint_wrenches(dynamics: ForwardDynamics, qdd: np.ndarray, wrench: np.ndarray | None = None) -> np.ndarray:
    """Return wrenches (bodies, 6) of each parent on its body: [moment, force] at the body origin in body axes.

    Rotor wrenches are in non-rotating axes. Requires the recursive solver's call that gave qdd (nv,) with the same
    impressed `wrench`.
    """
    a, out = dynamics.arrays, np.zeros((len(dynamics.model.bodies), 6))
    transmitted(a.tables, a.work, qdd, np.zeros_like(out) if wrench is None else wrench, out)
    return out


@kernel
def transmitted(t: Tables, w: Work, qdd: F1, wrench: F2, out: F2) -> None:
    ints, floats, W = t.ints, t.floats, w.W
    for i in range(ints.shape[0] - 1, -1, -1):
        o, k, p = (i + 1) * NW, i * NF, ints[i, PARENT]
        # A rotor has no mass, so only its moment reaches the parent.
        if ints[i, SPIN] == 1:
            nx, ny, nz = moment_of_rotor(ints, i, floats, W, p * NW, qdd)
            out[i, 0], out[i, 1], out[i, 2] = turn(floats, k + TURN_0, nx, ny, nz)
            if p > 0:
                out[p - 1, 0] += nx
                out[p - 1, 1] += ny
                out[p - 1, 2] += nz
            continue
        # Leaves to root: inertial force less gravity and impressed force, plus the wrenches of the children.
        m, gx, gy, gz = floats[k + MASS], W[o + GRAVITY], W[o + GRAVITY + 1], W[o + GRAVITY + 2]
        c = k + FIRST_MOMENT
        cx, cy, cz = cross(floats[c], floats[c + 1], floats[c + 2], gx, gy, gz)
        nx, ny, nz, fx, fy, fz = force_needed(floats, k, W, o)
        out[i, 0] += nx - cx - wrench[i, 0]
        out[i, 1] += ny - cy - wrench[i, 1]
        out[i, 2] += nz - cz - wrench[i, 2]
        out[i, 3] += fx - m * gx - wrench[i, 3]
        out[i, 4] += fy - m * gy - wrench[i, 4]
        out[i, 5] += fz - m * gz - wrench[i, 5]
        if p > 0:
            x = force_up(W, o + TURN, o + ORIGIN, six(out[i], 0))
            for j in range(6):
                out[p - 1, j] += x[j]
