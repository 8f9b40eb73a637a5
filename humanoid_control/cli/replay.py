"""`humanoid replay`: publish a recorded bag unchanged at its own pace."""

from __future__ import annotations

import argparse
import signal
import threading
import time

from humanoid_control.cli.parser import folder_path, given, page_answers, refuse_unused, require_range
from humanoid_control.errors import ConfigError
from humanoid_control.evaluation.bag import BagReader
from humanoid_control.nodes.base.ros_env import require_ros
from humanoid_control.robots.catalogue import urdf_path
from humanoid_control.session.recording import BagPlayer, chosen_topics, robot_in
from humanoid_control.session.runs import new_run_directory, replay_command, write_parameters
from humanoid_control.session.supervisor import Supervisor, node_command
from humanoid_control.terminal import Waiting, console, warn
from humanoid_control.viewer import page_address

EXAMPLES = """examples:
  humanoid replay DIR                  once at the recorded pace
  humanoid replay DIR --speed 0.5 --loop
  humanoid replay DIR --viewer         with the viewer on http://localhost:8080
  humanoid replay DIR --topics joint_states targets
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("bag", type=folder_path, help="directory of the bag, or its .mcap file")
    parser.add_argument(
        "--speed", type=float, default=1.0, help="playback speed relative to the recorded pace (default: 1)"
    )
    parser.add_argument("--loop", action="store_true", help="restart at the end of the bag")
    parser.add_argument("--topics", nargs="+", type=given, default=[], help="topics to play (default: all)")
    parser.add_argument("--viewer", action="store_true", help="also start the viewer")
    parser.add_argument("--robot", type=given, help="robot of the viewer (default: from the recording)")
    parser.add_argument("--port", type=int, help="port of the viewer (default: 8080)")


def run(args: argparse.Namespace) -> int:
    if not args.viewer:
        refuse_unused(args, ["robot", "port"], "--viewer")
    args.port = 8080 if args.port is None else args.port
    require_range("port", args.port, 1, 65535)
    require_ros()
    if args.robot:
        urdf_path(args.robot)  # reports an unknown name before the start
    if not 0.01 <= args.speed <= 100:
        raise ConfigError(f"--speed must be between 0.01 and 100, got {args.speed:g}")
    bag = BagReader(args.bag)
    chosen_topics(bag, args.topics)  # reports a missing topic before the start
    supervisor = _start_viewer(bag, args) if args.viewer else None
    stop = threading.Event()
    for s in (signal.SIGINT, signal.SIGTERM):
        signal.signal(s, lambda *_: stop.set())
    player = BagPlayer(bag, args.topics)
    try:
        console.print(f"playing {args.bag}; Ctrl-C stops")
        player.meet()
        while not stop.is_set():
            n = player.play(stop, args.speed)
            console.print(f"{n} messages on {len(player.publishers)} topics played")
            if not args.loop:
                break
        if stop.is_set() and not args.loop:
            raise KeyboardInterrupt  # the bag did not reach its end
    finally:
        player.close()
        if supervisor is not None:
            supervisor.stop()
    return 0


def _start_viewer(bag: BagReader, args: argparse.Namespace) -> Supervisor:
    """Start the viewer as a child process for the recorded robot."""
    robot = args.robot or robot_in(bag)
    directory = new_run_directory("replay")
    again = replay_command(args.bag.resolve(), args.port)
    supervisor = Supervisor(directory, lambda name, text: warn(f"{name}: {text}"))
    parameters = write_parameters(
        directory, {"/**": {"viewer": {"ros__parameters": {"robot": robot, "port": args.port, "replay": again}}}}
    )
    waiting = Waiting()

    def wait() -> None:
        time.sleep(0.02)
        waiting.tell("the viewer")

    try:
        supervisor.start("viewer", node_command("humanoid_control.nodes.viewer", parameters))
        supervisor.wait_ready(meanwhile=wait)
        url = page_address(args.port)
        if page_answers(url, 60.0):
            console.print(f"viewer: {url}", soft_wrap=True)
    except BaseException:  # also on an interrupt
        supervisor.stop()
        raise
    return supervisor
