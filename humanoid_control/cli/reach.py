"""`humanoid reach`: optimal arm motion between postures, or compared with a measured one."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from humanoid_control.cli.parser import comma_list, file_path, given, refuse_unused, require_range
from humanoid_control.cli.retarget import FORMATS, write_trajectory
from humanoid_control.errors import ConfigError, UnknownNameError
from humanoid_control.files import check_file
from humanoid_control.terminal import console, print_json, progress, table, warn
from humanoid_control.warm_up import report_compiling

if TYPE_CHECKING:
    from humanoid_control.reaching import Arm, Reach
    from humanoid_control.retargeting import JointTrajectory
    from humanoid_control.robots import Robot

PERSON = "person"
PERSON_POSTURES = {"zero": (0.0, 0.0, 0.0, 0.0), "rest": (-18.0, -6.0, -13.0, 33.0)}
"""Median of all motions that begin in the rest posture of the measured people [deg]."""
RATE = 100.0  # [Hz]
ADVICE = "compiling the reaching kernels (only once on this machine, about a minute)"
EXAMPLES = """examples:
  humanoid reach --robot lola --arm right --from neutral --to 40,-20,60 --cost mtc
  humanoid reach --robot wabian2 --to hand=0.3,-0.25,0.95 --cost torque -o reach.csv
  humanoid reach --robot hrp2 --arm left --to neutral --from zero --cost maj=0.7,mtc=0.3 --seconds 1.5
  humanoid reach --robot my.urdf --to hand=0.4,-0.2,1.0 --payload 2 --gravity off --json
  humanoid reach --robot person --from rest --to=-37,-76,-5,56 --cost torque
  humanoid reach --measured S05_trajs.mat               compare measured reaches with all criteria

An end is a posture of the robot file, hand=x,y,z (metres, world frame), or the arm joint angles in degrees from the
trunk to the hand (write --to=-37,... if the first is negative). Costs: torque, mtc (minimum torque change), maj
(minimum angle jerk), mchj (minimum constrained hand jerk), or a weighted sum.
CSV: time [s], then one column per joint [rad]; .mcap: a bag of joint_commands for `humanoid replay`.
"""
NOT_MEASURED = ("from", "to", "arm", "robot", "payload", "cost", "seconds", "param", "rate", "output", "gravity")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--robot", type=given, help=f"robot name, path of a URDF, or {PERSON} (default: lola)")
    parser.add_argument("--arm", type=given, help="arm: right or left (default: right)")
    parser.add_argument(
        "--from",
        dest="from",
        type=given,
        metavar="END",
        help="start posture: a name, hand=x,y,z, or angles (default: neutral)",
    )
    parser.add_argument("--to", type=given, metavar="END", help="end posture: a name, hand=x,y,z, or angles")
    parser.add_argument(
        "--cost", type=comma_list, help="cost: torque, mtc, maj, mchj, or weighted as maj=0.7,mtc=0.3 (default: mtc)"
    )
    parser.add_argument(
        "--gravity",
        choices=["on", "off"],
        help="gravity in the cost; off: only the torques of the motion (default: on)",
    )
    parser.add_argument("--seconds", type=float, help="duration [s] (default: 1)")
    parser.add_argument(
        "--param", type=given, help="trajectory parametrisation: quintic, cubic or ninth (default: quintic)"
    )
    parser.add_argument("--payload", type=float, help="point mass in the hand [kg] (default: 0)")
    parser.add_argument("--rate", type=float, help=f"sample rate of the output [Hz] (default: {RATE:g})")
    parser.add_argument("-o", "--output", type=file_path, help=f"output file: {', '.join(FORMATS)}")
    parser.add_argument(
        "--measured", type=file_path, metavar="FILE", help="measured reaches of one person of HuG-MP, a .mat file"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    if args.measured is not None:
        refuse_unused(args, NOT_MEASURED, "synthesised reaches, not to --measured")
        return _measured(args)
    require_range("rate", args.rate, 1.0, 10_000.0)
    require_range("payload", args.payload, 0.0, 1000.0)
    if args.seconds is not None and not 0.0 < args.seconds <= 1000.0:
        raise ConfigError(f"--seconds must be above 0, and at most 1000, got {args.seconds:g}")
    if args.output is not None:
        if args.output.suffix not in FORMATS:
            raise UnknownNameError("format", args.output.suffix, FORMATS, hint=f"(of {args.output})")
        if (args.robot or "") == PERSON:
            raise ConfigError("-o applies to robots only, not to a person")
        check_file(args.output)
    return _synthesised(args)


def costs_of(words: list[str]) -> dict[str, float]:
    """Parse weights of criteria such as mtc or maj=0.7.

    Raises:
        ConfigError: if a weight is not a number, or if a criterion is repeated.
    """
    out: dict[str, float] = {}
    for word in words:
        name, _, weight = word.partition("=")
        if name in out:
            raise ConfigError(f"the cost '{name}' is given twice")
        try:
            out[name] = float(weight) if weight else 1.0
        except ValueError:
            raise ConfigError(f"the weight of the cost '{name}' is not a number: '{weight}'") from None
    return out


# -------- A reach


def _synthesised(args: argparse.Namespace) -> int:
    from humanoid_control.reaching import ReachSettings, person_arm, robot_arm, synthesise
    from humanoid_control.robots import load_robot

    settings = ReachSettings(costs_of(args.cost or ["mtc"]), args.param or "quintic", gravity=args.gravity != "off")
    if args.to is None:
        raise ConfigError("no end of the reach given: --to NAME, --to hand=x,y,z or --to 40,-20,60")
    robot: Robot | None = None
    if args.robot == PERSON:
        refuse_unused(args, ["arm"], "robots: a person reaches with the right arm")
        arm, other = person_arm(4), np.zeros(0)
    else:
        robot = load_robot(args.robot or "lola", "fixed")
        arm, other = robot_arm(robot, args.arm or "right"), robot.postures["neutral"]
    side = args.arm or "right"
    start, goal = _end(vars(args)["from"], arm, robot, side), _end(args.to, arm, robot, side)
    loaded = arm.with_payload(args.payload) if args.payload else arm
    with report_compiling(warn, ADVICE):
        reach = synthesise(loaded, start, goal, 1.0 if args.seconds is None else args.seconds, settings)
    for note in reach.notes:
        warn(note)
    touching: list[Any] = []
    rate = args.rate or RATE
    if robot is not None:
        from humanoid_control.reaching.optimal.robot_reach import joint_motion, touches

        q, v = joint_motion(robot, reach, other, rate)
        touching = touches(robot, q, rate)
        for one in touching:
            warn(
                f"{one.names[0]} and {one.names[1]} touch from {one.begin:.2f} to {one.end:.2f} s, by up to "
                f"{1000 * one.depth:.0f} mm: reaches are not collision-checked"
            )
        if args.output is not None:
            write_trajectory(args.output, _trajectory(robot, q, v, rate, touching), np.zeros((len(q), 7, 3)))
    _print(args, reach, touching)
    return 0


def _end(text: str | None, arm: Arm, robot: Robot | None, side: str) -> np.ndarray:
    from humanoid_control.reaching.optimal.robot_reach import arm_angles, hand_posture

    if text is not None and text.startswith("hand="):
        if robot is None:
            raise ConfigError("hand=x,y,z applies to robots only: give the angles of the person, or a posture name")
        place = _numbers(text.removeprefix("hand="), "a hand position is x,y,z in metres")
        return arm_angles(robot, arm, hand_posture(robot, side, place, robot.postures["neutral"]))
    if text is not None and ("," in text or _is_number(text)):
        angles = _numbers(text, "angles are numbers in degrees")
        if len(angles) != arm.n:
            joints = ", ".join(arm.joint_names)
            raise ConfigError(f"expected {arm.n} angles in degrees, of {joints}; got {len(angles)}")
        return np.deg2rad(angles)
    known = PERSON_POSTURES if robot is None else robot.postures
    name = text or ("rest" if robot is None else "neutral")
    if name not in known:
        raise UnknownNameError("posture", name, known, hint="(or hand=x,y,z, or angles in degrees)")
    return np.deg2rad(PERSON_POSTURES[name]) if robot is None else arm_angles(robot, arm, robot.postures[name])


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _numbers(text: str, expected: str) -> np.ndarray:
    try:
        return np.array([float(word) for word in text.split(",")])
    except ValueError:
        raise ConfigError(f"{expected}, got '{text}'") from None


def _trajectory(robot: Robot, q: np.ndarray, v: np.ndarray, rate: float, touching: list[Any]) -> JointTrajectory:
    from humanoid_control.retargeting import JointTrajectory

    T = len(q)
    clearance = np.full(T, np.inf)
    for one in touching:
        clearance[int(one.begin * rate) : int(one.end * rate) + 1] = -one.depth
    return JointTrajectory(
        robot.joint_names, rate, q, v, np.zeros((T, 7)), np.zeros(T), clearance, np.zeros(T, dtype=int)
    )


def _print(args: argparse.Namespace, reach: Reach, touching: list[Any]) -> None:
    t = np.linspace(0.0, reach.seconds, 201)
    q, v, _, _ = reach.at(t)
    tau = reach.torques(t)
    rows = [
        [
            name,
            *(round(float(x), 1) for x in np.rad2deg([q[0, k], q[-1, k], q[:, k].min(), q[:, k].max()])),
            round(float(np.rad2deg(np.abs(v[:, k]).max())), 1),
            round(float(np.abs(tau[:, k]).max()), 2),
        ]
        for k, name in enumerate(reach.arm.joint_names)
    ]
    if args.json:
        data = {
            "arm": reach.arm.name,
            "seconds": reach.seconds,
            "cost": reach.cost,
            "costs": dict(reach.costs),
            "start": reach.start,
            "found": dict(reach.found),
            "iterations": reach.iterations,
            "converged": reach.converged,
            "notes": list(reach.notes),
            "touching": [
                {"names": list(one.names), "begin": one.begin, "end": one.end, "depth": one.depth} for one in touching
            ],
            "joints": {
                row[0]: dict(zip(("from", "to", "least", "most", "speed", "torque"), row[1:], strict=True))
                for row in rows
            },
        }
        print_json(data)
        return
    columns = ["joint", "from deg", "to deg", "min deg", "max deg", "speed deg/s", "torque N m"]
    table(f"{reach.arm.name}, {reach.seconds:g} s, {', '.join(reach.settings.cost)}", columns, rows)
    values = ", ".join(f"{name} {value:.4g}" for name, value in reach.costs.items())
    console.print(f"cost {reach.cost:.6g}; all criteria: {values}")
    if len(reach.found) > 1:
        others = ", ".join(f"{name} {cost:.4g}" for name, cost in reach.found.items())
        console.print(f"starts: {others}; chosen: {reach.start}")
    if args.output is not None:
        console.print(f"written: {args.output}")


# -------- Measured


def _measured(args: argparse.Namespace) -> int:
    from humanoid_control.reaching import compare_person, read_measured_reaches, summary

    reaches = read_measured_reaches(Path(args.measured))
    rows: list[dict[str, Any]] = []
    with report_compiling(warn, ADVICE), progress("reaches", len(reaches), quiet=args.json) as show:
        for k, one in enumerate(reaches):
            rows += compare_person([one])
            show(k + 1)
    found = summary(rows)
    if args.json:
        print_json({"measured": str(args.measured), "reaches": rows, "summary": found})
        return 0
    columns = ["criterion", "median deg", "quartile", "quartile", "2 s or longer", "nearest %"]
    lines = [
        [name, *(_rounded(f[key]) for key in ("median", "lower", "upper", "long")), _rounded(100 * f["nearest"])]
        for name, f in found.items()
    ]
    table(f"{args.measured}: {len(rows)} reaches, distance to the optimal motion of each criterion", columns, lines)
    console.print(
        "Distances: root mean square over four joints and all samples. nearest: among maj, mtc and torque. "
        "weightless: without gravity; mix_0.25: 25 % joint jerk, 75 % torque change."
    )
    return 0


def _rounded(value: float) -> str:
    return "" if np.isnan(value) else f"{value:.1f}"
