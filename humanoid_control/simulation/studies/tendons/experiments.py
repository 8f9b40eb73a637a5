"""The experiments by name, and how some of them are run."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from humanoid_control.errors import UnknownNameError
from humanoid_control.simulation.studies.tendons.baselines import baselines
from humanoid_control.simulation.studies.tendons.finding import Finding, Runs
from humanoid_control.simulation.studies.tendons.lab import TendonLab
from humanoid_control.simulation.studies.tendons.learning import elbow, shoulder
from humanoid_control.simulation.studies.tendons.others import model_files, models_folder, others
from humanoid_control.simulation.studies.tendons.sharing import shared_and_conventional
from humanoid_control.simulation.studies.tendons.whole_body import random_walks, table_one
from humanoid_control.simulation.studies.tendons.wrong_zero import wrong_zero

OTHERS = "others"
EXPERIMENTS: dict[str, Callable[[TendonLab, Runs], Finding]] = {
    "E1": table_one,
    "E2": random_walks,
    "E3": shared_and_conventional,
    "E4": wrong_zero,
    "E5": elbow,
    "E6": shoulder,
    "baselines": baselines,
}
NAMES = (*EXPERIMENTS, OTHERS)


def chosen(only: Sequence[str], models: Path | None) -> tuple[list[str], list[str]]:
    """The experiments asked for; all where none is, but for others' arms where their models or MuJoCo are not at hand.

    Returns:
        Names, and what is to be said of those left out.

    Raises:
        UnknownNameError: no such experiment. ConfigError, EnvironmentProblem: what others' arms need is not there.
    """
    known = {n.lower(): n for n in NAMES}
    for name in only:
        if name.lower() not in known:
            raise UnknownNameError("experiment", name, NAMES)
    folder = models_folder(models)
    names = [known[n] for n in dict.fromkeys(name.lower() for name in only)]
    if OTHERS in names:
        model_files(folder)
    if names:
        return names, []
    if folder is None:
        return list(EXPERIMENTS), ["others' arms are left out: give their models with --models"]
    if importlib.util.find_spec("mujoco") is None:
        return list(EXPERIMENTS), ["others' arms are left out: they need the package mujoco"]
    model_files(folder)
    return list(NAMES), []


def run_experiments(
    lab: TendonLab, names: Sequence[str], runs: Runs, models: Path | None, show: Callable[[float, str], object]
) -> list[Finding]:
    """Run the experiments one after the other.

    Args:
        names: of `NAMES`. runs: seeds and steps of each. models: folder of others' models.
        show: is told the share of all done, and the experiment.

    Raises:
        ConfigError, EnvironmentProblem: what an experiment needs is not there.
    """
    out: list[Finding] = []
    for k, name in enumerate(names):

        def part(share: float, done: int = k, name: str = name) -> None:
            show((done + share) / len(names), name)

        mine = replace(runs, show=part)
        part(0.0)
        out.append(others(models, mine) if name == OTHERS else EXPERIMENTS[name](lab, mine))
    return out
