"""Marker topics that the viewer listens to only while they are looked at, because nobody makes them for nobody."""

from __future__ import annotations

import math
from typing import Any

from rclpy.serialization import deserialize_message
from visualization_msgs.msg import MarkerArray

from humanoid_control.nodes.base import TickNode
from humanoid_control.nodes.qos import STREAM_IN
from humanoid_control.viewer.state import ViewState

PERIOD = 0.1  # [s] reading a message of a hundred markers takes some 5 ms
GONE = 1.0  # [s]


class MarkerTopic:
    """One topic; the newest message goes to the view's state, and away again when no more come."""

    def __init__(self, node: TickNode, state: ViewState, topic: str) -> None:
        self._node, self._state, self.topic = node, state, topic
        self._subscription: Any = None
        self._newest: bytes | None = None
        self._due, self._seen = 0.0, math.inf

    def hear(self, wanted: bool, now: float) -> None:
        """Listen or not, and hand on what was heard; now: monotonic [s]."""
        if wanted and self._subscription is None:
            self._subscription = self._node.create_subscription(
                MarkerArray, self.topic, self._on_markers, STREAM_IN, raw=True
            )
        elif not wanted and self._subscription is not None:
            self._node.destroy_subscription(self._subscription)
            self._subscription, self._newest = None, None
        if self._newest is not None and now >= self._due:
            self._state.markers[self.topic] = deserialize_message(self._newest, MarkerArray).markers
            self._newest, self._due = None, now + PERIOD
            self._seen = now
        elif now - self._seen > GONE:  # nobody sends them any more: as in rviz, they do not stay
            self._state.markers[self.topic], self._seen = [], math.inf

    def _on_markers(self, data: bytes) -> None:
        self._newest = data
