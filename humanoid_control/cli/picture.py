"""`humanoid picture`: what the viewer shows at one moment of a clip, as a PNG."""

from __future__ import annotations

import argparse
from pathlib import Path

from humanoid_control.cli.output import compile_first, console
from humanoid_control.cli.output_places import check_file
from humanoid_control.cli.photograph import photograph
from humanoid_control.cli.session import Session
from humanoid_control.cli.supervisor import StackFailure
from humanoid_control.errors import ConfigError, EnvironmentProblem
from humanoid_control.nodes.ros_env import require_ros
from humanoid_control.nodes.stack import find_stack
from humanoid_control.viewer.browser import find_chromium
from humanoid_control.viewer.line_up import CLOSE_NOTICES, HIDE_PANEL, LineUp
from humanoid_control.viewer.page import port_is_free
from humanoid_control.whole_files import whole_file

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
    if find_chromium() is None:
        raise EnvironmentProblem("no Chromium found: install the package 'chromium'")
    if args.output.suffix.lower() != ".png":
        raise ConfigError(f"-o must be a .png file, got {args.output}")
    check_file(args.output)
    for option, value, most in (("at", args.at, 36000.0), ("width", args.width, 8000), ("height", args.height, 8000)):
        low = 0 if option == "at" else 100
        if value is not None and not low <= value <= most:
            raise ConfigError(f"--{option} must be between {low} and {most:g}, got {value:g}")
    if not port_is_free("127.0.0.1", args.port):
        raise EnvironmentProblem(f"port {args.port} is occupied: choose another with --port")
    if args.dill is not None:
        from humanoid_control.cli.picture_dill import dill_picture

        return dill_picture(args)
    if args.collision:
        from humanoid_control.cli.picture_collision import collision_picture

        return collision_picture(args)
    if args.standing:
        from humanoid_control.cli.picture_standing import standing_picture

        return standing_picture(args)
    args.robot, args.at = args.robot or "hrp2", MOMENT if args.at is None else args.at
    if "," in args.robot:
        return _line_up(args)
    require_ros()
    settings = {"trajectory_streamer": {"clip": args.motion}, "viewer": {"port": args.port}}
    with Session(find_stack("imitation"), {"robot": args.robot}, settings, quiet=True) as session:
        session.start()
        session.wait_first_motion()
        assert session.monitor is not None
        if not session.monitor.hold_clip_at(args.at):
            raise StackFailure("the trajectory streamer did not answer")
        picture = photograph(args.port, args.width, args.height, (CLOSE_NOTICES,), SCENE_SHARE)
        with whole_file(args.output) as file:
            file.write_bytes(picture)
    console.print(f"written: {args.output}")
    return 0


def _line_up(args: argparse.Namespace) -> int:
    """The robots side by side, the dancer first."""
    from humanoid_control.capture import load_body_points
    from humanoid_control.imitation import retarget, scale_to_robot
    from humanoid_control.imitation.figure import Figure
    from humanoid_control.robots import load_robot

    body = load_body_points(args.motion)
    frame = round(args.at * body.rate)
    if not 0 <= frame < body.n_frames:
        raise ConfigError(f"--at must be between 0 and {body.duration:.1f} s, got {args.at:g}")
    robots = [load_robot(name.strip(), "fixed") for name in args.robot.split(",") if name.strip()]
    compile_first()
    scene = LineUp(args.port)
    try:
        targets = [scale_to_robot(body, robot) for robot in robots]
        scene.add_dancer(Figure(targets[0], 0.0).segments(targets[0].body[frame]))
        for robot, goal in zip(robots, targets, strict=True):
            scene.add_robot(robot, retarget(goal, robot).positions[frame])
        scene.look(args.width / args.height)
        with whole_file(args.output) as file:
            file.write_bytes(photograph(args.port, args.width, args.height, (CLOSE_NOTICES, HIDE_PANEL)))
    finally:
        scene.stop()
    console.print(f"written: {args.output}")
    return 0
