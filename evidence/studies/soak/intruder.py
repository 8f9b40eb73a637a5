"""The intruder of a soak: a process that publishes what no part of a stack should.

Run as `python -m evidence.studies.soak.intruder ROBOT`; each line on standard input is a kind of INTRUSIONS,
seconds and a seed, and is answered by `done`; or it is `operate`: what somebody would do who reads the diagnostics of a
robot that was stopped. The end of input ends it.
"""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from humanoid_control.robots import Robot, load_robot

MARKERS_RATE, MOST_MARKERS = 100.0, 300
COMMANDS_RATE = 100.0
OPERATE, LOOKED, ANSWERED = "operate", 1.5, 3.0  # [s] in which a node tells its diagnostics, and answers
TOLD_TO_GO_ON, NOTHING_DONE = "resync requested", "nothing done"
NONSENSE = (np.nan, np.inf, -np.inf, 1e308, -1e308, 1e300, 0.0)


class Intruder:
    """Publishers that are made for each intrusion and gone after it."""

    def __init__(self, node: Any, robot: Robot) -> None:
        self.node, self.robot = node, robot

    def commands(self, seconds: float, rng: np.random.Generator) -> None:
        """A second stream of joint commands: another posture."""
        from sensor_msgs.msg import JointState

        from humanoid_control.nodes.base.messages import STREAM_OUT

        q = rng.uniform(*self.robot.range_within(np.pi))
        self._publish(JointState, "joint_commands", STREAM_OUT, seconds, COMMANDS_RATE, lambda: self._state(q))

    def states(self, seconds: float, rng: np.random.Generator) -> None:
        """Joint states that cannot be: not finite, huge, jumps, names twice, wrong lengths."""
        from sensor_msgs.msg import JointState

        from humanoid_control.nodes.base.messages import STREAM_OUT

        def message() -> Any:
            q = rng.uniform(-4, 4, self.robot.n)
            q[rng.integers(0, len(q))] = rng.choice(NONSENSE)
            m = self._state(q)
            if rng.random() < 0.3:
                m.name = [*m.name[:-1], m.name[0]]
            if rng.random() < 0.3:
                m.position = m.position[: int(rng.integers(0, len(q)))]
            return m

        self._publish(JointState, "joint_states", STREAM_OUT, seconds, COMMANDS_RATE, message)

    def flood(self, seconds: float, rng: np.random.Generator) -> None:
        """Targets of names that nobody knows, new ones in every message."""

        def names() -> list[str]:
            return [f"{rng.integers(0, 1 << 60):x}" * 3 for _ in range(MOST_MARKERS)]

        self._markers(seconds, names, lambda: rng.uniform(-1, 1, 3))

    def targets(self, seconds: float, rng: np.random.Generator) -> None:
        """Targets of the robot's own names that are not finite, huge, or metres away."""
        own = list(self.robot.points)

        def place() -> np.ndarray:
            return np.where(rng.random(3) < 0.5, rng.choice(NONSENSE, 3), rng.uniform(-9, 9, 3))

        self._markers(seconds, lambda: [own[k] for k in rng.integers(0, len(own), 5)], place)

    def clock(self, seconds: float, rng: np.random.Generator) -> None:
        """Targets from an hour ahead or ago."""
        shift = int(rng.choice([-3600, 3600]))
        self._markers(seconds, lambda: ["r_wrist"], lambda: rng.uniform(-0.3, 0.3, 3), shift)

    def operate(self) -> str:
        """Tell a node to continue that says it waits for that; what was done."""
        import rclpy
        from diagnostic_msgs.msg import DiagnosticArray
        from std_srvs.srv import Trigger

        from humanoid_control.nodes.base.messages import EVENTS

        said, done = dict[str, str](), False
        ear = self.node.create_subscription(
            DiagnosticArray, "/diagnostics", lambda m: said.update((s.name, s.message) for s in m.status), EVENTS
        )
        end = time.monotonic() + LOOKED
        while time.monotonic() < end:
            rclpy.spin_once(self.node, timeout_sec=0.1)
        self.node.destroy_subscription(ear)
        for name in (name for name, text in said.items() if "~/resync" in text):
            client = self.node.create_client(Trigger, f"/{name.strip('/')}/resync")
            if client.wait_for_service(ANSWERED):
                answer = client.call_async(Trigger.Request())
                rclpy.spin_until_future_complete(self.node, answer, timeout_sec=ANSWERED)
                done |= answer.done() and answer.result().success
            self.node.destroy_client(client)
        return TOLD_TO_GO_ON if done else NOTHING_DONE

    def _state(self, q: np.ndarray) -> Any:
        from sensor_msgs.msg import JointState

        m = JointState(name=list(self.robot.joint_names), position=q.tolist())
        m.header.stamp = self.node.get_clock().now().to_msg()
        return m

    def _markers(
        self, seconds: float, names: Callable[[], list[str]], place: Callable[[], np.ndarray], shift: int = 0
    ) -> None:
        from visualization_msgs.msg import Marker, MarkerArray

        from humanoid_control.nodes.base.messages import STREAM_OUT

        def message() -> Any:
            array, now = MarkerArray(), self.node.get_clock().now().to_msg()
            now.sec += shift
            for name in names():
                marker = Marker(ns=name)
                marker.header.stamp, marker.header.frame_id = now, "world"
                p = marker.pose.position
                p.x, p.y, p.z = (float(x) for x in place())
                array.markers.append(marker)
            return array

        self._publish(MarkerArray, "targets", STREAM_OUT, seconds, MARKERS_RATE, message)

    def _publish(
        self, kind: type, topic: str, qos: Any, seconds: float, rate: float, message: Callable[[], Any]
    ) -> None:
        publisher = self.node.create_publisher(kind, topic, qos)
        try:
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                publisher.publish(message())
                time.sleep(1.0 / rate)
        finally:
            self.node.destroy_publisher(publisher)


INTRUSIONS: dict[str, Callable[[Intruder, float, np.random.Generator], None]] = {
    "commands": Intruder.commands,
    "states": Intruder.states,
    "flood": Intruder.flood,
    "targets": Intruder.targets,
    "clock": Intruder.clock,
}


def main(robot: str) -> None:
    """Do what each line asks for."""
    import rclpy
    from rclpy.signals import SignalHandlerOptions

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C of the terminal: the end of the input ends it
    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    node = rclpy.create_node("soak_intruder")
    intruder = Intruder(node, load_robot(robot, "fixed"))
    print("ready", flush=True)
    for line in sys.stdin:
        if line.strip() == OPERATE:
            print(intruder.operate(), flush=True)
            continue
        kind, seconds, seed = line.split()
        INTRUSIONS[kind](intruder, float(seconds), np.random.default_rng(int(seed)))
        print("done", flush=True)
    node.destroy_node()
    rclpy.try_shutdown()


if __name__ == "__main__":
    main(sys.argv[1])
