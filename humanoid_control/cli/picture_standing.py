"""`humanoid picture --standing`: robots that stand on simulated ground, with the forces that carry them."""

from __future__ import annotations

import argparse

import numpy as np

from humanoid_control.cli.output import compile_first, console, progress
from humanoid_control.cli.photograph import photograph
from humanoid_control.errors import RobotError
from humanoid_control.robots import Robot, load_robot
from humanoid_control.robots.drive_file import drives_of
from humanoid_control.simulation import Engine, WorldSettings, make_engine
from humanoid_control.viewer.line_up import CLOSE_NOTICES, HIDE_PANEL, LineUp
from humanoid_control.whole_files import whole_file

FORCE_COLOR = (30, 140, 60)
METRES_PER_NEWTON = 1 / 500.0
DEFAULT = "lola"
SHADE = 0.5  # opacity of the robots, so that the forces are seen


def standing_picture(args: argparse.Namespace) -> int:
    """Write the picture; arguments of `humanoid picture`, `--at` being how long the robots have stood [s]."""
    names = (args.robot or DEFAULT).split(",")
    robots = [load_robot(name.strip(), "floating") for name in names if name.strip()]
    seconds = 10.0 if args.at is None else args.at
    compile_first()
    row = LineUp(args.port, 1.3)
    try:
        with progress("standing", len(robots), quiet=False) as show:
            for k, robot in enumerate(robots):
                show(k, robot.name)
                _add(row, robot, seconds)
        row.look(args.width / args.height, 0.7)
        with whole_file(args.output) as file:
            file.write_bytes(photograph(args.port, args.width, args.height, (CLOSE_NOTICES, HIDE_PANEL)))
    finally:
        row.stop()
    console.print(f"written: {args.output}")
    return 0


def _add(row: LineUp, robot: Robot, seconds: float) -> None:
    drives = "elastic" if any(d.motor for d in drives_of(robot).drives) else "ideal"
    world = make_engine(robot, settings=WorldSettings(drives=drives))
    start = world.q[:3].copy()
    world.step(round(seconds / world.settings.step))
    if world.diverged:
        raise RobotError(f"{robot.name}: {world.failure}")
    place = row.add_robot(robot, robot.joints(world.q), SHADE, X_world_root=world.link_pose(robot.root_link))
    _draw_forces(row, robot, world, place)
    moved = 1e3 * float(np.linalg.norm(world.q[:3] - start))
    word = f"{robot.title}: {robot.mass:.0f} kg, {drives} drives, {seconds:g} s, moved {moved:.1f} mm"
    row.server.scene.add_label(f"/name/{robot.name}", word, position=place + [0.45, 0, 0.03], anchor="top-center")


def _draw_forces(row: LineUp, robot: Robot, world: Engine, place: np.ndarray) -> None:
    """A line from each sole upward along the force of the ground, where that acts."""
    segments = []
    for foot in robot.feet:
        wrench, X = world.foot_wrenches()[foot.name], world.link_pose(foot.link)
        if wrench[2] > 1.0:  # centre of pressure in the sole's frame, whose origin is the middle of the sole
            centre = foot.corners().mean(axis=0) + [-wrench[4] / wrench[2], wrench[3] / wrench[2], 0.0]
            at = X.act(centre) + place
            segments.append([at, at + METRES_PER_NEWTON * X.rotation @ wrench[:3]])
    scene = row.server.scene
    if segments:
        scene.add_line_segments(
            f"/force/{robot.name}", np.array(segments, dtype=np.float32), FORCE_COLOR, thickness=0.03
        )
