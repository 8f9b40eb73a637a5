"""`humanoid bench`: measurements as a table, as JSON, or all of them as a page."""

from __future__ import annotations

import argparse
import contextlib
import tempfile
from pathlib import Path
from typing import Any

from evidence.benchmarks import BENCHES, COLUMNS, load_bench, yardstick
from humanoid_control.cli.parser import CLIP_HELP, add_commands, comma_list, file_path, folder_path, given
from humanoid_control.errors import ConfigError, UnknownNameError
from humanoid_control.files import check_file, check_folder
from humanoid_control.terminal import console, machine, print_json, stdout_to_stderr, table, warn

EXAMPLES = """examples:
  humanoid bench stack
  humanoid bench stack --seconds 60 --robot lola --json
  humanoid bench start --rounds 10
  humanoid bench start --cold --json
  humanoid bench retarget --motion my.trc --robot wabian2
  humanoid bench bounding_volumes
  humanoid bench self_distance --robot we4rii
  humanoid bench distance --json
  humanoid bench dynamics --json
  humanoid bench tendons --json
  humanoid bench ik
  humanoid bench loop --seconds 20
  humanoid bench latency --cycles 10000000 --load 2 --keep latency/
  humanoid bench policy --seconds 600
  humanoid bench reaching --json
  humanoid bench human_node --seconds 30
  humanoid bench driver --only cycle_compute,unitree
  humanoid bench perform --robot g1 --motion dance1.trc
  humanoid bench walk --quick
  humanoid bench walk --keep trials/
  humanoid bench retarget --motion 05_02.bvh --robot suralp,hrp2
  humanoid bench all -o evidence/docs/benchmarks.md --keep results/
"""
HELP = {
    "robot": "robot name or path of a URDF; retarget: comma-separated for several",
    "motion": f"{CLIP_HELP} (default: dance, and 05_02.bvh of $HUMANOID_TEST_DATA)",
    "marker_set": "marker set of the clip: a name, or the path of a marker set file",
    "unit": "length unit of the clip: mm, cm, m, inch",
    "scale": "scale factor of the clip",
    "policy": "policy file (default: a public one of $HUMANOID_TEST_DATA)",
    "seconds": "measurement time [s]",
    "cycles": "ticks at 500 Hz",
    "load": "busy processes next to the nodes",
    "transport": "of Fast DDS: udp (loopback) or shm (shared memory)",
    "clips": "clips per round",
    "only": "parts to run, comma-separated",
    "engine": "simulation engine: multibody or mujoco",
    "rounds": "repetitions of each measurement or start",
    "trials": "number of driver kills; emergency stops are a tenth of it",
    "quick": "run only a sample of all trials",
    "cold": "also recompile all kernels, and run `make demo` in a new checkout (needs the network)",
    "keep": "folder of trials or segments; existing ones are not repeated",
}
ALL = "run all benches in sequence and write a page (about 20 min)"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add a sub-command with options for each bench, and one for all."""
    parsers = add_commands(parser, "bench", {name: bench.task for name, bench in BENCHES.items()} | {"all": ALL})
    for name, bench in BENCHES.items():
        for option, value in bench.options.items():
            if isinstance(value, bool):
                parsers[name].add_argument(f"--{option}", action="store_true", help=HELP[option])
                continue
            text = HELP[option] + (f" (default: {value})" if value != "" else "")
            parsers[name].add_argument(
                f"--{option.replace('_', '-')}",
                type=folder_path if option == "keep" else given if isinstance(value, str) else type(value),
                default=None if value == "" else value,  # argparse would also check the empty text
                help=text,
            )
        parsers[name].add_argument("--json", action="store_true", help="print one JSON object")
    parsers["all"].add_argument("-o", "--output", type=file_path, help="Markdown file to write (default: print it)")
    parsers["all"].add_argument("--only", type=comma_list, default=[], help="benches to run: ik,loop")
    parsers["all"].add_argument(
        "--keep",
        type=folder_path,
        help="folder of the results of each bench; existing ones are not repeated",
    )
    parsers["all"].add_argument(
        "--summary", type=file_path, help="Markdown file in which to replace the small table between two marks"
    )


def run(args: argparse.Namespace) -> int:
    """Run a bench and print its measurements."""
    if args.bench == "all":
        return _all(args)
    bench = load_bench(args.bench)
    given_ones = {name: getattr(args, name) for name in BENCHES[args.bench].options}
    options: dict[str, Any] = {name: "" if value is None else value for name, value in given_ones.items()}
    with stdout_to_stderr() if args.json else contextlib.nullcontext():  # libraries also print to stdout
        rows = bench.measure(**options, quiet=args.json)
    notes = bench.notes(rows)
    reference, robot = yardstick(), options.get("robot", "")
    if args.json:
        report = {"bench": args.bench, "robot": robot, "machine": machine(), "rows": rows, "notes": notes}
        print_json({**report, "yardstick": reference})
        return 0
    columns = getattr(bench, "COLUMNS", COLUMNS)
    title = getattr(bench, "TITLE", f"bench {args.bench}, {robot}")
    table(title, columns, [[r.get(c, "") for c in columns] for r in rows])
    for line in (
        *notes,
        f"{reference['name']}, Lola, in this run: {reference['median']} us, p99 {reference['p99']} us",
    ):
        console.print(line)
    return 0


def _all(args: argparse.Namespace) -> int:
    """Run benches with their default options and write the page; return 1 if one failed."""
    from evidence.benchmarks.page import measure_all, write_page, write_summary

    for name in args.only:
        if name not in BENCHES:
            raise UnknownNameError("bench", name, BENCHES)
    for kind, path in (("output", args.output), ("summary", args.summary)):
        if path is not None and path.suffix != ".md":
            raise ConfigError(f"the {kind} must be a .md file, got {path}")
        check_file(path, kind)
    check_folder(args.keep, "folder of results")
    with tempfile.TemporaryDirectory() as passing:
        results = measure_all(args.only or BENCHES, args.keep or Path(passing), say=warn)
    text = write_page(args.output, results)
    if args.summary is not None:
        write_summary(args.summary, results)
    if args.output is None:
        print(text, end="")
    else:
        console.print(f"written: {args.output}")
    return int(any("failed" in r for r in results))
