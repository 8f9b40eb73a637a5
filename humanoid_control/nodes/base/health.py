"""Open problems of a node, logged at begin and end."""

from __future__ import annotations

import enum
from collections.abc import Callable


class Level(enum.IntEnum):
    """Severity, as in diagnostic_msgs/DiagnosticStatus."""

    OK = 0
    WARN = 1
    ERROR = 2


class Health:
    """Open problems by key.

    Attributes:
        open: problem by key.
        seen: number of begins by key.
    """

    def __init__(self, log: Callable[[Level, str], None]) -> None:
        self._log = log
        self.open: dict[str, tuple[Level, str]] = {}
        self.seen: dict[str, int] = {}
        self.news = False  # an unpublished change

    def report(self, key: str, level: Level, message: str) -> None:
        """Open a problem, or keep it open; call every tick."""
        if key not in self.open:
            self.seen[key] = self.seen.get(key, 0) + 1
            self._log(level, message)
            self.news = True
        self.open[key] = (level, message)

    def clear(self, key: str) -> None:
        """Close a problem, if open."""
        if key in self.open:
            _, message = self.open.pop(key)
            self._log(Level.OK, f"recovered: {message}")
            self.news = True

    def check(self, key: str, bad: bool, level: Level, message: str) -> bool:
        """Report or clear a problem; return its condition."""
        if bad:
            self.report(key, level, message)
        else:
            self.clear(key)
        return bad

    def worst(self) -> tuple[Level, str]:
        """Return the highest level, and all messages in one line."""
        if not self.open:
            return Level.OK, "ok"
        level = max(v[0] for v in self.open.values())
        return level, "; ".join(m for _, m in sorted(self.open.values(), key=lambda v: -v[0]))
