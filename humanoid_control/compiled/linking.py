"""Linking and loading of kernels: large kernels are called in place, and only machine code is loaded.

numba copies a kernel into each of its callers. Here only small kernels are copied. A cached kernel contains the machine
code of the large kernels that it calls, so its file is complete; a process uses the first copy that it meets. The
intermediate code of a loaded kernel is parsed only to compile a copy into another kernel.
"""

from __future__ import annotations

import functools
import struct
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

import llvmlite.binding as llvm
from numba.core import codegen, serialize

from humanoid_control.compiled.settings import PACKAGE

_ELF = b"\x7fELF\x02\x01"  # 64 bits, little endian
_SYMBOL_TABLE = 2  # kind of section
_FUNCTION, _GLOBAL = 2, 1  # kind and binding of a symbol
_WRAPPERS = ("_ZN7cpython", "cfunc.")  # entries from Python and C
_LARGE = 24_000  # bytes of machine code above which a kernel is called, not copied
_large: Any = weakref.WeakValueDictionary()  # separate libraries by their entries
_NEEDED = (
    "_unserialize",
    "_get_module_for_linking",
    "_finalize_final_module",
    "_set_compiled_object",
    "_get_compiled_object",
    "add_linking_library",
    "finalize",
    "serialize_using_object_code",
)


class ChangedOnDiskError(Exception):
    """A kernel was loaded from disk, but differs there now."""


class Symbol(NamedTuple):
    """Symbol that an object file defines.

    Attributes:
        size: [bytes].
        strong: no other file may define it.
    """

    name: str
    size: int
    function: bool
    strong: bool


def defined_symbols(code: bytes) -> list[Symbol]:
    """Return the symbols that an object file (64-bit little-endian ELF) defines."""
    table, size, count = *struct.unpack_from("<Q", code, 0x28), *struct.unpack_from("<HH", code, 0x3A)
    sections = [struct.unpack_from("<IIQQQQIIQQ", code, table + k * size) for k in range(count)]
    symbols = []
    for _, kind, _, _, offset, length, link, *_ in sections:
        if kind == _SYMBOL_TABLE:
            strings = sections[link][4]
            for name, info, _, section, _, size in struct.iter_unpack("<IBBHQQ", code[offset : offset + length]):
                if name and section:
                    text = code[strings + name : code.index(b"\0", strings + name)].decode()
                    symbols.append(Symbol(text, size, info & 15 == _FUNCTION, info >> 4 == _GLOBAL))
    return symbols


class KernelLibrary(codegen.JITCodeLibrary):  # type: ignore[misc, unused-ignore]
    """Compiled code of a kernel.

    Attributes:
        entry: name of the kernel if it is called in place, otherwise an empty text.
        apart: separate libraries that it calls.
    """

    entry = ""
    apart: tuple[KernelLibrary, ...] = ()
    _read: Callable[[], bytes | None] | None = None  # reads the machine code again, if it came from disk
    _unparsed = b""  # intermediate code

    def finalize(self) -> None:
        """Link the small kernels that it calls, and compile."""
        called = dict.fromkeys(self._linking_libraries)
        separate = [each for each in called if getattr(each, "entry", "")]
        self._linking_libraries = [each for each in called if each not in separate]
        indirect = (a for each in called for a in getattr(each, "apart", ()))
        self.apart = tuple(dict.fromkeys([*indirect, *separate]))
        for each in self.apart:
            self._reload_init.update(each._reload_init)
        super().finalize()
        if (code := self.__dict__.get("_compiled_object")) and code.startswith(_ELF):
            symbols = defined_symbols(code)
            size = sum(s.size for s in symbols if s.function and not s.name.startswith(_WRAPPERS))
            entry = _entry(symbols) if size > _LARGE else ""
            if entry and b"alwaysinline" not in self._final_module.get_function(entry).attributes:
                self.entry, _large[entry] = entry, self

    def serialize_using_object_code(self) -> Any:
        """Return the cached state: large libraries that it calls replace their intermediate code."""
        self._ensure_finalized()
        shared = b"" if self.entry else self._get_module_for_linking().as_bitcode()
        apart = [(each.name, each.entry, each.machine_code()) for each in self.apart]
        return self.name, "object", (self._get_compiled_object(), shared, self.entry, apart)

    def machine_code(self) -> bytes:
        """Return the machine code of a separate library, compiled or read again from disk.

        Raises:
            ChangedOnDiskError: if the file contains another kernel by now.
        """
        if self._read is None:
            return bytes(self._get_compiled_object())
        if code := self._read():
            return bytes(code)
        raise ChangedOnDiskError(self.name)

    @classmethod
    def _unserialize(cls, generator: Any, state: Any) -> Any:
        name, kind, data = state
        if kind != "object":
            return super()._unserialize(generator, state)
        code, shared, entry, called, *read = data

        def reader(entry: str, code: bytes) -> Callable[[], bytes | None]:
            if not read:  # a foreign kernel that calls one of this package
                return lambda: code

            def again() -> bytes | None:
                found = read[0]()
                code, _, own, called = found[0][2] if found else (None, None, None, ())
                return code if own == entry else next((code for _, name, code in called if name == entry), None)

            return again

        # Place called libraries before their callers: the addresses of calls are resolved at once.
        apart = tuple(_place(generator, name, entry, code, reader(entry, code)) for name, entry, code in called)
        loaded = _place(generator, name, entry, code, reader(entry, code))
        if not entry:
            loaded._unparsed = shared
        loaded.apart = apart
        return loaded

    def _get_module_for_linking(self) -> Any:
        if self._unparsed:
            self._shared_module, self._unparsed = llvm.parse_bitcode(self._unparsed), b""
        return super()._get_module_for_linking()


def _entry(symbols: list[Symbol]) -> str:
    """Return the name of the package kernel of an object file, or an empty text."""
    start = f"_ZN{len(PACKAGE)}{PACKAGE}"
    return next((s.name for s in symbols if s.strong and s.function and s.name.startswith(start)), "")


def _place(generator: Any, name: str, entry: str, code: bytes, read: Any) -> Any:
    """Load machine code, unless the same separate kernel is loaded."""
    if entry in _large:
        return _large[entry]
    loaded = generator.create_library(name)
    loaded.enable_object_caching()
    loaded._set_compiled_object(code)
    loaded._finalize_final_module()
    generator._engine._defined_symbols |= {symbol.name for symbol in defined_symbols(code)}
    if entry:
        loaded.entry, loaded._read, _large[entry] = entry, read, loaded
    return loaded


def is_installed() -> bool:
    """Return True if new libraries are a `KernelLibrary`."""
    return codegen.JITCPUCodegen._library_class is not codegen.JITCodeLibrary


def install() -> None:
    """Replace the class of libraries, and cache the class lookup of kernel results.

    numba does this lookup at each call, in Python; an interrupt during it crashes the process. numba offers no other
    way for both; test_jit.py fails if the names change.
    """
    if not is_installed() and all(hasattr(codegen.JITCodeLibrary, name) for name in _NEEDED):
        codegen.JITCPUCodegen._library_class = KernelLibrary
    known: Any = serialize
    if hasattr(known, "_numba_unpickle") and not hasattr(known._numba_unpickle, "cache_info"):
        known._numba_unpickle = functools.cache(known._numba_unpickle)
