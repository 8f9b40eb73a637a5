"""Following of named targets without ROS: target samples in, joint commands out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pinocchio as pin

from humanoid_control.errors import check_time_step, nearest_names
from humanoid_control.ik.limits.idle_joints import IdleJointLimit
from humanoid_control.ik.limits.self_collision import SelfCollisionLimit, default_limits
from humanoid_control.ik.solver import IkSettings
from humanoid_control.ik.target_filter import SampleVerdict, TargetFilter, TargetFilterSettings
from humanoid_control.ik.tasks.frames import FrameTask
from humanoid_control.ik.tasks.joints import PostureTask
from humanoid_control.ik.tasks.points import PointsTask
from humanoid_control.ik.tasks.task import Task
from humanoid_control.ik.whole_body_ik import IkResult, WholeBodyIk
from humanoid_control.robots.robot import Robot

OUTSIDE = 0.5  # [rad] measured angles farther outside the joint range are taken as wrong
UNKNOWN_REMEMBERED = 1.0  # [s] time for which an unknown target stays in `problems`
MAX_UNKNOWN = 20
REHEARSED = 5  # [ticks] of the rehearsal in the constructor
LEAST_SHARE = 0.01  # least share of the limits during a soft start, so that the robot moves from the first tick
NAME_SHOWN = 60  # characters; the search for a similar name grows with the square of the length
NOT_UNIT = 0.1  # largest deviation of a quaternion's length from 1
SILENT = -1  # the problem code of a missing sample, next to those of SampleVerdict
PROBLEMS = {
    SampleVerdict.JUMP: "jumped: held",
    SampleVerdict.NOT_A_NUMBER: "is not a number: held",
    SILENT: "is silent: held",
}


@dataclass(frozen=True)
class FollowerSettings:
    """Weights and gains of the tasks, with the settings of the solver and of the target filter.

    Attributes:
        point_gain: decay rate of a target's error [1/s].
        orientation_weight: weight of a link's orientation relative to its position [m/rad].
        posture_gain: gain of the neutral posture [1/s].
        hold_idle_joints: hold joints that move no target in the neutral posture, or return them (`IdleJointLimit`).
        soft_start: time in which the speed and acceleration limits grow from near zero after each start [s].
    """

    point_weight: float = 1.0
    point_gain: float = 40.0
    orientation_weight: float = 0.3
    posture_weight: float = 0.06
    posture_gain: float = 2.0
    hold_idle_joints: bool = True
    soft_start: float = 0.0
    ik: IkSettings = field(default_factory=IkSettings)
    filter: TargetFilterSettings = field(default_factory=TargetFilterSettings)


class TargetFollower:
    """Controller that follows named targets from any start and keeps every limit, whatever the targets do.

    A target named after a point of the robot (sternum, l_wrist, ...) is a position, one named after a link a pose. A
    target with a problem (unknown name, non-finite value, jump, timeout) is held and listed in `problems`. Joints that
    move no target stay in the neutral posture, or return to it slowly.

    Attributes:
        q: last commanded configuration (nq,).
        more_unknown: number of unknown targets that `problems` does not list.
    """

    def __init__(self, robot: Robot, settings: FollowerSettings | None = None, collisions: bool = True) -> None:
        self.robot, self.settings = robot, settings or FollowerSettings()
        self._link_frames = {f.name: k for k, f in enumerate(robot.model.frames) if f.type == pin.FrameType.BODY}
        s, limits = self.settings, default_limits(robot, collisions)
        self.posture = PostureTask(robot, weight=s.posture_weight, gain=s.posture_gain)
        apart = next((m for m in limits if isinstance(m, SelfCollisionLimit)), None)
        self._idle = IdleJointLimit(robot, self.posture.posture, s.posture_gain, apart)
        self._idle.enabled = s.hold_idle_joints
        # The joint ranges and acceleration limits have precedence over idle joints.
        limits.insert(-2, self._idle)
        self.solver = WholeBodyIk(robot, s.ik, limits)
        self._rehearse()
        self.start(robot.postures["neutral"])

    def _rehearse(self) -> None:
        """Follow a moving target, so that the first real target does not wait for compilation."""
        self.start(self.robot.postures["neutral"])
        for k in range(REHEARSED):
            for name in (*list(self.robot.points)[-1:], *list(self._link_frames)[-1:]):
                self.update(name, [0.5, 0.002 * k, 1.0], (0.0, 0.0, 0.0, 1.0), 0.004 * k)
            self.step(0.004 * k, 0.004)

    def start(self, joints: np.ndarray) -> None:
        """Start at rest from measured joint angles, without targets.

        Joints outside their range move into it at `joint_recovery_speed`. A joint more than `OUTSIDE` beyond its range
        counts as wrongly measured and starts at the end of the range.

        Args:
            joints: measured angles (n,) [rad]; NaN means neutral.
        """
        known = np.where(np.isfinite(joints), joints, self.robot.postures["neutral"])
        inside = np.clip(known, self.robot.lower, self.robot.upper)
        known = np.where(np.abs(known - inside) > OUTSIDE, inside, known)
        self.q, self.v, self._moving = self.robot.q(known), np.zeros(self.robot.nv), 0.0
        self.targets: dict[str, int] = {}
        self.last: IkResult | None = None
        self._filter = TargetFilter(self.settings.filter)
        self._frames: list[int] = []
        self._links: list[tuple[int, FrameTask]] = []  # rows of poses, each with its task
        self._points: tuple[np.ndarray, PointsTask] | None = None  # rows of positions, with their common task
        self._problem = np.zeros(0, dtype=int)
        self._unknown: dict[str, tuple[str, float]] = {}
        self.more_unknown, self._may_guess = 0, True
        self._idle.follow(self._frames)
        self.solver.reset()

    def configure(self, settings: FollowerSettings) -> None:
        """Change gains, weights and limits while running."""
        self.settings, self.solver.settings, self._filter.settings = settings, settings.ik, settings.filter
        self._get_faster(0.0)
        self.posture.weight, self.posture.gain = settings.posture_weight, settings.posture_gain
        self._idle.enabled, self._idle.gain = settings.hold_idle_joints, settings.posture_gain
        for task in (*(task for _, task in self._links), *([] if self._points is None else [self._points[1]])):
            task.weight, task.gain = settings.point_weight, settings.point_gain
        for _, link in self._links:
            link.orientation_weight = settings.orientation_weight

    def shift_time(self, step: float) -> None:
        """Shift all stored times by `step` [s], after the clock was set."""
        self._filter.shift(step)
        self._unknown = {name: (text, time + step) for name, (text, time) in self._unknown.items()}

    @property
    def problems(self) -> dict[str, str]:
        """Target name -> its present problem."""
        code = self._problem.tolist()
        wrong = {name: f"target '{name}' {PROBLEMS[code[row]]}" for name, row in self.targets.items() if code[row]}
        return wrong | {name: text for name, (text, _) in self._unknown.items()}

    def update(
        self, name: str, position: Sequence[float], quaternion: Sequence[float] | None, time: float
    ) -> SampleVerdict:
        """Process a sample of one target; see `update_many`.

        Without a quaternion a link keeps its last commanded orientation, at first its present one.
        """
        pose = np.concatenate([position, (0.0, 0.0, 0.0, 0.0) if quaternion is None else quaternion])
        return SampleVerdict(self._take([name], pose[None], time, quaternion is not None)[0])

    def update_many(self, names: Sequence[str], poses: np.ndarray, time: float) -> np.ndarray:
        """Process samples of several targets with one time stamp.

        Args:
            poses: x, y, z [m] and quaternion x, y, z, w (k, 7), world frame; points ignore the quaternion.
            time: time stamp [s], on the clock of `step`.

        Returns:
            SampleVerdict of each sample (k,).
        """
        return self._take(names, poses, time, True)

    def _take(self, names: Sequence[str], poses: np.ndarray, time: float, turned: bool) -> np.ndarray:
        self.more_unknown, self._may_guess = 0, True
        all_rows = np.array([self._row(name, time) for name in names], dtype=int)
        known = all_rows >= 0
        rows, poses = all_rows[known], poses[known]
        verdicts = self._filter.update(rows, np.ascontiguousarray(poses[:, :3], dtype=float), time)
        if turned and self._links:
            for row, task in self._links:
                for k in np.flatnonzero(rows == row):
                    if not _turn(task, poses[k, 3:]):
                        verdicts[k] = SampleVerdict.NOT_A_NUMBER
        self._problem[rows] = verdicts
        all_verdicts = np.full(len(names), SampleVerdict.UNKNOWN)
        all_verdicts[known] = verdicts
        return all_verdicts

    def _row(self, name: str, time: float) -> int:
        row = self.targets.get(name)
        if row is not None:
            return row
        r, s, model = self.robot, self.settings, self.robot.model
        is_point = name in r.points
        if not is_point and name not in self._link_frames:
            self._remember_unknown(name, time)
            return -1
        frame = r.point_frame(name) if is_point else self._link_frames[name]
        pin.framesForwardKinematics(model, r.data, self.q)
        row = self.targets[name] = self._filter.add(r.data.oMf[frame].translation)
        self._frames.append(frame)
        self._idle.follow(self._frames)
        self._problem = np.append(self._problem, 0)
        if is_point:
            rows = [*([] if self._points is None else self._points[0]), row]
            task = PointsTask(r, [self._frames[i] for i in rows], weight=s.point_weight, gain=s.point_gain)
            self._points = np.array(rows), task
        else:
            link = FrameTask(
                r, frame, weight=s.point_weight, gain=s.point_gain, orientation_weight=s.orientation_weight, name=name
            )
            link.set_target(r.data.oMf[frame])
            self._links.append((row, link))
        return row

    def _remember_unknown(self, name: str, time: float) -> None:
        """Store an unknown name for `problems`; a call searches for one similar name only, since the search is slow."""
        text, _ = self._unknown.get(name, ("", 0.0))
        if not text and len(self._unknown) >= MAX_UNKNOWN:
            self.more_unknown += 1
            return
        text = text or f"target '{name[:NAME_SHOWN]}' is unknown"
        if self._may_guess and not text.endswith("?") and len(name) <= NAME_SHOWN:
            self._may_guess = False
            if near := nearest_names(name, [*self.robot.points, *self._link_frames]):
                text = f"target '{name}' is unknown, did you mean {near[0]}?"
        self._unknown[name] = (text, time)

    def step(self, now: float, dt: float) -> IkResult:
        """Advance by one tick of length dt [s] that ends at `now` [s].

        Raises:
            ConfigError: if dt is not positive and finite.
        """
        check_time_step(dt, "following targets")
        tasks: list[Task] = [self.posture]
        x = self._filter.x
        ends, _ = self._filter.step(now, dt)
        # Use the reference at the start of the tick and the mean velocity over it: the motion stays even in uneven
        # ticks.
        v = (ends - x) / dt
        for row, task in self._links:
            task.X_target = pin.SE3(task.X_target.rotation, x[row])
            task.target_velocity = v[row]
            tasks.append(task)
        if self._points is not None:
            rows, points = self._points
            points.targets, points.velocities = x[rows], v[rows]
            tasks.append(points)
        self._note_silence(now)
        self._get_faster(dt)
        result = self.solver.step(self.q, tasks, dt)
        self.q, self.v, self.last = result.q, result.v, result
        return result

    def _get_faster(self, dt: float) -> None:
        s = self.settings
        if self._moving < s.soft_start:
            self._moving += dt
            share, ik = min(1.0, max(self._moving / s.soft_start, LEAST_SHARE)), s.ik
            self.solver.settings = (
                ik
                if share == 1.0
                else replace(
                    ik,
                    velocity_scale=share * ik.velocity_scale,
                    acceleration=share * ik.acceleration,
                    acceleration_scale=share * ik.acceleration_scale,
                )
            )

    def brake(self, dt: float) -> None:
        """Brake every joint at its acceleration limit for one tick, regardless of the targets.

        A robot at rest stays at rest.

        Raises:
            ConfigError: if dt is not positive and finite.
        """
        check_time_step(dt, "braking")
        r, s = self.robot, self.settings.ik
        most = np.full(r.nv, s.acceleration * dt)
        most[r.iv :] = dt * r.accelerations_within(s.acceleration, s.acceleration_scale).acceleration
        self.v = np.sign(self.v) * np.maximum(np.abs(self.v) - most, 0.0)
        self.q = pin.integrate(r.model, self.q, self.v * dt)
        self.solver.reset()
        self.solver.v = self.v.copy()

    def _note_silence(self, now: float) -> None:
        silent, problem = self._filter.ages(now) > self.settings.filter.timeout, self._problem
        problem[silent & (problem == SampleVerdict.ACCEPTED)] = SILENT
        problem[~silent & (problem == SILENT)] = SampleVerdict.ACCEPTED
        if self._unknown:
            self._unknown = {n: u for n, u in self._unknown.items() if now - u[1] < UNKNOWN_REMEMBERED}

    def errors(self) -> dict[str, float]:
        """Distance of each followed point to its reference [m] at the last command."""
        reached = self.robot.frame_positions(self.q, self._frames)
        return dict(zip(self.targets, np.linalg.norm(self._filter.x - reached, axis=1).tolist(), strict=True))


def _turn(task: FrameTask, quaternion: np.ndarray) -> bool:
    """Set a task's orientation; return False for a quaternion (4,) that is not of unit length."""
    norm = math.hypot(*quaternion)
    if not abs(norm - 1) < NOT_UNIT:
        return False
    task.X_target = pin.SE3(pin.Quaternion(quaternion / norm).toRotationMatrix(), task.X_target.translation)
    return True
