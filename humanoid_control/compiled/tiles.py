"""Vectors of eight numbers and tiles of eight by eight in processor registers, for kernels.

Small matrix products are written with `Lanes`, eight numbers, and `Tile`, eight lanes, as sums of outer products,
A B = sum_k A[:, k] B[k, :]:

    @kernel
    def product(a, b, n, out):  # a and b packed: column k of A, row k of B from 8 k on
        t = zero_tile()
        for k in range(n):
            t = add_outer(t, a, 8 * k, 1, lanes(b, 8 * k))
        put_tile(out, 0, 8, t)

Arrays are (N,) and contiguous. Indices are never checked, even with NUMBA_BOUNDSCHECK; reads beyond the end return
garbage. In plain Python `Lanes` is an array (8,), `Tile` an array (8, 8).
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import lower_builtin, models, register_model, type_callable
from numba.np.arrayobj import make_array

WIDTH = 8
Lanes = np.ndarray
Tile = np.ndarray


def room(size: int) -> np.ndarray:
    """Return zeros (size,) aligned to a cache line: lanes across two lines take twice as long."""
    memory = np.zeros(size + WIDTH)
    first = -memory.ctypes.data % 64 // 8
    return memory[first : first + size]


# -------- As plain Python


def lanes(a: np.ndarray, i: int) -> Lanes:
    """Return a[i : i + 8]."""
    return np.array(a[i : i + WIDTH])


def put_lanes(a: np.ndarray, i: int, v: Lanes) -> None:
    a[i : i + WIDTH] = v


def splat(value: float) -> Lanes:
    """Return the same number eight times."""
    return np.full(WIDTH, float(value))


def multiply_add(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
    """Return a b + c, rounded once if the processor supports it."""
    return np.asarray(a * b + c)


def root(a: Lanes) -> Lanes:
    """Return square roots."""
    return np.asarray(np.sqrt(a))


def total(a: Lanes) -> float:
    """Return the sum."""
    return float(a.sum())


def zero_tile() -> Tile:
    """Return a tile of zeros."""
    return np.zeros((WIDTH, WIDTH))


def tile(a: np.ndarray, i: int, step: int) -> Tile:
    """Return the tile with rows a[i + r step : i + r step + 8]."""
    return np.array([a[k : k + WIDTH] for k in range(i, i + WIDTH * step, step)])


def put_tile(a: np.ndarray, i: int, step: int, t: Tile) -> None:
    """Write a tile to the place of `tile`."""
    for r in range(WIDTH):
        a[i + r * step : i + r * step + WIDTH] = t[r]


def add_outer(t: Tile, a: np.ndarray, i: int, step: int, v: Lanes) -> Tile:
    """Return t + u v^T, with u[r] = a[i + r step]."""
    return np.asarray(t + np.outer(a[i : i + (WIDTH - 1) * step + 1 : step], v))


def add_scaled(t: Tile, value: float, a: np.ndarray, i: int, step: int) -> Tile:
    """Return t + value `tile`(a, i, step)."""
    return np.asarray(t + value * tile(a, i, step))


def transposed(t: Tile) -> Tile:
    """Return the transpose."""
    return np.array(t.T)


def factored(t: Tile) -> Tile:
    """Eliminate a symmetric tile t = U^T D U without pivoting: -U above the diagonal, 1 / D on it, zeros below."""
    rows, out = np.array(t), np.zeros((WIDTH, WIDTH))
    for k in range(WIDTH):
        out[k, k] = 1.0 / rows[k, k]
        out[k, k + 1 :] = -out[k, k] * rows[k, k + 1 :]
        for i in range(k + 1, WIDTH):
            rows[i] += out[k, i] * rows[k]
    return out


def diagonal(t: Tile) -> Lanes:
    """Return the diagonal."""
    return np.array(np.diagonal(t))


def eliminated(t: Tile, a: np.ndarray, i: int) -> Tile:
    """Return U^-T t for a result of `factored` at a[i : i + 64]."""
    out = np.array(t)
    for k in range(WIDTH):
        for j in range(k + 1, WIDTH):
            out[j] += a[i + WIDTH * k + j] * out[k]
    return out


def eliminated_lanes(v: Lanes, factor: Tile) -> Lanes:
    """Return U^-T v for a result of `factored`."""
    out = np.array(v)
    for k in range(WIDTH):
        out[k + 1 :] += out[k] * factor[k, k + 1 :]
    return out


def scaled_rows(t: Tile, a: np.ndarray, i: int) -> Tile:
    """Multiply row r by a[i + r]."""
    return np.asarray(t * a[i : i + WIDTH, None])


def column_dots(t: Tile, a: np.ndarray, i: int) -> Lanes:
    """Return the dot products of columns with the tile at a[i : i + 64]."""
    return np.asarray((t * tile(a, i, WIDTH)).sum(axis=0))


def nonzero_bits(a: np.ndarray, i: int) -> int:
    """Return an integer with bit k set where a[i + k] is not zero."""
    return sum(1 << k for k in range(WIDTH) if a[i + k] != 0.0)


def lowest_bit(bits: int) -> int:
    """Return the position of the lowest set bit; one must be set."""
    return (bits & -bits).bit_length() - 1


def count_bits(bits: int) -> int:
    """Return the number of set bits."""
    return bits.bit_count()


# -------- Compiled

_LANES = ir.VectorType(ir.DoubleType(), WIDTH)
_TILE = ir.ArrayType(_LANES, WIDTH)
_INT = ir.IntType(32)
_BITS = ir.IntType(64)
_NUMBER = 8  # bytes: the only known alignment of an array


class _LanesType(types.Type):  # type: ignore[misc, unused-ignore]
    def __init__(self) -> None:
        super().__init__("Lanes")


class _TileType(types.Type):  # type: ignore[misc, unused-ignore]
    def __init__(self) -> None:
        super().__init__("Tile")


_lanes, _tile = _LanesType(), _TileType()


@register_model(_LanesType)
class _LanesModel(models.PrimitiveModel):  # type: ignore[misc, unused-ignore]
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _LANES)


@register_model(_TileType)
class _TileModel(models.PrimitiveModel):  # type: ignore[misc, unused-ignore]
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _TILE)


def _compiled(function: Any, result: Any, *kinds: Any) -> Callable[[Any], Any]:
    """Decorator that defines the compilation of calls with these argument types."""

    def typed(_context: Any) -> Any:  # numba reads the number of arguments of the result
        takes: dict[int, Any] = {
            0: lambda: result,
            1: lambda a: result,
            # an operator has other uses as well
            2: lambda a, b: result if kinds[1] is types.Integer or (a, b) == kinds else None,
            3: lambda a, b, c: result,
            4: lambda a, b, c, d: result,
            5: lambda a, b, c, d, e: result,
        }
        return takes[len(kinds)]

    type_callable(function)(typed)
    return lower_builtin(function, *kinds)  # type: ignore[no-any-return, unused-ignore]


def _pointer(context: Any, builder: Any, signature: Any, args: Any, at: int = 0) -> Any:
    """Return the address of an element of array argument `at`; the next argument is its index."""
    data = make_array(signature.args[at])(context, builder, args[at]).data
    return builder.gep(data, [_index(context, builder, signature, args, at + 1)], inbounds=True)


def _index(context: Any, builder: Any, signature: Any, args: Any, at: int) -> Any:
    return context.cast(builder, args[at], signature.args[at], types.intp)


def _strided(context: Any, builder: Any, signature: Any, args: Any, at: int = 0) -> list[Any]:
    """Return the addresses of eight elements of array argument `at`; first index and step follow it."""
    out, step = [_pointer(context, builder, signature, args, at)], _index(context, builder, signature, args, at + 2)
    while len(out) < WIDTH:
        out.append(builder.gep(out[-1], [step], inbounds=True))
    return out


def _load(builder: Any, pointer: Any) -> Any:
    value = builder.load(builder.bitcast(pointer, _LANES.as_pointer()))
    value.align = _NUMBER
    return value


def _store(builder: Any, value: Any, pointer: Any) -> None:
    builder.store(value, builder.bitcast(pointer, _LANES.as_pointer())).align = _NUMBER


def _shuffled(builder: Any, a: Any, b: Any, order: list[int]) -> Any:
    return builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(_INT, len(order)), order))


def _spread(builder: Any, value: Any) -> Any:
    first = builder.insert_element(ir.Constant(_LANES, ir.Undefined), value, ir.Constant(_INT, 0))
    return _shuffled(builder, first, ir.Constant(_LANES, ir.Undefined), [0] * WIDTH)


def _intrinsic(builder: Any, name: str, *args: Any) -> Any:
    """Call an LLVM instruction for lanes."""
    kind = ir.FunctionType(_LANES, [_LANES] * len(args))
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, f"llvm.{name}.v{WIDTH}f64"), args)


def _rows(builder: Any, t: Any) -> list[Any]:
    return [builder.extract_value(t, k) for k in range(WIDTH)]


def _tile_of(builder: Any, rows: list[Any]) -> Any:
    t = ir.Constant(_TILE, ir.Undefined)
    for k, row in enumerate(rows):
        t = builder.insert_value(t, row, k)
    return t


@_compiled(lanes, _lanes, types.Array, types.Integer)
def _compile_lanes(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    return _load(builder, _pointer(context, builder, signature, args))


@_compiled(put_lanes, types.none, types.Array, types.Integer, _lanes)
def _compile_put_lanes(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    _store(builder, args[2], _pointer(context, builder, signature, args))
    return context.get_dummy_value()


@_compiled(splat, _lanes, types.Float)
def _compile_splat(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    return _spread(builder, args[0])


@_compiled(multiply_add, _lanes, _lanes, _lanes, _lanes)
def _compile_multiply_add(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    return _intrinsic(builder, "fmuladd", *args)


@_compiled(root, _lanes, _lanes)
def _compile_root(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    return _intrinsic(builder, "sqrt", args[0])


@_compiled(total, types.float64, _lanes)
def _compile_total(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    value, left = args[0], WIDTH
    while left > 1:
        left //= 2
        other = ir.Constant(value.type, ir.Undefined)
        halves = (_shuffled(builder, value, other, list(range(k, k + left))) for k in (0, left))
        value = builder.fadd(*halves)
    return builder.extract_element(value, ir.Constant(_INT, 0))


def _compile_operator(function: Any, name: str) -> None:
    @_compiled(function, _lanes, _lanes, _lanes)
    def compile_operator(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return getattr(builder, name)(*args)


for _function, _name in (
    (operator.add, "fadd"),
    (operator.sub, "fsub"),
    (operator.mul, "fmul"),
    (operator.truediv, "fdiv"),
):
    _compile_operator(_function, _name)


@_compiled(zero_tile, _tile)
def _compile_zero_tile(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    return ir.Constant(_TILE, None)


@_compiled(tile, _tile, types.Array, types.Integer, types.Integer)
def _compile_tile(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    return _tile_of(builder, [_load(builder, p) for p in _strided(context, builder, signature, args)])


@_compiled(put_tile, types.none, types.Array, types.Integer, types.Integer, _tile)
def _compile_put_tile(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    for pointer, row in zip(_strided(context, builder, signature, args), _rows(builder, args[3]), strict=True):
        _store(builder, row, pointer)
    return context.get_dummy_value()


@_compiled(add_outer, _tile, _tile, types.Array, types.Integer, types.Integer, _lanes)
def _compile_add_outer(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    rows = []
    for pointer, row in zip(_strided(context, builder, signature, args, 1), _rows(builder, args[0]), strict=True):
        rows.append(_intrinsic(builder, "fmuladd", _spread(builder, builder.load(pointer)), args[4], row))
    return _tile_of(builder, rows)


@_compiled(add_scaled, _tile, _tile, types.Float, types.Array, types.Integer, types.Integer)
def _compile_add_scaled(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    rows, value = [], _spread(builder, args[1])
    for pointer, row in zip(_strided(context, builder, signature, args, 2), _rows(builder, args[0]), strict=True):
        rows.append(_intrinsic(builder, "fmuladd", value, _load(builder, pointer), row))
    return _tile_of(builder, rows)


@_compiled(transposed, _tile, _tile)
def _compile_transposed(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    rows = _rows(builder, args[0])
    for half in (4, 2, 1):  # exchange off-diagonal blocks: of four by four, then inside of two by two, then of one
        turned = list(rows)
        for k in range(WIDTH):
            if not k & half:
                pair = rows[k], rows[k + half]
                upper = [WIDTH + x - half if x & half else x for x in range(WIDTH)]
                lower = [WIDTH + x if x & half else x + half for x in range(WIDTH)]
                turned[k], turned[k + half] = (_shuffled(builder, *pair, order) for order in (upper, lower))
        rows = turned
    return _tile_of(builder, rows)


def _lane(builder: Any, v: Any, k: int) -> Any:
    return _shuffled(builder, v, ir.Constant(_LANES, ir.Undefined), [k] * WIDTH)


def _blended(builder: Any, a: Any, b: Any, first: int) -> Any:
    return _shuffled(builder, a, b, [x if x < first else WIDTH + x for x in range(WIDTH)])


@_compiled(factored, _tile, _tile)
def _compile_factored(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    rows, zero, one = _rows(builder, args[0]), ir.Constant(_LANES, None), ir.Constant(_LANES, [1.0] * WIDTH)
    out = []
    for k in range(WIDTH):
        inverse = builder.fdiv(one, _lane(builder, rows[k], k))
        factor = builder.fmul(builder.fneg(inverse), rows[k])
        for i in range(k + 1, WIDTH):
            rows[i] = _intrinsic(builder, "fmuladd", _lane(builder, factor, i), rows[k], rows[i])
        out.append(_blended(builder, _blended(builder, zero, inverse, k), factor, k + 1))
    return _tile_of(builder, out)


@_compiled(diagonal, _lanes, _tile)
def _compile_diagonal(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    rows = _rows(builder, args[0])
    out = rows[0]
    for k in range(1, WIDTH):
        out = _blended(builder, out, rows[k], k)
    return out


@_compiled(eliminated, _tile, _tile, types.Array, types.Integer)
def _compile_eliminated(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    rows, first = _rows(builder, args[0]), _pointer(context, builder, signature, args, 1)
    for k in range(WIDTH):
        for j in range(k + 1, WIDTH):
            factor = builder.load(builder.gep(first, [ir.Constant(_BITS, WIDTH * k + j)], inbounds=True))
            rows[j] = _intrinsic(builder, "fmuladd", _spread(builder, factor), rows[k], rows[j])
    return _tile_of(builder, rows)


@_compiled(eliminated_lanes, _lanes, _lanes, _tile)
def _compile_eliminated_lanes(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    v, zero = args[0], ir.Constant(_LANES, None)
    for k, row in enumerate(_rows(builder, args[1])[:-1]):
        factors = _blended(builder, zero, row, k + 1)
        v = _intrinsic(builder, "fmuladd", _lane(builder, v, k), factors, v)
    return v


@_compiled(scaled_rows, _tile, _tile, types.Array, types.Integer)
def _compile_scaled_rows(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    first, rows = _pointer(context, builder, signature, args, 1), []
    for k, row in enumerate(_rows(builder, args[0])):
        factor = builder.load(builder.gep(first, [ir.Constant(_BITS, k)], inbounds=True))
        rows.append(builder.fmul(row, _spread(builder, factor)))
    return _tile_of(builder, rows)


@_compiled(column_dots, _lanes, _tile, types.Array, types.Integer)
def _compile_column_dots(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    first = _pointer(context, builder, signature, args, 1)
    sums: list[Any] = []
    for k, row in enumerate(_rows(builder, args[0])):
        other = _load(builder, builder.gep(first, [ir.Constant(_BITS, WIDTH * k)], inbounds=True))
        if k < 2:  # two independent sums
            sums.append(builder.fmul(row, other))
        else:
            sums[k % 2] = _intrinsic(builder, "fmuladd", row, other, sums[k % 2])
    return builder.fadd(*sums)


@_compiled(nonzero_bits, types.int64, types.Array, types.Integer)
def _compile_nonzero_bits(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    value = _load(builder, _pointer(context, builder, signature, args))
    differs = builder.fcmp_unordered("!=", value, ir.Constant(_LANES, [0.0] * WIDTH))
    return builder.zext(builder.bitcast(differs, ir.IntType(WIDTH)), _BITS)


@_compiled(lowest_bit, types.int64, types.Integer)
def _compile_lowest_bit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    kind = ir.FunctionType(_BITS, [_BITS, ir.IntType(1)])
    count = cgutils.get_or_insert_function(builder.module, kind, "llvm.cttz.i64")
    return builder.call(count, [args[0], ir.Constant(ir.IntType(1), 1)])


@_compiled(count_bits, types.int64, types.Integer)
def _compile_count_bits(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    kind = ir.FunctionType(_BITS, [_BITS])
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, "llvm.ctpop.i64"), args)
