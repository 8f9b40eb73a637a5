"""Clearance of commands: millions of them, from targets of every sort, measured by the shapes of the published URDF.

The solver keeps shapes apart by its own arithmetic. Here pinocchio reads the URDF again, and its shapes are measured
by coal, so that an error in either the file or the solver shows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin

from evidence.studies.report import KeptOutcomes, Progress, StudyReport, silent
from humanoid_control.errors import ConfigError, RobotError
from humanoid_control.ik import FollowerSettings, TargetFollower
from humanoid_control.reaching import HANDS, GoalSampler, ReachScript, ScriptSettings
from humanoid_control.robots import CATALOGUE, Robot, load_robot
from humanoid_control.robots.description.urdf import parse_urdf
from humanoid_control.terminal import ReportTable, machine

COMMANDS = 100_000
CHUNK = 10_000  # commands of one job: 40 s of a robot's life, from its neutral posture on
PERIOD, SAMPLES = 0.004, 4  # [s] of a command; commands a sample of the targets
KEPT_SHARE = 0.75  # of its margin that a pair has to keep
TOUCHING = 1e-3  # [m] pairs that are nearer in the neutral posture have no margin to be measured by
TINY = 1e-6  # [m] of coal's distances
FAR = 1.3  # of the length of an arm, to which wild targets go
SWITCH = (0.05, 1.2)  # [s] between two wild targets


class PublishedShapes:
    """Collision shapes of a robot's URDF, as pinocchio reads them, and the pairs of them that the controller watches.

    Attributes:
        names: of both sides of P pairs. margin: (P,) distances that they are to keep [m].
    """

    def __init__(self, robot: Robot, margin: float) -> None:
        """Read them; margin: of the controller [m], less where a pair is nearer in the neutral posture.

        Raises:
            RobotError: there are no pairs.
        """
        self.robot = robot
        self._geometry = pin.buildGeomFromUrdfString(robot.model, robot.urdf, pin.GeometryType.COLLISION)
        names = self._names()
        watched = {frozenset((robot.shapes[i].name, robot.shapes[j].name)) for i, j in robot.pairs}
        self.names: list[tuple[str, str]] = []
        for i, a in enumerate(names):
            for j in range(i + 1, len(names)):
                if frozenset((a, names[j])) in watched:
                    self._geometry.addCollisionPair(pin.CollisionPair(i, j))
                    self.names.append((a, names[j]))
        if not self.names:
            raise RobotError(f"{robot.name} has no pairs of shapes to keep apart")
        self._data, self._results = robot.model.createData(), self._geometry.createData()
        self._bounds = self._motion_bounds()
        self._known, self._q = np.full(len(self.names), -np.inf), robot.q()
        at_rest = self.measure(robot.q())
        self.margin = np.where(at_rest < TOUCHING, 0.0, np.minimum(margin, at_rest))

    def _names(self) -> list[str]:
        shape_of = {}
        for link in parse_urdf(self.robot.urdf, self.robot.name).document.findall("link"):
            for k, e in enumerate(link.findall("collision")):
                shape_of[f"{link.get('name')}_{k}"] = e.get("name", "")
        return [shape_of[g.name] for g in self._geometry.geometryObjects]

    def _motion_bounds(self) -> np.ndarray:
        """Bounds (P, nv) on how much a pair's distance changes by each joint's angle [m/rad].

        A joint moves a point by no more than the way to it along the links; where it moves both sides, not at all.
        """
        model, bounds = self.robot.model, []
        for g in self._geometry.geometryObjects:
            g.geometry.computeLocalAABB()
            way = float(np.linalg.norm(g.placement.act(g.geometry.aabb_center)) + g.geometry.aabb_radius)
            row = np.zeros(model.nv)
            for j in reversed(list(model.supports[g.parentJoint])[1:]):
                row[model.idx_vs[j] : model.idx_vs[j] + model.nvs[j]] = way
                slides = (
                    np.abs([*self.robot.lower, *self.robot.upper]).max() if "P" in model.joints[j].shortname() else 0
                )
                way += float(np.linalg.norm(model.jointPlacements[j].translation)) + slides
            bounds.append(row)
        sides = [(bounds[p.first], bounds[p.second]) for p in self._geometry.collisionPairs]
        return np.array([np.where((a > 0) != (b > 0), a + b, 0.0) for a, b in sides])

    def measure(self, q: np.ndarray, near: float = np.inf) -> np.ndarray:
        """Distances (P,) of the pairs at a configuration [m]; of those that cannot be nearer than `near`, a bound.

        What a pair can have come nearer since it was measured is bounded by the angles of the joints between.
        """
        moved = np.abs(pin.difference(self.robot.model, self._q, q))
        self._known -= self._bounds @ moved
        self._q = q.copy()
        todo = np.flatnonzero(self._known < near)
        if len(todo):
            pin.updateGeometryPlacements(self.robot.model, self._data, self._geometry, self._results, q)
            for k in todo.tolist():
                self._known[k] = pin.computeDistance(self._geometry, self._results, k).min_distance
        return self._known


def targets(robot: Robot, seed: int) -> Iterator[tuple[Sequence[str], np.ndarray]]:
    """Samples of targets without end: names, and poses (k, 7). By the seed a script of goals, or wild ones."""
    rng, period = np.random.default_rng(seed), SAMPLES * PERIOD
    hands = all(h in robot.points for h in HANDS)
    if hands and seed % 2 == 0:
        speed, jump = float(rng.uniform(0.3, 3.0)), float(rng.uniform(0.0, 1.0))
        settings = ScriptSettings(speed, float(rng.uniform(0.2, 1.0)), unreachable=0.5, jump=jump, faults=0.05)
        begin = robot.point_positions(robot.q(), HANDS)
        script, k = ReachScript(GoalSampler(robot), begin, seed, settings), 0
        while True:
            yield HANDS, _poses(script.at(k * period))
            k += 1
    names = tuple(robot.points)
    home = robot.point_positions(robot.q(), names)
    size = FAR * float(np.ptp(home, axis=0).max())
    goal, velocity, until, t = home.copy(), np.zeros_like(home), np.zeros(len(names)), 0.0
    while True:
        for k in np.flatnonzero(until <= t).tolist():
            until[k] = t + rng.uniform(*SWITCH)
            goal[k] = home[k] + rng.normal(0.0, 0.4 * size, 3) * rng.choice([0.2, 1.0])
            velocity[k] = rng.normal(0.0, 1.0, 3) * rng.choice([0.0, 0.3, 2.0])
        goal += velocity * period
        yield names, _poses(goal + rng.normal(0.0, 0.002, goal.shape))
        t += period


def _poses(positions: np.ndarray) -> np.ndarray:
    return np.hstack([positions, np.tile([0.0, 0.0, 0.0, 1.0], (len(positions), 1))])


def check_chunk(job: tuple[str, int, int]) -> dict[str, Any]:
    """Outcome of a robot, a seed and a number of commands."""
    name, seed, count = job
    robot, settings = load_robot(name, "fixed"), FollowerSettings()
    follower, shapes = TargetFollower(robot, settings), PublishedShapes(robot, settings.ik.margin)
    source, rng = targets(robot, seed), np.random.default_rng([seed, 1])
    follower.start(robot.postures["neutral"])
    counted, now = shapes.margin > 0.0, 0.0
    touched, beneath, share, least, where = 0, 0, np.inf, np.inf, ""
    for k in range(count):
        if k % SAMPLES == 0:
            names, poses = next(source)
            follower.update_many(names, poses, now)
        dt = PERIOD * float(rng.choice([1.0, 1.0, 1.0, 0.5, 2.0]))  # ticks come late, and between others
        now += dt
        follower.step(now, dt)
        distance = shapes.measure(follower.q, settings.ik.margin)
        touched += bool((distance[counted] < -TINY).any())
        of_margin = distance[counted] / shapes.margin[counted]
        beneath += bool((of_margin < KEPT_SHARE).any())
        if (worst := float(of_margin.min(initial=np.inf))) < share:
            pair = int(np.flatnonzero(counted)[of_margin.argmin()])
            share, where = worst, " + ".join(shapes.names[pair])
        least = min(least, float(distance[counted].min(initial=np.inf)))
    return {
        "commands": count,
        "touched": touched,
        "beneath": beneath,
        "share": share,
        "least": least,
        "where": where,
        "pairs": int(counted.sum()),
    }


# -------- Report

COLUMNS = [
    "robot",
    "commands",
    "pairs",
    "in collision",
    f"below {KEPT_SHARE:g} of the margin",
    "lowest share",
    "smallest mm",
]
NOTE = f"""Hand targets move and jump to goals within and out of reach, and targets of all points jump about; tick
lengths vary. Each command is evaluated with the shapes of the published URDF. lowest share: smallest distance of a
pair as a share of its required distance, which is the margin of the controller, or the distance in the neutral posture
if that is smaller. Pairs closer than {1000 * TOUCHING:g} mm there have no margin and are not counted."""


def run_study(
    robot: str | None = None,
    commands: int = COMMANDS,
    seed: int = 0,
    workers: int | None = None,
    resume: Path | None = None,
    show: Progress = silent,
) -> StudyReport:
    """Check commands of all robots.

    Args:
        robot: name or path; None: every robot of the catalogue. commands: of each robot. seed: of the targets.
        workers: processes; None: one a core. resume: file that keeps outcomes: what is in it is not done again.
        show: told of progress.

    Raises:
        ConfigError: numbers that make no sense. RobotError: a robot without pairs of shapes.
    """
    if commands < 1:
        raise ConfigError(f"commands must be at least 1, got {commands}")
    if seed < 0:
        raise ConfigError(f"the seed must be 0 or more, got {seed}")
    names = [robot] if robot else list(CATALOGUE)
    for name in names:
        load_robot(name, "fixed")
    sizes = [min(CHUNK, commands - k) for k in range(0, commands, CHUNK)]
    jobs = [(name, seed + k, size) for k, size in enumerate(sizes) for name in names]
    kept = KeptOutcomes(resume, "checked commands")
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    for job, outcome in zip(jobs, kept.all(jobs, check_chunk, workers, lambda s: show(s, "commands")), strict=True):
        found[job[0]].append(outcome)
    rows = {name: _summary(outcomes) for name, outcomes in found.items()}
    table = ReportTable("clearance of commands", COLUMNS, [_row(name, s) for name, s in rows.items()])
    worst = [f"{name}: closest to its margin {s['where']}" for name, s in rows.items()]
    data = {"study": "clearance", "seed": seed, "robots": rows, "machine": machine()}
    return StudyReport(data, [table, *worst, NOTE])


def _summary(outcomes: Sequence[dict[str, Any]]) -> dict[str, Any]:
    worst = min(outcomes, key=lambda o: o["share"])
    return {
        "commands": sum(o["commands"] for o in outcomes),
        "touched": sum(o["touched"] for o in outcomes),
        "beneath": sum(o["beneath"] for o in outcomes),
        "share": worst["share"],
        "least": min(o["least"] for o in outcomes),
        "where": worst["where"],
        "pairs": worst["pairs"],
    }


def _row(name: str, s: dict[str, Any]) -> list[Any]:
    share, least = round(s["share"], 3), round(1000 * s["least"], 2)
    return [name, s["commands"], s["pairs"], s["touched"], s["beneath"], share, least]
