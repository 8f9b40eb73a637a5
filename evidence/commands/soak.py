"""`humanoid soak`: inject random faults into a running stack and check the guarantees."""

from __future__ import annotations

import argparse

from humanoid_control.cli.parser import comma_list, folder_path, given
from humanoid_control.errors import ConfigError
from humanoid_control.files import check_folder
from humanoid_control.nodes import require_ros
from humanoid_control.session import find_stack, parse_settings
from humanoid_control.terminal import console, print_json, print_parts, progress

EXAMPLES = """examples:
  humanoid soak --hours 0.2                      all faults, for 12 min
  humanoid soak --hours 8 --seed 3 --robot wabian2 -o soak
  humanoid soak --hours 0.1 --only kill,flood    only these faults

Kills and halts nodes, publishes competing commands, implausible joint states and targets and floods of markers, and
fills the disk of the recorder. Exit code 1: a guarantee was violated.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--hours", type=float, default=1.0, help="duration [h] (default: 1)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the faults (default: 0)")
    parser.add_argument("--robot", type=given, default="hrp2", help="robot name or path of a URDF (default: hrp2)")
    parser.add_argument("--stack", type=given, default="imitation", help="stack to run (default: imitation)")
    parser.add_argument("--only", type=comma_list, default=[], help="faults to inject, by words in their names")
    parser.add_argument(
        "--set", action="append", default=[], metavar="NODE.PARAM=VALUE", help="set a node parameter; repeatable"
    )
    parser.add_argument("-o", "--output", type=folder_path, help="output folder")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of tables")


def run(args: argparse.Namespace) -> int:
    require_ros()
    if args.seed < 0:
        raise ConfigError(f"--seed must be 0 or more, got {args.seed}")
    settings = parse_settings(find_stack(args.stack), args.set)
    check_folder(args.output)
    from evidence.studies.soak.soak import run_soak

    with progress("soak", 1.0, quiet=args.json) as show:
        report = run_soak(args.robot, args.hours, args.seed, args.stack, args.only, show, settings)
    if args.json:
        print_json(report.data)
    else:
        print_parts(report.parts)
    if args.output is not None:
        report.write(args.output)
        if not args.json:
            console.print(f"written: {args.output}")
    return 1 if report.data["broken"] else 0
