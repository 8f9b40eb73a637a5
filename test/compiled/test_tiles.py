"""Tiles and lanes, compiled, do what they do as plain Python on numpy arrays, and what linear algebra says of them."""

import numpy as np
import pytest

from humanoid_control.compiled.jit import kernel
from humanoid_control.compiled.settings import config
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


@kernel
def everything(a, out):
    u, v = lanes(a, 3), lanes(a, 40)
    put_lanes(out, 0, u + v)
    put_lanes(out, 8, u - v * splat(2.5))
    put_lanes(out, 16, root(u / v))
    put_lanes(out, 24, multiply_add(u, v, splat(a[0])))
    t = add_outer(tile(a, 5, 9), a, 100, 3, v)
    put_tile(out, 32, 8, t)
    put_tile(out, 96, 11, transposed(t))
    put_lanes(out, 200, column_dots(t, a, 7))
    put_tile(out, 208, 8, scaled_rows(t, a, 60))
    put_tile(out, 272, 8, add_scaled(zero_tile(), a[4], a, 2, 10))
    put_lanes(out, 336, diagonal(t))
    put_tile(out, 344, 8, eliminated(t, a, 30))
    put_lanes(out, 408, eliminated_lanes(u, t))
    out[416], out[417] = total(u), count_bits(nonzero_bits(a, 150))
    out[418] = nonzero_bits(a, 150)
    out[419] = lowest_bit(nonzero_bits(a, 150))


def numbers():
    a = np.random.default_rng(1).uniform(0.5, 1.5, 200)
    a[[150, 151, 154, 157]] = 0.0, -0.0, np.nan, 0.0  # what is no number is not zero
    return a


def test_compiled_they_are_what_numpy_makes_of_them():
    a, out, wanted = numbers(), np.zeros(430), np.zeros(430)
    everything(a, out)
    getattr(everything, "py_func", everything)(a, wanted)
    assert np.abs(out - wanted).max() < 1e-12
    assert (out[417:420] == [5, 0b01111100, 2]).all()
    assert np.array_equal(out[96 : 96 + 8], out[32 : 32 + 64 : 8])  # the first row is the first column


@kernel
def eliminate(a, e, out):
    t = factored(tile(a, 0, 8))
    put_tile(out, 0, 8, t)
    put_tile(out, 64, 8, eliminated(tile(a, 64, 8), out, 0))
    put_lanes(out, 128, eliminated_lanes(lanes(e, 0), t))


def test_a_factored_tile_eliminates():
    """S = U^T D U; U^-T whitens: its products with B have S^-1 between them."""
    rng = np.random.default_rng(2)
    A, B, e = rng.standard_normal((8, 8)), rng.standard_normal((8, 8)), rng.standard_normal(8)
    S = A @ A.T + 0.1 * np.eye(8)
    out = np.zeros(136)
    eliminate(np.concatenate([S.ravel(), B.ravel()]), e, out)
    factor, W, y = out[:64].reshape(8, 8), out[64:128].reshape(8, 8), out[128:]
    U = np.eye(8) - np.triu(factor, 1)
    assert np.abs(U.T @ np.diag(1 / np.diag(factor)) @ U - S).max() < 1e-12 * np.abs(S).max()
    assert np.array_equal(np.tril(factor, -1), np.zeros((8, 8)))
    wanted = np.linalg.solve(S, B)
    assert np.abs(W.T @ np.diag(np.diag(factor)) @ W - B.T @ wanted).max() < 1e-10 * np.abs(wanted).max()
    assert y @ (np.diag(factor) * y) == pytest.approx(e @ np.linalg.solve(S, e))


@kernel
def product(a, b, n, out):
    t = zero_tile()
    for k in range(n):
        t = add_outer(t, a, 8 * k, 1, lanes(b, 8 * k))
    put_tile(out, 0, 8, t)


def test_a_product_of_matrices_is_a_sum_of_outer_products():
    rng = np.random.default_rng(3)
    A, B, out = rng.standard_normal((8, 20)), rng.standard_normal((20, 8)), np.zeros(64)
    product(A.T.ravel(), B.ravel(), 20, out)
    assert np.abs(out.reshape(8, 8) - A @ B).max() < 1e-13


@pytest.mark.parametrize("size", [1, 8, 100])
def test_room_begins_with_a_line_of_the_cache(size):
    memory = [room(size) for _ in range(20)]
    assert all(m.shape == (size,) and m.ctypes.data % 64 == 0 and not m.any() for m in memory)
    assert all(m.flags.c_contiguous and m.flags.writeable for m in memory)


@pytest.mark.skipif(bool(config.DISABLE_JIT), reason="nothing is compiled")
def test_they_stay_what_they_are_beside_other_numbers():
    """Operators on lanes leave those on arrays and numbers alone."""

    @kernel(allocates=True)
    def mixed(a, x):
        return a * x + a, x / 2.0 - x

    found, number = mixed(np.arange(3.0), 4.0)
    assert np.array_equal(found, [0.0, 5.0, 10.0]) and number == -2.0
