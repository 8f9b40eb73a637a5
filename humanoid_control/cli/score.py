"""`humanoid score`: how well robots imitate a clip, as tables, JSON and a page."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from humanoid_control.errors import ConfigError
from humanoid_control.terminal import compile_first, console, print_json, progress, table

if TYPE_CHECKING:
    from humanoid_control.evaluation.score import RobotScore
    from humanoid_control.mocap.body_points import BodyPoints
    from humanoid_control.retargeting.retargeter import RetargetSettings
    from humanoid_control.robots.robot import Robot

EXAMPLES = """examples:
  humanoid score dance                                   the robots of the source, with and without avoidance
  humanoid score clip.trc --robots wabian2,hrp2 --details
  humanoid score clip.c3d --robots my.urdf --json
  humanoid score dance --method weighted_dls,constrained  the solver of Dube 2012 beside this one
  humanoid score clip.bvh --html page.html               tables and plots in one file that needs nothing else
  humanoid score clip.trc -o out/                        score.json, score.html, errors.png, and every frame as CSV

JSON and CSV are in metres, radians and seconds; tables and plots in centimetres and degrees.
"""
ALL = ("armar3", "hrp2", "suralp", "wabian2", "we4rii", "recommended")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("clip", help="'dance' (built in), or a motion file")
    parser.add_argument(
        "--robots", default="all", help="names or URDF paths, separated by commas, or 'all' of the source (default)"
    )
    parser.add_argument(
        "--method",
        default="constrained",
        help="constrained (default), weighted_dls, dls, pinv; several separated by commas",
    )
    parser.add_argument("--marker-set", default="", help="marker set of the clip, or the path of an own one")
    parser.add_argument("--trough-rule", default="auto", help="auto, both (as printed in the source) or limit")
    parser.add_argument("--raw", action="store_true", help="take the clip as it is, without cleaning")
    parser.add_argument("--details", action="store_true", help="also every link, joint, peak and trough of each robot")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of tables")
    parser.add_argument("--html", type=Path, metavar="PAGE", help="write a self-contained page")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="DIR", help="folder for score.json, score.html, errors.png, *.csv"
    )


def run(args: argparse.Namespace) -> int:
    from humanoid_control.errors import UnknownNameError
    from humanoid_control.evaluation.report.files import check_outputs, write_outputs
    from humanoid_control.evaluation.report.tables import detail_tables, summary_tables, to_json
    from humanoid_control.evaluation.tracking_error import TROUGH_RULES
    from humanoid_control.mocap.body_points import find_body_points
    from humanoid_control.mocap.load import load_body_points, load_clip

    if args.trough_rule not in TROUGH_RULES:
        raise UnknownNameError("trough rule", args.trough_rule, TROUGH_RULES)
    robots, solved = load_robots(args.robots), ways(args.method)
    check_outputs(args.html, args.output)
    marker_set = args.marker_set or None
    body = find_body_points(load_clip(args.clip), marker_set) if args.raw else load_body_points(args.clip, marker_set)
    compile_first()
    with progress("scoring", len(robots), quiet=args.json) as show:
        scores = []
        for k, robot in enumerate(robots):
            show(k, robot.name)
            scores.append(
                score_robot(body, robot, solved, args.trough_rule, lambda f, k=k: show(k + f, robots[k].name))
            )
        show(len(robots), "")
    written = write_outputs(scores, args.html, args.output)
    if args.json:
        print_json(to_json(scores))
        return 0
    tables = summary_tables(scores)
    if args.details:
        tables += [t for s in scores for t in detail_tables(s)]
    for t in tables:
        table(t.title, t.columns, t.rows)
    for line in written:
        console.print(f"written: {line}")
    return 0


def load_robots(text: str) -> list[Robot]:
    """The robots of a list separated by commas; 'all' stands for those of the source and the recommended model.

    Raises:
        ConfigError: the list names no robot.
        UnknownNameError, RobotError: one of them cannot be loaded.
    """
    from humanoid_control.robots.catalogue import load_robot

    names: list[str] = []
    for name in (part.strip() for part in text.split(",")):
        names += ALL if name == "all" else [name] if name else []
    if not names:
        raise ConfigError(f"--robots '{text}' names no robot: give names, paths, or 'all'")
    robots = [load_robot(name, "fixed") for name in dict.fromkeys(names)]
    for robot in robots:
        robot.require_imitation_points()  # said before anything is compiled
    twice = next((r.name for k, r in enumerate(robots) if r.name in [other.name for other in robots[:k]]), None)
    if twice is not None:
        raise ConfigError(f"--robots holds two robots called '{twice}': score them one after the other")
    return robots


def ways(methods: str = "constrained") -> list[tuple[str, RetargetSettings]]:
    """The ways to solve a clip that are compared, each method without and with avoidance: label and settings.

    Args:
        methods: names separated by commas.

    Raises:
        ConfigError: the list names no method. UnknownNameError: a method that does not exist.
    """
    from humanoid_control.retargeting.retargeter import RetargetSettings

    names = list(dict.fromkeys(m.strip() for m in methods.split(",") if m.strip()))
    if not names:
        raise ConfigError(f"--method '{methods}' names no method")
    out = []
    for name in names:
        first = f"{name}, " if len(names) > 1 else ""
        avoiding = "constraints" if name == "constrained" else "shift"
        out.append((f"{first}no avoidance", RetargetSettings(method=name, avoidance="none")))
        out.append((f"{first}avoidance", RetargetSettings(method=name, avoidance=avoiding)))
    return out


def score_robot(
    body: BodyPoints,
    robot: Robot,
    solved: list[tuple[str, RetargetSettings]],
    trough_rule: str = "auto",
    progress: Any = None,
) -> RobotScore:
    """Solve a clip for one robot in several ways, and score them.

    Args:
        progress: called with the share that is done, 0 to 1.
    """
    from humanoid_control.evaluation.score import score
    from humanoid_control.retargeting import retarget_clip
    from humanoid_control.retargeting.scaling import scale_to_robot

    targets = scale_to_robot(body, robot)
    say = progress or (lambda share: None)
    runs = []
    for k, (label, settings) in enumerate(solved):

        def solving(done: int, total: int, k: int = k) -> None:
            if done % 50 == 0:
                say(0.8 * (k + done / total) / len(solved))

        runs.append((label, retarget_clip(targets, robot, settings, solving)))
    return score(robot, targets, runs, trough_rule, lambda done, total: say(0.8 + 0.2 * done / total))
