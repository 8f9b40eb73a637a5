"""`humanoid retarget`: motion clip to joint trajectory: CSV, NPZ, or a bag of joint commands."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from humanoid_control.cli.library import LIBRARY_OPTIONS, add_library_options, run_library
from humanoid_control.cli.parser import (
    CLIP_HELP,
    add_clip_options,
    add_robots,
    add_speed,
    folder_path,
    given,
    is_folder,
    read_body,
    refuse_unused,
    require_range,
    tell_notes,
)
from humanoid_control.clip_library import is_library
from humanoid_control.clip_library.work import FORMATS, feasible, write_trajectory
from humanoid_control.errors import ConfigError, UnknownNameError
from humanoid_control.evaluation.stretching import AUTO, NONE, STRETCHES, feasible_row, stretched
from humanoid_control.files import check_file, check_folder
from humanoid_control.performing import DYNAMIC
from humanoid_control.retargeting import (
    AVOIDANCE,
    CLIP,
    CONSTRAINED,
    INTERCHANGE,
    LIVE,
    METHODS,
    WHOLE_BODY_METHODS,
    RetargetSettings,
)
from humanoid_control.terminal import console, print_json, progress, table
from humanoid_control.walking.gait import GRAVITY
from humanoid_control.warm_up import PERFORMING, WHOLE_BODY, compile_first

# -------- The command

FAR = 0.05  # [m] distances beyond it are not measured
LIMITS = ("saturated_percent", "colliding_percent", "closest_mm")
COLUMNS = {
    "rate_hz": "rate Hz",
    "slip_mm": "slip mm",
    "slip_max_mm": "max slip mm",
    "penetration_mm": "penetration mm",
    "floating_mm": "floating mm",
    "skating_mm_s": "skating mm/s",
    "saturated_percent": "at speed limit %",
    "colliding_percent": "in collision %",
    "closest_mm": "closest mm",
}  # titles; other keys have their words
EXAMPLES = """examples:
  humanoid retarget clip.trc --robot wabian2 -o wabian2.csv
  humanoid retarget dance --robot all -o out/           one file per robot
  humanoid retarget clip.bvh --robot hrp2,my.urdf --acceleration 20    low acceleration, for real joints
  humanoid retarget clip.bvh -o motion.mcap             a bag of joint_commands for `humanoid replay`
  humanoid retarget clip.c3d -o motion.npz --speed 0.5 --json
  humanoid retarget clip.amc --method weighted_dls --avoidance shift    the method of Dube 2012
  humanoid retarget walk.bvh --robot hrp2 --whole-body -o walk.npz    root and legs too, feet on the ground
  humanoid retarget walk.bvh --robot hrp2 --whole-body --method clip -o walk.npz    all frames at once, smoother
  humanoid retarget clips/ --robot hrp2,lola --whole-body -o out/ --html out/gallery.html   a folder of clips
  humanoid retarget 'cmu/**/*.bvh' --robot hrp2 -o out/ --jobs 4    a glob pattern or .txt list
  humanoid retarget clips/ --robot my.urdf -o s3://bucket/out --scheduler tcp://host:8786   on a Dask cluster
  humanoid retarget walk.bvh --robot hrp2 --whole-body -o walk.npz --format gmr    also protomotions, beyondmimic,
                                                        mujoco (qpos) and keyframes: docs/whole_body.md
  humanoid retarget dance --robot hrp2 --whole-body --feasible -o dance.npz --format dynamic   physically feasible, with
                                                        contact forces and torques: docs/perform.md

Clips are cleaned first: labels checked, short gaps filled, noise above 10 Hz removed (disable with --raw).
CSV: time [s], then one column per joint [rad]. NPZ: joint_names, rate, positions, velocities, targets, errors.
With --whole-body also the root (position [m], quaternion x y z w) and the sole edges in contact with the ground.
A folder of clips is processed on all cores; the same command resumes an interrupted run. out/manifest.csv lists the
grade, numbers, warnings or failure of each clip. Exit code 1: at least one clip failed.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("clip", type=given, help=f"{CLIP_HELP}; or a folder, a glob pattern, or a .txt list of clips")
    add_robots(parser, "hrp2")
    parser.add_argument(
        "-o", "--output", type=given, help=f"output file: {', '.join(FORMATS)}; a folder for several robots"
    )
    formats = [*(f.lstrip(".") for f in FORMATS), *INTERCHANGE, DYNAMIC]
    parser.add_argument(
        "--format", choices=formats, help="output format in a folder (default: csv), or the layout of another program"
    )
    add_clip_options(parser)
    add_speed(parser)
    parser.add_argument(
        "--acceleration", type=float, help="joint acceleration limit [rad/s^2] (default: 200; hardware: 20)"
    )
    parser.add_argument("--raw", action="store_true", help="use the clip unchanged, without cleaning")
    whole = f"; with --whole-body: {', '.join(WHOLE_BODY_METHODS)} (default: {LIVE})"
    parser.add_argument("--method", help=f"{', '.join(METHODS)} (default: {CONSTRAINED}){whole}")
    parser.add_argument(
        "--avoidance", type=given, help=f"collision avoidance: {', '.join(AVOIDANCE)} (default: depends on the method)"
    )
    parser.add_argument(
        "--whole-body", action="store_true", help="also retarget root and legs, with feet held on the ground"
    )
    parser.add_argument(
        "--feasible", action="store_true", help="with --whole-body: make the motion feasible for contacts and drives"
    )
    parser.add_argument(
        "--pace",
        type=float,
        help="with --feasible: constant pace of the whole clip (default: slower only where needed)",
    )
    parser.add_argument(
        "--stretch",
        type=given,
        help=f"with --whole-body: {', '.join(STRETCHES)}; {AUTO}: slower where the pelvis turns fast or a second is "
        f"infeasible (default: {NONE}; with --feasible: {AUTO})",
    )
    parser.add_argument(
        "--lead-in", action="store_true", help="with --feasible: start at rest and step to the first posture"
    )
    parser.add_argument("--json", action="store_true", help="print the errors as JSON")
    add_library_options(parser)


def run(args: argparse.Namespace) -> int:
    from humanoid_control.robots import load_robots

    require_range("speed", args.speed, 0.05, 20)
    require_range("acceleration", args.acceleration, 0.1, 1e6)
    upper = CONSTRAINED if args.whole_body else args.method or CONSTRAINED
    require_range("pace", args.pace, 0.1, 2)
    _check_method(args)
    _check_stretch(args)
    _check_feasible(args)
    if upper != CONSTRAINED:
        refuse_unused(args, ["acceleration"], f"the method '{CONSTRAINED}'")
    settings = RetargetSettings(method=upper, avoidance=args.avoidance or "")
    if args.acceleration is not None:
        settings = replace(settings, acceleration=args.acceleration)
    if args.format in INTERCHANGE and not args.whole_body:
        raise ConfigError(f"--format {args.format} has a root: give --whole-body")
    if is_library(args.clip):
        return run_library(args, settings)
    refuse_unused(args, LIBRARY_OPTIONS, "a folder of clips")
    base = "floating" if args.whole_body else "fixed"
    robots = load_robots(args.robot or ["hrp2"], base, imitate=True)  # reports errors before compilation
    tell_notes(robots)
    outputs = _outputs(args, [r.name for r in robots])
    body = read_body(args)
    if args.whole_body:
        from humanoid_control.retargeting import shows_legs

        legless = [r.name for r in robots if not r.has_feet]
        if shows_legs(body) and not legless:
            return _whole_body(body, robots, outputs, args)
        if shows_legs(body) and len(legless) < len(robots):
            others = "retarget the others separately"
            raise ConfigError(f"{', '.join(legless)}: no legs with soles, so only the upper body moves; {others}")
        reason = f"{', '.join(legless)}: no legs with soles" if shows_legs(body) else f"{body.name}: contains no legs"
        if args.format in INTERCHANGE:
            raise ConfigError(f"{reason}, and --format {args.format} has a root: leave out --format")
        if args.stretch == AUTO:
            raise ConfigError(f"{reason}, and --stretch slows the whole body: leave out --stretch")
        console.print(f"{reason}: only the upper body is retargeted")
        robots = load_robots(args.robot or ["hrp2"], "fixed", imitate=True)
    if args.output is not None and is_folder(args.output):
        Path(args.output).mkdir(exist_ok=True)
    compile_first()
    results = [_one(body, robot, settings, args, output) for robot, output in zip(robots, outputs, strict=True)]
    if args.json:
        print_json({"clip": args.clip, "rows": results})
        return 0
    keys = ["robot", "frames", "rate_hz", "spine", "clavicles", "upper_arms", "lower_arms", "mean", "max", *LIMITS]
    _print_table("distance of each link end to its target [cm]", keys, results)
    for r in results:
        if r["shapes_from"]:
            console.print(
                f"{r['robot']}: collisions evaluated with {r['shapes_from']}; to check the meshes: humanoid robots "
                "touching"
            )
    _print_written(outputs)
    return 0


def _print_table(title: str, keys: Sequence[str], rows: list[dict[str, Any]]) -> None:
    table(title, [COLUMNS.get(k, k.replace("_", " ")) for k in keys], [[r[k] for k in keys] for r in rows])


def _print_written(outputs: list[Path | None]) -> None:
    for output in outputs:
        if output is not None:
            console.print(f"written: {output}")


def _limits(trajectory: Any) -> dict[str, float]:
    """Return the shares of frames at a speed limit and in collision, and the least distance; keys LIMITS."""
    return {
        "saturated_percent": round(100 * float(np.mean(trajectory.saturated > 0)), 1),
        "colliding_percent": round(100 * float(np.mean(trajectory.clearance < 0)), 1),
        "closest_mm": round(1000 * float(min(trajectory.clearance.min(), FAR)), 1),
    }


def _check_method(args: argparse.Namespace) -> None:
    if args.whole_body:
        args.method = args.method or LIVE
        if args.method not in WHOLE_BODY_METHODS:
            raise UnknownNameError("method", args.method, WHOLE_BODY_METHODS, hint="(with --whole-body)")
    elif args.method in WHOLE_BODY_METHODS:
        raise ConfigError(f"--method {args.method} moves the whole body: give --whole-body")


def _check_stretch(args: argparse.Namespace) -> None:
    if args.stretch is None:
        return
    if args.stretch not in STRETCHES:
        raise UnknownNameError("stretch", args.stretch, STRETCHES)
    if not args.whole_body:
        raise ConfigError("--stretch slows the whole body: give --whole-body")
    if args.pace is not None:
        raise ConfigError("--pace is constant and --stretch varies along the clip: give one of them")
    if args.feasible and args.stretch == NONE:
        args.pace = 1.0


def _check_feasible(args: argparse.Namespace) -> None:
    if args.feasible and not args.whole_body:
        raise ConfigError("--feasible is for the whole body: give --whole-body")
    if not args.feasible:
        refuse_unused(args, ["pace", "lead-in"], "--feasible")
        if args.format == DYNAMIC:
            raise ConfigError(f"--format {DYNAMIC} holds forces and torques: give --whole-body --feasible")
    elif args.method is None or args.method == LIVE:
        args.method = CLIP


def _whole_body(body: Any, robots: list[Any], outputs: list[Path | None], args: argparse.Namespace) -> int:
    """Retarget root, legs and arms; print errors and contacts."""
    from humanoid_control.retargeting import WholeBodyTask, whole_body_settings

    tasks = [WholeBodyTask.of(body, robot, args.speed) for robot in robots]  # reports errors before any output
    if args.output is not None and is_folder(args.output):
        Path(args.output).mkdir(exist_ok=True)
    compile_first(WHOLE_BODY, *([PERFORMING] if args.feasible else []))
    settings, results = whole_body_settings(args.acceleration, args.method), []
    for task, output in zip(tasks, outputs, strict=True):
        with progress(task.robot.name, len(task), quiet=args.json) as show:
            motion = task.solve(settings, lambda k, _: show(k), args.method)
        stretch: dict[str, Any] = {}
        if args.stretch == AUTO and not args.feasible:
            slower = stretched(motion, task.robot)
            motion, stretch = slower.motion, {"stretch": slower.row}
        row = _feasible(task.robot, motion, output, args) if args.feasible else _whole_body_row(task.robot, motion)
        results.append(row | stretch)
        if output is not None and not args.feasible:
            write_trajectory(output, motion.trajectory, motion.targets.positions, task.robot, args.format or "")
    if args.json:
        print_json({"clip": args.clip, "notes": tasks[0].notes, "rows": results})
        return 0
    for note in tasks[0].notes:
        console.print(f"{body.name}: {note}")
    ground = ["slip_mm", "slip_max_mm", "penetration_mm", "floating_mm", "skating_mm_s"]
    errors = ["trunk_and_arms", "hips", "knees", "swinging_feet"]
    title = "mean target distance [cm] and ground contact (slip: median and maximum over all contacts)"
    _print_table(title, ["robot", "frames", *errors, "contacts", *ground, *LIMITS, "grade"], results)
    if args.feasible:
        _print_feasible(results)
    if args.stretch == AUTO:
        _print_stretch(results)
    for row in results:
        console.print(f"{row['robot']}: {row['verdict']}")
    _print_written(outputs)
    return 0


def _feasible(robot: Any, motion: Any, output: Path | None, args: argparse.Namespace) -> dict[str, Any]:
    """Make a motion feasible and write it; return a row of feasibility and changes."""
    from humanoid_control.performing import feasibility_row

    whole, dynamic = feasible(motion, robot, args.pace or 0.0, args.lead_in, args.speed)
    if output is not None:
        write_trajectory(output, whole.trajectory, whole.targets.positions, robot, args.format or "", dynamic)
    changes = [{**c._asdict(), "time": round(c.time, 2), "amount": round(c.amount, 2)} for c in dynamic.changes]
    quality = _quality(robot, whole)
    stretch = {"stretch": feasible_row(motion, robot, dynamic, quality)} if args.stretch == AUTO else {}
    return (
        _whole_body_row(robot, whole, quality)
        | stretch
        | {
            "feasible": feasibility_row(dynamic, robot.mass * GRAVITY),
            "changes": changes,
        }
    )


def _print_stretch(results: list[dict[str, Any]]) -> None:
    names = {
        "slowed_percent": "slowed %",
        "least_pace": "least pace",
        "seconds": "duration s",
        "yaw_rate": "yaw rad/s",
        "infeasible_percent": "infeasible %",
        "worst_second_percent": "worst second %",
        "grade": "grade",
    }

    def cell(row: dict[str, Any], key: str) -> Any:
        return f"{row[f'{key}_before']} > {row[key]}" if f"{key}_before" in row else row[key]

    rows = [[r["robot"], *(cell(r["stretch"], key) for key in names)] for r in results]
    table("local pace, and the clip before > after", ["robot", *names.values()], rows)


def _print_feasible(results: list[dict[str, Any]]) -> None:
    names = {
        "infeasible_percent": "infeasible %",
        "infeasible_mm": "max mm",
        "missing_percent": "wrench missing %",
        "worst_second_percent": "worst second %",
        "torque_beyond_percent": "torque > limit %",
        "torque_share": "max torque",
        "speed_share": "max speed",
        "moved_root_cm": "moved, root cm",
        "moved_world_cm": "world cm",
        "way_percent": "path kept %",
        "slowest_pace": "slowest pace",
        "filled_s": "flight filled s",
        "steps": "steps",
    }
    rows = [[r["robot"], *(r["feasible"][key] for key in names)] for r in results]
    table("feasibility of contacts and drives, and changes of the motion", ["robot", *names.values()], rows)
    for r in results:
        shown = [c for c in r["changes"] if "moved" not in c["what"] and "turned" not in c["what"]]
        moved = [c["amount"] for c in r["changes"] if c["unit"] == "mm"]
        words = [f"{c['what']} {c['amount']:g} {c['unit']}".strip() + f" at {c['time']:g} s" for c in shown]
        words += [f"{len(moved)} steps moved by up to {max(moved):.0f} mm"] if moved else []
        words = [r["feasible"]["fallback"]] if r["feasible"]["fallback"] else words
        console.print(f"{r['robot']}: {'; '.join(words) or 'no other changes'}")


def _quality(robot: Any, motion: Any) -> Any:
    from humanoid_control.evaluation import measure_clip

    return measure_clip(robot, motion.trajectory, person=motion.targets.contacts)


def _whole_body_row(robot: Any, motion: Any, quality: Any = None) -> dict[str, Any]:
    """Return errors [cm], contact and grade of a whole-body motion."""
    from humanoid_control.evaluation import measure_ground_contact
    from humanoid_control.retargeting import POINTS
    from humanoid_control.retargeting.whole_body.scaling import SOLE_POINTS

    trajectory = motion.trajectory
    quality = quality or _quality(robot, motion)
    e, swings = 100 * trajectory.errors, ~np.repeat(trajectory.contacts, 2, axis=1)
    at = {name: k for k, name in enumerate(trajectory.point_names)}

    def mean(names: Sequence[str]) -> float:
        return round(float(e[:, [at[n] for n in names]].mean()), 2)

    feet = e[:, [at[n] for n in SOLE_POINTS]]
    contact = measure_ground_contact(robot, trajectory.q(), trajectory.contacts, trajectory.rate)
    return {
        "robot": robot.name,
        "frames": len(e),
        "rate_hz": round(trajectory.rate, 2),
        "trunk_and_arms": mean(POINTS),
        "hips": mean(("l_hip", "r_hip")),
        "knees": mean(("l_knee", "r_knee")),
        "swinging_feet": round(float(feet[swings].mean()) if swings.any() else 0.0, 2),
        **contact.row(),
        **_limits(trajectory),
        "unit": "cm",
        "grade": quality.grade,
        "verdict": quality.verdict,
        "numbers": quality.numbers,
    }


def _outputs(args: argparse.Namespace, names: list[str]) -> list[Path | None]:
    layout = INTERCHANGE.get(args.format or "")
    suffix = ".npz" if args.format == DYNAMIC else layout.suffix if layout else ""
    if args.output is None or not (is_folder(args.output) or suffix):
        refuse_unused(args, ["format"], "-o FOLDER/; the format of a file follows from its suffix")
    if args.output is None:
        return [None] * len(names)
    path = folder_path(args.output)
    if is_folder(args.output):
        check_folder(path)
        suffix = suffix or f".{args.format or 'csv'}"
        return [path / f"{name}{suffix}" for name in names]
    if suffix and path.suffix != suffix:
        raise ConfigError(f"--format {args.format} writes {suffix} files, got {path}")
    if path.suffix not in FORMATS and not suffix:
        raise UnknownNameError("format", path.suffix, FORMATS, hint=f"(of {path}; a folder is {path}/)")
    if len(names) > 1:
        raise ConfigError(f"for several robots -o must be a folder, got {path}")
    check_file(path)
    return [path]


def _one(
    body: Any, robot: Any, settings: RetargetSettings, args: argparse.Namespace, output: Path | None
) -> dict[str, Any]:
    from humanoid_control.evaluation.tracking_error import LINK_ENDS
    from humanoid_control.retargeting import retarget_clip
    from humanoid_control.retargeting.scaling import scale_to_robot

    targets = scale_to_robot(body, robot).paced(args.speed)
    with progress(robot.name, len(targets), quiet=args.json) as show:
        trajectory = retarget_clip(targets, robot, settings, lambda k, _: show(k))
    if output is not None:
        write_trajectory(output, trajectory, targets.positions)
    e = 100 * trajectory.errors
    return {
        "robot": robot.name,
        "frames": len(targets),
        "rate_hz": round(targets.rate, 2),
        **{link.replace(" ", "_"): round(float(e[:, ends].mean()), 2) for link, ends in LINK_ENDS.items()},
        "mean": round(float(e.mean()), 2),
        "max": round(float(e.max()), 2),
        **_limits(trajectory),
        "shapes_from": robot.shapes_from,
        "unit": "cm",
    }
