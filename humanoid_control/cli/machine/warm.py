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
  humanoid warm                       all: about three minutes on two cores, seconds where it is done
  humanoid warm simulation walking    these groups only
  humanoid warm --check               say which groups are compiled; exit code 1 where one is not
  humanoid warm --explain FILE        list the kernels that an edit of a source file drops, and why

`make setup` does it. After a colcon build, before the first `ros2 launch` or `colcon test`, it is for you to do: nodes
that start at once would all wait for the compiler, for minutes.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("groups", nargs="*", type=given, metavar="GROUP", help=f"{', '.join(GROUPS)}; default: all")
    parser.add_argument("--check", action="store_true", help="compile nothing")
    parser.add_argument(
        "--explain",
        type=given,
        metavar="FILE",
        help="list the kernels that depend on a source; compile nothing",
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
