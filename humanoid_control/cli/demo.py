"""`humanoid demo`: the main job on one line: a robot dances, or reaches, one watches, a report follows."""

from __future__ import annotations

import argparse

from humanoid_control.cli.demo_reach import ROBOT, run_reach
from humanoid_control.cli.demo_run import Watched, print_end, tell, watch
from humanoid_control.cli.output import print_json
from humanoid_control.cli.session import Session
from humanoid_control.errors import ConfigError, EnvironmentProblem, UnknownNameError
from humanoid_control.nodes.ros_env import require_ros
from humanoid_control.robots import Robot

EXAMPLES = """examples:
  humanoid demo                                HRP-2 and the built-in dance, 25 s
  humanoid demo --robot lola --motion my.trc   another robot, a clip of your own (TRC, C3D, BVH)
  humanoid demo --speed 0.5                    at half speed, for slow robots
  humanoid demo --hold                         keep running until Ctrl-C
  humanoid demo --json > report.json           the report as JSON
  humanoid demo reach                          Lola's hands go to random goals, some out of reach; a proof follows
  humanoid demo reach --robot hrp2 --seed 7    another robot, other goals

Afterwards `humanoid replay ~/.humanoid/runs/latest/recording --viewer` plays the run again.
"""
KINDS = ("dance", "reach")
LEAD_IN = 1.5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", nargs="?", default="dance", help="dance, or reach: random goals for the hands")
    parser.add_argument("--robot", help="name of the catalogue or path of a URDF (default: hrp2; reach: lola)")
    parser.add_argument("--motion", default="dance", help="clip: 'dance' is built in, else a TRC, C3D or BVH file")
    parser.add_argument("--seconds", type=float, help="how long (default: 25; reach: 30)")
    parser.add_argument("--speed", type=float, default=1.0, help="speed of the clip (default: 1)")
    parser.add_argument("--seed", type=int, default=1, help="of the random goals of reach (default: 1)")
    parser.add_argument("--hold", action="store_true", help="keep running until Ctrl-C")
    parser.add_argument("--port", type=int, default=8080, help="port of the viewer (default: 8080)")
    parser.add_argument("--no-viewer", action="store_true", help="without the browser page")
    parser.add_argument("--set", action="append", default=[], metavar="NODE.PARAM=VALUE", help="change a parameter")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")


def run(args: argparse.Namespace) -> int:
    require_ros()
    if args.what not in KINDS:
        raise UnknownNameError("demo", args.what, KINDS)
    reach = args.what == "reach"
    args.robot = args.robot or (ROBOT if reach else "hrp2")
    args.seconds = (30.0 if reach else 25.0) if args.seconds is None else args.seconds
    _check_numbers(args)
    robot = None if reach else _check_input(args)
    from humanoid_control.nodes.stack import Stack, find_stack, parse_settings
    from humanoid_control.viewer.page import port_is_free

    stack = find_stack("reach" if reach else "imitation")
    if args.no_viewer:
        nodes = tuple(n for n in stack.nodes if n.executable != "viewer")
        stack = Stack(stack.name, stack.task, nodes, stack.settings, stack.remaps)
    elif not port_is_free("127.0.0.1", args.port):
        raise EnvironmentProblem(
            f"port {args.port} is occupied: choose another with --port, or stop what listens there"
        )
    settings = parse_settings(stack, args.set)
    if not args.no_viewer:
        settings.setdefault("viewer", {})["port"] = args.port
        tell(args, f"viewer: http://localhost:{args.port}")
    if robot is None:
        return run_reach(args, settings, stack)
    settings.setdefault("trajectory_streamer", {}).update(clip=args.motion, speed=args.speed, lead_in=LEAD_IN)
    tell(args, f"{robot.title} imitates '{args.motion}'; Ctrl-C ends it early")
    with Session(stack, {"robot": args.robot}, settings, record=True, quiet=args.json) as session:
        ran = watch(args, session, "dance")
    return _report(args, session, robot, ran)


def _check_numbers(args: argparse.Namespace) -> None:
    if not 1 <= args.seconds <= 36000:
        raise ConfigError(f"--seconds must be between 1 and 36000, got {args.seconds:g}")
    if not 0.05 <= args.speed <= 4:
        raise ConfigError(f"--speed must be between 0.05 and 4, got {args.speed:g}")
    if not 1 <= args.port <= 65535:
        raise ConfigError(f"--port must be between 1 and 65535, got {args.port}")


def _check_input(args: argparse.Namespace) -> Robot:
    """Load robot and clip here first, so that a typo is answered in a second, in one line."""
    from humanoid_control.capture import body_points, load_clip
    from humanoid_control.imitation import scale_to_robot
    from humanoid_control.robots import load_robot

    robot = load_robot(args.robot, "fixed")
    scale_to_robot(body_points(load_clip(args.motion)), robot)
    return robot


def _report(args: argparse.Namespace, session: Session, robot: Robot, ran: Watched) -> int:
    from humanoid_control.cli.run_data import print_report, run_report

    assert session.bag is not None
    report = run_report(session.bag, robot, skip=LEAD_IN)
    report |= {
        "motion": args.motion,
        "start_s": round(ran.started, 2),
        "stop_s": round(ran.stopped, 2),
        "processes": ran.processes,
        "warnings": [f"{name}: {text}" for name, text in session.said],
    }
    good = report["limits"]["kept"] and report["self_collision"]["frames_in_collision"] == 0
    report["good"] = good
    if args.json:
        print_json(report)
    else:
        print_report(report)
        print_end(session, ran)
    return 0 if good else 1
