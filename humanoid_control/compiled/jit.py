"""Compilation of kernels by numba, cached on disk until compiled code or values change.

| variable | effect |
|---|---|
| `NUMBA_DISABLE_JIT=1` | kernels run as plain Python, for a debugger and for coverage |
| `NUMBA_BOUNDSCHECK=1` | kernels are compiled with checked indices |
| `NUMBA_CACHE_DIR` | folder of the compiled kernels |
| `HUMANOID_PLAIN_NUMBA=1` | plain numba, without the changes of this package to it |
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterable
from typing import Any, TypeVar, overload

from numba import njit
from numba.core import caching

from humanoid_control.compiled import linking
from humanoid_control.compiled.pipeline import KernelCompiler
from humanoid_control.compiled.settings import PLAIN_NUMBA, config
from humanoid_control.compiled.stamp import stamp, stamp_of, stamp_of_types

Function = TypeVar("Function", bound=Callable[..., Any])

# No C program calls a kernel. Reference counting and inlining are set for each kernel; otherwise they would be those of
# its first caller.
_OPTIONS: Any = {"error_model": "numpy", "no_cfunc_wrapper": True, "_nrt": False, "forceinline": False}


@overload
def kernel(function: Function) -> Function: ...
@overload
def kernel(*, allocates: bool) -> Callable[[Function], Function]: ...
def kernel(function: Any = None, *, allocates: bool = False) -> Any:
    """Decorator: compile at the first call, and cache on disk.

    Args:
        allocates: the kernel makes, copies or returns arrays, or calls a kernel that returns one. Only such kernels
            count references to arrays; a missing declaration is an error of the compilation.
    """
    return _decorated(function, {"_nrt": allocates})


@overload
def inlined(function: Function) -> Function: ...
@overload
def inlined(*, allocates: bool) -> Callable[[Function], Function]: ...
def inlined(function: Any = None, *, allocates: bool = False) -> Any:
    """Decorator for parts of a vectorised loop, which a call would prevent.

    Args:
        allocates: as for `kernel`.
    """
    return _decorated(function, {"_nrt": allocates, "forceinline": True})


def _decorated(function: Any, options: dict[str, bool]) -> Any:
    if function is None:
        return lambda given: _decorated(given, options)
    pipeline: Any = {} if PLAIN_NUMBA else {"pipeline_class": KernelCompiler}
    compiled: Any = njit(**_OPTIONS | options | pipeline)(function)
    if not config.DISABLE_JIT:
        compiled._cache = _KernelCache(compiled)  # numba offers no other way; test_jit.py fails if it changes
    return compiled


def are_compiled(kernels: Iterable[Any]) -> bool:
    """Return True if all kernels are compiled from their present sources, in memory or on disk."""
    return bool(config.DISABLE_JIT) or all(k.signatures or k._cache.is_filled() for k in kernels)


# -------- kernels on disk


class _KernelPlace(caching.CompileResultCacheImpl):
    """Place of a cached kernel, independent of its line number, unlike in numba."""

    def get_filename_base(self, fullname: str, abiflags: str) -> str:
        name: str = super().get_filename_base(fullname, abiflags)
        return name.replace(f"-{self.locator.get_disambiguator()}.py", ".py")


class _KernelFile(caching.IndexDataCacheFile):
    """Cached forms of a kernel, valid for the same stamp."""

    def __init__(self, folder: str, name: str, kernel: Any) -> None:
        super().__init__(folder, name, None)
        self._kernel = kernel

    def _load_index(self) -> Any:
        if self._source_stamp is None:  # only now are all names of the kernel's module defined
            self._source_stamp = stamp(
                self._kernel, {"boundscheck": config.BOUNDSCHECK, "apart": linking.is_installed(), "plain": PLAIN_NUMBA}
            )
        try:
            return super()._load_index()
        except (AttributeError, ImportError):  # cached for records that have been renamed or moved
            return {}

    def load(self, key: Any) -> Any:
        data = super().load(key)
        if not linking.is_installed() or data is None:
            return data
        (name, kind, parts), *rest = data
        return ((name, kind, (*parts, functools.partial(super().load, key))), *rest)


class _KernelCache(caching.FunctionCache):
    """Cached forms of a kernel by argument types, including records and own types."""

    _impl_class = _KernelPlace

    def __init__(self, kernel: Any) -> None:
        super().__init__(kernel.py_func)
        self._cache_file = _KernelFile(self.cache_path, self._impl.filename_base, kernel)

    def _index_key(self, signature: Any, code: Any) -> Any:
        cells = [cell.cell_contents for cell in self._py_func.__closure__ or ()]
        return signature, code.magic_tuple(), stamp_of_types(getattr(signature, "args", signature)), stamp_of(*cells)

    def save_overload(self, signature: Any, data: Any) -> None:
        with contextlib.suppress(linking.ChangedOnDiskError):  # the next process compiles it again
            super().save_overload(signature, data)

    def is_filled(self) -> bool:
        """Return True if a form of the kernel is on disk."""
        return bool(self._cache_file._load_index())


if not (config.DISABLE_JIT or PLAIN_NUMBA):
    linking.install()
