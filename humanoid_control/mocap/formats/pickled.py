"""Safe reader of arrays in pickled files (`.pkl`, `.pt`), without executing them.

Only calls that build arrays, tensors and ordered dictionaries are followed; torch is not needed. Other files are
rejected, with a command that converts trusted ones.
"""

from __future__ import annotations

import io
import math
import pickle
import pickletools
import zipfile
import zlib
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import numpy as np

from humanoid_control.errors import ClipError, first_line, one_line
from humanoid_control.mocap.formats.common import check_growth

_MOST_COPIES = 4  # times the file size that arrays and texts may take in total
_STORAGES = {
    "FloatStorage": "<f4", "DoubleStorage": "<f8", "HalfStorage": "<f2", "LongStorage": "<i8", "IntStorage": "<i4",
    "ShortStorage": "<i2", "ByteStorage": "u1", "CharStorage": "i1", "BoolStorage": "?",
}  # fmt: skip
_NESTING = 6  # searched levels of dictionaries


def load_pickle(data: bytes, where: str) -> Any:
    """Return dictionaries, lists, numbers, texts and arrays of a pickle (Python 2, too).

    Raises:
        ClipError: if it is damaged, or contains other objects.
    """
    if data[:4] == b"PK\x03\x04":
        return load_tensors(data, where)
    return _load(data, {}, where)


def load_tensors(data: bytes, where: str) -> Any:
    """Return the content of a `torch.save` file (torch 1.6 or later), tensors as arrays.

    Raises:
        ClipError: if it is damaged, older, or contains other objects.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            check_growth(sum(info.file_size for info in archive.infolist()), len(data), where)
            index = next((n for n in archive.namelist() if n.endswith("/data.pkl")), None)
            if index is None:
                raise ClipError(f"{where}: is not a file of torch.save: {_advice(where)}")
            folder = index.removesuffix("data.pkl")
            if any(n == f"{folder}byteorder" and archive.read(n) != b"little" for n in archive.namelist()):
                raise ClipError(f"{where}: contains numbers in big-endian order: {_advice(where)}")
            stored = {
                n.removeprefix(f"{folder}data/"): archive.read(n)
                for n in archive.namelist()
                if n.startswith(f"{folder}data/")
            }
            program = archive.read(index)
    except (zipfile.BadZipFile, zlib.error, OSError, EOFError, NotImplementedError, RuntimeError) as error:
        hint = "saved before torch 1.6, or damaged" if data[:1] == b"\x80" else first_line(error)
        raise ClipError(f"{where}: is not a zip archive of torch.save ({hint}): {_advice(where)}") from None
    return _load(program, stored, where)


def named_arrays(content: Any, where: str) -> dict[str, np.ndarray]:
    """Return the named arrays of the first person in nested dictionaries, or raise ClipError.

    `smpl_params_global` (GVHMR) is preferred and `smpl_params_incam` ignored: a camera may be tilted.
    """
    found = _arrays_in(content, _NESTING)
    if not found:
        raise ClipError(f"{where}: contains no named arrays: {_advice(where)}")
    return found


def _arrays_in(content: Any, depth: int) -> dict[str, np.ndarray]:
    if isinstance(content, (list, tuple)) and content and depth:
        return _arrays_in(content[0], depth - 1)
    if not isinstance(content, Mapping) or not depth:
        return {}
    if "smpl_params_global" in content:
        return _arrays_in(content["smpl_params_global"], depth - 1)
    found = {
        str(name): np.asarray(value)
        for name, value in content.items()
        if isinstance(value, (np.ndarray, np.generic, int, float)) and not isinstance(value, bool)
    }
    if any(a.ndim for a in found.values()):
        return found
    for name, value in content.items():
        if str(name) != "smpl_params_incam" and (inner := _arrays_in(value, depth - 1)):
            return inner
    return found


# -------- permitted calls


class _Refused(Exception):
    """Pickle with a call that builds no array."""


class _Sealed:
    """Object that a pickle can name but not change (opcode BUILD)."""

    __slots__ = ()

    def __setstate__(self, state: Any) -> NoReturn:
        raise _Refused("a change of the reader")


class _Call(_Sealed):
    """Function that a pickle may call."""

    __slots__ = ("_function",)

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def __call__(self, *args: Any) -> Any:
        return self._function(*args)


class _Ordered(OrderedDict[Any, Any]):
    """Ordered dictionary that ignores the state added by torch."""

    __slots__ = ()

    def __setstate__(self, state: Any) -> None:
        if not isinstance(state, dict):
            raise _Refused("a change of the reader")


class _Name(_Sealed):
    """Array class for `_reconstruct` only: a direct call exposes uninitialised memory."""

    __slots__ = ()


_ARRAY = _Name()


class _Type:
    """Type of numbers or texts, never of objects.

    A numpy dtype state could forge size, fields or objects: it is checked, and numpy creates the type from a code.

    Args:
        code: such as 'f8', 'U10'.
    """

    __slots__ = ("dtype",)

    def __init__(self, code: Any) -> None:
        found = np.dtype(str(code.decode("latin1") if isinstance(code, bytes) else code))
        if found.hasobject or found.kind not in "biufSU" or found.fields or found.subdtype:
            raise _Refused("an array of objects")
        self.dtype = found

    def __setstate__(self, state: Any) -> None:
        if not (isinstance(state, tuple) and len(state) >= 5 and state[2:5] == (None, None, None)):
            raise _Refused("an array of objects")
        order = state[1].decode("latin1") if isinstance(state[1], bytes) else state[1]
        if order not in ("<", ">", "|", "="):
            raise _Refused("numbers of unknown order")
        if len(state) > 5 and self.dtype.itemsize == 0 and state[5] != -1:
            raise _Refused("texts of unknown length")
        self.dtype = np.dtype(f"{'=' if order == '|' else order}{self.dtype.str[1:]}")


def _dtype(code: Any, *_: Any) -> _Type:
    """Return a type of numbers or texts."""
    return _Type(code)


def _checked(kind: Any, data: Any) -> tuple[np.dtype, bytes]:
    """Return type and bytes of numbers in a pickle."""
    if isinstance(data, str):
        data = data.encode("latin1")
    if not isinstance(kind, _Type) or not isinstance(data, (bytes, bytearray)):
        raise _Refused("an array of objects")
    return kind.dtype, bytes(data)


class _Array(np.ndarray):
    """Array with exactly the bytes of its shape as state, and no objects."""

    _spend: Callable[[int], None]

    def __setstate__(self, state: Any) -> None:
        if not (isinstance(state, tuple) and len(state) == 5 and hasattr(self, "_spend")):
            raise _Refused("an array of unknown form")
        _, shape, kind, fortran, data = state
        dtype, held = _checked(kind, data)
        shape = _shape(shape)
        if math.prod(shape) * dtype.itemsize != len(held):
            raise _Refused("an array of another size than its numbers")
        self._spend(len(held))
        super().__setstate__((1, shape, dtype, bool(fortran), held))  # type: ignore[arg-type]


def _shape(shape: Any) -> tuple[int, ...]:
    found = tuple(int(n) for n in shape)
    if min(found, default=0) < 0 or len(found) > 32:
        raise _Refused("an array of impossible shape")
    return found


def _rebuild_tensor(storage: Any, offset: int, size: tuple[int, ...], stride: tuple[int, ...], *_: Any) -> Any:
    """Return a tensor as a view within its storage."""
    size, stride, offset = _shape(size), _shape(stride), int(offset)
    if not isinstance(storage, _Array) or storage.ndim != 1 or len(size) != len(stride) or offset < 0:
        raise _Refused("a tensor of impossible shape")
    last = offset + sum((n - 1) * s for n, s in zip(size, stride, strict=True))
    # Zero strides repeat numbers and could fill the memory.
    if 0 not in size and (last >= len(storage) or math.prod(size) > len(storage)):
        raise _Refused("a tensor larger than its storage")
    if 0 in size:
        return np.zeros((0,), storage.dtype).view(_Array)
    return np.lib.stride_tricks.as_strided(
        storage[offset:], size, tuple(s * storage.itemsize for s in stride), subok=True, writeable=False
    )


def _scalar(kind: Any, data: Any = b"") -> Any:
    dtype, held = _checked(kind, data)
    return np.frombuffer(held, dtype)[0]


def _from_buffer(buffer: Any, kind: Any, shape: Any, order: str) -> np.ndarray:
    """Return an array of protocol 5."""
    dtype, held = _checked(kind, buffer)
    return np.frombuffer(held, dtype).reshape(_shape(shape), order="F" if order == "F" else "C").view(_Array)


class _ArrayUnpickler(pickle.Unpickler):
    """Unpickler for arrays, tensors and ordered dictionaries.

    Args:
        stored: storage name -> bytes of tensors.
    """

    def __init__(self, program: bytes, stored: Mapping[str, bytes]) -> None:
        super().__init__(io.BytesIO(program), encoding="latin1")
        self._stored = stored
        self._left = _MOST_COPIES * len(program)
        self._calls = {
            ("collections", "OrderedDict"): _Ordered,
            ("torch._utils", "_rebuild_tensor_v2"): _Call(_rebuild_tensor),
            ("torch._utils", "_rebuild_parameter"): _Call(lambda tensor, *_: tensor),
            ("numpy", "ndarray"): _ARRAY,
            ("numpy", "dtype"): _Call(_dtype),
            ("_codecs", "encode"): _Call(self._encode),
            **{(f"numpy.{c}.multiarray", "_reconstruct"): _Call(self._reconstruct) for c in ("core", "_core")},
            **{(f"numpy.{c}.multiarray", "scalar"): _Call(_scalar) for c in ("core", "_core")},
            **{(f"numpy.{c}.numeric", "_frombuffer"): _Call(self._from_buffer) for c in ("core", "_core")},
        }

    def _spend(self, size: int) -> None:
        """Limit the bytes of copies: a pickle may repeat the same bytes."""
        self._left -= size
        if self._left < 0:
            raise _Refused("the same numbers many times")

    def _reconstruct(self, kind: Any, shape: Any, code: Any) -> np.ndarray:
        """Return the empty array of a pickled one; its state follows."""
        if kind is not _ARRAY or tuple(shape) != (0,):
            raise _Refused("an array of a custom class")
        found = np.ndarray.__new__(_Array, (0,), "b")
        found._spend = self._spend
        return found

    def _from_buffer(self, buffer: Any, kind: Any, shape: Any, order: str) -> np.ndarray:
        self._spend(len(buffer))
        return _from_buffer(buffer, kind, shape, order)

    def _encode(self, text: str, coding: str = "latin1") -> bytes:
        """Return bytes written by Python 3 for Python 2."""
        if coding not in ("latin1", "latin-1"):
            raise _Refused(f"the coding {coding[:20]!r}")
        self._spend(len(text))
        return text.encode("latin1")

    def find_class(self, module: str, name: str) -> Any:
        if module == "torch" and name in _STORAGES:
            return _Type(_STORAGES[name])
        if (module, name) not in self._calls:
            raise _Refused(f"'{module}.{name}'")
        return self._calls[module, name]

    def persistent_load(self, pid: Any) -> Any:
        if not (isinstance(pid, tuple) and len(pid) == 5 and pid[0] == "storage" and isinstance(pid[1], _Type)):
            raise _Refused("an object that is not a storage")
        data, kind = self._stored.get(str(pid[2])), pid[1].dtype
        if data is None:
            raise _Refused("numbers that are not in the file")
        return np.frombuffer(data, kind, len(data) // kind.itemsize).view(_Array)


def _check_program(program: bytes) -> None:
    """Reject memo indices beyond the file size: the memo would fill the memory."""
    for code, argument, _ in pickletools.genops(program):
        if code.name in ("PUT", "BINPUT", "LONG_BINPUT") and not 0 <= int(argument or 0) <= len(program):
            raise _Refused("a table larger than the file")


def _load(program: bytes, stored: Mapping[str, bytes], where: str) -> Any:
    """Unpickle, with all errors as ClipError."""
    try:
        _check_program(program)
        return _ArrayUnpickler(program, stored).load()
    except _Refused as error:
        raise ClipError(
            f"{where}: asks for {one_line(str(error))}, which arrays do not need: {_advice(where)}"
        ) from None
    except Exception as error:  # a damaged pickle may raise anything
        raise ClipError(f"{where}: is a damaged pickle ({type(error).__name__}): {_advice(where)}") from None


def _advice(where: str) -> str:
    """Return the command that converts a trusted file."""
    name = where.rpartition(":")[2]
    load = f"torch.load('{name}', 'cpu', weights_only=False)" if name.endswith(".pt") else f"joblib.load('{name}')"
    module = "torch" if name.endswith(".pt") else "joblib"
    return (
        f"if you trust it: python -c \"import {module}, numpy as n; d = {load}; n.savez('motion.npz', "
        'poses=..., trans=..., fps=30)"'
    )
