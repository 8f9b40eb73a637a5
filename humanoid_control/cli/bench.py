"""`humanoid bench`: measurements as a table, as JSON, or all of them as a page."""

from __future__ import annotations

import argparse
from typing import Any

from humanoid_control.benchmarks import BENCHES, COLUMNS, load_bench
from humanoid_control.cli.parser import add_commands
from humanoid_control.terminal import console, machine, print_json, table

EXAMPLES = """examples:
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
HELP = {
    "robot": "name of the catalogue or path of a URDF",
    "motion": "clip: 'dance' is built in, else a motion file",
    "seconds": "how long to measure",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """A sub-command for each bench, with its own options."""
    parsers = add_commands(parser, "bench", {name: bench.task for name, bench in BENCHES.items()})
    for name, one in parsers.items():
        for option, value in BENCHES[name].options.items():
            one.add_argument(f"--{option}", type=type(value), default=value, help=f"{HELP[option]} (default: {value})")
        one.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    """Measure, and print what was measured."""
    bench = load_bench(args.bench)
    options: dict[str, Any] = {name: getattr(args, name) for name in BENCHES[args.bench].options}
    rows = bench.measure(**options, quiet=args.json)
    notes = bench.notes(rows)
    robot = options.get("robot", "")
    if args.json:
        print_json({"bench": args.bench, "robot": robot, "machine": machine(), "rows": rows, "notes": notes})
        return 0
    columns = getattr(bench, "COLUMNS", COLUMNS)
    title = getattr(bench, "TITLE", f"bench {args.bench}, {robot}")
    table(title, columns, [[r[c] for c in columns] for r in rows])
    for line in notes:
        console.print(line)
    return 0
