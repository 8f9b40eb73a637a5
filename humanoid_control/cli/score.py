"""`humanoid score`: quality of imitation, pelvis held or whole body: tables, JSON, page."""

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
    tell_notes,
)
from humanoid_control.terminal import console, print_json, print_parts, progress
from humanoid_control.warm_up import WHOLE_BODY, compile_first

EXAMPLES = """examples:
  humanoid score dance                                   robots of Dube 2012, with and without avoidance
  humanoid score clip.trc --robot wabian2,hrp2 --details
  humanoid score clip.c3d --robot my.urdf --acceleration 20 --json
  humanoid score dance --method weighted_dls,constrained  the solver of Dube 2012 compared with this one
  humanoid score clip.bvh --acceleration 200,50,20       the cost of lower acceleration limits
  humanoid score clip.bvh --speed 0.5                    half speed
  humanoid score clip.bvh --html page.html               tables and plots in one self-contained file
  humanoid score clip.trc -o out/                        score.json, score.html, errors.png, and all frames as CSV
  humanoid score walk.bvh --robot hrp2,g1 --whole-body   root and legs too: contacts, balance, torques, grade
  humanoid score walk.bvh --robot hrp2 --whole-body --details --html page.html

JSON and CSV are in metres, radians and seconds; tables and plots in centimetres and degrees.
"""
DEFAULT = "dube2012"
BIPEDS = ("lola", "hrp2", "suralp", "wabian2")  # default robots of --whole-body
HELD = ("trough-rule",)  # options of a held pelvis


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("clip", type=given, help=CLIP_HELP)
    add_robots(parser, f"{DEFAULT}; with --whole-body {', '.join(BIPEDS)}")
    parser.add_argument(
        "--whole-body", action="store_true", help="also retarget root and legs, with feet held on the ground"
    )
    parser.add_argument(
        "--method",
        type=comma_list,
        help="retargeting method: constrained (default), weighted_dls, dls, pinv; comma-separated for several. "
        "With --whole-body: live (default) or clip",
    )
    parser.add_argument(
        "--acceleration",
        type=number_list,
        help="joint acceleration limit [rad/s^2] (default: 200; hardware: 20); comma-separated for several",
    )
    add_clip_options(parser)
    add_speed(parser)
    parser.add_argument(
        "--trough-rule", help="collision avoidance: auto (default), both (as printed in Dube 2012) or limit"
    )
    parser.add_argument("--raw", action="store_true", help="use the clip unchanged, without cleaning")
    parser.add_argument(
        "--details", action="store_true", help="also print every link, joint, peak and trough of each robot"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of tables")
    parser.add_argument("--html", type=file_path, metavar="PAGE", help="self-contained HTML page to write")
    parser.add_argument(
        "-o",
        "--output",
        type=folder_path,
        metavar="DIR",
        help="output folder of score.json, score.html, errors.png, *.csv",
    )


def run(args: argparse.Namespace) -> int:
    from humanoid_control.errors import UnknownNameError
    from humanoid_control.evaluation.report.files import check_outputs, write_scores
    from humanoid_control.evaluation.report.tables import detail_tables, summary_tables, to_json, verdict_lines
    from humanoid_control.evaluation.score import retarget_variants, score_clip
    from humanoid_control.evaluation.tracking_error import TROUGH_RULES
    from humanoid_control.retargeting import CONSTRAINED, RetargetSettings
    from humanoid_control.robots import load_robots

    trough_rule = args.trough_rule or "auto"
    if trough_rule not in TROUGH_RULES:
        raise UnknownNameError("trough rule", trough_rule, TROUGH_RULES)
    require_range("speed", args.speed, 0.05, 20)
    for limit in args.acceleration or ():
        require_range("acceleration", limit, 0.1, 1e6)
    if args.whole_body:
        return _whole_body(args)
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

            scores.append(score_clip(body, robot, variants, trough_rule, solving, args.speed))
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
                f"{robot.name}: collisions evaluated with {robot.shapes_from}; to check the meshes: humanoid robots "
                "touching"
            )
    for line in written:
        console.print(f"written: {line}")
    return 0


def _whole_body(args: argparse.Namespace) -> int:
    """Score root, legs and arms of each robot, with a grade."""
    from humanoid_control.errors import ConfigError, UnknownNameError
    from humanoid_control.evaluation.report.files import check_outputs
    from humanoid_control.evaluation.report.whole_body_report import (
        joint_table,
        whole_body_json,
        whole_body_notes,
        whole_body_tables,
        whole_body_verdicts,
        write_whole_body,
    )
    from humanoid_control.evaluation.whole_body_score import score_whole_body
    from humanoid_control.retargeting import LIVE, WHOLE_BODY_METHODS, WholeBodyTask, whole_body_settings
    from humanoid_control.robots import load_robots

    refuse_unused(args, HELD, "a fixed pelvis: leave out --whole-body")
    if len(args.acceleration or ()) > 1:
        raise ConfigError("--whole-body takes one --acceleration")
    if len(args.method or ()) > 1:
        raise ConfigError("--whole-body takes one --method")
    method = (args.method or [LIVE])[0]
    if method not in WHOLE_BODY_METHODS:
        raise UnknownNameError("method", method, WHOLE_BODY_METHODS, hint="(with --whole-body)")
    robots = load_robots(args.robot or BIPEDS, "floating", imitate=True)  # before anything is compiled
    check_outputs(args.html, args.output)
    tell_notes(robots)
    body = read_body(args)
    tasks = [WholeBodyTask.of(body, robot, args.speed) for robot in robots]
    compile_first(WHOLE_BODY)
    settings, scores = whole_body_settings(args.acceleration[0] if args.acceleration else None, method), []
    with progress("scoring", len(tasks), quiet=args.json) as show:
        for k, task in enumerate(tasks):

            def solving(share: float, k: int = k) -> None:
                show(k + share, robots[k].name)

            scores.append(score_whole_body(task, settings, solving, method))
    written = write_whole_body(scores, args.html, args.output)
    if args.json:
        print_json(whole_body_json(scores))
        return 0
    print_parts(whole_body_tables(scores))
    if args.details:
        print_parts(joint_table(s) for s in scores)
    print_parts(whole_body_notes(scores))
    print_parts(whole_body_verdicts(scores))
    for line in written:
        console.print(f"written: {line}")
    return 0
