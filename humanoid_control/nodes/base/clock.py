"""Exclusive publisher of `/clock` in a ROS domain.

A second publisher stays silent, reports the first, and takes over after its end. On one machine a `Claim` decides,
because discovery may take seconds.
"""

from __future__ import annotations

import time
from typing import Any

from builtin_interfaces.msg import Time
from rosgraph_msgs.msg import Clock

from humanoid_control.nodes.base.graph_watch import Claim
from humanoid_control.nodes.base.messages import STREAM_OUT
from humanoid_control.nodes.base.tick_node import Level, TickNode

TOPIC = "/clock"
LOOK = 0.5  # [s] period of graph checks; discovery takes less


class ClockPublisher:
    """Publisher of simulated time while no other node publishes it."""

    def __init__(self, node: TickNode) -> None:
        self._node = node
        self._publisher: Any = None
        self._gid: tuple[int, ...] = ()
        self._next_check = time.monotonic() + LOOK
        self._claim = Claim(TOPIC, node.context.get_domain_id())
        node.when_stopped.append(self._claim.release)

    def publish(self, stamp: Time) -> None:
        """Publish the time, if this node is the owner."""
        now = time.monotonic()
        if now >= self._next_check:
            self._next_check = now + LOOK
            self._check_publishers()
        if self._publisher is not None:
            self._publisher.publish(Clock(clock=stamp))

    def _check_publishers(self) -> None:
        others = {gid: name for gid, name in self._publishers().items() if gid != self._gid}
        if self._publisher is None:
            if not others and self._claim.take():
                self._publisher = self._node.create_publisher(Clock, TOPIC, STREAM_OUT)
                self._gid = next(iter(self._publishers().keys() - others.keys()), ())
        elif (self._gid and any(gid < self._gid for gid in others)) or not self._claim.take():
            # Nodes on two machines started simultaneously, or one started while this node was inactive: one of them
            # stops.
            self._node.destroy_publisher(self._publisher)
            self._publisher, self._gid = None, ()
            self._claim.release()
        if self._publisher is None:
            first = others[min(others)] if others else "a node of this machine that is not on the graph yet"
            text = (
                f"{TOPIC} is published by {first}; this node does not publish it: use a separate ROS domain, or stamp "
                "wall"
            )
            self._node.health.report("clock", Level.ERROR, text)
        else:
            self._node.health.clear("clock")

    def _publishers(self) -> dict[tuple[int, ...], str]:
        found = self._node.get_publishers_info_by_topic(TOPIC)
        return {tuple(i.endpoint_gid): f"{i.node_namespace.rstrip('/')}/{i.node_name}" for i in found}
