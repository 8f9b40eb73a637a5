"""Faces of rooms that load lazily: a name is imported from its module when somebody first asks for it.

What is compiled loads the compiler (60 MB and 0.2 s), SciPy and pinocchio take as long: a node that needs one noun of a
room does not wait for all of them.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any


def attach(
    package: str, modules: Mapping[str, Sequence[str]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` and `__all__` of a package whose names come from its modules.

    Args:
        package: its `__name__`.
        modules: module below the package -> the names that it gives to the face.
    """
    module_of = {name: module for module, names in modules.items() for name in names}

    def load(name: str) -> Any:
        if name not in module_of:
            raise AttributeError(f"module '{package}' has no attribute '{name}'")
        value = getattr(importlib.import_module(f"{package}.{module_of[name]}"), name)
        setattr(sys.modules[package], name, value)  # the next time it is found without asking
        return value

    names = sorted(module_of)
    return load, lambda: names, names
