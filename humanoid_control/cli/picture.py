"""`humanoid picture`: the viewer at one moment of a clip, collision volumes, or robots that stand, as a PNG."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from humanoid_control.benchmarks.dill import DillView
from humanoid_control.cli.parser import comma_list, require_range
from humanoid_control.errors import ConfigError, EnvironmentProblem, RobotError
from humanoid_control.files import check_file, whole_file
from humanoid_control.nodes import Session, StackFailure, require_ros
from humanoid_control.robots.catalogue import CATALOGUE, load_robot
from humanoid_control.robots.drives import drives_of
from humanoid_control.robots.robot import Robot
from humanoid_control.robots.volumes import volumes_of
from humanoid_control.simulation.engine import Engine, make_engine
from humanoid_control.simulation.settings import WorldSettings
from humanoid_control.terminal import compile_first, console, progress, warn
from humanoid_control.viewer import CollisionRow, LineUp, find_chromium, photograph, port_is_free, require_viewer
from humanoid_control.viewer.stills import CLOSE_NOTICES, HIDE_PANEL

EXAMPLES = """examples:
  humanoid picture -o picture.png                          HRP-2, nine seconds into the built-in dance
  humanoid picture --dill 7 -o dill.png                    Dill(7), 128 links, on which solvers are measured
  humanoid picture --robot lola --motion my.trc --at 4 -o lola.png
  humanoid picture --robot armar3,hrp2,wabian2 --motion my.trc   several side by side, with the dancer
  humanoid picture --collision -o collision.png            the collision volumes of all robots, coloured by distance
  humanoid picture --standing -o standing.png              Lola on simulated ground, with the forces that carry her

One robot: runs the real stack, goes to that place of the clip, waits until the robot is there, photographs the page.
Several: each in its own solution of that moment, without running nodes. Needs Chromium.
"""
SCENE_SHARE = 0.7  # the rest is the panel, whose figures never rest
MOMENT = 9.0  # [s]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-o", "--output", type=Path, default=Path("picture.png"), help="file (default: picture.png)")
    parser.add_argument(
        "--robot",
        help="name or path of a URDF; several, separated by commas (default: hrp2; with --collision: all)",
    )
    parser.add_argument(
        "--collision", action="store_true", help="collision volumes, coloured by distance; at rest unless --at is given"
    )
    parser.add_argument("--standing", action="store_true", help="robots standing in simulation (default: lola)")
    parser.add_argument("--motion", default="dance", help="clip: 'dance' is built in, else a TRC, C3D or BVH file")
    parser.add_argument("--at", type=float, help=f"place in the clip [s] (default: {MOMENT:g})")
    parser.add_argument("--port", type=int, default=8096, help="port of the viewer (default: 8096)")
    parser.add_argument("--width", type=int, default=1400, help="pixels (default: 1400)")
    parser.add_argument("--height", type=int, default=860, help="pixels (default: 860)")
    parser.add_argument("--dill", type=int, metavar="N", help="the branched test system of 2^N links, no robot")


def run(args: argparse.Namespace) -> int:
    require_viewer()
    if find_chromium() is None:
        raise EnvironmentProblem("no Chromium found: install the package 'chromium'")
    if args.output.suffix.lower() != ".png":
        raise ConfigError(f"-o must be a .png file, got {args.output}")
    check_file(args.output)
    require_range("at", args.at, 0, 36000)
    require_range("width", args.width, 100, 8000)
    require_range("height", args.height, 100, 8000)
    if not port_is_free("127.0.0.1", args.port):
        raise EnvironmentProblem(f"port {args.port} is occupied: choose another with --port")
    if args.dill is not None:
        return dill_picture(args)
    if args.collision:
        return collision_picture(args)
    if args.standing:
        return standing_picture(args)
    args.robot, args.at = args.robot or "hrp2", MOMENT if args.at is None else args.at
    if "," in args.robot:
        return _line_up(args)
    require_ros()
    settings = {"trajectory_streamer": {"clip": args.motion}, "viewer": {"port": args.port}}
    with Session("imitation", args.robot, settings, quiet=True) as session:
        session.wait_first_motion()
        if not session.monitor.hold_clip_at(args.at):
            raise StackFailure("the trajectory streamer did not answer")
        picture = photograph(args.port, args.width, args.height, (CLOSE_NOTICES,), SCENE_SHARE)
        with whole_file(args.output) as file:
            file.write_bytes(picture)
    console.print(f"written: {args.output}")
    return 0


def _line_up(args: argparse.Namespace) -> int:
    """The robots side by side, the dancer first."""
    from humanoid_control.mocap.load import load_body_points
    from humanoid_control.retargeting import retarget_clip
    from humanoid_control.retargeting.player import Figure
    from humanoid_control.retargeting.scaling import scale_to_robot

    body = load_body_points(args.motion)
    frame = round(args.at * body.rate)
    if not 0 <= frame < body.n_frames:
        raise ConfigError(f"--at must be between 0 and {body.duration:.1f} s, got {args.at:g}")
    robots = [load_robot(name, "fixed") for name in comma_list(args.robot)]
    compile_first()
    scene = LineUp(args.port)
    try:
        targets = [scale_to_robot(body, robot) for robot in robots]
        scene.add_dancer(Figure(targets[0], 0.0).segments(targets[0].body[frame]))
        for robot, goal in zip(robots, targets, strict=True):
            scene.add_robot(robot, retarget_clip(goal, robot).positions[frame])
        scene.set_camera(args.width / args.height)
        with whole_file(args.output) as file:
            file.write_bytes(photograph(args.port, args.width, args.height, (CLOSE_NOTICES, HIDE_PANEL)))
    finally:
        scene.stop()
    console.print(f"written: {args.output}")
    return 0


# -------- Collision volumes

BAR = 620  # [px] width of the colour bar


def collision_picture(args: argparse.Namespace) -> int:
    """Write the picture; arguments of `humanoid picture`. Without `--at` the robots stand in their neutral posture."""
    robots = [load_robot(name, "fixed") for name in (comma_list(args.robot) if args.robot else CATALOGUE)]
    postures = [r.postures["neutral"] for r in robots] if args.at is None else _postures(robots, args.motion, args.at)
    row = CollisionRow(args.port)
    try:
        for robot, joints in zip(robots, postures, strict=True):
            row.add(robot, volumes_of(robot, by_link=True), joints)
        row.draw(args.width / args.height)
        scripts = (CLOSE_NOTICES, HIDE_PANEL, row.bar_script(min(BAR, args.width - 40)))
        with whole_file(args.output) as file:
            file.write_bytes(photograph(args.port, args.width, args.height, scripts))
    finally:
        row.stop()
    console.print(f"written: {args.output}")
    return 0


def _postures(robots: Sequence[Robot], motion: str, at: float) -> list[np.ndarray]:
    """Each robot's own solution of a moment of a clip, (n,) joint angles."""
    from humanoid_control.mocap.load import load_body_points
    from humanoid_control.retargeting import retarget_clip
    from humanoid_control.retargeting.scaling import scale_to_robot

    body = load_body_points(motion)
    frame = round(at * body.rate)
    if not 0 <= frame < body.n_frames:
        raise ConfigError(f"--at must be between 0 and {body.duration:.1f} s, got {at:g}")
    compile_first()
    return [np.asarray(retarget_clip(scale_to_robot(body, robot), robot).positions[frame]) for robot in robots]


# -------- Branched test system

LARGEST = 8  # 256 links; more are a blot


def dill_picture(args: argparse.Namespace) -> int:
    """Write the picture; arguments of `humanoid picture`."""
    if not 0 <= args.dill <= LARGEST:
        raise ConfigError(f"--dill must be between 0 and {LARGEST}, got {args.dill}")
    if args.robot or args.collision or args.at is not None:
        warn("--dill shows no robot: --robot, --collision and --at are left out")
    view = DillView(args.dill, args.port)
    try:
        view.set_camera(args.width / args.height)
        picture = photograph(args.port, args.width, args.height, (CLOSE_NOTICES, HIDE_PANEL))
    finally:
        view.stop()
    with whole_file(args.output) as file:
        file.write_bytes(picture)
    console.print(f"written: {args.output} ({2**args.dill} links)")
    return 0


# -------- Robots on simulated ground

FORCE_COLOR = (30, 140, 60)
METRES_PER_NEWTON = 1 / 500.0
DEFAULT = "lola"
SHADE = 0.5  # opacity of the robots, so that the forces are seen


def standing_picture(args: argparse.Namespace) -> int:
    """Write the picture; arguments of `humanoid picture`, `--at` being how long the robots have stood [s]."""
    robots = [load_robot(name, "floating") for name in comma_list(args.robot or DEFAULT)]
    seconds = 10.0 if args.at is None else args.at
    compile_first()
    row = LineUp(args.port, 1.3)
    try:
        with progress("standing", len(robots), quiet=False) as show:
            for k, robot in enumerate(robots):
                show(k, robot.name)
                _add(row, robot, seconds)
        row.set_camera(args.width / args.height, 0.7)
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
