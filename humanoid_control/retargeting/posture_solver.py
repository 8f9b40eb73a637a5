"""Frame-by-frame solver of the moving joints of a robot, and of its base: state, clip loop and results.

`Retargeter` solves an upper body, `WholeBodyRetargeter` adds root and feet. Both run the same compiled loop
(`whole_body.frames.solve_frames`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from humanoid_control.compiled.packed import BoundRecord
from humanoid_control.errors import ClipError
from humanoid_control.kinematics.forward_kinematics import Followers
from humanoid_control.retargeting.frame_solver import FAR, FrameBefore, SolverConstants
from humanoid_control.retargeting.problem import RetargetingProblem, mean_error, scratch_for
from humanoid_control.retargeting.scaling import MotionTargets
from humanoid_control.retargeting.settings import RetargetSettings
from humanoid_control.retargeting.trajectory import JointTrajectory, forward_differences
from humanoid_control.retargeting.whole_body.frames import (
    FootWork,
    FrameInputs,
    FrameResults,
    FrameTables,
    solve_frames,
    step_frame,
)
from humanoid_control.robots import Robot

CHUNK = 64  # frames between progress reports
FASTEST = 1e6  # [rad/s] stands for no limit
Shown = TypeVar("Shown", bound=MotionTargets)
Motion = TypeVar("Motion", bound=JointTrajectory)


class PostureSolver(Generic[Shown, Motion]):
    """Solver of frames, each from the previous one.

    Attributes:
        joints: (n,) last posture [rad].
        moving: indices of the solved joints.
        lever: length of the wrist levers that show the forearm rotation [m]; 0: none.
        saturated: as in JointTrajectory, of the last frame, like `clearance` [m] and `used_fallback`.
        SETTINGS: defaults.
    """

    SETTINGS: ClassVar[RetargetSettings] = RetargetSettings()
    lever: float

    def __init__(self, robot: Robot, settings: RetargetSettings, moving: np.ndarray, feet: FootWork) -> None:
        """Start at the neutral posture; `_prepare` follows."""
        self.robot, self.settings, self.moving, self._feet = robot, settings, moving, feet
        self.joints = robot.postures["neutral"].copy()
        self.saturated, self.clearance, self.used_fallback = 0.0, FAR, 0

    def _prepare(
        self,
        problem: RetargetingProblem,
        limits: tuple[np.ndarray, np.ndarray],
        activation: float,
        slack_weight: float,
        yielding: float = 1.0,
    ) -> None:
        """Allocate the memory of a problem.

        Args:
            limits: acceleration and braking (D,) [rad/s^2].
        """
        s = self.settings
        distances = (s.margin, activation, s.barrier_gain, s.pair_recovery_speed, slack_weight, yielding)
        self.constants = SolverConstants(s.damping, s.posture, s.smoothing, *limits, *distances, s.iterations)
        self.problem = self.solved = problem
        self.scratch = scratch_for(problem)
        d, K, soles = len(problem.rest), len(problem.point), len(self._feet.soles.length)
        self._x, self._v, self._distance = np.zeros(d), np.zeros(d), FAR
        self._given = FrameInputs(
            np.zeros((1, K, 3)), np.zeros((1, soles, 5)), np.zeros((1, 2 * soles), dtype=np.bool_)
        )
        self._one = self._results(1)
        self._followers, self._packed = Followers.of(self.robot.mimic), BoundRecord(FrameTables)

    def inputs(self, targets: Shown) -> FrameInputs:
        """Return the solver inputs of targets.

        Raises:
            ClipError: if the targets lack what the solver tracks.
        """
        raise NotImplementedError

    def _lever_ends(self, targets: Any) -> np.ndarray:
        """Return the targets (T, 2, 3) of the wrist levers [m], or (T, 0, 3) without."""
        if not self.lever:
            return np.empty((len(targets), 0, 3))
        if targets.forearms is None:
            raise ClipError(f"{targets.name}: does not show the forearm rotation")
        return np.asarray(targets.positions[:, 5:7] + self.lever * targets.forearms)

    # -- frames

    def _solve_one(self, dt: float) -> None:
        """Solve the frame `_given`, and update the posture."""
        table = self._packed.table(
            self.solved,
            self.constants,
            self._given,
            self._feet,
            self._x,
            self._v,
            self._one,
            self.scratch,
            self.joints,
            self.moving,
            self._followers,
        )
        distance, self.saturated = step_frame(table, dt, self._distance)
        self._end(distance, self._one)

    def _solve_part(self, frames: FrameInputs, first: int, last: int, dt: float, out: FrameResults) -> None:
        """Solve frames first .. last - 1 of a clip."""
        part, to = FrameInputs(*(a[first:last] for a in frames)), FrameResults(*(a[first:last] for a in out))
        before = FrameBefore(self._x, self._v, self._distance)
        distance = solve_frames(self.solved, self.constants, part, self._feet, before, dt, to, self.scratch)
        self._end(distance, to)

    def _end(self, distance: float, out: FrameResults) -> None:
        """Keep the clearance [m] and the fallback of the last frame of results."""
        self._set_distance(distance, int(out.used_fallback[-1]))

    def _set_distance(self, distance: float, used_fallback: int) -> None:
        self._distance, self.used_fallback = distance, used_fallback
        self.clearance = distance if distance < FAR else np.inf

    # -- clips

    def solve(self, targets: Shown, progress: Callable[[int, int], None] | None = None) -> Motion:
        """Solve a whole clip from its own first posture.

        Raises:
            ClipError: if the first posture does not converge.
        """
        frames, T, dt = self.inputs(targets), len(targets), 1.0 / targets.rate
        out = self._begin(frames, targets)
        for k in range(1, T, CHUNK):
            last = min(k + CHUNK, T)
            self._solve_part(frames, k, last, dt, out)
            if progress is not None:
                progress(last, T)
        return self._trajectory(targets, out)

    def _begin(self, frames: FrameInputs, targets: Shown) -> FrameResults:
        """Start a clip; return results that hold its first frame."""
        out = self._results(len(targets))
        self._start(frames, targets)
        first = frames.points[0].copy()
        first[len(first) - len(self._feet.out.target) :] = self._feet.out.target
        mean_error(self.scratch, first, out.errors[0])
        out.x[0], out.clearance[0], out.contact[0] = self._x, self._distance, self._feet.out.contact
        if self.problem.base:
            out.R[0], out.p[0] = self.problem.tree.joints.R[0], self.problem.tree.joints.p[0]
        return out

    def _start(self, frames: FrameInputs, targets: Shown) -> None:
        """Start at the first posture of a clip."""
        raise NotImplementedError

    def _results(self, T: int) -> FrameResults:
        d, K, bases = len(self.problem.rest), len(self.problem.point), T if self.problem.base else 0
        return FrameResults(
            np.empty((T, d)),
            np.empty((bases, 3, 3)),
            np.empty((bases, 3)),
            np.empty((T, K)),
            np.empty(T),
            np.zeros(T, dtype=np.int64),
            np.zeros((T, len(self._feet.out.contact)), dtype=np.bool_),
        )

    def _trajectory(self, targets: Shown, out: FrameResults) -> Motion:
        raise NotImplementedError

    def _tracks(self, rate: float, shown: np.ndarray, out: FrameResults, points: list[int]) -> dict[str, Any]:
        """Return the fields of a JointTrajectory with joint angles `shown` (T, D), and the errors of some points."""
        base, dt = self.problem.base, 1.0 / rate
        q = np.tile(self.robot.postures["neutral"], (len(shown), 1))
        q[:, self.moving] = shown[:, base:]
        for row in q if self.robot.mimic else ():
            self.robot.follow(row)
        moved = np.abs(np.diff(out.x[:, base:], axis=0, prepend=out.x[:1, base:]))
        return {
            "joint_names": self.robot.joint_names,
            "rate": rate,
            "positions": q,
            "velocities": forward_differences(q, rate),
            "errors": out.errors[:, points],
            "saturated": np.mean(moved >= self.problem.velocity[base:] * dt - 1e-9, axis=1),
            "clearance": np.where(out.clearance < FAR, out.clearance, np.inf),
            "used_fallback": out.used_fallback,
        }
