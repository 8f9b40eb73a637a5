"""Bad starts: robots inside themselves and outside their ranges, and how the safe solver leads them out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from humanoid_control.errors import RobotError
from humanoid_control.ik.tasks import PointsTask, PostureTask, Task
from humanoid_control.ik.velocity_ik import VelocityIk
from humanoid_control.robots import Robot
from humanoid_control.robots.near_pairs import RobotPairs
from humanoid_control.robots.pair_watch import PairWatch

BEYOND = 0.2  # share of its range by which a joint may start outside it
WIDEST = 2.5  # [rad] a joint that turns farther starts within this
SETTLED = 25  # ticks without collision and inside all ranges after which a run ends
TOLERANCE = 1e-6
APART = 1e-3  # [m]


@dataclass(frozen=True)
class Start:
    """A start: the configuration (nq,), and where the hands should go, if anywhere."""

    q: np.ndarray
    posture: np.ndarray
    deepest: float
    outside: float
    targets: bool


@dataclass(frozen=True)
class Run:
    """What became of one start.

    Attributes:
        start: from where.
        left: time after which it was free of collisions and inside all ranges for good [s]; None: never.
        closest: smallest distance of a pair at the end, measured anew [m]. outside: largest excess over a range [rad].
        speed, acceleration: largest shares of the limits that were used.
        separation: largest speed at which a joint outside its range came back [rad/s].
        fresh: pairs that were apart and touched later. failures: ticks without an answer.
        slowest: the longest tick [s].
    """

    start: Start
    left: float | None
    closest: float
    outside: float
    speed: float
    acceleration: float
    fresh: int
    failures: int
    blocking: tuple[str, ...]
    stage: int


def starts(robot: Robot, count: int, seed: int = 0) -> Iterator[Start]:
    """Random bad starts: a third anywhere inside the ranges, a third also beyond them, a third the deepest of four.

    Every second one has targets for its hands. A start that is neither in collision nor outside a range is not bad,
    and is drawn again.
    """
    rng, watch = np.random.default_rng(seed), PairWatch(robot)
    everything = np.full(len(robot.pairs), np.inf)
    low, high = np.maximum(robot.lower, -WIDEST), np.minimum(robot.upper, WIDEST)
    width = high - low
    for k in range(count):
        beyond = 0.0 if k % 3 == 0 else BEYOND
        best: Start | None = None
        drawn, wanted = 0, 4 if k % 3 == 2 else 1
        while best is None or drawn < wanted:
            joints = robot.follow(rng.uniform(low - beyond * width, high + beyond * width))
            goal = robot.follow(rng.uniform(low, high))
            q = robot.q(joints)
            watch.look(q, everything)
            deepest = float(watch.lower.min()) if len(robot.pairs) else np.inf
            outside = excess(robot, q)
            if deepest >= 0 and outside <= 0:
                continue
            drawn += 1
            if best is None or deepest < best.deepest:
                best = Start(q, goal, deepest, outside, k % 2 == 1)
        yield best


def excess(robot: Robot, q: np.ndarray) -> float:
    """How far the worst joint is outside its range [rad]; 0 inside."""
    joints = robot.joints(q)
    return float(np.max(np.maximum(robot.lower - joints, joints - robot.upper), initial=0.0))


def leave(solver: VelocityIk, start: Start, dt: float = 0.004, seconds: float = 10.0) -> Run:
    """Let the solver lead a robot out of a bad start."""
    robot, limit, watch = solver.robot, solver.settings.acceleration, solver.pairs
    if watch is None:
        raise RobotError(f"{solver.robot.name} has no pairs of shapes to keep apart")
    solver.reset()
    tasks: list[Task] = [PostureTask(robot.postures["neutral"])]
    if start.targets:
        hands = [robot.point_frame(p) for p in ("l_wrist", "r_wrist") if p in robot.points]
        points = PointsTask(robot, hands, gain=5.0)
        points.targets = robot.frame_positions(robot.q(start.posture), hands)
        tasks.append(points)
    q, v = start.q, np.zeros(robot.nv)
    speed = acceleration = 0.0
    fresh = failures = calm = stage = 0
    apart = np.zeros(len(robot.pairs), dtype=bool)
    left = None
    for k in range(round(seconds / dt)):
        result = solver.step(q, tasks, dt)
        near = result.near
        touching = np.zeros(len(robot.pairs), dtype=bool)
        touching[near.pair[near.distance < 0]] = True
        fresh += int((touching & apart).sum())
        apart = (apart & ~touching) | (watch.lower > APART)
        free = not touching.any() and excess(robot, q) <= TOLERANCE
        calm = calm + 1 if free else 0
        if calm == 1:
            left = k * dt
        if calm >= SETTLED:
            break
        failures += not result.ok or not bool(np.isfinite(result.q).all())
        speed = max(speed, float(np.max(np.abs(result.v[robot.iv :]) / robot.velocity)))
        acceleration = max(acceleration, float(np.max(np.abs(result.v - v)[robot.iv :]) / (limit * dt)))
        q, v, stage = result.q, result.v, max(stage, solver.stage)
    near = RobotPairs(robot).near(q, np.inf)  # all of them, by what the solver did not use
    d = np.full(len(robot.pairs), np.inf)
    d[near.pair] = near.distance
    blocking = tuple(" + ".join(watch.name(int(p))) for p in np.flatnonzero(d < -TOLERANCE))
    return Run(
        start,
        left if calm else None,
        float(d.min()),
        excess(robot, q),
        speed,
        acceleration,
        fresh,
        failures,
        blocking,
        stage,
    )
