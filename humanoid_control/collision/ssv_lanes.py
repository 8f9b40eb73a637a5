"""How pairs of swept-sphere volumes lie side by side in memory ("lanes"), to be measured several at a time.

A block is one flat array: row r of lane i is at r * LANES + i, so that the compiler measures four or eight pairs with
one instruction.
"""

from __future__ import annotations

import numpy as np

from humanoid_control.collision.jit import Vec, along, dot, mul, sub
from humanoid_control.jit import inlined

LANES = 64
# Rows of a block: vertices of both cores and radii go in, the rest comes out.
FIRST, SECOND, RADIUS, DISTANCE, NORMAL, POINT_0, POINT_1, CORE = 0, 9, 18, 20, 21, 24, 27, 30
ROWS = 31
POINT, LINE, TRIANGLE = range(3)
TYPE_NAMES = ("point", "line", "triangle")
# A function's code is 3 * type of the first + type of the second, the first the simpler one (table 6.1).
PP, PL, PT, LL, LT, TT = 0, 1, 2, 4, 5, 8
FUNCTIONS = {"pp": PP, "pl": PL, "pt": PT, "ll": LL, "lt": LT, "tt": TT}
MEET = 1e-12  # [m] nearer than this, the cores touch and their distance has no direction


@inlined
def vector(block: np.ndarray, row: int, i: int) -> Vec:
    """Three rows of a lane."""
    return (block[row * LANES + i], block[(row + 1) * LANES + i], block[(row + 2) * LANES + i])


@inlined
def put(block: np.ndarray, row: int, i: int, a: Vec) -> None:
    """Set three rows of a lane."""
    block[row * LANES + i] = a[0]
    block[(row + 1) * LANES + i] = a[1]
    block[(row + 2) * LANES + i] = a[2]


@inlined
def finish(block: np.ndarray, i: int, x: Vec, y: Vec) -> None:
    """From the nearest points x, y of the cores to distance, normal and surface points (eq. (6.9) to (6.11)).

    d = d* - r0 - r1 with d* the distance of the cores: negative inside. The normal comes from the cores, so it keeps
    its direction through contact until the cores themselves meet; it is then zero, until `separate_meeting_cores`.
    """
    c = sub(y, x)
    core = dot(c, c) ** 0.5
    n = mul(1.0 / core if core > MEET else 0.0, c)
    r0, r1 = block[RADIUS * LANES + i], block[(RADIUS + 1) * LANES + i]
    block[DISTANCE * LANES + i] = core - r0 - r1
    block[CORE * LANES + i] = core
    put(block, NORMAL, i, n)
    put(block, POINT_0, i, along(x, r0, n))
    put(block, POINT_1, i, along(y, -r1, n))
