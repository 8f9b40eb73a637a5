"""`humanoid demo`: a robot dances, reaches or walks, with a report."""

from __future__ import annotations

import argparse
import math
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from humanoid_control.cli.parser import (
    CLIP_OPTIONS,
    CLIP_PARAMETERS,
    add_clip_options,
    clip_options,
    clip_parameters,
    file_path,
    given,
    page_answers,
    refuse_unused,
    require_free_port,
    require_range,
    take_settings,
)
from humanoid_control.errors import ConfigError, UnknownNameError
from humanoid_control.files import check_file
from humanoid_control.in_child import in_child
from humanoid_control.mocap import CLIP_NAMES
from humanoid_control.nodes import require_ros
from humanoid_control.session import Session, Stack, find_stack, parse_settings
from humanoid_control.session.demo import (
    DANCE_LEAD_IN,
    REACH_TOPICS,
    WatchedRun,
    dance_report,
    reaching_report,
    watch_session,
)
from humanoid_control.session.runs import replay_command
from humanoid_control.terminal import activation_advice, console, print_json, print_parts
from humanoid_control.viewer import page_address

if TYPE_CHECKING:
    from humanoid_control.evaluation.limit_costs import LimitCosts
    from humanoid_control.robots import Robot
    from humanoid_control.viewer.page_strip import PageStrip

EXAMPLES = """examples:
  humanoid demo                                WABIAN-2 and a built-in dance, 32 s
  humanoid demo --robot lola --motion my.trc   another robot and your own clip
  humanoid demo --speed 0.5                    half speed, for slow robots
  humanoid demo --hold                         keep running until Ctrl-C
  humanoid demo --json > report.json           the report as JSON
  humanoid demo reach                          Lola reaches for random goals, some out of reach, with a report
  humanoid demo reach --robot hrp2 --seed 7    another robot and other goals
  humanoid demo walk                           Lola walks a short course by cmd_vel, with a report
  humanoid demo walk --ground plane:slope=5    up a known slope
  humanoid demo dance --on-feet --robot lola   Lola dances on its feet with simulated sensors
  humanoid demo dance --whole-body --robot hrp2   root and legs too, with feet held on the ground
  humanoid demo dance --perform --robot hrp2   the whole body under torque control, on its feet
  humanoid demo tendons                        reaching by tendons; one is cut halfway; with a report
  humanoid demo walk --robot hrp2 --hold       the course, then cmd_vel (ros2 topic pub, a gamepad)

Replay the run afterwards: humanoid replay ~/.humanoid/runs/latest/recording --viewer
"""
KINDS = ("dance", "reach", "walk", "tendons")
OPTIONS_OF_NODES = {
    "trajectory_streamer": {"clip": "motion", "speed": "speed", **CLIP_PARAMETERS},
    "whole_body_streamer": {"clip": "motion", "speed": "speed", **CLIP_PARAMETERS},
    "whole_body_controller": {"clip": "motion", "pace": "speed", **CLIP_PARAMETERS},
    "target_source": {"seed": "seed"},
    "viewer": {"port": "port"},
}
"""Node -> parameter -> option of this command that sets it."""
REACHER = WALKER = "lola"
PERFORMER = "hrp2"
TENDON_DRIVEN = "kengoro_upper"
PAGE_PATIENCE = 300.0  # [s] for the viewer's page: kernels may compile first
REPORTING = "reading the recording for the report ..."
WHOLE_BODY_TOPICS = ("joint_states", "odom", "contacts", "targets", "dancer", "/diagnostics")
DANCES = {"on_feet": "dance", "whole_body": "whole_body", "perform": "perform"}  # option -> stack
STACK_OF = {"dance": "imitation", "reach": "reach", "walk": "walking", "tendons": "tendons"}
# A combination of robot, clip and pace that looks right: target error 1.2 cm on average and 8 cm at most, a joint at
# its speed limit 3 % of the time (test/evaluation/test_limit_costs.py).
DANCER, MOTION, SECONDS = "wabian2", "gentle_dance", 32.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "demo",
        nargs="?",
        default="dance",
        help="demo to run: dance (default), reach (random goals for the hands), walk, or tendons (reaching by winches)",
    )
    parser.add_argument(
        "--robot", type=given, help="robot name or path of a URDF (default: wabian2; reach, walk: lola)"
    )
    parser.add_argument(
        "--motion", type=given, help=f"clip: a built-in name ({', '.join(CLIP_NAMES)}) or a file (default: {MOTION})"
    )
    add_clip_options(parser)
    parser.add_argument("--ground", type=given, help="walk: shape of the ground, such as plane:slope=5")
    parser.add_argument("--seconds", type=float, help="run time [s] (default: 32; reach: 30)")
    parser.add_argument("--speed", type=float, help="playback speed of the clip (default: 1)")
    parser.add_argument("--seed", type=int, help="seed of the random goals of reach (default: 1)")
    parser.add_argument("--on-feet", action="store_true", help="dance: balance on the legs instead of a fixed pelvis")
    parser.add_argument(
        "--whole-body", action="store_true", help="dance: also retarget root and legs, without dynamics"
    )
    parser.add_argument(
        "--perform",
        action="store_true",
        help="dance: perform the whole-body motion on the robot's own feet, with dynamics",
    )
    parser.add_argument("--hold", action="store_true", help="keep running until Ctrl-C")
    parser.add_argument("--port", type=int, help="port of the viewer (default: 8080)")
    parser.add_argument(
        "--picture",
        type=file_path,
        metavar="FILE",
        help="tendons: filmstrip of the page to write, .png (needs Chromium)",
    )
    parser.add_argument("--no-viewer", action="store_true", help="do not start the browser page")
    parser.add_argument(
        "--set", action="append", default=[], metavar="NODE.PARAM=VALUE", help="set a node parameter; repeatable"
    )
    parser.add_argument("--json", action="store_true", help="print the report as JSON")


def run(args: argparse.Namespace) -> int:
    require_ros()
    if args.demo not in KINDS:
        raise UnknownNameError("demo", args.demo, KINDS)
    reach, walk = args.demo == "reach", args.demo == "walk"
    for option in DANCES:
        if getattr(args, option) and args.demo != "dance":
            raise ConfigError(f"--{option.replace('_', '-')} applies to the dance, not to `humanoid demo {args.demo}`")
    ways = [option for option in DANCES if getattr(args, option)]
    if len(ways) > 1:
        names = " and ".join(f"--{option.replace('_', '-')}" for option in ways)
        raise ConfigError(f"{names} exclude each other: give one of them")
    stack = find_stack(DANCES[ways[0]] if ways else STACK_OF[args.demo])
    if args.no_viewer:
        stack = stack.without("viewer")
    settings = parse_settings(stack, args.set)
    take_settings(args, settings, OPTIONS_OF_NODES)
    _check_unused(args)
    tendons = args.demo == "tendons"
    usual = {"reach": REACHER, "walk": WALKER, "tendons": TENDON_DRIVEN}
    dancer = PERFORMER if args.perform else WALKER if args.on_feet else DANCER
    args.robot = args.robot or usual.get(args.demo, dancer)
    whole = math.inf if args.perform else SECONDS
    args.seconds = (30.0 if reach or tendons else whole) if args.seconds is None else args.seconds
    _check_numbers(args)
    # Checked in a child process: this process only watches the nodes.
    checks = {"reach": _check_reacher, "tendons": _check_tendons, "walk": _check_walker}
    title = in_child(checks.get(args.demo, _check_input), args)
    if args.on_feet:
        in_child(_check_walker, args)
    if not args.no_viewer:
        require_free_port(args.port)
        settings.setdefault("viewer", {})["port"] = args.port
        _tell_of_page(args)
    if reach:
        return _reach(args, settings, stack, title)
    if tendons:
        return _tendons(args, settings, stack, title)
    if args.whole_body:
        return _whole_body(args, settings, stack, title)
    if args.perform:
        return _perform(args, settings, stack, title)
    if args.on_feet:
        return _dance_on_feet(args, settings, stack, title)
    return _walk(args, settings, stack, title) if walk else _dance(args, settings, stack, title)


def _dance(args: argparse.Namespace, settings: dict[str, dict[str, Any]], stack: Stack, title: str) -> int:
    """Imitate the clip; 0 if limits and clearances held."""
    clip = {"clip": args.motion, **clip_parameters(args)}
    streamer = settings.setdefault("trajectory_streamer", {})
    streamer.update(clip, speed=args.speed)
    lead_in = streamer.setdefault("lead_in", DANCE_LEAD_IN)
    _print(args, f"{title} imitates '{args.motion}'; Ctrl-C stops early")
    with Session(stack, args.robot, settings, record=True, quiet=args.json) as session:
        ran = watch_session(session, args.seconds, args.hold, "dance", args.json)
    _print(args, REPORTING)
    robot = _load(args.robot)
    report = dance_report(session, ran, robot, lead_in) | {"motion": args.motion}
    _print(args, "solving the clip again without each limit ...")
    costs = _limit_costs(args, robot, report["duration_s"])
    if args.json:
        print_json(report | {"limit_costs": costs.to_json()})
    else:
        from humanoid_control.evaluation.recorded_run import run_parts

        print_parts([*run_parts(report), costs.table(), costs.verdict, *costs.advice()])
        _print_end(session, ran)
    return 0 if report["good"] else 1


def _reach(args: argparse.Namespace, settings: dict[str, dict[str, Any]], stack: Stack, title: str) -> int:
    """Reach random goals and check the recording; 0 if all claims hold."""
    settings.setdefault("target_source", {})["seed"] = args.seed
    window = min(600.0, max(5.0, args.seconds))
    _print(args, f"{title} reaches for random goals, seed {args.seed}; Ctrl-C stops early")
    # Half of the nodes' messages report the injected faults: jumps and non-finite samples.
    with Session(stack, args.robot, settings, window=window, record=REACH_TOPICS, quiet=True) as session:
        ran = watch_session(session, args.seconds, args.hold, "reach", args.json)
    _print(args, REPORTING)
    from humanoid_control.evaluation.reaching import reach_parts
    from humanoid_control.nodes.whole_body_ik import WholeBodyIkParameters

    acceleration = float(settings.get("whole_body_ik", {}).get("acceleration", WholeBodyIkParameters.acceleration))
    report = reaching_report(session, ran, _load(args.robot), acceleration) | {"seed": args.seed}
    if args.json:
        print_json(report)
    else:
        print_parts([*reach_parts(report), *(f"  {text}" for text in report["warnings"])])
        _print_end(session, ran)
    return 0 if report["good"] else 1


def _tendons(args: argparse.Namespace, settings: dict[str, dict[str, Any]], stack: Stack, title: str) -> int:
    """Reach by tendons and cut one half-way; 0 if the controller coped."""
    from humanoid_control.session.tendon_demo import TENDON_TOPICS, print_tendons, reach_by_tendons

    settings.setdefault("target_source", {}).setdefault("seed", args.seed)
    _print(args, f"{title} reaches by its tendons alone; Ctrl-C stops early")
    robot = _load(args.robot)
    strip = _tendon_strip(args) if args.picture else None
    if strip is not None:  # the CPU renders the page
        settings["viewer"].setdefault("shadows", False)
    with Session(stack, args.robot, settings, record=TENDON_TOPICS, quiet=args.json) as session:
        begin = strip.start if strip is not None else lambda: None
        report = reach_by_tendons(session, robot, args.seconds, quiet=args.json, begin=begin)
        if strip is not None:
            strip.end()
            cut = report["cut"]
            strip.write(args.picture, lambda at: "all tendons" if at < 0.5 * args.seconds else f"{cut} is cut")
            _print(args, f"written: {args.picture}")
        _report_on_feet(args, session, report, print_tendons, "continues to reach")
    return 0 if report["good"] else 1


def _tendon_strip(args: argparse.Namespace) -> PageStrip:
    from humanoid_control.viewer.page_strip import PageStrip

    moments = [share * args.seconds for share in (0.05, 0.25, 0.55, 0.75)]
    return PageStrip(f"http://localhost:{args.port}", "cut this tendon", moments)


def _walk(args: argparse.Namespace, settings: dict[str, dict[str, Any]], stack: Stack, title: str) -> int:
    """Walk the course; 0 without falls and violated limits."""
    from humanoid_control.session.walk_course import (
        DEMO_PACE,
        WALK_TOPICS,
        course_for,
        course_step_time,
        print_walk,
        walk_course,
    )

    course = course_for(_load(args.robot, "floating"), args.ground or "")
    if args.ground:
        settings.setdefault("simulator", {})["ground"] = settings.setdefault("walker", {})["ground"] = args.ground
        settings["walker"].setdefault("step_time", course_step_time(args.ground))
    pace = settings.setdefault("simulator", {}).setdefault("real_time_factor", DEMO_PACE)
    seconds = sum(leg.seconds for leg in course)
    _print(args, f"{title} walks {seconds:g} s at {pace:g} of real time (--set simulator.real_time_factor=1)")
    with Session(stack, args.robot, settings, record=WALK_TOPICS, quiet=args.json) as session:
        report = walk_course(session, course, args.json)
        _report_on_feet(args, session, report, print_walk, "follows cmd_vel")
    return 0 if report["good"] else 1


def _dance_on_feet(args: argparse.Namespace, settings: dict[str, dict[str, Any]], stack: Stack, title: str) -> int:
    """Imitate the clip on two feet; 0 without a fall."""
    from humanoid_control.session.walk_course import DEMO_PACE, WALK_TOPICS, dance_on_feet, print_dance

    pace = settings.setdefault("simulator", {}).setdefault("real_time_factor", DEMO_PACE)
    streamer = settings.setdefault("trajectory_streamer", {})
    streamer.update(clip=args.motion, **clip_parameters(args), speed=min(max(args.speed * pace, 0.05), 4.0))
    _print(args, f"{title} dances '{args.motion}' on its feet at {pace:g} of real time; Ctrl-C stops early")
    with Session(stack, args.robot, settings, record=[*WALK_TOPICS, "targets"], quiet=args.json) as session:
        report = dance_on_feet(session, args.seconds, args.json)
        _report_on_feet(args, session, report, print_dance, "follows cmd_vel, and dances")
    return 0 if report["good"] else 1


def _whole_body(args: argparse.Namespace, settings: dict[str, dict[str, Any]], stack: Stack, title: str) -> int:
    """Imitate the clip with root and legs; 0 if contacts, limits and clearances held."""
    streamer = settings.setdefault("whole_body_streamer", {})
    streamer.update(clip=args.motion, **clip_parameters(args), speed=args.speed)
    streamer.setdefault("show_every", 1)
    _print(args, f"{title} imitates '{args.motion}' with its whole body; Ctrl-C stops early")
    with Session(stack, args.robot, settings, record=WHOLE_BODY_TOPICS, quiet=args.json) as session:
        ran = watch_session(session, args.seconds, args.hold, "dance", args.json)
    from humanoid_control.evaluation.whole_body_run import whole_body_parts, whole_body_report

    _print(args, REPORTING)
    assert session.bag is not None
    report = whole_body_report(session.bag, _load(args.robot, "floating")) | {"motion": args.motion, **ran.to_json()}
    if args.json:
        print_json(report)
    else:
        print_parts(whole_body_parts(report))
        _print_end(session, ran)
    return 0 if report["good"] else 1


def _perform(args: argparse.Namespace, settings: dict[str, dict[str, Any]], stack: Stack, title: str) -> int:
    """Perform the clip with the whole body on two feet; 0 if it ends without a fall."""
    from humanoid_control.session.performance import PERFORM_PACE, PERFORM_TOPICS, print_performance, watch

    pace = settings.setdefault("simulator", {}).setdefault("real_time_factor", PERFORM_PACE)
    performer = settings.setdefault("whole_body_controller", {})
    performer.update(clip=args.motion, **clip_parameters(args), pace=args.speed)
    performer.setdefault("loop", args.hold)
    _print(args, f"{title} performs '{args.motion}' at {pace:g} of real time; Ctrl-C stops early")
    with Session(stack, args.robot, settings, record=PERFORM_TOPICS, quiet=args.json) as session:
        report = watch(session, args.seconds, args.json) | {"motion": args.motion}
        _report_on_feet(args, session, report, print_performance, "repeats the performance")
    return 0 if report["good"] else 1


def _report_on_feet(
    args: argparse.Namespace,
    session: Session,
    report: dict[str, Any],
    show: Callable[[dict[str, Any]], None],
    does: str,
) -> None:
    if args.json:
        print_json(report)
    else:
        show(report)
    if args.hold and not session.stopped.is_set():
        _print(args, f"holding: it {does}; Ctrl-C stops")
        session.run(math.inf)
    assert session.bag is not None
    _print(args, f"replay:\n  {replay_command(session.bag)}")


def _tell_of_page(args: argparse.Namespace) -> None:
    """Print the viewer's address once its page answers, in the background."""
    url = page_address(args.port)

    def wait() -> None:
        if page_answers(url, PAGE_PATIENCE):
            _print(args, f"viewer: {url}")

    if not args.json:
        threading.Thread(target=wait, name="page", daemon=True).start()


def _print(args: argparse.Namespace, text: str) -> None:
    if not args.json:
        console.print(text, soft_wrap=True)


def _print_end(session: Session, ran: WatchedRun) -> None:
    console.print(f"started in {ran.started:.1f} s, stopped in {ran.stopped:.1f} s; replay:")
    assert session.bag is not None
    console.print(f"  {replay_command(session.bag)}")
    if advice := activation_advice():
        console.print(advice)


def _check_unused(args: argparse.Namespace) -> None:
    if args.demo != "dance":
        refuse_unused(args, ["motion", "speed", *CLIP_OPTIONS], f"the dance, not to `humanoid demo {args.demo}`")
    if args.demo != "walk":
        refuse_unused(args, ["ground"], "`humanoid demo walk`")
    if args.demo != "reach":
        refuse_unused(args, ["seed"], "`humanoid demo reach`")
    if args.demo != "tendons":
        refuse_unused(args, ["picture"], f"`humanoid demo tendons`, not to `humanoid demo {args.demo}`")
    elif args.picture and args.no_viewer:
        raise ConfigError("--picture shows the viewer: leave out --no-viewer")
    elif args.picture and args.picture.suffix != ".png":
        raise ConfigError(f"--picture must be a .png file, got {args.picture}")
    elif args.picture:
        check_file(args.picture)
    if args.demo == "walk":
        refuse_unused(args, ["seconds"], "demos without a course, not to `humanoid demo walk`")
    if args.no_viewer:
        refuse_unused(args, ["port"], "the viewer, which --no-viewer disables")
    speed = 0.0 if args.perform else 1.0  # 0: slow down only where the motion requires it
    for name, value in {"motion": MOTION, "speed": speed, "seed": 1, "port": 8080}.items():
        if getattr(args, name) is None:
            setattr(args, name, value)


def _check_numbers(args: argparse.Namespace) -> None:
    require_range("seconds", None if args.perform and math.isinf(args.seconds) else args.seconds, 1, 36000)
    own_pace = args.perform and args.speed == 0.0
    require_range("speed", None if own_pace else args.speed, *((0.1, 2) if args.perform else (0.05, 4)))
    require_range("port", args.port, 1, 65535)


def _load(robot: str, base: str = "fixed") -> Robot:
    from humanoid_control.robots.catalogue import load_robot

    return load_robot(robot, base)


def _check_input(args: argparse.Namespace) -> str:
    """Load robot and clip early, for quick errors; return the robot's title."""
    from humanoid_control.mocap.body_points import find_body_points
    from humanoid_control.mocap.load import load_clip
    from humanoid_control.retargeting.scaling import scale_to_robot
    from humanoid_control.retargeting.whole_body.scaling import WholeBodyScaler

    whole_body = args.whole_body or args.perform
    robot = _load(args.robot, "floating" if whole_body else "fixed")
    marker_set, reading = clip_options(args)
    body = find_body_points(load_clip(args.motion, **reading), marker_set)
    if args.perform:
        from humanoid_control.performing import check_performer

        check_performer(robot)
    if whole_body:
        WholeBodyScaler(body, robot)
    else:
        scale_to_robot(body, robot)
    return robot.title


def _check_reacher(args: argparse.Namespace) -> str:
    from humanoid_control.reaching import GoalSampler

    if not 0 <= args.seed < 2**31:
        raise ConfigError(f"--seed must be between 0 and {2**31 - 1}, got {args.seed}")
    robot = _load(args.robot)
    GoalSampler(robot)
    return robot.title


def _check_tendons(args: argparse.Namespace) -> str:
    from humanoid_control.robots.tendons import tendon_geometry

    tendon_geometry(_load(args.robot))
    return _check_reacher(args)


def _check_walker(args: argparse.Namespace) -> str:
    from humanoid_control.simulation.contact.ground_recipe import ground_of
    from humanoid_control.walking.feet import Feet

    robot = _load(args.robot, "floating")
    Feet(robot)
    if args.ground:
        ground_of(args.ground)
    return robot.title


def _limit_costs(args: argparse.Namespace, robot: Robot, seconds: float) -> LimitCosts:
    """Recompute the motion: costs of each limit, remedies."""
    from humanoid_control.evaluation.limit_costs import measure_limit_costs
    from humanoid_control.mocap.load import load_body_points
    from humanoid_control.robots.catalogue import load_robot
    from humanoid_control.robots.names import CATALOGUE

    others = [load_robot(name, "fixed") for name in CATALOGUE if name != robot.name]
    marker_set, reading = clip_options(args)
    return measure_limit_costs(load_body_points(args.motion, marker_set, **reading), robot, args.speed, seconds, others)
