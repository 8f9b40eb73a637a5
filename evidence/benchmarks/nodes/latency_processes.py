"""The three processes of `humanoid bench latency`: source of markers, node with time stamps, listener to commands.

All times are of the system's clock [ns], which the processes of one machine share. Fast DDS tells of each message when
it was written (`source_timestamp`) and when it came in (`received_timestamp`).
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from array import array
from collections.abc import Mapping
from typing import Any

import numpy as np

from humanoid_control.nodes.base.ros_env import prepare

prepare()  # before rclpy: discovery, logs, libraries

import rclpy  # noqa: E402
from rclpy.signals import SignalHandlerOptions  # noqa: E402
from sensor_msgs.msg import JointState  # noqa: E402
from visualization_msgs.msg import Marker, MarkerArray  # noqa: E402

from evidence.benchmarks.nodes.command_arrival import COMMAND_STAMP, DEPTH, MARKER_STAMP, stamp_at  # noqa: E402
from evidence.benchmarks.nodes.histogram import LogHistogram  # noqa: E402
from evidence.benchmarks.nodes.latency import LISTENER_COLUMNS, NODE_COLUMNS, TICKS  # noqa: E402
from humanoid_control.nodes.base.command_owner import COMMANDS_IN  # noqa: E402
from humanoid_control.nodes.base.messages import STREAM_OUT, stamp_of  # noqa: E402
from humanoid_control.nodes.base.runner import main_of, make_executor  # noqa: E402
from humanoid_control.nodes.base.serialized_markers import SerializedMarkers  # noqa: E402
from humanoid_control.nodes.base.tick_node import set_priority, with_info  # noqa: E402
from humanoid_control.nodes.whole_body_ik import WholeBodyIkNode  # noqa: E402
from humanoid_control.robots import load_robot  # noqa: E402

FILE, CYCLES = "HUMANOID_LATENCY_FILE", "HUMANOID_LATENCY_CYCLES"  # where a process writes, and after how many ticks
SETTLE = 1500  # ticks before the first that counts
DONE = "DONE"  # line of the node when it has counted all
TARGET_RATE, RADIUS = 50.0, 0.02  # [Hz], [m] of the circles that the targets draw
PRIORITY = 50
POINTS = ("l_wrist", "r_wrist")


class TimedIkNode(WholeBodyIkNode):
    """`whole_body_ik` that keeps the times of each message of targets and of each tick."""

    def __init__(self) -> None:
        self.rows, self.seen, self.begun = array("q"), (0, 0, 0, 0), 0
        self.handled, self.ticked, self.skipped, self.last = 0, 0, 0, int(os.environ[CYCLES])
        self.histograms = {name: LogHistogram() for name in TICKS}
        super().__init__()

    def configure(self) -> float:
        rate = super().configure()
        publish = self.commands.publish

        def timed(message: JointState) -> None:
            publishing = time.time_ns()
            publish(message)
            if self.handled and self.counts:
                command = 1_000_000_000 * message.header.stamp.sec + message.header.stamp.nanosec
                times = (*self.seen, self.handled, self.begun, publishing, time.time_ns(), command)
                self.rows.extend(times)
            self.handled = 0

        self.commands.publish = timed  # type: ignore[method-assign]
        return rate

    @property
    def counts(self) -> bool:
        """Whether what happens now is kept."""
        return SETTLE < self.ticked <= SETTLE + self.last

    def create_subscription(self, msg_type: Any, topic: str, callback: Any, *args: Any, **more: Any) -> Any:
        if topic != "targets":
            return super().create_subscription(msg_type, topic, callback, *args, **more)

        def timed(data: bytes, info: Mapping[str, Any]) -> None:
            entered = time.time_ns()
            stamp = stamp_at(data, MARKER_STAMP)
            self.seen = (stamp, info.get("source_timestamp", 0), info.get("received_timestamp", 0), entered)
            callback(data, info)
            self.handled = time.time_ns()

        return super().create_subscription(msg_type, topic, timed, *args, **more)

    def command(self, moves: bool) -> None:
        self.begun = time.time_ns()
        super().command(moves)

    def run_tick(self, skipped: int) -> None:
        begin = time.monotonic_ns()
        super().run_tick(skipped)
        took = 1e-3 * (time.monotonic_ns() - begin)
        self.ticked += 1
        if self.counts:
            self.skipped += skipped
            for name, us in zip(self.histograms, (1e6 * self.late, 1e6 * self.late + took), strict=True):
                self.histograms[name].add(us)
        elif self.ticked == SETTLE + self.last + 1:
            print(DONE, flush=True)

    def close(self) -> None:
        super().close()
        ticks = np.array([h.counts for h in self.histograms.values()])
        largest = np.array([h.largest for h in self.histograms.values()])
        table = np.array(self.rows, dtype=np.int64).reshape(-1, len(NODE_COLUMNS))
        np.savez(os.environ[FILE], rows=table, skipped=self.skipped, largest=largest, ticks=ticks)


def send(robot: str) -> None:
    """Publish targets that circle around the wrists, at times without a relation to the ticks; keep the times."""
    r = load_robot(robot, "fixed")
    places, rng = r.point_positions(r.q("neutral"), POINTS), np.random.default_rng(0)
    markers = []
    for name in POINTS:
        m = Marker(ns=name, type=Marker.SPHERE, action=Marker.ADD)
        m.header.frame_id, m.pose.orientation.w = "world", 1.0
        m.scale.x = m.scale.y = m.scale.z = 0.05
        markers.append(m)
    message, rows = SerializedMarkers(MarkerArray(markers=markers)), array("q")
    stop, node = _begin("marker_source")
    publisher: Any = node.create_publisher(MarkerArray, "targets", STREAM_OUT)
    due, scheduling = time.monotonic(), set_priority(PRIORITY)
    while not stop.is_set():
        due += (1.0 + rng.uniform(-0.2, 0.2)) / TARGET_RATE
        time.sleep(max(0.0, due - time.monotonic()))
        message.set_positions(places + RADIUS * np.array([0.0, np.cos(2 * due), np.sin(2 * due)]))
        stamp = time.time_ns()
        message.set_stamp(stamp_of(stamp))
        publisher.publish(message.bytes())
        rows.extend((stamp, time.time_ns()))
    np.savez(os.environ[FILE], rows=np.array(rows, dtype=np.int64).reshape(-1, 2), scheduling=scheduling)
    _end(node)


def hear() -> None:
    """Keep the times of each command."""
    stop, node = _begin("command_listener")
    rows = array("q")

    def on_command(data: bytes, info: Mapping[str, Any]) -> None:
        entered = time.time_ns()
        times = (info.get("source_timestamp", 0), info.get("received_timestamp", 0), entered)
        rows.extend((stamp_at(data, COMMAND_STAMP), *times))

    assert COMMANDS_IN.depth <= DEPTH
    node.create_subscription(JointState, "joint_commands", with_info(on_command), COMMANDS_IN, raw=True)
    executor = make_executor()
    executor.add_node(node)
    scheduling = set_priority(PRIORITY)
    while not stop.is_set():
        executor.spin_once(timeout_sec=0.1)
    table = np.array(rows, dtype=np.int64).reshape(-1, len(LISTENER_COLUMNS))
    np.savez(os.environ[FILE], rows=table, scheduling=scheduling)
    executor.shutdown()
    _end(node)


def _begin(name: str) -> tuple[threading.Event, Any]:
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    return stop, rclpy.create_node(name)


def _end(node: Any) -> None:
    node.destroy_node()
    rclpy.try_shutdown()


if __name__ == "__main__":
    if sys.argv[1] == "node":
        del sys.argv[1]
        main_of(TimedIkNode)
    (hear if sys.argv[1] == "hear" else lambda: send(sys.argv[2]))()
