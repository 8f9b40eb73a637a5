"""Modules that a test imports again, and that are the former ones after it."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest


def forget_modules(monkeypatch: pytest.MonkeyPatch, chosen: Callable[[str], bool]) -> None:
    """Remove modules from `sys.modules` until the end of the test.

    Importing one again also sets the attribute of its package: without its former value, later tests that patch a
    module by its path would patch the new one.
    """
    names = [name for name in sys.modules if chosen(name)]
    for name in names:
        package, _, own = name.rpartition(".")
        if own in getattr(sys.modules.get(package), "__dict__", ()):
            monkeypatch.delattr(sys.modules[package], own)
    for name in names:
        monkeypatch.delitem(sys.modules, name)
