"""Targets in, joint commands out: what the inverse kinematics node does, without ROS."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pinocchio as pin

from humanoid_control.errors import nearest_names
from humanoid_control.ik.target_filter import SampleVerdict, TargetFilter, TargetFilterSettings
from humanoid_control.ik.tasks.frames import FrameTask
from humanoid_control.ik.tasks.joints import PostureTask
from humanoid_control.ik.tasks.points import PointsTask
from humanoid_control.ik.tasks.task import Task
from humanoid_control.ik.whole_body_ik import IkResult, IkSettings, WholeBodyIk
from humanoid_control.robots.robot import Robot


@dataclass(frozen=True)
class FollowerSettings:
    """Gains of the tasks, and the settings of what they are made of."""

    point_weight: float = 1.0
    point_gain: float = 40.0
    orientation_weight: float = 0.3
    posture_weight: float = 0.06
    posture_gain: float = 2.0
    ik: IkSettings = field(default_factory=IkSettings)
    filter: TargetFilterSettings = field(default_factory=TargetFilterSettings)


UNKNOWN_REMEMBERED = 1.0  # [s]
UNKNOWN_MOST = 20


@dataclass
class _Followed:
    """One target: its filter, and its own task where it is a link's pose."""

    frame: int
    filter: TargetFilter
    link: FrameTask | None
    problem: str = ""


class TargetFollower:
    """Follows named targets with a robot, from wherever it starts, and keeps every limit whatever the targets do.

    A target named after one of the robot's points (sternum, l_wrist, ...) is a position; one named after a link is a
    pose. What cannot be followed (unknown name, not a number, a jump, nothing for too long) is held, and listed in
    `problems`.

    Attributes:
        q (nq,): the configuration commanded last. v (nv,): its velocity.
        targets: what is followed, by name.
        last: result of the last tick.
    """

    def __init__(self, robot: Robot, settings: FollowerSettings | None = None, collisions: bool = True) -> None:
        self.robot, self.settings = robot, settings or FollowerSettings()
        self.solver = WholeBodyIk(robot, self.settings.ik, collisions)
        s = self.settings
        self.posture = PostureTask(robot.postures["neutral"], None, s.posture_weight, s.posture_gain)
        self.start(robot.postures["neutral"])

    def start(self, joints: np.ndarray) -> None:
        """Begin from where the robot is (n,) [rad], at rest, with no targets; NaN means neutral."""
        known = np.where(np.isfinite(joints), joints, self.robot.postures["neutral"])
        self.q, self.v = self.robot.q(np.clip(known, self.robot.lower, self.robot.upper)), np.zeros(self.robot.nv)
        self.targets: dict[str, _Followed] = {}
        self.last: IkResult | None = None
        self._points: PointsTask | None = None
        self._unknown: dict[str, tuple[str, float]] = {}
        self.solver.reset()

    def configure(self, settings: FollowerSettings) -> None:
        """Change gains, weights and limits while running."""
        self.settings, self.solver.settings = settings, settings.ik
        self.posture.weight, self.posture.gain = settings.posture_weight, settings.posture_gain
        for f in self.targets.values():
            f.filter.settings = settings.filter
        for task in (self._points, *(f.link for f in self.targets.values())):
            if task is not None:
                task.weight, task.gain = settings.point_weight, settings.point_gain

    @property
    def problems(self) -> dict[str, str]:
        """Target name -> what is wrong with it now."""
        wrong = {name: f.problem for name, f in self.targets.items() if f.problem}
        return wrong | {name: text for name, (text, _) in self._unknown.items()}

    def update(
        self, name: str, position: Sequence[float], quaternion: Sequence[float] | None, time: float
    ) -> SampleVerdict | None:
        """Take a sample of a target.

        Args:
            name: a point or a link of the robot.
            position: x, y, z in the world [m].
            quaternion: x, y, z, w, used where the name is a link's.
            time: when it was made [s], on the clock that `step` uses.

        Returns:
            What became of it; None for a name the robot does not have.
        """
        followed = self.targets.get(name) or self._new(name, time)
        if followed is None:
            return None
        verdict = followed.filter.update(position, time)
        if followed.link is not None and quaternion is not None and not _turn(followed.link, quaternion):
            verdict = SampleVerdict.NOT_A_NUMBER
        text = {SampleVerdict.JUMP: "jumped", SampleVerdict.NOT_A_NUMBER: "is not a number"}.get(verdict)
        followed.problem = f"target '{name}' {text}: held" if text else ""
        return verdict

    def _new(self, name: str, time: float) -> _Followed | None:
        r, s, model = self.robot, self.settings, self.robot.model
        link = None
        if name in r.points:
            frame = r.point_frame(name)
        elif model.existFrame(name, pin.FrameType.BODY):
            frame = model.getFrameId(name, pin.FrameType.BODY)
            link = FrameTask(name, frame, s.point_weight, s.point_gain, s.orientation_weight)
        else:
            self._remember_unknown(name, time)
            return None
        pin.framesForwardKinematics(model, r.data, self.q)
        if link is not None:
            link.X_target = pin.SE3(r.data.oMf[frame])
        followed = _Followed(frame, TargetFilter(r.data.oMf[frame].translation, s.filter), link)
        self.targets[name] = followed
        frames = [f.frame for f in self.targets.values() if f.link is None]
        self._points = PointsTask(r, frames, s.point_weight, s.point_gain) if frames else None
        return followed

    def _remember_unknown(self, name: str, time: float) -> None:
        if name in self._unknown:
            self._unknown[name] = (self._unknown[name][0], time)
        elif len(self._unknown) < UNKNOWN_MOST:
            near = nearest_names(name, [*self.robot.points, *(f.name for f in self.robot.model.frames)])
            offer = f", did you mean {near[0]}?" if near else ""
            self._unknown[name] = (f"target '{name}' is unknown{offer}", time)

    def step(self, now: float, dt: float) -> IkResult:
        """One tick of length dt [s] that ends at `now` [s]."""
        tasks: list[Task] = [self.posture]
        positions, velocities = [], []
        for name, f in self.targets.items():
            x = f.filter.x
            ends, _ = f.filter.step(now, dt)
            # The error at the tick's beginning and the mean velocity over it: ticks of uneven length move evenly.
            v = [(b - a) / dt for a, b in zip(x, ends, strict=True)]
            if f.link is None:
                positions.append(x)
                velocities.append(v)
            else:
                f.link.X_target = pin.SE3(f.link.X_target.rotation, np.array(x))
                f.link.target_velocity = np.array(v)
                tasks.append(f.link)
            self._watch_age(name, f, now)
        if self._points is not None:
            self._points.targets, self._points.velocities = np.array(positions), np.array(velocities)
            tasks.append(self._points)
        if self._unknown:
            self._unknown = {n: u for n, u in self._unknown.items() if now - u[1] < UNKNOWN_REMEMBERED}
        result = self.solver.step(self.q, tasks, dt)
        self.q, self.v, self.last = result.q, result.v, result
        return result

    def _watch_age(self, name: str, f: _Followed, now: float) -> None:
        silent = f.filter.age(now) > self.settings.filter.timeout
        if silent and not f.problem:
            f.problem = f"target '{name}' is silent: held"
        elif not silent and f.problem.endswith("silent: held"):
            f.problem = ""

    def errors(self) -> dict[str, float]:
        """Distance of each followed point to its reference [m], at the command of the last tick."""
        reached = self.robot.frame_positions(self.q, [f.frame for f in self.targets.values()])
        return {n: math.dist(f.filter.x, p) for (n, f), p in zip(self.targets.items(), reached, strict=True)}


def _turn(task: FrameTask, quaternion: Sequence[float]) -> bool:
    """Set a task's orientation; False where the quaternion is none."""
    norm = math.hypot(*quaternion)
    if not abs(norm - 1) < 0.1:
        return False
    task.X_target = pin.SE3(pin.Quaternion(np.array(quaternion) / norm).toRotationMatrix(), task.X_target.translation)
    return True
