"""Markers published between the ticks of a node: only while somebody listens, and only where there is room."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from humanoid_control.nodes.statistics import Samples

ROOM, SMOOTH = 1.3, 10  # a message needs so much of its mean time, over so many messages
IDLE = 0.1  # [s] between looks whether somebody listens


class BetweenTicks:
    """Decides when the next message of a publisher is made, and remembers how long messages take.

    Attributes:
        took: how long each message took [s].
    """

    def __init__(self, publisher: Any) -> None:
        self._publisher = publisher
        self.took, self._next, self._cost = Samples(100), 0.0, 0.0

    def publish(self, left: float, rate: float, write: Callable[[], bytes]) -> None:
        """Publish what `write` makes, if it is time.

        Where ticks leave no room, a message that is a whole period late is made all the same.

        Args:
            left: time to the next tick [s]. rate: of the messages [Hz]; 0: none.
        """
        now = time.monotonic()
        if rate <= 0 or now < self._next:
            return
        if not self._publisher.get_subscription_count():
            self._next = now + IDLE
            return
        if left < ROOM * self._cost and now < self._next + 1.0 / rate:
            return
        self._next = max(self._next + 1.0 / rate, now)
        self._publisher.publish(write())
        took = time.monotonic() - now
        self.took.add(took)
        self._cost += (took - self._cost) / SMOOTH
