"""Kernels on disk: which of them serve this processor. Those that came with a wheel may be for another one.

It is apart from `jit`, whose every change compiles all kernels anew.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from humanoid_control import jit


def are_compiled(kernels: Iterable[Any]) -> bool:
    """True where all kernels are in memory, or on disk for this processor and the sources as they are."""
    kernels = list(kernels)
    if jit.config.DISABLE_JIT:
        return True
    return jit.are_compiled(kernels) and all(k.signatures or _serves_here(k) for k in kernels)


def _serves_here(compiled: Any) -> bool:
    """Test whether a form of a kernel on disk is for this processor: its key holds LLVM's name and features of it."""
    own = compiled.targetctx.codegen().magic_tuple()
    return any(code == own for _, code, *_ in compiled._cache._cache_file._load_index())
