"""`humanoid study walking`: robots walk by noisy sensors alone, are pushed, and are stopped in every phase."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from evidence.studies.report import KeptOutcomes, Progress, StudyReport, silent
from evidence.studies.walking.maps import map_picture, map_tables, walk_maps
from evidence.studies.walking.rows import (
    ARM_ROWS,
    ARM_SPEED,
    ARM_SPEED_ROWS,
    FURTHER_ROWS,
    GRIPPING,
    LONG_ROWS,
    MOMENTUM,
    PLANNER_ROWS,
    ROWS,
    STEPS,
    TOP,
    StudyRow,
    ground_rows,
    is_stranger,
    make_walker,
    ready_to_walk,
    stranger_rows,
    try_row,
)
from evidence.studies.walking.trial import NOISE, NoisySensors, WalkOutcome
from humanoid_control.errors import ConfigError, UnknownNameError
from humanoid_control.simulation import SimulationConfig
from humanoid_control.terminal import ReportTable, machine
from humanoid_control.walking import WalkState
from humanoid_control.walking.ground.standing import stand_on_ground

MOST_STEPS = 100_000
NOTE = """All sensors have noise, a bias of the orientation and 2 ms of delay; the walker has no ground truth; one set
of gains for all. xi error: of the divergent component against the plan, forward and sideways, root mean square. sole:
largest error of a foothold relative to the other foot. slip: total creep of loaded soles. torque: largest share of a
joint limit, and its joint; full: time of a joint at its limit. odometry: error of the estimated path. real time:
simulated time over computing time of simulation and walker together, on one core next to the other rows. velocity: of
the centre of mass as estimated, root mean square of its error. inside: share of the time in which the estimated
position was within three of its own standard deviations. L_z: angular momentum about the vertical through the centre
of mass, peak to peak. yaw torque: under the soles, from the wrenches, 99th percentile. sole turned: largest rotation
about the vertical in stance, true and as measured by the robot."""
MAP_NOTE = """Sensors as in the other groups. Each number is the last rung before the first fall,
the lowest of the seeds; +: no fall. Pushes: 0.1 s at the root link, at the lift-off of the seventh step of
0.5 s. Slopes are known to the walker, steps take 0.8 s."""

STOPS, MAPS = "stops", "maps"
MORE_ROWS = (*ARM_ROWS, *LONG_ROWS, *PLANNER_ROWS, *ARM_SPEED_ROWS, *FURTHER_ROWS)
ALONE = dict.fromkeys(r.group for r in MORE_ROWS)  # groups that are only walked when asked for
ABOUT_ARMS = (MOMENTUM, ARM_SPEED)
SLIPPING = 0.01  # [m a step] of loaded soles, from which on a speed does not count on slippery ground
GROUPS = (*dict.fromkeys(r.group for r in ROWS), STOPS, *ALONE, MAPS)
PHASES = 8  # of a cycle of two steps in which the emergency stop is tried
STOPPED = (
    StudyRow(STOPS, "0.5 m/s"),
    StudyRow(STOPS, "1 m/s", velocity=(1.0, 0.0, 0.0), step_time=0.45, arms="task"),
    *(StudyRow(STOPS, f"{speed:g} m/s", robot, (speed, 0.0, 0.0), 0.0) for robot, speed in TOP.items()),
)
RESTING, RESTED = 0.05, 0.5  # [rad/s] of all joints; [s] for which they must be that slow
FAST_AFTER = 25  # steps in which a robot gets up to speed


@dataclass(frozen=True)
class Choice:
    """Which walks, and how often.

    Attributes:
        robot: only rows of this robot of the catalogue, or the path of any URDF: it walks slowly.
        only: groups of rows. walk: only rows with this in their name.
        ground: only walks on this ground, with a map of it and without; see `simulation.contact.ground_recipe`.
        steps: of each walk; None: STEPS, or what the row says. seeds: how often, with other noise.
        phases: of a cycle, for stops.
    """

    robot: str | None = None
    only: Sequence[str] = ()
    walk: str = ""
    ground: str = ""
    steps: int | None = None
    seeds: int = 1
    phases: int = PHASES

    def __post_init__(self) -> None:
        for group in self.only:
            if group not in GROUPS:
                raise UnknownNameError("group of walks", group, GROUPS)
        steps = STEPS if self.steps is None else self.steps
        for what, number, most in (
            ("steps", steps, MOST_STEPS),
            ("seeds", self.seeds, 1000),
            ("phases", self.phases, 1000),
        ):
            if not 0 < number <= most:
                raise ConfigError(f"{what} must be 1..{most}, got {number}")
        if MAPS in self.only and (len(self.only) > 1 or self.ground or self.walk):
            raise ConfigError("maps have their own rows: leave out all other parts")
        if self.ground and self.only:
            raise ConfigError("a ground has its own rows: give ground or groups, not both")
        if self.stranger and self.only:
            raise ConfigError(f"groups are of the robots of the catalogue: {self.robot} has its own walk")

    @property
    def stranger(self) -> bool:
        """The robot is the path of a URDF; raises as `rows.is_stranger`."""
        return self.robot is not None and is_stranger(self.robot)

    def rows(self) -> list[StudyRow]:
        """The rows; what takes minutes only where its group is asked for.

        Raises:
            UnknownNameError: no row has such a name.
        """
        if self.robot is not None and self.stranger:
            rows = stranger_rows(self.robot, self.ground)
        elif self.ground:
            rows = ground_rows(self.ground, self.robot or "lola")
        elif self.only:
            rows = [r for r in (*ROWS, *STOPPED, *MORE_ROWS) if r.group in self.only]
        else:
            rows = [*ROWS, STOPPED[0]]
        rows = [r for r in rows if self.robot in (None, r.robot)]
        found = [r for r in rows if self.walk in r.name]
        if not found:
            raise UnknownNameError("walk", self.walk, [r.name for r in rows])
        return found


def run_study(
    show: Progress = silent, workers: int | None = None, resume: Path | None = None, **choice: Any
) -> StudyReport:
    """Walk some rows; or make the maps of who falls where, where they are asked for.

    Args:
        show: told how far it is. workers: processes; None: one a core.
        resume: file that keeps the outcomes: what is in it is not walked again. choice: as of Choice.

    Raises:
        UnknownNameError: a group, robot or name that has no row. ConfigError: a number out of range.
        RobotError: a URDF that cannot be read, or cannot walk.
    """
    chosen = Choice(**choice)
    kept = KeptOutcomes(resume, "walks")
    if MAPS in chosen.only:
        return _maps(walk_maps([chosen.robot or "lola"], chosen.seeds, workers, kept, show))
    jobs: list[tuple[Any, ...]] = []
    for row in chosen.rows():
        for seed in range(chosen.seeds):
            if row.group == STOPS:
                jobs += [(STOPS, asdict(row), k / chosen.phases * 2, seed) for k in range(chosen.phases)]
            else:
                jobs.append(("walk", asdict(row), chosen.steps, seed))
    with ready_to_walk(str(chosen.robot)) if chosen.stranger else nullcontext() as urdf:
        do = _do if urdf is None else partial(_do, urdf=urdf)
        found = list(kept.all(jobs, do, workers, lambda share: show(share, "walking")))
    outcomes = [(StudyRow.of(job[1]), job, outcome) for job, outcome in zip(jobs, found, strict=True)]
    return _report(outcomes, chosen.seeds)


def _report(found: list[tuple[StudyRow, tuple[Any, ...], dict[str, Any]]], seeds: int) -> StudyReport:
    walks = [(row, _outcome(o)) for row, job, o in found if job[0] != STOPS]
    parts: list[ReportTable | str] = []
    for group in dict.fromkeys(row.group for row, _ in walks):
        of_group = [(row, o) for row, o in walks if row.group == group]
        parts.append((_momentum_table if group in ABOUT_ARMS else _table)(group, of_group))
        if group == ARM_SPEED:
            parts.append(arm_speed_table(of_group))
        elif group in ALONE and group != MOMENTUM:
            parts.append(_belief_table(group, of_group))
    stops = [(row, o) for row, job, o in found if job[0] == STOPS]
    if stops:
        parts += [_stop_table(stops), _stop_summary(stops)]
    data = {
        "study": "walking",
        "seeds": seeds,
        "walks": [{**job[1], "seed": job[3], **o} for _, job, o in found if job[0] != STOPS],
        "stops": [{"robot": row.robot, "walk": row.name, **o} for row, o in stops],
        "machine": machine(),
    }
    return StudyReport(data, [*parts, NOTE])


def _maps(rows: list[dict[str, Any]]) -> StudyReport:
    data = {"study": "walking", "maps": rows, "machine": machine()}
    return StudyReport(data, [*map_tables(rows), MAP_NOTE], pictures=lambda: {"maps.png": map_picture(rows)})


def _do(job: tuple[Any, ...], urdf: str | None = None) -> dict[str, Any]:
    """Walk or stop; the robot is loaded from `urdf` where that is given, since kept jobs name it as the user did."""
    kind, values, how, seed = job
    row = StudyRow.of(values)
    if kind == STOPS:
        return try_stop(row, how, seed)
    return asdict(try_row(row if urdf is None else replace(row, robot=urdf), how, seed))


def _outcome(values: dict[str, Any]) -> WalkOutcome:
    """The outcome of a walk from plain values, in which what is not a number is None."""
    whole: dict[str, Any] = {
        k: float("nan") if v is None else np.array(v) if isinstance(v, list) else v for k, v in values.items()
    }
    return WalkOutcome(**{f.name: whole[f.name] for f in fields(WalkOutcome)})


def try_stop(row: StudyRow, phase: float, seed: int) -> dict[str, Any]:
    """Stop a robot that walks as soon as possible, in a phase of the cycle 0..2, one a step, after it got up to speed.

    Returns:
        phase, seed, fell (why; empty: it did not), steps from the call on; seconds until it stands, at most 10;
        speed: of the step in which it was called [m/s]; rest: until all joints are slower than RESTING and both feet
        are on the ground, for good [s].
    """
    engine, walker = SimulationConfig(row.robot, "floating").build(), make_walker(row)
    stand_on_ground(engine)
    engine.step(300)
    sensors, called, begin, report = NoisySensors(engine, NOISE, seed), None, 0, None
    when, moving, ended, speed = float("inf"), float("nan"), float("inf"), 0.0
    while walker.t < (40.0 if called is None else min(called + 10.0, ended + RESTED)):
        engine.step(2)
        sensors.sample()
        engine.step(2)
        measured = sensors.read()
        if measured is None:
            continue
        if called is None and walker.t > 1.6:
            walker.command(np.array(row.velocity))
        report = walker.step(measured)
        engine.command(walker.joints, walker.joint_velocity)
        if report.state == WalkState.FALLEN:
            break
        first = walker.plan.phases[0] if walker.plan.phases else None
        if report.steps >= FAST_AFTER and first is not None and first.step.foot == 0:
            when = min(when, first.lift + phase * (first.end - first.lift))
        if called is None and walker.t >= when:
            speed = walker.replanner.speed
            walker.emergency_stop()
            called, begin = walker.t, report.steps
        if called is not None:
            slow = bool(np.abs(engine.joint_velocity).max() < RESTING) and bool(report.estimate.touches.all())
            moving = moving if slow else walker.t
            if report.state == WalkState.STAND:
                ended = min(ended, walker.t)
    assert report is not None
    start = float("nan") if called is None else called
    out = {"phase": phase, "seed": seed, "fell": report.why, "steps": report.steps - begin}
    return {**out, "speed": speed, "seconds": ended - start, "rest": moving - start}


def _table(group: str, rows: list[tuple[StudyRow, WalkOutcome]]) -> ReportTable:
    columns = ["robot", "walk", "", "steps", "m/s", "xi error mm", "tilt deg", "sole mm", "slip mm", "torque %"]
    columns += ["full s", "odometry %", "real time"]
    body = []
    for r, o in rows:
        verdict = f"fell: {o.fell}" if o.fell else "walked"
        e = 1000 * o.dcm_error
        body.append(
            [
                Path(r.robot).stem,
                r.title,
                verdict,
                o.steps,
                round(float(np.hypot(*o.velocity[:2])), 3),
                f"{e[0]:.1f} / {e[1]:.1f}",
                round(float(np.degrees(o.tilt)), 2),
                round(1000 * o.sole_error, 1),
                round(1000 * o.slip),
                f"{100 * o.torque_share:.0f} {o.torque_joint}",
                round(o.torque_full, 2),
                round(100 * o.odometry, 2),
                round(o.real_time_factor, 2),
            ]
        )
    return ReportTable(f"walking: {group}", columns, body)


def _momentum_table(group: str, rows: list[tuple[StudyRow, WalkOutcome]]) -> ReportTable:
    columns = ["robot", "walk", "arms", "", "steps", "m/s", "L_z N m s", "yaw torque N m", "slip mm", "sole turned deg"]
    columns += ["measured deg", "xi error mm", "tilt deg", "full s"]
    body = []
    for r, o in rows:
        e = 1000 * o.dcm_error
        body.append(
            [
                r.robot,
                r.name,
                r.arms,
                f"fell: {o.fell}" if o.fell else "walked",
                o.steps,
                round(float(np.hypot(*o.velocity[:2])), 3),
                round(o.momentum, 2),
                round(o.yaw_torque, 1),
                round(1000 * o.slip),
                round(float(np.degrees(o.turned)), 1),
                round(float(np.degrees(o.turned_felt)), 1),
                f"{e[0]:.1f} / {e[1]:.1f}",
                round(float(np.degrees(o.tilt)), 2),
                round(o.torque_full, 2),
            ]
        )
    return ReportTable("walking: arms that balance the vertical momentum", columns, body)


def arm_speed_table(rows: list[tuple[StudyRow, WalkOutcome]]) -> ReportTable:
    """For each way to swing the arms the last speed of its ladder before it fell, or slipped on slippery ground.

    The speed is measured, the least of the seeds at that rung; 0: the first rung was too fast.
    """
    speeds: dict[tuple[str, float], float] = {}
    ended = set()
    for row in dict.fromkeys(r for r, _ in rows):  # in the order of the ladder
        key, found = (row.arms, row.friction), [o for r, o in rows if r == row]
        speeds.setdefault(key, 0.0)
        slips = row.friction != GRIPPING and any(o.slip > SLIPPING * o.steps for o in found)
        if key in ended or slips or any(o.fell for o in found):
            ended.add(key)
            continue
        speeds[key] = min(float(np.hypot(*o.velocity[:2])) for o in found)
    frictions = list(dict.fromkeys(mu for _, mu in speeds))
    body = [[arms, *(round(speeds[arms, mu], 2) for mu in frictions)] for arms in dict.fromkeys(a for a, _ in speeds)]
    columns = ["arms", *(f"m/s at friction {mu:g}" for mu in frictions)]
    return ReportTable(
        f"walking: top speed; below friction {GRIPPING:g} without {1000 * SLIPPING:g} mm of slip a step", columns, body
    )


def _belief_table(group: str, rows: list[tuple[StudyRow, WalkOutcome]]) -> ReportTable:
    columns = [
        "robot",
        "walk",
        "way m",
        "time s",
        "odometry %",
        "heading deg",
        "height mm",
        "velocity mm/s",
        "inside %",
    ]
    columns += ["speed limit %", "tick ms", "99 % ms"]
    body = []
    for r, o in rows:
        median, most = o.tick
        body.append(
            [
                r.robot,
                r.title,
                round(o.distance, 1),
                round(o.time, 1),
                round(100 * o.odometry, 2),
                round(float(np.degrees(o.heading_drift)), 2),
                round(1000 * o.height_drift),
                round(1000 * o.velocity_error, 1),
                round(100 * o.inside, 1),
                round(100 * o.command_share, 1),
                round(1000 * median, 2),
                round(1000 * most, 2),
            ]
        )
    return ReportTable(f"walking: {group}, estimates of the robot, and commands near their limits", columns, body)


def _stop_table(stops: list[tuple[StudyRow, dict[str, Any]]]) -> ReportTable:
    body = [
        [r.robot, r.name, round(s["phase"], 3), _two(s["speed"]), s["fell"] or "stands", s["steps"]]
        + [_two(s["rest"]), _two(s["seconds"])]
        for r, s in stops
    ]
    columns = ["robot", "walk", "phase", "m/s", "", "steps", "joints at rest s", "ready again s"]
    return ReportTable("emergency stop in each phase of a cycle", columns, body)


def _stop_summary(stops: list[tuple[StudyRow, dict[str, Any]]]) -> ReportTable:
    body = []
    for row in dict.fromkeys(r for r, _ in stops):
        own = [s for r, s in stops if r == row]
        up = [s for s in own if not s["fell"]]
        worst = [max((s[k] for s in up), default=float("nan")) for k in ("steps", "rest", "seconds")]
        least = min(s["speed"] for s in own)
        body.append([row.robot, row.name, len(own), _two(least), len(own) - len(up), worst[0], *map(_two, worst[1:])])
    columns = ["robot", "walk", "stops", "m/s", "fell", "most steps", "joints at rest s", "ready again s"]
    return ReportTable("emergency stops, worst case", columns, body)


def _two(value: float | None) -> float | str:
    return "" if value is None else round(value, 2)
