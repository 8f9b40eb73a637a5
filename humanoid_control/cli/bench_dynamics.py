"""Forward dynamics: O(n), sparse and dense on Lola with its drives and on Dill, beside pinocchio; one run, one core."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pinocchio as pin

from humanoid_control.cli.bench_dynamics_lola import chains_of
from humanoid_control.cli.bench_dynamics_notes import notes
from humanoid_control.cli.bench_dynamics_stages import STAGES, stage_runs
from humanoid_control.cli.bench_dynamics_world import world_steps
from humanoid_control.cli.output import progress, warn
from humanoid_control.multibody import ForwardDynamics
from humanoid_control.multibody.dill import dill, dill_state
from humanoid_control.robots import load_robot
from humanoid_control.simulation.drives.drive_train import ELASTIC, RIGID, build_drive_train

__all__ = ["measure", "notes"]
ROBOT = "lola"
COLUMNS = ["name", "unit", "median", "best", "p99", "n", "dof"]
SHORT = {"recursive": "on", "sparse": "sparse", "dense": "dense"}
CALLS = 2000  # of each row of the robot
WORLD_CALLS = 1000  # of whole world steps, each over several of 1 ms
DILL_CALLS, DILL_LEVELS = 1000, range(1, 11)
CHUNK = 20  # calls after which the next has its turn


@dataclass
class Case:
    """A row: what is called, and how many degrees of freedom it has."""

    name: str
    call: Callable[[], Any]
    dof: int
    timed: bool = False  # the call measures itself and returns seconds
    stage: bool = False  # its time includes that of the stages before it


def measure(args: argparse.Namespace) -> list[dict[str, Any]]:
    """Rows in us a call. Within a group the cases take turns, so that other work on the machine hits all alike."""
    build_drive_train(load_robot(args.robot, "floating"), RIGID)  # a robot without motors is refused before compiling
    warn("kernels are compiled first where that was not done before (up to a minute)")
    groups = [(robot_cases(args.robot), CALLS)]
    groups += [(dill_cases(n), DILL_CALLS) for n in DILL_LEVELS]
    groups.append((world_cases(args.robot), WORLD_CALLS))
    weights = [len(cases) * calls * max(1.0, cases[0].dof / 64) ** 1.5 for cases, calls in groups]
    rows: list[dict[str, Any]] = []
    with progress("measuring", sum(weights), quiet=args.json) as show:
        done = 0.0
        for (cases, calls), weight in zip(groups, weights, strict=True):
            done += weight
            rows += _rows(cases, take_turns(cases, calls, partial(_forward, show, done, weight)))
    return rows


def _forward(show: Callable[[float, str], object], end: float, weight: float, share: float) -> None:
    show(end - weight * (1 - share), "")


def robot_cases(name: str) -> list[Case]:
    """Both models of a robot with drives by all solvers and stage by stage, and pinocchio's two ways."""
    robot, rng, cases = load_robot(name, "floating"), np.random.default_rng(0), []
    stages: list[Case] = []
    for kind, depth in (("type2", RIGID), ("type3", ELASTIC)):
        train = build_drive_train(robot, depth)
        q, v = train.model.neutral(), 0.3 * rng.normal(size=train.model.nv)
        q[7 : 7 + len(train.joints)] = 0.5 * posture(robot, train.joints)
        for solver, short in SHORT.items():
            dynamics = ForwardDynamics(train.model, solver)
            cases.append(_case(f"fd_{kind}_{short}", dynamics, q, v))
            dynamics = ForwardDynamics(train.model, solver)
            for last, run in enumerate(stage_runs(dynamics, q, v)):
                stages.append(Case(f"{kind}_{short}_{STAGES[solver][last]}", run, train.model.nv, True, True))
        if depth == RIGID:
            cases += pinocchio_cases(robot, train, q, v)
    return cases + stages


def posture(robot: Any, joints: tuple[str, ...]) -> np.ndarray:
    """A posture with bent knees: the middle of every range."""
    k = [robot.index[j] for j in joints]
    return np.clip(0.5 * (robot.lower[k] + robot.upper[k]), -1.0, 1.0)


def pinocchio_cases(robot: Any, train: Any, q: np.ndarray, v: np.ndarray) -> list[Case]:
    """Articulated bodies without rotors, and constrained dynamics with the screws as loops."""
    tree, data = train.pinocchio, train.pinocchio.createData()
    zero, chains = np.zeros(tree.nv), chains_of(robot, train)
    x, u = chains.close(q, v)
    loads = np.zeros(chains.model.nv)
    return [
        Case("pinocchio_aba_tree", lambda: pin.aba(tree, data, q, v, zero), tree.nv),
        Case("pinocchio_constrained_type2", lambda: chains.accelerate(x, u, loads), chains.model.nv),
    ]


def dill_cases(n: int) -> list[Case]:
    """One level of Dill by all solvers."""
    model = dill(n)
    q, v = dill_state(model)
    rows = [(f"dill_{n}" if s == "on" else f"dill_{n}_{s}", solver) for solver, s in SHORT.items()]
    return [_case(name, ForwardDynamics(model, solver, (0.0, 0.0, 0.0)), q, v) for name, solver in rows]


def world_cases(name: str) -> list[Case]:
    """Whole steps of 1 ms with contact, of our worlds and of MuJoCo's."""
    return [Case(row, call, dof, True) for row, call, dof in world_steps(name)]


def _case(name: str, dynamics: ForwardDynamics, q: np.ndarray, v: np.ndarray) -> Case:
    return Case(name, lambda: dynamics(q, v), dynamics.model.nv)


def take_turns(cases: list[Case], calls: int, show: Callable[[float], object]) -> np.ndarray:
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


def _rows(cases: list[Case], times: np.ndarray) -> list[dict[str, Any]]:
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
        rows.append(row)
    return rows
