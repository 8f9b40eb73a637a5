"""Compilation of the hot kernels: by numba, once, and kept on disk until a source that they depend on changes.

`NUMBA_DISABLE_JIT=1` runs every kernel as plain Python (for a debugger, and for coverage), `NUMBA_BOUNDSCHECK=1`
compiles them with checked indices, `NUMBA_CACHE_DIR` says where they are kept.
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numba
from numba import njit

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
