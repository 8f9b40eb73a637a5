"""`humanoid study dance`: clips danced on the own feet, standing and with the dancer's steps, by noisy sensors.

A dance of a robot is simulated, and the same with its pelvis held.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin

from evidence.studies.report import KeptOutcomes, Progress, StudyReport, silent
from evidence.studies.walking.trial import NOISE, SETTLING, NoisySensors
from humanoid_control.errors import ConfigError, HumanoidError, UnknownNameError
from humanoid_control.ik.tasks.frames import OrientationTask
from humanoid_control.ik.tasks.joints import PostureTask
from humanoid_control.ik.tasks.task import Task
from humanoid_control.ik.whole_body_ik import WholeBodyIk
from humanoid_control.mocap import load_body_points
from humanoid_control.retargeting import scale_to_robot
from humanoid_control.robots import Robot, load_robot
from humanoid_control.simulation import SimulationConfig
from humanoid_control.simulation.engine import Engine
from humanoid_control.simulation.sensors.sensor_model import Imperfection
from humanoid_control.terminal import ReportTable, machine
from humanoid_control.walking.balance_tasks import CHEST, FREE_ARMS, gesture_tasks, walking_settings
from humanoid_control.walking.dancing.dance_steps import Choreography
from humanoid_control.walking.dancing.routine import Routine, routine
from humanoid_control.walking.dancing.upper_body import ClipMotion, Gestures, GestureScore
from humanoid_control.walking.support import convex_hull, edge_distance
from humanoid_control.walking.walker import Walker, WalkReport, WalkState

REST = 1.0  # [s] of standing before the dance and after it
NEAR = 0.03  # [m] of a step on the spot
LOADED = 0.05  # share of the weight from which a sole counts as support


@dataclass
class DanceOutcome:
    """What became of a dance.

    Attributes:
        fell: why, empty where it did not. steps: that were made. time: [s], simulated.
        wrist, elbow: mean distance to the goal, from the sternum in the axes of the chest [m].
        zmp_margin: least distance of the true zero-moment point from the edge of the soles that carry [m].
        tilt: most of the chest [rad]. dcm_error: root mean square of xi - xi_ref [m].
        torque_share: most of a limit.
        taken: steps of the dancer that were made; placed: of these within a fifth of the scaled length, or NEAR.
        place_error: (taken,) by which feet came down off the dancer's scaled
            place, against the other foot [m]. beat_error: (taken - 1,) of the times between lift-offs [s].
    """

    fell: str = ""
    steps: int = 0
    time: float = 0.0
    wrist: float = float("nan")
    elbow: float = float("nan")
    zmp_margin: float = float("inf")
    tilt: float = 0.0
    dcm_error: float = 0.0
    torque_share: float = 0.0
    taken: int = 0
    placed: int = 0
    place_error: np.ndarray = field(default_factory=lambda: np.zeros(0))
    beat_error: np.ndarray = field(default_factory=lambda: np.zeros(0))


def dance(
    engine: Engine,
    walker: Walker,
    routine: Routine | ClipMotion,
    seed: int = 0,
    noise: Imperfection | None = NOISE,
    watch: Callable[[Engine, Walker, WalkReport], None] | None = None,
) -> DanceOutcome:
    """Dance until the motion has ended and the robot stands, or it falls.

    Args:
        engine: with a robot on a floating base, at rest. walker: of a robot of its own.
        routine: of the whole body, or of the upper body alone. seed, noise: of the sensors; None: they are perfect.
        watch: called after every tick.
    """
    motion = routine if isinstance(routine, ClipMotion) else routine.motion
    dt, h = walker.settings.dt, engine.settings.step
    half = max(round(0.5 * dt / h), 1)
    rest = max(round(dt / h) - half, 0)
    engine.step(round(SETTLING / h))
    sensors = NoisySensors(engine, noise, seed) if noise else None
    out, score, support = DanceOutcome(), GestureScore(engine.robot), Support(engine, walker)
    errors, placed = [], _Placed(engine, walker)
    walker.imitate(motion)
    while walker.t < motion.end + REST or walker.state != WalkState.STAND:
        measured = engine.read() if sensors is None else sensors.read()
        if measured is None:
            engine.step(half + rest)
            continue
        if isinstance(routine, Routine):
            routine.tick(walker)
        report = walker.step(measured)
        placed.look(report)
        engine.command(walker.joints, walker.joint_velocity)
        if watch is not None:
            watch(engine, walker, report)
        if report.state == WalkState.FALLEN or engine.diverged:
            out.fell = report.why or engine.failure
            break
        engine.step(half)
        if sensors is not None and rest:
            sensors.sample()
        if rest:
            engine.step(rest)
        if walker.t > motion.begin:
            out.zmp_margin = min(out.zmp_margin, support.margin())
            out.tilt = max(out.tilt, support.tilt)
            errors.append(report.balance.error)
            out.torque_share = max(out.torque_share, float((np.abs(engine.torque) / engine.robot.effort).max()))
        if motion.first <= walker.t <= motion.last:
            score.add(engine.q, motion.at(walker.t))
    out.steps, out.time = walker.steps, walker.t
    if isinstance(routine, Routine) and routine.made is not None:
        width = walker.planner.limits.width
        out.taken, out.placed, out.place_error, out.beat_error = placed.against(routine.made, routine.scale, width)
    out.wrist, out.elbow = score.result()
    out.dcm_error = float(np.sqrt((np.array(errors) ** 2).sum(axis=1).mean())) if errors else float("nan")
    return out


class Support:
    """The true zero-moment point and the soles that carry, of a simulated robot.

    Attributes:
        zmp: (2,) [m] of the last look. tilt: of the chest [rad].
    """

    def __init__(self, engine: Engine, walker: Walker) -> None:
        """Look at an engine's robot with the geometry of a walker's feet."""
        self._engine, self._feet = engine, walker.feet
        self._data, self._weight = engine.robot.model.createData(), engine.robot.mass * 9.81
        robot = engine.robot
        robot.point_positions(robot.q("neutral"), ["sternum"])
        self._chest = robot.points["sternum"]
        self._R_upright = robot.data.oMf[self._chest].rotation.copy()
        self.zmp, self.tilt = np.zeros(2), 0.0

    def margin(self) -> float:
        """Distance of the zero-moment point from the edge of the support, positive inside [m]; infinite in the air."""
        e, d, feet = self._engine, self._data, self._feet
        pin.framesForwardKinematics(e.robot.model, d, e.q)
        self.tilt = float(np.arccos(np.clip((d.oMf[self._chest].rotation @ self._R_upright.T)[2, 2], -1, 1)))
        total, moment, corners = 0.0, np.zeros(2), []
        for k, w in enumerate(feet.wrenches(d, e.foot_wrenches())):
            X = d.oMf[feet.frames[k]]
            f, tau = X.rotation @ w[:3], X.rotation @ w[3:]
            total += f[2]
            moment += [X.translation[0] * f[2] - tau[1], X.translation[1] * f[2] + tau[0]]
            if f[2] > LOADED * self._weight:
                (x0, y0), (x1, y1) = feet.outlines[k].min(axis=0), feet.outlines[k].max(axis=0)
                box = np.array([[x0, y0, 0], [x1, y0, 0], [x1, y1, 0], [x0, y1, 0]])
                corners.append((box @ X.rotation.T + X.translation)[:, :2])
        if total < LOADED * self._weight or not corners:
            return float("inf")
        self.zmp = moment / total
        return edge_distance(convex_hull(np.vstack(corners)), self.zmp)


class _Placed:
    """Where and when the feet of a simulated robot step, against each other."""

    def __init__(self, engine: Engine, walker: Walker) -> None:
        self._engine, self._walker, self._data = engine, walker, engine.robot.model.createData()
        self._swinging: int | None = None
        self.steps: list[tuple[int, float, np.ndarray]] = []  # foot, lift-off [s], place (2,) against the other [m]
        self._lift = 0.0

    def look(self, report: WalkReport) -> None:
        """After each tick of the walker."""
        k, before = report.references.swinging, self._swinging
        if before is not None and k is None:
            pin.framesForwardKinematics(self._engine.robot.model, self._data, self._engine.q)
            X = [self._data.oMf[f] for f in self._walker.feet.frames]
            self.steps.append((before, self._lift, X[1 - before].actInv(X[before]).translation[:2].copy()))
        if before is None and k is not None:
            self._lift = self._walker.t
        self._swinging = k

    def against(self, made: Choreography, scale: float, width: float) -> tuple[int, int, np.ndarray, np.ndarray]:
        """Steps made, those well placed, errors of their places [m], and of the times between their lift-offs [s]."""
        pairs = [(a, s) for a, s in zip(self.steps, made.dancer, strict=False) if a[0] == s.foot]
        sides = [np.array([0.0, width if foot == 0 else -width]) for (foot, _, _), _ in pairs]
        off = [np.linalg.norm(a[2] - scale * s.place - side) for (a, s), side in zip(pairs, sides, strict=True)]
        most = [max(0.2 * scale * float(np.linalg.norm(s.place)), NEAR) for _, s in pairs]
        good = sum(bool(e <= m) for e, m in zip(off, most, strict=True))
        beat = np.diff([lift for (_, lift, _), _ in pairs]) - np.diff([s.lift for _, s in pairs])
        return len(off), good, np.array(off), np.abs(beat)


def held(engine: Engine, robot: Robot, motion: ClipMotion, dt: float = 0.004) -> Gestures:
    """The same upper body with the pelvis held and perfect sensors: what the feet are measured against.

    Args:
        engine: with the robot on a fixed base. robot: another of it, with a fixed base. motion: what it follows.
    """
    ik, score = WholeBodyIk(robot, walking_settings(dt)), GestureScore(engine.robot)
    chest, arms = OrientationTask(robot, "sternum", weight=CHEST, gain=1.0 / dt), gesture_tasks(robot)
    posture = PostureTask(robot, weight=FREE_ARMS, gain=5.0)
    tasks: list[Task] = [chest, posture, *arms]
    q = robot.q("neutral")
    robot.point_positions(q, ["sternum"])
    R_upright = robot.data.oMf[chest.frame].rotation.copy()
    t = motion.begin
    while t < motion.last:
        t += dt
        goal = motion.at(t)
        chest.set_target(goal.chest @ R_upright)
        for task, x, v in zip(arms, goal.points @ R_upright, goal.velocity @ R_upright, strict=True):
            task.set_target(x, v)
        result = ik.step(q, tasks, dt)
        q = result.q
        engine.command(robot.joints(q), result.v[robot.iv :])
        engine.step(round(dt / engine.settings.step))
        if t >= motion.first:
            score.add(engine.q, motion.at(t))
    return score.result()


# -------- the study

ROBOTS = ("lola", "hrp2")
WAYS = ("standing", "steps")
NOTE = """Sensors with noise, a bias of the orientation and 2 ms of delay; the dancer sees no ground truth. wrist,
elbow: mean distance to the goal from the sternum, in the axes of the chest; held: the same with a fixed pelvis and
perfect sensors. margin: smallest distance of the true zero-moment point from the edge of the loaded soles; small on
one foot, and while the weight shifts. made: executed steps of the dancer; placed: of these, within a fifth of
the scaled length, or 3 cm; on the beat: times between lift-offs within 0.1 s of the dancer."""


def run_study(
    robot: str | None = None,
    clips: Sequence[str] = ("dance",),
    seeds: int = 1,
    seconds: float = 30.0,
    only: Sequence[str] = (),
    workers: int | None = None,
    resume: Path | None = None,
    show: Progress = silent,
) -> StudyReport:
    """Dance all clips.

    Args:
        robot: of the catalogue; default: Lola and HRP-2. clips: built in, or files. seeds: how often, with other noise.
        seconds: of each clip, from its begin. only: some of WAYS. workers: processes; None: one a core.
        resume: file in which outcomes are kept one a line: what is in it is not danced again.
        show: told how far it is.

    Raises:
        UnknownNameError: a way that is none. ConfigError: a number out of range; a file that cannot be written.
        ClipError, RobotError: what cannot be danced at all, before the first dance.
    """
    for way in only:
        if way not in WAYS:
            raise UnknownNameError("way to dance", way, WAYS)
    if not (0 < seeds <= 1000 and 2.0 <= seconds <= 3600):
        raise ConfigError(f"seeds must be 1..1000 and seconds 2..3600, got {seeds} and {seconds:g}")
    robots = ROBOTS if robot is None else (robot,)
    for name in robots:
        load_robot(name, "floating").require_imitation_points()
    for clip in clips:
        load_body_points(clip)
    kept = KeptOutcomes(resume, "dances")
    jobs = [
        (r, str(c), way, seed, float(seconds))
        for c in clips
        for r in robots
        for way in WAYS
        if not only or way in only
        for seed in range(seeds)
    ]
    rows = list(kept.all(jobs, try_dance, workers, lambda share: show(share, "dancing")))
    data = {"study": "dance", "seconds": seconds, "seeds": seeds, "dances": rows, "machine": machine()}
    told = [f"{r['robot']}, {r['clip']}, {r['way']}: {text}" for r in rows for text in r["told"]]
    return StudyReport(data, [_table(rows), *told, NOTE])


def try_dance(job: tuple[str, str, str, int, float]) -> dict[str, Any]:
    """Dance one clip once: robot, clip, way, seed, seconds; a clip or robot that cannot be danced says why."""
    name, clip, way, seed, seconds = job
    row: dict[str, Any] = {"robot": name, "clip": Path(clip).stem, "way": way, "seed": seed, "told": []}
    try:
        robot, fixed = load_robot(name, "floating"), load_robot(name, "fixed")
        body = load_body_points(clip)
        targets = scale_to_robot(body, fixed)
        frames = int(seconds * targets.rate) + 1
        walker = Walker(robot)
        steps = body.cropped(frames) if way == "steps" else None
        plan = routine(walker, targets.positions[:frames], targets.rate, steps)
        outcome = dance(SimulationConfig(name, "floating").build(), walker, plan, seed)
        still = held(SimulationConfig(name, "fixed").build(), fixed, plan.motion)
    except HumanoidError as e:
        return row | {"refused": str(e)}
    row |= asdict(outcome) | {"found": plan.found, "told": plan.told, "refused": ""}
    return row | {"held_wrist": still.wrist, "held_elbow": still.elbow}


def _table(rows: Sequence[Mapping[str, Any]]) -> ReportTable:
    columns = ["robot", "clip", "way", "", "s", "wrist mm", "held", "elbow mm", "held", "margin mm", "tilt deg"]
    columns += ["steps", "made", "placed", "on the beat"]
    body = []
    for r in rows:
        if r["refused"]:
            body.append([r["robot"], r["clip"], r["way"], f"rejected: {r['refused']}", *[""] * (len(columns) - 4)])
            continue
        beat = np.asarray(r["beat_error"], dtype=float)
        share = f"{100 * np.mean(beat < 0.1):.0f} %" if len(beat) else ""
        body.append(
            [
                r["robot"],
                r["clip"],
                r["way"],
                f"fell: {r['fell']}" if r["fell"] else "danced",
                round(r["time"], 1),
                round(1e3 * r["wrist"], 1),
                round(1e3 * r["held_wrist"], 1),
                round(1e3 * r["elbow"], 1),
                round(1e3 * r["held_elbow"], 1),
                round(1e3 * r["zmp_margin"], 1),
                round(float(np.degrees(r["tilt"])), 1),
                r["steps"],
                f"{r['taken']} of {r['found']}" if r["way"] == "steps" else "",
                r["placed"] if r["way"] == "steps" else "",
                share,
            ]
        )
    return ReportTable("dances on the robots' own feet", columns, body)
