"""Simulated time beside real time: how much of it is due, and whether it was kept up with."""

from __future__ import annotations

from collections import deque

PHASE = 0.05  # of a period: a tick that comes on time, to rounding, has its own period due
WINDOW = 2.0  # [s] over which the achieved factor is taken


class Pacer:
    """Says how many periods of simulated time are due.

    What was missed is made up for as long as it is little. More than `limit` behind, it is given up: then simulated
    time passes more slowly, and `achieved` says how slowly. There is nothing that could pile up.

    Attributes:
        factor: simulated by real time; 0: as fast as possible.
        lost: simulated time that was given up [s].
    """

    def __init__(self, period: float, factor: float, limit: float = 0.1) -> None:
        """Prepare.

        Args:
            period: simulated time that is done in one piece [s].
            factor: 0 or more.
            limit: largest backlog [s] of real time.
        """
        self.period, self.factor, self.limit = period, factor, limit
        self.restart(0.0)

    def restart(self, now: float) -> None:
        """Count from here, as after a pause."""
        self._origin, self._done, self.lost = now, 0, 0.0
        self._history: deque[tuple[float, int]] = deque([(now, 0)])
        self._total = 0

    def due(self, now: float) -> int:
        """Periods to simulate now; a large number where it shall go as fast as possible.

        Args:
            now: on the monotonic clock [s].
        """
        if not self.factor:
            return 1_000_000
        behind = (now - self._origin) * self.factor / self.period + PHASE - self._done
        most = max(1.0, self.limit * self.factor / self.period)
        if behind > most:
            given_up = int(behind - most)
            self._done += given_up
            self.lost += given_up * self.period
            behind -= given_up
        return max(0, int(behind + 1))

    def did(self, periods: int, now: float) -> None:
        """So many were simulated."""
        self._done += periods
        self._total += periods
        self._history.append((now, self._total))
        while now - self._history[0][0] > WINDOW and len(self._history) > 2:
            self._history.popleft()

    @property
    def achieved(self) -> float:
        """Simulated by real time over the last two seconds; NaN where there is no telling yet."""
        (t0, n0), (t1, n1) = self._history[0], self._history[-1]
        return (n1 - n0) * self.period / (t1 - t0) if t1 - t0 > 0.25 * WINDOW else float("nan")

    @property
    def slow(self) -> bool:
        """Whether the factor asked for is missed by more than 5 %."""
        return bool(self.factor) and self.achieved < 0.95 * self.factor
