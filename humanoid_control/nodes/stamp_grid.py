"""Stamps of messages that are each one period apart, however late the ticks are."""

from __future__ import annotations

from builtin_interfaces.msg import Time

AHEAD = 50_000_000  # [ns] no tick is later than that


class StampGrid:
    """Stamps at whole periods after the first one: never two closer than a period.

    Late ticks take later places on the grid. Where the first tick was late the stamps are ahead of the present by as
    much; where they are ahead by more, the clock was set back, and the grid begins anew.
    """

    def __init__(self, period: int) -> None:
        """A grid with this period [ns]."""
        self.period = period
        self.restart()

    def restart(self) -> None:
        """The next stamp is the present."""
        self._last: int | None = None

    def next(self, now: int) -> Time:
        """The stamp of a message that is published now [ns]."""
        if self._last is None or self._last - now > max(AHEAD, 2 * self.period):
            self._last = now
        else:
            self._last += self.period * max(1, (now - self._last) // self.period)
        return Time(sec=self._last // 10**9, nanosec=self._last % 10**9)
