"""Kalman update in blocks of eight measurements, on tiles of 8 x 8.

For eight measurements e = H (truth - x) + noise of variances r:

    W = P H^T,  S = H W + diag(r) = U^T D U (U unit upper triangular),  V = W U^-1 D^-1/2,  y = D^-1/2 U^-T e,
    x += V y,  P -= V V^T,  NIS += y^T y.

This equals eight scalar updates with one pass over P. P may be singular.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from humanoid_control.compiled.array_types import F1, F2, I1
from humanoid_control.compiled.jit import inlined
from humanoid_control.compiled.tiles import (
    add_outer,
    add_scaled,
    column_dots,
    count_bits,
    diagonal,
    eliminated,
    eliminated_lanes,
    factored,
    lanes,
    lowest_bit,
    multiply_add,
    nonzero_bits,
    put_lanes,
    put_tile,
    room,
    root,
    scaled_rows,
    splat,
    tile,
    total,
    transposed,
    zero_tile,
)

DENSE = 0.3  # minimum fraction of non-zeros in H for the dense path


class Measurements(NamedTuple):
    """M linearised measurements.

    Attributes:
        H: (M, n) Jacobian.
        nu: (M,) innovations at the prior [m], NaN if missing.
        r: (M,) variances [m^2].
        use: (M,) 1 if used; cleared by the gate.
        score: (M,) output: leave-one-out innovation [standard deviations].
    """

    H: F2
    nu: F1
    r: F1
    use: I1
    score: F1


class UpdateMemory(NamedTuple):
    """Memory of an update of n states by M measurements, T and B tiles.

    Attributes:
        x0: (n,) prior.
        P0: (n, n) prior.
        dx: (8 T,) change of state.
        panels: (64 T T,) covariance, zero-padded to eight panels.
        rows: (64 B T,) tiles of H, by block.
        product: (64 T,) W of a block, measurements contiguous.
        gain: (64 T,) V, states contiguous, padded to eight tiles.
        factor: (64,) S of a block, then its factors.
        pivots: (8,) D^-1/2.
        e: (8,) innovations.
        y: (8,) whitened innovations.
        share: (8,) diagonal of H P H^T.
        used: (8,) 1 if used.
        entries: (M T,) bit masks of non-zeros in H.
        at: (M n,) columns of non-zeros.
        values: (M n,) non-zeros.
        counts: (M,) non-zeros per row.
    """

    x0: F1
    P0: F2
    dx: F1
    panels: F1
    rows: F1
    product: F1
    gain: F1
    factor: F1
    pivots: F1
    e: F1
    y: F1
    share: F1
    used: I1
    entries: I1
    at: I1
    values: F1
    counts: I1

    @classmethod
    def of(cls, measurements: int, states: int) -> UpdateMemory:
        """Return zeroed memory."""
        m, n = measurements, states
        T, B = -(-n // 8), -(-m // 8)
        strips = -(-T // 8) * 8
        return cls(
            np.zeros(n),
            np.zeros((n, n)),
            room(8 * T),
            room(64 * T * strips),
            room(64 * B * T),
            room(64 * T),
            room(64 * strips),
            room(64),
            room(8),
            room(8),
            room(8),
            room(8),
            np.zeros(8, dtype=np.int64),
            np.zeros(m * T, dtype=np.int64),
            np.zeros(m * n, dtype=np.int64),
            np.zeros(m * n),
            np.zeros(m, dtype=np.int64),
        )


# -------- In and out


@inlined
def load_covariance(P: np.ndarray, panels: np.ndarray) -> None:
    """Copy P to panels; the padding stays zero."""
    # Panels of eight contiguous columns: P[a, 8 J + l] at 8 (J n8 + a) + l, n8 the number of states rounded up. With
    # dense H only tiles on and below the diagonal are maintained; sparse rows of H select rows of P, which needs all
    # tiles.
    n = P.shape[0]
    n8 = (n + 7) // 8 * 8
    flat = P.reshape(-1)
    for first in range(0, n - 7, 8):
        for a in range(n):
            put_lanes(panels, first * n8 + 8 * a, lanes(flat, a * n + first))
    # The last, partial panel is copied entry by entry.
    for a in range(n):
        for j in range(n - n % 8, n):
            panels[(n - n % 8) * n8 + 8 * a + j % 8] = flat[a * n + j]


@inlined
def store_covariance(panels: np.ndarray, P: np.ndarray) -> None:
    """Copy the lower tiles to P, and their mirror images."""
    n = P.shape[0]
    n8 = (n + 7) // 8 * 8
    flat = P.reshape(-1)
    for row in range(0, n, 8):
        for column in range(0, row + 1, 8):
            first = column * n8 + 8 * row
            # Partial tiles at the lower edge are copied entry by entry.
            if row + 8 <= n:
                t = tile(panels, first, 8)
                put_tile(flat, row * n + column, n, t)
                if column < row:
                    put_tile(flat, column * n + row, n, transposed(t))
                continue
            for a in range(row, n):
                for j in range(column, min(column + 8, n)):
                    flat[a * n + j] = flat[j * n + a] = panels[first + 8 * (a - row) + j - column]


@inlined
def count_entries(H: np.ndarray, memory: UpdateMemory) -> int:
    """Count the non-zeros of H and store their bit masks. Most tendons cross few joints."""
    m, n = H.shape
    flat, entries, total, word = H.reshape(-1), memory.entries, 0, 0
    for i in range(m):
        for first in range(i * n, i * n + n - 7, 8):
            entries[word] = nonzero_bits(flat, first)
            total += count_bits(entries[word])
            word += 1
        if n % 8 != 0:
            bits = 0
            for a in range(n % 8):
                bits |= (H[i, n - n % 8 + a] != 0.0) << a
            entries[word] = bits
            total += count_bits(bits)
            word += 1
    return total


@inlined
def list_entries(H: np.ndarray, memory: UpdateMemory) -> None:
    """List the non-zeros found by `count_entries` in at, values and counts."""
    at, tiles, n = memory.at, memory.dx.shape[0] // 8, H.shape[1]
    for i in range(memory.counts.shape[0]):
        end = i * n
        for a in range(tiles):
            bits = memory.entries[i * tiles + a]
            while bits != 0:
                at[end] = 8 * a + lowest_bit(bits)
                memory.values[end] = H[i, at[end]]
                end += 1
                # Clears the lowest set bit.
                bits &= bits - 1
        memory.counts[i] = end - i * n


@inlined
def load_rows(H: np.ndarray, rows: np.ndarray) -> None:
    """Copy H to tiles; the padding stays zero."""
    m, n = H.shape
    flat, at = H.reshape(-1), 0
    for i in range(0, m, 8):
        for a in range(0, n, 8):
            # Only complete tiles of H are contiguous in memory.
            if i + 8 <= m and a + 8 <= n:
                put_tile(rows, at, 8, transposed(tile(flat, i * n + a, n)))
            else:
                for j in range(a, min(a + 8, n)):
                    for k in range(i, min(i + 8, m)):
                        rows[at + 8 * (j - a) + k - i] = flat[k * n + j]
            at += 64


# -------- What a block sees


@inlined
def _remaining(rows: np.ndarray, first: int, dx: np.ndarray, e: np.ndarray) -> None:
    # Two accumulators shorten the dependency chain of fused multiply-adds.
    even, odd = lanes(e, 0), splat(0.0)
    for a in range(0, dx.shape[0], 2):
        even = multiply_add(splat(-dx[a]), lanes(rows, first + 8 * a), even)
        odd = multiply_add(splat(-dx[a + 1]), lanes(rows, first + 8 * a + 8), odd)
    put_lanes(e, 0, even + odd)


@inlined
def _see_all(memory: UpdateMemory, first: int) -> None:
    """Compute W (product, gain) and H W (factor) of a dense block."""
    rows, panels, product = memory.rows, memory.panels, memory.product
    n8 = memory.dx.shape[0]
    for a in range(0, n8, 8):
        t = zero_tile()
        # Tiles left of the diagonal exist only as mirror images: take their transposes.
        for column in range(0, a, 8):
            for j in range(column, column + 8):
                t = add_outer(t, panels, column * n8 + 8 * a + j - column, 8, lanes(rows, first + 8 * j))
        for j in range(a, n8):
            t = add_outer(t, panels, a * n8 + 8 * j, 1, lanes(rows, first + 8 * j))
        put_tile(product, 8 * a, 8, t)
        put_tile(memory.gain, 8 * a, 8, transposed(t))
    # S = H W, accumulated over all tiles of W.
    s = zero_tile()
    for a in range(n8):
        s = add_outer(s, rows, first + 8 * a, 1, lanes(product, 8 * a))
    put_tile(memory.factor, 0, 8, s)


@inlined
def _product_of_few(memory: UpdateMemory, k: int, begin: int, end: int) -> None:
    """Compute row k of W^T in gain from the given entries."""
    at, values, panels, n8 = memory.at, memory.values, memory.panels, memory.dx.shape[0]
    for first in range(0, n8, 64):
        w = zero_tile()
        for c in range(begin, end):
            w = add_scaled(w, values[c], panels, first * n8 + 8 * at[c], 8 * n8)
        put_tile(memory.gain, 8 * first + 8 * k, 64, w)


@inlined
def _see_few(memory: UpdateMemory, block: int, n: int) -> None:
    gain, product, factor, e, at, values = (
        memory.gain,
        memory.product,
        memory.factor,
        memory.e,
        memory.at,
        memory.values,
    )
    for k in range(8):
        if memory.used[k] != 0:
            begin = (8 * block + k) * n
            end = begin + memory.counts[8 * block + k]
            for c in range(begin, end):
                e[k] -= values[c] * memory.dx[at[c]]
            _product_of_few(memory, k, begin, end)
    # gain has rows of W^T; product needs columns of W.
    for first in range(0, product.shape[0], 64):
        put_tile(product, first, 8, transposed(tile(gain, first, 8)))
    for k in range(8):
        s = splat(0.0)
        if memory.used[k] != 0:
            begin = (8 * block + k) * n
            for c in range(begin, begin + memory.counts[8 * block + k]):
                s = multiply_add(splat(values[c]), lanes(product, 8 * at[c]), s)
        put_lanes(factor, 8 * k, s)


# -------- What it changes


@inlined
def _eliminate(memory: UpdateMemory) -> float:
    """Factor S, whiten e and W, update dx; return the NIS increment."""
    factor, gain, pivots, dx, y = memory.factor, memory.gain, memory.pivots, memory.dx, memory.y
    # gain holds W^T here, V^T after the loop.
    eliminators = factored(tile(factor, 0, 8))
    put_tile(factor, 0, 8, eliminators)
    scale = root(diagonal(eliminators))
    put_lanes(pivots, 0, scale)
    whitened = eliminated_lanes(lanes(memory.e, 0), eliminators) * scale
    put_lanes(y, 0, whitened)
    # V = W U^-1 D^-1/2 by rows, and x += V y, tile by tile.
    for first in range(0, 8 * dx.shape[0], 64):
        t = scaled_rows(eliminated(tile(gain, first, 8), factor, 0), pivots, 0)
        put_tile(gain, first, 8, t)
        moved = lanes(dx, first // 8)
        for k in range(8):
            moved = multiply_add(splat(y[k]), lanes(gain, first + 8 * k), moved)
        put_lanes(dx, first // 8, moved)
    return total(whitened * whitened)


@inlined
def _subtract(memory: UpdateMemory, every: bool) -> None:
    """Subtract V V^T from the lower tiles of P; if `every`, mirror them above."""
    panels, gain, n8 = memory.panels, memory.gain, memory.dx.shape[0]
    minus = splat(-1.0)
    for column in range(0, n8, 8):
        for a in range(column, n8, 8):
            t = tile(panels, column * n8 + 8 * a, 8)
            for k in range(8):
                t = add_outer(t, gain, 8 * a + 8 * k, 1, minus * lanes(gain, 8 * column + 8 * k))
            put_tile(panels, column * n8 + 8 * a, 8, t)
            if every and a != column:
                put_tile(panels, a * n8 + 8 * column, 8, transposed(t))


@inlined
def _add_noise(measured: Measurements, memory: UpdateMemory, block: int) -> None:
    """Add r to the diagonal of S; an unused measurement becomes an identity row without e and W."""
    factor, gain = memory.factor, memory.gain
    for k in range(8):
        if memory.used[k] != 0:
            factor[9 * k] += measured.r[8 * block + k]
            continue
        # An identity row leaves the factorisation of the other rows unchanged.
        for j in range(8):
            factor[8 * j + k] = factor[8 * k + j] = 0.0
        factor[9 * k], memory.e[k] = 1.0, 0.0
        for first in range(0, 8 * memory.dx.shape[0], 64):
            put_lanes(gain, first + 8 * k, splat(0.0))


@inlined
def absorb(measured: Measurements, memory: UpdateMemory, dense: bool) -> tuple[float, int]:
    """Process all measurements in use from x0 and P0 into dx and panels; return NIS and count."""
    m = measured.H.shape[0]
    e, used = memory.e, memory.used
    load_covariance(memory.P0, memory.panels)
    for a in range(memory.dx.shape[0]):
        memory.dx[a] = 0.0
    nis, count = 0.0, 0
    for block in range((m + 7) // 8):
        here = 0
        for k in range(8):
            i = 8 * block + k
            # The innovation refers to the prior; H dx is subtracted when the block is reached.
            e[k], used[k] = 0.0, 0
            if i < m and measured.use[i] != 0:
                e[k], used[k] = measured.nu[i], 1
                here += 1
        if here == 0:
            continue
        if dense:
            first = 8 * block * memory.dx.shape[0]
            _remaining(memory.rows, first, memory.dx, e)
            _see_all(memory, first)
        else:
            _see_few(memory, block, measured.H.shape[1])
        _add_noise(measured, memory, block)
        nis += _eliminate(memory)
        _subtract(memory, not dense)
        count += here
    return nis, count


# -------- What the others say of each


@inlined
def _judge_all(memory: UpdateMemory, first: int) -> None:
    """Subtract H dx from e and set share to diag(H P H^T)."""
    rows, panels, n8 = memory.rows, memory.panels, memory.dx.shape[0]
    _remaining(rows, first, memory.dx, memory.e)
    # Off-diagonal tiles count twice by symmetry.
    once, twice = splat(0.0), splat(0.0)
    for a in range(0, n8, 8):
        t = zero_tile()
        for j in range(a, a + 8):
            t = add_outer(t, panels, a * n8 + 8 * j, 1, lanes(rows, first + 8 * j))
        once = once + column_dots(t, rows, first + 8 * a)
        t = zero_tile()
        for j in range(a + 8, n8):
            t = add_outer(t, panels, a * n8 + 8 * j, 1, lanes(rows, first + 8 * j))
        twice = twice + column_dots(t, rows, first + 8 * a)
    put_lanes(memory.share, 0, multiply_add(splat(2.0), twice, once))


@inlined
def _judge_few(memory: UpdateMemory, block: int, n: int) -> None:
    at, values, gain = memory.at, memory.values, memory.gain
    for k in range(min(8, memory.counts.shape[0] - 8 * block)):
        begin = (8 * block + k) * n
        end = begin + memory.counts[8 * block + k]
        _product_of_few(memory, k, begin, end)
        e, share = memory.e[k], 0.0
        for c in range(begin, end):
            e -= values[c] * memory.dx[at[c]]
            share += values[c] * gain[64 * (at[c] // 8) + 8 * k + at[c] % 8]
        memory.e[k], memory.share[k] = e, share


@inlined
def leave_one_out(measured: Measurements, memory: UpdateMemory, dense: bool) -> int:
    """Score each measurement against all others, after `absorb`; return the worst in use, or -1."""
    nu, r, use, score = measured.nu, measured.r, measured.use, measured.score
    m = nu.shape[0]
    e, share, free = memory.e, memory.share, memory.y
    worst, worst_at = 0.0, -1
    for block in range((m + 7) // 8):
        here = min(8, m - 8 * block)
        for k in range(here):
            e[k] = nu[8 * block + k]
        if dense:
            _judge_all(memory, 8 * block * memory.dx.shape[0])
        else:
            _judge_few(memory, block, measured.H.shape[1])
        # The residual of a used measurement has variance r - h P h^T and is its leave-one-out innovation times (r - h P
        # h^T) / r. The residual of an unused one has variance r + h P h^T.
        for k in range(8):
            i = min(8 * block + k, m - 1)
            # The sign of the share distinguishes used from unused measurements.
            share[k] = -share[k] if use[i] != 0 else share[k]
            memory.pivots[k] = r[i]
        noise = lanes(memory.pivots, 0)
        rest = splat(1.0) + lanes(share, 0) / noise
        put_lanes(free, 0, rest)
        put_lanes(e, 0, lanes(e, 0) / root(rest * noise))
        for k in range(here):
            i = 8 * block + k
            # without redundancy there is nothing to compare with
            score[i] = 0.0 if nu[i] != nu[i] or (use[i] != 0 and free[k] < 1e-9) else e[k]
            if use[i] != 0 and abs(score[i]) > worst:
                worst, worst_at = abs(score[i]), i
    return worst_at
