"""`humanoid study perform`: how feasible motions are, how they are danced, and what each block is worth.

Every performance is a simulation by noisy sensors without any truth in the controller. The same motion is also replayed
open loop, next to the retargeted one. A condition is a world that neither motion nor controller knows. An ablation
switches one block off and keeps everything else.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from evidence.studies.report import KeptOutcomes, Progress, StudyReport, as_markdown, silent
from evidence.studies.walking.trial import NOISE, NoisySensors, WrongBody
from humanoid_control.errors import ConfigError, HumanoidError, UnknownNameError
from humanoid_control.mocap import load_body_points
from humanoid_control.paths import test_data
from humanoid_control.performing import (
    ControllerSettings,
    DynamicMotion,
    FeasibilitySettings,
    OpenLoop,
    WholeBodyController,
    feasibility_row,
    make_feasible,
    perform,
    retargeted_motion,
)
from humanoid_control.retargeting import CLIP, WholeBodyTask, WholeBodyTrajectory
from humanoid_control.robots import Robot, load_robot
from humanoid_control.robots.catalogue import urdf_path
from humanoid_control.robots.humanoids import found_humanoids
from humanoid_control.simulation import ENGINES, Engine, SimulationConfig
from humanoid_control.simulation.sensors.sensor_model import Imperfection
from humanoid_control.terminal import ReportTable, machine
from humanoid_control.walking.gait import GRAVITY
from humanoid_control.warm_up import PERFORMING, SIMULATION, WHOLE_BODY, compile_first

OURS, OTHER = ("hrp2", "lola", "wabian2"), "g1"
RECORDING = "mocap/dance_markers/dance1.trc"  # of $HUMANOID_TEST_DATA
FEASIBILITY, PERFORMANCES, CONDITIONS = "feasibility", "performances", "conditions"
OPEN, ABLATIONS = "open", "ablations"
PARTS = (FEASIBILITY, PERFORMANCES, CONDITIONS, OPEN, ABLATIONS)
FEASIBLE, RETARGETED, COMPLETE = "feasible", "retargeted", "complete"
BLOCKS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    COMPLETE: ({}, {}),
    "one pass": ({"passes": 1}, {}),
    "no margin": ({"margin": 0.0, "margin_least": 0.0}, {}),
    "no double support": ({"double_support": 0.0}, {}),
    "no toe-off": ({"toe_off": False}, {}),
    "no torque limit margin": ({"torque_share": 1e3}, {}),
    "no local pace": ({"pace": 1.0}, {}),
    "no feedback of the DCM": ({}, {"center": 0.0, "dcm_gain": 0.0}),
    "no momentum task": ({}, {"momentum": 0.0}),
    "no contacts by force": ({}, {"early": 2.0, "wait": 0.0, "reach": 0.0, "felt": 0.0}),
    "no shift of the plan": ({}, {"shift": 1e6}),
    "no load ramps": ({}, {"touch": 1e-3, "lift": 0.0}),
}
"""A block, and the settings of the motion and of the controller that switch it off."""


@dataclass(frozen=True)
class Condition:
    """A world that the controller does not know.

    Attributes:
        masses: of all links, as a multiple. delay: of all sensors [s].
    """

    friction: float = SimulationConfig().friction
    masses: float = 1.0
    delay: float = NOISE.delay["joint_states"]

    def world(self, name: str, engine: str) -> Engine:
        """The robot in this world."""
        robot = WrongBody(masses=self.masses).put_on(load_robot(name, "floating"))
        return SimulationConfig(name, "floating", engine, friction=self.friction).build(robot)

    @property
    def sensors(self) -> Imperfection:
        """The errors of the sensors, as late as they are here."""
        return replace(NOISE, delay=dict.fromkeys(NOISE.delay, self.delay))


USUAL = Condition()
WORLDS = {
    "friction 0.4": Condition(friction=0.4),
    "masses +10 %": Condition(masses=1.1),
    "masses -10 %": Condition(masses=0.9),
    "sensors 8 ms late": Condition(delay=0.008),
    "all three, +10 %": Condition(0.4, 1.1, 0.008),
    "all three, -10 %": Condition(0.4, 0.9, 0.008),
}
CAUGHT = (HumanoidError, ArithmeticError, ValueError, IndexError, KeyError)
PUSHED, EVERY, LASTS = 6.0, 3.0, 0.1  # [N s] of a push of an ablation, [s] from push to push, [s] each
FEASIBILITY_COLUMNS = (
    ("infeasible %", "infeasible_percent"),
    ("max mm", "infeasible_mm"),
    ("wrench missing %", "missing_percent"),
    ("torque > limit %", "torque_beyond_percent"),
    ("torque / limit", "torque_share"),
    ("moved, root cm", "moved_root_cm"),
    ("world cm", "moved_world_cm"),
    ("path kept %", "way_percent"),
    ("slowest pace", "slowest_pace"),
    ("flight filled s", "filled_s"),
    ("CoM missed mm", "center_error_mm"),
    ("frames/s", "frames_per_second"),
)
NOTE = (
    "infeasible: frames with the zero-moment point more than 1 mm outside the support. wrench missing: more than 5 % "
    "of the weight, or of the weight times half a metre. made: steps in which the foot left the floor and landed; "
    "placed: within 30 mm of the planned position relative to the other foot; on the beat: within 0.1 s of the plan; "
    "counts of all seeds together. slip, tilt: maxima of all seeds; tracking, DCM error: means. tick: processor "
    "time, median of the medians. Conditions: a world that neither the motion nor the controller knows. Ablations: one "
    "block disabled at a time, with pushes of 6 N s every 3 s."
)


def run_study(
    robot: Sequence[str] = (),
    clips: Sequence[str] = (),
    only: Sequence[str] = (),
    engine: str = "multibody",
    seeds: int = 3,
    seconds: float = 0.0,
    resume: Path | None = None,
    show: Progress = silent,
) -> StudyReport:
    """Make clips feasible for robots, perform them, and switch blocks off.

    Args:
        robot: names or paths; default: hrp2, lola, wabian2, and g1 where its model is here.
        clips: built in or files; default: the dance, and dance1 of the test data where it is here.
        only: some of PARTS. engine: one of ENGINES, or 'both'. seeds: of the noise.
        seconds: of each clip, from its beginning; 0: all of it.
        resume: file that keeps outcomes.

    Raises:
        ConfigError: numbers out of range; `resume` holds something else. UnknownNameError: a part or engine.
        ClipError, RobotError: what cannot be read.
    """
    for part in only:
        if part not in PARTS:
            raise UnknownNameError("part of the study", part, PARTS)
    if engine not in (*ENGINES, "both"):
        raise UnknownNameError("engine", engine, (*ENGINES, "both"))
    if not seeds >= 1:
        raise ConfigError(f"--seeds must be 1 or more, got {seeds}")
    if seconds and not seconds >= 1.0:
        raise ConfigError(f"--seconds must be 1 or more, got {seconds:g}")
    names = list(dict.fromkeys(robot)) or [*OURS, *([OTHER] if OTHER in found_humanoids() else [])]
    recording = test_data(RECORDING)
    clips = list(dict.fromkeys(clips)) or ["dance", *([str(recording)] if recording is not None else [])]
    for name in names:
        urdf_path(name)
    for clip in clips:
        load_body_points(clip)
    compile_first(WHOLE_BODY, PERFORMING, SIMULATION)
    engines = list(ENGINES) if engine == "both" else [engine]
    kept, parts = KeptOutcomes(resume, "performances"), only or PARTS
    jobs = _jobs(parts, names, clips, engines, seeds, seconds)
    outcomes = kept.all(jobs, _try, None, lambda share: show(share, "performances"))
    rows = [dict(zip(JOB, job, strict=True)) | outcome for job, outcome in zip(jobs, outcomes, strict=True)]
    found: list[ReportTable | str] = [
        t for part in parts for t in _tables(part, [r for r in rows if r["part"] == part])
    ]
    found += [f"{Path(r['clip']).stem}, {r['robot']}, {r['what']}: {r['refused']}" for r in rows if r.get("refused")]
    found.append(NOTE)
    data = {"study": "perform", "clips": clips, "robots": names, "rows": rows, "machine": machine()}
    return StudyReport(data, found, pictures=lambda: {"perform.md": as_markdown("Performances", HEAD, found)})


HEAD = "`humanoid study perform -o FILE.md` writes this page; options select robots and clips."
JOB = ("part", "clip", "robot", "what", "engine", "seed", "seconds")


def _jobs(
    parts: Sequence[str],
    robots: Sequence[str],
    clips: Sequence[str],
    engines: Sequence[str],
    seeds: int,
    seconds: float,
) -> list[tuple[Any, ...]]:
    """All jobs, those of one motion side by side; ablations of the first robot and the first clip only."""
    jobs: list[tuple[Any, ...]] = []
    for clip in clips:
        for name in robots:
            if FEASIBILITY in parts:
                jobs += [(FEASIBILITY, clip, name, what, "", 0, seconds) for what in (RETARGETED, FEASIBLE)]
            if PERFORMANCES in parts:
                jobs += [(PERFORMANCES, clip, name, FEASIBLE, e, k, seconds) for e in engines for k in range(seeds)]
            if CONDITIONS in parts:
                jobs += [
                    (CONDITIONS, clip, name, c, e, k, seconds) for c in WORLDS for e in engines for k in range(seeds)
                ]
            if OPEN in parts:
                both = [(what, e) for what in (FEASIBLE, RETARGETED) for e in engines]
                jobs += [(OPEN, clip, name, what, e, 0, seconds) for what, e in both]
    if ABLATIONS in parts:
        one = [(block, k) for block in BLOCKS for k in range(seeds)]
        jobs += [(ABLATIONS, clips[0], robots[0], block, engines[0], k, seconds) for block, k in one]
    return jobs


# -------- One job


def _try(job: tuple[Any, ...]) -> dict[str, Any]:
    """The outcome of a job; what is refused is an outcome, not an error."""
    try:
        return outcome_of(*job)
    except CAUGHT as e:
        return {"refused": f"{e.__class__.__name__}: {e}"}


def outcome_of(part: str, clip: str, name: str, what: str, engine: str, seed: int, seconds: float) -> dict[str, Any]:
    """Numbers of one motion, or of one performance of it.

    Args:
        part: of PARTS. clip, name: which motion of which robot. what: FEASIBLE, RETARGETED, a block of BLOCKS or a
            condition of WORLDS.
        engine, seed: of the world and of the noise. seconds: of the clip.
    """
    changed, controller = BLOCKS.get(what, ({}, {}))
    motion, spent = _motion(clip, name, seconds, what == RETARGETED, tuple(changed.items()))
    robot = load_robot(name, "floating")
    numbers = feasibility_row(motion, robot.mass * GRAVITY) | {"frames_per_second": round(len(motion) / spent)}
    if part == FEASIBILITY:
        return numbers
    condition = WORLDS.get(what, USUAL)
    world = condition.world(name, engine)
    if part == OPEN:
        return perform(motion, world, OpenLoop(motion)).row()
    settings = replace(ControllerSettings(), **controller)
    performer = WholeBodyController(
        load_robot(name, "floating"), motion, settings, NoisySensors(world, condition.sensors, seed).read
    )
    outcome = perform(motion, world, performer, _pushes if part == ABLATIONS else None)
    return outcome.row() | performer.numbers() | {"feasibility": numbers}


def _pushes(t: float, engine: Any) -> None:
    """A push every three seconds, in turn along x, y, -x, -y."""
    count = round(t / EVERY)
    if count > 0 and abs(t - count * EVERY) < 1e-4:
        force = PUSHED / LASTS * np.array([[1, 0], [0, 1], [-1, 0], [0, -1]])[count % 4]
        engine.push(engine.robot.root_link, np.array([*force, 0.0, 0.0, 0.0, 0.0]), LASTS)


@functools.lru_cache(4)
def _retargeted(clip: str, name: str, seconds: float) -> tuple[Robot, WholeBodyTrajectory]:
    robot = load_robot(name, "floating")
    trajectory = WholeBodyTask.of(load_body_points(clip), robot).solve(None, None, CLIP).trajectory
    return robot, first_seconds(trajectory, seconds)


@functools.lru_cache(4)
def _motion(
    clip: str, name: str, seconds: float, retargeted: bool, changed: tuple[tuple[str, Any], ...]
) -> tuple[DynamicMotion, float]:
    """A motion, and the time on the processor that it took [s]; the same for all seeds and engines of a process."""
    robot, trajectory = _retargeted(clip, name, seconds)
    settings, begin = replace(FeasibilitySettings(), **dict(changed)), time.process_time()
    motion = (retargeted_motion if retargeted else make_feasible)(trajectory, robot, settings)
    return motion, max(time.process_time() - begin, 1e-9)


def first_seconds(trajectory: WholeBodyTrajectory, seconds: float) -> WholeBodyTrajectory:
    """The beginning of a trajectory; all of it where it is no longer, or `seconds` is 0."""
    T, n = len(trajectory.positions), round(seconds * trajectory.rate) + 1
    if not seconds or n >= T:
        return trajectory
    cut = {f.name: getattr(trajectory, f.name) for f in fields(trajectory)}
    shorter: dict[str, Any] = {k: v[:n] for k, v in cut.items() if isinstance(v, np.ndarray) and len(v) == T}
    return replace(trajectory, **shorter)


# -------- Tables


def _tables(part: str, rows: Sequence[Mapping[str, Any]]) -> list[ReportTable]:
    """The tables of a part, a clip each."""
    out = []
    for clip in dict.fromkeys(r["clip"] for r in rows):
        mine = [r for r in rows if r["clip"] == clip and not r.get("refused")]
        title = f"{part}, {Path(clip).stem}"
        if part == FEASIBILITY:
            heads = ["robot", "motion", *(head for head, _ in FEASIBILITY_COLUMNS)]
            cells = [[r["robot"], r["what"], *(r[key] for _, key in FEASIBILITY_COLUMNS)] for r in mine]
            out.append(ReportTable(title, heads, cells))
            continue
        groups = dict.fromkeys((r["robot"], r["what"], r["engine"]) for r in mine)
        cells = [[*g, *_summary([r for r in mine if (r["robot"], r["what"], r["engine"]) == g])] for g in groups]
        third = {ABLATIONS: "block", CONDITIONS: "condition"}
        out.append(ReportTable(title, ["robot", third.get(part, "motion"), "engine", *SUMMARY], cells))
    return out


SUMMARY = (
    "danced",
    "first fall s",
    "steps",
    "made",
    "placed",
    "on the beat",
    "slip mm",
    "tilt deg",
    "root error cm",
    "world cm",
    "torque-saturated %",
    "DCM error mm",
    "tick ms",
)


def _summary(rows: Sequence[Mapping[str, Any]]) -> list[Any]:
    """Cells of the performances of one motion by all seeds."""
    falls = [r["fell_s"] for r in rows if not r["survived"]]
    total = [sum(r[key] for r in rows) for key in ("steps", "made", "placed", "on_beat")]
    most = [max(r[key] for r in rows) for key in ("slip_mm", "tilt_deg")]
    keys = ("tracking_root_cm", "tracking_world_cm", "saturated_percent")
    mean = [round(float(np.mean([r[key] for r in rows])), 2) for key in keys]
    errors = [r["dcm_error_mm"] for r in rows if "dcm_error_mm" in r]
    error = " / ".join(f"{x:.1f}" for x in np.mean(errors, axis=0)) if errors else "-"
    ticks = [r["tick_ms"] for r in rows if "tick_ms" in r]
    tick = round(float(np.median(ticks)), 2) if ticks else "-"
    return [f"{len(rows) - len(falls)} of {len(rows)}", min(falls, default="-"), *total, *most, *mean, error, tick]
