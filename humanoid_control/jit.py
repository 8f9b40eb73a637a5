"""How the hot kernels are compiled: by numba, once, and kept on disk beside their source."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from numba import njit

CONSTANTS = ("layout.py",)  # numbers that are compiled into kernels of other files


def _newest_source() -> float:
    """When a source of the package that has kernels was last changed."""
    newest = 0.0
    for source in Path(__file__).parent.rglob("*.py"):
        text = source.read_bytes()
        if source.name in CONSTANTS or any(
            mark in text for mark in (b"import kernel", b"import inlined", b"def kernel", b", kernel")
        ):
            newest = max(newest, source.stat().st_mtime)
    return newest


_NEWEST, _looked_at = _newest_source(), set[str]()


def _drop_outdated(folder: str) -> None:
    """Delete compiled kernels that are older than any source of the package that has kernels.

    numba renews what it has compiled only when the file of that very function changes, not when a function called
    from it does; after an update the old code would go on running.

    Args:
        folder: where numba keeps the kernels of one folder of sources: beside them, in the user's cache where that
            cannot be written, or under NUMBA_CACHE_DIR.
    """
    if folder in _looked_at:
        return
    _looked_at.add(folder)
    for index in Path(folder).glob("*.nbi"):
        try:
            if index.stat().st_mtime < _NEWEST:
                index.unlink()
        except OSError:  # not ours to delete, or another process was first
            continue


def kernel(function: Any) -> Any:
    """Decorator: compiled at the first call, and kept on disk."""
    return _kept(njit(cache=True, error_model="numpy")(function))


def inlined(function: Any) -> Any:
    """Decorator for the parts of a loop that is to run on several numbers at once: a call would prevent that."""
    return _kept(njit(cache=True, error_model="numpy", forceinline=True)(function))


def _kept(compiled: Any) -> Any:
    _drop_outdated(str(compiled.stats.cache_path))
    return compiled


def are_compiled(kernels: Iterable[Any]) -> bool:
    """Whether all these kernels are in memory or on disk."""
    return all(
        k.signatures or any(Path(str(k.stats.cache_path)).glob(f"*.{k.py_func.__name__}-*.nbi")) for k in kernels
    )
