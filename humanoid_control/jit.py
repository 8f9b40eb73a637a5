"""How the hot kernels are compiled: by numba, once, and kept on disk beside their source."""

from __future__ import annotations

from pathlib import Path

from numba import njit


def _drop_outdated() -> None:
    """Delete compiled kernels that are older than any source of the package that has kernels.

    numba renews what it has compiled only when the file of that very function changes, not when a function called
    from it does; after an update the old code would go on running.
    """
    here = Path(__file__).parent
    newest = 0.0
    for source in here.rglob("*.py"):
        text = source.read_bytes()
        if any(mark in text for mark in (b"import kernel", b"import inlined", b"kernel = njit", b", kernel")):
            newest = max(newest, source.stat().st_mtime)
    for index in here.rglob("__pycache__/*.nbi"):
        try:
            if index.stat().st_mtime < newest:
                index.unlink()
        except OSError:  # not ours to delete, or another process was first
            continue


_drop_outdated()
kernel = njit(cache=True, error_model="numpy")
# For the parts of a loop that is to run on several numbers at once: a call that stays a call would prevent that.
inlined = njit(cache=True, error_model="numpy", forceinline=True)
