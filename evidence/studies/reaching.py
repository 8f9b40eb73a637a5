"""Reaches of people next to what criteria of motion make of the same ends: the claims of Simonidis et al. 2011, 7.2.

Seven people of HuG-MP (Bianchin et al. 2025) wore a transparent exoskeleton of four joints; of each the fifth
repetition of 30 motions is taken. The arm is that of a person of 75 kg and 1.75 m, the ends and the time are measured.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from evidence.studies.report import KeptOutcomes, Progress, StudyReport, decide, silent
from humanoid_control.errors import ConfigError
from humanoid_control.reaching import compare_person, read_measured_reaches, summary
from humanoid_control.terminal import ReportTable, machine

REPETITION = 5
BELOW = "human_motion/reaching_hug_mp"  # of $HUMANOID_TEST_DATA
COUNTS = 1.0  # [deg] by which a median must be smaller to count
PLAUSIBLE = 10.0  # [deg] a criterion whose median is farther from people is not plausible
NAMES = {
    "maj": "minimum angle jerk",
    "mtc": "minimum torque change",
    "torque": "minimum torque",
    "mchj": "minimum hand jerk",
    "mtc_weightless": "minimum torque change, without gravity",
    "torque_weightless": "minimum torque, without gravity",
    "mix_0.25": "a quarter angle jerk, the rest torque change",
    "mix_0.5": "half and half",
    "mix_0.75": "three quarters angle jerk",
}
COLUMNS = ["criterion", "median deg", "quartiles", "of 2 s or more", "nearest of three %"]
CLAIMS = {
    "R6": "minimum torque gives plausible reaches",
    "R7": "minimum angle jerk fits people best",
    "R7 mix": "a weighted mix of criteria is closer to people than any of them",
    "gravity": "torque change needs gravity to fit people",
}
RULES = f"""R6 holds if the median of minimum torque is at most {PLAUSIBLE:g} deg. R7 holds if minimum angle jerk
has the lowest median of the four, and is most often the nearest of three. The mix holds if the best
of three mixes has a median at least {COUNTS:g} deg below both. Gravity holds if the median without it is larger by the
same amount."""


def check_person(job: tuple[str, int]) -> dict[str, Any]:
    """Rows of a file and a repetition."""
    path, repetition = job
    return {"rows": compare_person(read_measured_reaches(path), repetition)}


def run_study(
    data: Path | None = None,
    repetition: int = REPETITION,
    workers: int | None = None,
    resume: Path | None = None,
    show: Progress = silent,
) -> StudyReport:
    """Compare.

    Args:
        data: folder of S01_trajs.mat and so on; default: `BELOW` of $HUMANOID_TEST_DATA. repetition: of 1 to 10.
        workers: processes; None: one a core. resume: file that keeps outcomes: what is in it is not done again.
        show: told of progress.

    Raises:
        ConfigError: no data there, or numbers that make no sense. ClipError: a file that holds something else.
    """
    if not 1 <= repetition <= 10:
        raise ConfigError(f"repetition must be 1 to 10, got {repetition}")
    kept = KeptOutcomes(resume, "compared reaches")
    files = _files(data)
    jobs = [(str(f), repetition) for f in files]
    for f in files:  # what is wrong with one is told before anything is computed
        read_measured_reaches(f)
    rows: list[dict[str, Any]] = []
    for job, outcome in zip(jobs, kept.all(jobs, check_person, workers, lambda s: show(s, "people")), strict=True):
        rows += [{"person": Path(job[0]).stem.split("_")[0], **row} for row in outcome["rows"]]
    if not rows:
        raise ConfigError(f"no motion of repetition {repetition} in {files[0].parent}")
    found = summary(rows)
    verdicts = judge(found)
    table = ReportTable(
        f"{len(rows)} reaches of {len(files)} people", COLUMNS, [_row(name, found[name]) for name in NAMES]
    )
    claims = ReportTable("claims", ["", "claim", "verdict"], [[k, CLAIMS[k], v] for k, v in verdicts.items()])
    said = {"study": "reaching", "repetition": repetition, "people": len(files), "reaches": rows}
    said |= {"summary": found, "verdicts": verdicts, "machine": machine()}
    return StudyReport(said, [table, claims, NOTE], [RULES])


NOTE = """Distance: root mean square over four joints and all samples. nearest: share of the reaches in which one
of minimum angle jerk, torque change and torque is the nearest of these three."""


def _files(data: Path | None) -> list[Path]:
    folder = data or Path(os.environ.get("HUMANOID_TEST_DATA", "")) / BELOW
    files = sorted(folder.glob("S*_trajs.mat")) if folder.is_dir() else []
    if not files:
        raise ConfigError(
            f"no file S*_trajs.mat in {folder}: get HuG-MP (github.com/TUM-ITR/HuG-MP) and name the folder with --data"
        )
    return files


def judge(found: dict[str, dict[str, float]]) -> dict[str, str]:
    """Verdicts on the claims, by the rules of this file."""
    median = {name: f["median"] for name, f in found.items()}
    nearest = max(("maj", "mtc", "torque"), key=lambda name: found[name]["nearest"])
    best_mix = min(m for name, m in median.items() if name.startswith("mix"))
    singles = [median[name] for name in ("maj", "mtc", "torque", "mchj")]
    return {
        "R6": decide(median["torque"] <= PLAUSIBLE),
        "R7": decide(median["maj"] == min(singles) and nearest == "maj"),
        "R7 mix": decide(best_mix <= min(median["maj"], median["mtc"]) - COUNTS),
        "gravity": decide(median["mtc_weightless"] >= median["mtc"] + COUNTS),
    }


def _row(name: str, f: dict[str, float]) -> Sequence[Any]:
    nearest = "" if np.isnan(f["nearest"]) else round(100 * f["nearest"], 1)
    late = "" if np.isnan(f["long"]) else round(f["long"], 1)
    return [NAMES[name], round(f["median"], 1), f"{f['lower']:.1f} to {f['upper']:.1f}", late, nearest]
