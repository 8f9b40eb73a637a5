"""`humanoid study tendons`: the source's experiments E1 to E6 and the arms of others, as tables, JSON and plots."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from humanoid_control.cli.output import (
    TENDONS,
    compile_first,
    console,
    machine,
    plain_values,
    print_json,
    progress,
    warn,
)
from humanoid_control.cli.output_places import check_folder
from humanoid_control.cli.study_tendons_tables import print_details, print_summary
from humanoid_control.errors import ConfigError
from humanoid_control.whole_files import whole_files

if TYPE_CHECKING:
    from humanoid_control.simulation.studies.tendons.finding import Finding, Runs

ROBOT = "kengoro_upper"


def run(args: argparse.Namespace) -> int:
    """Run the experiments, print the tables, and write the folder that is asked for."""
    from humanoid_control.robots import load_robot
    from humanoid_control.simulation.studies.tendons.experiments import chosen, run_experiments
    from humanoid_control.simulation.studies.tendons.finding import Runs
    from humanoid_control.simulation.studies.tendons.lab import TendonLab

    defaults = Runs()
    runs = Runs(
        defaults.seeds if args.seeds is None else args.seeds, defaults.steps if args.steps is None else args.steps
    )
    check_folder(args.output)
    only = [n.strip() for n in args.only.split(",") if n.strip()]
    if args.only and not only:
        raise ConfigError(f"--only names no experiment: '{args.only}'")
    names, left_out = chosen(only, args.models)
    robot = load_robot(args.robot or ROBOT, "fixed")
    lab = TendonLab(robot)
    for line in left_out:
        warn(line)
    compile_first(TENDONS)
    with progress("study", 1.0, quiet=args.json) as show:
        found = run_experiments(lab, names, runs, args.models, show)
    report = to_json(robot.name, found, runs, left_out)
    if args.output is not None:
        _write(args.output, report, found)
    if args.json:
        print_json(report)
        return 0
    print_summary(found, runs)
    for f in found if args.details else ():
        print_details(f, runs)
    if args.output is not None:
        console.print(f"written: {args.output}")
    return 0


def to_json(robot: str, found: Sequence[Finding], runs: Runs, left_out: Sequence[str]) -> dict[str, Any]:
    """The study as plain dictionaries; errors in the unit of their row."""
    experiments = [
        {
            "name": f.name,
            "title": f.title,
            "source": f.source,
            "measure": f.measure or None,
            "rows": [
                {"name": r.name, "unit": r.unit, "joints": r.joints, "median": r.median, "worst": r.worst}
                | ({"goal": str(r.goal), "reached": r.reached} if r.goal else {})
                for r in f.rows
            ],
            "table": f.table,
        }
        for f in found
    ]
    head = {"study": "tendons", "robot": robot, "seeds": runs.seeds, "steps": runs.steps, "left_out": left_out}
    return {**head, "experiments": experiments, "machine": machine()}


def _write(folder: Path, report: dict[str, Any], found: Sequence[Finding]) -> None:
    """tendons.json and a PNG an experiment, each whole or not at all."""
    from humanoid_control.cli.study_tendons_plot import pictures

    with whole_files(folder) as whole:
        text = json.dumps(plain_values(report), indent=1, allow_nan=False)
        (whole / "tendons.json").write_text(text + "\n", encoding="utf-8")
        for f in found:
            for file, content in pictures(f).items():
                (whole / file).write_bytes(content)
