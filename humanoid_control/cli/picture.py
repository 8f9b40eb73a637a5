"""`humanoid picture`: pictures of the viewer, volumes, standing or walking robots; films, strips."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from humanoid_control.cli.checkout import evidence_module
from humanoid_control.cli.parser import (
    CLIP_HELP,
    CLIP_OPTIONS,
    add_clip_options,
    add_robots,
    clip_options,
    clip_parameters,
    file_path,
    given,
    refuse_unused,
    require_free_port,
    require_range,
    tell_notes,
)
from humanoid_control.errors import ConfigError, require_extra
from humanoid_control.files import check_file, whole_file
from humanoid_control.mocap import load_body_points
from humanoid_control.nodes import require_ros
from humanoid_control.robots import Robot, load_robot, load_robots
from humanoid_control.robots.catalogue import robot_names
from humanoid_control.robots.description.meshes import missing_meshes, missing_text
from humanoid_control.robots.description.urdf import parse_urdf
from humanoid_control.session import Session, StackFailure
from humanoid_control.terminal import console, progress, warn
from humanoid_control.viewer import Shot, photograph
from humanoid_control.viewer.browser import require_chromium
from humanoid_control.viewer.stills import (
    CLOSE_NOTICES,
    STRIP_MOMENTS,
    collision_picture,
    line_up_picture,
    solved_moment,
    standing_picture,
    strip_picture,
)
from humanoid_control.warm_up import RETARGETING, WHOLE_BODY, compile_first, report_compiling

if TYPE_CHECKING:
    from humanoid_control.mocap import BodyPoints
    from humanoid_control.viewer.dance.dancer import UpperBodyDancer, WholeBodyDancer

EXAMPLES = """examples:
  humanoid picture -o picture.png                          HRP-2, 9 s into the built-in dance
  humanoid picture --dill 7 -o dill.png                    Dill(7), 128 links, a benchmark of solvers
  humanoid picture --robot lola --motion my.trc --at 4 -o lola.png
  humanoid picture --robot armar3,hrp2,wabian2 --motion my.trc   several robots and the dancer, side by side
  humanoid picture --collision -o collision.png            collision volumes of all robots, coloured by distance
  humanoid picture --standing -o standing.png              Lola on simulated ground, with contact forces
  humanoid picture --walking -o walking.png                Lola walking, with the planned footsteps
  humanoid picture --strip --height 560 -o strip.png       Lola at five moments of a walk
  humanoid picture --strip --whole-body --robot hrp2,lola,wabian2 -o strip.png   six moments, one row per robot
  humanoid picture --strip --whole-body --motion walk.bvh --at 2 --seconds 4 --moments 8 -o strip.png
  humanoid picture --video dance.mp4 --robot hrp2,lola --whole-body    a film, 1280 x 720, 30 frames/s
  humanoid picture --video walk.mp4 --motion walk.bvh --at 2 --seconds 5 --fps 60 --width 1920 --height 1080

One robot: starts the stack, seeks to the moment, waits for the robot, and takes a screenshot of the page.
Several robots: solves the moment for each robot, without running nodes. Both need Chromium.
Films and whole-body strips are rendered without a browser (pip install 'humanoid_control[video]').
"""
# [Hz] of nodes behind a picture: low, since the page renders on the CPU without a GPU.
RATES = {"simulator": 200.0, "state_estimator": 100.0, "whole_body_ik": 100.0}
SCENE_SHARE = 0.7  # the rest is the panel with changing figures
DEFAULTS = {"": "hrp2", "collision": "all", "standing": "lola", "walking": "lola", "strip": "lola"}
MOMENT = 9.0  # [s]
STANDING_TIME = 10.0  # [s]
WALKING_TIME = 3.55  # [s] from the command to walk: a foot is in the air
LARGEST_DILL = 8  # 256 links; more are not discernible
STRIP_MOMENTS_SHOWN, MOST_MOMENTS = 6, 16
FILM_ADVICE = "compiling the film kernels (only once)"
LONGEST_FILM = 120.0  # [s] by default


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-o", "--output", type=file_path, help="output file (default: picture.png)")
    add_robots(parser, "hrp2; with --collision: all, with --standing, --walking and --strip: lola")
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument(
        "--collision",
        action="store_true",
        help="show the collision volumes, coloured by distance, in the neutral posture unless --at is given",
    )
    kinds.add_argument("--standing", action="store_true", help="show robots standing in simulation")
    kinds.add_argument("--walking", action="store_true", help="show a robot walking in simulation, with its plan")
    kinds.add_argument(
        "--strip",
        action="store_true",
        help="show five moments of a walking robot; with --whole-body: moments of a clip, one row per robot",
    )
    kinds.add_argument(
        "--dill", type=int, metavar="N", help="show the branched test system of 2^N links instead of a robot"
    )
    kinds.add_argument(
        "--video", type=file_path, metavar="FILE", help="film of a clip to write: .mp4, .mov, .mkv or .webm"
    )
    parser.add_argument(
        "--whole-body",
        action="store_true",
        help="with --video and --strip: also retarget root and legs, with feet on the ground",
    )
    parser.add_argument(
        "--seconds",
        type=float,
        help=f"with --video and --strip --whole-body: duration [s] (default: all; films at most {LONGEST_FILM:g})",
    )
    parser.add_argument(
        "--moments",
        type=int,
        help=f"with --strip --whole-body: number of moments, evenly spaced (default: {STRIP_MOMENTS_SHOWN})",
    )
    parser.add_argument("--fps", type=float, help="with --video: frame rate [Hz] (default: 30)")
    parser.add_argument("--motion", type=given, help=f"{CLIP_HELP} (default: dance)")
    add_clip_options(parser)
    parser.add_argument(
        "--at",
        type=float,
        help=f"time in the clip [s] (default: {MOMENT:g}; with --video and --strip --whole-body: 0); with "
        f"--standing and --walking: simulated time (default: {STANDING_TIME:g}, {WALKING_TIME:g})",
    )
    parser.add_argument(
        "--no-shadows", action="store_true", help="render without shadows (many times faster without a GPU)"
    )
    parser.add_argument("--port", type=int, help="port of the viewer (default: 8096)")
    parser.add_argument("--width", type=int, help="width [pixels] (default: 1400; with --video: 1280)")
    parser.add_argument(
        "--height",
        type=int,
        help="height [pixels] (default: 860; with --video: 720; with --strip --whole-body: as needed)",
    )


def run(args: argparse.Namespace) -> int:
    require_extra("viewer")
    if args.video is not None:
        return _film(args)
    if args.strip and args.whole_body:
        return _film_strip(args)
    _check(args)
    # Robots and clip first: typos are reported even without a browser.
    robots: list[Robot] = []
    names: list[str] = []
    if args.dill is None:
        kind = next((k for k in ("collision", "standing", "walking", "strip") if getattr(args, k)), "")
        names = args.robot or [DEFAULTS[kind]]
        robots = load_robots(names, "floating" if args.standing or args.walking or args.strip else "fixed")
        if args.strip and len(robots) != 1:
            raise ConfigError(f"--strip shows one robot, got {len(robots)}")
        for robot in robots:
            if missing := missing_meshes(parse_urdf(robot.urdf, robot.name), robot.folder):
                warn(missing_text(missing, robot.name))
    body = None
    still = args.standing or args.walking or args.strip or (args.collision and args.at is None)
    if args.dill is None and not still:
        body = _load_clip(args, robots)
    require_chromium()
    require_free_port(args.port)
    picture = _picture(args, names, robots, body)
    with whole_file(args.output) as file:
        file.write_bytes(picture)
    console.print(f"written: {args.output}")
    return 0


def _picture(args: argparse.Namespace, names: Sequence[str], robots: Sequence[Robot], body: BodyPoints | None) -> bytes:
    """Return the requested PNG; `body`: the clip, if it is a moment of one."""
    shot = Shot(args.port, args.width, args.height, not args.no_shadows)
    if args.dill is not None:
        return _dill(args.dill, shot)
    if args.walking:
        return _walking(args, names, robots)
    if body is not None and len(robots) == 1 and not args.collision:
        return _stack(args, names[0])
    if args.strip:
        return _strip(robots, shot)
    if args.standing or body is not None:
        compile_first()
    if args.standing:
        seconds = STANDING_TIME if args.at is None else args.at
        with progress("standing", len(robots), quiet=False) as show:
            return standing_picture(robots, seconds, shot, show)
    if args.collision:
        postures = [r.postures["neutral"] for r in robots] if body is None else solved_moment(robots, body, args.at)[1]
        return collision_picture(robots, postures, shot)
    assert body is not None
    return line_up_picture(robots, body, args.at, shot)


def _load_clip(args: argparse.Namespace, robots: Sequence[Robot]) -> BodyPoints:
    for robot in robots:
        robot.require_imitation_points()
    marker_set, reading = clip_options(args)
    body = load_body_points(args.motion, marker_set, **reading)
    args.at = MOMENT if args.at is None else args.at
    require_range("at", args.at, 0, math.floor(10 * (body.n_frames - 1) / body.rate) / 10)
    return body


def _film(args: argparse.Namespace) -> int:
    from humanoid_control.viewer.film import FilmSize, write_film

    refuse_unused(args, ["output", "port", "no-shadows"], "a picture, not to --video FILE")
    refuse_unused(args, ["moments"], "--strip --whole-body")
    size = FilmSize(args.width or 1280, args.height or 720, 30.0 if args.fps is None else args.fps)
    for option, low, high in (("at", 0, 36000), ("seconds", 0.1, 36000), ("fps", 1, 240)):
        require_range(option, getattr(args, option), low, high)
    size.check(args.video)
    check_file(args.video)
    dancers, at, left = _dancers(args)
    for dancer in dancers:
        dancer.begin(at)
    seconds = min(left, LONGEST_FILM) if args.seconds is None else args.seconds
    with report_compiling(warn, FILM_ADVICE), progress("filming", seconds, quiet=False) as show:
        write_film(args.video, dancers, max(seconds, 1.0 / size.fps), size, show)
    console.print(f"written: {args.video}, {seconds:.1f} s")
    return 0


def _film_strip(args: argparse.Namespace) -> int:
    from humanoid_control.viewer.filmstrip import film_strip, strip_times

    refuse_unused(args, ["port", "no-shadows"], "pages, not to --strip --whole-body")
    refuse_unused(args, ["fps"], "--video FILE")
    _check_output(args)
    for option, low, high in (
        ("at", 0, 36000),
        ("seconds", 0.1, 36000),
        ("moments", 1, MOST_MOMENTS),
        ("width", 100, 8000),
        ("height", 100, 8000),
    ):
        require_range(option, getattr(args, option), low, high)
    dancers, at, left = _dancers(args)
    n = STRIP_MOMENTS_SHOWN if args.moments is None else args.moments
    times = strip_times(at, left if args.seconds is None else min(args.seconds, left), n)
    with report_compiling(warn, FILM_ADVICE), progress("dancing", len(dancers), quiet=False) as show:
        picture = film_strip(dancers, times, args.width or 1400, args.height, show)
    with whole_file(args.output) as file:
        file.write_bytes(picture)
    console.print(f"written: {args.output}")
    return 0


def _dancers(args: argparse.Namespace) -> tuple[list[WholeBodyDancer | UpperBodyDancer], float, float]:
    """Return the dancing robots, the start time in the clip, and the remaining time [s]."""
    from humanoid_control.viewer.dance.dancer import UpperBodyDancer, make_dancer

    names = robot_names(args.robot or [DEFAULTS[""]])
    tell_notes(load_robots(names, "fixed", imitate=True))
    marker_set, reading = clip_options(args)
    body = load_body_points(args.motion or "dance", marker_set, **reading)
    for text in body.warnings:
        warn(text)
    duration, at = (body.n_frames - 1) / body.rate, args.at or 0.0
    require_range("at", at, 0, duration)
    require_extra("video")
    compile_first(RETARGETING, *([WHOLE_BODY] if args.whole_body else []))
    dancers = [
        make_dancer(body, name) if args.whole_body else UpperBodyDancer(body, load_robot(name, "fixed"))
        for name in names
    ]
    for dancer in dancers:
        for note in dancer.notes:
            warn(note)
    return dancers, at, duration - at


def _check_output(args: argparse.Namespace) -> None:
    args.output = args.output or Path("picture.png")
    if args.output.suffix.lower() != ".png":
        raise ConfigError(f"-o must be a .png file, got {args.output}")
    check_file(args.output)


def _check(args: argparse.Namespace) -> None:
    """Reject invalid combinations early, before browser and computations."""
    refuse_unused(args, ["whole-body"], "--video FILE and --strip")
    refuse_unused(args, ["fps"], "--video FILE")
    refuse_unused(args, ["seconds"], "--video FILE and --strip --whole-body")
    refuse_unused(args, ["moments"], "--strip --whole-body")
    args.width, args.height = (
        given_or if given_or is not None else default for given_or, default in ((args.width, 1400), (args.height, 860))
    )
    args.port = 8096 if args.port is None else args.port
    _check_output(args)
    for option, low, high in (("at", 0, 36000), ("width", 100, 8000), ("height", 100, 8000), ("port", 1, 65535)):
        require_range(option, getattr(args, option), low, high)
    if args.dill is not None and not 0 <= args.dill <= LARGEST_DILL:
        raise ConfigError(f"--dill must be between 0 and {LARGEST_DILL}, got {args.dill}")
    if args.dill is not None:
        refuse_unused(args, ["robot", "motion", "at", *CLIP_OPTIONS], "pictures of robots, not to --dill")
    kind = next((k for k in ("standing", "walking", "strip") if getattr(args, k)), "")
    if kind:
        advice = "; --strip --whole-body shows a clip" if args.strip else ""
        refuse_unused(args, ["motion", *CLIP_OPTIONS], f"robots that imitate, not to --{kind}{advice}")
    if args.strip:
        refuse_unused(args, ["at"], "pictures of one moment, not to --strip")
    if args.collision and args.at is None:
        refuse_unused(
            args, ["motion", *CLIP_OPTIONS], "--at SECONDS; without it the robots stand in their neutral posture"
        )
    args.motion = args.motion or "dance"


def _stack(args: argparse.Namespace, robot: str) -> bytes:
    """Photograph the page of the real stack with its panel."""
    require_ros()
    settings = {
        "trajectory_streamer": {"clip": args.motion, **clip_parameters(args)},
        "viewer": {"port": args.port, "shadows": not args.no_shadows},
        **{name: {"rate": rate} for name, rate in RATES.items()},
    }
    with Session("imitation", robot, settings, quiet=True) as session:
        session.wait_first_motion()
        if session.stopped.is_set():
            raise KeyboardInterrupt
        if not session.monitor.hold_clip_at(args.at):
            raise StackFailure("no response from the trajectory streamer")
        return photograph(args.port, args.width, args.height, (CLOSE_NOTICES,), SCENE_SHARE, session.stopped)


def _walking(args: argparse.Namespace, names: Sequence[str], robots: Sequence[Robot]) -> bytes:
    """Photograph a walking robot without panel."""
    from humanoid_control.session.walk_course import PICTURE_SETTINGS, course_for, walking_picture

    if len(robots) != 1:
        raise ConfigError(f"--walking shows one robot, got {len(robots)}")
    require_ros()
    leg = course_for(robots[0])[0]._replace(seconds=WALKING_TIME if args.at is None else args.at)
    # Without a GPU, shadows take seconds per frame: the picture would lag.
    settings = PICTURE_SETTINGS | {"viewer": {"port": args.port, "shadows": False}}
    with Session("walking", names[0], settings, quiet=True) as session:
        return walking_picture(session, leg, args.port, (args.width, args.height))


def _strip(robots: Sequence[Robot], shot: Shot) -> bytes:
    with progress("walking", STRIP_MOMENTS, quiet=False) as show:
        return strip_picture(robots[0], shot, show)


def _dill(level: int, shot: Shot) -> bytes:
    view = evidence_module("benchmarks.branched_system").DillView(level, shot.port, shot.shadows)
    try:
        view.set_camera(shot.aspect)
        return shot.take()
    finally:
        view.stop()
