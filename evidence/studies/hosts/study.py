"""A stack over two hosts, for `humanoid study hosts`: links that are slow, lossy and cut, and clocks that are apart."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from evidence.studies.hosts.link import clock_library, why_not
from evidence.studies.hosts.split import (
    CONTROL_SIDE,
    ROBOT_SIDE,
    SplitStack,
    Window,
    imitation_error,
    speeds,
)
from evidence.studies.report import KeptOutcomes, Progress, StudyReport, silent
from humanoid_control.errors import ConfigError, EnvironmentProblem, UnknownNameError
from humanoid_control.nodes import require_ros
from humanoid_control.robots import Robot, load_robot
from humanoid_control.terminal import ReportTable, machine, plain_values

DOMAIN = "83"
FOLLOWABLE = {"whole_body_ik.acceleration": "20.0"}  # by drives; at the node's default they are thrown about by stops
LINKS: dict[str, dict[str, float]] = {
    "clean": {},
    "5 ms +- 1": {"delay": 0.005, "jitter": 0.001},
    "5 % loss, 1 ms": {"delay": 0.001, "loss": 0.05},
    "20 % loss, 20 ms +- 5": {"delay": 0.02, "jitter": 0.005, "loss": 0.2},
}
PERFECT = {"delay": 0.0, "jitter": 0.0, "loss": 0.0}
CUTS = (0.2, 1.0, 3.0, 8.0, 30.0)
AHEAD = (0.0, 0.3, -0.3, 0.4, -0.4, 0.7, -0.7, 5.0, -5.0, 3600.0, -3600.0)
STEPPED = 0.4  # [s] by which a clock is set while all runs
CLOCKS = ("clock", "step", "agreeing")  # jobs with a clock of the controller's own; the last one: as the first
PARTS = ("links", "cuts", "clocks")
SECONDS = 10.0  # [s] of the dance for each link and clock
SETTLES = 1.5  # [s] from the beginning of the clip to its first frame, and for offsets
AFTER = 6.0  # [s] that are watched after a cut
NAMED, AGAIN, SPEED, TINY = 0.3, 1.0, 1.05, 1e-9
ALIKE = 0.05  # share by which error and latency may differ where clocks are apart
HEALTHY = 0.001  # [s] of latency below which a difference is noise
SILENCE = {ROBOT_SIDE: ("no commands",), CONTROL_SIDE: ("estimated_joint_states",)}
CLOCK_WORDS = ("chrony or ptp4l",)


def link_row(stack: SplitStack, seconds: float, faults: dict[str, float]) -> dict[str, Any]:
    """The dance over a link: rate, age and gaps of the commands at the robot, and the error of the imitation."""
    stack.hosts.faults(**{**PERFECT, **faults})
    window = dance(stack, seconds)
    stack.hosts.faults(**PERFECT)
    return outcome(stack.robot, window, 0.0)


def dance(stack: SplitStack, seconds: float, meanwhile: Callable[[], None] = lambda: None) -> Window:
    """Some seconds of the clip, from where it begins to move."""
    stack.seek(0.0)
    time.sleep(SETTLES)
    return stack.window(seconds, meanwhile)


def outcome(robot: Robot, window: Window, ahead: float) -> dict[str, Any]:
    """Figures of a window; ahead: of the controller's clock [s]."""
    commands = window.topics[ROBOT_SIDE]["joint_commands"]
    commands = commands[commands[:, 0] <= window.end]
    t, found = commands[:, 0], speeds(robot, window, window.begin)
    age = t + window.wall + ahead - commands[:, 1] if len(t) else np.array([np.nan])
    gaps = np.diff(np.concatenate([[window.begin], t, [window.end]]))
    latency = [float(v["latency_p50_ms"]) for _, node, _, _, v in window.told[CONTROL_SIDE] if "latency_p50_ms" in v]
    return {
        "rate": len(t) / (window.end - window.begin),
        "age_p50": float(np.percentile(age, 50)),
        "age_p99": float(np.percentile(age, 99)),
        "gap": float(gaps.max()),
        "speed": found.speed,
        "beyond": found.beyond,
        "error": imitation_error(robot, window, window.begin),
        "latency_ms": latency[-1] if latency else float("nan"),
    }


def cut_row(stack: SplitStack, seconds: float) -> dict[str, Any]:
    """A link that is cut for some time [s]: who says so, when the robot moves on, and how fast its joints are."""
    back = [0.0]

    def cut() -> None:
        stack.hosts.faults(cut=True)
        time.sleep(seconds)
        stack.hosts.faults(cut=False)
        back[0] = time.monotonic()

    window = stack.window(seconds + AFTER, cut)
    named = [window.named(host, window.begin, SILENCE[host]) for host in (ROBOT_SIDE, CONTROL_SIDE)]
    commands = window.arrivals(ROBOT_SIDE, "joint_commands")
    later = commands[commands > back[0]]
    found = speeds(stack.robot, window, back[0])
    return {
        "named_robot": named[ROBOT_SIDE][0],
        "named_control": named[CONTROL_SIDE][0],
        "words": [text for _, text in named],
        "commands_again": float(later[0] - back[0]) if len(later) else float("inf"),
        "moving_again": found.moving,
        "speed": found.speed,
        "beyond": found.beyond,
    }


def clock_row(stack: SplitStack, seconds: float, ahead: float, step: bool = False) -> dict[str, Any]:
    """The dance with a controller whose clock is ahead of the robot's, or is set ahead while it runs [s]."""
    stack.hosts.set_clock(CONTROL_SIDE, 0.0 if step else ahead)
    time.sleep(SETTLES)
    window = dance(stack, seconds, (lambda: stack.hosts.set_clock(CONTROL_SIDE, ahead)) if step else (lambda: None))
    found = outcome(stack.robot, window, ahead)
    found["words"] = window.named(ROBOT_SIDE, window.begin, CLOCK_WORDS)[1]
    stack.hosts.set_clock(CONTROL_SIDE, 0.0)
    time.sleep(SETTLES)
    return found


# -------- The study


def jobs_of(only: Sequence[str], cuts: Sequence[float]) -> list[list[Any]]:
    """All that is tried: kind and value."""
    jobs: list[list[Any]] = []
    if "links" in only:
        jobs += [["link", name] for name in LINKS]
    if "cuts" in only:
        jobs += [["cut", seconds] for seconds in cuts]
    if "clocks" in only:
        jobs += [["clock", ahead] for ahead in AHEAD] + [["step", STEPPED], ["agreeing", 0.0]]
    return jobs


def do(stack: SplitStack, kind: str, value: Any, seconds: float) -> dict[str, Any]:
    """One of the jobs."""
    if kind == "link":
        return link_row(stack, seconds, LINKS[value])
    if kind == "cut":
        return cut_row(stack, value)
    return clock_row(stack, seconds, value, kind == "step")


def outcomes(
    robot: str, jobs: Sequence[list[Any]], seconds: float, kept: KeptOutcomes, show: Progress
) -> Iterator[tuple[list[Any], dict[str, Any]]]:
    """Each job with its outcome; stacks are started for what is not known yet, one for clocks and one for the rest."""
    for own_clock in (False, True):
        part = [job for job in jobs if (job[0] in CLOCKS) is own_clock]
        keys = [json.dumps([robot, seconds, *job]) for job in part]
        with contextlib.ExitStack() as open_stacks:
            stack = None
            for job, key in zip(part, keys, strict=True):
                show(jobs.index(job) / len(jobs), f"{job[0]} {job[1]}")
                if key not in kept.known:
                    stack = stack or open_stacks.enter_context(SplitStack(robot, DOMAIN, own_clock, FOLLOWABLE))
                    kept.keep(key, plain_values(do(stack, job[0], job[1], seconds)))
                yield job, kept.known[key]


def run_study(
    robot: str = "hrp2",
    only: Sequence[str] = PARTS,
    seconds: float = SECONDS,
    cuts: Sequence[float] = CUTS,
    resume: Path | None = None,
    show: Progress = silent,
) -> StudyReport:
    """Try all links, cuts and clocks.

    Args:
        robot: of the catalogue, or path of a URDF. only: some of PARTS. seconds: of each link and clock.
        cuts: how long the link is cut [s]. resume: file that keeps the outcomes: what is in it is not tried again.
        show: told of progress.

    Raises:
        ConfigError, UnknownNameError: what is asked for makes no sense.
        EnvironmentProblem: two hosts cannot be made here. HostsFailure: a stack did not start, or ended.
    """
    if unknown := [part for part in only if part not in PARTS]:
        raise UnknownNameError("part", unknown[0], PARTS, hint="(of the study of two hosts)")
    if not 2.0 <= seconds <= 3600.0:
        raise ConfigError(f"seconds must be from 2 to 3600, got {seconds:g}")
    require_ros()
    load_robot(robot, "fixed")
    kept = KeptOutcomes(resume, "two hosts")
    if problem := why_not():
        raise EnvironmentProblem(problem)
    if "clocks" in only and not clock_library():
        raise EnvironmentProblem("clock offsets need libfaketime (Debian: apt install libfaketime)")
    rows = list(outcomes(robot, jobs_of(only, cuts), seconds, kept, show))
    missed = [f"{job[0]} {job[1]}: {text}" for job, found in rows for text in broken(job, found, rows)]
    data = {
        "study": "hosts",
        "robot": robot,
        "rows": [{"kind": job[0], "value": job[1], **found} for job, found in rows],
        "missed": missed,
        "machine": machine(),
    }
    return StudyReport(data, [*tables(rows), *missed, NOTE])


def broken(job: list[Any], found: dict[str, Any], rows: Sequence[tuple[list[Any], dict[str, Any]]]) -> list[str]:
    """Promises that an outcome does not keep."""
    out = []
    if not found["beyond"] <= TINY:
        out.append(f"a reference moved {found['beyond']:.2g} rad beyond its limit in a period")
    if not found["speed"] <= SPEED:
        out.append(f"a joint at {found['speed']:.2f} of its speed limit")
    if job[0] == "cut":
        for side in ("robot", "control"):
            if job[1] > NAMED and not _number(found[f"named_{side}"]) <= NAMED:
                out.append(f"reported at the {side} after {_number(found[f'named_{side}']):.2f} s")
        if not _number(found["moving_again"]) <= AGAIN:
            out.append(f"moved on after {_number(found['moving_again']):.2f} s")
    references = [f for j, f in rows if j[0] in CLOCKS and j[1] == 0.0]
    if job[0] in CLOCKS and references:
        for name, unit in (("error", 1e-3), ("latency_ms", 1e3 * HEALTHY)):
            a, b = found[name], [f[name] for f in references]
            if not min(b) - max(ALIKE * min(b), unit) <= a <= max(b) + max(ALIKE * max(b), unit):
                out.append(f"{name} is {a:.4g}, and {min(b):.4g} to {max(b):.4g} with synchronous clocks")
    return out


def _number(value: Any) -> float:
    """A number of an outcome; one that was infinite is None in a file."""
    return float("inf") if value is None else float(value)


def tables(rows: Sequence[tuple[list[Any], dict[str, Any]]]) -> list[ReportTable]:
    """A table for each part."""
    shown = []
    links = [(j, f) for j, f in rows if j[0] == "link"]
    columns = ["commands/s", "age p50 ms", "p99 ms", "longest gap ms", "error mm", "speed"]
    if links:
        shown.append(ReportTable("link", ["link", *columns], [[j[1], *_figures(f)] for j, f in links]))
    if cuts := [(j, f) for j, f in rows if j[0] == "cut"]:
        heads = ["cut s", "reported: robot s", "control s", "commands again s", "moves again s", "speed"]
        names = ("named_robot", "named_control", "commands_again", "moving_again", "speed")
        shown.append(ReportTable("cut", heads, [[j[1], *(round(_number(f[n]), 3) for n in names)] for j, f in cuts]))
    if clocks := [(j, f) for j, f in rows if j[0] in CLOCKS]:
        body = [[f"{j[1]:+g}{' while running' if j[0] == 'step' else ''}", *_figures(f)] for j, f in clocks]
        latency = [[*row, round(f["latency_ms"], 2)] for row, (_, f) in zip(body, clocks, strict=True)]
        shown.append(ReportTable("controller's clock ahead, s", ["ahead s", *columns, "latency ms"], latency))
    return shown


def _figures(f: dict[str, Any]) -> list[Any]:
    ms = [round(1000 * _number(f[name]), 1) for name in ("age_p50", "age_p99", "gap", "error")]
    return [round(f["rate"]), *ms, round(f["speed"], 3)]


NOTE = f"""Commands at the host of the robot: count, age, longest time without one. error: root mean square distance of
the points of the robot from the targets. speed: largest of any joint, as a share of its limit. Joint accelerations are
at most 20 rad/s^2: at the default of the controller some joints hit their stops so hard that others exceed their
limits on any link. Guarantees: no reference moves faster than the limit of its joint, and no joint beyond {SPEED:g} of
it; a cut is reported on both sides within {NAMED:g} s, and the robot moves on within {AGAIN:g} s; clock offsets change
error and latency by at most {100 * ALIKE:.0f} %, or 1 mm and 1 ms."""
