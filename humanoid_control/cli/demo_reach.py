"""`humanoid demo reach`: random goals for the hands, and a proof from the recorded commands."""

from __future__ import annotations

import argparse
from typing import Any

from humanoid_control.cli.demo_run import Watched, print_end, tell, watch
from humanoid_control.cli.output import console, print_json
from humanoid_control.cli.session import Session
from humanoid_control.errors import ConfigError
from humanoid_control.robots import Robot

ROBOT = "lola"
# What the proof and the viewer need: the less there is to record, the less is lost on a busy machine.
TOPICS = ("joint_commands", "goals", "targets", "joint_states", "odometry", "ik_markers", "/diagnostics")


def run_reach(args: argparse.Namespace, settings: dict[str, dict[str, Any]], stack: Any) -> int:
    """Run the stack for some time, then read the recording and say what it proves; 0 only where all of it holds."""
    from humanoid_control.ik.reach import GoalSampler
    from humanoid_control.nodes.whole_body_ik import WholeBodyIkParameters
    from humanoid_control.robots import load_robot

    if not 0 <= args.seed < 2**31:
        raise ConfigError(f"--seed must be between 0 and {2**31 - 1}, got {args.seed}")
    robot = load_robot(args.robot, "fixed")
    GoalSampler(robot)  # so that a robot without wrists is refused in one line
    settings.setdefault("target_source", {}).setdefault("seed", args.seed)
    shared = {"robot": args.robot, "window": min(600.0, max(5.0, args.seconds))}
    ik = settings.get("whole_body_ik", {})
    acceleration = float(ik.get("acceleration", WholeBodyIkParameters.acceleration))
    tell(args, f"{robot.title} reaches for random goals, seed {args.seed}; Ctrl-C ends it early")
    # Half of what the nodes say is what is asked for here: jumps and samples that are no numbers.
    with Session(stack, shared, settings, record=True, quiet=True, topics=TOPICS) as session:
        ran = watch(args, session, "reach")
    return _report(args, session, robot, acceleration, ran)


def _report(args: argparse.Namespace, session: Session, robot: Robot, acceleration: float, ran: Watched) -> int:
    from humanoid_control.cli.reach_data import print_reach, reach_report

    assert session.bag is not None
    report = reach_report(session.bag, robot, acceleration)
    report |= {
        "seed": args.seed,
        "start_s": round(ran.started, 2),
        "stop_s": round(ran.stopped, 2),
        "warnings": [f"{name}: {text}" for name, text in session.said if not _asked_for(text)],
    }
    if args.json:
        print_json(report)
    else:
        print_reach(report)
        for text in report["warnings"]:
            console.print(f"  {text}")
        print_end(session, ran)
    return 0 if report["good"] else 1


def _asked_for(text: str) -> bool:
    """Whether a warning is about nothing but what the script of goals does on purpose."""
    return all("is not a number: held" in t or "jumped: held" in t for t in text.split("; "))
