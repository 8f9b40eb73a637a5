"""Rotors: bodies without mass that spin about an axis of their parent, about which they are symmetric."""

from __future__ import annotations

from humanoid_control.jit import inlined
from humanoid_control.multibody.layout import A0, BIAS, IO, IP, NF, NW, OMEGA, RATE
from humanoid_control.multibody.spatial import cross, symmetric_times


@inlined
def rotor_terms(ints, i, floats, W, po):
    """A spinning leaf in its parent's frame: its axis e, Jz, and the moment it needs at zero accelerations.

    Symmetric about its axis and without mass, it looks the same at any angle.
    """
    k, o, w = i * NF, (i + 1) * NW, po + OMEGA
    ex, ey, ez = floats[k + A0 + 6], floats[k + A0 + 7], floats[k + A0 + 8]
    rate, bias, j = W[o + RATE], W[o + BIAS], k + IP
    wx, wy, wz = W[w] + ex * rate, W[w + 1] + ey * rate, W[w + 2] + ez * rate
    lx, ly, lz = symmetric_times(floats, j, wx, wy, wz)
    # In the parent's frame I does not turn, so L = I omega changes there by I e bias, and turns with the parent.
    cx, cy, cz = cross(W[w], W[w + 1], W[w + 2], lx, ly, lz)
    spun = floats[k + IO + 5] * bias
    nx, ny, nz = cx + ex * spun, cy + ey * spun, cz + ez * spun
    return ex, ey, ez, floats[k + IO + 5], nx, ny, nz
