"""The relay of joint states: a process between a robot and its controller that repeats them truly, or with a fault.

Run as `python -m evidence.studies.faults.relay ROBOT`; it hears `true_joint_states` and says `joint_states`. A
line on standard input is JSON: `fault` (one of FAULTS), `joint`, `seconds`; the answer says when it `began` and `ended`
on the monotonic clock [s]. The end of the input ends it.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from evidence.studies.companion import serve
from humanoid_control.robots import Robot, load_robot

TRUE_STATES = "true_joint_states"
JUMP = 3.0  # [rad]
CONTRADICTION = 0.5  # [rad] between the two positions of a joint that is named twice
DRAG, FARTHEST = 1.0, 0.5  # [rad/s] by which a joint leaves its commands, and how far [rad]
HUGE = 1e308
PRIORITY = 45


class RelayFault:
    """A fault of joint states while it lasts.

    Attributes:
        kind: one of FAULTS. joint: index of the joint, where it is one. begun: when [s].
    """

    def __init__(self, kind: str, joint: int, begun: float, positions: Any) -> None:
        self.kind, self.joint, self.begun, self._then = kind, joint, begun, positions

    def apply(self, message: Any, now: float) -> bool:
        """Change a message; False: it is not sent."""
        return FAULTS[self.kind](self, message, now)

    def silent(self, message: Any, now: float) -> bool:
        """Nothing comes."""
        return False

    def frozen(self, message: Any, now: float) -> bool:
        """The same positions, to the last bit, with new stamps."""
        message.position = self._then
        message.velocity = [0.0] * len(message.velocity)
        return True

    def nan(self, message: Any, now: float) -> bool:
        """A joint is no number."""
        return self._moved(message, np.nan)

    def jumped(self, message: Any, now: float) -> bool:
        """A joint seems to be somewhere else."""
        return self._moved(message, message.position[self.joint] + JUMP)

    def dragged(self, message: Any, now: float) -> bool:
        """A joint does not follow: something takes it away from its commands."""
        away = min(DRAG * (now - self.begun), FARTHEST)
        return self._moved(message, message.position[self.joint] + away)

    def duplicate(self, message: Any, now: float) -> bool:
        """A joint is named twice, at two positions."""
        message.name = [*message.name, message.name[self.joint]]
        message.position = [*message.position, message.position[self.joint] + CONTRADICTION]
        message.velocity, message.effort = [], []
        return True

    def huge(self, message: Any, now: float) -> bool:
        """A joint is a number that no joint can be."""
        return self._moved(message, HUGE)

    def _moved(self, message: Any, q: float) -> bool:
        positions = message.position
        positions[self.joint] = q
        message.position = positions
        return True


FAULTS: dict[str, Callable[[RelayFault, Any, float], bool]] = {
    "dragged": RelayFault.dragged,
    "silent": RelayFault.silent,
    "nan": RelayFault.nan,
    "jumped": RelayFault.jumped,
    "frozen": RelayFault.frozen,
    "duplicate": RelayFault.duplicate,
    "huge": RelayFault.huge,
}


class Relay:
    """Repeats joint states; a fault begins with the message that comes next."""

    def __init__(self, node: Any, robot: Robot) -> None:
        from sensor_msgs.msg import JointState

        from humanoid_control.nodes.base.messages import STREAM_IN, STREAM_OUT

        self._robot = robot
        self._publisher = node.create_publisher(JointState, "joint_states", STREAM_OUT)
        node.create_subscription(JointState, TRUE_STATES, self.on_states, STREAM_IN)
        self._asked: dict[str, Any] | None = None
        self._fault: RelayFault | None = None
        self._end = 0.0

    def on_states(self, message: Any) -> None:
        """Send a message on."""
        now = time.monotonic()
        if self._asked is not None and self._fault is None:
            joint = list(message.name).index(self._asked["joint"])
            self._fault = RelayFault(self._asked["fault"], joint, now, message.position[:])
            self._end = now + self._asked["seconds"]
        if self._fault is not None and now >= self._end:
            print(json.dumps({"began": self._fault.begun, "ended": now}), flush=True)
            self._fault = self._asked = None
        if self._fault is None or self._fault.apply(message, now):
            self._publisher.publish(message)

    def answer(self, line: str) -> str:
        """Take what is asked for; the answer comes when it is over."""
        self._asked = json.loads(line)
        return ""


def main(robot: str) -> None:
    """Repeat until the input ends."""
    import rclpy
    from rclpy.signals import SignalHandlerOptions

    from humanoid_control.nodes.base.runner import make_executor
    from humanoid_control.nodes.base.tick_node import set_priority

    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    node = rclpy.create_node("relay")
    relay, executor = Relay(node, load_robot(robot, "fixed")), make_executor()
    executor.add_node(node)
    set_priority(PRIORITY)
    serve(executor, relay.answer)
    executor.shutdown()
    node.destroy_node()
    rclpy.try_shutdown()


if __name__ == "__main__":
    main(sys.argv[1])
