"""`humanoid ros2_control`: ros2_control files for a robot."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from humanoid_control.cli.parser import folder_path, given, require_range
from humanoid_control.errors import ConfigError
from humanoid_control.hardware.ros2_control.control_files import GAINS_PLUGIN, write_ros2_control
from humanoid_control.robots.catalogue import load_robot
from humanoid_control.robots.humanoids import humanoids
from humanoid_control.robots.names import KNOWN
from humanoid_control.terminal import console

EXAMPLES = """examples:
  humanoid ros2_control --robot hrp2 -o control         URDF with a ros2_control tag, controllers, launch file
  humanoid ros2_control --robot my_robot.urdf -o .      the same for any URDF
  humanoid ros2_control --robot g1 -o . --gains         five command interfaces per joint, for policies
  ros2 launch control/hrp2.ros2_control.launch.py simulate:=true
"""
RATES = (10, 2000)  # [Hz]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--robot", type=given, required=True, help="robot name or path of a URDF")
    parser.add_argument("-o", "--output", type=folder_path, required=True, help="output folder of the three files")
    parser.add_argument("--rate", type=int, default=500, help="rate of the controller manager [Hz] (default: 500)")
    parser.add_argument(
        "--gains", action="store_true", help="five command interfaces per joint, including stiffness and damping"
    )
    parser.add_argument(
        "--plugin", type=given, help=f"hardware plugin that accepts gains (default with --gains: {GAINS_PLUGIN})"
    )


def run(args: argparse.Namespace) -> int:
    require_range("rate", args.rate, *RATES)
    if args.plugin is not None and not args.gains:
        raise ConfigError("--plugin needs --gains: without gains, the hardware interface is a pair of topics")
    robot = load_robot(args.robot, "fixed")
    source = args.robot if args.robot in (*KNOWN, *humanoids()) else str(Path(args.robot).resolve())
    if args.plugin is not None and not re.fullmatch(r"\w+/[\w:]+", args.plugin):
        raise ConfigError(f"--plugin must be PACKAGE/CLASS, such as {GAINS_PLUGIN}, got '{args.plugin}'")
    plugin = (args.plugin or GAINS_PLUGIN) if args.gains else ""
    for path in write_ros2_control(robot, source, args.output, args.rate, plugin):
        console.print(f"written: {path}")
    return 0
