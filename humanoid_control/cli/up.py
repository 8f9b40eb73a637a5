"""`humanoid up`: start, watch and stop a stack of nodes."""

from __future__ import annotations

import argparse
import math

from humanoid_control.cli.parser import comma_list, given, refuse_unused
from humanoid_control.errors import ConfigError
from humanoid_control.nodes import require_ros
from humanoid_control.nodes.base.parameters import check_frame_prefix
from humanoid_control.nodes.base.ros_env import check_namespace
from humanoid_control.robots.loadable import check_robot
from humanoid_control.session import STACKS, Session, find_stack, parse_settings
from humanoid_control.terminal import console, table

EXAMPLES = """examples:
  humanoid up                                   list the stacks
  humanoid up imitation --robot wabian2 --set trajectory_streamer.clip=my.bvh
  humanoid up control --set whole_body_ik.velocity_scale=0.3
  humanoid up imitation --namespace left --frame-prefix left/ --set viewer.port=8081
  humanoid up imitation --only simulator,state_estimator     on one host; on the other: --except with the same nodes

All node parameters: docs/parameters.md. Ctrl-C stops all nodes.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("stack", nargs="?", type=given, help="name of the stack (default: list the stacks)")
    parser.add_argument("--robot", type=given, help="robot name or path of a URDF (default: hrp2)")
    parser.add_argument(
        "--set", action="append", default=[], metavar="NODE.PARAM=VALUE", help="set a node parameter; repeatable"
    )
    each = "NODE[,NODE]"
    parser.add_argument("--only", type=comma_list, metavar=each, help="start only these nodes of the stack")
    parser.add_argument("--except", type=comma_list, metavar=each, dest="without", help="start all nodes except these")
    parser.add_argument("--namespace", type=given, help="namespace of the nodes, to run several robots")
    parser.add_argument(
        "--frame-prefix",
        type=given,
        metavar="PREFIX",
        help="prefix of all frames except world and map, such as left/ (default: none)",
    )
    parser.add_argument("--record", action="store_true", help="record all topics to the run directory")
    parser.add_argument("--seconds", type=float, help="run time [s] (default: until Ctrl-C)")


def run(args: argparse.Namespace) -> int:
    if args.stack is None:
        if args.without is not None:
            raise ConfigError("--except applies to `humanoid up STACK`")
        options = ["robot", "set", "only", "namespace", "frame_prefix", "record", "seconds"]
        refuse_unused(args, options, "`humanoid up STACK`")
        rows = [[s.name, s.task, ", ".join(s.executables)] for s in STACKS.values()]
        table("stacks", ["name", "task", "nodes"], rows)
        return 0
    stack = find_stack(args.stack).part(args.only or (), args.without or ())
    check_namespace("--namespace", args.namespace or "")
    check_frame_prefix(args.frame_prefix or "")
    seconds = math.inf if args.seconds is None else args.seconds
    if not seconds > 0:
        raise ConfigError(f"--seconds must be above 0, got {seconds:g}")
    robot = args.robot or "hrp2"
    require_ros()
    check_robot(robot)
    settings = parse_settings(stack, args.set)
    if args.frame_prefix:
        settings = {n: {"frame_prefix": args.frame_prefix, **settings.get(n, {})} for n in stack.executables}
    session = Session(stack, robot, settings, namespace=args.namespace or "", record=args.record)
    if session.viewer_url is not None:
        console.print(f"viewer: {session.viewer_url}", soft_wrap=True)
    with session:
        for row in session.processes():
            console.print(f"  {row['name']}: ready after {row['ready_s']} s")
        console.print(f"running; Ctrl-C stops; logs: {session.directory}")
        session.run(seconds)
        took = session.stop()
    console.print(f"stopped in {took:.1f} s")
    return 0
