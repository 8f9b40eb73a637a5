"""`humanoid record`: record all topics into an MCAP bag."""

from __future__ import annotations

import argparse
import datetime
import math
import signal
import threading
from pathlib import Path

from humanoid_control.cli.parser import folder_path, given
from humanoid_control.errors import ConfigError
from humanoid_control.nodes.base.ros_env import require_ros
from humanoid_control.terminal import console, warn

EXAMPLES = """examples:
  humanoid record                         all topics to ./recording_<time>/, until Ctrl-C
  humanoid record -o dance --seconds 30   all topics to ./dance/, for 30 s
  humanoid record --topics joint_states joint_commands

The bag opens in Foxglove and plays with `humanoid replay DIR` or `ros2 bag play DIR`.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-o", "--output", type=folder_path, help="output directory of the bag (must not exist)")
    parser.add_argument("--topics", nargs="+", type=given, default=[], help="topics to record (default: all)")
    parser.add_argument("--seconds", type=float, default=math.inf, help="recording time [s] (default: until Ctrl-C)")


def run(args: argparse.Namespace) -> int:
    if not args.seconds > 0:
        raise ConfigError(f"--seconds must be above 0, got {args.seconds:g}")
    require_ros()
    from humanoid_control.nodes.base.runner import READY
    from humanoid_control.session.recording import Recorder

    output = args.output or Path(f"recording_{datetime.datetime.now():%Y-%m-%d_%H-%M-%S}")
    stop = threading.Event()
    for s in (signal.SIGINT, signal.SIGTERM):
        signal.signal(s, lambda *_: stop.set())
    recorder = Recorder(output, args.topics)
    until = f"for {args.seconds:g} s" if math.isfinite(args.seconds) else "until Ctrl-C"
    print(f"{READY}: recording to {output}, {until}", flush=True)
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
