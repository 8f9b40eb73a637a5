"""Compilation of the hot kernels: by numba, once, and kept on disk until a source that they depend on changes.

`NUMBA_DISABLE_JIT=1` runs every kernel as plain Python (for a debugger, and for coverage), `NUMBA_BOUNDSCHECK=1`
compiles them with checked indices, `NUMBA_CACHE_DIR` says where they are kept.
"""

from __future__ import annotations

import functools
import hashlib
import re
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numba
from numba import njit
from numba.core import codegen

config: Any = numba.config  # untyped
PACKAGE = __name__.rpartition(".")[0]
ROOT = Path(__file__).parent
_IMPORT = re.compile(rf"^[ \t]*from[ \t]+{PACKAGE}((?:\.\w+)*)[ \t]+import[ \t]+(\([^)]*\)|[^\n]*)", re.MULTILINE)
_WORD = re.compile(r'"(\w[\w.]*)"')


@functools.cache
def _imported(source: Path) -> frozenset[Path]:
    """Sources of the package that one source takes names from."""
    found = set()
    text = source.read_text()
    for module, names in _IMPORT.findall(text):
        folder = ROOT.joinpath(*module.split(".")[1:])
        if not folder.is_dir():
            found.add(folder.with_suffix(".py"))
            continue
        for name in re.findall(r"\w+", re.sub(r"#[^\n]*", "", names)):
            found.add(folder / f"{name}.py" if (folder / f"{name}.py").is_file() else folder / "__init__.py")
    if source.name == "__init__.py":  # a face that loads lazily names its modules as strings
        found |= {source.parent / f"{word.replace('.', '/')}.py" for word in _WORD.findall(text)}
    return frozenset(path for path in found if path.is_file())


@functools.cache
def source_stamp(source: Path) -> str:
    """Hash of a source and of all sources of the package that it depends on, however indirectly.

    numba itself looks only at the file of a kernel. But the functions that a kernel calls, and every number that it
    takes from another file, are compiled into it.

    Args:
        source: a file of the package, or one that imports from it.
    """
    needed, waiting = {source}, [source]
    while waiting:
        for path in _imported(waiting.pop()) - needed:
            needed.add(path)
            waiting.append(path)
    digest = hashlib.sha256(f"boundscheck={config.BOUNDSCHECK}".encode())
    for path in sorted(needed):
        digest.update(b"\0" + path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def kernel(function: Any) -> Any:
    """Decorator: compiled at the first call, and kept on disk."""
    return _guarded(njit(cache=True, error_model="numpy")(function))


def inlined(function: Any) -> Any:
    """Decorator for the parts of a loop that is to run on several numbers at once: a call would prevent that."""
    return _guarded(njit(cache=True, error_model="numpy", forceinline=True)(function))


def _guarded(compiled: Any) -> Any:
    """Make what numba has kept valid for these sources only."""
    if not config.DISABLE_JIT:
        source = Path(compiled.py_func.__code__.co_filename)
        # numba offers no other way to say what a kept kernel depends on; test_jit.py fails should these names change.
        kept = compiled._cache._cache_file
        kept._source_stamp = source_stamp(source)
        load = kept._load_index

        def load_index() -> Any:
            try:
                return load()
            except (AttributeError, ImportError):  # kept for records that have another name or home by now
                return {}

        kept._load_index = load_index
    return compiled


def are_compiled(kernels: Iterable[Any]) -> bool:
    """True where all these kernels are in memory or, compiled from the sources as they are, on disk."""
    return bool(config.DISABLE_JIT) or all(k.signatures or k._cache._cache_file._load_index() for k in kernels)


# -------- loading of kept kernels

_ELF = b"\x7fELF\x02\x01"  # 64 bits, little endian
_SYMBOL_TABLE = 2  # kind of section


def defined_symbols(code: bytes) -> set[str]:
    """Names that an object file (ELF of 64 bits, little endian) defines."""
    table, size, count = *struct.unpack_from("<Q", code, 0x28), *struct.unpack_from("<HH", code, 0x3A)
    sections = [struct.unpack_from("<IIQQQQIIQQ", code, table + k * size) for k in range(count)]
    names = set()
    for _, kind, _, _, offset, length, link, *_ in sections:
        if kind == _SYMBOL_TABLE:
            strings = sections[link][4]
            for name, _, _, section, _, _ in struct.iter_unpack("<IBBHQQ", code[offset : offset + length]):
                if name and section:
                    names.add(code[strings + name : code.index(b"\0", strings + name)].decode())
    return names


def _parse_late() -> None:
    """Have numba parse the intermediate code of a kept kernel only where another kernel is compiled with it.

    It does so whenever it loads one, and keeps the result. That takes nine tenths of the time of loading and most of
    the memory: 150 MB for the kernels of simulation, inverse kinematics and retargeting.
    """
    library: Any = codegen.CPUCodeLibrary  # numba offers no other way; test_jit.py fails should these names change
    if hasattr(library, "parses_late"):  # another copy of this file was here
        return
    load, module = library._unserialize.__func__, library._get_module_for_linking

    def unserialize(cls: Any, generator: Any, state: Any) -> Any:
        name, kind, data = state
        if kind != "object" or not data[0].startswith(_ELF):
            return load(cls, generator, state)
        loaded = generator.create_library(name)
        loaded.enable_object_caching()
        loaded._set_compiled_object(data[0])
        loaded._finalize_final_module()
        generator._engine._defined_symbols |= defined_symbols(data[0])
        loaded._unparsed = data[1]
        return loaded

    def module_for_linking(self: Any) -> Any:
        if unparsed := self.__dict__.pop("_unparsed", None):
            self._shared_module = llvm.parse_bitcode(unparsed)
        return module(self)

    library._unserialize, library._get_module_for_linking = classmethod(unserialize), module_for_linking
    library.parses_late = True


_NEEDED = ("_unserialize", "_get_module_for_linking", "_finalize_final_module", "_set_compiled_object")
if not config.DISABLE_JIT and all(hasattr(codegen.CPUCodeLibrary, name) for name in _NEEDED):
    _parse_late()
