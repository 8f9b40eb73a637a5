"""`humanoid picture --collision`: robots' collision volumes side by side, coloured by distance."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np

from humanoid_control.cli.output import compile_first, console
from humanoid_control.cli.photograph import photograph
from humanoid_control.errors import ConfigError
from humanoid_control.robots import CATALOGUE, Robot, load_robot
from humanoid_control.robots.ssv_model import ssv_of
from humanoid_control.viewer.line_up import CLOSE_NOTICES, HIDE_PANEL
from humanoid_control.viewer.segments.still import CollisionRow
from humanoid_control.whole_files import whole_file

BAR = 620  # [px] width of the colour bar


def collision_picture(args: argparse.Namespace) -> int:
    """Write the picture; arguments of `humanoid picture`. Without `--at` the robots stand in their neutral posture."""
    names = args.robot.split(",") if args.robot else CATALOGUE
    robots = [load_robot(name.strip(), "fixed") for name in names if name.strip()]
    postures = [r.postures["neutral"] for r in robots] if args.at is None else _postures(robots, args.motion, args.at)
    row = CollisionRow(args.port)
    try:
        for robot, joints in zip(robots, postures, strict=True):
            row.add(robot, ssv_of(robot, by_link=True), joints)
        row.look(args.width / args.height)
        scripts = (CLOSE_NOTICES, HIDE_PANEL, row.bar_script(min(BAR, args.width - 40)))
        with whole_file(args.output) as file:
            file.write_bytes(photograph(args.port, args.width, args.height, scripts))
    finally:
        row.stop()
    console.print(f"written: {args.output}")
    return 0


def _postures(robots: Sequence[Robot], motion: str, at: float) -> list[np.ndarray]:
    """Each robot's own solution of a moment of a clip, (n,) joint angles."""
    from humanoid_control.capture import load_body_points
    from humanoid_control.imitation import retarget, scale_to_robot

    body = load_body_points(motion)
    frame = round(at * body.rate)
    if not 0 <= frame < body.n_frames:
        raise ConfigError(f"--at must be between 0 and {body.duration:.1f} s, got {at:g}")
    compile_first()
    return [np.asarray(retarget(scale_to_robot(body, robot), robot).positions[frame]) for robot in robots]
