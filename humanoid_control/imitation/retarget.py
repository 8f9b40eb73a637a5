"""From targets to a joint trajectory, frame by frame, with every limit kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from humanoid_control.errors import ClipError
from humanoid_control.imitation.arrays import forearm_levers, problem_of, scratch_for
from humanoid_control.imitation.first_frame import fit_first_frame
from humanoid_control.imitation.joint_shift import JointShift
from humanoid_control.imitation.linearise import mean_error, place_points, point_jacobian
from humanoid_control.imitation.scaling import POINTS, Targets
from humanoid_control.imitation.settings import RetargetSettings
from humanoid_control.imitation.solve_frame import FAR, Numbers, clearance, solve_frame, solve_frames
from humanoid_control.imitation.weighted_dls import SourceMethod
from humanoid_control.robots import Robot

PRICE = 1e6  # of a violated distance, against 1 for a tracking error
CHUNK = 64  # frames between two reports of progress


@dataclass(frozen=True)
class JointTrajectory:
    """Joint angles over time.

    Attributes:
        joint_names: (n,) names.
        rate: [Hz].
        positions: (T, n) [rad]; velocities: (T, n) [rad/s], the difference to the next frame.
        errors: (T, 7) distance of each point to its target [m].
        saturated: (T,) share of the moving joints at their speed limit.
        clearance: (T,) least distance between two shapes [m], infinite where all are farther apart than 5 cm.
        gave: (T,) what had to give way in a frame: 0 nothing, 1 the acceleration limit, 2 the step was shortened,
            3 the posture was held. Always 0 for the source's methods.
    """

    joint_names: tuple[str, ...]
    rate: float
    positions: np.ndarray
    velocities: np.ndarray
    errors: np.ndarray
    saturated: np.ndarray
    clearance: np.ndarray
    gave: np.ndarray


class Retargeter:
    """Solves one robot's posture for one frame of targets after another; the same object serves files and live input.

    Only the robot's imitation joints move; the others keep the neutral posture.

    Attributes:
        joints: (n,) the posture of the last frame [rad].
        saturated, clearance, gave: as in JointTrajectory, of the last frame.
    """

    def __init__(self, robot: Robot, settings: RetargetSettings | None = None, forearms: bool = False) -> None:
        """Prepare.

        Args:
            robot: with a fixed base.
            settings: of the solver.
            forearms: targets come with the turn of the forearms, as `goals` gives them.
        """
        self.robot, self.settings = robot, settings or RetargetSettings()
        s = self.settings
        self.joints = robot.postures["neutral"].copy()
        self.moving = robot.imitation_joints
        self.lever = s.forearms if forearms and forearm_levers(robot, 1.0) else 0.0
        self.problem = problem_of(robot, self.lever)
        velocity = np.minimum(s.velocity_scale * self.problem.velocity, 1e6)
        self.problem = self.problem._replace(velocity=velocity)
        self.shift = JointShift(robot, self.problem) if s.avoidance == "shift" else None
        self.solved = self.problem
        if s.avoidance != "ours":
            self.solved = self.problem._replace(pairs=self.problem.pairs[:0])
        self.numbers = Numbers(s.damping, s.posture, s.smoothing, s.acceleration, s.margin, s.activation, s.approach,
                               s.recovery, PRICE, s.iterations)  # fmt: skip
        self.scratch = scratch_for(self.problem)
        self.source: SourceMethod | None = None
        if s.method != "ours":
            self.source = SourceMethod(self.problem, s.method, s.damping, s.iterations, s.feed_forward)
        self._begin(self.joints[self.moving])
        self.saturated, self.gave = 0.0, 0
        self.clearance = self._kept = FAR

    def _begin(self, x: np.ndarray) -> None:
        """Rest at a posture (D,) of the moving joints."""
        self._x, self._v = x.copy(), np.zeros(len(x))
        if self.source is not None:
            self.source.begin()

    def points(self, moving: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The seven points (7, 3) and their Jacobian (21, D), at the given angles of the imitation joints (D,)."""
        J = np.empty((3 * len(self.problem.point), len(self.moving)))
        place_points(self.problem, np.ascontiguousarray(moving, dtype=float), self.scratch)
        point_jacobian(self.problem, self.scratch, J)
        return self.scratch.points[: len(POINTS)].copy(), J[: 3 * len(POINTS)]

    def goals(self, targets: Targets) -> np.ndarray:
        """What the solver follows (T, K, 3): the seven points, and the ends of the levers where forearms count."""
        points = np.ascontiguousarray(targets.positions, dtype=float)
        if not self.lever:
            return points
        if targets.forearms is None:
            raise ClipError(f"{targets.name}: does not show how the forearms are turned")
        return np.concatenate([points, points[:, 5:7] + self.lever * targets.forearms], axis=1)

    def start(self, targets: np.ndarray, name: str = "clip") -> np.ndarray:
        """The posture (n,) for the first frame of targets (7, 3), or a row of `goals`.

        Raises:
            ClipError: targets not finite, or no posture converges.
        """
        goal = np.ascontiguousarray(targets, dtype=float)
        self._begin(fit_first_frame(self.solved, self.numbers, goal, self.scratch, name))
        self.saturated, self.gave = 0.0, 0
        return self._publish(self._x)

    def start_at(self, joints: np.ndarray) -> None:
        """Begin at rest from a posture (n,) instead, clipped into the range; for live input."""
        self._begin(np.clip(joints[self.moving], self.problem.lower, self.problem.upper))
        self._publish(self._x)

    def step(self, targets: np.ndarray, dt: float) -> np.ndarray:
        """The posture (n,) for the next frame: toward the targets (7, 3), within every limit. NaN holds."""
        goal = np.ascontiguousarray(targets, dtype=float)
        if self.source is not None:
            x = self.source.step(goal, self._x, dt)
        else:
            x, errors = np.empty(len(self._x)), np.empty(len(POINTS))
            _, self.gave = solve_frame(
                self.solved, self.numbers, goal, self._x, self._v, self._kept, dt, x, errors, self.scratch
            )
        self.saturated = float(np.mean(np.abs(x - self._x) >= self.problem.velocity * dt - 1e-9))
        self._v = (x - self._x) / dt
        self._x = x
        return self._publish(x)

    def _publish(self, x: np.ndarray) -> np.ndarray:
        shown = x if self.shift is None else self.shift(x)
        self.joints[self.moving] = shown
        self.robot.follow(self.joints)
        self._kept = clearance(self.problem, shown, self.scratch)
        self.clearance = self._kept if self._kept < FAR else np.inf
        return self.joints.copy()

    def errors(self, targets: np.ndarray) -> np.ndarray:
        """Distance (7,) of each point to its target [m], at the present posture."""
        return np.linalg.norm(self.points(self.joints[self.moving])[0] - targets, axis=1)

    def solve(self, targets: Targets, progress: Callable[[int, int], None] | None = None) -> JointTrajectory:
        """The whole clip, from its own first posture.

        Raises:
            ClipError: the first posture does not converge.
        """
        goals = self.goals(targets)
        T, dt = len(goals), 1.0 / targets.rate
        self.start(goals[0], targets.name)
        x, errors, gave = np.empty((T, len(self._x))), np.empty((T, len(POINTS))), np.zeros(T, dtype=np.int64)
        distance = np.empty(T)
        x[0], distance[0] = self._x, self._kept
        mean_error(self.scratch, goals[0], errors[0])
        for first in range(1, T, CHUNK):
            last = min(first + CHUNK, T)
            if self.source is None:
                solve_frames(self.solved, self.numbers, goals, dt, first, last, x, errors, distance, gave, self.scratch)
            else:
                for t in range(first, last):
                    x[t] = self.source.step(goals[t], x[t - 1], dt)
            if progress is not None:
                progress(last, T)
        saturated = np.zeros(T)
        saturated[1:] = np.mean(np.abs(np.diff(x, axis=0)) >= self.problem.velocity * dt - 1e-9, axis=1)
        shown = x if self.shift is None else np.array([self.shift(row) for row in x])
        if self.solved.pairs is not self.problem.pairs:  # measured only now
            for t in range(T):
                distance[t] = clearance(self.problem, shown[t], self.scratch)
                mean_error(self.scratch, goals[t], errors[t])
        distance[distance >= FAR] = np.inf
        q = np.tile(self.robot.postures["neutral"], (T, 1))
        q[:, self.moving] = shown
        if self.robot.mimic:
            for row in q:
                self.robot.follow(row)
        v = np.zeros_like(q)
        v[:-1] = np.diff(q, axis=0) * targets.rate
        self._begin(x[-1])
        return JointTrajectory(self.robot.joint_names, targets.rate, q, v, errors, saturated, distance, gave)


def retarget(
    targets: Targets,
    robot: Robot,
    settings: RetargetSettings | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> JointTrajectory:
    """The whole clip as a joint trajectory.

    Args:
        targets: for this robot.
        robot: with a fixed base.
        settings: of the solver.
        progress: called with (frames done, frames in all).

    Raises:
        ClipError: the first posture does not converge.
    """
    return Retargeter(robot, settings, targets.forearms is not None).solve(targets, progress)
