"""Lazy public APIs: a package imports a name from its module at the first use.

Compiled modules load the compiler (60 MB and 0.2 s), and SciPy and pinocchio take as long.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any


def attach(
    package: str, modules: Mapping[str, Sequence[str]], public: Sequence[str] | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return `__getattr__`, `__dir__` and `__all__` of a package that exports names of its modules.

    Args:
        modules: exported names by module below the package.
        public: names with a stability promise (`docs/public_api.md`); default: all.
    """
    module_of = {name: module for module, names in modules.items() for name in names}

    def load(name: str) -> Any:
        if name not in module_of:
            raise AttributeError(f"module '{package}' has no attribute '{name}'")
        value = getattr(importlib.import_module(f"{package}.{module_of[name]}"), name)
        setattr(sys.modules[package], name, value)  # later uses skip this function
        return value

    names = sorted(module_of)
    return load, lambda: names, names if public is None else sorted(public)
