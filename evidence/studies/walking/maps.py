"""Who falls where: the hardest push and the steepest slope that a walking robot stands, by speed and direction."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from evidence.studies.report import KeptOutcomes, Progress, silent
from evidence.studies.walking.trial import TrialPush, WalkConditions, steady, walk
from humanoid_control.errors import UnknownNameError
from humanoid_control.evaluation.report.plots import SERIES, png, subplots
from humanoid_control.robots import load_robot
from humanoid_control.simulation import SimulationConfig
from humanoid_control.simulation.contact.ground_recipe import ground_of
from humanoid_control.terminal import ReportTable
from humanoid_control.walking import StepTimes, Walker, WalkSettings
from humanoid_control.walking.ground.standing import stand_on_ground

SPEEDS = {"lola": (0.2, 0.4, 0.6), "hrp2": (0.12, 0.25, 0.4), "suralp": (0.1, 0.2, 0.3), "wabian2": (0.12, 0.25, 0.4)}
IMPULSES = (5.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0)  # [N s] on the root link
ANGLES = (3.0, 6.0, 9.0, 12.0, 15.0)  # [deg]
PUSHES, SLOPES = "push", "slope"
LADDERS = {PUSHES: IMPULSES, SLOPES: ANGLES}
DIRECTIONS = {PUSHES: tuple(range(0, 360, 45)), SLOPES: (0, 90, 180, 270)}  # [deg] from ahead to the left
TITLES = {
    PUSHES: "pushes, N s, by direction",
    SLOPES: "slopes, deg, by uphill direction",
}
WORDS = ("ahead", "ahead left", "left", "back left", "back", "back right", "right", "ahead right")
STEP_TIME = {PUSHES: 0.5, SLOPES: 0.8}  # [s]
PUSHED = 0.1  # [s]
BEFORE, AFTER = 6, 5  # steps before a push, and after it


def walk_maps(
    robots: Sequence[str],
    seeds: int = 1,
    workers: int | None = None,
    kept: KeptOutcomes | None = None,
    show: Progress = silent,
) -> list[dict[str, Any]]:
    """One row for each kind, robot, speed, direction and seed.

    Each climbs its ladder until the robot falls: `most` is the last rung before [N s] or [deg], `fell_at` the first at
    which it fell, None where it stood them all. Pushes come at a lift-off; slopes are known to the walker.

    Args:
        robots: of SPEEDS. workers: processes; None: one a core. kept: rows that are known already.

    Raises:
        UnknownNameError: a robot without speeds.
    """
    for robot in robots:
        if robot not in SPEEDS:
            raise UnknownNameError("robot of the maps", robot, SPEEDS)
    jobs = [
        (kind, robot, speed, direction, seed)
        for kind in LADDERS
        for robot in robots
        for speed in SPEEDS[robot]
        for direction in DIRECTIONS[kind]
        for seed in range(seeds)
    ]
    kept = kept or KeptOutcomes(None, "maps")
    return list(kept.all(jobs, climb, workers, lambda share: show(share, "maps")))


def climb(job: tuple[str, str, float, int, int]) -> dict[str, Any]:
    """Try the rungs of a ladder, in their order, until the robot falls."""
    kind, robot, speed, direction, seed = job
    row = {"kind": kind, "robot": robot, "speed": speed, "direction": direction, "seed": seed, "most": 0.0}
    for rung in LADDERS[kind]:
        if falls(kind, robot, speed, direction, seed, rung):
            return {**row, "fell_at": rung}
        row["most"] = rung
    return {**row, "fell_at": None}


def falls(kind: str, robot: str, speed: float, direction: int, seed: int, rung: float) -> bool:
    """Whether a robot falls that is pushed by an impulse [N s], or walks on a slope [deg]."""
    time, ground = STEP_TIME[kind], ""
    pushes: tuple[TrialPush, ...] = ()
    if kind == PUSHES:
        angle, force = math.radians(direction), rung / PUSHED
        pushes = (TrialPush(BEFORE * time, (force * math.cos(angle), force * math.sin(angle), 0.0), PUSHED),)
    else:
        ground = f"plane:slope={rung:g},direction={direction}"
    engine = SimulationConfig(robot, "floating", ground=ground).build()
    stand_on_ground(engine)
    times = StepTimes(nominal=time, shortest=min(time, 0.4), comfortable=10.0)
    settings = WalkSettings(times=times, ground=ground_of(ground) if ground else None)
    walker = Walker(load_robot(robot, "floating"), settings)
    conditions = WalkConditions(steady((speed, 0.0, 0.0)), BEFORE + AFTER, longest=60.0, seed=seed, pushes=pushes)
    return bool(walk(engine, walker, conditions).fell)


def map_tables(rows: Sequence[dict[str, Any]]) -> list[ReportTable]:
    """For each kind a table: robot and speed, and the least over the seeds in each direction."""
    out = []
    for kind, title in TITLES.items():
        lines = []
        for robot, speed in dict.fromkeys((r["robot"], r["speed"]) for r in rows if r["kind"] == kind):
            lines.append([robot, speed, *(told(rows, kind, robot, speed, d) for d in DIRECTIONS[kind])])
        columns = ["robot", "m/s", *(WORDS[d // 45] for d in DIRECTIONS[kind])]
        if lines:
            out.append(ReportTable(f"walking: {title}", columns, lines))
    return out


def told(rows: Sequence[dict[str, Any]], kind: str, robot: str, speed: float, direction: int) -> str:
    """The least of the seeds; with a + where no rung made it fall."""
    cell = cell_of(rows, kind, robot, speed, direction)
    return f"{cell['most']:g}{'' if cell['fell_at'] is not None else '+'}"


def cell_of(rows: Sequence[dict[str, Any]], kind: str, robot: str, speed: float, direction: int) -> dict[str, Any]:
    """The row of the seed that stands least."""
    wanted = (kind, robot, speed, direction)
    found = [r for r in rows if (r["kind"], r["robot"], r["speed"], r["direction"]) == wanted]
    return min(found, key=lambda r: float(r["most"]))


def map_picture(rows: Sequence[dict[str, Any]]) -> bytes:
    """Both maps seen from above, ahead is up: for each robot a line a speed, outside which it falls. PNG."""
    robots = list(dict.fromkeys(r["robot"] for r in rows))
    figure, axes = subplots(len(robots), 2, 8.0, 3.8 * len(robots), subplot_kw={"projection": "polar"})
    legend: dict[str, str] = {}
    for i, robot in enumerate(robots):
        for j, kind in enumerate(LADDERS):
            ax: Any = axes[2 * i + j]
            ax.set_theta_zero_location("N")
            ax.set_title(f"{robot}: {TITLES[kind]}", fontsize=9)
            ax.set_xticks([math.radians(d) for d in DIRECTIONS[kind]], [WORDS[d // 45] for d in DIRECTIONS[kind]])
            ax.set_rlim(0, LADDERS[kind][-1])
            for k, speed in enumerate(SPEEDS[robot]):
                most = [float(cell_of(rows, kind, robot, speed, d)["most"]) for d in DIRECTIONS[kind]]
                angles = [math.radians(d) for d in DIRECTIONS[kind]]
                ax.plot([*angles, angles[0]], [*most, most[0]], color=SERIES[k], marker=".")
                legend[f"{speed:g} m/s"] = SERIES[k]
    return png(figure, list(legend.items()))
