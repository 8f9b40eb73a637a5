"""`humanoid bench dynamics`: forward dynamics and whole world steps, on one core, next to pinocchio and MuJoCo.

O(n), sparse and dense solvers on Lola with her drives and on Dill, stage by stage too, and what the rows say: growth
with size, and Schwienbacher 2014, table 2.6.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin

from evidence.benchmarks.branched_system import dill, dill_state
from evidence.benchmarks.closed_chains import chains_of
from humanoid_control.compiled.jit import kernel
from humanoid_control.errors import EnvironmentProblem
from humanoid_control.multibody.acceleration_pass import acceleration_pass
from humanoid_control.multibody.arrays import Tables, Work
from humanoid_control.multibody.forward_dynamics import ForwardDynamics
from humanoid_control.multibody.inertia_pass import inertia_pass
from humanoid_control.multibody.kinematics_pass import add_wrenches, kinematics_pass
from humanoid_control.multibody.mass_matrix import clear_pattern, dense_solve, fill_mass_matrix, sparse_solve
from humanoid_control.robots import load_robot
from humanoid_control.simulation.contact.points import ContactSettings
from humanoid_control.simulation.drives.drive_train import ELASTIC, RIGID, build_drive_train
from humanoid_control.simulation.engine import Engine, make_engine
from humanoid_control.simulation.settings import WorldSettings
from humanoid_control.simulation.worlds.mujoco_world import MujocoWorld, ground_points
from humanoid_control.terminal import progress, warn

__all__ = ["measure", "notes"]


# -------- Notes under the table

# Schwienbacher 2014, Table 2.6: time of O(n) [us], dense and sparse relative to it, on five machines of 2008 to 2012.
PUBLISHED = {
    "type2": [(89.16, 1.162, 1.125), (121.7, 1.054, 1.038), (189.3, 1.005, 0.952), (77.71, 0.941, 0.904),
              (53.67, 1.011, 0.979)],
    "type3": [(75.17, 1.653, 1.477), (98.31, 1.561, 1.417), (141.0, 1.671, 1.437), (64.03, 1.411, 1.243),
              (46.12, 1.472, 1.247)],
}  # fmt: skip


def notes(rows: list[dict[str, Any]]) -> list[str]:
    """Lines under the table."""
    t = {r["name"]: r["median"] for r in rows}
    lines = [
        "One core; median and shortest (best) of calls from Python. Stages, and rows named loop, are "
        "measured in compiled loops.",
        *_table_2_6(t),
        f"pinocchio: articulated bodies without rotors and loops {t['pinocchio_aba_tree']:.1f} us; constrained "
        f"dynamics with the screws as loops {t['pinocchio_constrained_type2']:.1f} us, "
        f"{t['pinocchio_constrained_type2'] / t['fd_type2_on']:.1f} times the sub-systems'; its harmonic drives are "
        f"only armature there, which omits 18 rotors. On the tree with these armatures: articulated bodies "
        f"{t['pinocchio_aba_armature']:.1f} us" + _mujoco_forward(t),
    ]
    lines += _world(rows)
    if "dill_10" in t:
        lines += _growth(rows)
    return lines


def _mujoco_forward(t: dict[str, float]) -> str:
    if "mujoco_forward" not in t:
        return "."
    return f", MuJoCo's mj_forward, rotors as armature, in the air {t['mujoco_forward']:.1f} us."


def _world(rows: list[dict[str, Any]]) -> list[str]:
    """Times of whole steps of 1 ms, and how deep the soles are in the ground."""
    t = {r["name"]: r["median"] for r in rows}
    depth = {r["name"]: r["sole_depth_mm"] for r in rows if "sole_depth_mm" in r}
    words = {"world_step_lola": "ideal drives", "world_step_lola_stiff": "ideal drives on ground fifty times as stiff"}
    words |= {"world_step_lola_rigid": "rigid", "world_step_lola_elastic": "elastic"}
    parts = [
        f"{word} {t[name]:.1f} us, {1000 / t[name]:.0f} times real time, soles {depth[name]:.3f} mm in the ground"
        for name, word in words.items()
    ]
    lines = [f"A step of 1 ms of the whole world, Lola on her feet: {'; '.join(parts)}."]
    if "mujoco_step_lola" in t:
        ratio = t["mujoco_step_lola"] / t["world_step_lola"]
        told = f"{t['mujoco_step_lola']:.1f} us, {ratio:.1f} times this package's, {depth['mujoco_step_lola']:.3f} mm"
        lines.append(f"The same step by MuJoCo, ideal drives, its own contact: {told}.")
    return lines


def _table_2_6(t: dict[str, float]) -> list[str]:
    lines = []
    for kind, published in PUBLISHED.items():
        on, dense, sparse = (t[f"fd_{kind}_{s}"] for s in ("on", "dense", "sparse"))
        ranges = [f"{min(c):.3g}-{max(c):.3g}" for c in zip(*published, strict=True)]
        mean = np.mean(published, axis=0)
        loop = [sum(t[f"{kind}_{SHORT[s]}_{x}"] for x in STAGES[s]) for s in ("articulated_body", "dense", "sparse")]
        lines.append(
            f"Schwienbacher 2014, table 2.6, {kind}: O(n) {on:.1f} us, dense {dense / on:.2f} and sparse "
            f"{sparse / on:.2f} times that; in a loop {loop[0]:.1f} us, {loop[1] / loop[0]:.2f} and "
            f"{loop[2] / loop[0]:.2f}. Published, on five machines: {ranges[0]} us, {ranges[1]} and {ranges[2]} "
            f"(means {mean[1]:.2f}, {mean[2]:.2f})."
        )
    return lines


def growth(dof: np.ndarray, us: np.ndarray) -> tuple[float, float, float]:
    """Fit of a + b n to times with equal relative weight: a, b, and the largest relative deviation."""
    A = np.column_stack([np.ones_like(dof), dof]) / us[:, None]
    (a, b), *_ = np.linalg.lstsq(A, np.ones_like(us), rcond=None)
    return float(a), float(b), float(np.abs((a + b * dof) / us - 1).max())


def slope(dof: np.ndarray, us: np.ndarray) -> float:
    """Exponent of growth: slope in logarithms."""
    return float(np.polyfit(np.log(dof), np.log(us), 1)[0])


def _growth(rows: list[dict[str, Any]]) -> list[str]:
    by = {r["name"]: r for r in rows}
    levels = [n for n in range(1, 11) if f"dill_{n}" in by]
    dof = np.array([by[f"dill_{n}"]["dof"] for n in levels], dtype=float)
    times = {s: np.array([by[f"dill_{n}{s}"]["median"] for n in levels]) for s in ("", "_sparse", "_dense")}
    a, b, off = growth(dof, times[""])
    lines = [f"Dill, O(n): {a:.1f} us + {b:.3f} us for each degree of freedom, off by at most {off:.0%}."]
    top = dof >= 128
    words = [f"{w} {slope(dof[top], (times[s] - (a if not s else 0))[top]):.2f}" for s, w in _WORDS.items()]
    lines.append(f"Exponents from 128 to {dof[-1]:.0f}: {', '.join(words)}; O(n) without its constant part.")
    gain = times["_dense"][-1] / times["_sparse"][-1]
    lines.append(f"At {dof[-1]:.0f}: dense takes {gain:.0f} times as long as sparse.")
    first = [f"Dill({n})" for k, n in enumerate(levels) if times[""][k] > min(times[s][k] for s in times)]
    lines.append(f"O(n) is the fastest of the three on all levels except: {', '.join(first) or 'none'}.")
    return lines


_WORDS = {"": "O(n)", "_sparse": "sparse", "_dense": "dense"}


# -------- Stages of a call

LOOPS = 20  # calls in one measurement
STAGES = {
    "articulated_body": ("fw1", "bw", "fw2"),
    "sparse": ("fw1", "matrix", "solve"),
    "dense": ("fw1", "matrix", "solve"),
}


class Given(NamedTuple):
    """A call: state, generalised forces (nv,), wrenches (bodies, 6); qdd (nv,) is zero, and serves as armature too."""

    q: np.ndarray
    v: np.ndarray
    tau: np.ndarray
    wrench: np.ndarray
    qdd: np.ndarray


@kernel
def articulated_body_stages(t: Tables, w: Work, g: Given, last: int, n: int) -> None:
    """The first stages of the O(n) solver for `Given` g, up to the last, n times."""
    for _ in range(n):
        kinematics_pass(t, g.q, g.v, w)
        if last > 0:
            add_wrenches(t, g.wrench, w)
            inertia_pass(t, g.tau, g.qdd, w)
        if last > 1:
            acceleration_pass(t, w, g.qdd)
            g.qdd[:] = 0.0


@kernel
def mass_matrix_stages(t: Tables, w: Work, g: Given, last: int, n: int, dense: bool) -> None:
    """The same of the solvers with a mass matrix."""
    for _ in range(n):
        kinematics_pass(t, g.q, g.v, w)
        if last > 0:
            add_wrenches(t, g.wrench, w)
            if dense:
                w.M[:] = 0.0
            else:
                clear_pattern(w.M, t.lam)
            fill_mass_matrix(t, g.tau, g.qdd, w)
        if last > 1:
            if dense:
                dense_solve(w.M, w.rhs)
            else:
                sparse_solve(w.M, t.lam, w.rhs)


def stage_runs(dynamics: ForwardDynamics, q: np.ndarray, v: np.ndarray) -> list[Callable[[], float]]:
    """For each number of stages a function that measures a call up to there [s]."""
    a, model = dynamics.arrays, dynamics.model
    given = Given(q, v, np.zeros(model.nv), np.zeros((len(model.bodies), 6)), np.zeros(model.nv))
    if dynamics.solver == "articulated_body":

        def call(last: int) -> None:
            articulated_body_stages(a.tables, a.work, given, last, LOOPS)
    else:
        dense = dynamics.solver == "dense"

        def call(last: int) -> None:
            mass_matrix_stages(a.tables, a.work, given, last, LOOPS, dense)

    def run(last: int) -> float:
        start = time.perf_counter()
        call(last)
        return (time.perf_counter() - start) / LOOPS

    return [partial(run, last) for last in range(3)]


# -------- Steps of the simulated world

STEPS = 20  # of 1 ms in a call
SETTLING = 500  # steps before the first measurement
STIFF = 5e6  # [N/m] of each point of a sole: as hard as MuJoCo's ground


def world_cases(name: str) -> list[TimedCall]:
    """Whole steps of 1 ms with contact, of the compiled worlds and of MuJoCo's; and MuJoCo's forward dynamics alone."""
    robot = load_robot(name, "floating")
    plain, stiff = WorldSettings(), WorldSettings(contact=ContactSettings(stiffness=STIFF, shear_stiffness=STIFF))
    rows = [("world_step_lola", "multibody", plain), ("world_step_lola_stiff", "multibody", stiff)]
    rows += [(f"world_step_lola_{d}", "multibody", WorldSettings(drives=d)) for d in ("rigid", "elastic")]
    out: list[TimedCall] = []
    for row, engine, settings in [*rows, ("mujoco_step_lola", "mujoco", plain)]:
        try:
            world = make_engine(robot, engine, settings)
        except EnvironmentProblem as e:
            warn(f"{row} is omitted: {e}")
            continue
        world.step(SETTLING)
        dof = len(getattr(world, "full_v", world.v))
        out.append(TimedCall(row, partial(_step, world), dof, True, tell=partial(_depth, world)))
        if isinstance(world, MujocoWorld):
            out.append(TimedCall("mujoco_forward", _mujoco_in_the_air(world), dof))
    return out


def _depth(world: Engine) -> dict[str, float]:
    return {"sole_depth_mm": round(1000 * sole_depth(world), 4)}


def sole_depth(world: Engine) -> float:
    """Depth of the deepest corner of a sole below flat ground [m], from the posture alone, whatever the engine."""
    robot, at = world.robot, ground_points(world.robot, world.settings)
    pin.forwardKinematics(robot.model, robot.data, world.q)
    corners = [
        robot.data.oMi[int(b)].act(p[:3])[2] for b, p, s in zip(at.body, at.points, at.sole, strict=True) if s >= 0
    ]
    return -float(min(corners))


def _mujoco_in_the_air(world: MujocoWorld) -> Callable[[], object]:
    """MuJoCo's mj_forward for the world's robot, 10 m above the ground and moving."""
    mj, model = world.mujoco, world.mj_model
    data = mj.MjData(model)
    data.qpos[:], data.qvel[:] = world.mj_data.qpos, 0.3 * np.random.default_rng(0).normal(size=model.nv)
    data.qpos[2] += 10.0
    return lambda: mj.mj_forward(model, data)


def _step(world: Engine) -> float:
    start = time.perf_counter()
    world.step(STEPS)
    return (time.perf_counter() - start) / STEPS


# -------- The run

COLUMNS = ["name", "unit", "median", "best", "p99", "n", "dof"]
SHORT = {"articulated_body": "on", "sparse": "sparse", "dense": "dense"}
CALLS = 2000  # of each row of the robot
WORLD_CALLS = 1000  # of whole world steps, each over several of 1 ms
DILL_CALLS, DILL_LEVELS = 1000, range(1, 11)
CHUNK = 20  # calls after which the next has its turn


@dataclass
class TimedCall:
    """A row: what is called, and how many degrees of freedom it has."""

    name: str
    call: Callable[[], Any]
    dof: int
    timed: bool = False  # the call measures itself and returns seconds
    stage: bool = False  # its time includes that of the stages before it
    tell: Callable[[], dict[str, Any]] = field(default=dict)  # more columns, after the measurement


def measure(robot: str = "lola", quiet: bool = True) -> list[dict[str, Any]]:
    """Rows in us a call. Within a group the cases take turns, so that other work on the machine hits all alike."""
    build_drive_train(load_robot(robot, "floating"), RIGID)  # a robot without motors is refused before compiling
    warn("missing kernels are compiled first (up to a minute)")
    groups = [(robot_cases(robot), CALLS)]
    groups += [(dill_cases(n), DILL_CALLS) for n in DILL_LEVELS]
    groups.append((world_cases(robot), WORLD_CALLS))
    weights = [len(cases) * calls * max(1.0, cases[0].dof / 64) ** 1.5 for cases, calls in groups]
    rows: list[dict[str, Any]] = []
    with progress("measuring", sum(weights), quiet=quiet) as show:
        done = 0.0
        for (cases, calls), weight in zip(groups, weights, strict=True):
            done += weight
            rows += _rows(cases, take_turns(cases, calls, partial(_forward, show, done, weight)))
    return rows


def _forward(show: Callable[[float, str], object], end: float, weight: float, share: float) -> None:
    show(end - weight * (1 - share), "")


def robot_cases(name: str) -> list[TimedCall]:
    """Both models of a robot with drives by all solvers and stage by stage, and pinocchio's two."""
    robot, rng, cases = load_robot(name, "floating"), np.random.default_rng(0), []
    stages: list[TimedCall] = []
    for kind, depth in (("type2", RIGID), ("type3", ELASTIC)):
        train = build_drive_train(robot, depth)
        q, v = train.model.neutral(), 0.3 * rng.normal(size=train.model.nv)
        q[7 : 7 + len(train.joints)] = 0.5 * posture(robot, train.joints)
        for solver, short in SHORT.items():
            dynamics = ForwardDynamics(train.model, solver)
            cases.append(_case(f"fd_{kind}_{short}", dynamics, q, v))
            dynamics = ForwardDynamics(train.model, solver)
            for last, run in enumerate(stage_runs(dynamics, q, v)):
                stages.append(TimedCall(f"{kind}_{short}_{STAGES[solver][last]}", run, train.model.nv, True, True))
        if depth == RIGID:
            cases += pinocchio_cases(robot, train, q, v)
    return cases + stages


def posture(robot: Any, joints: tuple[str, ...]) -> np.ndarray:
    """A posture with bent knees: the middle of every range."""
    k = [robot.index[j] for j in joints]
    lower, upper = robot.range_within(np.pi)
    return np.clip(0.5 * (lower[k] + upper[k]), -1.0, 1.0)


def pinocchio_cases(robot: Any, train: Any, q: np.ndarray, v: np.ndarray) -> list[TimedCall]:
    """Articulated bodies without and with rotors as armature, and constrained dynamics with the screws as loops."""
    tree, data = train.pinocchio, train.pinocchio.createData()
    zero, chains = np.zeros(tree.nv), chains_of(robot, train)
    geared, geared_data = chains.tree, chains.tree.createData()
    x, u = chains.close(q, v)
    loads = np.zeros(chains.model.nv)
    return [
        TimedCall("pinocchio_aba_tree", lambda: pin.aba(tree, data, q, v, zero), tree.nv),
        TimedCall("pinocchio_aba_armature", lambda: pin.aba(geared, geared_data, q, v, zero), tree.nv),
        TimedCall("pinocchio_constrained_type2", lambda: chains.accelerate(x, u, loads), chains.model.nv),
    ]


def dill_cases(n: int) -> list[TimedCall]:
    """One level of Dill by all solvers."""
    model = dill(n)
    q, v = dill_state(model)
    rows = [(f"dill_{n}" if s == "on" else f"dill_{n}_{s}", solver) for solver, s in SHORT.items()]
    return [_case(name, ForwardDynamics(model, solver, (0.0, 0.0, 0.0)), q, v) for name, solver in rows]


def _case(name: str, dynamics: ForwardDynamics, q: np.ndarray, v: np.ndarray) -> TimedCall:
    return TimedCall(name, lambda: dynamics(q, v), dynamics.model.nv)


def take_turns(cases: list[TimedCall], calls: int, show: Callable[[float], object]) -> np.ndarray:
    """Times (cases, calls) [s]; the first calls, which load and compile, are not counted."""
    for case in cases:
        case.call()
    out = np.empty((len(cases), calls))
    for first in range(0, calls, CHUNK):
        for k, case in enumerate(cases):
            case.call()  # its memory comes back into the cache
            for j in range(first, min(first + CHUNK, calls)):
                if case.timed:
                    out[k, j] = case.call()
                else:
                    start = time.perf_counter()
                    case.call()
                    out[k, j] = time.perf_counter() - start
        show(min(1.0, (first + CHUNK) / calls))
    return out


def _rows(cases: list[TimedCall], times: np.ndarray) -> list[dict[str, Any]]:
    """Medians, and the shortest of all calls; a stage is the difference to the stages before it."""
    rows, before, before_best = [], 0.0, 0.0
    for case, sample in zip(cases, times, strict=True):
        us = 1e6 * sample
        median, best = float(np.median(us)), float(us.min())
        row = {"name": case.name, "unit": "us", "n": int(us.size), "dof": case.dof}
        row |= {"median": round(median, 3), "best": round(best, 3), "p99": round(float(np.percentile(us, 99)), 3)}
        if case.stage:
            if case.name.endswith("fw1"):
                before = before_best = 0.0
            row |= {"median": round(median - before, 3), "best": round(best - before_best, 3), "p99": ""}
            row["in_loop"] = round(median, 3)
            before, before_best = median, best
        rows.append(row | case.tell())
    return rows
