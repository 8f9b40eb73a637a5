"""The time of a frame by its own stamp, in our clock: free of the jitter of its journey."""

from __future__ import annotations

_LEAK = 1e-5  # [s] by which the delay may grow from frame to frame, so that drifting clocks are followed
_OTHER = 1.0  # [s] a delay that changes by more means another clock


class SourceClock:
    """Turns stamps of a source into times of arrival without jitter: the stamp plus the shortest delay seen."""

    def __init__(self) -> None:
        self._stamp = self._delay = float("nan")

    def time(self, stamp: float, arrival: float) -> float:
        """When a frame would have arrived without jitter [s], never later than it did.

        Args:
            stamp: by the source's clock [s]; one that does not grow tells nothing.
            arrival: by ours [s].
        """
        if stamp <= self._stamp:
            self._delay = float("nan")
            return arrival
        self._stamp = stamp
        delay = arrival - stamp
        if not abs(delay - self._delay) < _OTHER:
            self._delay = delay
        self._delay = min(delay, self._delay + _LEAK)
        return stamp + self._delay

    def stamp(self, time: float) -> float:
        """The stamp that the source would give to a moment of our clock [s]; NaN where its stamps tell nothing."""
        return time - self._delay
