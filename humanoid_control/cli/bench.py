"""`humanoid bench`: measurements, each one command, as a table or as JSON."""

from __future__ import annotations

import argparse
import importlib
import os
from typing import Any

from humanoid_control.errors import ConfigError, UnknownNameError
from humanoid_control.terminal import console, machine, print_json, table

BENCHES = {
    "stack": "the five nodes together: latency, rates, processor, memory, start (about 90 s)",
    "retarget": "frames a second of imitation, beside mink and pink where they are installed (about 20 s)",
    "bounding_volumes": "four bounding volumes on nine shapes, beside the published table (about 5 s)",
    "self_distance": "distances between a robot's shapes: our kernels beside coal (about 10 s)",
    "ik": "a tick of whole-body inverse kinematics, beside mink and pink where they are installed (about 80 s)",
    "loop": "the inverse kinematics node in closed loop at 500 Hz: latency, period, missed ticks (about 90 s)",
    "dynamics": "forward dynamics by three solvers, Lola with drives and Dill, beside pinocchio (about 2 min)",
    "distance": "swept-sphere volumes: six functions beside coal, and a whole robot (about 5 s)",
    "tendons": "joint-muscle mappings of table I, filter updates beside filterpy, three groups (about 45 s)",
}
MODULES = {"retarget": "retargeting", "distance": "ssv_distance"}  # where the name of the bench is not its module's
# Which benches an option is for; --robot is for all but the first of these.
ROBOTLESS = "bounding_volumes"
OPTIONS = {"motion": ("retarget",), "seconds": ("stack", "retarget", "loop")}
DEFAULTS = {"motion": "dance", "seconds": 60.0}
COLUMNS = ["name", "unit", "median", "p99", "n"]
EXAMPLES = (
    "benches:\n"
    + "\n".join(f"  {k:17} {v}" for k, v in BENCHES.items())
    + """

examples:
  humanoid bench stack
  humanoid bench stack --seconds 60 --robot lola --json
  humanoid bench retarget --motion my.trc --robot wabian2
  humanoid bench bounding_volumes
  humanoid bench self_distance --robot we4rii
  humanoid bench distance --json
  humanoid bench dynamics --json
  humanoid bench tendons --json
  humanoid bench ik
  humanoid bench loop --seconds 20
"""
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", help=", ".join(BENCHES))
    parser.add_argument("--robot", help="robot (default: hrp2; retarget: wabian2; ik, loop, distance: lola)")
    parser.add_argument("--motion", help="retarget: the clip (default: dance)")
    parser.add_argument("--seconds", type=float, help="stack, retarget, loop: how long to measure (default: 60)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    if args.name not in BENCHES:
        raise UnknownNameError("bench", args.name, BENCHES)
    for option, benches in (*OPTIONS.items(), ("robot", set(BENCHES) - {ROBOTLESS})):
        if getattr(args, option) is not None and args.name not in benches:
            raise ConfigError(f"--{option} is not for the bench '{args.name}'")
    for option, value in DEFAULTS.items():
        if getattr(args, option) is None:
            setattr(args, option, value)
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # one core each, and small matrices are faster so; before numpy
    module = importlib.import_module(f"humanoid_control.benchmarks.{MODULES.get(args.name, args.name)}")
    args.robot = args.robot or getattr(module, "ROBOT", "hrp2")
    rows: list[dict[str, Any]] = module.measure(args)
    columns: list[str] = getattr(module, "COLUMNS", COLUMNS)
    notes: list[str] = module.notes(rows) if hasattr(module, "notes") else []
    if args.json:
        more = {"notes": notes} if notes else {}
        print_json({"bench": args.name, "robot": args.robot, "machine": machine(), "rows": rows, **more})
    else:
        title = getattr(module, "TITLE", f"bench {args.name}, {args.robot}")
        table(title, columns, [[r[c] for c in columns] for r in rows])
        for line in notes:
            console.print(line)
    return 0
