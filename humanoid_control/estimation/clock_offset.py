"""Clock offsets: stamps of other computers on the local clock, with jump detection.

A message arrives after it is sent. So the minimum of (arrival - stamp) over a window is the offset of the sender's
clock plus the shortest delay.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Hashable

WINDOW = 10.0  # [s] window of the minimum: clocks drift by less than 1 ms in it
TOLERATED = 0.02  # [s] delay of a correct clock; a larger offset is corrected and reported
JUMP = 0.05  # [s] sudden deviation of a stamp, above delay jitter
SETTLING, FEWEST = 0.2, 3  # [s] and messages that must agree before a new offset is accepted
USELESS = 1.0  # [s] offset beyond which stamps are ignored: arrival times are used
TOLD = 2.0  # [s] duration of a report: diagnostics run once a second
STANDS_STILL = 1.0  # [s] of equal stamps before a report
SOURCES = 16  # maximum number of sources
HINT = "synchronise both clocks with chrony or ptp4l"


class ClockOffset:
    """Local time of the messages of one source.

    Attributes:
        offset: minimum of (arrival - stamp) [s]; NaN if unknown.
        heard_at: arrival of the last message [s].
    """

    def __init__(self) -> None:
        self._window: deque[tuple[float, float]] = deque()  # of (arrival, delay), both increasing
        self._jumped, self._jumped_at = "", -math.inf
        self._stamped_at = self.heard_at = 0.0
        self._forget()

    def _forget(self) -> None:
        self._window.clear()
        self.offset = self._stamp = self._time = self._candidate = math.nan
        self._since, self._count, self._correction = 0.0, 0, 0.0

    def time(self, stamp: float, now: float, arrival: float) -> float:
        """Return the local time of a message [s], never later than now.

        A zero stamp means now; an equal stamp gives an equal time.

        Args:
            stamp: source clock [s].
            now: local clock [s].
            arrival: now on the monotonic clock [s].
        """
        self.heard_at = arrival
        if not stamp > 0:
            self._forget()
            return now
        if stamp != self._stamp:
            self._stamp, self._stamped_at = stamp, arrival
            self._time = self._made(stamp, now, arrival)
        return min(self._time, now)

    def shift(self, step: float) -> None:
        """Shift by a step [s] of the local clock."""
        self._time += step

    @property
    def correction(self) -> float:
        """Correction of stamps [s]; NaN if they are ignored."""
        return self._correction if abs(self.offset) <= USELESS else math.nan

    @property
    def problem(self) -> str:
        """Message about the source's clock, or empty."""
        if self.heard_at - self._jumped_at < TOLD:
            return self._jumped
        if self.heard_at - self._stamped_at > STANDS_STILL and self._stamp == self._stamp:
            return "its stamps do not change: stamp each message when it is measured, or leave stamps empty"
        if abs(self.offset) <= TOLERATED or math.isnan(self.offset):
            return ""
        use = "corrected" if abs(self.offset) <= USELESS else "its stamps are not used"
        return f"the sender's clock is {_apart(self.offset)}, {use}: {HINT}"

    def _made(self, stamp: float, now: float, arrival: float) -> float:
        delay = now - stamp
        if math.isnan(self.offset) and 0 <= delay <= TOLERATED:
            self._accept(delay, arrival)
        off = delay - self.offset
        if abs(off) <= JUMP:
            self._candidate = math.nan
            self._add(delay, arrival)
        elif self._settled(delay, arrival):
            if not math.isnan(off):
                self._report(f"the sender's clock jumped to {_apart(self._candidate)}: {HINT}", arrival)
            self._accept(self._candidate, arrival)
        else:
            if off < 0 or off > USELESS:  # otherwise it may only be late
                self._report(f"a stamp is {_apart(off)} relative to the others: ignored", arrival)
                return now
            return now if math.isnan(off) else stamp + self._correction
        return stamp + self._correction if abs(self.offset) <= USELESS else now

    def _settled(self, delay: float, arrival: float) -> bool:
        if not abs(delay - self._candidate) <= 2 * JUMP:
            self._candidate, self._since, self._count = delay, arrival, 0
        self._candidate, self._count = min(self._candidate, delay), self._count + 1
        return self._count >= FEWEST and arrival - self._since >= SETTLING

    def _accept(self, delay: float, arrival: float) -> None:
        self._window.clear()
        self._add(delay, arrival)
        self._candidate = math.nan

    def _add(self, delay: float, arrival: float) -> None:
        window = self._window
        while window and window[-1][1] >= delay:
            window.pop()
        window.append((arrival, delay))
        while arrival - window[0][0] > WINDOW:
            window.popleft()
        self.offset = window[0][1]
        # A correct clock's delay is real and stays in. Hysteresis keeps corrections from toggling at the tolerance.
        within = TOLERATED if self._correction <= 0 else TOLERATED / 2
        self._correction = 0.0 if 0 <= self.offset <= within else self.offset

    def _report(self, text: str, arrival: float) -> None:
        self._jumped, self._jumped_at = text, arrival


def _apart(offset: float) -> str:
    return f"{abs(offset):.3f} s {'behind' if offset > 0 else 'ahead'}"


class ClockOffsets:
    """Clock offsets of several sources on one topic, distinguished by message content."""

    def __init__(self) -> None:
        self._sources: dict[Hashable, ClockOffset] = {}
        self._arrival = -math.inf

    def time(self, source: Hashable, stamp: float, now: float, arrival: float) -> float:
        """Return `ClockOffset.time` of a source."""
        offset = self._sources.pop(source, None) or ClockOffset()
        if len(self._sources) >= SOURCES:
            del self._sources[next(iter(self._sources))]  # the source silent for longest
        self._sources[source], self._arrival = offset, arrival
        return offset.time(stamp, now, arrival)

    def shift(self, step: float) -> None:
        for offset in self._sources.values():
            offset.shift(step)

    @property
    def problem(self) -> str:
        """Message about a recent source's clock, or empty."""
        since = self._arrival - TOLD
        present = (s for s in reversed(self._sources.values()) if s.heard_at >= since)
        return next((text for offset in present if (text := offset.problem)), "")


class ClockSteps:
    """Detector of steps of the local clock, against the monotonic clock."""

    def __init__(self) -> None:
        self._now = self._monotonic = math.nan

    def detect(self, now: float, monotonic: float) -> float:
        """Return the step of the clock since the last call [s], negative backwards, 0 without a step.

        Slow or fast simulated time is not a step.

        Args:
            now: clock [s].
            monotonic: simultaneous monotonic clock [s].
        """
        passed, elapsed = now - self._now, monotonic - self._monotonic
        self._now, self._monotonic = now, monotonic
        return passed - elapsed if passed < -JUMP or passed - elapsed > USELESS else 0.0
