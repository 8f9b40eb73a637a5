"""Robots of expensive tests: two that differ in kind by default, all of the catalogue in `make nightly`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from humanoid_control.robots import CATALOGUE

KINDS = ("lola", "hrp2")  # closed loops, gears and toes; a serial robot


def nightly(*values: Any) -> Any:
    """Return a row of a parametrised test that only `make nightly` runs."""
    return pytest.param(*values, marks=pytest.mark.nightly)


def by_kind(names: Iterable[str]) -> list[Any]:
    """Return names of robots for a parametrised test; those that are not the two of `KINDS` run nightly."""
    return [name if name in KINDS else nightly(name) for name in names]


ROBOTS = by_kind(CATALOGUE)
