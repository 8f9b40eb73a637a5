"""What a robot's stack promises when things break: rows of injected faults, each value with limit and verdict."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from evidence.studies.faults.dance import DANCE_ROW
from evidence.studies.faults.figures import BROKEN, FaultRow, MeasuredFault, Plan
from evidence.studies.faults.floods import FLOODS_ROW
from evidence.studies.faults.kills import KILLS_ROW
from evidence.studies.faults.messages import MESSAGES_ROW
from evidence.studies.faults.starts import STARTS_ROW
from evidence.studies.faults.states import STATES_ROW
from evidence.studies.report import KeptOutcomes, Progress, StudyReport, silent
from humanoid_control.errors import ConfigError, UnknownNameError
from humanoid_control.nodes import require_ros
from humanoid_control.robots import load_robot
from humanoid_control.session import StackFailure, find_stack, parse_settings
from humanoid_control.terminal import ReportTable, machine, plain_values

ROWS = {row.name: row for row in (STARTS_ROW, STATES_ROW, DANCE_ROW, KILLS_ROW, FLOODS_ROW, MESSAGES_ROW)}
DOMAIN = 84
ATTEMPTS = 3  # at a case whose stack could not be started, or ended
LEAST = {"starts": 1, "states": 1, "kills": 1, "floods": 1, "messages": 1}
MOST_HOURS = 1000.0


@contextlib.contextmanager
def own_domain(domain: int) -> Iterator[None]:
    """A domain of DDS of the study's own, on this machine only."""
    ours = {"ROS_DOMAIN_ID": str(domain), "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST"}
    before = {name: os.environ.get(name) for name in ours}
    os.environ.update(ours)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def key_of(row: str, plan: Plan, job: Sequence[Any]) -> str:
    """A case's name among kept outcomes."""
    return json.dumps([row, plan.robot, plan.seed, plan.settings, *job])


def outcomes(
    row: FaultRow, plan: Plan, kept: KeptOutcomes, show: Progress, done: float, share: float
) -> Iterator[dict[str, Any]]:
    """Outcomes of a row's cases; a stack is started for those that are not known yet, and again where one is spoilt.

    Args:
        row, plan, kept: what is tried, and what was. show: told of progress: of `share` of all, behind `done`.

    Raises:
        StackFailure: a case could not be tried.
    """
    with contextlib.ExitStack() as running:
        do, jobs, failed = None, row.cases(plan), 0
        for k, job in enumerate(jobs):
            show(done + share * k / len(jobs), f"{row.name} {k + 1} of {len(jobs)}")
            key = key_of(row.name, plan, job)
            while key not in kept.known:
                try:
                    do = do or running.enter_context(row.start(plan))
                    outcome = do(job)
                    kept.keep(key, plain_values({"case": job, **outcome}))
                    spoilt = bool(outcome.get("stale"))
                except StackFailure:
                    failed, spoilt = failed + 1, True
                    if failed == ATTEMPTS:
                        raise
                if spoilt:
                    running.close()
                    do = None
            yield kept.known[key]


def run_study(
    robot: str = "hrp2",
    only: Sequence[str] = (),
    seed: int = 0,
    resume: Path | None = None,
    settings: Sequence[str] = (),
    domain: int = DOMAIN,
    show: Progress = silent,
    **counts: float,
) -> StudyReport:
    """Try all rows, or some.

    Args:
        robot: of the catalogue, or path of a URDF. only: names of rows. seed: of all that is random.
        resume: file that keeps the outcome of each case: what is in it is not tried again.
        settings: "node.parameter=value", stronger than the rows' own. domain: ROS_DOMAIN_ID of all that runs.
        show: told of progress. counts: starts, states, hours, kills, floods, messages, as in `Plan`.

    Raises:
        ConfigError, UnknownNameError: what is asked for makes no sense. StackFailure: a stack could not be started.
    """
    if unknown := [name for name in only if name not in ROWS]:
        raise UnknownNameError("row", unknown[0], ROWS, hint="(of the table of faults)")
    require_ros()
    plan = _plan(robot, seed, settings, counts)
    kept = KeptOutcomes(resume, "injected faults")
    rows = [ROWS[name] for name in dict.fromkeys(only or ROWS)]
    found: dict[str, list[MeasuredFault]] = {}
    with own_domain(domain):
        for k, row in enumerate(rows):
            found[row.name] = row.judge(list(outcomes(row, plan, kept, show, k / len(rows), 1.0 / len(rows))))
    return _report(plan, rows, found)


def _plan(robot: str, seed: int, settings: Sequence[str], counts: dict[str, float]) -> Plan:
    if seed < 0:
        raise ConfigError(f"the seed must be 0 or more, got {seed}")
    for name, least in LEAST.items():
        if name in counts and counts[name] < least:
            raise ConfigError(f"{name} must be at least {least}, got {counts[name]}")
    if not 0 < counts.get("hours", 1.0) <= MOST_HOURS:
        raise ConfigError(f"hours must be above 0 and at most {MOST_HOURS:g}, got {counts['hours']:g}")
    load_robot(robot, "fixed")
    known: dict[str, Any] = dict(counts)
    return Plan(robot, seed, settings=parse_settings(find_stack("imitation"), list(settings)), **known)


# -------- Report


def _report(plan: Plan, rows: Sequence[FaultRow], found: dict[str, list[MeasuredFault]]) -> StudyReport:
    broken = [
        f"{name}: {m.what.strip()} {_text(m.value)} {m.unit}".rstrip() + f" (promised {_text(m.limit)})"
        for name, measured in found.items()
        for m in measured
        if m.verdict == BROKEN
    ]
    data = {
        "study": "faults",
        "robot": plan.robot,
        "seed": plan.seed,
        "settings": plan.settings,
        "rows": {
            row.name: {
                "promise": row.promise,
                "cases": len(row.cases(plan)),
                "measured": [{**m._asdict(), "what": m.what.strip(), "verdict": m.verdict} for m in found[row.name]],
            }
            for row in rows
        },
        "broken": broken,
        "machine": machine(),
    }
    verdict = f"broken: {len(broken)}" if broken else "all guarantees held"
    return StudyReport(data, [*(_table(row, plan, found[row.name]) for row in rows), verdict, *broken, NOTE])


def _table(row: FaultRow, plan: Plan, measured: Sequence[MeasuredFault]) -> ReportTable:
    body = [[m.what, _text(m.value), "" if m.limit is None else _text(m.limit), m.unit, m.verdict] for m in measured]
    return ReportTable(f"{row.name}, {len(row.cases(plan))} cases: {row.promise}", COLUMNS, body)


def _text(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


COLUMNS = ["measured", "value", "limit", "unit", "verdict"]
NOTE = """Real nodes in separate processes over DDS, in a separate domain on this machine; an
observer in another process measures as a subscriber. inf: it did not happen within the waiting time."""
