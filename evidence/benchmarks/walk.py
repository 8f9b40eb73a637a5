"""How far walking gets: time of a tick, top speeds, pushes survived, odometry; every number from walks in the world.

All sensors have noise, no truth is used, and one set of gains holds for all. Every trial is kept as a file where a
folder is named, so that a measurement of an hour can be stopped and gone on with.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from evidence.benchmarks import Row as BenchRow
from evidence.benchmarks import row
from evidence.studies.walking.rows import PUSHED, StudyRow, make_walker
from evidence.studies.walking.trial import NOISE, TrialPush, WalkConditions, WalkOutcome, steady, walk
from humanoid_control.errors import ConfigError
from humanoid_control.files import check_folder, whole_file
from humanoid_control.simulation import SimulationConfig
from humanoid_control.simulation.engine import Engine
from humanoid_control.terminal import progress
from humanoid_control.walking import Walker, WalkReport
from humanoid_control.walking.ground.standing import stand_on_ground

TITLE = "bench walk"
NOT_TRIED = "not tried"
BALANCED = 0.6  # [m/s] from which the arms balance the momentum about the vertical
# Speed [m/s], time of a step [s], 0: the walker's own; a robot's speed is the last before the first that it falls at.
LADDERS = {
    "lola": ((0.5, 0.8), (0.667, 0.6), (0.833, 0.6), (1.0, 0.45)),
    "hrp2": ((0.25, 0.8), (0.375, 0.0), (0.5, 0.0), (0.667, 0.0)),
    "wabian2": ((0.25, 0.8), (0.375, 0.0), (0.5, 0.0), (0.6, 0.0)),
    "suralp": ((0.2, 0.0), (0.3, 0.0), (0.4, 0.0)),
}
PUSHED_WALKS = {"lola": (0.4, 0.5), "hrp2": (0.25, 0.8)}  # speed [m/s] and time of a step [s]
IMPULSES = (5.0, 10.0, 15.0, 20.0, 25.0, 30.0)  # [N s], along every direction
SLOPES = (2.0, 5.0, 8.0, 10.0, 12.0, 15.0)  # [deg], known, each up, down and across
WAYS = {"up": "slope={:g}", "down": "slope=-{:g}", "across": "slope={:g},direction=90"}
STAIRS = (0.05, 0.08, 0.1, 0.15, 0.185)  # [m], known, five of each up and down
STAIR_STEPS, SLOPE_STEPS = 16, 16
STEADY, AFTER = 6, 5  # steps before a push, and after it
LONG, SHORT = 500, 20  # steps


@dataclass(frozen=True)
class Effort:
    """How much is tried.

    Attributes:
        steps: of a walk that counts for a speed. seeds: of the noise.
        pushes: robot -> number of phases of a cycle of two steps, and of directions. long: 500 steps are walked.
    """

    steps: int
    seeds: int
    pushes: dict[str, tuple[int, int]]
    long: bool


FULL = Effort(100, 5, {"lola": (8, 8), "hrp2": (4, 4)}, True)
QUICK = Effort(20, 1, {"lola": (2, 4), "hrp2": (2, 4)}, False)


class Trials:
    """Walks that are done, or were done before and are kept."""

    def __init__(self, folder: Path | None, show: Callable[[str], None]) -> None:
        self._folder, self._show = folder, show

    def __call__(self, name: str, do: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """The outcome of a trial, done where it is not kept."""
        self._show(name)
        if self._folder is None:
            return do()
        path = self._folder / f"{re.sub(r'[^A-Za-z0-9.+-]+', '_', name)}.json"
        if path.exists():
            kept: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            return kept
        done = do()
        with whole_file(path) as part:
            part.write_text(json.dumps(done), encoding="utf-8")
        return done


def measure(quick: bool = False, keep: str = "", quiet: bool = True) -> list[BenchRow]:
    """Rows as `notes` tells of them; a row that is left out says so instead of a number.

    Args:
        quick: a sample of the phases, directions and seeds, short walks, and no walk of 500 steps.
        keep: folder of the trials, made where it is missing; those that are there are not done again.

    Raises:
        ConfigError: no folder can be made there.
    """
    folder = Path(keep).expanduser() if keep else None
    check_folder(folder, "folder of trials")
    effort = QUICK if quick else FULL
    if folder is not None:
        folder = folder / ("quick" if quick else "full")
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as e:
            raise ConfigError(f"no folder of trials can be made at {folder}: {e.strerror}") from None
    most = 3 + sum(map(len, LADDERS.values())) * effort.seeds
    most += len(IMPULSES) * sum(p * d for p, d in effort.pushes.values())
    with progress("walking", float(most), quiet) as show:
        done = [0]

        def tell(name: str) -> None:
            done[0] += 1
            show(float(done[0]), name)

        return _rows(Trials(folder, tell), effort)


def _rows(trials: Trials, effort: Effort) -> list[BenchRow]:
    plain, balanced = (_torque_walk(trials, arms) for arms in (False, True))
    n = plain["ticks"]
    rows = [
        row("tick_ms", "ms", plain["tick_ms"][0], plain["tick_ms"][1], n),
        row("real_time_factor", "ratio", plain["real_time_factor"], plain["real_time_factor"], n),
    ]
    rows += [_speed(trials, robot, effort) for robot in LADDERS]
    rows.append(_long(trials) if effort.long else _words("lola_steps_500", "", NOT_TRIED))
    rows += [_worst_push(trials, robot, effort) for robot in PUSHED_WALKS]
    rows += [_slope(trials, effort), _stair(trials, effort)]
    rows.append(_odometry(trials, effort))
    saved = float("nan")
    if not (plain["fell"] or balanced["fell"]):
        saved = 100 * (1 - balanced["turning_torque"] / plain["turning_torque"])
    rows.append(row("foot_torque_reduction_percent", "%", saved, saved, SHORT))
    return rows


def _words(name: str, unit: str, text: str) -> BenchRow:
    return {"name": name, "unit": unit, "median": text, "p99": "", "n": 0}


def walk_once(
    case: StudyRow,
    steps: int,
    seed: int,
    pushes: tuple[TrialPush, ...] = (),
    watch: Callable[[Engine, Walker, WalkReport], None] | None = None,
) -> WalkOutcome:
    """A walk in the world of its own, by noisy sensors."""
    engine = SimulationConfig(case.robot, "floating", ground=case.ground).build()
    stand_on_ground(engine)
    conditions = WalkConditions(steady(case.velocity), steps, noise=NOISE, seed=seed, pushes=pushes)
    return walk(engine, make_walker(case), conditions, watch)


def _case(robot: str, speed: float, step_time: float, momentum: bool | None = None) -> StudyRow:
    arms = speed >= BALANCED if momentum is None else momentum
    return StudyRow("bench", "", robot, (speed, 0.0, 0.0), step_time, "task" if arms else "still")


def _later(case: StudyRow, steps: int, seed: int) -> Callable[[], dict[str, Any]]:
    """A walk that is done when it is needed."""
    return lambda: _told(walk_once(case, steps, seed))


def _told(o: WalkOutcome) -> dict[str, Any]:
    """What is kept of a walk."""
    return {"fell": o.fell, "steps": o.steps, "speed": float(o.velocity[0]), "odometry": o.odometry}


# -------- Rows


def _torque_walk(trials: Trials, arms: bool) -> dict[str, Any]:
    """Lola at 0.5 m/s: times, and the largest torque about the vertical under the foot that stands alone."""

    def do() -> dict[str, Any]:
        turning: list[float] = []

        def watch(engine: Engine, walker: Walker, report: WalkReport) -> None:
            if report.references.swinging is not None and walker.steps >= 4:
                turning.append(abs(turning_torque(engine.foot_wrenches())))

        o = walk_once(_case("lola", 0.5, 0.8, arms), SHORT, 0, watch=watch)
        most = float(np.percentile(turning, 99)) if turning else float("nan")
        tick = [1e3 * t for t in o.tick]
        out = {"tick_ms": tick, "ticks": round(o.time / 0.004), "real_time_factor": o.real_time_factor}
        return {**_told(o), **out, "turning_torque": most}

    return trials(f"lola torque {'balanced' if arms else 'still'}", do)


def turning_torque(wrenches: dict[str, np.ndarray]) -> float:
    """Torque about the normal at the centre of pressure of each foot, in all [N m].

    Args:
        wrenches: foot -> (6,) force and torque at the middle of its sole, z normal to it.
    """
    total = 0.0
    for fx, fy, fz, tx, ty, tz in wrenches.values():
        if fz > 1.0:
            total += tz - (-ty / fz * fy - tx / fz * fx)
    return total


def _speed(trials: Trials, robot: str, effort: Effort) -> BenchRow:
    """The last speed before the first of its ladder at which the robot fell, as it was measured."""
    best, n = 0.0, 0
    for speed, step_time in LADDERS[robot]:
        case = _case(robot, speed, step_time)
        found = [
            trials(f"{robot} {speed} {step_time} seed {seed}", _later(case, effort.steps, seed))
            for seed in range(effort.seeds)
        ]
        n += len(found)
        if any(o["fell"] for o in found):
            break
        best = float(np.median([o["speed"] for o in found]))
    return row(f"{robot}_speed", "m/s", best, best, n)


def _long(trials: Trials) -> BenchRow:
    found = trials("lola 500 steps", lambda: _told(walk_once(_case("lola", 0.5, 0.8), LONG, 0)))
    walked = float(not found["fell"] and found["steps"] >= LONG)
    return row("lola_steps_500", "walked", walked, walked, found["steps"])


def _worst_push(trials: Trials, robot: str, effort: Effort) -> BenchRow:
    """The largest impulse that the robot survives in every phase and direction tried, and all smaller ones."""
    phases, directions = effort.pushes[robot]
    survived, n = 0.0, 0
    for impulse in IMPULSES:
        falls = 0
        for k in range(phases * directions):
            phase, angle = 2.0 * (k % phases) / phases, 2 * math.pi * (k // phases) / directions
            name = f"{robot} push {impulse:g} phase {phase:g} angle {math.degrees(angle):.0f}"
            falls += bool(trials(name, partial(_pushed, robot, phase, angle, impulse))["fell"])
            n += 1
            if falls:
                return row(f"{robot}_push_worst_ns", "N s", survived, survived, n)
        survived = impulse
    return row(f"{robot}_push_worst_ns", "N s", survived, survived, n)


def _pushed(robot: str, phase: float, angle: float, impulse: float) -> dict[str, Any]:
    speed, step_time = PUSHED_WALKS[robot]
    force = impulse / PUSHED
    push = TrialPush((STEADY + phase) * step_time, (force * math.cos(angle), force * math.sin(angle), 0.0), PUSHED)
    return _told(walk_once(_case(robot, speed, step_time), STEADY + 2 + AFTER, 0, (push,)))


def _slope(trials: Trials, effort: Effort) -> BenchRow:
    """The steepest known slope that Lola walks up, down and across, and all gentler ones [deg]."""

    def cases(deg: float) -> list[StudyRow]:
        grounds = [f"plane:{text.format(deg)}" for text in WAYS.values()]
        return [StudyRow("bench", g, velocity=(0.375, 0.0, 0.0), ground=g) for g in grounds]

    return _hardest(trials, effort, ("slope_deg", "deg"), SLOPES, cases, SLOPE_STEPS)


def _stair(trials: Trials, effort: Effort) -> BenchRow:
    """The highest known stairs of 0.35 m run that Lola walks up and down, and all lower ones [m]."""

    def cases(rise: float) -> list[StudyRow]:
        grounds = [f"stairs:rise={sign * rise:g},run=0.35,start=0.6" for sign in (1, -1)]
        return [StudyRow("bench", g, velocity=(0.29, 0.0, 0.0), step_time=1.2, ground=g) for g in grounds]

    return _hardest(trials, effort, ("stair_m", "m"), STAIRS, cases, STAIR_STEPS)


def _hardest(
    trials: Trials,
    effort: Effort,
    name: tuple[str, str],
    ladder: Sequence[float],
    cases: Callable[[float], list[StudyRow]],
    steps: int,
) -> BenchRow:
    """The last rung of a ladder of grounds before the first at which Lola falls; name of the row and its unit."""
    best, n = 0.0, 0
    for rung in ladder:
        fell = False
        for case in cases(rung):
            for seed in range(effort.seeds):
                found = trials(f"lola {case.ground} seed {seed}", _later(case, steps, seed))
                fell = fell or bool(found["fell"])
                n += 1
        if fell:
            break
        best = rung
    return row(name[0], name[1], best, best, n)


def _odometry(trials: Trials, effort: Effort) -> BenchRow:
    speed, step_time = LADDERS["lola"][0]
    found = [
        trials(f"lola {speed} {step_time} seed {seed}", _later(_case("lola", speed, step_time), effort.steps, seed))
        for seed in range(effort.seeds)
    ]
    errors = [100 * o["odometry"] for o in found]
    return row("odometry_percent", "%", float(np.median(errors)), max(errors), len(found))


def notes(rows: Sequence[BenchRow]) -> list[str]:
    """Lines on what is counted."""
    by = {r["name"]: r for r in rows}
    return [
        "All sensors have the noise of the study and are 2 ms late; one set of gains; `n`: trials; for times: ticks; "
        "for walks: steps.",
        "tick_ms: estimate, plan, balance and inverse kinematics of Lola at 0.5 m/s; real_time_factor: simulation and "
        "walker together, on one core.",
        "ROBOT_speed: measured, of the last rung of "
        + "; ".join(f"{r} {_rungs(r)} m/s" for r in LADDERS)
        + " before a "
        "fall; the arms balance the momentum about the vertical from 0.6 m/s.",
        f"ROBOT_push_worst_ns: largest of {', '.join(f'{j:g}' for j in IMPULSES)} N s on the root link, in 0.1 s, "
        f"survived in every tested phase and direction, with all smaller ones ({by['lola_push_worst_ns']['n']} and "
        f"{by['hrp2_push_worst_ns']['n']} trials until the first fall); 0: the robot fell at the smallest one.",
        "odometry_percent: error of the estimated path of Lola at 0.5 m/s, and of the worst seed.",
        "foot_torque_reduction_percent: reduction of the vertical torque under the stance foot (99th percentile) by "
        "arms that balance the momentum, compared with still arms.",
        f"slope_deg: of {', '.join(f'{x:g}' for x in SLOPES)}, known to the walker, up, down and across; stair_m: of "
        f"{', '.join(f'{x:g}' for x in STAIRS)}, five known stairs up and down; Lola, with all lower ones.",
        f"'{NOT_TRIED}': left out by --quick.",
    ]


def _rungs(robot: str) -> str:
    return ", ".join(f"{v:g}" for v, _ in LADDERS[robot])
