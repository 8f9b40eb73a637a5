"""How far a body has turned or slid: its own coordinate, or a function of coordinates that others own too."""

from __future__ import annotations

from humanoid_control.jit import inlined
from humanoid_control.multibody.layout import BIAS, COORD, COUPLING, GRAD, NC, PAR, RATE
from humanoid_control.multibody.lever_couplings import four_bar
from humanoid_control.multibody.screw_couplings import coupler_screw, hinge_screw, hinge_tilt

IDENTITY, LINEAR, QUADRATIC, HINGE_SCREW, HINGE_TILT, COUPLER_SCREW, FOUR_BAR = 0, 1, 2, 3, 4, 5, 6


@inlined
def set_angle(ints, i, par, qpos, q, v, W, o):
    """Angle of body i; its gradient, rate and velocity-dependent acceleration go into the body's row at o."""
    kind = ints[i, COUPLING]
    first = ints[i, COORD]
    if kind == IDENTITY:
        W[o + GRAD], W[o + RATE], W[o + BIAS] = 1.0, v[first], 0.0
        return q[qpos[first]]
    at, x, u = ints[i, PAR], q[qpos[first]], v[first]
    if kind == LINEAR:
        W[o + GRAD], W[o + RATE], W[o + BIAS] = par[at], par[at] * u, 0.0
        return par[at] * x + par[at + 1]
    if kind == COUPLER_SCREW:
        y, w = q[qpos[ints[i, COORD + 1]]], v[ints[i, COORD + 1]]
        n = par[at]
        z, z1, z2, z11, z12, z22 = coupler_screw(par, at + 2, x, y)
        W[o + GRAD], W[o + GRAD + 1] = n * z1, n * z2
        W[o + RATE] = n * (z1 * u + z2 * w)
        W[o + BIAS] = n * (z11 * u * u + 2 * z12 * u * w + z22 * w * w)
        return n * z + par[at + 1]
    if kind >= HINGE_SCREW:
        if kind == HINGE_SCREW:
            z, z1, z11 = hinge_screw(par, at + 2, x)
        elif kind == HINGE_TILT:
            z, z1, z11 = hinge_tilt(par, at + 2, x)
        else:
            z, z1, z11 = four_bar(par, at + 2, x)
        n = par[at]
        W[o + GRAD], W[o + RATE], W[o + BIAS] = n * z1, n * z1 * u, n * z11 * u * u
        return n * z + par[at + 1]
    return _quadratic(ints, i, par, at, qpos, q, v, W, o)


@inlined
def _quadratic(ints, i, par, at, qpos, q, v, W, o):
    """c + g^T q + q^T H q / 2, with the lower triangle of H row by row."""
    n = ints[i, NC]
    value, rate, bias = par[at], 0.0, 0.0
    for a in range(n):
        W[o + GRAD + a] = par[at + 1 + a]
    h = at + 1 + n
    for a in range(n):
        ca = ints[i, COORD + a]
        value += par[at + 1 + a] * q[qpos[ca]]
        for b in range(a + 1):
            cb, s = ints[i, COORD + b], par[h]
            h += 1
            W[o + GRAD + a] += s * q[qpos[cb]]
            twice = 0.5
            if a != b:
                W[o + GRAD + b] += s * q[qpos[ca]]
                twice = 1.0
            value += twice * s * q[qpos[ca]] * q[qpos[cb]]
            bias += 2 * twice * s * v[ca] * v[cb]
    for a in range(n):
        rate += W[o + GRAD + a] * v[ints[i, COORD + a]]
    W[o + RATE], W[o + BIAS] = rate, bias
    return value
