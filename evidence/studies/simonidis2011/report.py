"""Claims of Simonidis et al. 2011, tried: which hold on public recordings and on an arm, and by which numbers."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from evidence.studies import reaching
from evidence.studies.report import OPEN, KeptOutcomes, Progress, StudyReport, decide, silent
from evidence.studies.simonidis2011.controllers import CASES, PAYLOAD, swing_arm
from evidence.studies.simonidis2011.recordings import RECORDINGS, is_there, map_markers, trust_plates
from humanoid_control.errors import ConfigError, UnknownNameError
from humanoid_control.human.analysis import GOOD_RESIDUAL
from humanoid_control.reaching import read_measured_reaches, summary
from humanoid_control.terminal import ReportTable, machine

PARTS = ("R1", "R4", "R5", "R6", "R7")
BELOW = "human_motion"  # of $HUMANOID_TEST_DATA
ONE_SET = ("walk", "run")  # recordings whose markers drive two models
TRACKS = 0.05  # [deg] of a controller that tracks well
BESIDE = 50.0  # times worse than it computed torque must be with the payload
FITS = 20.0  # [mm] of markers next to a model that fits
CLAIMS = {
    "R1": "one marker set drives models with more and with fewer joints",
    "R4": "force plates by weighted least squares reduce the residual, more with a higher weight",
    "R4 drift": "the forward-integrated motion follows the measurement for any weight of the plates",
    "R5": "the recursive controller tracks well with 0 kg and with an unknown payload of 2 kg",
    "R5 radius": "a spectral radius below 1 predicts stability",
    "R5 sensing": "it does so from encoders alone, with whole steps",
    "R5 relaxed": "it does so from encoders alone, with steps of 0.3",
    "H5": "its error with 2 kg is at most twice the error without",
    **reaching.CLAIMS,
}
RULES = f"""R1 holds if every frame converges and the marker error is at most {FITS:g} mm off, on both models of each
clip. R4 holds if with falling variance the corrected residual falls in every step, and by default is below
{100 * GOOD_RESIDUAL:g} % of the weight (Hicks et al. 2015). Drift: holds if at the lowest variance the tracked motion
is at most twice as far from the measurement as at 10^5. R5 holds if the errors are at most {TRACKS:g} deg, no torque
is at its limit, and that of computed torque with 2 kg is {BESIDE:g} times as large. The radius holds if the one case
above 1 is at its limits for a third of the time, and those below 1 with exact accelerations never. Sensing and relaxed
hold if the errors are at most 0.2 deg and no torque is at its limit. R6, R7: as `humanoid study reaching`.
Claims without their recordings stay open."""


def try_job(job: Sequence[Any]) -> dict[str, Any]:
    """The outcome of one job: its kind, and what that takes."""
    kind, *given = job
    do: Any = {"R1": map_markers, "R4": trust_plates, "R5": swing_arm, "reach": _reaches}[kind]
    return dict(do(*given))


def _reaches(path: str, repetition: int) -> dict[str, Any]:
    return reaching.check_person((path, repetition))


def run_study(
    data: Path | None = None,
    only: Sequence[str] = (),
    workers: int | None = None,
    resume: Path | None = None,
    show: Progress = silent,
) -> StudyReport:
    """Try the claims.

    Args:
        data: folder of the recordings; default: `BELOW` of $HUMANOID_TEST_DATA.
        only: some of PARTS; none: all.
        workers: processes; None: one a core. resume: file that keeps outcomes: what is in it is not done again.
        show: told of progress.

    Raises:
        UnknownNameError: a part that there is not. ConfigError: a folder that is named and is not there.
    """
    for name in only:
        if name not in PARTS:
            raise UnknownNameError("part", name, PARTS)
    if data is not None and not data.is_dir():
        raise ConfigError(
            f"{data}: folder not found: expected a folder with gait2354_walk, rajagopal_walk, reaching_hug_mp"
        )
    folder = data or Path(os.environ.get("HUMANOID_TEST_DATA", "")) / BELOW
    kept = KeptOutcomes(resume, "tested claims")
    jobs = list_jobs(folder.absolute(), set(only or PARTS))
    outcomes = list(kept.all(jobs, try_job, workers, lambda s: show(s, "claims")))
    found: dict[str, list[dict[str, Any]]] = {}
    for job, outcome in zip(jobs, outcomes, strict=True):
        found.setdefault(job[0], []).append(outcome)
    verdicts = judge(found, set(only or PARTS))
    tables = _tables(found)
    claims = ReportTable("claims", ["", "claim", "verdict"], [[k, CLAIMS[k], v] for k, v in verdicts.items()])
    said = {"study": "human", "verdicts": verdicts, "outcomes": found, "machine": machine()}
    note = (
        "" if OPEN not in verdicts.values() else f"Open: recordings missing in {folder}; give their folder with --data."
    )
    return StudyReport(said, [*tables, claims, *([note] if note else [])], [RULES])


def list_jobs(data: Path, parts: set[str]) -> list[list[Any]]:
    """Jobs of some parts, as far as their recordings are there."""
    jobs: list[list[Any]] = []
    if "R1" in parts:
        jobs += [["R1", str(data), c, simple] for c in ONE_SET if is_there(data, c) for simple in (False, True)]
    if "R4" in parts:
        jobs += [["R4", str(data), c] for c in RECORDINGS if is_there(data, c)]
    if "R5" in parts:
        jobs += [["R5", case, payload] for case in CASES for payload in (0.0, PAYLOAD)]
    files = sorted((data / "reaching_hug_mp").glob("S*_trajs.mat")) if parts & {"R6", "R7"} else []
    for f in files:
        read_measured_reaches(f)  # what is wrong with one is told before anything is computed
    return jobs + [["reach", str(f), reaching.REPETITION] for f in files]


def judge(found: dict[str, list[dict[str, Any]]], parts: set[str]) -> dict[str, str]:
    """Verdicts on the claims of some parts, by the rules of this file."""
    out: dict[str, str] = {}
    if "R1" in parts:
        rows = found.get("R1", [])
        good = all(r["converged"] == 1 and r["rms_mm"] <= FITS for r in rows)
        out["R1"] = decide(good, bool(rows))
    if "R4" in parts:
        clips = [r["rows"] for r in found.get("R4", [])]
        less = all(
            (np.diff([row[k] for row in rows]) < 0).all() for rows in clips for k in ("corrected_n", "corrected_nm")
        )
        small = all(min(row["corrected_n"] / row["weight_n"] for row in rows) < GOOD_RESIDUAL for rows in clips)
        out["R4"] = decide(less and small, bool(clips))
        drifts = [rows[-1][k] > 2 * _at(rows, 1e5)[k] for rows in clips for k in ("error_mm", "error_deg")]
        out["R4 drift"] = decide(not any(drifts), bool(clips))
    if "R5" in parts:
        out |= _judge_controllers({(r["case"], r["payload_kg"]): r for r in found["R5"]})
    if parts & {"R6", "R7"}:
        rows = [row for outcome in found.get("reach", []) for row in outcome["rows"]]
        own = reaching.judge(summary(rows)) if rows else dict.fromkeys(reaching.CLAIMS, OPEN)
        out |= {k: v for k, v in own.items() if k[:2] in parts or (k == "gravity" and "R7" in parts)}
    return out


def _at(rows: list[dict[str, float]], variance: float) -> dict[str, float]:
    return next(row for row in rows if row["variance"] == variance)


def _judge_controllers(r: dict[tuple[str, float], dict[str, Any]]) -> dict[str, str]:
    without, loaded = r["recursive", 0.0], r["recursive", PAYLOAD]
    both = max(without["error_deg"], loaded["error_deg"])
    calm = without["at_limit"] == loaded["at_limit"] == 0
    beside = r["computed", PAYLOAD]["error_deg"]
    heavy = r["heavy", 0.0]

    def senses(case: str) -> str:
        rows = [r[case, payload] for payload in (0.0, PAYLOAD)]
        return decide(all(row["error_deg"] <= 0.2 and row["at_limit"] == 0 for row in rows))

    apart = heavy["radius"] > 1 and heavy["at_limit"] > 1 / 3 and max(without["radius"], loaded["radius"]) < 1 and calm
    return {
        "R5": decide(both <= TRACKS and calm and beside > BESIDE * both),
        "R5 radius": decide(apart),
        "R5 sensing": senses("whole"),
        "R5 relaxed": senses("relaxed"),
        "H5": decide(loaded["error_deg"] <= 2 * without["error_deg"]),
    }


def _tables(found: dict[str, list[dict[str, Any]]]) -> list[ReportTable | str]:
    tables: list[ReportTable | str] = []
    if rows := found.get("R1"):
        body = [[r["clip"], r["free"], f"{100 * r['converged']:.1f}", f"{r['rms_mm']:.1f}"] for r in rows]
        tables.append(ReportTable("one marker set, two models", ["clip", "joints", "converged %", "markers mm"], body))
    for outcome in found.get("R4", []):
        first = outcome["rows"][0]
        title = (
            f"{outcome['clip']}: residual of the root by the plates' variance; as measured "
            f"{first['measured_n']:.0f} N, {first['measured_nm']:.0f} N m"
        )
        columns = ["variance", "corrected N", "N m", "tracked N", "N m ", "off mm", "off deg"]
        keys = ("corrected_n", "corrected_nm", "tracked_n", "tracked_nm", "error_mm", "error_deg")
        body = [[f"{r['variance']:g}", *(f"{r[k]:.3g}" for k in keys)] for r in outcome["rows"]]
        tables.append(ReportTable(title, columns, body))
    if rows := found.get("R5"):
        body = [
            [CASES[r["case"]], f"{r['payload_kg']:g}", f"{r['error_deg']:.3g}", f"{100 * r['at_limit']:.0f}",
             f"{r['radius']:.2f}"]
            for r in rows
        ]  # fmt: skip
        columns = ["controller", "payload kg", "error deg", "at a limit %", "radius"]
        tables.append(ReportTable("a 7-DoF arm swings in 1 s", columns, body))
    if rows := [row for outcome in found.get("reach", []) for row in outcome["rows"]]:
        values = summary(rows)
        body = [[reaching.NAMES[n], f"{values[n]['median']:.1f}"] for n in reaching.NAMES]
        tables.append(ReportTable(f"{len(rows)} reaches compared with criteria", ["criterion", "median deg"], body))
    return tables
