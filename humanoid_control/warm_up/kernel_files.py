"""Kernels on disk that fit this processor; a wheel's may not.

Separate from `jit`, since every change there recompiles all kernels.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from humanoid_control.compiled import jit


def are_compiled(kernels: Iterable[Any]) -> bool:
    """Return whether all kernels are in memory, or on disk for this processor and these sources."""
    kernels = list(kernels)
    if jit.config.DISABLE_JIT:
        return True
    return jit.are_compiled(kernels) and all(k.signatures or _serves_here(k) for k in kernels)


def _serves_here(compiled: Any) -> bool:
    """Return whether a kernel on disk is for this processor: its key holds LLVM's name and features."""
    own = compiled.targetctx.codegen().magic_tuple()
    return any(code == own for _, code, *_ in compiled._cache._cache_file._load_index())
