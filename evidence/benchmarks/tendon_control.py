"""Speed of control through tendons on one core: distributions (also DAQP, SciPy), a step of winches (also MuJoCo)."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from itertools import cycle
from typing import Any

import numpy as np

from evidence.benchmarks.dynamics import TimedCall, take_turns
from humanoid_control.robots.robot import Robot
from humanoid_control.robots.tendons import tendon_geometry, tendon_groups, tendon_mappings
from humanoid_control.simulation.drives.winches import units_of
from humanoid_control.simulation.settings import WINCHES, WorldSettings
from humanoid_control.simulation.worlds.winch_world import WinchWorld
from humanoid_control.tendons.control.commands import HYBRID, WinchCommand, no_states
from humanoid_control.tendons.control.distribution import EPS, TensionDistribution, distribute_at
from humanoid_control.tendons.control.laws import JointReference, TendonController
from humanoid_control.tendons.estimator.estimator import TendonEstimator
from humanoid_control.tendons.estimator.settings import EstimatorSettings

SIZES = {"8x10": (8, 10), "20x46": (20, 46), "32x46": (32, 46), "60x80": (60, 80)}
LEAST, MOST = 10.0, 300.0  # [N]
ARM, ACROSS = 0.04, 6  # [m] of random moment arms, joints that a tendon crosses
PROBLEMS = 32  # torques that follow each other, as in ticks
CALLS, SLOW_CALLS, STEPS = 1000, 20, 10
LESS = {
    "distribute_8x10": 6.0,
    "distribute_20x46": 16.0,
    "distribute_60x80": 80.0,
    "control_tick_20x46": 30.0,
    "loop_tick_20x46": 75.0,
}  # [us]
SWING, PERIOD = 0.05, 0.004  # [rad] of the references of a tick, [s]
INFEASIBLE = 3.0  # times as long as feasible ones, at most


class Torques:
    """Torques of random tensions, which change little from one to the next; `beyond` asks for more than there is."""

    def __init__(self, size: str, beyond: bool = False) -> None:
        d, m = SIZES[size]
        rng = np.random.default_rng(1)
        self.G = np.zeros((m, d))
        for row in self.G:
            row[rng.choice(d, min(ACROSS, d), replace=False)] = rng.uniform(-ARM, ARM, min(ACROSS, d))
        walk = rng.uniform(LEAST, 0.4 * MOST, m) + np.cumsum(2.0 * rng.standard_normal((PROBLEMS, m)), axis=0)
        self.tau = -np.clip(walk, LEAST, MOST) @ self.G * (20.0 if beyond else 1.0)
        self.least, self.most = np.full(m, LEAST), np.full(m, MOST)
        self.rows = cycle(np.ascontiguousarray(self.tau))

    def ours(self, warm: bool = True) -> Callable[[], object]:
        """The distribution, forming its matrix included."""
        distribution = TensionDistribution(self.G.shape[1], self.least, self.most)
        t, table = distribution.packed.record, distribution.packed.table
        t.bias[:] = t.least

        def call() -> int:
            t.tau[:] = next(self.rows)
            if not warm:
                t.side[:], t.works[:] = 1, False
            return int(distribute_at(table, self.G))

        return call

    def daqp(self) -> Callable[[], object]:
        """DAQP with the torques as equalities: it has no answer where they are infeasible."""
        import daqp

        m, d = self.G.shape
        H, f, A = np.eye(m), -self.least, np.ascontiguousarray(self.G.T)
        sense = np.r_[np.zeros(m), np.full(d, 5)].astype(np.int32)

        def call() -> Any:
            b = -next(self.rows)
            return daqp.solve(H, f, A, np.r_[self.most, b], np.r_[self.least, b], sense)

        return call

    def scipy(self) -> Callable[[], object]:
        """SciPy's bounded least squares (BVLS) of the same objective."""
        from scipy.optimize import lsq_linear

        m = len(self.least)
        A = np.vstack([np.eye(m), self.G.T / np.sqrt(EPS)])

        def call() -> Any:
            b = np.r_[self.least, -next(self.rows) / np.sqrt(EPS)]
            return lsq_linear(A, b, (self.least, self.most), method="bvls")

        return call


def distribution_cases() -> tuple[list[TimedCall], list[TimedCall]]:
    """Ours and DAQP's; SciPy's, which takes a thousand times as long."""
    fast, slow = [], []
    for size, (d, _) in SIZES.items():
        fast.append(TimedCall(f"distribute_{size}", Torques(size).ours(), d))
        fast.append(TimedCall(f"distribute_{size}_cold", Torques(size).ours(warm=False), d))
        fast.append(TimedCall(f"distribute_{size}_infeasible", Torques(size, beyond=True).ours(), d))
        if importlib.util.find_spec("daqp") is not None:
            fast.append(TimedCall(f"daqp_{size}", Torques(size).daqp(), d))
        if size in ("8x10", "20x46"):
            slow.append(TimedCall(f"scipy_{size}", Torques(size).scipy(), d))
    return fast, slow


def step_cases(robot: Robot) -> list[TimedCall]:
    """STEPS steps of the plant of winches, and of MuJoCo alone with the same bodies and spatial tendons."""
    world = WinchWorld(robot, WorldSettings(drives=WINCHES))
    m, held = len(world.winches.names), world.winches.record.tension.copy()
    world.set_tendon_commands(WinchCommand(np.full(m, HYBRID), np.zeros(m), held, np.zeros(m)))
    size = f"{len(world.winches.joints)}x{m}"
    cases = [TimedCall(f"winch_step_{size}", lambda: world.step(STEPS), len(world.winches.joints))]
    if importlib.util.find_spec("mujoco") is not None:
        from humanoid_control.simulation.worlds.mujoco_winches import MujocoWinchWorld

        other = MujocoWinchWorld(robot, WorldSettings(drives=WINCHES))
        model, data, step = other.mj_model, other.mj_data, other.mujoco.mj_step
        data.ctrl[robot.n :] = held
        cases.append(TimedCall(f"mj_step_{size}", lambda: step(model, data, STEPS), len(world.winches.joints)))
    return cases


def tick_cases(robot: Robot) -> list[TimedCall]:
    """A tick of law hybrid with references that move, without and with the estimate from lengths and tensions."""
    geometry, groups = tendon_geometry(robot), tendon_groups(robot)
    control = TendonController(robot.model, geometry, units_of(robot), held=robot.q("neutral"))
    estimator = TendonEstimator(groups, tendon_mappings(robot, groups), EstimatorSettings("absolute"))
    theta, d = geometry.theta(robot.q("neutral")), len(geometry.joint_names)
    states = no_states(len(geometry.tendon_names))
    states.wire[:], states.tension[:] = geometry.lengths(theta) + geometry.zero, control.least + LEAST
    estimator.reset(dict(zip(geometry.joint_names, theta.tolist(), strict=True)))
    control.reset(theta, states)
    lengths = geometry.lengths(theta)[[geometry.tendon_names.index(n) for n in estimator.muscle_names]]
    order = np.array([estimator.joint_names.index(n) for n in geometry.joint_names])
    still, speed = np.zeros(d), np.full(d, 0.1)
    references = [JointReference(theta + SWING * np.sin(k), speed, still, still) for k in np.arange(0.0, 6.2, 0.05)]
    wanted = cycle(references)
    size = f"{d}x{len(geometry.tendon_names)}"

    def loop() -> object:
        return control.step(next(wanted), estimator.step(lengths)[order], states, PERIOD)

    return [
        TimedCall(f"control_tick_{size}", lambda: control.step(next(wanted), theta, states, PERIOD), d),
        TimedCall(f"loop_tick_{size}", loop, d),
    ]


def measure_control(robot: Robot, show: Callable[[float], object]) -> list[dict[str, Any]]:
    """Rows of all cases [us]; a step is one of many in a call."""
    fast, slow = distribution_cases()
    steps = step_cases(robot)
    groups = ((fast, CALLS, 1), (slow, SLOW_CALLS, 1), (tick_cases(robot), CALLS, 1), (steps, CALLS // STEPS, STEPS))
    rows = []
    for k, (cases, calls, each) in enumerate(groups):
        times = take_turns(cases, calls, lambda share, k=k: show((k + share) / len(groups)))  # type: ignore[misc]
        for case, sample in zip(cases, times, strict=True):
            us = 1e6 * sample / each
            row: dict[str, Any] = {"name": case.name, "unit": "us", "median": round(float(np.median(us)), 2)}
            row |= {"best": round(float(us.min()), 2), "p99": round(float(np.percentile(us, 99)), 2), "n": len(us)}
            rows.append(
                row | {"size": next(part for part in case.name.split("_") if "x" in part), "peak_mb": "", "source": ""}
            )
    return rows


def judge_control(rows: list[dict[str, Any]]) -> None:
    """Write goals to the rows: microseconds, and infeasible torques next to feasible ones."""
    by = {row["name"]: row for row in rows}
    for row in rows:
        name = row["name"]
        row |= {"ratio": "", "ratios": {}, "goal": "", "reached": ""}
        if name in LESS:
            row |= {"goal": f"< {LESS[name]:g} us", "reached": "yes" if row["median"] < LESS[name] else "no"}
        if name.endswith("_infeasible"):
            feasible = by[name.removesuffix("_infeasible")]
            ratio = round(float(row["median"]) / float(feasible["median"]), 1)
            row |= {"ratio": ratio, "goal": f"{INFEASIBLE:g} x feasible at most"}
            row["reached"] = "yes" if ratio <= INFEASIBLE else "no"
        for peer in ("daqp", "scipy"):
            theirs = by.get(name.replace("distribute", peer, 1)) if name.startswith("distribute_") else None
            if theirs:
                row["ratios"][peer] = round(float(theirs["median"]) / float(row["median"]), 1)
        if name.startswith("winch_step") and (theirs := by.get(name.replace("winch", "mj", 1))):
            row["ratios"]["mujoco"] = round(float(theirs["median"]) / float(row["median"]), 2)


NOTES = (
    "distribute: torques to tensions, with a new matrix each time, warm-started; cold: without warm start; "
    "infeasible: torques beyond all tensions. daqp: the same with equalities, which has no solution there; scipy: "
    "BVLS.",
    "control_tick: lengths, arms, inverse dynamics, governor, distribution and law hybrid; loop_tick: with the "
    "absolute estimate.",
    "winch_step: one step of 1 ms, drives, motors and wires included; mj_step: MuJoCo with the same bodies, spatial "
    "tendons and constant forces, without winches.",
)
