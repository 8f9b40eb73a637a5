"""Statistics of ticks: periods, execution times, missed ticks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


class SampleWindow:
    """Ring buffer of the last n values."""

    def __init__(self, n: int) -> None:
        self._ring, self._count = np.zeros(n), 0

    def add(self, value: float) -> None:
        self._ring[self._count % len(self._ring)] = value
        self._count += 1

    def values(self) -> np.ndarray:
        return self._ring[: min(self._count, len(self._ring))]

    def percentiles(self) -> tuple[float, float]:
        """Return median and 99th percentile; NaN without samples."""
        v = self.values()
        if not len(v):
            return float("nan"), float("nan")
        p50, p99 = np.percentile(v, [50, 99])
        return float(p50), float(p99)

    def clear(self) -> None:
        self._count = 0


@dataclass(frozen=True)
class TickReport:
    """Figures of a window; times in seconds.

    `period_error` is the absolute deviation from the nominal period, `missed_percent` refers to due ticks.
    """

    rate: float
    period_p50: float
    period_p99: float
    period_error_p50: float
    period_error_p99: float
    execution_p50: float
    execution_p99: float
    ticks: int
    missed: int
    missed_percent: float


class TickStatistics:
    """Counts and times of ticks."""

    def __init__(self, rate: float, window: float = 5.0) -> None:
        n = max(10, int(rate * window))
        self.period, self.period_error, self.execution = SampleWindow(n), SampleWindow(n), SampleWindow(n)
        self._nominal = 1.0 / rate
        self.ticks = self.missed = 0
        self._window_ticks = self._window_missed = 0
        self._last_start = float("nan")

    def tick(self, start: float, end: float, skipped: int) -> None:
        """Record a tick.

        Args:
            start: begin of the tick [s].
            end: end of the tick [s].
            skipped: ticks missed since the last one.
        """
        if start == start and self._last_start == self._last_start:
            period = start - self._last_start
            self.period.add(period)
            self.period_error.add(abs(period - self._nominal))
        self._last_start = start
        self.execution.add(end - start)
        self.ticks += 1
        self.missed += skipped
        self._window_ticks += 1
        self._window_missed += skipped

    def report(self) -> TickReport:
        """Return figures since the last report; percentiles cover the sliding window."""
        period, execution = self.period.percentiles(), self.execution.percentiles()
        error = self.period_error.percentiles()
        due = self._window_ticks + self._window_missed
        share = 100.0 * self._window_missed / due if due else 0.0
        self._window_ticks = self._window_missed = 0
        rate = 1.0 / period[0] if period[0] > 0 else 0.0
        return TickReport(rate, *period, *error, *execution, self.ticks, self.missed, share)

    def restart(self) -> None:
        self.period.clear()
        self.period_error.clear()
        self.execution.clear()
        self.ticks = self.missed = self._window_ticks = self._window_missed = 0
        self._last_start = float("nan")
