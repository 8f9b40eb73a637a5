"""The time line of a run: violations of bounds, each from its beginning to its end."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from humanoid_control.terminal import Table

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
"""Kinds of violations; `reported` is a warning or an error that a node itself published."""
SHOWN = 40  # rows of the printed table


@dataclass(frozen=True)
class Violation:
    """One bound that did not hold for a while.

    Attributes:
        begin, end: on the time line of the recording [s].
        kind: one of `KINDS`.
        source: topic or node.
        text: joint, value and bound, in words.
        worst: the value farthest beyond the bound.
        bound: None where there is no number.
        unit: of both.
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
    """All violations of a run in the order in which they began.

    Attributes:
        bag: path of the recording.
        robot: its name; empty: not known, limits of joints were not checked.
        duration: of the recording [s].
        begin: from when on it was judged [s].
        violations: the earliest first.
        checked: quantities that the recording has.
        missing: quantities that it has not, with the reason.
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
        """Return the first violation in one sentence, or that there was none."""
        if not self.violations:
            return f"{self.bag}: nothing was violated in {self.duration - self.begin:.1f} s"
        v = self.violations[0]
        return f"{self.bag}: first at {v.begin:.3f} s: {v.kind}, {v.source}: {v.text}"

    def parts(self) -> list[Table | str]:
        """Return the time line as sentences and a table."""
        out: list[Table | str] = [self.headline()]
        if self.violations:
            rows = [[f"{v.begin:.3f}", f"{v.end - v.begin:.3f}", v.kind, v.source, v.text] for v in self.violations]
            out.append(Table("time line [s]", ["at", "for", "quantity", "source", "what"], rows[:SHOWN]))
            if len(rows) > SHOWN:
                out.append(f"and {len(rows) - SHOWN} more: --json or --html lists all")
        out.append(f"checked: {', '.join(self.checked) or 'nothing'}")
        if self.missing:
            out.append(f"not checked: {'; '.join(self.missing)}")
        return out


def without_numbers(text: str) -> str:
    """Return a text without its numbers, so that a violation whose value changes stays the same one."""
    return " ".join(w for w in text.split() if not any(c.isdigit() for c in w) or "_" in w)


def spans(times: np.ndarray, bad: np.ndarray, shortest: float = 0.0, join: float = 0.1) -> Iterable[tuple[int, int]]:
    """Intervals in which a condition holds, as first and last index.

    Args:
        times: (T,) [s].
        bad: (T,) the condition.
        shortest: intervals below it are left out [s]; 0: one sample counts.
        join: intervals this near to each other are one [s].
    """
    found: list[list[int]] = []
    for k in np.flatnonzero(bad):
        if found and times[k] - times[found[-1][1]] <= join:
            found[-1][1] = int(k)
        else:
            found.append([int(k), int(k)])
    return [(a, b) for a, b in found if times[b] - times[a] >= shortest]
