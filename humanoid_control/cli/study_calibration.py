"""`humanoid study calibration`: offsets planted in the encoders of each leg, and found again in a simulated jig."""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from humanoid_control.cli.output import console, machine, plain_values, print_json, progress, table
from humanoid_control.cli.output_places import check_folder
from humanoid_control.errors import ConfigError
from humanoid_control.whole_files import whole_files

if TYPE_CHECKING:
    from humanoid_control.robots import Robot
    from humanoid_control.simulation.studies.calibration_study import Case, LegStudy

POSES, NOISE, SEEDS = 3, 0.02, 10  # noise [deg]
COLUMNS = ["leg", "measured", "poses", "condition", "weakest deg", "worst rms deg", "within 3 s.e. %"]
NOTE = """measured: position and orientation of the sole in the jig, or the position of its middle only. weakest: error
predicted along the combination of offsets that the poses tell least; worst rms: of the worst joint, over the seeds;
within: share of all errors within three predicted standard errors (99.7 % when the prediction is right)."""


def run(args: argparse.Namespace) -> int:
    """Try it and print the tables."""
    from humanoid_control.robots import load_robot
    from humanoid_control.simulation.studies.calibration_study import study_calibration
    from humanoid_control.simulation.studies.jig import JigAccuracy

    poses: int = POSES if args.poses is None else args.poses
    seeds: int = SEEDS if args.seeds is None else args.seeds
    noise: float = NOISE if args.noise is None else args.noise
    for option, value in (("poses", poses), ("seeds", seeds)):
        if value < 1:
            raise ConfigError(f"--{option} must be at least 1, got {value}")
    if not 0 <= noise < math.inf:
        raise ConfigError(f"--noise must be a number from 0 up, got {noise:g}")
    check_folder(args.output)
    robot, accuracy = load_robot(args.robot or "lola", "fixed"), JigAccuracy()
    with progress("study", 1.0, quiet=args.json) as show:
        legs = study_calibration(robot, poses, math.radians(noise), seeds, accuracy, show)
    report = to_json(robot, legs, noise, accuracy.position, math.degrees(accuracy.orientation))
    if args.output is not None:
        _write_folder(args.output, report, legs)
    if args.json:
        print_json(report)
        return 0
    _print(robot, legs, noise, seeds)
    if args.output is not None:
        console.print(f"written: {args.output}")
    return 0


def to_json(robot: Robot, legs: list[LegStudy], noise: float, position: float, orientation: float) -> dict[str, Any]:
    """The study as plain dictionaries; angles in degrees, lengths in metres."""
    rows = []
    for s in legs:
        cases = [
            {
                "measure": c.measure,
                "poses": c.poses,
                "condition": c.first.condition,
                "singular_values_per_deg": np.radians(c.first.singular),
                "standard_error": np.degrees(c.first.standard_error),
                "covariance": np.degrees(np.degrees(c.first.covariance)),
                "rms_error": np.degrees(c.rms),
                "spread": np.degrees(c.spread),
                "within_3_standard_errors": c.within,
                "not_identified": [
                    {"joints": d.parts, "standard_error": math.degrees(d.deviation)} for d in c.first.unidentified
                ],
            }
            for c in s.cases
        ]
        mean = np.degrees(np.sqrt(np.mean(s.mean_errors**2, axis=0)))
        rows.append(
            {
                "leg": s.leg.name,
                "joints": s.leg.joints,
                "postures": np.degrees(s.postures),
                "cases": cases,
                "mean_rms_error": mean,
            }
        )
    head = {"study": "calibration", "robot": robot.name, "seeds": len(legs[0].mean_errors), "noise": noise}
    head |= {"jig_position": position, "jig_orientation": orientation}
    return {**head, "legs": rows, "machine": machine()}


def _print(robot: Robot, legs: list[LegStudy], noise: float, seeds: int) -> None:
    title = f"{robot.title}: encoder offsets from jig poses, encoder noise {noise:g}°, {seeds} seeds"
    table(title, COLUMNS, [_case_row(s, c) for s in legs for c in s.cases])
    console.print(NOTE)
    lines = [
        [s.leg.name, c.measure, c.poses, _angle(d.deviation), ", ".join(f"{p:+.2f} {j}" for j, p in d.parts.items())]
        for s in legs
        for c in s.cases
        for d in c.first.unidentified
    ]
    if lines:
        columns = ["leg", "measured", "poses", "s.e. deg", "combination of offsets"]
        table("not identified (standard error above 1°)", columns, lines)
    joints = []
    for s in legs:
        best, mean = s.cases[0], np.sqrt(np.mean(s.mean_errors**2, axis=0))
        for k, name in enumerate(s.leg.joints):
            numbers = [best.first.standard_error[k], best.rms[k], mean[k], best.spread[k]]
            joints.append([name, *(_angle(x) for x in numbers)])
    count = legs[0].cases[0].poses
    columns = ["joint", "standard error deg", "rms error deg", "rms error of the mean deg", "spread deg"]
    table(f"each offset from {count} pose{'s' * (count > 1)}", columns, joints)
    console.print(
        "mean: of reading less joint angle, where the jig defines the joint angles. spread: median range over"
    )
    console.print("the poses, each pose alone; it stays within the noise when the poses agree.")


def _case_row(s: LegStudy, c: Case) -> list[Any]:
    weakest = 1 / c.first.singular[-1] if c.first.singular[-1] > 0 else math.inf
    known = np.isfinite(c.first.standard_error)
    rms = float(c.rms[known].max()) if known.any() else math.nan
    within = round(100 * c.within, 1) if known.any() else "-"
    condition = round(c.first.condition, 1) if math.isfinite(c.first.condition) else "-"
    return [s.leg.name, c.measure, c.poses, condition, _angle(weakest), _angle(rms), within]


def _angle(x: float) -> Any:
    """Degrees for a table; - where there is no bound."""
    return round(math.degrees(x), 4) if math.isfinite(x) else "-"


def _write_folder(folder: Path, report: dict[str, Any], legs: list[LegStudy]) -> None:
    """calibration.json and calibration.png, each whole or not at all."""
    from humanoid_control.cli.study_calibration_plot import calibration_plot

    with whole_files(folder) as whole:
        text = json.dumps(plain_values(report), indent=1, allow_nan=False)
        (whole / "calibration.json").write_text(text + "\n", encoding="utf-8")
        (whole / "calibration.png").write_bytes(calibration_plot(legs))
