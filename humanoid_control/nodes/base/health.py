"""Open problems of a node: each said when it begins and when it ends."""

from __future__ import annotations

import enum
from collections.abc import Callable


class Level(enum.IntEnum):
    """Severity, as in diagnostic_msgs/DiagnosticStatus."""

    OK = 0
    WARN = 1
    ERROR = 2


class Health:
    """Open problems by key. Each is logged when it begins and when it ends, not while it lasts.

    Attributes:
        open: problem by key. seen: how often each began.
    """

    def __init__(self, log: Callable[[Level, str], None]) -> None:
        self._log = log
        self.open: dict[str, tuple[Level, str]] = {}
        self.seen: dict[str, int] = {}
        self.news = False  # a problem began or ended, and that was not published yet

    def report(self, key: str, level: Level, message: str) -> None:
        """Open a problem, or keep it open (call again every tick while it lasts)."""
        if key not in self.open:
            self.seen[key] = self.seen.get(key, 0) + 1
            self._log(level, message)
            self.news = True
        self.open[key] = (level, message)

    def clear(self, key: str) -> None:
        """Close a problem (cheap to call when it never was open)."""
        if key in self.open:
            _, message = self.open.pop(key)
            self._log(Level.OK, f"recovered: {message}")
            self.news = True

    def check(self, key: str, bad: bool, level: Level, message: str) -> bool:
        """Report or clear, by a condition; returns the condition."""
        if bad:
            self.report(key, level, message)
        else:
            self.clear(key)
        return bad

    def worst(self) -> tuple[Level, str]:
        """The highest level of all open problems, and all their messages in one line."""
        if not self.open:
            return Level.OK, "ok"
        level = max(v[0] for v in self.open.values())
        return level, "; ".join(m for _, m in sorted(self.open.values(), key=lambda v: -v[0]))
