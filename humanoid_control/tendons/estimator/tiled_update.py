"""Update of a Kalman filter by measurements eight at a time, in tiles of eight by eight numbers.

A block of eight measurements, e = H (truth - x) + noise of variances r, is taken in at once:

    W = P H^T,  S = H W + diag(r) = U^T D U (U unit upper triangular),  V = W U^-1 D^-1/2,  y = D^-1/2 U^-T e,
    x += V y,  P -= V V^T,  NIS += y^T y.

It is what the measurements do one by one, Joseph's form with the best gain put in: row k of U^T eliminates what the
measurements before k said. But P crosses the memory once for eight of them, and all products are of tiles. Nothing is
inverted but S, so P may be singular, as it is where the state has the angles of an earlier instant twice.

P is kept in panels of eight columns, which are contiguous: P[a, 8 J + l] at 8 (J n8 + a) + l, with n8 = 8 T the number
of states rounded up. Where most of H is not zero only tiles on the diagonal and below are kept up, and a product with P
takes each of these twice; rows of H with few entries pick whole rows of P, which then needs all its tiles.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from humanoid_control.jit import inlined
from humanoid_control.numerics.array_types import F1, F2, I1
from humanoid_control.numerics.tiles import (
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

DENSE = 0.3  # share of the entries of H that are not zero, from which all are taken


class Measurements(NamedTuple):
    """M linearised measurements.

    Attributes:
        H: (M, n) Jacobian by the state. nu: (M,) innovations at the prior [m]; NaN where nothing was measured.
        r: (M,) variances [m^2]. use: (M,) 1 to use, 0 to leave out; cleared where the gate closes.
        score: (M,), written: leave-one-out innovation [standard deviations].
    """

    H: F2
    nu: F1
    r: F1
    use: I1
    score: F1


class UpdateMemory(NamedTuple):
    """Memory of an update of n states by M measurements; T and B are their numbers of tiles, rounded up.

    Attributes:
        x0, P0: (n,), (n, n) the prior.
        dx: (8 T,) how far the state has moved since. panels: (64 T T,) its covariance now, and zeros up to the next
            multiple of eight panels.
        rows: (64 B T,) tiles of H, those of a block one after the other, measurements side by side.
        product: (64 T,) W of a block, measurements side by side; gain: (64 T,) V, states side by side, and
            zeros up to the next multiple of eight tiles.
        factor: (64,) S of a block, then D U. pivots: (8,) 1 / D. e, y, share: (8,) innovations, whitened ones, and the
            share of each variance that the measurement itself took away.
        used: (8,) 1 where the block uses the measurement.
        entries: (M T,) bits of the entries of H that are not zero, eight each.
        at, values, counts: (M n,), (M n,), (M,) where in its row each measurement has entries that are not zero, which,
            and how many.
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
        """Memory for so many measurements and states."""
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
    """panels := P; entries beyond its n states stay as they are, zero."""
    n = P.shape[0]
    n8 = (n + 7) // 8 * 8
    flat = P.reshape(-1)
    for first in range(0, n - 7, 8):
        for a in range(n):
            put_lanes(panels, first * n8 + 8 * a, lanes(flat, a * n + first))
    for a in range(n):
        for j in range(n - n % 8, n):
            panels[(n - n % 8) * n8 + 8 * a + j % 8] = flat[a * n + j]


@inlined
def store_covariance(panels: np.ndarray, P: np.ndarray) -> None:
    """P := the tiles on the diagonal and below, and their mirror images."""
    n = P.shape[0]
    n8 = (n + 7) // 8 * 8
    flat = P.reshape(-1)
    for row in range(0, n, 8):
        for column in range(0, row + 1, 8):
            first = column * n8 + 8 * row
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
    """How many entries of H are not zero, and which, into memory.entries. Most tendons cross few joints."""
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
    """Entries of H found by `count_entries`, into memory.at, values and counts."""
    at, tiles, n = memory.at, memory.dx.shape[0] // 8, H.shape[1]
    for i in range(memory.counts.shape[0]):
        end = i * n
        for a in range(tiles):
            bits = memory.entries[i * tiles + a]
            while bits != 0:
                at[end] = 8 * a + lowest_bit(bits)
                memory.values[end] = H[i, at[end]]
                end += 1
                bits &= bits - 1
        memory.counts[i] = end - i * n


@inlined
def load_rows(H: np.ndarray, rows: np.ndarray) -> None:
    """rows := H in tiles; entries beyond its measurements and states stay as they are, zero."""
    m, n = H.shape
    flat, at = H.reshape(-1), 0
    for i in range(0, m, 8):
        for a in range(0, n, 8):
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
    """e := e - H dx of a block whose tiles begin at rows[first]."""
    even, odd = lanes(e, 0), splat(0.0)
    for a in range(0, dx.shape[0], 2):
        even = multiply_add(splat(-dx[a]), lanes(rows, first + 8 * a), even)
        odd = multiply_add(splat(-dx[a + 1]), lanes(rows, first + 8 * a + 8), odd)
    put_lanes(e, 0, even + odd)


@inlined
def _see_all(memory: UpdateMemory, first: int) -> None:
    """W, into product and gain, and H W, into factor, of a block of full rows whose tiles begin at rows[first]."""
    rows, panels, product = memory.rows, memory.panels, memory.product
    n8 = memory.dx.shape[0]
    for a in range(0, n8, 8):
        t = zero_tile()
        for column in range(0, a, 8):
            for j in range(column, column + 8):
                t = add_outer(t, panels, column * n8 + 8 * a + j - column, 8, lanes(rows, first + 8 * j))
        for j in range(a, n8):
            t = add_outer(t, panels, a * n8 + 8 * j, 1, lanes(rows, first + 8 * j))
        put_tile(product, 8 * a, 8, t)
        put_tile(memory.gain, 8 * a, 8, transposed(t))
    s = zero_tile()
    for a in range(n8):
        s = add_outer(s, rows, first + 8 * a, 1, lanes(product, 8 * a))
    put_tile(memory.factor, 0, 8, s)


@inlined
def _product_of_few(memory: UpdateMemory, k: int, begin: int, end: int) -> None:
    """Row k of W^T, into gain, by the entries begin .. end - 1 of a row of H."""
    at, values, panels, n8 = memory.at, memory.values, memory.panels, memory.dx.shape[0]
    for first in range(0, n8, 64):
        w = zero_tile()
        for c in range(begin, end):
            w = add_scaled(w, values[c], panels, first * n8 + 8 * at[c], 8 * n8)
        put_tile(memory.gain, 8 * first + 8 * k, 64, w)


@inlined
def _see_few(memory: UpdateMemory, block: int, n: int) -> None:
    """The same of rows with few entries, for measurements in use; e := e - H dx."""
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
    """Factor S of a block, whiten its innovations e and W, and move the state; what it adds to the NIS.

    gain holds W^T, and V^T afterwards.
    """
    factor, gain, pivots, dx, y = memory.factor, memory.gain, memory.pivots, memory.dx, memory.y
    eliminators = factored(tile(factor, 0, 8))
    put_tile(factor, 0, 8, eliminators)
    scale = root(diagonal(eliminators))
    put_lanes(pivots, 0, scale)
    whitened = eliminated_lanes(lanes(memory.e, 0), eliminators) * scale
    put_lanes(y, 0, whitened)
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
    """P -= V V^T, in tiles on the diagonal and below; every: above as well, as their mirror images."""
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
    """S := H W + diag(r); one that is not used gets a row and a column of the identity, and neither W nor e."""
    factor, gain = memory.factor, memory.gain
    for k in range(8):
        if memory.used[k] != 0:
            factor[9 * k] += measured.r[8 * block + k]
            continue
        for j in range(8):
            factor[8 * j + k] = factor[8 * k + j] = 0.0
        factor[9 * k], memory.e[k] = 1.0, 0.0
        for first in range(0, 8 * memory.dx.shape[0], 64):
            put_lanes(gain, first + 8 * k, splat(0.0))


@inlined
def absorb(measured: Measurements, memory: UpdateMemory, dense: bool) -> tuple[float, int]:
    """Take in all measurements in use, from memory.x0 and P0, into dx and panels; their NIS and number."""
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
    """e := e - H dx and share := diag(H P H^T) of a block of full rows whose tiles begin at rows[first]."""
    rows, panels, n8 = memory.rows, memory.panels, memory.dx.shape[0]
    _remaining(rows, first, memory.dx, memory.e)
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
    """The same of rows with few entries."""
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
    """Score every measurement against what all others together say of it; the worst of those in use, or -1.

    After `absorb`: the residual e of a measurement in use has the variance r - h P h^T, and is its innovation against
    all others times (r - h P h^T) / r. That of another one has the variance r + h P h^T.
    """
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
        for k in range(8):
            i = min(8 * block + k, m - 1)
            share[k] = -share[k] if use[i] != 0 else share[k]
            memory.pivots[k] = r[i]
        noise = lanes(memory.pivots, 0)
        rest = splat(1.0) + lanes(share, 0) / noise
        put_lanes(free, 0, rest)
        put_lanes(e, 0, lanes(e, 0) / root(rest * noise))
        for k in range(here):
            i = 8 * block + k
            # where nothing else speaks of what a measurement says there is nothing to compare it with
            score[i] = 0.0 if nu[i] != nu[i] or (use[i] != 0 and free[k] < 1e-9) else e[k]
            if use[i] != 0 and abs(score[i]) > worst:
                worst, worst_at = abs(score[i]), i
    return worst_at
