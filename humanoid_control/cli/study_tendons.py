"""`humanoid study tendons`: the source's experiments E1 to E6 and the arms of others, as tables, JSON and plots."""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from humanoid_control.cli.output import console, machine, plain_values, print_json, progress, table, warn
from humanoid_control.errors import ConfigError

if TYPE_CHECKING:
    from humanoid_control.simulation.tendon_study.finding import Finding, Row, Runs

ROBOT = "kengoro_upper"
FEW = 6  # joints that have a column each; more have a line each


def run(args: argparse.Namespace) -> int:
    """Run the experiments, print the tables, and write the folder that is asked for."""
    from humanoid_control.robots import load_robot
    from humanoid_control.simulation.tendon_study.experiments import chosen, run_experiments
    from humanoid_control.simulation.tendon_study.finding import Runs

    defaults = Runs()
    runs = Runs(
        defaults.seeds if args.seeds is None else args.seeds, defaults.steps if args.steps is None else args.steps
    )
    _check_folder(args.output)
    names, left_out = chosen([n.strip() for n in args.only.split(",") if n.strip()], args.models)
    robot = load_robot(args.robot or ROBOT, "fixed")
    for line in left_out:
        warn(line)
    with progress("study", 1.0, quiet=args.json) as show:
        found = run_experiments(robot, names, runs, args.models, show)
    report = to_json(robot.name, found, runs, left_out)
    if args.output is not None:
        _write(args.output, report, found)
    if args.json:
        print_json(report)
        return 0
    for f in found:
        _print(f, runs)
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
                for r in f.rows
            ],
            "table": f.table,
        }
        for f in found
    ]
    head = {"study": "tendons", "robot": robot, "seeds": runs.seeds, "steps": runs.steps, "left_out": left_out}
    return {**head, "experiments": experiments, "machine": machine()}


def _print(f: Finding, runs: Runs) -> None:
    console.print(f"{f.name}, {f.title}. Source: {f.source}")
    if f.table:
        table(f"{f.name}, {f.title}", list(f.table[0]), [list(line.values()) for line in f.table])
    for joints, unit in dict.fromkeys((r.joints, r.unit) for r in f.rows):
        these = [r for r in f.rows if (r.joints, r.unit) == (joints, unit)]
        title = f"{f.name}: median (worst) of {runs.seeds} seeds, {runs.steps} steps [{unit}]"
        if len(joints) <= FEW:
            table(title, ["filter", *joints], [[r.name, *(_pair(r, k) for k in range(len(joints)))] for r in these])
        else:
            lines = [[joint, *(_pair(r, k) for r in these)] for k, joint in enumerate(joints)]
            table(title, ["joint", *(r.name for r in these)], lines)
    if f.measure:
        console.print(f"{f.measure}\n")


def _pair(row: Row, k: int) -> str:
    return f"{row.median[k]:.2f} ({row.worst[k]:.2f})"


def _check_folder(path: Path | None) -> None:
    if path is None:
        return
    if path.exists() and not path.is_dir():
        raise ConfigError(f"-o must be a folder for this study, got the file {path}")
    if not path.absolute().parent.is_dir():
        raise ConfigError(f"the folder {path.parent} does not exist")


def _write(folder: Path, report: dict[str, Any], found: Sequence[Finding]) -> None:
    """tendons.json and a PNG an experiment, each whole or not at all."""
    from humanoid_control.cli.study_tendons_plot import tendons_plot

    folder.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".writing_") as name:
        whole = Path(name)
        text = json.dumps(plain_values(report), indent=1, allow_nan=False)
        (whole / "tendons.json").write_text(text + "\n", encoding="utf-8")
        for f in found:
            for k, trace in enumerate(f.traces):
                more = f"_{k + 1}" if len(f.traces) > 1 else ""
                (whole / f"{f.name}{more}.png").write_bytes(tendons_plot(trace))
        for path in list(whole.iterdir()):
            os.replace(path, folder / path.name)
