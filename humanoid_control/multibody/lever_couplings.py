"""Gears and levers: the driving angle at a joint angle, with its two derivatives, as compiled functions of numbers.

Every function reads its parameters from a flat array `par` at the offset `at` (written by `coupling_parameters`) and
returns the angle [rad] and its first and second derivative; NaN where the loop cannot close.
"""

from __future__ import annotations

import numpy as np

from humanoid_control.jit import kernel

LINEAR_SIZE = 2  # ratio, offset
FOUR_BAR_SIZE = 7  # crank, coupler, rocker, ground, crank's zero, branch, rocker's zero


@kernel
def linear(par: np.ndarray, at: int, q: float) -> tuple[float, float, float]:
    """phi = N q + offset: a Harmonic Drive gear (Schwienbacher 2014, eq. (3.1), (3.2)) or a mimicking joint."""
    return par[at] * q + par[at + 1], par[at], 0.0


@kernel
def four_bar(par: np.ndarray, at: int, q: float) -> tuple[float, float, float]:
    """Angle of the driving rocker of a planar four-bar at the angle of the driven crank (the joint), closed form.

    In the plane: crank end A = a (cos t, sin t), t = q + t_0; rocker end B = (d, 0) + c (cos p, sin p); |B - A| = b.
    Returned is p - p_0, within half a turn of it. Branch +1 is the rocker turned counter-clockwise from the line to A.

    Args:
        par: a, b, c, d [m], t_0, branch, p_0, at `at`.
        q: joint angle [rad].
    """
    a, b, c, d = par[at], par[at + 1], par[at + 2], par[at + 3]
    t = q + par[at + 4]
    ax, ay = a * np.cos(t), a * np.sin(t)
    x, y = ax - d, ay
    reach = np.sqrt(x * x + y * y)
    p = np.arctan2(y, x) + par[at + 5] * np.arccos((c * c + reach * reach - b * b) / (2.0 * c * reach))
    bx, by = c * np.cos(p), c * np.sin(p)
    ex, ey = bx - x, by - y  # the coupler, A to B
    lever = ey * bx - ex * by  # e^T dB/dp
    p_q = (ey * ax - ex * ay) / lever
    vx, vy = -by * p_q + ay, bx * p_q - ax  # of B against A
    p_qq = -(vx * vx + vy * vy - (ex * bx + ey * by) * p_q * p_q + ex * ax + ey * ay) / lever
    turn = p - par[at + 6]
    return turn - 2.0 * np.pi * np.round(turn / (2.0 * np.pi)), p_q, p_qq


@kernel
def vergence_lever(par: np.ndarray, at: int, q: float) -> tuple[float, float, float]:
    """Angle of the lever that turns a pair of cameras, at their vergence (Schwienbacher 2014, eq. (3.38) to (3.45)).

    Axes of the source: the lever turns about x, the receptacle about y, the mechanism mirrors about the x-y plane. The
    receptacle turns by share q: 1/2 where q is the angle between both viewing directions, 1 where it is one camera's.
    The lever's end is A = (r_ax, l sin phi, l cos phi), the receptacle's B = r_k + A_y(share q) b, |A - B| = l_c.
    The derivative is the exact one; (3.44) of the source lacks the part of 2 r_bz^2 in its second term.

    Args:
        par: r_ax, l, l_c, r_kx, r_kz, b_x, b_z [m], share, branch, phi_0, at `at`.
        q: vergence [rad].
    """
    rax, lever, coupler = par[at], par[at + 1], par[at + 2]
    share = par[at + 7]
    s, c = np.sin(share * q), np.cos(share * q)
    kx, kz = c * par[at + 5] + s * par[at + 6], c * par[at + 6] - s * par[at + 5]
    x, z = rax - par[at + 3] - kx, par[at + 4] + kz
    gx, gz = share * kz, -share * kx  # B by q
    phi = par[at + 8] * np.arccos((x * x + lever * lever - coupler * coupler + z * z) / (2.0 * lever * z))
    sp, cp = np.sin(phi), np.cos(phi)
    arm = lever * z * sp
    phi_q = (x * gx - z * gz + lever * gz * cp) / arm
    hx, hz = -share * share * kx, -share * share * kz
    # the closure |A - B|^2 = l_c^2 derived twice along q
    rest = gx * gx - x * hx + gz * gz + (z - lever * cp) * hz
    rest += phi_q * (2.0 * lever * sp * gz + lever * z * cp * phi_q)
    return phi - par[at + 9], phi_q, -rest / arm
