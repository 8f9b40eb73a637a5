"""`humanoid segments`: a robot's collision volumes, edited in a browser page or listed."""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from pathlib import Path

from humanoid_control.cli.output import console
from humanoid_control.cli.segments_check import check
from humanoid_control.collision.ssv_file import SsvFile, read_ssv_file
from humanoid_control.errors import ConfigError, EnvironmentProblem, RobotError
from humanoid_control.robots import Robot, load_robot
from humanoid_control.robots.catalogue import urdf_path, volumes_path
from humanoid_control.robots.ssv_model import find_pairs, model_of, volumes_of_shapes

EXAMPLES = """examples:
  humanoid segments lola                                the editor: open http://127.0.0.1:8080
  humanoid segments my_robot.urdf --file try.yaml       any URDF, the volumes kept in another file
  humanoid segments hrp2 --check                        list segments, pairs, and the smallest gaps of named postures
  humanoid segments hrp2 --check --json

Volumes are kept beside the URDF as ROBOT.volumes.yaml, where the robot finds them; without that file the editor begins
with the robot's collision shapes. More: docs/collision_volumes.md.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("robot", nargs="?", default="lola", help="name or path of a URDF (default: lola)")
    parser.add_argument("--file", type=Path, help="file of the volumes (default: beside the URDF, ROBOT.volumes.yaml)")
    parser.add_argument("--port", type=int, default=8080, help="port of the page (default: 8080)")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: 127.0.0.1)")
    parser.add_argument("--check", action="store_true", help="print instead; exit code 1 where volumes overlap at rest")
    parser.add_argument("--json", action="store_true", help="with --check: print JSON")


def run(args: argparse.Namespace) -> int:
    if args.json and not args.check:
        raise ConfigError("--json belongs to --check")
    robot = load_robot(args.robot, "fixed")
    path = args.file or volumes_path(args.robot)
    if args.file and not path.parent.is_dir():
        raise ConfigError(f"--file: the folder {path.parent} does not exist")
    if args.check and args.file and not path.is_file():
        raise RobotError(f"there is no file of volumes {path}")
    file = read_volumes(robot, path)
    if args.check:
        return check(robot, file, path if path.is_file() else None, args.json)
    return _edit(args, robot, file, path)


def read_volumes(robot: Robot, path: Path) -> SsvFile:
    """The volumes of a file, or, where there is none, of the robot's shapes; pairs left to sampling are found."""
    if not path.is_file():
        return volumes_of_shapes(robot)
    file = read_ssv_file(path)
    if file.pairs is not None:
        return file
    console.print(f"{path.name} names no pairs: searching them ...")
    return replace(file, pairs=find_pairs(robot, file.segments).pairs)


def _edit(args: argparse.Namespace, robot: Robot, file: SsvFile, path: Path) -> int:
    from humanoid_control.viewer.page import port_is_free
    from humanoid_control.viewer.segments.document import Document
    from humanoid_control.viewer.segments.editor import Editor
    from humanoid_control.viewer.segments.page import SegmentPage

    if not port_is_free(args.host, args.port):
        raise EnvironmentProblem(f"port {args.port} is occupied: choose another with --port")
    document = Document(file, lambda f: model_of(robot, f), path, path.is_file())
    page = SegmentPage(args.host, args.port, Editor(robot, document, urdf_path(args.robot).parent))
    console.print(f"{robot.title}: open http://{args.host}:{args.port}   volumes: {path}   Ctrl-C ends it")
    try:
        while True:
            time.sleep(3600)
    except KeyboardInterrupt:
        if document.changed:
            console.print("changes were not saved")
    finally:
        page.stop()
    return 0
