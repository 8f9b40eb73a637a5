"""Optimal reaches: how long the search takes, and how good what it finds is, next to crocoddyl where installed.

Least torque with gravity, from an arm at rest next to the body to a board in front, 1 s, on eight quintic segments, the
ends' accelerations free; the same for a peer, by 60 nodes. `gap` is what the found cost is above the best of ten starts
on the same segments.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pinocchio as pin

from evidence.benchmarks import Row, row_of
from humanoid_control.reaching import Arm, Parametrisation, Reach, ReachSettings, person_arm, synthesise
from humanoid_control.reaching.optimal.newton import minimise_within
from humanoid_control.reaching.optimal.reach import SLACK, minimum_jerk_start, reach_problem
from humanoid_control.terminal import progress, warn

COLUMNS = ["name", "unit", "median", "best", "p99", "n", "cost", "gap_percent"]
TITLE = "bench reaching, a person's arm"
CALLS, PEER_CALLS = 7, 3
SECONDS = 1.0
REST, BOARD = (-18.0, -6.0, -13.0, 33.0, 0.0, 0.0, 0.0), (-37.0, -76.0, -5.0, 56.0, 20.0, 5.0, 10.0)  # [deg]
NODES = 60  # of a peer
PEERS = (5, 7)  # joints of the arms that it is given
RANDOM_STARTS, SPREAD = 9, 0.8  # and the straight one; half-way detours [rad]
BEST_POINTS = 9  # of the quadrature in a segment, for the best of ten
TERMINAL = 1e5  # weight of the goal, for a peer that has no end conditions


@dataclass(frozen=True)
class ReachingTask:
    """A reach that is timed: arm, ends [rad], duration [s] and settings."""

    arm: Arm
    start: np.ndarray
    goal: np.ndarray
    settings: ReachSettings
    seconds: float = SECONDS

    def solve(self) -> Reach:
        """The reach."""
        return synthesise(self.arm, self.start, self.goal, self.seconds, self.settings)


def tasks() -> dict[str, ReachingTask]:
    """The timed reaches by the names of their rows."""
    torque = ReachSettings({"torque": 1.0}, segments=8, free_acceleration=True, tolerance=3e-4)

    def board(joints: int, settings: ReachSettings) -> ReachingTask:
        return ReachingTask(person_arm(joints), np.deg2rad(REST[:joints]), np.deg2rad(BOARD[:joints]), settings)

    swing = ReachingTask(person_arm(2), np.deg2rad([0.0, 20.0]), np.deg2rad([-90.0, 60.0]), torque)
    free = replace(torque, limits=False)
    return {
        "reach_5_ms": board(5, torque),
        "reach_7_ms": board(7, torque),
        "reach_5_free_ms": board(5, free),
        "reach_7_free_ms": board(7, free),
        "mtc_4_ms": board(4, ReachSettings({"mtc": 1.0})),
        "swing_2_ms": replace(swing, settings=replace(torque, segments=4)),
    }


def best_of_ten(task: ReachingTask) -> float:
    """Least cost from the straight start and nine random detours, on the same segments."""
    P = Parametrisation(task.settings.parametrisation, task.settings.count, task.seconds, BEST_POINTS)
    problem = reach_problem(task.arm, P, task.settings, task.start, task.goal)
    rng, found = np.random.default_rng(1), []
    for k in range(1 + RANDOM_STARTS):
        detour = SPREAD * rng.normal(size=task.arm.n) if k else None
        x = minimum_jerk_start(P, task.start, task.goal, detour)
        minimum, excess = minimise_within(problem, x, SLACK, iterations=600, tolerance=1e-7)
        if (excess <= SLACK).all():
            found.append(minimum.cost)
    return min(found)


def measure(quiet: bool = True) -> list[Row]:
    """A row for each reach [ms]; for a peer its own, on the same arm and ends."""
    return measure_reaches((), CALLS, quiet)


def measure_reaches(only: Collection[str], calls: int, quiet: bool) -> list[Row]:
    """The same of some reaches.

    Args:
        only: names of rows; none: all. calls: how often each is timed. quiet: without a bar.
    """
    rows: list[Row] = []
    todo = {name: task for name, task in tasks().items() if not only or name in only}
    peers = [n for n in PEERS if not only or f"crocoddyl_{n}_ms" in only]
    with progress("measuring", len(todo) + float(len(peers)), quiet=quiet) as show:
        for k, (name, task) in enumerate(todo.items()):
            reach = task.solve()  # loads what is compiled
            times = _times(task.solve, calls)
            best = best_of_ten(task)
            gap = 100.0 * (reach.cost / best - 1.0)
            rows.append(_row(name, times, reach.cost, gap))
            show(k + 1.0)
        for joints in peers:
            try:
                call = crocoddyl_reach(tasks()[f"reach_{joints}_ms"])
            except ImportError as e:
                warn(f"crocoddyl's rows are omitted: {e}")
                break
            cost = call()
            rows.append(_row(f"crocoddyl_{joints}_ms", _times(call, PEER_CALLS), cost, float("nan")))
    return rows


def _times(call: Callable[[], Any], count: int) -> np.ndarray:
    """Processor time of some calls [ms]: other work on the machine does not count."""
    out = np.empty(count)
    for k in range(count):
        begin = time.process_time()
        call()
        out[k] = 1e3 * (time.process_time() - begin)
    return out


def _row(name: str, times: np.ndarray, cost: float, gap: float) -> Row:
    best, gap_told = round(float(times.min()), 2), "" if np.isnan(gap) else round(gap, 2)
    return row_of(name, "ms", times, best=best, cost=round(cost, 4), gap_percent=gap_told)


# -------- Peer


def pinocchio_model(arm: Arm) -> pin.Model:
    """The arm as a pinocchio model."""
    model, joint, m = pin.Model(), 0, arm.model
    for k in range(arm.n):
        turn = pin.JointModelRevoluteUnaligned(m.axis[k])
        joint = model.addJoint(joint, turn, pin.SE3(m.R[k], m.p[k]), arm.joint_names[k])
        body = pin.Inertia(float(m.mass[k]), m.com[k], m.inertia[k])
        model.appendBodyToJoint(joint, body, pin.SE3.Identity())
    model.gravity.linear = m.gravity
    return model


def crocoddyl_reach(task: ReachingTask) -> Callable[[], float]:
    """A call that solves the same reach by the FDDP of crocoddyl, without limits, and gives its cost.

    Raises:
        ImportError: crocoddyl is not installed.
    """
    import crocoddyl

    model = pinocchio_model(task.arm)
    state = crocoddyl.StateMultibody(model)
    actuation = crocoddyl.ActuationModelFull(state)
    dt, n = task.seconds / NODES, task.arm.n
    goal = np.concatenate([task.goal, np.zeros(n)])
    begin = np.concatenate([task.start, np.zeros(n)])
    running, terminal = crocoddyl.CostModelSum(state, n), crocoddyl.CostModelSum(state, n)
    running.addCost("torque", crocoddyl.CostModelResidual(state, crocoddyl.ResidualModelControl(state, n)), 1.0)
    terminal.addCost("goal", crocoddyl.CostModelResidual(state, crocoddyl.ResidualModelState(state, goal, n)), TERMINAL)

    def node(costs: Any, step: float) -> Any:
        dynamics = crocoddyl.DifferentialActionModelFreeFwdDynamics(state, actuation, costs)
        return crocoddyl.IntegratedActionModelEuler(dynamics, step)

    def call() -> float:
        problem = crocoddyl.ShootingProblem(begin, [node(running, dt)] * NODES, node(terminal, 0.0))
        solver = crocoddyl.SolverFDDP(problem)
        P = Parametrisation("quintic", NODES, task.seconds)
        straight = minimum_jerk_start(P, task.start, task.goal)
        q, v, a, _ = P.evaluate(straight, np.linspace(0, task.seconds, NODES + 1))
        xs = [np.concatenate(pair) for pair in zip(q, v, strict=True)]
        us = list(task.arm.torque(q, v, a)[:NODES])
        solver.solve(xs, us, 500, False)
        return 0.5 * dt * float(sum(u @ u for u in solver.us))

    return call


def notes(rows: list[Row]) -> list[str]:
    """Lines on what is counted."""
    lines = [
        "Processor time of a whole call of `synthesise` with its three starts (mtc: one), from Python; joint ranges "
        "are respected, except in the rows named free.",
        "cost: half the integral of the squared torques (mtc: of their rates); gap: difference from the best of ten "
        "starts (one straight, nine random detours), with ten times finer convergence.",
    ]
    if any(str(r["name"]).startswith("crocoddyl") for r in rows):
        lines.append(
            f"crocoddyl: FDDP from the straight reach, {NODES} nodes, at most 500 iterations, no ranges of joints, the "
            "goal as a cost at the end."
        )
    return lines
