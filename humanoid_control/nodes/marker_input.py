"""Live markers from a topic: a MarkerArray with labels, or a PoseArray in a known order."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from geometry_msgs.msg import PoseArray
from visualization_msgs.msg import Marker, MarkerArray

from humanoid_control.errors import ConfigError
from humanoid_control.imitation.source_clock import SourceClock
from humanoid_control.nodes.base import TickNode
from humanoid_control.nodes.messages import seconds
from humanoid_control.nodes.repeating_markers import MarkerReader

TOPIC = "markers"


@dataclass(frozen=True)
class MarkerFrame:
    """One frame: labels, positions (M, 3) [m], and when it came [s, monotonic], without and with jitter."""

    labels: tuple[str, ...]
    positions: np.ndarray
    time: float
    arrival: float


class MarkerInput:
    """Keeps the newest frame of the topic `markers`; a message makes an extra tick at once.

    Attributes:
        problem: why the last message was passed over; empty when it was not. clock: of the source.
    """

    def __init__(self, node: TickNode, order: str) -> None:
        """Subscribe.

        Args:
            node: that ticks.
            order: labels of the poses of a PoseArray, separated by commas; empty: the topic is a MarkerArray.

        Raises:
            ConfigError: a label twice.
        """
        self.order = tuple(label.strip() for label in order.split(",") if label.strip())
        if len(set(self.order)) < len(self.order):
            twice = next(label for label in self.order if self.order.count(label) > 1)
            raise ConfigError(f"parameter live_labels names '{twice}' twice")
        self.problem = ""
        self._reader = MarkerReader(_label)
        self.clock = SourceClock()
        self._newest: tuple[PoseArray | bytes, float] | None = None
        if self.order:
            node.listen(PoseArray, TOPIC, self._on_message, wakes=True)
        else:
            node.listen(MarkerArray, TOPIC, self._on_message, raw=True, wakes=True)

    def _on_message(self, message: PoseArray | bytes) -> None:
        self._newest = (message, time.monotonic())

    def take(self) -> MarkerFrame | None:
        """The newest frame, once."""
        if self._newest is None:
            return None
        (message, arrival), self._newest = self._newest, None
        self.problem = ""
        if isinstance(message, bytes):
            m = self._reader.read(message)
            return MarkerFrame(m.names, m.poses[:, :3], self.clock.time(m.stamp, arrival), arrival)
        if len(message.poses) != len(self.order):
            self.problem = f"PoseArray of {len(message.poses)} poses, live_labels names {len(self.order)}: passed over"
            return None
        at = [p.position for p in message.poses]
        stamp = seconds(message.header.stamp)
        positions = np.array([(p.x, p.y, p.z) for p in at], dtype=float).reshape(-1, 3)
        return MarkerFrame(self.order, positions, self.clock.time(stamp, arrival), arrival)


def _label(m: Marker) -> str:
    """A marker's label: its text, or else its namespace."""
    return m.text or m.ns
