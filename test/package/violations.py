"""Fail a rule once, with the list of everything that breaks it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def place(path: Path, line: int | None = None) -> str:
    """Return `file:line` of a path inside the repository."""
    shown = str(path.relative_to(ROOT))
    return shown if line is None else f"{shown}:{line}"


def assert_none(violations: Iterable[str]) -> None:
    """Fail with all violations, one a line."""
    found = list(violations)
    assert not found, f"{len(found)} violation{'s'[: len(found) != 1]}:\n" + "\n".join(found)
