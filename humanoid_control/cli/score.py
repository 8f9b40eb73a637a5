"""`humanoid score`: how well robots imitate a clip, as tables, JSON and a page."""

from __future__ import annotations

import argparse

from humanoid_control.cli.parser import (
    CLIP_HELP,
    add_clip_options,
    add_robots,
    add_speed,
    comma_list,
    file_path,
    folder_path,
    given,
    number_list,
    read_body,
    refuse_unused,
    require_range,
)
from humanoid_control.terminal import console, print_json, print_parts, progress
from humanoid_control.warm_up import compile_first

EXAMPLES = """examples:
  humanoid score dance                                   robots of Dube 2012, with and without avoidance
  humanoid score clip.trc --robot wabian2,hrp2 --details
  humanoid score clip.c3d --robot my.urdf --acceleration 20 --json
  humanoid score dance --method weighted_dls,constrained  the solver of Dube 2012 beside this one
  humanoid score clip.bvh --acceleration 200,50,20       what gentle joints cost
  humanoid score clip.bvh --speed 0.5                    at half the pace
  humanoid score clip.bvh --html page.html               tables and plots in one file that needs nothing else
  humanoid score clip.trc -o out/                        score.json, score.html, errors.png, and every frame as CSV

JSON and CSV are in metres, radians and seconds; tables and plots in centimetres and degrees.
"""
DEFAULT = "dube2012"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("clip", type=given, help=CLIP_HELP)
    add_robots(parser, DEFAULT)
    parser.add_argument(
        "--method",
        type=comma_list,
        help="constrained (default), weighted_dls, dls, pinv; several separated by commas",
    )
    parser.add_argument(
        "--acceleration",
        type=number_list,
        help="limit of the joints [rad/s^2] (default: 200; hardware: 20); several separated by commas",
    )
    add_clip_options(parser)
    add_speed(parser)
    parser.add_argument("--trough-rule", default="auto", help="auto, both (as printed in Dube 2012) or limit")
    parser.add_argument("--raw", action="store_true", help="take the clip as it is, without cleaning")
    parser.add_argument("--details", action="store_true", help="also every link, joint, peak and trough of each robot")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of tables")
    parser.add_argument("--html", type=file_path, metavar="PAGE", help="write a self-contained page")
    parser.add_argument(
        "-o", "--output", type=folder_path, metavar="DIR", help="folder for score.json, score.html, errors.png, *.csv"
    )


def run(args: argparse.Namespace) -> int:
    from humanoid_control.errors import UnknownNameError
    from humanoid_control.evaluation.report.files import check_outputs, write_scores
    from humanoid_control.evaluation.report.tables import detail_tables, summary_tables, to_json, verdict_lines
    from humanoid_control.evaluation.score import retarget_variants, score_clip
    from humanoid_control.evaluation.tracking_error import TROUGH_RULES
    from humanoid_control.retargeting import CONSTRAINED, RetargetSettings
    from humanoid_control.robots import load_robots

    if args.trough_rule not in TROUGH_RULES:
        raise UnknownNameError("trough rule", args.trough_rule, TROUGH_RULES)
    require_range("speed", args.speed, 0.05, 20)
    for limit in args.acceleration or ():
        require_range("acceleration", limit, 0.1, 1e6)
    methods = args.method or [CONSTRAINED]
    if CONSTRAINED not in methods:
        refuse_unused(args, ["acceleration"], f"the method '{CONSTRAINED}'")
    variants = retarget_variants(methods, args.acceleration or [RetargetSettings.acceleration])
    robots = load_robots(args.robot or [DEFAULT], "fixed", imitate=True)  # before anything is compiled
    check_outputs(args.html, args.output)
    body = read_body(args)
    compile_first()
    with progress("scoring", len(robots), quiet=args.json) as show:
        scores = []
        for k, robot in enumerate(robots):
            show(k, robot.name)

            def solving(share: float, k: int = k) -> None:
                show(k + share, robots[k].name)

            scores.append(score_clip(body, robot, variants, args.trough_rule, solving, args.speed))
        show(len(robots), "")
    written = write_scores(scores, args.html, args.output)
    if args.json:
        print_json(to_json(scores))
        return 0
    print_parts(summary_tables(scores))
    if args.details:
        print_parts(t for s in scores for t in detail_tables(s))
    print_parts(verdict_lines(scores))
    for robot in robots:
        if robot.shapes_from:
            console.print(
                f"{robot.name}: in collision by {robot.shapes_from}; its own meshes: humanoid robots touching"
            )
    for line in written:
        console.print(f"written: {line}")
    return 0
