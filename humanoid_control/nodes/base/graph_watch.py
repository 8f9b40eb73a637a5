"""Checks of the ROS graph (foreign types, frozen clock, duplicate names), and machine-wide name claims."""

from __future__ import annotations

import errno
import socket
from typing import Any

from humanoid_control.nodes.base.health import Level

LOOK = 1.0  # [s] period of graph checks
STILL = 2.0  # [s] of real time for which simulated time may stand still
NAMED = 3  # nodes named in a report
CLOCK = "/clock"


class Claim:
    """Machine-wide exclusive claim of a name by an abstract Unix socket.

    The kernel releases it with its process. Discovery takes seconds on a busy machine, in which two nodes would not see
    each other.
    """

    def __init__(self, topic: str, domain: int) -> None:
        self._address = f"\0humanoid_control:{domain}:{topic}"
        self._socket: socket.socket | None = None

    def take(self) -> bool:
        """Claim the name; True also on systems without abstract sockets."""
        if self._socket is not None or not hasattr(socket, "AF_UNIX"):
            return True
        claimed = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            claimed.bind(self._address)
        except OSError as e:
            claimed.close()
            return e.errno != errno.EADDRINUSE
        self._socket = claimed
        return True

    def release(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None


class GraphWatch:
    """Reports of silent DDS failures: publishers of other types, a frozen clock, duplicate node names.

    Attributes:
        frozen: the node uses simulated time, and it stands still.
    """

    def __init__(self, node: Any) -> None:
        self._node, self.frozen = node, False
        self._next, self._time, self._moved = 0.0, -1, 0.0
        self._claim = node_claim(node.get_fully_qualified_name(), node.context.get_domain_id())

    def find_twin(self) -> str:
        """Report another node of this name on this machine; return the report, or empty."""
        twin, name = not self._claim.take(), self._node.get_fully_qualified_name()
        text = f"another node {name} runs in this domain: give one stack its own namespace or domain"
        self._node.health.check("twin", twin, Level.ERROR, text)
        return text if twin else ""

    def check(self, now: float) -> None:
        """Check the graph once a second."""
        if now < self._next:
            return
        self._next = now + LOOK
        node, health = self._node, self._node.health
        simulated = node.has_parameter("use_sim_time") and node.get_parameter("use_sim_time").value
        silent = bool(simulated) and not node.count_publishers(CLOCK)
        text = f"use_sim_time is set, but {CLOCK} has no publisher: time stands still; unset it, or start a simulator"
        health.check("no clock", silent, Level.ERROR, text)
        if not simulated or silent or (time := node.get_clock().now().nanoseconds) != self._time:
            self._time, self._moved = time if simulated and not silent else -1, now
        still = now - self._moved > STILL
        self.frozen = silent or still
        health.check("still clock", still, Level.WARN, self._still_words(now) if still else "")
        self.find_twin()
        problems = [text for s in node.subscriptions if (text := self._other_types(s))]
        health.check("types", bool(problems), Level.WARN, "; ".join(problems[:NAMED]))

    def _still_words(self, now: float) -> str:
        found = self._node.get_publishers_info_by_topic(CLOCK)
        names = ", ".join(sorted({e.node_name for e in found})[:NAMED]) or "its source"
        return f"{CLOCK} stands still for {now - self._moved:.0f} s: {names} is paused, hangs, or has ended"

    def _other_types(self, subscription: Any) -> str:
        """Describe publishers of another type; empty: none."""
        topic, kind = subscription.topic_name, type_name(subscription.msg_type)
        if not self._node.count_publishers(topic):
            return ""
        found = self._node.get_publishers_info_by_topic(topic)
        others = [e for e in found if e.topic_type != kind]
        if not others:
            return ""
        words = ", ".join(sorted({f"{e.node_name} ({e.topic_type})" for e in others})[:NAMED])
        setting = f"{topic.rsplit('/', 1)[-1]}_type"
        advice = f"; or set {setting}" if hasattr(self._node.params, setting) else ""
        return f"{topic} has publishers of another type, {words}: this node reads only {kind}{advice}"

    def close(self) -> None:
        self._claim.release()


def node_claim(full_name: str, domain: int) -> Claim:
    """Return the claim of a full node name."""
    return Claim(f"node {full_name}", domain)


def type_name(message: type) -> str:
    """Return the graph name of a message type."""
    return f"{message.__module__.split('.')[0]}/msg/{message.__name__}"
