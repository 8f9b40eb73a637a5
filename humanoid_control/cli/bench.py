"""`humanoid bench`: measurements as a table, as JSON, or all of them as a page."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from humanoid_control.benchmarks import BENCHES, COLUMNS, load_bench
from humanoid_control.cli.parser import add_commands, comma_list
from humanoid_control.errors import ConfigError, UnknownNameError
from humanoid_control.files import check_file, whole_file
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
  humanoid bench all -o docs/benchmarks.md
"""
HELP = {
    "robot": "name of the catalogue or path of a URDF",
    "motion": "clip: 'dance' is built in, else a motion file",
    "seconds": "how long to measure",
}
ALL = "all benches one after the other, as a page (about 8 min)"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """A sub-command for each bench, with its own options, and one for all."""
    parsers = add_commands(parser, "bench", {name: bench.task for name, bench in BENCHES.items()} | {"all": ALL})
    for name, bench in BENCHES.items():
        for option, value in bench.options.items():
            text = f"{HELP[option]} (default: {value})"
            parsers[name].add_argument(f"--{option}", type=type(value), default=value, help=text)
        parsers[name].add_argument("--json", action="store_true", help="print one JSON object")
    parsers["all"].add_argument("-o", "--output", type=Path, help="Markdown file to write (default: print it)")
    parsers["all"].add_argument("--only", type=comma_list, default=[], help="some benches: ik,loop")


def run(args: argparse.Namespace) -> int:
    """Measure, and print what was measured."""
    if args.bench == "all":
        return _all(args)
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


def _all(args: argparse.Namespace) -> int:
    """Run benches with their default options, and write the page."""
    from humanoid_control.benchmarks.page import markdown_page

    for name in args.only:
        if name not in BENCHES:
            raise UnknownNameError("bench", name, BENCHES)
    if args.output is not None and args.output.suffix != ".md":
        raise ConfigError(f"-o must be a .md file, got {args.output}")
    check_file(args.output)
    results = {}
    for name in args.only or BENCHES:
        if args.output is not None:
            console.print(f"bench {name}: {BENCHES[name].task}")
        results[name] = load_bench(name).measure(quiet=args.output is None)
    text = markdown_page(results, machine())
    if args.output is None:
        print(text, end="")
        return 0
    with whole_file(args.output) as file:
        file.write_text(text, encoding="utf-8")
    console.print(f"written: {args.output}")
    return 0
