"""`humanoid ros2_control`: files with which ros2_control drives a robot."""

from __future__ import annotations

import argparse
from pathlib import Path

from humanoid_control.cli.parser import folder_path, given, require_range
from humanoid_control.hardware.ros2_control.control_files import write_ros2_control
from humanoid_control.robots.catalogue import load_robot
from humanoid_control.robots.humanoids import humanoids
from humanoid_control.robots.names import KNOWN
from humanoid_control.terminal import console

EXAMPLES = """examples:
  humanoid ros2_control --robot hrp2 -o control         URDF with a ros2_control tag, controllers, launch file
  humanoid ros2_control --robot my_robot.urdf -o .      the same for any URDF
  ros2 launch control/hrp2.ros2_control.launch.py simulate:=true
"""
RATES = (10, 2000)  # [Hz]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--robot", type=given, required=True, help="a name of the catalogue or the path of a URDF")
    parser.add_argument("-o", "--output", type=folder_path, required=True, help="folder for the three files")
    parser.add_argument("--rate", type=int, default=500, help="rate of the controller manager in Hz (default: 500)")


def run(args: argparse.Namespace) -> int:
    require_range("rate", args.rate, *RATES)
    robot = load_robot(args.robot, "fixed")
    source = args.robot if args.robot in (*KNOWN, *humanoids()) else str(Path(args.robot).resolve())
    for path in write_ros2_control(robot, source, args.output, args.rate):
        console.print(f"written: {path}")
    return 0
