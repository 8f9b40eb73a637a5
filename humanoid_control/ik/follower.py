"""Targets in, joint commands out: what the inverse kinematics node does, without ROS."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pinocchio as pin

from humanoid_control.errors import nearest_names
from humanoid_control.ik.target_filter import FilterSettings, TargetFilter, Verdict
from humanoid_control.ik.tasks import FrameTask, PointTask, PostureTask, Task
from humanoid_control.ik.velocity_ik import IkResult, IkSettings, VelocityIk
from humanoid_control.robots import Robot


@dataclass(frozen=True)
class FollowerSettings:
    """Gains of the tasks, and the settings of what they are made of."""

    point_weight: float = 1.0
    point_gain: float = 40.0
    orientation_weight: float = 0.3
    posture_weight: float = 0.06
    posture_gain: float = 2.0
    ik: IkSettings = field(default_factory=IkSettings)
    filter: FilterSettings = field(default_factory=FilterSettings)


@dataclass
class _Followed:
    task: PointTask | FrameTask
    filter: TargetFilter


class TargetFollower:
    """Follows named targets with a robot, from wherever it starts, and keeps every limit whatever the targets do.

    A target named after one of the robot's points (sternum, l_wrist, ...) is a position; one named after a link is a
    pose. What cannot be followed (unknown name, not a number, a jump, nothing for too long) is held, and listed in
    `problems`.

    Attributes:
        q (nq,): the configuration commanded last. v (nv,): its velocity.
        problems: target name -> what is wrong with it now.
    """

    def __init__(self, robot: Robot, settings: FollowerSettings | None = None, collisions: bool = True) -> None:
        self.robot, self.settings = robot, settings or FollowerSettings()
        self.solver = VelocityIk(robot, self.settings.ik, collisions)
        s = self.settings
        self.posture = PostureTask(robot.postures["neutral"], None, s.posture_weight, s.posture_gain)
        self.targets: dict[str, _Followed] = {}
        self.problems: dict[str, str] = {}
        self.q, self.v = robot.q("neutral"), np.zeros(robot.nv)
        self.last: IkResult | None = None

    def configure(self, settings: FollowerSettings) -> None:
        """Change gains, weights and limits while running."""
        self.settings = settings
        self.solver.settings = settings.ik
        self.posture.weight, self.posture.gain = settings.posture_weight, settings.posture_gain
        for f in self.targets.values():
            f.task.weight, f.task.gain = settings.point_weight, settings.point_gain
            f.filter.settings = settings.filter

    def start(self, joints: np.ndarray) -> None:
        """Begin from where the robot is (n,) [rad], at rest, with no targets."""
        known = np.where(np.isfinite(joints), joints, self.robot.postures["neutral"])
        self.q, self.v = self.robot.q(np.clip(known, self.robot.lower, self.robot.upper)), np.zeros(self.robot.nv)
        self.targets.clear()
        self.problems.clear()
        self.solver.reset()

    def offer(self, name: str, position: np.ndarray, quaternion: np.ndarray | None, time: float) -> Verdict | None:
        """Take a sample of a target.

        Args:
            name: a point or a link of the robot.
            position: (3,) in the world [m].
            quaternion: (4,) x y z w, used where the name is a link's.
            time: when it was made [s], on the clock that `step` uses.

        Returns:
            What became of it; None for a name the robot does not have.
        """
        followed = self.targets.get(name) or self._new(name)
        if followed is None:
            near = nearest_names(name, [*self.robot.points, *(f.name for f in self.robot.model.frames)])
            self.problems[name] = f"target '{name}' is unknown" + (f", did you mean {near[0]}?" if near else "")
            return None
        verdict = followed.filter.offer(position, time)
        if isinstance(followed.task, FrameTask) and quaternion is not None:
            if not self._take_orientation(followed.task, quaternion):
                verdict = Verdict.NOT_A_NUMBER
        if verdict is Verdict.TAKEN:
            self.problems.pop(name, None)
        elif verdict is Verdict.JUMP:
            self.problems[name] = f"target '{name}' jumped: held"
        else:
            self.problems[name] = f"target '{name}' is not a number: held"
        return verdict

    def _new(self, name: str) -> _Followed | None:
        r, s = self.robot, self.settings
        pin.framesForwardKinematics(r.model, r.data, self.q)
        if name in r.points:
            frame = r.point_frame(name)
            task: PointTask | FrameTask = PointTask(name, frame, s.point_weight, s.point_gain)
        elif r.model.existFrame(name, pin.FrameType.BODY):
            frame = r.model.getFrameId(name, pin.FrameType.BODY)
            task = FrameTask(name, frame, s.point_weight, s.point_gain, s.orientation_weight)
            task.X_target = pin.SE3(r.data.oMf[frame])
        else:
            return None
        followed = _Followed(task, TargetFilter(r.data.oMf[frame].translation, s.filter))
        self.targets[name] = followed
        return followed

    @staticmethod
    def _take_orientation(task: FrameTask, quaternion: np.ndarray) -> bool:
        norm = float(np.linalg.norm(quaternion))
        if not np.isfinite(norm) or abs(norm - 1) > 0.1:
            return False
        task.X_target = pin.SE3(pin.Quaternion(quaternion / norm).toRotationMatrix(), task.X_target.translation)
        return True

    def step(self, now: float, dt: float) -> IkResult:
        """One tick of length dt [s] that ends at `now` [s]."""
        tasks: list[Task] = [self.posture]
        for name, f in self.targets.items():
            x, v = f.filter.step(now, dt)
            f.task.target_velocity = v
            if isinstance(f.task, PointTask):
                f.task.target = x
            else:
                f.task.X_target = pin.SE3(f.task.X_target.rotation, x)
            tasks.append(f.task)
            self._watch_age(name, f.filter.age(now))
        result = self.solver.step(self.q, tasks, dt)
        self.q, self.v, self.last = result.q, result.v, result
        return result

    def _watch_age(self, name: str, age: float) -> None:
        text = f"target '{name}' is silent: held"
        if age > self.settings.filter.timeout:
            self.problems.setdefault(name, text)
        elif self.problems.get(name) == text:
            del self.problems[name]

    def errors(self) -> dict[str, float]:
        """Distance of each followed point to its reference [m], at the command of the last tick."""
        r = self.robot
        pin.framesForwardKinematics(r.model, r.data, self.q)
        return {n: float(np.linalg.norm(f.filter.x - r.data.oMf[f.task.frame].translation)) for n, f in self.targets.items()}

