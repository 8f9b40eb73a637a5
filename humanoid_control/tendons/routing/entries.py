"""Where Python enters the kernels of this room: a packed routing, postures, and the arrays to fill.

Two entries only, for one posture and for many: each is compiled with all that it calls, which takes seconds.
"""

from __future__ import annotations

import numpy as np

from humanoid_control.jit import kernel
from humanoid_control.tendons.routing.bending import bend
from humanoid_control.tendons.routing.measuring import measure
from humanoid_control.tendons.routing.packing import placed_in, unpacked


@kernel
def measure_at(
    ints: np.ndarray, reals: np.ndarray, memory: np.ndarray, thetas: np.ndarray, lengths: np.ndarray, G: np.ndarray
) -> None:
    """Lengths (N, M) of the whole paths [m] and moment arms G (N, M, D) at thetas (N, D).

    Moment arms are left out where G has no postures, (0, M, D).
    """
    routing, at, arms, nothing = unpacked(ints, reals), placed_in(ints, memory), G.shape[0] > 0, np.empty((0, 0))
    for k in range(thetas.shape[0]):
        measure(routing, thetas[k], at, lengths[k], G[k] if arms else nothing, arms)


@kernel
def bend_at(
    ints: np.ndarray, reals: np.ndarray, memory: np.ndarray, theta: np.ndarray, rate: np.ndarray, out: np.ndarray
) -> None:
    """d(G rate) / d theta (M, D) at theta (D,) for a velocity rate (D,)."""
    bend(unpacked(ints, reals), theta, rate, placed_in(ints, memory), out)
