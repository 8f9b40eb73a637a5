"""`humanoid analyse`: joint angles, moments and residuals of a recorded person."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from pathlib import Path
from typing import Any

from humanoid_control.cli.parser import CLIP_HELP, folder_path, given, require_range
from humanoid_control.errors import ConfigError
from humanoid_control.files import check_folder, whole_files
from humanoid_control.terminal import ReportTable, console, plain_values, print_json, print_parts, warn
from humanoid_control.warm_up import HUMAN, compile_first

EXAMPLES = """examples:
  humanoid analyse walk.c3d -o walk/                                        built-in model, plates of the C3D file
  humanoid analyse walk.trc --static standing.trc --mass 72.6 --sex women --forces grf.mot -o walk/
  humanoid analyse walk.trc --robots lola,hrp2 -o walk/                     also fit robots to the markers
  humanoid analyse walk.trc --model subject.osim                            joint angles only
  humanoid analyse walk.trc --model subject.osim --forces grf.mot -o walk/  angles and moments, as files and a page
  humanoid analyse run.trc --model subject.osim --forces grf.xml --setup ik_setup.xml --cutoff 15 -o run/
  humanoid analyse walk.trc --model generic.osim --static standing.trc --mass 72.6 --forces grf.mot -o walk/
  humanoid analyse walk.trc --model subject.osim --forces grf.mot --offset 0.12 --json
  humanoid analyse walk.trc --model subject.osim --forces grf.mot --track   also integrate the motion from the forces
  humanoid analyse walk.c3d --plug-in-gait          compared with the Plug-in Gait outputs in the file

The output folder contains angles.mot, torques.sto and forces.mot (OpenSim formats), motion.npz, motion.csv,
report.json, report.html, and the fitted person as model.osim and model.urdf. Without --model, the built-in person model
is used: marker template from the labels, stature from the markers, mass from the plates. An .osim model must have the
size and markers of the recorded person, or use --calibrate. Its mass is used unless --mass is given.
"""
MASS, CUTOFF = (1.0, 500.0), (0.1, 1000.0)
OF_THE_FILE = ("model", "markers", "forces", "setup", "calibrate", "static", "mass", "stature", "offset", "unit")
"""Options that the comparison with Plug-in Gait takes from the clip's file."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("clip", type=given, help=CLIP_HELP)
    parser.add_argument("--model", type=given, help="model: .osim or .yaml file, or a model name (default: person)")
    parser.add_argument("--markers", type=given, help="marker template of the person (default: detected by the labels)")
    parser.add_argument("--forces", type=given, help="force plate file: .mot, .sto, ExternalLoads .xml, or C3D")
    parser.add_argument("--setup", type=given, help="marker weights: setup file of OpenSim's inverse kinematics")
    parser.add_argument(
        "--calibrate", action="store_true", help="estimate segment sizes and marker positions from the clip"
    )
    parser.add_argument("--static", type=given, help="static clip of the standing person, for the calibration")
    parser.add_argument(
        "--mass", type=float, help="mass of the person [kg] (default: of the model, or from the plates)"
    )
    parser.add_argument("--stature", type=float, help="initial stature of the person [m] (default: from the markers)")
    parser.add_argument(
        "--sex", type=given, help="men or women: segment mass distribution of the built-in person (default: men)"
    )
    parser.add_argument(
        "--cutoff", type=float, default=6.0, help="cutoff of the low-pass filter [Hz] (default: 6; running: 15)"
    )
    parser.add_argument("--offset", type=float, default=0.0, help="delay added to the forces [s] (default: 0)")
    parser.add_argument("--robots", type=given, help="robots to fit to the same markers, by name or URDF: lola,hrp2")
    parser.add_argument("--track", action="store_true", help="also integrate the motion from the measured forces")
    parser.add_argument(
        "--plug-in-gait",
        action="store_true",
        help="compare with Vicon Plug-in Gait outputs in the C3D file, using its mass and height",
    )
    parser.add_argument("--forces-unit", type=given, help="length unit of a force table: m or mm (default: m)")
    parser.add_argument("--unit", type=given, help="length unit of the clip: mm, cm, m, inch (default: detected)")
    parser.add_argument("-o", "--output", type=folder_path, metavar="DIR", help="output folder")
    parser.add_argument("--force", action="store_true", help="write into a non-empty folder")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of tables")


def run(args: argparse.Namespace) -> int:
    from humanoid_control.human.models import fit_robot, robot_rows
    from humanoid_control.human.records import summary
    from humanoid_control.robots import load_robots

    require_range("mass", args.mass, *MASS)
    require_range("cutoff", args.cutoff, *CUTOFF)
    require_range("offset", args.offset, -1e6, 1e6)
    check_folder(args.output)
    if args.output is not None and args.output.is_dir() and any(args.output.iterdir()) and not args.force:
        raise ConfigError(f"{args.output} is not empty: name another folder, or write into it with --force")
    robots = [] if args.robots is None else load_robots(args.robots.split(","), "floating")
    found, vicon = _compare_plug_in_gait(args) if args.plug_in_gait else (_analyse(args), None)
    report = summary(found)
    motions = [fit_robot(found, robot) for robot in robots]
    if motions:
        report["robots"] = robot_rows(found, motions)
    if vicon is not None:
        report["plug_in_gait"] = vicon.rows
    if args.output is not None:
        from humanoid_control.evaluation.report.person_page import person_page
        from humanoid_control.human.records import write_records, write_robot

        command = "humanoid " + shlex.join(sys.argv[1:])
        page = person_page(found, command, motions, vicon)
        with whole_files(args.output) as part:
            write_records(found, part)
            for motion in motions:
                write_robot(motion, found.times, part)
            (part / "report.json").write_text(json.dumps(plain_values(report), allow_nan=False, indent=1))
            (part / "report.html").write_text(page, encoding="utf-8")
    if args.json:
        print_json(report)
        return 0
    for text in (*found.guesses, *found.warnings, *(f"{m.name}: {w}" for m in motions for w in m.warnings)):
        warn(text)
    print_parts(_tables(report))
    if args.output is not None:
        console.print(f"written: {args.output} (angles, moments, forces; report: {args.output}/report.html)")
    return 0


def _settings(args: argparse.Namespace) -> Any:
    from humanoid_control.human import AnalysisSettings, TrackingSettings

    tracking = TrackingSettings() if args.track else None
    return AnalysisSettings(cutoff=args.cutoff, offset=args.offset, tracking=tracking)


def _analyse(args: argparse.Namespace) -> Any:
    from humanoid_control.human import analyse, read_ik_setup, read_osim
    from humanoid_control.human.models import SubjectSettings, analyse_subject, find_subject
    from humanoid_control.mocap import load_clip

    clip = load_clip(args.clip, unit=args.unit or "")
    static = None if args.static is None else load_clip(args.static, unit=args.unit or "")
    wrenches = _forces(args)
    if args.track and not wrenches:
        raise ConfigError(
            "--track needs forces: give --forces, or a C3D file with plates; leave out --track for angles only"
        )
    if args.setup is not None and not Path(args.setup).expanduser().is_file():
        raise ConfigError(f"{args.setup}: not found; --setup expects a setup file of OpenSim's inverse kinematics")
    settings = _settings(args)
    if Path(args.model or "").suffix.lower() == ".osim":
        _refuse_own(args)
        person = read_osim(args.model)
        person = person if args.mass is None else person.with_mass(args.mass)
        tasks = None if args.setup is None else read_ik_setup(args.setup, person)
        compile_first(HUMAN)
        by = [clip] if args.calibrate or static is not None else []
        by += [static] if static is not None else []
        return analyse(person, clip, wrenches, tasks, settings, by)
    compile_first(HUMAN)
    known = SubjectSettings(args.model or "person", args.markers or "", args.stature, args.mass, args.sex or "")
    subject = find_subject(clip, wrenches, static, known)
    tasks = None if args.setup is None else read_ik_setup(args.setup, subject.person)
    return analyse_subject(subject, clip, wrenches, tasks, settings)


def _compare_plug_in_gait(args: argparse.Namespace) -> tuple[Any, Any]:
    """Analyse a person of our own model with mass and height of a Vicon file, and compare."""
    from humanoid_control.evaluation.plug_in_gait import compare_with_plug_in_gait

    for option in OF_THE_FILE:
        if getattr(args, option):
            raise ConfigError(f"--plug-in-gait reads this from the clip: leave out --{option}")
    compile_first(HUMAN)
    vicon = compare_with_plug_in_gait(args.clip, _settings(args), args.sex or "")
    return vicon.analysis, vicon


def _refuse_own(args: argparse.Namespace) -> None:
    for option in ("markers", "stature", "sex"):
        if getattr(args, option) is not None:
            raise ConfigError(f"--{option} applies to the built-in person model: leave it out, or leave out --model")


def _forces(args: argparse.Namespace) -> Any:
    from humanoid_control.human.forces.force_plates import read_force_plates
    from humanoid_control.human.forces.loads import read_loads

    path = args.forces
    if path is None and args.forces_unit:
        raise ConfigError("--forces-unit is the length unit of the --forces table: give --forces, too")
    if path is None:
        return _own_plates(args.clip)
    if Path(path).suffix.lower() == ".c3d":
        if args.forces_unit:
            raise ConfigError("--forces-unit applies to force tables only: a C3D file states its units")
        return read_force_plates(path)
    return read_loads(path, unit=args.forces_unit or "m")


def _own_plates(clip: str) -> Any:
    from humanoid_control.human.forces.force_plates import force_plates, has_force_plates
    from humanoid_control.mocap.formats.c3d import decode_c3d

    if Path(clip).suffix.lower() != ".c3d":
        return ()
    content = decode_c3d(Path(clip).expanduser().read_bytes(), clip)  # already validated as a clip
    return force_plates(content, clip) if has_force_plates(content) else ()


def _tables(report: dict[str, Any]) -> list[ReportTable | str]:
    worst = list(report["by_marker_mm"].items())[:5]
    rows = [
        ["frames", report["frames"]],
        ["markers, root mean square", f"{report['marker_rms_mm']:.1f} mm"],
        ["largest errors", ", ".join(f"{name} {mm:.0f}" for name, mm in worst) + " mm"],
        ["frames with moments", report["frames_with_moments"]],
    ]
    parts: list[ReportTable | str] = [
        ReportTable(f"{report['clip']} by {report['model']}, {report['mass_kg']:.1f} kg", ["", ""], rows)
    ]
    if "robots" in report:
        heads = ["", "coordinates", "scale", "markers", "rms mm", "at a limit", "r (knees, elbows)", "rms deg"]
        parts.append(ReportTable("the same markers on robots", heads, [list(row.values()) for row in report["robots"]]))
    if "residual" in report:
        residual = dict(report["residual"])
        weight = residual.pop("force_of_weight")
        body = [[name, f"{v['before']:.2f}", f"{v['after']:.3f}"] for name, v in residual.items()]
        share = [f"{100 * weight[k]:.2f} %" for k in ("before", "after")]
        body.append(["force / weight", *share])
        title = "root residual of forces and masses, root mean square [N m, N]"
        parts.append(ReportTable(title, ["coordinate", "as measured", "corrected"], body))
    if "tracking" in report:
        t = report["tracking"]
        off = [f"{1e3 * t['error_m']:.1f} mm, {t['error_deg']:.2f} deg" if k else "" for k in range(2)]
        body = [[name, f"{v['before']:.2f}", f"{v['after']:.3f}"] for name, v in t["residual"].items()]
        body += [["deviation from the measurement", *off], ["mass", "", f"{t['mass_factor']:.3f} times"]]
        body.append([f"centre of mass of {t['trunk']}", "", f"moved by {1e3 * t['trunk_moved_m']:.0f} mm"])
        parts.append(
            ReportTable(
                "forward tracking with the measured forces [N m, N]", ["coordinate", "as measured", "tracked"], body
            )
        )
    if "plug_in_gait" in report:
        rows = report["plug_in_gait"]
        parts.append(ReportTable("compared with Plug-in Gait", [*rows[0]], [[*row.values()] for row in rows]))
    return parts
