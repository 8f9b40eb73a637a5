"""Arrays in pickled files (`.pkl`, `.pt`), read without running what is in them.

A pickle is a program. Only the few calls that build arrays, tensors, and ordered dictionaries of them are followed
here; a file that asks for anything else is refused, with the command that turns it into arrays. Tensors need no torch.
"""

from __future__ import annotations

import io
import pickle
import zipfile
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from humanoid_control.errors import ClipError, first_line, one_line

MOST_BYTES = 4 * 2**30  # of the numbers in one file
_STORAGES = {
    "FloatStorage": "<f4", "DoubleStorage": "<f8", "HalfStorage": "<f2", "LongStorage": "<i8", "IntStorage": "<i4",
    "ShortStorage": "<i2", "ByteStorage": "u1", "CharStorage": "i1", "BoolStorage": "?",
}  # fmt: skip
_NESTING = 6  # levels of dictionaries that are looked through


def load_pickle(data: bytes, where: str) -> Any:
    """What a pickle of arrays holds: dictionaries, lists, numbers, texts and numpy arrays.

    Args:
        data: the bytes of the file, of Python 2 too. where: the file, for messages.

    Raises:
        ClipError: it is damaged, or asks for more than that.
    """
    if data[:4] == b"PK\x03\x04":
        return load_tensors(data, where)
    return _load(_ArrayUnpickler(io.BytesIO(data), {}), where)


def load_tensors(data: bytes, where: str) -> Any:
    """What a file of `torch.save` holds; tensors come as arrays (since torch 1.6: a zip archive).

    Raises:
        ClipError: it is damaged, older, or holds more than tensors.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            if sum(info.file_size for info in archive.infolist()) > MOST_BYTES:
                raise ClipError(f"{where}: unpacks to more than {MOST_BYTES / 2**30:.0f} GiB: is that a recording?")
            index = next((n for n in archive.namelist() if n.endswith("/data.pkl")), None)
            if index is None:
                raise ClipError(f"{where}: is no file of torch.save: {_advice(where)}")
            folder = index.removesuffix("data.pkl")
            if any(n == f"{folder}byteorder" and archive.read(n) != b"little" for n in archive.namelist()):
                raise ClipError(f"{where}: holds numbers in big-endian order: {_advice(where)}")
            stored = {
                n.removeprefix(f"{folder}data/"): archive.read(n)
                for n in archive.namelist()
                if n.startswith(f"{folder}data/")
            }
            program = archive.read(index)
    except (zipfile.BadZipFile, OSError, EOFError, NotImplementedError, RuntimeError) as error:
        hint = "saved before torch 1.6, or damaged" if data[:1] == b"\x80" else first_line(error)
        raise ClipError(f"{where}: is no zip archive of torch.save ({hint}): {_advice(where)}") from None
    return _load(_ArrayUnpickler(io.BytesIO(program), stored), where)


def named_arrays(content: Any, where: str) -> dict[str, np.ndarray]:
    """The arrays of the first person in what a file holds, by name, out of dictionaries in dictionaries.

    `smpl_params_global` (GVHMR) is entered before all else and `smpl_params_incam` never: a camera may be tilted. Of
    several persons (WHAM counts them) the first is taken.

    Raises:
        ClipError: there is none.
    """
    found = _arrays_in(content, _NESTING)
    if not found:
        raise ClipError(f"{where}: holds no named arrays: {_advice(where)}")
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


# -------- the few calls that are followed


class _Refused(Exception):
    """A pickle asks for a call that builds no array."""


def _rebuild_tensor(storage: np.ndarray, offset: int, size: tuple[int, ...], stride: tuple[int, ...], *_: Any) -> Any:
    """A tensor as an array of its own: a window on its storage, which must hold it."""
    size, stride, offset = tuple(map(int, size)), tuple(map(int, stride)), int(offset)
    if len(size) != len(stride) or offset < 0 or min((*size, *stride), default=0) < 0:
        raise _Refused("a tensor of impossible shape")
    last = offset + sum((n - 1) * s for n, s in zip(size, stride, strict=True))
    if 0 not in size and last >= len(storage):
        raise _Refused("a tensor larger than its storage")
    if 0 in size:
        return np.zeros(size, storage.dtype)
    window = np.lib.stride_tricks.as_strided(
        storage[offset:], size, tuple(s * storage.itemsize for s in stride), writeable=False
    )
    if window.size > len(storage):  # a stride of zero repeats: no recording does, and it could fill the memory
        raise _Refused("a tensor larger than its storage")
    return window.copy()


def _reconstruct(kind: type, shape: tuple[int, ...], code: bytes) -> np.ndarray:
    """The empty array that a pickled one begins as; its state follows."""
    if kind is not np.ndarray or tuple(shape) != (0,):
        raise _Refused("an array of a class of its own")
    return np.ndarray.__new__(np.ndarray, (0,), "b")


def _dtype(code: Any, *_: Any) -> np.dtype:
    """A type of numbers or of texts; of objects none."""
    found = np.dtype(code)
    if found.hasobject or found.kind not in "biufSU":
        raise _Refused("an array of objects")
    return found


def _scalar(dtype: np.dtype, data: Any = b"") -> Any:
    """A numpy number."""
    data = data.encode("latin1") if isinstance(data, str) else data
    return np.frombuffer(data, dtype)[0]


def _from_buffer(buffer: Any, dtype: np.dtype, shape: tuple[int, ...], order: str) -> np.ndarray:
    """An array as protocol 5 writes it."""
    return np.frombuffer(bytes(buffer), dtype).reshape(shape, order="F" if order == "F" else "C").copy()


def _encode(text: str, coding: str = "latin1") -> bytes:
    """Bytes as Python 3 writes them for Python 2."""
    if coding not in ("latin1", "latin-1"):
        raise _Refused(f"the coding {coding[:20]!r}")
    return text.encode("latin1")


_CALLS: dict[tuple[str, str], Callable[..., Any]] = {
    ("collections", "OrderedDict"): OrderedDict,
    ("torch._utils", "_rebuild_tensor_v2"): _rebuild_tensor,
    ("torch._utils", "_rebuild_parameter"): lambda tensor, *_: tensor,
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): _dtype,
    ("_codecs", "encode"): _encode,
    **{(f"numpy.{core}.multiarray", "_reconstruct"): _reconstruct for core in ("core", "_core")},
    **{(f"numpy.{core}.multiarray", "scalar"): _scalar for core in ("core", "_core")},
    **{(f"numpy.{core}.numeric", "_frombuffer"): _from_buffer for core in ("core", "_core")},
}


class _ArrayUnpickler(pickle.Unpickler):
    """Follows only the calls of `_CALLS`.

    Args:
        file: the pickle. stored: bytes of the storages of tensors, by their names.
    """

    def __init__(self, file: io.BytesIO, stored: Mapping[str, bytes]) -> None:
        super().__init__(file, encoding="latin1")
        self._stored = stored

    def find_class(self, module: str, name: str) -> Any:
        if module == "torch" and name in _STORAGES:
            return np.dtype(_STORAGES[name])
        if (module, name) not in _CALLS:
            raise _Refused(f"'{module}.{name}'")
        return _CALLS[module, name]

    def persistent_load(self, pid: Any) -> Any:
        if not (isinstance(pid, tuple) and len(pid) == 5 and pid[0] == "storage" and isinstance(pid[1], np.dtype)):
            raise _Refused("something that is no storage")
        data, kind = self._stored.get(str(pid[2])), pid[1]
        if data is None:
            raise _Refused("numbers that are not in the file")
        return np.frombuffer(data[: len(data) // kind.itemsize * kind.itemsize], kind)


def _load(unpickler: pickle.Unpickler, where: str) -> Any:
    """What the unpickler gives; whatever it raises on a damaged file becomes a ClipError."""
    try:
        return unpickler.load()
    except _Refused as error:
        raise ClipError(f"{where}: asks for {one_line(str(error))}, more than arrays need: {_advice(where)}") from None
    except Exception as error:  # a damaged pickle raises whatever its bytes happen to mean
        raise ClipError(f"{where}: is a damaged pickle ({type(error).__name__}): {_advice(where)}") from None


def _advice(where: str) -> str:
    """The command that makes arrays of a file whose maker is trusted."""
    name = where.rpartition(":")[2]
    load = f"torch.load('{name}', 'cpu', weights_only=False)" if name.endswith(".pt") else f"joblib.load('{name}')"
    module = "torch" if name.endswith(".pt") else "joblib"
    return (
        f"if you trust it: python -c \"import {module}, numpy as n; d = {load}; n.savez('motion.npz', "
        'poses=..., trans=..., fps=30)"'
    )
