"""Time line of a run: violations of bounds with begin and end."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from humanoid_control.terminal import ReportTable

LATE, LIMIT, CONTACT, ESTIMATE, COMMAND, POWER, REPORTED = (
    "late tick",
    "limit",
    "contact",
    "estimate",
    "command",
    "power",
    "reported",
)
KINDS = (LATE, LIMIT, CONTACT, ESTIMATE, COMMAND, POWER, REPORTED)
"""Kinds of violations; `reported` is a warning or error published by a node."""
SHOWN = 40  # rows of the printed table


@dataclass(frozen=True)
class Violation:
    """Violation of a bound.

    Attributes:
        begin: recording time [s], as `end`.
        kind: one of `KINDS`.
        text: joint, value and bound.
        worst: value farthest beyond the bound.
        bound: None without a number.
    """

    begin: float
    end: float
    kind: str
    source: str
    text: str
    worst: float | None = None
    bound: float | None = None
    unit: str = ""


@dataclass(frozen=True)
class Timeline:
    """Violations of a run, ordered by begin.

    Attributes:
        robot: name; empty: unknown, joint limits not checked.
        begin: start of the checks [s].
        missing: missing quantities, with reasons.
    """

    bag: str
    robot: str
    duration: float
    begin: float
    violations: tuple[Violation, ...]
    checked: tuple[str, ...]
    missing: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """Return plain values."""
        rows = [vars(v) for v in self.violations]
        return {
            "bag": self.bag,
            "robot": self.robot,
            "duration_s": self.duration,
            "judged_from_s": self.begin,
            "healthy": not rows,
            "first": rows[0] if rows else None,
            "violations": rows,
            "checked": list(self.checked),
            "not_checked": list(self.missing),
        }

    def headline(self) -> str:
        """Return the first violation, or that there is none, as a sentence."""
        if not self.violations:
            return f"{self.bag}: nothing was violated in {self.duration - self.begin:.1f} s"
        v = self.violations[0]
        return f"{self.bag}: first at {v.begin:.3f} s: {v.kind}, {v.source}: {v.text}"

    def parts(self) -> list[ReportTable | str]:
        """Return the time line as sentences and a table."""
        out: list[ReportTable | str] = [self.headline()]
        if self.violations:
            rows = [[f"{v.begin:.3f}", f"{v.end - v.begin:.3f}", v.kind, v.source, v.text] for v in self.violations]
            out.append(ReportTable("time line [s]", ["at", "for", "quantity", "source", "what"], rows[:SHOWN]))
            if len(rows) > SHOWN:
                out.append(f"and {len(rows) - SHOWN} more: --json or --html lists all")
        out.append(f"checked: {', '.join(self.checked) or 'nothing'}")
        if self.missing:
            out.append(f"not checked: {'; '.join(self.missing)}")
        return out


def without_numbers(text: str) -> str:
    """Return a text without its numbers, so that a violation with changing values stays the same."""
    return " ".join(w for w in text.split() if not any(c.isdigit() for c in w) or "_" in w)


def spans(times: np.ndarray, bad: np.ndarray, shortest: float = 0.0, join: float = 0.1) -> Iterable[tuple[int, int]]:
    """Return (first, last) index of the intervals in which a condition holds.

    Args:
        shortest: minimum duration [s]; 0: one sample counts.
        join: gap below which intervals are merged [s].
    """
    found: list[list[int]] = []
    for k in np.flatnonzero(bad):
        if found and times[k] - times[found[-1][1]] <= join:
            found[-1][1] = int(k)
        else:
            found.append([int(k), int(k)])
    return [(a, b) for a, b in found if times[b] - times[a] >= shortest]
