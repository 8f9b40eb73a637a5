"""Stamps of other computers on this one's clock: offsets estimated, jumps noticed, useless stamps left out.

Two clocks that nobody keeps together differ by seconds; one may be set while it runs, a driver may give no stamps, and
a single stamp may be nonsense. A message cannot come before it was sent, so the least of (arrival - stamp) over some
time is the offset of the sender's clock plus the shortest time under way, and what is later by more was late.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Hashable

WINDOW = 10.0  # [s] over which the least is taken: clocks drift by less than a millisecond in it
TOLERATED = 0.02  # [s] under way, of a clock that is right; a greater offset is corrected and reported
JUMP = 0.05  # [s] by which a stamp may be off at once: delays jitter
SETTLING, FEWEST = 0.2, 3  # [s] and messages that must agree with each other before a new offset is believed
USELESS = 1.0  # [s] of offset beyond which stamps tell nothing: arrival is taken
TOLD = 2.0  # [s] for which a jump is reported: diagnostics come once a second
STANDS_STILL = 1.0  # [s] of the same stamp after which it is reported
SOURCES = 16  # that are told apart
HINT = "set both clocks by chrony or ptp4l"


class ClockOffset:
    """Time of one source's messages on this computer's clock.

    Attributes:
        offset: least of (arrival - stamp) [s]; NaN until it is known.
        heard_at: arrival of its last message [s].
    """

    def __init__(self) -> None:
        self._window: deque[tuple[float, float]] = deque()  # of (arrival, delay), both growing
        self._jumped, self._jumped_at = "", -math.inf
        self._stamped_at = self.heard_at = 0.0
        self._forget()

    def _forget(self) -> None:
        """Nothing is known of the source's clock."""
        self._window.clear()
        self.offset = self._stamp = self._time = self._candidate = math.nan
        self._since, self._count, self._correction = 0.0, 0, 0.0

    def time(self, stamp: float, now: float, arrival: float) -> float:
        """Time at which a message was made, on this computer's clock [s]; never later than now.

        A stamp of zero is none: the message is of now. The same stamp again is the same time again.

        Args:
            stamp: by the source's clock [s].
            now: of this computer's clock [s].
            arrival: now, on the monotonic one [s].
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
        """Go along with this computer's clock, which was set ahead by a step [s]."""
        self._time += step

    @property
    def correction(self) -> float:
        """Time to be added to stamps [s]; NaN where they are useless."""
        return self._correction if abs(self.offset) <= USELESS else math.nan

    @property
    def problem(self) -> str:
        """Words for what is wrong with the source's clock; empty where nothing is."""
        if self.heard_at - self._jumped_at < TOLD:
            return self._jumped
        if self.heard_at - self._stamped_at > STANDS_STILL and self._stamp == self._stamp:
            return "its stamps stand still: stamp each message when it is measured, or not at all"
        if abs(self.offset) <= TOLERATED or math.isnan(self.offset):
            return ""
        use = "corrected" if abs(self.offset) <= USELESS else "its stamps are not used"
        return f"the sender's clock is {_apart(self.offset)}, {use}: {HINT}"

    def _made(self, stamp: float, now: float, arrival: float) -> float:
        delay = now - stamp
        if math.isnan(self.offset) and 0 <= delay <= TOLERATED:
            self._believe(delay, arrival)
        off = delay - self.offset
        if abs(off) <= JUMP:
            self._candidate = math.nan
            self._add(delay, arrival)
        elif self._settled(delay, arrival):
            if not math.isnan(off):
                self._report(f"the sender's clock is {_apart(self._candidate)} at once: {HINT}", arrival)
            self._believe(self._candidate, arrival)
        else:
            if off < 0 or off > USELESS:  # else it may only be late
                self._report(f"a stamp is {_apart(off)} against the others: not used", arrival)
                return now
            return now if math.isnan(off) else stamp + self._correction
        return stamp + self._correction if abs(self.offset) <= USELESS else now

    def _settled(self, delay: float, arrival: float) -> bool:
        """Count a delay that is not as the ones before were; True where enough of these agree."""
        if not abs(delay - self._candidate) <= 2 * JUMP:
            self._candidate, self._since, self._count = delay, arrival, 0
        self._candidate, self._count = min(self._candidate, delay), self._count + 1
        return self._count >= FEWEST and arrival - self._since >= SETTLING

    def _believe(self, delay: float, arrival: float) -> None:
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
        # The time under way of messages between clocks that are right is true and stays; not so on both sides of a
        # limit, or stamps would go to and fro.
        within = TOLERATED if self._correction <= 0 else TOLERATED / 2
        self._correction = 0.0 if 0 <= self.offset <= within else self.offset

    def _report(self, text: str, arrival: float) -> None:
        self._jumped, self._jumped_at = text, arrival


def _apart(offset: float) -> str:
    """An offset in words."""
    return f"{abs(offset):.3f} s {'behind' if offset > 0 else 'ahead'}"


class ClockOffsets:
    """Clock offsets of several sources on one topic, distinguished by the content of their messages, such as names."""

    def __init__(self) -> None:
        self._sources: dict[Hashable, ClockOffset] = {}
        self._arrival = -math.inf

    def time(self, source: Hashable, stamp: float, now: float, arrival: float) -> float:
        """As `ClockOffset.time`, of one source."""
        offset = self._sources.pop(source, None) or ClockOffset()
        if len(self._sources) >= SOURCES:
            del self._sources[next(iter(self._sources))]  # that was not heard for longest
        self._sources[source], self._arrival = offset, arrival
        return offset.time(stamp, now, arrival)

    def shift(self, step: float) -> None:
        """As `ClockOffset.shift`."""
        for offset in self._sources.values():
            offset.shift(step)

    @property
    def problem(self) -> str:
        """Problem of the clock of the newest source, or of one just before it; empty without a problem."""
        since = self._arrival - TOLD
        present = (s for s in reversed(self._sources.values()) if s.heard_at >= since)
        return next((text for offset in present if (text := offset.problem)), "")


class ClockSteps:
    """Notices that this computer's own clock was set: it went back, or ran away from the monotonic one."""

    def __init__(self) -> None:
        self._now = self._monotonic = math.nan

    def look(self, now: float, monotonic: float) -> float:
        """Time by which the clock was set ahead since the last look [s], negative: back; 0 where it was not.

        Simulated time, which passes slower or faster, is no step.

        Args:
            now: of the clock [s].
            monotonic: at the same moment [s].
        """
        passed, elapsed = now - self._now, monotonic - self._monotonic
        self._now, self._monotonic = now, monotonic
        return passed - elapsed if passed < -JUMP or passed - elapsed > USELESS else 0.0
