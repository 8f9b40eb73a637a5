"""`humanoid warm`: compiles the kernels ahead, so that no node, test or command waits for the compiler."""

from __future__ import annotations

import argparse
import importlib
import time

from humanoid_control.cli.parser import given
from humanoid_control.errors import UnknownNameError
from humanoid_control.terminal import console
from humanoid_control.warm_up import GROUPS

EXAMPLES = """examples:
  humanoid warm                       all: about five minutes, seconds where it is done already
  humanoid warm simulation walking    these groups only
  humanoid warm --check               say which groups are compiled; exit code 1 where one is not

`make setup` does it. After a colcon build, before the first `ros2 launch` or `colcon test`, it is for you to do: nodes
that start at once would all wait for the compiler, for minutes.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("groups", nargs="*", type=given, metavar="GROUP", help=f"{', '.join(GROUPS)}; default: all")
    parser.add_argument("--check", action="store_true", help="compile nothing")


def run(args: argparse.Namespace) -> int:
    for name in args.groups:
        if name not in GROUPS:
            raise UnknownNameError("group", name, GROUPS)
    missing = 0
    for name in args.groups or GROUPS:
        module = importlib.import_module(f"humanoid_control.warm_up.{name}")
        if module.compiled():
            console.print(f"{name}: ready")
        elif args.check:
            missing += 1
            console.print(f"{name}: not compiled yet")
        else:
            begin = time.monotonic()
            module.compile_kernels()
            console.print(f"{name}: compiled in {time.monotonic() - begin:.0f} s")
    return 1 if missing else 0
