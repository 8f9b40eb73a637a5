"""Requests to a driver that several nodes take: services that answer with the reason, and the topic of the stop."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from std_msgs.msg import Bool

from humanoid_control.errors import HumanoidError
from humanoid_control.nodes.base.command_owner import gid_of, publishers_of
from humanoid_control.nodes.base.messages import EVENTS, LATCHED
from humanoid_control.nodes.base.tick_node import TickNode


def answered(request: Callable[[Any], str | None]) -> Callable[[Any, Any], Any]:
    """Return a service that makes a request and answers with the reason why not; no reason: done."""

    def serve(message: Any, response: Any) -> Any:
        try:
            reason = request(getattr(message, "data", None)) or ""
        except HumanoidError as e:
            reason = str(e)
        response.success, response.message = not reason, reason
        return response

    return serve


class EmergencyStopTopic:
    """Subscription of an emergency stop that any publisher may press.

    It stops as soon as one publisher says so. It is released once each publisher that said so has released it, or is
    gone.
    """

    def __init__(self, node: TickNode, topic: str, apply: Callable[[bool], None]) -> None:
        """Subscribe.

        Args:
            node: that subscribes. topic: a std_msgs/Bool. apply: called with every message: whether to stop now.
        """
        self._node, self._topic, self._apply = node, topic, apply
        self._pressed: set[bytes] = set()
        # It must be heard from any publisher: one that keeps its last message, and one that does not.
        for qos in (LATCHED, EVENTS):
            node.create_subscription(Bool, topic, self._on_message, qos, takes_info=True)

    def _on_message(self, m: Bool, info: Mapping[str, Any]) -> None:
        gid = gid_of(info)
        if m.data:
            self._pressed.add(gid)
        else:
            self._pressed.discard(gid)
            if self._pressed:
                self._pressed &= publishers_of(self._node, self._topic).keys()
        self._apply(bool(self._pressed))
