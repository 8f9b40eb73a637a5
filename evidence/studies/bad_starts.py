"""Bad starts: robots in self-collision and outside their ranges, and their recovery by the whole-body solver.

`run_study` plays thousands of them for `humanoid study safety`; `bad_starts` and `recover` play one.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from evidence.studies.report import Progress, StudyReport, silent
from humanoid_control.errors import ConfigError, RobotError
from humanoid_control.ik import WholeBodyIk
from humanoid_control.ik.tasks.joints import PostureTask
from humanoid_control.ik.tasks.points import PointsTask
from humanoid_control.ik.tasks.task import Task
from humanoid_control.robots.robot import Robot
from humanoid_control.robots.self_collision import ShapePairs
from humanoid_control.terminal import ReportTable, machine

MOST_TRIED = 20000  # postures, before a robot is taken to be unable to touch itself
BEYOND = 0.2  # share of its range by which a joint may start outside it
WIDEST = 2.5  # [rad] a joint that turns farther starts within this
SETTLED = 25  # ticks without collision and inside all ranges after which late targets are switched on
GOOD = 1.0  # [s] without collision and inside all ranges, with targets on, after which a start is left for good
TOLERANCE = 1e-9  # [rad]
APART = 1e-3  # [m] a pair has to have been apart by, to count as touching again
HANDS = ("l_wrist", "r_wrist")


@dataclass(frozen=True)
class BadStart:
    """A bad start.

    Attributes:
        q: (nq,) configuration, at rest.
        goal: (nq,) a posture within the ranges, whose hands are the targets.
        late: the targets are switched on only when the robot is out; else they are on from the beginning.
        penetration_depth: of the worst pair [m]; negative where all are apart.
        limit_violation: largest angle of a joint outside its range [rad].
    """

    q: np.ndarray
    goal: np.ndarray
    late: bool
    penetration_depth: float
    limit_violation: float


@dataclass
class RecoveryRun:
    """Recovery from one start.

    Attributes:
        recovered: time after which it was free of collisions and inside all ranges for good [s], which is until it had
            been for GOOD with targets on; None: never.
        relapses: number of times that it was out for SETTLED ticks and came to be in collision or out of range again.
        closest: smallest distance of a pair at the end [m], by a monitor of its own.
        limit_violation: at the end [rad].
        recovery_speed: fastest joint before that time [rad/s].
        speed, acceleration: largest shares of the limits that were used.
        touched: number of times that a pair that was apart came to touch.
        failures: ticks without an answer, or with one that is not a number.
        stage: last stage of CollisionRecovery that was needed.
        blocking: pairs in collision at the end.
        ticks: time of each tick [s].
    """

    start: BadStart
    recovered: float | None = None
    relapses: int = 0
    closest: float = np.inf
    limit_violation: float = 0.0
    recovery_speed: float = 0.0
    speed: float = 0.0
    acceleration: float = 0.0
    touched: int = 0
    failures: int = 0
    stage: int = 0
    blocking: tuple[str, ...] = ()
    ticks: list[float] = field(default_factory=list)


def bad_starts(robot: Robot, count: int, seed: int = 0) -> Iterator[BadStart]:
    """Random bad starts: a third anywhere inside the ranges, a third also beyond them, a third the deepest of four.

    Every second one has targets for its hands from the beginning, the others have them once they are out. A start that
    is neither in collision nor outside a range is not bad, and is drawn again.

    Raises:
        RobotError: the robot has no collision pairs, or none of so many postures is in collision.
    """
    if not len(robot.pairs):
        raise RobotError(f"{robot.name} has no pairs of shapes to keep apart")
    rng, watch = np.random.default_rng(seed), ShapePairs(robot)
    low, high = robot.range_within(WIDEST)
    for k in range(count):
        beyond = 0.0 if k % 3 == 0 else BEYOND * (high - low)
        best: BadStart | None = None
        tried, drawn, needed = 0, 0, 4 if k % 3 == 2 else 1
        while best is None or drawn < needed:
            q = robot.q(robot.follow(rng.uniform(low - beyond, high + beyond)))
            goal = robot.q(robot.follow(rng.uniform(low, high)))
            watch.update(q, np.inf)
            depth, outside = -float(watch.lower.min(initial=np.inf)), limit_violation(robot, q)
            tried += 1
            if depth <= 0 and outside <= 0:
                if tried < MOST_TRIED:
                    continue
                raise RobotError(f"{robot.name}: none of {MOST_TRIED} postures inside its ranges is in collision")
            drawn += 1
            if best is None or depth > best.penetration_depth:
                best = BadStart(q, goal, k % 2 == 0, depth, outside)
        yield best


def limit_violation(robot: Robot, q: np.ndarray) -> float:
    """Largest angle of a joint outside its range [rad]; 0 inside."""
    joints = robot.joints(q)
    return float(np.max(np.maximum(robot.lower - joints, joints - robot.upper), initial=0.0))


def recover(solver: WholeBodyIk, start: BadStart, dt: float = 0.004, seconds: float = 15.0) -> RecoveryRun:
    """Let the solver move a robot out of a bad start, for so many seconds at most.

    Raises:
        RobotError: the robot has no collision pairs.
    """
    robot, s, apart_limit, run = solver.robot, solver.settings, solver.self_collision, RecoveryRun(start)
    most = robot.accelerations_within(s.acceleration, s.acceleration_scale).acceleration
    if apart_limit is None or not isinstance(apart_limit.monitor, ShapePairs):
        raise RobotError(f"{robot.name} has no pairs of shapes to keep apart")
    watch = apart_limit.monitor
    solver.reset()
    hands = _hands_task(robot, start)
    tasks: list[Task] = [PostureTask(robot)]
    waiting = list[Task](hands)  # targets that are not on yet
    q, v, calm, held = start.q, np.zeros(robot.nv), 0, 0
    apart, free_since = np.zeros(len(robot.pairs), dtype=bool), 0.0
    for k in range(round(seconds / dt)):
        if waiting and (calm >= SETTLED or not start.late):
            tasks, waiting = [*tasks, *waiting], []
        begin = time.perf_counter()
        result = solver.step(q, tasks, dt)
        run.ticks.append(time.perf_counter() - begin)
        touching = np.zeros(len(robot.pairs), dtype=bool)
        touching[result.near.pair[result.near.distance < 0]] = True
        run.touched += int((touching & apart).sum())
        apart = (apart & ~touching) | (watch.lower > APART)
        free = not touching.any() and limit_violation(robot, q) <= TOLERANCE
        run.relapses += calm >= SETTLED and not free
        calm, held = (calm + 1, held + (not waiting)) if free else (0, 0)
        if calm == 1:
            free_since = k * dt
        if held * dt >= GOOD:
            run.recovered = free_since
            break
        u = np.abs(result.v[robot.iv :])
        run.failures += not result.ok or not bool(np.isfinite(result.q).all())
        run.speed = max(run.speed, float(np.max(u / robot.velocity)))
        if not free:
            run.recovery_speed = max(run.recovery_speed, float(u.max()))
        change = np.abs(result.v - v)[robot.iv :]
        run.acceleration = max(run.acceleration, float(np.max(change / (most * dt))))
        q, v, run.stage = result.q, result.v, max(run.stage, apart_limit.recovery.stage)
    near = robot.collision_monitor("shapes").update(q, np.inf)  # all of them
    run.closest, run.limit_violation = float(near.distance.min()), limit_violation(robot, q)
    run.blocking = tuple(" + ".join(watch.name(int(p))) for p in near.pair[near.distance < 0])
    return run


def _hands_task(robot: Robot, start: BadStart) -> list[Task]:
    """The targets of the hands; none for a robot without hands."""
    hands = [robot.point_frame(p) for p in HANDS if p in robot.points]
    if not hands:
        return []
    points = PointsTask(robot, hands, gain=5.0)
    points.targets = robot.frame_positions(start.goal, hands)
    return [points]


# -------- Report

STARTS = 2000
COLUMNS = [
    "robot",
    "starts",
    "inside",
    "outside",
    "deep mm",
    "not recovered",
    "relapses",
    "recovered ms",
    "p99 ms",
    "home",
]
COLUMNS += ["through", "touched", "rad/s", "limits", "failures", "tick µs"]
NOTE = f"""inside, outside: starts in collision, and with a joint beyond its range by up to 20 % of it. All have
targets for the hands: every second one from the beginning, the others after the recovery. recovered: time until the
robot is out of collision and inside all ranges for {GOOD:g} s with active targets (median). not recovered: within 15
s. relapses: number of returns to an invalid state. home: recovered by homing to the neutral posture, because the
gradients alone did not suffice; through: of these, runs in which separate pairs had to pass through each other;
touched: number of new contacts of pairs that were 1 mm apart. rad/s: fastest joint during the recovery. limits:
largest share of a speed or acceleration limit; above 1 is a violation."""


def run_study(robot: str | None = None, starts: int = STARTS, seed: int = 0, show: Progress = silent) -> StudyReport:
    """Play all starts.

    Args:
        robot: name or path; None: every robot of the catalogue. starts: of each robot.
        seed: of the starts.
        show: called with the share done.
    """
    from humanoid_control.robots.catalogue import load_robot
    from humanoid_control.robots.names import CATALOGUE

    if starts < 1:
        raise ConfigError(f"starts must be at least 1, got {starts}")
    if seed < 0:
        raise ConfigError(f"the seed must be 0 or more, got {seed}")
    robots = [load_robot(name, "fixed") for name in ([robot] if robot else CATALOGUE)]
    results = []
    for n, model in enumerate(robots):
        solver, runs = WholeBodyIk(model), []
        for k, start in enumerate(bad_starts(model, starts, seed)):
            show((n + k / starts) / len(robots), model.name)
            runs.append(recover(solver, start))
        results.append(summary(model, runs))
    parts: list[ReportTable | str] = [ReportTable("recovery from invalid starts", COLUMNS, [_row(r) for r in results])]
    parts.append(NOTE)
    for r in results:
        if r["blocking"]:
            pairs = ", ".join(f"{name} ({times})" for name, times in list(r["blocking"].items())[:6])
            parts.append(f"{r['robot']}, not recovered: {pairs}")
    return StudyReport({"study": "safety", "seed": seed, "robots": results, "machine": machine()}, parts)


def summary(robot: Robot, runs: list[RecoveryRun]) -> dict[str, Any]:
    """Statistics of one robot."""
    times = np.array([r.recovered for r in runs if r.recovered is not None])
    ticks = 1e6 * np.concatenate([r.ticks for r in runs])
    blocking = Counter(pair for r in runs if r.recovered is None for pair in r.blocking)
    return {
        "robot": robot.name,
        "starts": len(runs),
        "inside": sum(r.start.penetration_depth > 0 for r in runs),
        "outside": sum(r.start.limit_violation > 0 for r in runs),
        "deepest": max(r.start.penetration_depth for r in runs),
        "not_left": sum(r.recovered is None for r in runs),
        "left_median": float(np.median(times)) if len(times) else None,
        "left_p99": float(np.percentile(times, 99)) if len(times) else None,
        "stages": dict(sorted(Counter(r.stage for r in runs).items())),
        "relapses": sum(r.relapses for r in runs),
        "touched": sum(r.touched for r in runs),
        "closest_end": min(r.closest for r in runs),
        "outside_end": max(r.limit_violation for r in runs),
        "leaving_speed": max(r.recovery_speed for r in runs),
        "speed_share": max(r.speed for r in runs),
        "acceleration_share": max(r.acceleration for r in runs),
        "failures": sum(r.failures for r in runs),
        "tick_median": float(np.median(ticks)),
        "tick_p99": float(np.percentile(ticks, 99)),
        "blocking": dict(blocking.most_common()),
    }


def _row(r: dict[str, Any]) -> list[Any]:
    ms = ["-" if r[k] is None else round(1000 * r[k]) for k in ("left_median", "left_p99")]
    home, through = (sum(n for stage, n in r["stages"].items() if stage >= least) for least in (1, 2))
    row = [
        r["robot"],
        r["starts"],
        r["inside"],
        r["outside"],
        round(1000 * r["deepest"]),
        r["not_left"],
        r["relapses"],
        *ms,
    ]
    limits = round(max(r["speed_share"], r["acceleration_share"]), 6)
    row += [home, through, r["touched"], round(r["leaving_speed"], 3), limits]
    return [*row, r["failures"], round(r["tick_median"])]
