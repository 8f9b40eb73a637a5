"""`humanoid dance`: robots dance side by side in the browser, without ROS, or in a recording."""

from __future__ import annotations

import argparse
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from humanoid_control.cli.parser import (
    add_clip_options,
    add_robots,
    clip_options,
    comma_list,
    file_path,
    given,
    refuse_unused,
    require_free_port,
    require_range,
    tell_notes,
)
from humanoid_control.errors import ConfigError, require_extra
from humanoid_control.files import check_file, whole_file
from humanoid_control.mocap import CLIP_NAMES, load_body_points
from humanoid_control.retargeting import JointTrajectory, WholeBodyTrajectory
from humanoid_control.robots.catalogue import load_robot, load_robots, robot_names
from humanoid_control.robots.humanoids import found_humanoids
from humanoid_control.robots.names import CATALOGUE, MODELS
from humanoid_control.terminal import console, progress, warn
from humanoid_control.viewer.dance.dancer import make_dancer
from humanoid_control.viewer.server import HOST, Origins
from humanoid_control.warm_up import RETARGETING, WHOLE_BODY, compile_first

EXAMPLES = """examples:
  humanoid dance                                     HRP-2 and the built-in dance on http://localhost:8080
  humanoid dance walk.bvh salsa.fbx --robot hrp2,lola,g1   several robots side by side, with a choice of clips
  humanoid dance clips/                              all clips in a folder and its subfolders
  humanoid dance walk.bvh --robot hrp2,lola -o dance.html   one file that opens with a double click, without Python
  humanoid dance dance --robot all -o dance.viser    a recording for the viser player

The page offers a choice of robots and clips, playback controls, errors, contacts, slip, joints, and a final grade. Drop
clips and robots (URDF, MJCF, a zip) onto it. Without a GPU, show at most three robots at once.
`humanoid demo dance` runs the controller nodes instead; `humanoid picture --video` writes a film.
"""
DANCER = "hrp2"
MOST_CLIPS = 500  # in a list of a page
FPS, LONGEST = 30.0, 120.0  # [Hz], [s] of a recording by default


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("clip", nargs="*", type=given, help="clips (built in or files) and folders of clips")
    add_robots(parser, f"{DANCER}, with more robots to choose from")
    add_clip_options(parser)
    parser.add_argument("-o", "--output", type=file_path, help="recording to write instead of a page: .html or .viser")
    parser.add_argument("--at", type=float, help="with -o: start time in the clip [s] (default: 0)")
    parser.add_argument("--seconds", type=float, help=f"with -o: duration [s] (default: the clip, at most {LONGEST:g})")
    parser.add_argument("--fps", type=float, help=f"with -o: frame rate [Hz] (default: {FPS:g})")
    parser.add_argument("--port", type=int, help="port of the page (default: 8080)")
    parser.add_argument("--host", type=given, help=f"listen address of the page (default: {HOST})")
    parser.add_argument("--origins", type=comma_list, help="additional host names allowed to connect: HOST,HOST")
    parser.add_argument("--shadows", action="store_true", help="draw shadows (slow without a GPU)")


def run(args: argparse.Namespace) -> int:
    require_extra("viewer")
    for option, low, high in (("at", 0, 36000), ("seconds", 0.1, 36000), ("fps", 1, 240), ("port", 1, 65535)):
        require_range(option, getattr(args, option), low, high)
    clips = _clips(args.clip)
    marker_set, reading = clip_options(args)
    options = {"marker_set": marker_set, **reading}
    if args.output is not None:
        return _record(args, clips, options)
    refuse_unused(args, ["at", "seconds", "fps"], "a recording: -o FILE")
    return _serve(args, clips, options)


def _clips(names: list[str]) -> dict[str, str]:
    from humanoid_control.clip_library.clips import find_clips, is_library

    found: dict[str, str] = {}
    for name in names:
        if not is_library(name):
            found[name] = name
            continue
        library = find_clips(name)
        if len(library) > MOST_CLIPS:
            warn(f"{name}: {len(library)} clips; the page offers the first {MOST_CLIPS}")
        found |= {clip.name: clip.source for clip in library[:MOST_CLIPS]}
    return found | {name: name for name in CLIP_NAMES if name not in found}


def _record(args: argparse.Namespace, clips: dict[str, str], options: dict[str, Any]) -> int:
    from humanoid_control.viewer.dance.recording import check_recording, record_dance

    refuse_unused(args, ["port", "host", "origins", "shadows"], "the page, not to -o")
    check_recording(args.output)
    check_file(args.output)
    if len(args.clip) > 1:
        raise ConfigError(f"a recording is of one clip, got {len(args.clip)}")
    names = _robots(args)
    title, source = next(iter(clips.items()))
    body = load_body_points(source, **options)
    for text in body.warnings:
        warn(text)
    duration = (body.n_frames - 1) / body.rate
    at = args.at or 0.0
    require_range("at", at, 0, duration)
    seconds = min(duration - at, LONGEST) if args.seconds is None else args.seconds
    compile_first(RETARGETING, WHOLE_BODY)
    dancers = [make_dancer(body, name) for name in names]
    for dancer in dancers:
        for note in dancer.notes:
            warn(note)
        dancer.begin(at)
    with whole_file(args.output) as file, progress(f"recording {title}", seconds, quiet=False) as show:
        file.write_bytes(record_dance(dancers, seconds, args.fps or FPS, args.output.suffix.lower(), show))
    console.print(f"written: {args.output}, {_size(args.output)}: {_how_to_open(args.output)}")
    return 0


def _robots(args: argparse.Namespace) -> list[str]:
    names = robot_names(args.robot or [DANCER])
    tell_notes(load_robots(names, "fixed", imitate=True))
    return names


def _serve(args: argparse.Namespace, clips: dict[str, str], options: dict[str, Any]) -> int:
    from humanoid_control.viewer.dance.page import DancePage, Programme

    host, port = args.host or HOST, 8080 if args.port is None else args.port
    names = _robots(args)  # first: reports typos even if the port is occupied
    if args.clip:
        load_body_points(next(iter(clips.values())), **options)  # reports typos early
    Origins(args.origins or ())
    require_free_port(port, host)
    offered = [*names, *(name for name in CATALOGUE if name not in names)]
    programme = Programme(
        clips,
        offered,
        [name for name in (*MODELS, *found_humanoids()) if name not in offered],
        names,
        {source: options for source in clips.values() if source not in CLIP_NAMES},
        _grade,
    )
    compile_first(RETARGETING, WHOLE_BODY)
    page = DancePage(programme, port, host, args.origins or [], args.shadows)
    try:
        with _until_told() as stopped:
            console.print(f"open http://{host}:{port} ; Ctrl-C stops")
            page.run(stopped)
    finally:
        page.stop()
    return 0


def _grade(name: str, trajectory: JointTrajectory) -> tuple[str, str]:
    """Return grade and verdict of a motion, with a separate robot, since a dance runs concurrently."""
    from humanoid_control.evaluation import measure_clip

    base = "floating" if isinstance(trajectory, WholeBodyTrajectory) else "fixed"
    quality = measure_clip(load_robot(name, base), trajectory)
    return quality.grade, quality.verdict


@contextmanager
def _until_told() -> Iterator[threading.Event]:
    """Yield an event that Ctrl-C and SIGTERM set."""
    stopped, before = threading.Event(), {}
    for number in (signal.SIGINT, signal.SIGTERM):
        before[number] = signal.signal(number, lambda *_: stopped.set())
    try:
        yield stopped
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _how_to_open(path: Path) -> str:
    if path.suffix.lower() == ".html":
        return "opens in any browser with a double click"
    return "open it with the viser client: ?playbackPath=" + path.name


def _size(path: Path) -> str:
    return f"{path.stat().st_size / 1e6:.1f} MB"
