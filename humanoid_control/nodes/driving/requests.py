"""Base of driver nodes: reasoned service answers, emergency-stop topic, power-off at the end."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from rclpy.lifecycle import LifecycleState, TransitionCallbackReturn
from std_msgs.msg import Bool

from humanoid_control.errors import HumanoidError
from humanoid_control.nodes.base.command_owner import gid_of, publishers_of
from humanoid_control.nodes.base.messages import EVENTS, LATCHED
from humanoid_control.nodes.base.tick_node import TickNode

END_TIME = 4.0  # [s] for deceleration and power-off before the process ends


def answered(request: Callable[[Any], str | None]) -> Callable[[Any, Any], Any]:
    """Return a service that answers with the reason of a refusal; no reason: success."""

    def serve(message: Any, response: Any) -> Any:
        try:
            reason = request(getattr(message, "data", None)) or ""
        except HumanoidError as e:
            reason = str(e)
        response.success, response.message = not reason, reason
        return response

    return serve


class EmergencyStopTopic:
    """Emergency stop that any publisher may trigger.

    Every publisher that triggered it must release it or disappear.
    """

    def __init__(self, node: TickNode, topic: str, apply: Callable[[bool], None]) -> None:
        """Subscribe.

        Args:
            topic: topic of type std_msgs/Bool.
            apply: called with every message: True stops.
        """
        self._node, self._topic, self._apply = node, topic, apply
        self._pressed: set[bytes] = set()
        # Both durabilities, to match latched and volatile publishers.
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


class DriverNode(TickNode):
    """Node that powers off its driver before it ends.

    Attributes:
        driver: object with `disable`, `cycle`, `close`, `machine` and `period`.
    """

    driver: Any

    def report_state(self) -> None:
        """Report the power state."""
        raise NotImplementedError

    def deactivate(self) -> None:
        """Decelerate and power off in its own cycles, because ticks have ended."""
        end = time.monotonic() + END_TIME
        self.driver.disable()
        while self.driver.machine.powered and time.monotonic() < end:
            self.report_state()
            time.sleep(self.driver.period)
            self.driver.cycle()
        self.report_state()

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        if self.active:
            self.deactivate()
        self.close()
        return super().on_shutdown(state)

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        self.close()
        return super().on_cleanup(state)

    def close(self) -> None:
        if self.configured:
            self.driver.close()
