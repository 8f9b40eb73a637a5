"""The observer next to a stack, or on a host: a process that hears what passes, and hands it over when it is asked.

Run as `python -m evidence.studies.observer ROBOT TOPIC ...`; without topics it hears all of `TOPICS`. A line on
standard input is `seek SECONDS`, to play the clip from there on, or the name of a file (.npz) into which goes all that
was heard since the last one; each is answered by `done`. The end of the input ends it. All its times are of the
monotonic clock, which is one for all hosts of a machine.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from evidence.studies.companion import serve
from humanoid_control.files import whole_file
from humanoid_control.robots import Robot, load_robot

DEPTH = 500  # messages that wait while the observer is not running
PRIORITY = 40
TARGETS = "targets"
TOPICS = ("joint_commands", "joint_states", "applied_commands", TARGETS)


class Heard:
    """What was heard since the last file: rows of (arrival, stamp, values), all times in s.

    Attributes:
        joints: topic -> rows of positions (n) and velocities (n) in the robot's order, NaN where there is none, and
            the number of the publisher, in the order in which they were heard first.
        targets: rows of positions (3 P) of the robot's points. diagnostics: (arrival, node, level, message, values).
        slept: rows of (until when, for how long) in which nothing could be heard.
    """

    def __init__(self, robot: Robot, topics: Sequence[str] = TOPICS) -> None:
        self.robot, self.points = robot, {name: k for k, name in enumerate(robot.points)}
        self.topics, self._senders = [t for t in topics if t != TARGETS], dict[bytes, int]()
        self.clear()

    def clear(self) -> None:
        """Begin again."""
        self.joints: dict[str, list[np.ndarray]] = {topic: [] for topic in self.topics}
        self.targets: list[np.ndarray] = []
        self.diagnostics: list[tuple[float, str, int, str, dict[str, str]]] = []
        self.slept: list[tuple[float, float]] = []

    def joint(self, topic: str, message: Any, sender: bytes = b"") -> None:
        """Take a JointState."""
        r, row = self.robot, np.full(3 + 2 * self.robot.n, np.nan)
        row[0], row[1] = time.monotonic(), _seconds(message.header.stamp)
        row[-1] = self._senders.setdefault(sender, len(self._senders))
        own = [r.index[name] for name in message.name]
        for first, values in ((2, message.position), (2 + r.n, message.velocity)):
            if len(values) == len(own):
                row[first + np.array(own, dtype=int)] = values
        self.joints[topic].append(row)

    def target(self, read: Any) -> None:
        """Take targets, as `MarkerReader` reads them."""
        row = np.full((len(self.points), 3), np.nan)
        for name, pose in zip(read.names, read.poses, strict=True):
            if name in self.points:
                row[self.points[name]] = pose[:3]
        self.targets.append(np.concatenate([[time.monotonic(), read.stamp], row.ravel()]))

    def status(self, message: Any) -> None:
        """Take a DiagnosticArray."""
        for s in message.status:
            values = {v.key: v.value for v in s.values}
            self.diagnostics.append((time.monotonic(), s.name, s.level[0], s.message, values))

    def save(self, path: Path) -> None:
        """Write all, and begin again."""
        width = {TARGETS: 2 + 3 * len(self.points), "slept": 2}
        rows: dict[str, list[Any]] = {**self.joints, TARGETS: self.targets, "slept": self.slept}
        arrays: dict[str, Any] = {
            k: np.array(v).reshape(-1, width.get(k, 3 + 2 * self.robot.n)) for k, v in rows.items()
        }
        with whole_file(path) as part, part.open("wb") as file:
            np.savez(file, diagnostics=np.array(json.dumps(self.diagnostics)), **arrays)
        self.clear()


def _seconds(stamp: Any) -> float:
    return stamp.sec + 1e-9 * stamp.nanosec


def load(path: Path) -> tuple[dict[str, np.ndarray], list[list[Any]]]:
    """Arrays of a file by topic, and the rows of diagnostics."""
    with np.load(path) as file:
        told = json.loads(str(file["diagnostics"]))
        return {name: file[name] for name in file.files if name != "diagnostics"}, told


def listen(robot: Robot, topics: Sequence[str]) -> None:
    """Listen and answer until the input ends."""
    import rclpy
    from diagnostic_msgs.msg import DiagnosticArray
    from rclpy.qos import QoSProfile, ReliabilityPolicy
    from rclpy.signals import SignalHandlerOptions
    from sensor_msgs.msg import JointState
    from std_msgs.msg import Float64
    from visualization_msgs.msg import MarkerArray

    from humanoid_control.nodes.base.command_owner import gid_of
    from humanoid_control.nodes.base.messages import EVENTS
    from humanoid_control.nodes.base.runner import make_executor
    from humanoid_control.nodes.base.serialized_markers import MarkerReader
    from humanoid_control.nodes.base.tick_node import set_priority, with_info

    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    node, heard, reader = rclpy.create_node("observer"), Heard(robot, topics), MarkerReader()
    qos = QoSProfile(depth=DEPTH, reliability=ReliabilityPolicy.BEST_EFFORT)

    def hears(topic: str) -> Any:
        return with_info(lambda message, info: heard.joint(topic, message, gid_of(info)))

    for topic in heard.joints:
        node.create_subscription(JointState, topic, hears(topic), qos)
    if TARGETS in topics:
        node.create_subscription(MarkerArray, TARGETS, lambda data: heard.target(reader.read(data)), qos, raw=True)
    node.create_subscription(DiagnosticArray, "/diagnostics", heard.status, EVENTS)
    seek = node.create_publisher(Float64, "clip/seek", EVENTS)

    def answer(line: str) -> str:
        if line.startswith("seek "):
            seek.publish(Float64(data=float(line.split()[1])))
        else:
            heard.save(Path(line))
        return "done"

    executor = make_executor()
    executor.add_node(node)
    set_priority(PRIORITY)
    serve(executor, answer, lambda seconds: heard.slept.append((time.monotonic(), seconds)))
    executor.shutdown()
    node.destroy_node()
    rclpy.try_shutdown()


if __name__ == "__main__":
    listen(load_robot(sys.argv[1], "fixed"), sys.argv[2:] or TOPICS)
