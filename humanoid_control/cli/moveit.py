"""`humanoid moveit`: MoveIt configuration package of a robot."""

from __future__ import annotations

import argparse
import re

from humanoid_control.cli.parser import folder_path, given, tell_notes
from humanoid_control.errors import ConfigError
from humanoid_control.files import check_folder
from humanoid_control.robots.catalogue import load_robot
from humanoid_control.robots.moveit.package_files import MoveItConfig, write_moveit_config
from humanoid_control.terminal import console, progress, table

EXAMPLES = """examples:
  humanoid moveit --robot hrp2 -o src/hrp2_moveit_config      package with URDF, SRDF, limits, controllers, launch file
  humanoid moveit --robot my_robot.urdf -o my_moveit_config   the same for any URDF with a robot file
  humanoid moveit --robot hrp2 -o config --controller joint_trajectory_controller   plans run by ros2_control
  colcon build && . install/setup.bash && ros2 launch hrp2_moveit_config move_group.launch.py rviz:=true
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--robot", type=given, required=True, help="robot name or path of a URDF")
    parser.add_argument("-o", "--output", type=folder_path, required=True, help="folder of the package")
    parser.add_argument(
        "--controller", type=given, help="trajectory controller of ros2_control (default: the action of robot_driver)"
    )


def run(args: argparse.Namespace) -> int:
    if args.controller is not None and not re.fullmatch(r"/?[A-Za-z]\w*(/[A-Za-z]\w*)*", args.controller):
        raise ConfigError(
            f"--controller must be a ROS name such as joint_trajectory_controller, got '{args.controller}'"
        )
    check_folder(args.output)
    robot = load_robot(args.robot, "floating")
    tell_notes([robot])
    with progress("pairs of links", 1.0) as show:
        config = MoveItConfig.of(robot, args.controller or "", lambda share: show(share, robot.name))
    rows = [[g.name, len(g.joints), g.base_link, g.tip_link, ", ".join(g.subgroups)] for g in config.groups]
    table(f"groups of {robot.title}", ["group", "joints", "from", "to", "contains"], rows)
    reasons = [[reason, count] for reason, count in config.pairs.reasons.items()]
    table("pairs of links that are not checked", ["reason", "pairs"], [*reasons, ["checked", len(config.pairs.kept)]])
    for path in write_moveit_config(config, args.output):
        console.print(f"written: {path}")
    return 0
