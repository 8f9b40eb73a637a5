"""The walks of `humanoid study walking`: what each row asks for, and how it is walked."""

from __future__ import annotations

import math
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from evidence.studies.walking.trial import (
    NOISE,
    Program,
    TrialPush,
    WalkConditions,
    WalkOutcome,
    WrongBody,
    steady,
    walk,
)
from humanoid_control.errors import UnknownNameError
from humanoid_control.robots import guess_robot_file, load_robot
from humanoid_control.robots.catalogue import urdf_path
from humanoid_control.robots.names import KNOWN
from humanoid_control.simulation import SimulationConfig
from humanoid_control.simulation.contact.ground_recipe import ground_of
from humanoid_control.walking import StepTimes, Walker, WalkSettings
from humanoid_control.walking.arm_swing import ARM_SWINGS
from humanoid_control.walking.feet import Feet
from humanoid_control.walking.ground.standing import stand_on_ground
from humanoid_control.walking.stabilizer import StabilizerGains
from humanoid_control.walking.step_adjustment import AdjustmentSettings

STEADY, TWISTS, STOP_AND_GO = "steady", "twists", "stop and go"  # programs of the velocity
CHANGE, WALKING, RESTING, HARASS = 1.5, 2.0, 3.0, 2.0  # [s]
PUSHED = 0.1  # [s]
BEGIN = 2.0  # [s] for which the robot stands first
STEPS, ENDLESS = 20, 10**9  # of a walk
RIGHT_BODY = WrongBody()
NEVER = 1e9  # [s] a time constant
USUAL = StabilizerGains()
OBSERVER, ADJUSTED = "disturbance observer", "adjusted steps"
ADJUSTED_TIMES = "adjusted times"
IN_THE_WAY = (OBSERVER, ADJUSTED, ADJUSTED_TIMES)  # blocks that matter only where something is
WITHOUT: dict[str, dict[str, Any]] = {
    "": {},
    "dynamics filter": {"horizon": 0.0},
    "feedback of the divergent component": {"gains": replace(USUAL, dcm=0.0, integral=0.0)},
    "foot force control": {"gains": replace(USUAL, ankle=0.0, height=0.0)},
    "landing where planned": {"gains": replace(USUAL, landing=NEVER)},
    OBSERVER: {"observer": None},
    ADJUSTED: {"adjustment": None},
    ADJUSTED_TIMES: {"adjustment": AdjustmentSettings(time=NEVER)},
}
"""Blocks of the walker that can be switched off: how its settings change."""
PLAN_WORDS = {"dcm": "closed form", "preview": "preview control", "mpc": "predictive control"}


@dataclass(frozen=True)
class StudyRow:
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
        program: of the velocity: STEADY; TWISTS: another one every CHANGE seconds, at random, `velocity` is the
            greatest; STOP_AND_GO: for WALKING seconds, then a rest of RESTING.
        pulled: where `pull` acts, 'root' or 'chest'.
        harassed: impulse of a push on the root link every HARASS seconds, in any direction, at random [N s].
        steps: of the walk; 0: as many as the study asks for. seconds: after which it is ended; 0: never.
        without: what is switched off of the walker, one of WITHOUT; empty: nothing.
        plan: of the centre of mass, as of WalkSettings.
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
    program: str = STEADY
    pulled: str = "root"
    harassed: float = 0.0
    steps: int = 0
    seconds: float = 0.0
    without: str = ""
    plan: str = "dcm"

    @property
    def title(self) -> str:
        """What is walked, by which plan where it is not the usual one, and without what."""
        by = f", {PLAN_WORDS[self.plan]}" if self.plan != "dcm" else ""
        return f"{self.name}{by}, without {self.without}" if self.without else f"{self.name}{by}"

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> StudyRow:
        """From plain values, as of `dataclasses.asdict`, also out of a file."""

        def plain(record: Mapping[str, Any]) -> dict[str, Any]:
            return {k: tuple(v) if isinstance(v, list) else v for k, v in record.items()}

        return cls(**{**plain(values), "body": WrongBody(**plain(values["body"]))})


SLOPES = {"up": "slope=8", "down": "slope=-8", "across": "slope=8,direction=90"}
WAVES = "waves:height=0.01,length=0.4"
PUSHED_STEPS = (0.5, 0.8)  # [s] quick steps, and those that Lola takes at that speed of her own
PUSHED_WAYS = {  # [N s]
    "10 N s to the left": (0.0, 10.0),
    "15 N s to the left": (0.0, 15.0),
    "20 N s to the left": (0.0, 20.0),
    "20 N s to the right": (0.0, -20.0),
    "20 N s forward": (20.0, 0.0),
    "20 N s back": (-20.0, 0.0),
}
KERB = "stairs:rise=0.015,run=0.5,steps=1,start=0.6"
STAIRS: dict[str, Any] = {"velocity": (0.29, 0.0, 0.0), "step_time": 1.2}
ROWS = (
    StudyRow("robots", "0.4 m in 0.8 s"),
    StudyRow("robots", "0.2 m in 0.8 s", "hrp2", (0.25, 0.0, 0.0)),
    StudyRow("robots", "0.24 m in 0.8 s", "suralp", (0.3, 0.0, 0.0)),
    StudyRow("robots", "0.3 m in 0.8 s", "wabian2", (0.375, 0.0, 0.0)),
    StudyRow("speed", "0.5 m in 0.6 s", velocity=(0.8333, 0.0, 0.0), step_time=0.6),
    StudyRow("speed", "0.45 m in 0.45 s, arms balance", velocity=(1.0, 0.0, 0.0), step_time=0.45, arms="task"),
    StudyRow("speed", "0.67 m/s", "hrp2", (0.67, 0.0, 0.0), 0.0),
    StudyRow("speed", "0.6 m/s", "wabian2", (0.6, 0.0, 0.0), 0.0),
    StudyRow("speed", "0.4 m/s", "suralp", (0.4, 0.0, 0.0), 0.0),
    StudyRow("ways", "backward", velocity=(-0.3, 0.0, 0.0)),
    StudyRow("ways", "sideways", velocity=(0.0, 0.12, 0.0)),
    StudyRow("ways", "turning on the spot", velocity=(0.0, 0.0, 0.2)),
    StudyRow("ways", "an arc", velocity=(0.3, 0.0, 0.2)),
    StudyRow("worlds", "MuJoCo", engine="mujoco"),
    StudyRow("worlds", "elastic drives", drives="elastic"),
    StudyRow("worlds", "friction 0.4", friction=0.4),
    StudyRow("worlds", "sensors 10 ms later", delay=0.01),
    StudyRow("worlds", "all masses +10 %", body=WrongBody(masses=1.1)),
    StudyRow("worlds", "all masses -10 %", body=WrongBody(masses=0.9)),
    StudyRow("worlds", "centre of mass 15 mm ahead", body=WrongBody(shift=(0.015, 0.0, 0.0))),
    StudyRow("worlds", "centre of mass 15 mm back", body=WrongBody(shift=(-0.015, 0.0, 0.0))),
    StudyRow("worlds", "centre of mass 15 mm to the left", body=WrongBody(shift=(0.0, 0.015, 0.0))),
    StudyRow("worlds", "5 kg in the left hand", body=WrongBody(payload=5.0)),
    StudyRow("worlds", "30 N forward, always", pull=(30.0, 0.0)),
    StudyRow("worlds", "30 N back, always", pull=(-30.0, 0.0)),
    StudyRow("worlds", "20 N to the left, always", pull=(0.0, 20.0)),
    *(StudyRow("ground", f"{way} 8 deg", velocity=(0.375, 0, 0), ground=f"plane:{g}") for way, g in SLOPES.items()),
    *(StudyRow("ground", f"{way} 8 deg", "hrp2", (0.25, 0, 0), ground=f"plane:{g}") for way, g in SLOPES.items()),
    StudyRow("ground", "up 3 deg, unknown", velocity=(0.375, 0, 0), ground="plane:slope=3", known=False),
    StudyRow("ground", "down 3 deg, unknown", velocity=(0.375, 0, 0), ground="plane:slope=-3", known=False),
    StudyRow(
        "ground", "across 3 deg, unknown", velocity=(0.375, 0, 0), ground="plane:slope=3,direction=90", known=False
    ),
    StudyRow("ground", "5 stairs up, 0.15 m", ground="stairs:rise=0.15,run=0.35,start=0.6", **STAIRS),
    StudyRow("ground", "5 stairs down, 0.10 m", ground="stairs:rise=-0.1,run=0.35,start=0.6", **STAIRS),
    StudyRow("ground", "5 stairs up, 0.10 m", "hrp2", ground="stairs:rise=0.1,run=0.35,start=0.6", **STAIRS),
    StudyRow("ground", "5 stairs down, 0.10 m", "hrp2", ground="stairs:rise=-0.1,run=0.35,start=0.6", **STAIRS),
    StudyRow("ground", "five times softer", contact_stiffness=2.0e4),
    StudyRow("ground", "waves of 10 mm by 0.4 m, unknown", velocity=(0.375, 0, 0), ground=WAVES, known=False),
    StudyRow("ground", "a kerb of 15 mm, unknown", velocity=(0.375, 0, 0), ground=KERB, known=False),
    *(
        StudyRow("pushes", f"{name}, steps of {time:g} s", velocity=(0.4, 0.0, 0.0), step_time=time, push=push)
        for time in PUSHED_STEPS
        for name, push in PUSHED_WAYS.items()
    ),
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
ARM_ROWS = tuple(StudyRow(MOMENTUM, name, arms=arms, **more) for name, more in TURNING for arms in ARM_SWINGS)
"""Arms against the momentum of the legs: only where they are asked for."""


def step_time_at(speed: float) -> float:
    """Time of Lola's steps at a speed [m/s], as the study walks them [s]."""
    return 0.8 if speed <= 0.5 else 0.6 if speed <= 0.83 else 0.45


FAST: dict[str, Any] = {"velocity": (1.0, 0.0, 0.0), "step_time": 0.45, "arms": "task"}
PUSHED_WALK: dict[str, Any] = {"velocity": (0.4, 0.0, 0.0), "step_time": 0.5}
WORLDS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("", {}),
    (", rigid drives", {"drives": "rigid"}),
    (", elastic drives", {"drives": "elastic"}),
    (", MuJoCo", {"engine": "mujoco"}),
)
TOP = {"hrp2": 0.67, "wabian2": 0.6, "suralp": 0.4}  # [m/s] that is asked of them
FASTER = {"hrp2": 0.83, "wabian2": 0.8, "suralp": 0.6}
LONG, TWISTS_GROUP, TROUBLE, STOP_GO, BLOCKS = "long", "twists", "trouble", "stopgo", "blocks"
TEN_MINUTES, FIVE_MINUTES = 600.0, 300.0  # [s]
LONG_ROWS = (
    *(StudyRow(LONG, f"0.4 m in 0.8 s{name}", steps=1000, **world) for name, world in WORLDS),
    *(StudyRow(LONG, f"1 m/s{name}", steps=500, **FAST, **world) for name, world in WORLDS if name != ", rigid drives"),
    *(StudyRow(LONG, f"{speed:g} m/s", robot, (speed, 0.0, 0.0), 0.0, steps=100) for robot, speed in TOP.items()),
    StudyRow(
        TWISTS_GROUP, "random velocities, 10 min", "lola", (0.4, 0.12, 0.4), 0.0, program=TWISTS, seconds=TEN_MINUTES
    ),
    StudyRow(
        TWISTS_GROUP, "random velocities, 10 min", "hrp2", (0.25, 0.08, 0.3), 0.0, program=TWISTS, seconds=TEN_MINUTES
    ),
    StudyRow(TROUBLE, "30 N forward at the chest", pull=(30.0, 0.0), pulled="chest", steps=100),
    StudyRow(TROUBLE, "30 N back at the chest", pull=(-30.0, 0.0), pulled="chest", steps=100),
    StudyRow(TROUBLE, "30 N to the left at the chest", pull=(0.0, 30.0), pulled="chest", steps=100),
    StudyRow(TROUBLE, "10 N s every 2 s", harassed=10.0, seconds=FIVE_MINUTES, **PUSHED_WALK),
    StudyRow(TROUBLE, "8 N s every 2 s", "hrp2", (0.25, 0.0, 0.0), harassed=8.0, seconds=FIVE_MINUTES),
    *(StudyRow(BLOCKS, "0.4 m in 0.8 s", without=block) for block in WITHOUT if block not in IN_THE_WAY),
    *(StudyRow(BLOCKS, "20 N to the left, always", pull=(0.0, 20.0), without=block) for block in ("", OBSERVER)),
    *(StudyRow(BLOCKS, "20 N s to the left", push=(0.0, 20.0), without=b, **PUSHED_WALK) for b in ("", ADJUSTED)),
    StudyRow(STOP_GO, "200 stops", program=STOP_AND_GO, seconds=200 * (WALKING + RESTING)),
)
"""Only where they are asked for; most take minutes. BLOCKS: with and without each block of the walker."""

PLANNERS, FURTHER, ARM_SPEED = "planners", "further", "armspeed"
SIDES = {"forward": (1.0, 0.0), "back": (-1.0, 0.0), "to the left": (0.0, 1.0), "to the right": (0.0, -1.0)}
PLANNED = (("dcm", ""), ("dcm", ADJUSTED_TIMES), ("preview", ""), ("mpc", ""))  # plan, without what
PLANNER_ROWS = tuple(
    StudyRow(PLANNERS, f"{j:g} N s {side}", push=(j * x, j * y), plan=plan, without=without, **PUSHED_WALK)
    for j in (20.0, 25.0)
    for side, (x, y) in SIDES.items()
    for plan, without in PLANNED
)
"""The same pushes with each way to plan, and with steps that are adjusted in place only."""
SLIPPERY, GRIPPING = 0.25, 0.8  # friction
ARM_SPEEDS = {GRIPPING: (0.6, 0.7, 0.83, 0.9, 1.0, 1.1, 1.2), SLIPPERY: (0.3, 0.4, 0.5, 0.6, 0.7, 0.8)}  # [m/s]
ARM_SPEED_ROWS = tuple(
    StudyRow(
        ARM_SPEED, f"{v:g} m/s, friction {mu:g}", "lola", (v, 0.0, 0.0), step_time_at(v), arms, friction=mu, steps=40
    )
    for mu, speeds in ARM_SPEEDS.items()
    for arms in ARM_SWINGS
    for v in speeds
)
"""How fast Lola walks with each way to swing the arms, on ground that holds and on ground that does not."""
STEEP: dict[str, Any] = {"velocity": (0.3, 0.0, 0.0)}
TALL = "stairs:run=0.28,start=0.6,steps=10,"
TALL_STEPS: dict[str, Any] = {"velocity": (0.28 / 1.2, 0.0, 0.0), "step_time": 1.2}
FURTHER_ROWS = (
    StudyRow(FURTHER, "1.4 m/s", velocity=(1.4, 0.0, 0.0), step_time=0.45, arms="task", steps=100),
    *(StudyRow(FURTHER, f"{v:g} m/s", r, (v, 0.0, 0.0), 0.0, steps=100) for r, v in FASTER.items()),
    *(StudyRow(FURTHER, f"{way} 15 deg", ground=f"plane:{SLOPES[way].replace('8', '15')}", **STEEP) for way in SLOPES),
    *(
        StudyRow(
            FURTHER, f"{way} 5 deg, unknown", ground=f"plane:{SLOPES[way].replace('8', '5')}", known=False, **STEEP
        )
        for way in SLOPES
    ),
    *(
        StudyRow(FURTHER, f"10 stairs {way}, 0.185 m by 0.28 m", ground=f"{TALL}rise={rise}", **TALL_STEPS)
        for way, rise in (("up", 0.185), ("down", -0.185))
    ),
    *(
        StudyRow(FURTHER, f"5 stairs {way}, 0.15 m", robot, ground=f"stairs:rise={rise},run=0.35,start=0.6", **STAIRS)
        for robot, way, rise in (("lola", "down", -0.15), ("hrp2", "up", 0.15), ("hrp2", "down", -0.15))
    ),
    StudyRow(FURTHER, "a kerb of 30 mm, unknown", ground=KERB.replace("0.015", "0.03"), known=False, **STEEP),
    StudyRow(FURTHER, "waves of 25 mm by 0.4 m, unknown", ground=WAVES.replace("0.01", "0.025"), known=False, **STEEP),
    StudyRow(FURTHER, "friction 0.2, arms balance", friction=0.2, arms="task"),
    StudyRow(FURTHER, "friction 0.1, arms balance", velocity=(0.375, 0.0, 0.0), friction=0.1, arms="task"),
    StudyRow(FURTHER, "twenty times softer", contact_stiffness=5.0e3),
    StudyRow(FURTHER, "36 N s to the left", push=(0.0, 36.0), **PUSHED_WALK),
    StudyRow(FURTHER, "36 N s to the right", push=(0.0, -36.0), **PUSHED_WALK),
    StudyRow(FURTHER, "45 N s forward", push=(45.0, 0.0), **PUSHED_WALK),
    StudyRow(FURTHER, "30 N s forward", "hrp2", (0.25, 0.0, 0.0), push=(30.0, 0.0)),
    *(
        StudyRow(FURTHER, "random velocities, 10 min", robot, most, 0.0, program=TWISTS, seconds=TEN_MINUTES)
        for robot, most in (("suralp", (0.2, 0.06, 0.2)), ("wabian2", (0.3, 0.08, 0.3)))
    ),
    StudyRow(FURTHER, "10000 steps of 0.4 m in 0.8 s", steps=10_000),
)
"""Beyond what is aimed at: what falls here tells where the limits are."""


def ground_rows(ground: str, robot: str) -> list[StudyRow]:
    """Walks of a robot on a ground, known and unknown; slowly on stairs.

    Raises:
        HumanoidError: the recipe is wrong.
    """
    ground_of(ground)
    speed = 0.375 if robot == "lola" else next(r for r in ROWS if r.robot == robot).velocity[0]
    speed, time = (0.29, 1.2) if ground.strip().startswith("stairs") else (speed, 0.8)
    velocity = (speed, 0.0, 0.0)
    return [
        StudyRow("ground", ground, robot, velocity, time, ground=ground),
        StudyRow("ground", f"{ground}, unknown", robot, velocity, time, ground=ground, known=False),
    ]


STRANGERS_SPEED = 0.15  # [m/s]
WALKERS = tuple(dict.fromkeys(r.robot for r in ROWS))  # of the catalogue


def is_stranger(robot: str) -> bool:
    """Whether a robot is the path of a URDF, and not one of the catalogue that walks.

    Raises:
        UnknownNameError: neither. RobotError: a path at which there is no URDF file.
    """
    if robot in WALKERS:
        return False
    if robot in KNOWN or not (Path(robot).suffix or "/" in robot or os.path.exists(os.path.expanduser(robot))):
        raise UnknownNameError("robot that walks", robot, WALKERS, hint="(or give the path of a URDF)")
    urdf_path(robot)
    return True


def stranger_rows(robot: str, ground: str = "") -> list[StudyRow]:
    """Walks of a robot of which only a URDF is known: times and lengths of its steps are the walker's own.

    Args:
        robot: path of its URDF. ground: to walk on, known and unknown; empty: the level one.

    Raises:
        HumanoidError: the recipe is wrong.
    """
    velocity = (STRANGERS_SPEED, 0.0, 0.0)
    if not ground:
        return [StudyRow("robots", f"{STRANGERS_SPEED:g} m/s", robot, velocity, 0.0)]
    ground_of(ground)
    known = StudyRow("ground", ground, robot, velocity, 0.0, ground=ground)
    return [known, replace(known, name=f"{ground}, unknown", known=False)]


@contextmanager
def ready_to_walk(robot: str) -> Iterator[str]:
    """Yield the path of a robot that may have no robot file.

    Without a robot file next to the URDF, one is drafted as by `humanoid robots map`. It is written with a copy of the
    URDF into a folder that exists as long as the context, so the user's folder stays unchanged.

    Raises:
        RobotError: no URDF, no arms or legs in it, or no soles, in one line.
    """
    path = urdf_path(robot)
    with tempfile.TemporaryDirectory() as folder:
        if not path.with_suffix(".yaml").is_file():
            copy = Path(folder) / path.name
            guess_robot_file(path, copy.parent)
            shutil.copyfile(path, copy)
            path = copy
        Feet(load_robot(path, "floating"))
        yield str(path)


def make_walker(row: StudyRow) -> Walker:
    """The walker of a row."""
    ground = ground_of(row.ground) if row.ground and row.known else None
    settings = WalkSettings(arms=row.arms, ground=ground, plan=row.plan, **WITHOUT[row.without])
    if not row.step_time:
        return Walker(load_robot(row.robot, "floating"), settings)
    times = StepTimes(nominal=row.step_time, shortest=min(row.step_time, 0.4), comfortable=10.0)
    walker = Walker(load_robot(row.robot, "floating"), replace(settings, times=times))
    limits = walker.planner.limits
    long = abs(row.velocity[0]) * row.step_time
    walker.planner.limits = replace(limits, forward=max(limits.forward, long), backward=max(limits.backward, long))
    return walker


def try_row(row: StudyRow, steps: int | None, seed: int) -> WalkOutcome:
    """Walk a row; steps: None: as many as it says."""
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
    pushes: tuple[TrialPush, ...] = ()
    if row.push is not None:
        forward, left = row.push
        pushes = (TrialPush(6 * row.step_time, (forward / PUSHED, left / PUSHED, 0.0), PUSHED),)
    elif any(row.pull):
        chest = engine.robot.model.frames[engine.robot.points["sternum"]]
        link = engine.robot.model.frames[chest.parentFrame].name if row.pulled == "chest" else ""
        pushes = (TrialPush(0.0, (*row.pull, 0.0), 1e6, link),)
    elif row.harassed:
        pushes = random_pushes(row.harassed, row.seconds, seed)
    noise = replace(NOISE, delay={sensor: old + row.delay for sensor, old in NOISE.delay.items()})
    programs = {STEADY: steady(row.velocity), TWISTS: random_twists(row.velocity, seed)}
    programs[STOP_AND_GO] = stop_and_go(row.velocity)
    count = steps or row.steps or (ENDLESS if row.seconds else STEPS)
    conditions = WalkConditions(programs[row.program], count, row.seconds or 1e4, noise, seed, pushes)
    return walk(engine, make_walker(row), conditions)


def random_twists(most: Sequence[float], seed: int) -> Program:
    """A program: stand, then another velocity (3,) every CHANGE seconds; backward half as fast as forward."""
    largest = np.array(most)

    def program(t: float) -> Sequence[float]:
        if t < BEGIN:
            return (0.0, 0.0, 0.0)
        rng = np.random.default_rng((seed, int((t - BEGIN) / CHANGE)))
        share = rng.uniform([-0.5, -1.0, -1.0], 1.0)
        return [float(x) for x in share * largest]

    return program


def stop_and_go(velocity: Sequence[float]) -> Program:
    """A program: stand, then again and again walk with one velocity (3,) for WALKING seconds and rest for RESTING."""
    return lambda t: velocity if t >= BEGIN and (t - BEGIN) % (WALKING + RESTING) < WALKING else (0.0, 0.0, 0.0)


def random_pushes(impulse: float, seconds: float, seed: int) -> tuple[TrialPush, ...]:
    """A push on the root link every HARASS seconds, in any horizontal direction, at random [N s]."""
    rng, force = np.random.default_rng((seed, 1)), impulse / PUSHED
    times = np.arange(HARASS, seconds, HARASS) + rng.uniform(0.0, 0.5 * HARASS)
    angles = rng.uniform(0.0, 2 * math.pi, len(times))
    return tuple(
        TrialPush(float(t), (force * math.cos(a), force * math.sin(a), 0.0), PUSHED)
        for t, a in zip(times, angles, strict=True)
    )
