"""Experiments of `humanoid study tendon_control`: each a table of medians over seeds, and the worst joint of all.

C1 laws, angles and errors of the model; C2 faults in motion; C3 pushes and payloads; C4 what tendons can hold; C5
learnt body image; C6 unknown initial posture; C7 stops and heat; C8 MuJoCo with the same winches; C9 another
maker's arm; C10 larger shares of the range of motion.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from evidence.studies.tendon_control.affine import BIAS, hold_by_affine
from evidence.studies.tendon_control.closed_loop import ClosedLoop, LoopSettings, PlantErrors
from evidence.studies.tendon_control.foreign import LEAST, MuscleArm, arm_files
from humanoid_control.errors import ConfigError, UnknownNameError
from humanoid_control.robots import Robot, load_robot
from humanoid_control.robots.tendons import tendon_geometry
from humanoid_control.simulation.drives.winches import units_of
from humanoid_control.tendons.control.body_image import BodyImage
from humanoid_control.tendons.control.commands import HOLD, OFF, PAY_OUT, WinchCommand
from humanoid_control.tendons.control.holdable import HoldableSet, losses_by_tendon, ranges_held, tension_range
from humanoid_control.tendons.control.settings import WEIGHTS
from humanoid_control.tendons.control.supervision import Heat

ERRORS = (
    PlantErrors("exact"),
    PlantErrors("arms 2 %", moment_arm=0.02),
    PlantErrors("arms 5 %", moment_arm=0.05),
    PlantErrors("wires 30 %", stiffness=0.3),
    PlantErrors("path friction 5 %", path_friction=0.05),
    PlantErrors("attachments 3 mm", attachments=3e-3),
)
LOOPS = (
    ("length", "none"),
    ("stiffness", "none"),
    ("torque", "true"),
    ("torque", "absolute"),
    ("hybrid", "true"),
    ("hybrid", "absolute"),
    ("hybrid", "r2"),
    ("hybrid", "r3"),
)
COLUMNS = ("hold", "worst", "moving", "swing", "peak", "estimate")
UNITS = "hold, worst joint, moving, swing, error of the estimate [deg]; peak tension [N]"


@dataclass(frozen=True)
class ControlResult:
    """One experiment: its table.

    Attributes:
        name, title: of it. columns: of the table, after the first. rows: (name, numbers by column).
        notes: lines below the table.
    """

    name: str
    title: str
    columns: tuple[str, ...]
    rows: list[tuple[str, dict[str, float]]]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class ControlRuns:
    """How much is run, on which robot, and where models of others lie.

    Raises:
        ConfigError: no seed.
    """

    robot: str = "kengoro_upper"
    seeds: int = 3
    models: Path | None = None
    show: Callable[[float], object] = field(default=lambda share: None)

    def __post_init__(self) -> None:
        if self.seeds < 1:
            raise ConfigError(f"seeds must be at least 1, got {self.seeds}")

    def load(self) -> Robot:
        """The robot, its base fixed."""
        return load_robot(self.robot, "fixed")


def over_seeds(found: Sequence[dict[str, float]]) -> dict[str, float]:
    """Medians over seeds; of the worst joint and the peak tension the largest."""
    most = ("worst", "peak", "fastest")
    return {name: float((np.max if name in most else np.median)([row[name] for row in found])) for name in found[0]}


def hold_numbers(robot: Robot, runs: ControlRuns, settings: LoopSettings, errors: PlantErrors) -> dict[str, float]:
    """Numbers of a move and a hold, over the seeds."""
    out = []
    for seed in range(runs.seeds):
        loop = ClosedLoop(robot, settings, errors, seed)
        out.append(loop.run(loop.posture()).numbers())
    return over_seeds(out)


# -------- C1


def laws(runs: ControlRuns) -> ControlResult:
    """C1: laws by what tells them the angles, by errors of the model."""
    robot, rows = runs.load(), []
    wanted = [(law, angles, e) for law, angles in LOOPS for e in ERRORS]
    for k, (law, angles, e) in enumerate(wanted):
        rows.append((f"{law}, {angles}: {e.name}", hold_numbers(robot, runs, LoopSettings(law, angles), e)))
        runs.show((k + 1) / len(wanted))
    return ControlResult("C1", "laws, angles and errors of the model, 40 % of the range", COLUMNS, rows, (UNITS,))


# -------- C2

FAULTS = ("snapped", "slipped", "deaf")


def faults(runs: ControlRuns) -> ControlResult:
    """C2: a tendon fails in motion: hybrid on absolute lengths; the tendons are those that can be lost."""
    robot, rows = runs.load(), []
    names = spare_tendons(robot, runs.seeds)
    for k, fault in enumerate(FAULTS):
        found = []
        for seed, name in enumerate(names):
            loop = ClosedLoop(robot, LoopSettings(hold=2.0), seed=seed)
            found.append(loop.run(loop.posture(), _failing(name, fault)).numbers())
            runs.show((k * len(names) + seed + 1) / (len(names) * len(FAULTS)))
        rows.append((fault, over_seeds(found)))
    note = (
        f"tendons: {', '.join(names)}; a torn one is switched off at once, as by a supervisor; slips are 20 mm, "
        f"invisible to encoders"
    )
    return ControlResult("C2", "a tendon fails in the middle of a move", COLUMNS, rows, (UNITS, note))


def _failing(tendon: str, fault: str) -> Callable[[float, ClosedLoop], None]:
    done: list[float] = []

    def event(time: float, loop: ClosedLoop) -> None:
        if time >= 0.5 and not done:
            done.append(time)
            loop.world.set_tendon_fault(tendon, fault, 0.02)
            if fault == "snapped":  # as its supervisor does
                loop.controller.dead[loop.geometry.tendon_names.index(tendon)] = True

    return event


def spare_tendons(robot: Robot, most: int) -> list[str]:
    """Tendons of the left side and the neck that can be lost: all postures within 40 % are held without them too."""
    g = tendon_geometry(robot)
    neutral = robot.postures["neutral"][[robot.joint_index(n) for n in g.joint_names]]
    lost = losses_by_tendon(HoldableSet(robot.model, g), neutral, postures=40)
    names = [n for n, share in lost.items() if share == 0.0 and not n.startswith("r_")]
    return names[:: max(1, len(names) // most)][:most]


# -------- C3


def loads(runs: ControlRuns) -> ControlResult:
    """C3: payloads that the model does not know, and pushes; hybrid and stiffness."""
    robot, rows = runs.load(), []
    cases = [(mass, law) for mass in (1.0, 2.0) for law in ("hybrid", "stiffness")]
    for k, (mass, law) in enumerate(cases):
        settings = LoopSettings(law, "absolute" if law == "hybrid" else "none", hold=2.0)
        e = PlantErrors(payload=mass)
        rows.append((f"{mass:g} kg at the left wrist, {law}", hold_numbers(robot, runs, settings, e)))
        runs.show((k + 1) / (len(cases) + 2))
    for k, law in enumerate(("hybrid", "stiffness")):
        settings = LoopSettings(law, "absolute" if law == "hybrid" else "none", hold=2.0)
        found = []
        for seed in range(runs.seeds):
            loop = ClosedLoop(robot, settings, seed=seed)
            trace = loop.run(loop.posture(), _pushed)
            away = np.abs(trace.error[trace.time > 1.2]).max(axis=1)
            late = np.flatnonzero(away > 2.0)
            back = float(trace.time[trace.time > 1.2][late[-1]] - 1.7) if len(late) else 0.0
            found.append({**trace.numbers(), "pushed": float(away.max()), "back": max(0.0, back)})
        rows.append((f"12 N at 0.25 m of the left forearm for 0.2 s, {law}", over_seeds(found)))
        runs.show((len(cases) + k + 1) / (len(cases) + 2))
    notes = (UNITS, "pushed: largest error of any joint [deg]; back: time after the push until it is within 2 deg [s]")
    return ControlResult("C3", "payloads and pushes", (*COLUMNS, "pushed", "back"), rows, notes)


def _pushed(time: float, loop: ClosedLoop) -> None:
    if abs(time - 1.5) < 1e-6:
        loop.world.push("l_forearm", np.array([12.0, 0, 0, 0, 0, 0]), 0.2, np.array([0.0, 0.0, -0.25]))


# -------- C4


def held_postures(runs: ControlRuns) -> ControlResult:
    """C4: share of random postures that tendons do not hold against gravity, by range and least tension."""
    robot, rows = runs.load(), []
    g = tendon_geometry(robot)
    neutral = robot.postures["neutral"][[robot.joint_index(n) for n in g.joint_names]]
    usual, most = tension_range(g)
    count = 100 * runs.seeds
    cases = (
        ("minimum tension of the file", usual),
        ("5 N", np.full_like(usual, 5.0)),
        ("3 N", np.full_like(usual, 3.0)),
    )
    for k, (name, least) in enumerate(cases):
        found = ranges_held(HoldableSet(robot.model, g, least, most), neutral, postures=count)
        rows.append((name, {f"{100 * r.share:.0f} %": 100.0 * (1.0 - r.held) for r in found}))
        runs.show((k + 1) / len(cases))
    note = f"share of {count} random postures with more than 0.5 N m missed [%], by share of the range around neutral"
    return ControlResult("C4", "postures that the tendons cannot hold", tuple(rows[0][1]), rows, (note,))


# -------- C5

LESSONS, HELD_OUT = 14, 3  # moves that are learnt from, 2 s each, and moves by which it is judged
EVERY, ANGLE_NOISE = 4, np.radians(0.5)  # ticks between samples of motion capture, and its noise
LEARNT = (
    PlantErrors("arms 5 %", moment_arm=0.05),
    PlantErrors("arms 5 %, wires 30 %, attachments 3 mm", moment_arm=0.05, stiffness=0.3, attachments=3e-3),
)


def learning(runs: ControlRuns) -> ControlResult:
    """C5: hybrid on absolute lengths before and after a body image learnt from motion capture, on other postures."""
    robot, rows = runs.load(), []
    for k, e in enumerate(LEARNT):
        before, after = [], []
        for seed in range(runs.seeds):
            loop = ClosedLoop(robot, LoopSettings(), e, seed)
            goals = [loop.posture() for _ in range(HELD_OUT)]
            before += [loop.run(goal).numbers() for goal in goals]
            image = BodyImage.of_geometry(loop.geometry, loop.stiffness)
            loop.start()
            for _ in range(LESSONS):
                loop.run(loop.posture(), _lesson(image), start=False)
            loop.use(image)
            after += [loop.run(goal).numbers() for goal in goals]
            runs.show((k * runs.seeds + seed + 1) / (len(LEARNT) * runs.seeds))
        rows += [(f"{e.name}: before", over_seeds(before)), (f"{e.name}: after 28 s", over_seeds(after))]
    note = "learnt from angles with 0.5 deg of noise at 62 Hz, evaluated at other postures"
    return ControlResult("C5", "learnt body image", COLUMNS, rows, (UNITS, note))


def _lesson(image: BodyImage) -> Callable[[float, ClosedLoop], None]:
    ticks = []

    def event(time: float, loop: ClosedLoop) -> None:
        ticks.append(time)
        if len(ticks) % EVERY == 0:
            states = loop.measured()
            seen = loop.joints + ANGLE_NOISE * loop.rng.standard_normal(len(loop.joints))
            rates = loop.world.joint_velocity[loop.world.winches.joints]
            image.add(seen, loop.paths(states), states.tension, ANGLE_NOISE, rates=rates)

    return event


# -------- C6

WRONG = np.radians(10.0)  # of every joint of the start that the estimator is given
CALM, CALM_MOVES = 3.0, 4  # [s] of a move, and how many


def unknown_start(runs: ControlRuns) -> ControlResult:
    """C6: the loop is closed on an estimate whose start is 10 deg wrong: calm moves, then how far it is off."""
    robot, rows = runs.load(), []
    cases = [(angles, e) for angles in ("absolute", "r2", "r3") for e in (ERRORS[0], ERRORS[2])]
    for k, (angles, e) in enumerate(cases):
        found = []
        for seed in range(runs.seeds):
            loop = ClosedLoop(robot, LoopSettings(angles=angles, move=CALM, hold=0.0), e, seed)
            loop.start()
            assert loop.estimator is not None
            limits = loop.geometry.limits
            start = np.clip(loop.joints + WRONG * loop.rng.choice([-1.0, 1.0], len(limits)), limits[:, 0], limits[:, 1])
            loop.estimator.reset(dict(zip(loop.geometry.joint_names, start.tolist(), strict=True)))
            loop.controller.reset(start, loop.measured())
            for _ in range(CALM_MOVES):
                trace = loop.run(loop.posture(), start=False)
            off = np.degrees(np.abs(trace.estimate[-1] - trace.joints[-1]))
            peak = float(trace.tensions.max())
            found.append({"estimate": float(np.median(off)), "worst": float(off.max()), "peak": peak})
        rows.append((f"{angles}: {e.name}", over_seeds(found)))
        runs.show((k + 1) / len(cases))
    note = (
        "median and worst error of the estimate after 12 s [deg], peak tension of the last move [N]; initial error "
        "10 deg"
    )
    return ControlResult("C6", "unknown initial posture", ("estimate", "worst", "peak"), rows, (note,))


# -------- C7

WARMING, WARMING_STEP = 1200.0, 5.0  # [s]


def stops(runs: ControlRuns) -> ControlResult:
    """C7: stops from a held posture: lengths held, wires paid out by the drives, currents off."""
    robot, rows = runs.load(), []
    for k, (name, kind) in enumerate((("hold", HOLD), ("pay_out", PAY_OUT), ("off", OFF))):
        found = []
        for seed in range(runs.seeds):
            loop = ClosedLoop(robot, LoopSettings(angles="true"), seed=seed)
            loop.run(loop.posture())
            at, m = loop.joints, len(loop.geometry.tendon_names)
            loop.world.set_tendon_commands(WinchCommand(np.full(m, kind), np.zeros(m), np.full(m, 5.0), np.zeros(m)))
            fastest = 0.0
            for _ in range(300):
                loop.world.step(10)
                fastest = max(fastest, float(np.abs(loop.world.joint_velocity).max()))
            moved = float(np.degrees(np.abs(loop.joints - at)).max())
            found.append({"moved": moved, "fastest": float(np.degrees(fastest))})
        rows.append((name, over_seeds(found)))
        runs.show((k + 1) / 3)
    rows += [(f"20 min with 1 kg in each hand, weights {name}", warmed(runs, robot, name)) for name in WEIGHTS]
    notes = (
        "moved: largest joint displacement after 3 s [deg]; fastest: largest joint speed [deg/s]; postures within 40 "
        "% of the range",
        "hottest winding [deg C], peak and mean tension [N] after 20 min",
    )
    return ControlResult("C7", "stops and heat", ("moved", "fastest", "hottest", "peak", "mean"), rows, notes)


def warmed(runs: ControlRuns, robot: Robot, weights: str) -> dict[str, float]:
    """Temperatures and tensions after 20 min at rest in a posture with 1 kg in each hand; weights: of the tensions."""
    g, units = tendon_geometry(robot), units_of(robot)
    found = []
    for seed in range(runs.seeds):
        theta = ClosedLoop(robot, LoopSettings(angles="true"), seed=seed).posture()
        held = HoldableSet(robot.model, g, payload={"l_wrist": 1.0, "r_wrist": 1.0}, held=robot.q("neutral"))
        d, heat = held.distribution, Heat(units)
        most = d.most.copy()
        for _ in range(round(WARMING / WARMING_STEP)):
            if weights == "heat":
                d.weight[:], d.most[:] = 1.0 / np.maximum(1.0 - heat.warmth, 0.05) ** 2, np.minimum(most, heat.most)
            elif weights == "activation":
                d.weight[:] = 1.0 / most**2
            tensions = held.margin(theta).tensions
            heat.step(tensions, WARMING_STEP)
        peak, mean = float(tensions.max()), float(tensions.mean())
        found.append({"hottest": float(heat.core.max()), "peak": peak, "mean": mean})
    return over_seeds(found)


# -------- C8

AFFINE = (6e3, 24e3, 100e3)  # [N/m]


def mujoco_beside(runs: ControlRuns) -> ControlResult:
    """C8: the same winches and the same law on MuJoCo's bodies and tendons (0.25 ms) and on this plant (1 ms)."""
    robot, rows = runs.load(), []
    cases = (("hybrid", "true"), ("hybrid", "absolute"), ("stiffness", "none"), ("length", "none"), ("torque", "true"))
    for k, (law, angles) in enumerate(cases):
        found = []
        for seed in range(runs.seeds):
            traces = []
            for engine in ("multibody", "mujoco"):
                settings = LoopSettings(law, angles, move=1.0, hold=1.0)
                loop = ClosedLoop(robot, settings, seed=seed, engine=engine)
                first = loop.run(loop.posture())
                second = loop.run(loop.posture(), start=False)
                third = loop.run(loop.posture(), start=False)
                traces.append(np.vstack([first.joints, second.joints, third.joints]))
            away = np.degrees(np.abs(traces[0] - traces[1]))
            found.append({"largest": float(away.max()), "median": float(np.median(away))})
            runs.show((k * runs.seeds + seed + 1) / (len(cases) * runs.seeds))
        largest = max(row["largest"] for row in found)
        rows.append(
            (f"{law}, {angles}", {"largest": largest, "median": float(np.median([r["median"] for r in found]))})
        )
    for kp in AFFINE:
        for distributed in (False, True):
            found = []
            for seed in range(runs.seeds):
                goal = ClosedLoop(robot, LoopSettings(angles="true"), seed=seed).posture()
                found.append(hold_by_affine(robot, goal, kp, distributed))
            tension = "our distribution" if distributed else f"{BIAS:g} N"
            rows.append((f"MuJoCo's affine actuators, {kp / 1e3:g} kN/m, {tension}", over_seeds(found)))
    notes = (
        "largest, median: difference of any joint between the engines in 6 s of closed loop [deg]",
        "hold, worst joint: of affine actuators on the lengths of the reference, without winches [deg]",
    )
    return ControlResult("C8", "MuJoCo with the same winches", ("largest", "median", "hold", "worst"), rows, notes)


# -------- C9


def foreign_arm(runs: ControlRuns) -> ControlResult:
    """C9: MyoSuite's elbow with winches instead of its muscles, moved by MuJoCo; the controller reads its file."""
    if runs.models is None:
        raise ConfigError("C9 needs a folder with myoelbow_2dof6muscles*.xml: give --models")
    (path,) = arm_files(runs.models)
    rows, errors = [], []
    cases = (("stiffness", "none"), ("hybrid", "true"), ("length", "none"))
    for k, (law, angles) in enumerate(cases):
        found = []
        for seed in range(runs.seeds):
            arm = MuscleArm(path, LoopSettings(law, angles), seed)
            found.append(arm.run(arm.posture()).numbers())
            errors.append(arm.lengths_error())
            runs.show((k * runs.seeds + seed + 1) / (len(cases) * runs.seeds))
        rows.append((f"{law}, {angles}", over_seeds(found)))
    read = f"lengths equal to MuJoCo within {max(errors):.0e} m; least tension {LEAST:g} N"
    return ControlResult("C9", f"arm model of another author: {path.name}", COLUMNS, rows, (UNITS, read))


# -------- C10


def range_of_motion(runs: ControlRuns) -> ControlResult:
    """C10: hybrid on absolute lengths, and stiffness, over larger shares of the joint ranges."""
    robot, rows = runs.load(), []
    cases = [(share, law, e) for share in (0.6, 0.9) for law in ("hybrid", "stiffness") for e in (ERRORS[0], ERRORS[2])]
    for k, (share, law, e) in enumerate(cases):
        settings = LoopSettings(law, "absolute" if law == "hybrid" else "none", share=share)
        rows.append((f"{100 * share:.0f} %, {law}: {e.name}", hold_numbers(robot, runs, settings, e)))
        runs.show((k + 1) / len(cases))
    return ControlResult("C10", "shares of the range of motion", COLUMNS, rows, (UNITS,))


EXPERIMENTS: dict[str, Callable[[ControlRuns], ControlResult]] = {
    "C1": laws,
    "C2": faults,
    "C3": loads,
    "C4": held_postures,
    "C5": learning,
    "C6": unknown_start,
    "C7": stops,
    "C8": mujoco_beside,
    "C9": foreign_arm,
    "C10": range_of_motion,
}


NEEDS_MODELS = "C9"


def chosen(names: Sequence[str]) -> list[str]:
    """The experiments that are meant: where none is named all but C9, which needs a folder of models.

    Raises:
        UnknownNameError: no such experiment.
    """
    wanted = [name.upper() for name in names] or [n for n in EXPERIMENTS if n != NEEDS_MODELS]
    for name in wanted:
        if name not in EXPERIMENTS:
            raise UnknownNameError("experiment", name, EXPERIMENTS)
    return wanted


def run_control(names: Sequence[str], runs: ControlRuns) -> list[ControlResult]:
    """Run some experiments, or all.

    Raises:
        UnknownNameError: no such experiment.
    """
    wanted, found = chosen(names), []
    for k, name in enumerate(wanted):

        def show(share: float, k: int = k) -> None:
            runs.show((k + share) / len(wanted))

        found.append(EXPERIMENTS[name](replace(runs, show=show)))
    return found


def plain(results: Sequence[ControlResult]) -> dict[str, Any]:
    """The results as plain values."""
    return {r.name: {"title": r.title, "rows": dict(r.rows), "notes": r.notes} for r in results}
