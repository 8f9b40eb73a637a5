"""`humanoid policy`: summary of a learned policy, draft of its description, simulated run."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from humanoid_control.cli.parser import comma_list, file_path, given, refuse_unused, require_range
from humanoid_control.errors import ConfigError, PolicyError, UnknownNameError
from humanoid_control.files import check_file, whole_file
from humanoid_control.terminal import console, print_json, print_parts, progress, table, warn

if TYPE_CHECKING:
    from humanoid_control.policy import Limiter, PlayReport, Policy
    from humanoid_control.robots import Robot

EXIT_CONTRADICTION = 2
ENGINES = ("multibody", "mujoco")
LIMITERS = {
    "gate": "torque gate",
    "none": "PD loops only",
    "rate": "targets within 20 rad/s² and half the speed limits",
    "freeze": "posture held once a joint exceeds half its speed limit",
}
PLAYED = ("engine", "command", "seconds", "limiter", "clip", "supervise")
EXAMPLES = """examples:
  humanoid policy policy.onnx                     observations, joints, assumptions, contradictions
  humanoid policy deploy.yaml --robot g1          also checked against a robot: names, ranges, torque limits
  humanoid policy new policy.onnx -o mine.yaml    draft a description, with a question for each missing fact
  humanoid policy policy.onnx --robot g1 --play --command "0.5 0 0" --seconds 20
  humanoid policy policy.onnx --robot g1 --play --engine mujoco --limiter gate,none,rate,freeze
  humanoid policy twist2.yaml --network twist2_1017_20k.onnx --robot g1 --play --clip walk.bvh

Formats: LEAPP, metadata of BeyondMimic, mjlab and holosoma, Unitree deploy.yaml, rl_sar, YAML of ASAP, Berkeley
Humanoid Lite, booster_gym, FALCON and unitree_rl_gym, humanoid_policy/1. TorchScript and pickle files can execute code
and are never loaded. Exit code 2: the file contradicts itself or the robot; 1: the robot falls during play.
"""
NEW = "new"
STAND = 1.0  # [s] before the commanded velocity


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file", type=given, nargs="+", metavar="[new] FILE", help="ONNX file, YAML file, or folder of the policy"
    )
    parser.add_argument("--robot", type=given, help="robot to check against and to play: a name or path of a URDF")
    parser.add_argument(
        "--network", type=file_path, metavar="ONNX", help="ONNX file, instead of the one in the description"
    )
    parser.add_argument(
        "-o", "--output", type=file_path, metavar="YAML", help="output file of the draft (default: standard output)"
    )
    parser.add_argument("--play", action="store_true", help="run the policy in simulation")
    parser.add_argument("--engine", choices=ENGINES, help=f"simulation engine (default: {ENGINES[0]})")
    parser.add_argument(
        "--command", type=given, metavar='"X Y YAW"', help="commanded velocity after 1 s [m/s, m/s, rad/s] (default: 0)"
    )
    parser.add_argument(
        "--clip", type=given, help="reference motion of a tracker: .pkl or .npz of GMR or TWIST2, or a motion clip"
    )
    parser.add_argument("--seconds", type=float, help="play time [s] (default: 10, or the length of the clip)")
    parser.add_argument(
        "--limiter",
        type=comma_list,
        help=f"limiters to compare, comma-separated: {', '.join(LIMITERS)} (default: gate)",
    )
    parser.add_argument(
        "--supervise", action="store_true", help="catch the robot before it falls and lower it under control"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    words = args.file
    if words[0] == NEW and len(words) == 2:
        refuse_unused(args, ("robot", "network", "play", "json", *PLAYED), "existing policies, not to `new`")
        return _draft(Path(words[1]), args.output)
    if len(words) != 1:
        raise ConfigError(f"give one file, or 'new' and one file, got {' '.join(words)}")
    refuse_unused(args, ("output",), "the draft of a description: humanoid policy new FILE -o YAML")
    if args.play:
        return _play(args)
    refuse_unused(args, PLAYED, "a run in a simulator: --play")
    return _explain(args)


def _explain(args: argparse.Namespace) -> int:
    from humanoid_control.policy import examine, policy_data, policy_page, read_policy

    robot = _robot(args.robot) if args.robot is not None else None
    found = examine(*read_policy(Path(args.file[0]), args.network), robot)
    if args.json:
        print_json(policy_data(found))
    else:
        print_parts(policy_page(found))
    return EXIT_CONTRADICTION if found.contradictions else 0


def _robot(name: str) -> Robot:
    from humanoid_control.robots import load_robot

    return load_robot(name, "floating")


def _draft(path: Path, output: Path | None) -> int:
    from humanoid_control.policy import draft_description, read_network, read_policy
    from humanoid_control.policy.formats.reader import refuse_code

    check_file(output)
    model = None
    try:
        model, network = read_policy(path)
    except PolicyError:
        refuse_code(path)
        network = read_network(path)
    if network is None:
        raise PolicyError(f"{path}: contains no network: give its ONNX file")
    text = draft_description(network, model)
    if output is None:
        console.print(text, end="")
        return 0
    with whole_file(output) as part:
        part.write_text(text, encoding="utf-8")
    warn(
        f"{output}: {text.count('# ?')} questions; keep it next to {network.path.name}, then run: humanoid "
        f"policy {output}"
    )
    return 0


# -------- A run in a simulator


def _play(args: argparse.Namespace) -> int:
    from humanoid_control.policy import MotionReference, load_motion, load_policy

    if args.robot is None:
        raise ConfigError("--play needs a robot: --robot g1, or the path of a URDF")
    require_range("seconds", args.seconds, 0.1, 3600.0)
    limiters = args.limiter or ["gate"]
    for name in limiters:
        if name not in LIMITERS:
            raise UnknownNameError("limiter", name, LIMITERS)
    velocity = _velocity(args.command)
    robot = _robot(args.robot)
    policy = load_policy(args.file[0], robot, args.network)
    seconds = args.seconds or 10.0
    if args.clip is not None:
        if not isinstance(policy.reference, MotionReference):
            raise ConfigError(f"--clip applies to trackers of any motion, and {args.file[0]} is not one")
        motion = load_motion(Path(args.clip), robot, policy.model.joints, policy.model.anchor)
        policy.reference.follow(motion)
        seconds = args.seconds or STAND + (len(motion.joints) - 1) / motion.rate
    where = args.engine or ENGINES[0], args.supervise
    reports = {name: _played(policy, name, where, seconds, velocity) for name in limiters}
    if args.json:
        print_json({name: vars(r) for name, r in reports.items()})
    else:
        _print_reports(policy, reports)
    return 1 if any(r.fell is not None or r.stopped for r in reports.values()) else 0


def _velocity(text: str | None) -> tuple[float, float, float]:
    words = (text or "0 0 0").replace(",", " ").split()
    try:
        numbers = [float(w) for w in words]
    except ValueError:
        numbers = []
    if len(numbers) != 3 or not np.isfinite(numbers).all():
        raise ConfigError(f"--command must be three numbers, forward, sideward and turning, got '{text}'")
    return numbers[0], numbers[1], numbers[2]


def _played(
    policy: Policy, limiter: str, where: tuple[str, bool], seconds: float, velocity: tuple[float, float, float]
) -> PlayReport:
    from humanoid_control.policy import Command, PolicyPlayer, play, policy_engine

    engine, supervised = where
    player = PolicyPlayer(policy, policy_engine(policy.robot, engine), _limiter(limiter, policy), supervised)
    with progress(f"{policy.model.name}, {limiter}", seconds) as show:

        def each(p: PolicyPlayer) -> None:
            if p.engine.time >= STAND:
                p.command = Command(velocity)
            show(p.engine.time)

        return play(player, seconds, each)


def _limiter(name: str, policy: Policy) -> Limiter:
    from humanoid_control.policy import FreezeOnSpeed, TargetRateLimit, Unlimited, gate_for
    from humanoid_control.policy.player import LOOP

    robot = policy.robot
    makers: dict[str, Callable[[], Limiter]] = {
        "gate": lambda: gate_for(policy),
        "none": lambda: Unlimited(robot),
        "rate": lambda: TargetRateLimit(robot, LOOP),
        "freeze": lambda: FreezeOnSpeed(robot),
    }
    return makers[name]()


def _print_reports(policy: Policy, reports: dict[str, PlayReport]) -> None:
    names = policy.robot.joint_names

    def worst(values: np.ndarray, digits: int) -> str:
        k = int(np.argmax(values))
        return f"{values[k]:.{digits}f} ({names[k]})"

    rows: list[tuple[str, Callable[[PlayReport], str]]] = [
        ("simulated [s]", lambda r: f"{r.seconds:.1f}"),
        ("fell at [s]", lambda r: "no" if r.fell is None else f"{r.fell:.1f}"),
        ("distance [m]", lambda r: f"{r.distance:.2f}"),
        ("velocity error, mean [m/s]", lambda r: f"{r.velocity_error:.2f}"),
        (
            "joint error to the motion, mean [rad]",
            lambda r: f"{r.joint_error:.3f}" if np.isfinite(r.joint_error) else "-",
        ),
        ("torque / limit, largest", lambda r: worst(r.torque_share, 2)),
        ("joint steps at the torque limit", lambda r: f"{100 * r.clipped:.1f} %"),
        ("speed / limit, largest", lambda r: worst(r.speed_share, 2)),
        ("range violation, largest [rad]", lambda r: worst(np.maximum(r.range_excess, 0.0), 3)),
        ("range violation of the targets [rad]", lambda r: f"{r.target_excess:.3f}"),
        ("self-distance, smallest [mm]", lambda r: f"{1000 * r.self_distance:.0f}"),
        ("gate active: any rule", lambda r: _share(r, "any rule")),
        *((f"gate active: {n}", lambda r, n=n: _share(r, n)) for n in ("range", "speed", "pairs")),
    ]
    engine = next(iter(reports.values())).engine
    table(
        f"{policy.model.name} on {policy.robot.title}, {engine}",
        ("quantity", *(f"{name}" for name in reports)),
        [(label, *(value(r) for r in reports.values())) for label, value in rows],
    )
    for name, r in reports.items():
        if r.stopped:
            warn(f"{name}: {r.stopped}")
        for event in r.events:
            warn(f"{name}: {event.time:.2f} s: {event.state}: {event.why}")
    low, high = next(iter(reports.values())).observed
    if len(low):
        wide = int(np.argmax(np.maximum(np.abs(low), np.abs(high))))
        console.print(f"observations ranged from {low.min():.2f} to {high.max():.2f}; number {wide} varied most")


def _share(report: PlayReport, rule: str) -> str:
    return f"{100 * report.gate[rule]:.2f} %" if rule in report.gate else "-"
