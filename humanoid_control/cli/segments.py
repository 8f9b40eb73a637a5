"""`humanoid segments`: edit collision volumes in the browser, or list their smallest gaps."""

from __future__ import annotations

import argparse
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from humanoid_control.cli.parser import (
    HOST,
    comma_list,
    file_path,
    given,
    refuse_unused,
    require_free_port,
    require_range,
)
from humanoid_control.collision.ssv.segments import SegmentFile, Volume, expand, read_segment_file
from humanoid_control.errors import ConfigError, RobotError
from humanoid_control.files import check_file
from humanoid_control.robots.catalogue import load_robot, urdf_path, volumes_path
from humanoid_control.robots.robot import Robot
from humanoid_control.robots.volumes import find_pairs, model_of, volumes_of_shapes
from humanoid_control.terminal import console, print_json, table, warn
from humanoid_control.viewer import EditorDistances


def check(robot: Robot, file: SegmentFile, path: Path | None, as_json: bool) -> int:
    """Print volumes; 1 if watched ones overlap in the neutral posture.

    Args:
        path: of the file; None: collision shapes.
    """
    model, distances = model_of(robot, file), EditorDistances(robot)
    drawn = {s.name for s in file.segments}
    segments: list[dict[str, Any]] = [
        {
            "segment": s.name,
            "link": s.link,
            "volumes": len(s.volumes),
            "types": " ".join(
                f"{n} {kind}" for kind in ("point", "line", "triangle") if (n := _count(s.volumes, kind))
            ),
            "partners": sum(s.name in (p.first, p.second) for p in model.pairs),
            "drawn": s.name in drawn,
        }
        for s in expand(file.segments)
    ]
    postures: list[dict[str, Any]] = []
    for name in robot.postures:
        smallest = distances.at(model, robot.joints(robot.q(name))).smallest
        if smallest is not None:
            pair = f"{smallest.volume_1} - {smallest.volume_2}"
            postures.append({"posture": name, "smallest_gap_mm": round(1000 * smallest.distance, 2), "between": pair})
    overlap = any(row["posture"] == "neutral" and row["smallest_gap_mm"] < 0 for row in postures)
    if as_json:
        print_json(
            {
                "robot": robot.name,
                "file": str(path) if path else None,
                "segments": segments,
                "pairs": len(model.pairs),
                "pairs_of_volumes": len(model.arrays.volume_pairs),
                "postures": postures,
            }
        )
        return int(overlap)
    columns = ["segment", "link", "volumes", "types", "partners"]
    for row in segments:
        row["link"] = row["link"] if row["drawn"] else f"{row['link']} (mirrored)"
    rows = [[row[c] for c in columns] for row in segments]
    table(f"{robot.title}: volumes of {path or 'its collision shapes'}", columns, rows)
    console.print(f"{len(model.pairs)} monitored pairs of segments, {len(model.arrays.volume_pairs)} of volumes")
    columns = ["posture", "smallest gap mm", "between"]
    table("smallest gaps", columns, [[p["posture"], p["smallest_gap_mm"], p["between"]] for p in postures])
    if overlap:
        warn("monitored volumes overlap in the neutral posture: make them smaller, or do not monitor that pair")
    return int(overlap)


def _count(ssvs: tuple[Volume, ...], kind: str) -> int:
    return sum(v.type == kind for v in ssvs)


# -------- The command

EXAMPLES = """examples:
  humanoid segments lola                                the editor: open http://127.0.0.1:8080
  humanoid segments my_robot.urdf --file try.yaml       any URDF, volumes in another file
  humanoid segments hrp2 --check                        list segments, pairs, and smallest gaps in named postures
  humanoid segments hrp2 --check --json

Volumes are saved next to the URDF as ROBOT.volumes.yaml and loaded from there. Without that file the editor starts from
the collision shapes of the robot. More: docs/collision_volumes.md.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "robot", nargs="?", type=given, default="lola", help="robot name or path of a URDF (default: lola)"
    )
    parser.add_argument("--file", type=file_path, help="volume file (default: ROBOT.volumes.yaml next to the URDF)")
    parser.add_argument("--port", type=int, help="port of the page (default: 8080)")
    parser.add_argument("--host", type=given, help="listen address of the page (default: 127.0.0.1)")
    parser.add_argument("--origins", type=comma_list, help="additional host names allowed to connect: HOST,HOST")
    parser.add_argument(
        "--check",
        action="store_true",
        help="list the volumes instead; exit code 1 if volumes overlap in the neutral posture",
    )
    parser.add_argument("--json", action="store_true", help="with --check: print JSON")


def run(args: argparse.Namespace) -> int:
    if args.check:
        refuse_unused(args, ["port", "host", "origins"], "the editor, not to --check")
    else:
        refuse_unused(args, ["json"], "--check")
    args.port, args.host = 8080 if args.port is None else args.port, args.host or HOST
    require_range("port", args.port, 1, 65535)
    robot = load_robot(args.robot, "fixed")
    path = args.file or volumes_path(args.robot)
    if args.check:
        if args.file and not os.path.isdir(path.parent):
            raise ConfigError(f"--file: the folder {path.parent} does not exist")
    else:
        check_file(args.file, "volume file")
    if args.check and args.file and not os.path.isfile(path):
        raise RobotError(f"volume file {path} not found")
    file = read_volumes(robot, path)
    if args.check:
        return check(robot, file, path if path.is_file() else None, args.json)
    return _edit(args, robot, file, path)


def read_volumes(robot: Robot, path: Path) -> SegmentFile:
    """Read a file's volumes, or those of the robot's shapes; find pairs left to sampling."""
    if not path.is_file():
        return volumes_of_shapes(robot)
    file = read_segment_file(path)
    if file.pairs is not None:
        return file
    console.print(f"{path.name} lists no pairs: searching for them ...")
    return replace(file, pairs=find_pairs(robot, file.segments).pairs)


def _edit(args: argparse.Namespace, robot: Robot, file: SegmentFile, path: Path) -> int:
    from humanoid_control.viewer import Document, VolumeEditor, VolumeEditorPage

    require_free_port(args.port, args.host)
    document = Document(file, lambda f: model_of(robot, f), path, path.is_file())
    editor = VolumeEditor(robot, document, urdf_path(args.robot).parent)
    page = VolumeEditorPage(args.host, args.port, editor, args.origins or ())
    console.print(f"{robot.title}: open http://{args.host}:{args.port}   volumes: {path}   Ctrl-C stops")
    try:
        while True:
            time.sleep(3600)
    except KeyboardInterrupt:
        if document.changed:
            console.print("changes were not saved")
    finally:
        page.stop()
    return 0
