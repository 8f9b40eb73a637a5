"""Retargeting of the upper body of a fixed-base robot to a joint trajectory within all limits."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from humanoid_control.errors import check_time_step
from humanoid_control.retargeting.differential_methods import DifferentialMethod, JointShift
from humanoid_control.retargeting.frame_solver import clearance, fit_first_frame
from humanoid_control.retargeting.posture_solver import FASTEST, PostureSolver
from humanoid_control.retargeting.problem import forearm_levers, mean_error, place_points, point_jacobian, problem_of
from humanoid_control.retargeting.scaling import POINTS, Targets
from humanoid_control.retargeting.settings import CONSTRAINED, CONSTRAINTS, RetargetSettings
from humanoid_control.retargeting.trajectory import JointTrajectory
from humanoid_control.retargeting.whole_body.frames import (
    FORGETFUL,
    NO_FEET,
    OTHERS,
    FootWork,
    FrameInputs,
    FrameResults,
)
from humanoid_control.robots import Robot

SLACK_WEIGHT = 1e6  # of a violated distance, relative to 1 for a tracking error


class Retargeter(PostureSolver[Targets, JointTrajectory]):
    """Frame-by-frame posture solver for clips and live input.

    Only the imitation joints move; the others stay neutral.
    """

    def __init__(self, robot: Robot, settings: RetargetSettings | None = None, forearms: bool = False) -> None:
        """Create the solver.

        Args:
            robot: fixed base.
            forearms: whether targets include forearm rotation, as in `goals`.
        """
        s, moving = settings or self.SETTINGS, robot.imitation_joints
        self.lever = s.forearms if forearms and forearm_levers(robot, 1.0) else 0.0
        p = problem_of(robot, self.lever)
        p = p._replace(velocity=np.minimum(s.velocity_scale * p.velocity, FASTEST))
        if not s.keep_ranges:
            endless = np.full(len(p.velocity), np.inf)
            p = p._replace(lower=-endless, upper=endless)
        feet = FootWork.new(FORGETFUL, NO_FEET, len(p.point), np.full(len(p.rest), OTHERS))
        super().__init__(robot, s, moving, feet)
        most = robot.accelerations_within(s.acceleration, s.acceleration_scale)
        limits = most.acceleration[moving], most.braking[moving]
        self._prepare(p, limits, s.activation, SLACK_WEIGHT)
        if s.avoidance != CONSTRAINTS:
            self.solved = p.with_pairs(np.zeros(len(p.pairs), dtype=bool))
        self.shift = JointShift(robot, p) if s.avoidance == "shift" else None
        self.differential: DifferentialMethod | None = None
        if s.method != CONSTRAINED:
            self.differential = DifferentialMethod(p, s.method, s.damping, s.iterations, s.feed_forward)
        self._rest_at(self.joints[moving])

    def _rest_at(self, x: np.ndarray) -> None:
        self._x[:], self._v[:] = x, 0.0
        if self.differential is not None:
            self.differential.begin()

    def points(self, moving: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the seven points (7, 3) and their Jacobian (21, D) at imitation joint angles (D,)."""
        J = np.empty((3 * len(self.problem.point), len(self.moving)))
        place_points(self.problem, np.ascontiguousarray(moving, dtype=float), self.scratch)
        point_jacobian(self.problem, self.scratch, J)
        return self.scratch.points[: len(POINTS)].copy(), J[: 3 * len(POINTS)]

    def goals(self, targets: Targets) -> np.ndarray:
        """Return solver goals (T, K, 3): the seven points, and lever ends if forearms are used."""
        return np.concatenate([targets.positions, self._lever_ends(targets)], axis=1, dtype=float)

    def inputs(self, targets: Targets) -> FrameInputs:
        goals = self.goals(targets)
        return FrameInputs(goals, np.zeros((len(goals), 0, 5)), np.zeros((len(goals), 0), dtype=np.bool_))

    def start(self, targets: np.ndarray, name: str = "clip") -> np.ndarray:
        """Return the first posture (n,) for targets (7, 3), or a row of `goals`.

        Raises:
            ClipError: if targets are not finite, or no posture converges.
        """
        goal = np.ascontiguousarray(targets, dtype=float)
        self._rest_at(fit_first_frame(self.solved, self.constants, goal, self.scratch, name))
        self.saturated, self.used_fallback = 0.0, 0
        return self._publish()

    def start_at(self, joints: np.ndarray) -> None:
        """Start at rest from a posture (n,), clipped to the range, for live input."""
        self._rest_at(np.clip(joints[self.moving], self.problem.lower, self.problem.upper))
        self._publish()

    def step(self, targets: np.ndarray, dt: float) -> np.ndarray:
        """Return the next posture (n,) toward targets (7, 3), within all limits; NaN holds.

        Raises:
            ConfigError: if `dt` is not positive and finite; the state is unchanged.
        """
        check_time_step(dt, "retargeting")
        self._given.points[0] = targets
        if self.differential is None:
            self._solve_one(dt)
        else:
            before = self._x.copy()
            self._solve_part(self._given, 0, 1, dt, self._one)
            self.saturated = float(np.mean(np.abs(self._x - before) >= self.problem.velocity * dt - 1e-9))
        return self.joints.copy() if self.solved is self.problem else self._publish()

    def _solve_part(self, frames: FrameInputs, first: int, last: int, dt: float, out: FrameResults) -> None:
        if self.differential is None:
            super()._solve_part(frames, first, last, dt, out)
            return
        x, v = self._x, self._v
        for t in range(first, last):
            out.x[t] = self.differential.step(frames.points[t], x, dt)
            v[:] = (out.x[t] - x) / dt
            x[:] = out.x[t]

    def _publish(self) -> np.ndarray:
        """Return the published posture (n,), with the arms shifted, and measure its clearance."""
        shown = self._x if self.shift is None else self.shift(self._x)
        self.joints[self.moving] = shown
        self.robot.follow(self.joints)
        self._set_distance(clearance(self.problem, shown, self.scratch), self.used_fallback)
        return self.joints.copy()

    def errors(self, targets: np.ndarray) -> np.ndarray:
        """Return target distances (7,) at the current posture [m]."""
        return np.linalg.norm(self.points(self.joints[self.moving])[0] - targets, axis=1)

    def _start(self, frames: FrameInputs, targets: Targets) -> None:
        self.start(frames.points[0], targets.name)

    def _trajectory(self, targets: Targets, out: FrameResults) -> JointTrajectory:
        shown = out.x if self.shift is None else np.array([self.shift(row) for row in out.x])
        if self.solved is not self.problem:  # the solver ignores some pairs: measure afterwards
            for t, goal in enumerate(self.goals(targets)):
                out.clearance[t] = clearance(self.problem, shown[t], self.scratch)
                mean_error(self.scratch, goal, out.errors[t])
        self._rest_at(out.x[-1])
        return JointTrajectory(**self._tracks(targets.rate, shown, out, list(range(len(POINTS)))))


def retarget_clip(
    targets: Targets,
    robot: Robot,
    settings: RetargetSettings | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> JointTrajectory:
    """Return the joint trajectory of a clip.

    Args:
        robot: fixed base.
        progress: called with (frames done, all frames).

    Raises:
        ClipError: if the first posture does not converge.
    """
    return Retargeter(robot, settings, targets.forearms is not None).solve(targets, progress)
