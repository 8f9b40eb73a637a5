"""`humanoid why`: first violation of a recorded run, its time line, differences of two runs.

The analysis is `humanoid_control.evaluation.incidents`.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from humanoid_control.cli.parser import file_path, folder_path, given
from humanoid_control.errors import ConfigError, HumanoidError
from humanoid_control.terminal import console, print_json, print_parts, warn

if TYPE_CHECKING:
    from pathlib import Path

    from humanoid_control.evaluation.incidents import RunStreams
    from humanoid_control.robots import Robot

EXAMPLES = """examples:
  humanoid why ~/.humanoid/runs/latest/recording      the first violation and the events after it
  humanoid why fell.mcap --html why.html              the timeline as a page
  humanoid why fell/ good/                            the differences between two runs
  humanoid why fell/ --json --robot my.urdf

Exit code 0: no violation; 1: at least one violation.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("recording", type=folder_path, help="directory of the bag, or its .mcap file")
    parser.add_argument("other", type=folder_path, nargs="?", help="second recording to compare with")
    parser.add_argument(
        "--robot", type=given, help="robot whose joint limits are checked (default: from the recording)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--html", type=file_path, metavar="PAGE", help="self-contained HTML page to write")


def run(args: argparse.Namespace) -> int:
    from humanoid_control.evaluation.incidents import compare_runs, find_violations, read_streams, timeline_page
    from humanoid_control.evaluation.report import check_outputs
    from humanoid_control.files import whole_file
    from humanoid_control.robots import load_robot

    check_outputs(args.html, None)
    robot = load_robot(args.robot, "fixed") if args.robot else None
    runs = [read_streams(path) for path in (args.recording, args.other) if path is not None]
    found = [find_violations(r, robot or _robot_of(r, path)) for r, path in zip(runs, _paths(args), strict=True)]
    difference = compare_runs(runs[0], runs[1], (found[0], found[1])) if len(runs) == 2 else None
    if args.html is not None:
        with whole_file(args.html) as part:
            part.write_text(timeline_page(found, difference), encoding="utf-8")
    if args.json:
        print_json({"runs": [t.as_json() for t in found], "difference": difference and difference.as_json()})
    else:
        for timeline in found:
            print_parts(timeline.parts())
        if difference is not None:
            print_parts(difference.parts())
        if args.html is not None:
            console.print(f"written: {args.html}")
    return 1 if any(t.violations for t in found) else 0


def _paths(args: argparse.Namespace) -> list[Path]:
    return [path for path in (args.recording, args.other) if path is not None]


def _robot_of(streams: RunStreams, path: Path) -> Robot | None:
    from humanoid_control.evaluation.bag import BagReader
    from humanoid_control.robots import load_robot
    from humanoid_control.session.recording import robot_in

    try:
        name = streams.hardware
        if not name:
            bag = BagReader(path)
            name = robot_in(bag)
            bag.close()
        return load_robot(name, "fixed")
    except (ConfigError, HumanoidError) as e:
        warn(f"humanoid why: joint limits are not checked: {e}")
        return None
