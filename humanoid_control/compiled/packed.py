"""Records passed to kernels as one small table of addresses.

A `Packed` record stores addresses, shapes and numbers in one integer array; `unpack` restores the record in compiled
code at no cost. Field annotations declare the types:

    class Line(NamedTuple):
        points: F2
        width: float

    @kernel
    def length_at(table: Table[Line]) -> float:
        line = unpack(table, Line)
        ...

    packed = Packed(Line(points, 0.1))
    length_at(packed.table)

Kernels that are called often pass the table on as well: a call that passes the record copies 7 words or more an array.
"""

from __future__ import annotations

import functools
import math
import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar, get_args, get_type_hints

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import lower_builtin, type_callable
from numba.np.arrayobj import make_array, populate_array
from numba.np.numpy_support import from_dtype

from humanoid_control.compiled.array_types import I1
from humanoid_control.compiled.settings import config

TUPLE: Any = types.BaseTuple  # untyped
SCALARS: dict[Any, Any] = {float: types.float64, int: types.int64, bool: types.boolean}
Record = TypeVar("Record")
Value = TypeVar("Value")


if TYPE_CHECKING:

    class Table(Generic[Record]):
        """A packed record as kernels take it: an array of int64, or without compilation the record itself.

        `unpack` returns the record, so type checkers and editors know its fields.
        """

else:

    class Table:
        """`Table[Record]` declares an array of int64, also as the field of another record."""

        def __class_getitem__(cls, record: type) -> Any:
            return I1


class Packed(Generic[Record]):
    """Packed record, which keeps its arrays alive; they must stay in place. Copies and pickles get their own table.

    Attributes:
        table: argument of kernels and `unpack`; the record itself without compilation.
    """

    __slots__ = ("record", "table")

    def __init__(self, record: Record) -> None:
        """Pack a record.

        Raises:
            TypeError: if a field is undeclared, or an array differs from its declaration or is not contiguous.
        """
        words: list[int] = []
        _write(record, words)
        self.record = record
        table: Any = record if config.DISABLE_JIT else np.array(words, dtype=np.int64)
        self.table: Table[Record] = table

    def __reduce__(self) -> tuple[type[Packed[Record]], tuple[Record]]:
        return Packed, (self.record,)


class BoundRecord:
    """Record packed once for the same objects, the arrays of which change only in place."""

    __slots__ = ("_given", "_ids", "_make", "_packed")

    def __init__(self, make: Callable[..., Any]) -> None:
        """Set the function that builds the record."""
        self._make, self._ids = make, tuple[int, ...]()

    def table(self, *given: Any) -> Any:
        """Return the table of the record of these objects."""
        ids = tuple(map(id, given))
        if ids != self._ids:
            self._packed = Packed(self._make(*given))
            self._given, self._ids = given, ids  # kept alive, so that ids are not reused
        return self._packed.table


def unpack(table: Table[Record], record: type[Record]) -> Record:
    """Return the record of a table in compiled code; it must not outlive the owner of its arrays."""
    assert isinstance(table, record)  # only plain Python arrives here, where the table is the record
    return table


def uncounted(a: Value) -> Value:
    """View of an array, or record of arrays, without reference counting; saves 5 ns per use.

    The owner must outlive the view: a kernel argument, or an object used again afterwards.
    """
    return a


def local_vector(n: int) -> np.ndarray:
    """Return an uninitialised array of constant size on the stack of a kernel call; `np.empty` takes 20 to 50 ns."""
    return np.empty(n)


def local_matrix(rows: int, columns: int) -> np.ndarray:
    """Return a `local_vector` of two dimensions."""
    return np.empty((rows, columns))


def local_indices(n: int) -> np.ndarray:
    """Return a `local_vector` of integers."""
    return np.empty(n, dtype=np.int64)


def _declared_type(record: type) -> Any:
    """Return the compiled type of a record, from its field declarations.

    Raises:
        TypeError: if a field is not an array, number or record.
    """
    fields: list[Any] = []
    for name, hint in get_type_hints(record, include_extras=True).items():
        parts = get_args(hint)
        if len(parts) == 3 and parts[0] is np.ndarray:
            fields.append(types.Array(from_dtype(np.dtype(parts[1])), parts[2], "C"))
        elif hint in SCALARS:
            fields.append(SCALARS[hint])
        elif isinstance(hint, type) and hasattr(hint, "_fields"):
            fields.append(_numba_type(hint))
        else:
            raise TypeError(f"{record.__name__}.{name}: declare an array as F1, F2, I1 and so on, not as {hint}")
    return types.BaseTuple.from_types(fields, record)


_numba_type: Any = functools.cache(_declared_type)


def _write(record: Any, words: list[int]) -> None:
    """Append the words that `_read` reads: address and shape of an array, bits of a number."""
    kind: Any  # as numba names it
    for name, value, kind in zip(record._fields, record, _numba_type(type(record)), strict=True):
        if isinstance(kind, types.Array):
            if config.DISABLE_JIT and (isinstance(value, tuple) or getattr(value, "dtype", None) is np.dtype(object)):
                continue  # table of other records: the record itself without compilation
            where = f"{type(record).__name__}.{name}"
            if not isinstance(value, np.ndarray):
                raise TypeError(f"{where} must be an array, got {value!r:.40}")
            right = value.ndim == kind.ndim and from_dtype(value.dtype) == kind.dtype
            if not (right and value.flags.c_contiguous and value.flags.aligned and value.flags.writeable):
                given = f"{value.ndim}-d {value.dtype}, strides {value.strides}"
                raise TypeError(f"{where} must be contiguous, writable, {kind.ndim}-d {kind.dtype}; got {given}")
            words += [value.ctypes.data, *value.shape]
        elif isinstance(kind, TUPLE):
            if type(value) is not kind.instance_class:
                expected = kind.instance_class.__name__
                raise TypeError(f"{type(record).__name__}.{name} must be a {expected}, got {value!r:.40}")
            _write(value, words)
        elif kind is types.float64:
            words += struct.unpack("q", struct.pack("d", value))
        else:
            words.append(int(value))


@type_callable(unpack)
def _type_unpack(context: Any) -> Any:
    def typer(table: Any, record: Any) -> Any:
        if isinstance(record, types.NamedTupleClass) and table == types.Array(types.int64, 1, "C"):
            return _numba_type(record.instance_class)
        return None

    return typer


@lower_builtin(unpack, types.Array, types.NamedTupleClass)
def _lower_unpack(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    data = make_array(signature.args[0])(context, builder, args[0]).data
    return _read(context, builder, signature.return_type, data, [0])


@type_callable(uncounted)
def _type_uncounted(context: Any) -> Any:
    return lambda a: a if isinstance(a, (types.Array, TUPLE)) else None


@lower_builtin(uncounted, types.Array)
@lower_builtin(uncounted, TUPLE)
def _lower_uncounted(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    return _without_count(context, builder, signature.return_type, args[0])


def _local(kind: Any, *lengths: Any) -> Any:
    constant = all(isinstance(n, types.IntegerLiteral) for n in lengths)
    return types.Array(kind, len(lengths), "C") if constant else None


type_callable(local_vector)(lambda context: lambda n: _local(types.float64, n))
type_callable(local_matrix)(lambda context: lambda rows, columns: _local(types.float64, rows, columns))
type_callable(local_indices)(lambda context: lambda n: _local(types.int64, n))


@lower_builtin(local_vector, types.IntegerLiteral)
@lower_builtin(local_matrix, types.IntegerLiteral, types.IntegerLiteral)
@lower_builtin(local_indices, types.IntegerLiteral)
def _lower_local(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    lengths, of = [n.literal_value for n in signature.args], context.get_data_type(signature.return_type.dtype)
    size, array = context.get_abi_sizeof(of), make_array(signature.return_type)(context, builder)
    memory = cgutils.alloca_once(builder, ir.ArrayType(of, math.prod(lengths)))
    strides = [size * math.prod(lengths[k + 1 :]) for k in range(len(lengths))]
    shape, strides, itemsize = ([context.get_constant(types.intp, n) for n in x] for x in (lengths, strides, [size]))
    data = builder.bitcast(memory, array.data.type)
    populate_array(array, data=data, shape=shape, strides=strides, itemsize=itemsize[0], meminfo=None)
    return array._getvalue()


def _without_count(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    if isinstance(kind, TUPLE):
        parts = zip(kind, cgutils.unpack_tuple(builder, value, len(kind)), strict=True)
        return context.make_tuple(builder, kind, [_without_count(context, builder, k, v) for k, v in parts])
    if isinstance(kind, types.Array):
        given, array = make_array(kind)(context, builder, value), make_array(kind)(context, builder)
        shape, strides = (cgutils.unpack_tuple(builder, x, kind.ndim) for x in (given.shape, given.strides))
        populate_array(array, given.data, shape, strides, given.itemsize, meminfo=None)
        return array._getvalue()
    return value


def _read(context: Any, builder: Any, kind: Any, data: Any, at: list[int]) -> Any:
    """Read a value of one type at a position, which advances; arrays have no reference counter."""

    def word() -> Any:
        at[0] += 1
        return builder.load(cgutils.gep_inbounds(builder, data, at[0] - 1))

    if isinstance(kind, TUPLE):
        return context.make_tuple(builder, kind, [_read(context, builder, k, data, at) for k in kind])
    if isinstance(kind, types.Array):
        array = make_array(kind)(context, builder)
        address, shape = word(), [word() for _ in range(kind.ndim)]
        itemsize = context.get_constant(types.intp, context.get_abi_sizeof(context.get_data_type(kind.dtype)))
        strides = [itemsize]
        for length in shape[:0:-1]:
            strides.insert(0, builder.mul(strides[0], length))
        pointer = builder.inttoptr(address, array.data.type)
        populate_array(array, data=pointer, shape=shape, strides=strides, itemsize=itemsize, meminfo=None)
        return array._getvalue()
    if kind is types.float64:
        return builder.bitcast(word(), context.get_value_type(kind))
    return builder.trunc(word(), context.get_value_type(kind)) if kind is types.boolean else word()
