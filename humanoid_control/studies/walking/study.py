"""`humanoid study walking`: four robots walk by noisy sensors alone, are pushed, and are stopped in every phase."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from humanoid_control.errors import ConfigError, UnknownNameError
from humanoid_control.robots import load_robot
from humanoid_control.simulation import SimulationConfig
from humanoid_control.simulation.contact.ground_recipe import ground_of
from humanoid_control.studies.report import KeptOutcomes, Progress, StudyReport, silent
from humanoid_control.studies.walking.maps import map_picture, map_tables, walk_maps
from humanoid_control.studies.walking.trial import (
    NOISE,
    NoisySensors,
    Program,
    Push,
    WalkConditions,
    WalkOutcome,
    WrongBody,
    steady,
    walk,
)
from humanoid_control.terminal import Table, machine
from humanoid_control.walking import StepTimes, Walker, WalkSettings, WalkState
from humanoid_control.walking.arm_swing import ARM_SWINGS
from humanoid_control.walking.ground.standing import stand_on_ground

MOST_STEPS = 100_000
NOTE = """All sensors have noise, a bias of the orientation and 2 ms of delay; the walker sees no ground truth; one set
of gains for all. xi error: of the divergent component against the plan, forward and sideways, root mean square. sole:
most that a foot came down off its plan against the other foot. slip: creep of loaded soles in all. torque: most of a
joint's limit and whose; full: how long a joint was at it. odometry: error of the estimated way. real time: simulated
time per time, of simulation and walker together, on one core beside the others of this table. L_z: angular momentum
about the vertical through the centre of mass, peak to peak. yaw torque: under the soles, from the wrenches, 99th
percentile. sole turned: most about the vertical while it stood, true and as the robot measures it."""


MAP_NOTE = """Sensors as in the other groups. Each number is the last rung before the first at which the robot fell,
the least of the seeds; +: it stood them all. Pushes: 0.1 s at the root link, at the lift-off of the seventh step of
0.5 s. Slopes are known to the walker, steps take 0.8 s."""
RIGHT_BODY = WrongBody()


@dataclass(frozen=True)
class Row:
    """One walk of the study.

    Attributes:
        group: of rows. name: what is walked. robot: who. velocity: (3,) [m/s, m/s, rad/s].
        step_time: [s]; 0: times, lengths and ways of the steps are the walker's own.
        arms: as of WalkSettings. engine, drives, friction: of the world.
        ground: its shape, a recipe; contact_stiffness: under a corner of a sole [N/m]. known: the walker has
            a map of it.
        push: impulse (2,) on the root link, forward and to the left, at the lift-off of the seventh step [N s].
        pull: force (2,) on it from the first lift-off on [N]. body: what the walker's model does not know of the robot.
        delay: of all sensors, besides that of the noise [s].
        changing: the velocity is another one every CHANGE seconds, at random, `velocity` is the greatest.
    """

    group: str
    name: str
    robot: str = "lola"
    velocity: tuple[float, float, float] = (0.5, 0.0, 0.0)
    step_time: float = 0.8
    arms: str = "still"
    engine: str = "multibody"
    drives: str = "ideal"
    friction: float = 0.8
    push: tuple[float, float] | None = None
    ground: str = ""
    known: bool = True
    contact_stiffness: float = 1.0e5
    pull: tuple[float, float] = (0.0, 0.0)
    body: WrongBody = RIGHT_BODY
    delay: float = 0.0
    changing: bool = False


CHANGE = 1.5  # [s]
SLOPES = {"up": "slope=8", "down": "slope=-8", "across": "slope=8,direction=90"}
KERB = "stairs:rise=0.015,run=0.5,steps=1,start=0.6"
STAIRS: dict[str, Any] = {"velocity": (0.29, 0.0, 0.0), "step_time": 1.2}
ROWS = (
    Row("robots", "0.4 m in 0.8 s"),
    Row("robots", "0.2 m in 0.8 s", "hrp2", (0.25, 0.0, 0.0)),
    Row("robots", "0.24 m in 0.8 s", "suralp", (0.3, 0.0, 0.0)),
    Row("robots", "0.3 m in 0.8 s", "wabian2", (0.375, 0.0, 0.0)),
    Row("speed", "0.5 m in 0.6 s", velocity=(0.8333, 0.0, 0.0), step_time=0.6),
    Row("speed", "0.45 m in 0.45 s, arms balance", velocity=(1.0, 0.0, 0.0), step_time=0.45, arms="task"),
    Row("speed", "0.67 m/s", "hrp2", (0.67, 0.0, 0.0), 0.0),
    Row("speed", "0.6 m/s", "wabian2", (0.6, 0.0, 0.0), 0.0),
    Row("speed", "0.4 m/s", "suralp", (0.4, 0.0, 0.0), 0.0),
    Row("ways", "backward", velocity=(-0.3, 0.0, 0.0)),
    Row("ways", "sideways", velocity=(0.0, 0.12, 0.0)),
    Row("ways", "turning on the spot", velocity=(0.0, 0.0, 0.2)),
    Row("ways", "an arc", velocity=(0.3, 0.0, 0.2)),
    Row("worlds", "MuJoCo", engine="mujoco"),
    Row("worlds", "elastic drives", drives="elastic"),
    Row("worlds", "friction 0.4", friction=0.4),
    Row("worlds", "sensors 10 ms later", delay=0.01),
    Row("worlds", "all masses +10 %", body=WrongBody(masses=1.1)),
    Row("worlds", "all masses -10 %", body=WrongBody(masses=0.9)),
    Row("worlds", "centre of mass 15 mm ahead", body=WrongBody(shift=(0.015, 0.0, 0.0))),
    Row("worlds", "centre of mass 15 mm back", body=WrongBody(shift=(-0.015, 0.0, 0.0))),
    Row("worlds", "centre of mass 15 mm to the left", body=WrongBody(shift=(0.0, 0.015, 0.0))),
    Row("worlds", "5 kg in the left hand", body=WrongBody(payload=5.0)),
    Row("worlds", "30 N forward, always", pull=(30.0, 0.0)),
    Row("worlds", "30 N back, always", pull=(-30.0, 0.0)),
    Row("worlds", "20 N to the left, always", pull=(0.0, 20.0)),
    *(Row("ground", f"{way} 8 deg", velocity=(0.375, 0, 0), ground=f"plane:{g}") for way, g in SLOPES.items()),
    *(Row("ground", f"{way} 8 deg", "hrp2", (0.25, 0, 0), ground=f"plane:{g}") for way, g in SLOPES.items()),
    Row("ground", "up 3 deg, unknown", velocity=(0.375, 0, 0), ground="plane:slope=3", known=False),
    Row("ground", "down 3 deg, unknown", velocity=(0.375, 0, 0), ground="plane:slope=-3", known=False),
    Row("ground", "across 3 deg, unknown", velocity=(0.375, 0, 0), ground="plane:slope=3,direction=90", known=False),
    Row("ground", "5 stairs up, 0.15 m", ground="stairs:rise=0.15,run=0.35,start=0.6", **STAIRS),
    Row("ground", "5 stairs down, 0.08 m", ground="stairs:rise=-0.08,run=0.35,start=0.6", **STAIRS),
    Row("ground", "a kerb of 15 mm, unknown", velocity=(0.375, 0, 0), ground=KERB, known=False),
    Row("pushes", "10 N s to the left", velocity=(0.4, 0.0, 0.0), step_time=0.5, push=(0.0, 10.0)),
    Row("pushes", "20 N s to the right", velocity=(0.4, 0.0, 0.0), step_time=0.5, push=(0.0, -20.0)),
    Row("pushes", "20 N s forward", velocity=(0.4, 0.0, 0.0), step_time=0.5, push=(20.0, 0.0)),
    Row("pushes", "20 N s back", velocity=(0.4, 0.0, 0.0), step_time=0.5, push=(-20.0, 0.0)),
)
MOMENTUM = "momentum"
TURNING: tuple[tuple[str, dict[str, Any]], ...] = (
    ("0.4 m in 0.8 s", {}),
    ("0.4 m in 0.8 s, friction 0.2", {"friction": 0.2}),
    ("0.5 m in 0.6 s", {"velocity": (0.8333, 0.0, 0.0), "step_time": 0.6}),
    ("0.42 m in 0.6 s, friction 0.25", {"velocity": (0.7, 0.0, 0.0), "step_time": 0.6, "friction": 0.25}),
    ("0.45 m in 0.45 s", {"velocity": (1.0, 0.0, 0.0), "step_time": 0.45}),
    ("a curve of 1.3 m", {"velocity": (0.4, 0.0, 0.3)}),
)
ARM_ROWS = tuple(Row(MOMENTUM, name, arms=arms, **more) for name, more in TURNING for arms in ARM_SWINGS)
"""Arms against the momentum of the legs: only where they are asked for."""
TWISTS = "twists"
TWIST_ROWS = (
    Row(TWISTS, "a random velocity every 1.5 s", velocity=(0.4, 0.12, 0.4), step_time=0.0, changing=True),
    Row(TWISTS, "a random velocity every 1.5 s", "hrp2", (0.25, 0.08, 0.3), 0.0, changing=True),
)
"""Only where they are asked for; with hundreds of steps."""
STOPS, MAPS = "stops", "maps"
GROUPS = (*dict.fromkeys(r.group for r in ROWS), STOPS, MOMENTUM, TWISTS, MAPS)
PHASES = 8  # of a cycle of two steps in which the emergency stop is tried


def run_study(
    robot: str | None = None,
    steps: int = 20,
    seeds: int = 1,
    only: Sequence[str] = (),
    workers: int | None = None,
    show: Progress = silent,
    ground: str = "",
    resume: Path | None = None,
) -> StudyReport:
    """Walk all rows, or on one ground; or make the maps of who falls where, where they are asked for.

    Args:
        robot: only rows of this robot of the catalogue.
        steps: of each walk. seeds: how often, with other noise. only: groups of rows.
        workers: processes; None: one a core. show: told how far it is.
        ground: only walks on this ground, with a map of it and without; see `simulation.contact.ground_recipe`.
        resume: file that keeps the rows of the maps: what is in it is not walked again.

    Raises:
        UnknownNameError: a group or robot that has no row. ConfigError: a number out of range.
    """
    for group in only:
        if group not in GROUPS:
            raise UnknownNameError("group of walks", group, GROUPS)
    if not (0 < steps <= MOST_STEPS and 0 < seeds <= 1000):
        raise ConfigError(f"steps must be 1..{MOST_STEPS} and seeds 1..1000, got {steps} and {seeds}")
    robots = list(dict.fromkeys(r.robot for r in ROWS))
    if robot is not None and robot not in robots:
        raise UnknownNameError("robot that walks", robot, robots)
    rows = (*ROWS, *(ARM_ROWS if MOMENTUM in only else ()), *(TWIST_ROWS if TWISTS in only else ()))
    kept = KeptOutcomes(resume, "maps")
    if MAPS in only:
        if len(only) > 1 or ground:
            raise ConfigError("maps have rows of their own: ask for nothing else with them")
        return _maps(walk_maps([robot or "lola"], seeds, workers, kept, show))
    if resume is not None:
        raise ConfigError("only maps are resumed: give --only maps too")
    wanted = [r for r in rows if (not only or r.group in only) and robot in (None, r.robot)]
    if ground:
        if only:
            raise ConfigError("a ground has rows of its own: give ground or groups, not both")
        wanted = ground_rows(ground, robot or "lola")
    jobs: list[tuple[Any, ...]] = [(r, steps, seed) for r in wanted for seed in range(seeds)]
    if (STOPS in only or not (only or ground)) and robot in (None, "lola"):
        jobs += [(STOPS, k / PHASES * 2, seed) for k in range(PHASES) for seed in range(seeds)]
    found = list(_all(jobs, workers, show))
    walks = [(r, o) for r, o in zip(jobs, found, strict=True) if isinstance(o, WalkOutcome)]
    stops = [o for o in found if isinstance(o, dict)]
    parts: list[Table | str] = []
    for group in dict.fromkeys(job[0].group for job, _ in walks):
        table = _momentum_table if group == MOMENTUM else _table
        parts.append(table(group, [(job[0], o) for job, o in walks if job[0].group == group]))
    if stops:
        parts.append(_stop_table(stops))
    data = {
        "study": "walking",
        "steps": steps,
        "seeds": seeds,
        "walks": [{**asdict(job[0]), "seed": job[2], **asdict(o)} for job, o in walks],
        "stops": stops,
        "machine": machine(),
    }
    return StudyReport(data, [*parts, NOTE])


def _maps(rows: list[dict[str, Any]]) -> StudyReport:
    data = {"study": "walking", "maps": rows, "machine": machine()}
    return StudyReport(data, [*map_tables(rows), MAP_NOTE], pictures=lambda: {"maps.png": map_picture(rows)})


def _all(jobs: list[tuple[Any, ...]], workers: int | None, show: Progress) -> Iterator[WalkOutcome | dict[str, Any]]:
    """Outcomes in the order of the jobs, from worker processes."""
    count = workers or min(os.cpu_count() or 1, len(jobs))
    with ProcessPoolExecutor(max(count, 1)) as pool:
        for k, outcome in enumerate(pool.map(_do, jobs)):
            show((k + 1) / len(jobs), "walking")
            yield outcome


def _do(job: tuple[Any, ...]) -> WalkOutcome | dict[str, Any]:
    return try_stop(job[1], job[2]) if job[0] == STOPS else try_row(*job)


def ground_rows(ground: str, robot: str) -> list[Row]:
    """Walks of a robot on a ground, known and unknown; slowly on stairs.

    Raises:
        HumanoidError: the recipe is wrong.
    """
    ground_of(ground)
    speed = 0.375 if robot == "lola" else next(r for r in ROWS if r.robot == robot).velocity[0]
    speed, time = (0.29, 1.2) if ground.strip().startswith("stairs") else (speed, 0.8)
    velocity = (speed, 0.0, 0.0)
    return [
        Row("ground", ground, robot, velocity, time, ground=ground),
        Row("ground", f"{ground}, unknown", robot, velocity, time, ground=ground, known=False),
    ]


def make_walker(row: Row) -> Walker:
    """The walker of a row."""
    ground = ground_of(row.ground) if row.ground and row.known else None
    if not row.step_time:
        return Walker(load_robot(row.robot, "floating"), WalkSettings(arms=row.arms, ground=ground))
    times = StepTimes(nominal=row.step_time, shortest=min(row.step_time, 0.4), comfortable=10.0)
    settings = WalkSettings(times=times, arms=row.arms, ground=ground)
    walker = Walker(load_robot(row.robot, "floating"), settings)
    limits = walker.planner.limits
    long = abs(row.velocity[0]) * row.step_time
    walker.planner.limits = replace(limits, forward=max(limits.forward, long), backward=max(limits.backward, long))
    return walker


def try_row(row: Row, steps: int, seed: int) -> WalkOutcome:
    """Walk a row."""
    engine = SimulationConfig(
        row.robot,
        "floating",
        engine=row.engine,
        drives=row.drives,
        friction=row.friction,
        ground=row.ground,
        contact_stiffness=row.contact_stiffness,
    ).build(row.body.put_on(load_robot(row.robot, "floating")))
    stand_on_ground(engine)
    pushes: tuple[Push, ...] = ()
    if row.push is not None:
        forward, left = row.push
        pushes = (Push(6 * row.step_time, (forward / PUSHED, left / PUSHED, 0.0), PUSHED),)
    elif any(row.pull):
        pushes = (Push(0.0, (*row.pull, 0.0), 1e6),)
    noise = replace(NOISE, delay={sensor: old + row.delay for sensor, old in NOISE.delay.items()})
    program = random_twists(row.velocity, seed) if row.changing else steady(row.velocity)
    conditions = WalkConditions(program, steps, noise=noise, seed=seed, pushes=pushes)
    return walk(engine, make_walker(row), conditions)


def random_twists(most: Sequence[float], seed: int) -> Program:
    """A program: stand for 2 s, then another velocity (3,) every CHANGE seconds; backward half as fast as forward."""
    largest = np.array(most)

    def program(t: float) -> Sequence[float]:
        if t < 2.0:
            return (0.0, 0.0, 0.0)
        rng = np.random.default_rng((seed, int((t - 2.0) / CHANGE)))
        share = rng.uniform([-0.5, -1.0, -1.0], 1.0)
        return [float(x) for x in share * largest]

    return program


PUSHED = 0.1  # [s]


def try_stop(phase: float, seed: int) -> dict[str, Any]:
    """Stop Lola at 0.5 m/s as soon as possible, in a phase of the cycle 0..2, one a step.

    Returns:
        phase, fell (why; empty: it did not), steps and seconds from the call until it stands, at most [s] 10.
    """
    row = ROWS[0]
    engine, walker = SimulationConfig(row.robot, "floating").build(), make_walker(row)
    engine.step(300)
    sensors, called, begin, report = NoisySensors(engine, NOISE, seed), None, 0, None
    when = float("inf")
    while walker.t < (25.0 if called is None else called + 10.0):
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
        if report.steps >= 5 and walker.plan.phases and walker.plan.phases[0].step.foot == 0:
            when = min(when, walker.plan.phases[0].lift + phase * row.step_time)
        if called is None and walker.t >= when:
            walker.emergency_stop()
            called, begin = walker.t, report.steps
        if called is not None and report.state == WalkState.STAND:
            break
    assert report is not None
    took = walker.t - called if called is not None else float("nan")
    return {"phase": phase, "seed": seed, "fell": report.why, "steps": report.steps - begin, "seconds": took}


def _table(group: str, rows: list[tuple[Row, WalkOutcome]]) -> Table:
    columns = ["robot", "walk", "", "steps", "m/s", "xi error mm", "tilt deg", "sole mm", "slip mm", "torque %"]
    columns += ["full s", "odometry %", "real time"]
    body = []
    for r, o in rows:
        verdict = f"fell: {o.fell}" if o.fell else "walked"
        e = 1000 * o.dcm_error
        body.append(
            [
                r.robot,
                r.name,
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
    return Table(f"walking: {group}", columns, body)


def _momentum_table(group: str, rows: list[tuple[Row, WalkOutcome]]) -> Table:
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
    return Table("walking: arms against the momentum about the vertical", columns, body)


def _stop_table(stops: list[dict[str, Any]]) -> Table:
    body = [[s["phase"], s["fell"] or "stands", s["steps"], round(s["seconds"], 2)] for s in stops]
    return Table("Lola at 0.5 m/s, emergency stop in each phase of a cycle", ["phase", "", "steps", "seconds"], body)
