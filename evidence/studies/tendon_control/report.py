"""Report of `humanoid study tendon_control`: a table and plain values of each experiment."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from evidence.studies.report import Progress, StudyReport, silent
from humanoid_control.robots.tendons import tendon_geometry
from humanoid_control.terminal import ReportTable, machine
from humanoid_control.warm_up import TENDONS, compile_first

if TYPE_CHECKING:
    from evidence.studies.tendon_control.experiments import ControlResult


def run_study(
    only: Sequence[str] = (),
    seeds: int | None = None,
    robot: str = "kengoro_upper",
    models: Path | None = None,
    show: Progress = silent,
) -> StudyReport:
    """Control a robot through its tendons, on a plant that winches alone move.

    Args:
        only: names of experiments; default: all.
        seeds: runs of each row, each with a posture, errors and noise of its own; default 3.
        robot: with tendons.
        models: folder of others' arms; default: muscles in $HUMANOID_TEST_DATA.
        show: told how far it is.

    Raises:
        UnknownNameError: no such experiment or robot. RobotError: a robot without tendons. ConfigError: no seed.
    """
    from evidence.studies.tendon_control.experiments import (
        NEEDS_MODELS,
        ControlRuns,
        chosen,
        plain,
        run_control,
    )
    from evidence.studies.tendon_control.foreign import arm_files

    data = os.environ.get("HUMANOID_TEST_DATA", "")
    models = models or (Path(data) / "muscles" if data else None)
    runs = ControlRuns(robot, 3 if seeds is None else seeds, models, lambda share: show(share, ""))
    if NEEDS_MODELS in chosen(only) and models is not None:
        arm_files(models)
    tendon_geometry(runs.load())  # what cannot be is said before anything is compiled
    compile_first(TENDONS)
    found = run_control(only, runs)
    head = {"study": "tendon_control", "robot": robot, "seeds": runs.seeds, "experiments": plain(found)}
    return StudyReport({**head, "machine": machine()}, [part for r in found for part in parts_of(r, runs.seeds)])


def parts_of(result: ControlResult, seeds: int) -> list[ReportTable | str]:
    """Tables and notes of an experiment."""
    rows = [[name, *(_cell(row.get(column)) for column in result.columns)] for name, row in result.rows]
    title = f"{result.name}, {result.title}: medians of {seeds} seeds; worst and peak: maxima"
    return [ReportTable(title, ["", *result.columns], rows), *(f"{note}." for note in result.notes)]


def _cell(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"
