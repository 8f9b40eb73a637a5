"""`humanoid replay`: publishes a recorded bag again, byte by byte, at its own pace."""

from __future__ import annotations

import argparse
import importlib
import signal
import threading
import time
from typing import Any

from humanoid_control.cli.parser import folder_path, given, refuse_unused, require_range
from humanoid_control.errors import ConfigError, UnknownNameError
from humanoid_control.nodes.base.ros_env import require_ros
from humanoid_control.robots.catalogue import urdf_path
from humanoid_control.terminal import console, progress, warn

EXAMPLES = """examples:
  humanoid replay DIR                  once, at the recorded pace
  humanoid replay DIR --speed 0.5 --loop
  humanoid replay DIR --viewer         with the browser view on http://localhost:8080
  humanoid replay DIR --topics joint_states targets
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("bag", type=folder_path, help="directory of the bag, or its .mcap file")
    parser.add_argument("--speed", type=float, default=1.0, help="against the recorded pace, default 1")
    parser.add_argument("--loop", action="store_true", help="begin again at the end")
    parser.add_argument("--topics", nargs="+", type=given, default=[], help="only these topics")
    parser.add_argument("--viewer", action="store_true", help="start the viewer as well")
    parser.add_argument("--robot", type=given, help="robot for the viewer; default: found in the recording")
    parser.add_argument("--port", type=int, help="port of the viewer (default: 8080)")


def run(args: argparse.Namespace) -> int:
    if not args.viewer:
        refuse_unused(args, ["robot", "port"], "--viewer")
    args.port = 8080 if args.port is None else args.port
    require_range("port", args.port, 1, 65535)
    require_ros()
    if args.robot:
        urdf_path(args.robot)  # a name that does not exist is said before anything starts
    if not 0.01 <= args.speed <= 100:
        raise ConfigError(f"--speed must be between 0.01 and 100, got {args.speed:g}")
    from humanoid_control.evaluation.bag import BagReader

    bag = BagReader(args.bag)
    only = {t if t.startswith("/") else f"/{t}" for t in args.topics}
    for topic in only:
        if topic not in bag.topics:
            raise UnknownNameError("topic", topic, bag.topics, hint=f"(in {args.bag})")
    stop = threading.Event()
    for s in (signal.SIGINT, signal.SIGTERM):
        signal.signal(s, lambda *_: stop.set())
    supervisor = _start_viewer(bag, args) if args.viewer else None
    player = Player(bag, only or None)
    try:
        player.meet()
        while not stop.is_set():
            n = player.play(stop, args.speed)
            console.print(f"{n} messages on {len(player.publishers)} topics played")
            if not args.loop:
                break
    finally:
        player.close()
        if supervisor is not None:
            supervisor.stop()
    return 0


def _start_viewer(bag: Any, args: argparse.Namespace) -> Any:
    """The viewer as a child process, for the robot in the recording."""
    from humanoid_control.nodes.session.runs import new_run_directory, replay_command, write_parameters
    from humanoid_control.nodes.session.supervisor import Supervisor, node_command

    robot = args.robot or robot_in(bag)
    directory = new_run_directory("replay")
    again = replay_command(args.bag.resolve(), args.port)
    supervisor = Supervisor(directory, lambda name, text: warn(f"{name}: {text}"))
    parameters = write_parameters(
        directory, {"/**": {"viewer": {"ros__parameters": {"robot": robot, "port": args.port, "replay": again}}}}
    )
    supervisor.start("viewer", node_command("humanoid_control.nodes.viewer", parameters))
    supervisor.wait_ready()
    console.print(f"viewer: http://localhost:{args.port}")
    return supervisor


def robot_in(bag: Any) -> str:
    """The robot whose diagnostics are in a recording.

    Raises:
        ConfigError: none; say which with --robot.
    """
    if "/diagnostics" in bag.topics:
        for _, _, message in bag.messages({"/diagnostics"}):
            for status in message.status:
                if status.hardware_id:
                    return str(status.hardware_id)
    raise ConfigError(f"{bag.path} does not say which robot it is of: give --robot")


class Player:
    """Publishers for the topics of a bag."""

    def __init__(self, bag: Any, only: set[str] | None) -> None:
        import rclpy
        from rclpy.signals import SignalHandlerOptions

        from humanoid_control.nodes.base.messages import LATCHED, PLAYED

        self.bag, self.only = bag, only
        rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
        self.node: Any = rclpy.create_node("player")
        self.publishers: dict[str, Any] = {}
        for topic, (type_name, _) in bag.topics.items():
            if only is not None and topic not in only:
                continue
            package, _, name = type_name.split("/")
            try:
                message = getattr(importlib.import_module(f"{package}.msg"), name)
            except (ImportError, AttributeError):
                warn(f"humanoid replay: {topic} is passed over: its type {type_name} is not installed")
                continue
            qos = LATCHED if bag.latched(topic) else PLAYED
            self.publishers[topic] = self.node.create_publisher(message, topic, qos)

    def meet(self, quiet: float = 0.7, most: float = 5.0) -> None:
        """Wait until no further subscription has been found for a while [s], so that none misses the beginning."""
        end, found, since = time.monotonic() + most, -1, time.monotonic()
        while (now := time.monotonic()) < end and now - since < (quiet if found > 0 else 4 * quiet):
            count = sum(p.get_subscription_count() for p in self.publishers.values())
            if count != found:
                found, since = count, now
            time.sleep(0.05)

    def play(self, stop: threading.Event, speed: float) -> int:
        """Play once; how many messages were published."""
        first, begin, n = None, time.monotonic(), 0
        with progress("replay", self.bag.duration) as show:
            for topic, time_ns, data in self.bag.raw(set(self.publishers)):
                first = time_ns if first is None else first
                due = begin + 1e-9 * (time_ns - first) / speed
                while (wait := due - time.monotonic()) > 0 and not stop.is_set():
                    time.sleep(min(wait, 0.1))
                if stop.is_set():
                    break
                self.publishers[topic].publish(data)
                n += 1
                if n % 100 == 0:
                    show(1e-9 * (time_ns - first))
        return n

    def close(self) -> None:
        import rclpy

        self.node.destroy_node()
        rclpy.try_shutdown()
        self.bag.close()
