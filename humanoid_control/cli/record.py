"""`humanoid record`: every topic of the running nodes into an MCAP bag."""

from __future__ import annotations

import argparse
import datetime
import importlib
import math
import signal
import threading
import time
from pathlib import Path
from typing import Any

from humanoid_control.cli.parser import folder_path, given
from humanoid_control.errors import ConfigError
from humanoid_control.nodes.base.ros_env import require_ros
from humanoid_control.terminal import console, warn

EXAMPLES = """examples:
  humanoid record                         all topics, to ./recording_<time>/, until Ctrl-C
  humanoid record -o dance --seconds 30   for 30 s, to ./dance/
  humanoid record --topics joint_states joint_commands

The bag opens in Foxglove and plays with `humanoid replay DIR` or `ros2 bag play DIR`.
"""
SKIPPED = ("/rosout", "/parameter_events")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-o", "--output", type=folder_path, help="directory of the bag (must not exist)")
    parser.add_argument("--topics", nargs="+", type=given, default=[], help="only these topics")
    parser.add_argument("--seconds", type=float, default=math.inf, help="stop after this time; default: Ctrl-C stops")


def run(args: argparse.Namespace) -> int:
    if not args.seconds > 0:
        raise ConfigError(f"--seconds must be above 0, got {args.seconds:g}")
    require_ros()
    from humanoid_control.nodes.base.runner import READY

    output = args.output or Path(f"recording_{datetime.datetime.now():%Y-%m-%d_%H-%M-%S}")
    stop = threading.Event()
    for s in (signal.SIGINT, signal.SIGTERM):
        signal.signal(s, lambda *_: stop.set())
    recorder = Recorder(output, set(args.topics))
    print(f"{READY} record", flush=True)
    try:
        recorder.run(stop, args.seconds)
    finally:
        counts = recorder.close()
    for topic, n in sorted(counts.items()):
        console.print(f"{n:8d}  {topic}")
    if not sum(counts.values()):
        warn("humanoid record: nothing was received: is a stack running in this ROS domain?")
        return 1
    console.print(f"recorded to {output}")
    return 0


class Recorder:
    """A ROS node that subscribes to whatever appears, and writes the bytes as they come."""

    def __init__(self, output: Path, only: set[str]) -> None:
        import rclpy
        from rclpy.signals import SignalHandlerOptions

        from humanoid_control.evaluation.bag import BagWriter
        from humanoid_control.nodes.base.runner import make_executor

        self.bag = BagWriter(output)
        self._only = {t if t.startswith("/") else f"/{t}" for t in only}
        self._seen: set[str] = set()
        self._stop = threading.Event()
        rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
        self.node: Any = rclpy.create_node("recorder")
        self._executor = make_executor()
        self._executor.add_node(self.node)

    def run(self, stop: threading.Event, seconds: float) -> None:
        """Record until told to stop, at most for some time [s]."""
        self._stop = stop
        end = time.monotonic() + seconds
        look = 0.0
        while not stop.is_set() and time.monotonic() < end:
            if time.monotonic() >= look:
                self._look_for_topics()
                look = time.monotonic() + 0.25
            self._executor.spin_once(timeout_sec=0.05)

    def _look_for_topics(self) -> None:
        for topic, types in self.node.get_topic_names_and_types():
            if topic in self._seen or topic in SKIPPED or (self._only and topic not in self._only):
                continue
            publishers = self.node.get_publishers_info_by_topic(topic)
            if publishers:
                self._subscribe(topic, types[0], publishers[0].qos_profile)

    def _subscribe(self, topic: str, type_name: str, offered: Any) -> None:
        from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy

        self._seen.add(topic)
        package, _, name = type_name.split("/")
        try:
            message = getattr(importlib.import_module(f"{package}.msg"), name)
        except (ImportError, AttributeError):
            warn(f"humanoid record: {topic} is passed over: its type {type_name} is not installed")
            return
        latched = offered.durability == DurabilityPolicy.TRANSIENT_LOCAL
        reliable = offered.reliability == ReliabilityPolicy.RELIABLE
        qos = QoSProfile(
            depth=500,
            reliability=ReliabilityPolicy.RELIABLE if reliable else ReliabilityPolicy.BEST_EFFORT,
            durability=DurabilityPolicy.TRANSIENT_LOCAL if latched else DurabilityPolicy.VOLATILE,
        )
        self.bag.add_topic(topic, type_name, latched)

        def received(data: bytes) -> None:
            if not self._stop.is_set():  # one call of the executor may bring all that has piled up
                self.bag.write(topic, time.time_ns(), bytes(data))

        self.node.create_subscription(message, topic, received, qos, raw=True)

    def close(self) -> dict[str, int]:
        """Finish the bag, before anything that may take its time; messages per topic."""
        import rclpy

        self.bag.close()
        self._executor.shutdown()
        self.node.destroy_node()
        rclpy.try_shutdown()
        return dict(self.bag.counts)
