"""`humanoid picture --dill`: the branched test system of the forward dynamics."""

from __future__ import annotations

import argparse

from humanoid_control.cli.output import console, warn
from humanoid_control.cli.photograph import photograph
from humanoid_control.errors import ConfigError
from humanoid_control.viewer.dill_view import DillView
from humanoid_control.viewer.line_up import CLOSE_NOTICES, HIDE_PANEL
from humanoid_control.whole_files import whole_file

LARGEST = 8  # 256 links; more are a blot


def dill_picture(args: argparse.Namespace) -> int:
    """Write the picture; arguments of `humanoid picture`."""
    if not 0 <= args.dill <= LARGEST:
        raise ConfigError(f"--dill must be between 0 and {LARGEST}, got {args.dill}")
    if args.robot or args.collision or args.at is not None:
        warn("--dill shows no robot: --robot, --collision and --at are left out")
    view = DillView(args.dill, args.port)
    try:
        view.look(args.width / args.height)
        picture = photograph(args.port, args.width, args.height, (CLOSE_NOTICES, HIDE_PANEL))
    finally:
        view.stop()
    with whole_file(args.output) as file:
        file.write_bytes(picture)
    console.print(f"written: {args.output} ({2**args.dill} links)")
    return 0
