"""`humanoid bench`: measurements, each one command, as a table or as JSON."""

from __future__ import annotations

import argparse
import importlib
from typing import Any

from humanoid_control.cli.output import machine, print_json, table
from humanoid_control.errors import UnknownNameError

BENCHES = {"stack": "the five nodes together: latency, rates, processor, memory, start (about 90 s)"}
EXAMPLES = (
    "benches:\n"
    + "\n".join(f"  {k:10} {v}" for k, v in BENCHES.items())
    + """

examples:
  humanoid bench stack
  humanoid bench stack --seconds 60 --robot lola --json
"""
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", help=", ".join(BENCHES))
    parser.add_argument("--robot", default="hrp2", help="robot (default: hrp2)")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long to measure (default: 60)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    if args.name not in BENCHES:
        raise UnknownNameError("bench", args.name, BENCHES)
    module = importlib.import_module(f"humanoid_control.cli.bench_{args.name}")
    rows: list[dict[str, Any]] = module.measure(args)
    if args.json:
        print_json({"bench": args.name, "robot": args.robot, "machine": machine(), "rows": rows})
    else:
        columns = ["name", "unit", "median", "p99", "n"]
        table(f"bench {args.name}, {args.robot}", columns, [[r[c] for c in columns] for r in rows])
    return 0
