"""`humanoid warm`: compile the kernels ahead."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from humanoid_control.cli.parser import given
from humanoid_control.errors import UnknownNameError
from humanoid_control.terminal import console
from humanoid_control.warm_up import GROUPS, compile_groups, compiled
from humanoid_control.warm_up.edits import explain_edit

EXAMPLES = """examples:
  humanoid warm                       all groups: about 3 min on two cores, seconds if already compiled
  humanoid warm simulation walking    only these groups
  humanoid warm --check               report the compiled groups; exit code 1 if one is missing
  humanoid warm --explain FILE        list the kernels that an edit of a source file invalidates, and why

`make setup` runs it. After a colcon build, run it before the first `ros2 launch` or `colcon test`; otherwise all nodes
wait for the compiler, for minutes.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "groups",
        nargs="*",
        type=given,
        metavar="GROUP",
        help=f"kernel groups to compile: {', '.join(GROUPS)} (default: all)",
    )
    parser.add_argument("--check", action="store_true", help="report which groups are compiled; compile nothing")
    parser.add_argument(
        "--explain",
        type=given,
        metavar="FILE",
        help="list the kernels that depend on this source file; compile nothing",
    )


def run(args: argparse.Namespace) -> int:
    if args.explain:
        for line in explain_edit(Path(args.explain)):
            console.print(line)
        return 0
    for name in args.groups:
        if name not in GROUPS:
            raise UnknownNameError("group", name, GROUPS)
    groups = tuple(dict.fromkeys(args.groups)) or GROUPS
    cold = [name for name in groups if not compiled(name)]
    for name in groups:
        if name not in cold:
            console.print(f"{name}: ready")
        elif args.check:
            console.print(f"{name}: not compiled yet")
    if args.check or not cold:
        return 1 if cold else 0
    begin = time.monotonic()
    failed = compile_groups(cold)
    for name in cold:
        console.print(f"{name}: {failed[name]}" if name in failed else f"{name}: compiled")
    console.print(f"{time.monotonic() - begin:.0f} s")
    return 1 if failed else 0
