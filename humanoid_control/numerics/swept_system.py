"""Symmetric table swept over some entries: an inverse and its consequences, updated by pivots.

For a symmetric Q swept over the set S, the table holds -Q_SS^-1 in S, Q_iS Q_SS^-1 next to it, and
Q_ij - Q_iS Q_SS^-1 Q_Sj elsewhere. Each entry is swept or restored by one pivot (Goodnight 1979), the square of the
size, by tiles of eight by eight in registers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from humanoid_control.compiled.jit import inlined, kernel
from humanoid_control.compiled.tiles import (
    WIDTH,
    add_outer,
    lanes,
    multiply_add,
    put_lanes,
    put_tile,
    splat,
    tile,
    total,
)

PANEL = 4  # pivots swept together, for a quarter of the memory traffic
VECTORS = 3 + 3 * PANEL  # vectors of work memory


class SweptSystem(NamedTuple):
    """System Q with c, swept over some of its N entries.

    Free variables and working rows of the guess come first. Other arrays are work memory.

    Attributes:
        table: rows of W = `stride` numbers (W W,), a multiple of WIDTH above N: Q, and c as row N. Only tiles on and
            below the diagonal are valid.
        variable: number of the variable, or n + number of the row (N,).
        swept: 1 for swept entries (N,).
        y: unknowns (W,).
        w: forces and slack (W,).
        pivots: smallest pivot of a variable and largest of a row so far (2,).
    """

    table: np.ndarray
    stride: int
    variable: np.ndarray
    swept: np.ndarray
    y: np.ndarray
    w: np.ndarray
    column: np.ndarray
    panel: np.ndarray
    scaled: np.ndarray
    swept_panel: np.ndarray
    block: np.ndarray
    pivots: np.ndarray


@kernel
def take_column(s: SweptSystem, p: int) -> None:
    """Copy column p of the table to `column`."""
    T, stride, out = s.table, s.stride, s.column
    # Left of the diagonal tile the column is stored as row p.
    whole = p + WIDTH - p % WIDTH
    for i in range(0, whole, WIDTH):
        put_lanes(out, i, lanes(T, p * stride + i))
    for i in range(whole, stride):
        out[i] = T[i * stride + p]


@kernel
def _put_column(s: SweptSystem, p: int) -> None:
    """Write column p of the table from `column`."""
    T, stride, column = s.table, s.stride, s.column
    for i in range(0, p + 1, WIDTH):
        put_lanes(T, p * stride + i, lanes(column, i))
    for i in range(p - p % WIDTH, stride):
        T[i * stride + p] = column[i]


@inlined
def add_multiple(out: np.ndarray, factor: float, a: np.ndarray, count: int) -> None:
    """out := out + factor a for `count` numbers, a multiple of WIDTH."""
    f = splat(factor)
    for i in range(0, count, WIDTH):
        put_lanes(out, i, multiply_add(f, lanes(a, i), lanes(out, i)))


@kernel
def _factor_block(s: SweptSystem, first: int, m: int, n: int) -> bool:
    """Factor the panel block P = L D L': `block` gets L below, -1/D on, and D L' above the diagonal."""
    L, C = s.block, s.panel
    for q in range(PANEL):
        d = C[q * s.stride + first + q] if q < m else 1.0
        for k in range(q):
            a = C[q * s.stride + first + k] if q < m else 0.0
            for r in range(k):
                a -= L[PANEL * q + r] * L[PANEL * r + k]
            L[PANEL * k + q], L[PANEL * q + k] = a, -a * L[PANEL * k + k]
            d -= a * L[PANEL * q + k]
        if q < m and s.variable[first + q] < n and not d > 0.0:
            return False
        L[PANEL * q + q] = -1.0 / d
    return True


@kernel
def sweep_panel(s: SweptSystem, first: int, last: int, n: int) -> bool:
    """Sweep a panel of entries; pivots of the n variables must be positive.

    With columns C, block P = L D L', E = C L'^-1 and F = E D^-1 L^-1: the rest becomes T - E D^-1 E', the columns F,
    the block -P^-1.
    """
    T, C, G, F, L, stride, m = s.table, s.panel, s.scaled, s.swept_panel, s.block, s.stride, last - first
    one, two, three, begin = s.stride, 2 * s.stride, 3 * s.stride, first - first % WIDTH
    # Copy the panel's columns; unused columns are zero.
    for q in range(m):
        for i in range(0, begin + WIDTH, WIDTH):
            put_lanes(C, q * stride + i, lanes(T, (first + q) * stride + i))
        for i in range(begin + WIDTH, stride):
            C[q * stride + i] = T[i * stride + first + q]
    for i in range(m * stride, PANEL * stride, WIDTH):
        put_lanes(C, i, splat(0.0))
    if not _factor_block(s, first, m, n):
        return False
    for q in range(m):
        for k in range(m):
            C[q * stride + first + k] = -1.0 if q == k else 0.0  # F then gets -P^-1 there
    minus, l10, l20, l21 = splat(-1.0), splat(-L[PANEL]), splat(-L[2 * PANEL]), splat(-L[2 * PANEL + 1])
    l30, l31, l32 = splat(-L[3 * PANEL]), splat(-L[3 * PANEL + 1]), splat(-L[3 * PANEL + 2])
    d0, d1, d2, d3 = splat(L[0]), splat(L[PANEL + 1]), splat(L[2 * PANEL + 2]), splat(L[3 * PANEL + 3])
    # Forward substitution to E, scaling to E D^-1, backward substitution to F.
    for j in range(0, stride, WIDTH):
        e0 = lanes(C, j)
        e1 = multiply_add(l10, e0, lanes(C, one + j))
        e2 = multiply_add(l21, e1, multiply_add(l20, e0, lanes(C, two + j)))
        e3 = multiply_add(l32, e2, multiply_add(l31, e1, multiply_add(l30, e0, lanes(C, three + j))))
        g0, g1, g2, f3 = d0 * e0, d1 * e1, d2 * e2, d3 * e3
        f2 = multiply_add(l32, f3, g2)
        f1 = multiply_add(l21, f2, multiply_add(l31, f3, g1))
        f0 = multiply_add(l10, f1, multiply_add(l20, f2, multiply_add(l30, f3, g0)))
        put_lanes(C, one + j, e1)
        put_lanes(C, two + j, e2)
        put_lanes(C, three + j, e3)
        put_lanes(G, j, g0)
        put_lanes(G, one + j, g1)
        put_lanes(G, two + j, g2)
        put_lanes(G, three + j, f3)
        put_lanes(F, j, minus * f0)
        put_lanes(F, one + j, minus * f1)
        put_lanes(F, two + j, minus * f2)
        put_lanes(F, three + j, minus * f3)
    # Rank-four update of all tiles on and below the diagonal.
    for j in range(0, stride, WIDTH):
        c0, c1, c2, c3 = lanes(C, j), lanes(C, one + j), lanes(C, two + j), lanes(C, three + j)
        for i in range(j, stride, WIDTH):
            t = add_outer(tile(T, i * stride + j, stride), G, i, 1, c0)
            t = add_outer(add_outer(t, G, one + i, 1, c1), G, two + i, 1, c2)
            put_tile(T, i * stride + j, stride, add_outer(t, G, three + i, 1, c3))
    for q in range(m):
        s.swept[first + q] = 1
        for i in range(0, begin + WIDTH, WIDTH):
            put_lanes(T, (first + q) * stride + i, lanes(F, q * stride + i))
        for i in range(begin, stride):
            T[i * stride + first + q] = F[q * stride + i]
    return True


@kernel
def sweep(s: SweptSystem, p: int, least: float) -> float:
    """Sweep or restore entry p with a pivot of at least `least` in size; return its pivot."""
    T, c, stride = s.table, s.column, s.stride
    take_column(s, p)
    pivot = c[p]
    # Pivots that are too small are replaced by `least`. NumPy divides: as plain Python too, a zero gives infinity.
    inverse = np.float64(1.0) / (c[p] if abs(c[p]) > least else least)
    scale, minus = splat(inverse if s.swept[p] == 0 else -inverse), splat(-inverse)
    for i in range(0, stride, WIDTH):
        put_lanes(s.scaled, i, minus * lanes(c, i))
    for j in range(0, stride, WIDTH):
        v = lanes(c, j)
        for i in range(j, stride, WIDTH):
            at = i * stride + j
            put_tile(T, at, stride, add_outer(tile(T, at, stride), s.scaled, i, 1, v))
    for i in range(0, stride, WIDTH):
        put_lanes(c, i, scale * lanes(c, i))
    # A swept entry holds the negative inverse of its pivot.
    c[p], s.swept[p] = -inverse, 1 - s.swept[p]
    _put_column(s, p)
    return pivot


@kernel
def multiply(s: SweptSystem, v: np.ndarray, out: np.ndarray) -> None:
    """out := table (without c) times v (W,), the padding of v being zero."""
    T, stride = s.table, s.stride
    for j in range(0, stride, WIDTH):
        put_lanes(out, j, splat(0.0))
    for i in range(s.variable.shape[0]):
        # Row i left of its tile also represents the column above the diagonal.
        tile_of_i, f, along = i - i % WIDTH, splat(v[i]), splat(0.0)
        for j in range(0, tile_of_i, WIDTH):
            t = lanes(T, i * stride + j)
            put_lanes(out, j, multiply_add(f, t, lanes(out, j)))
            along = multiply_add(t, lanes(v, j), along)
        put_lanes(out, tile_of_i, multiply_add(f, lanes(T, i * stride + tile_of_i), lanes(out, tile_of_i)))
        out[i] += total(along)
