"""Pipeline from a recorded person to a whole-body robot motion.

    body -> at a rate that can be solved -> scaled to the robot -> at its pace -> solved -> frames of the clip

Recordings of 5 to 1,000 Hz are resampled to 50 to 250 Hz and back.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from scipy.interpolate import CubicSpline

from humanoid_control.mocap import BodyPoints
from humanoid_control.retargeting.scaling import over_frames
from humanoid_control.retargeting.settings import RetargetSettings
from humanoid_control.retargeting.trajectory import WholeBodyTrajectory, forward_differences
from humanoid_control.retargeting.whole_body.clip_retargeter import LIVE, whole_body_solver
from humanoid_control.retargeting.whole_body.scaling import WholeBodyScaler, WholeBodyTargets
from humanoid_control.robots import Robot

SLOWEST, FASTEST = 50.0, 250.0  # [Hz]
Frames = TypeVar("Frames", WholeBodyTrajectory, WholeBodyTargets)


# -------- The pipeline


@dataclass(frozen=True)
class WholeBodyMotion:
    """Clip on a robot.

    Attributes:
        trajectory: at the frames of the clip, or at every n-th frame of a very fast one.
        targets: at the same frames, with the person's contacts.
    """

    trajectory: WholeBodyTrajectory
    targets: WholeBodyTargets


@dataclass(frozen=True)
class WholeBodyTask:
    """Clip scaled to a robot and ready to solve: inputs are checked, kernels not yet compiled.

    Attributes:
        targets: at the solving rate.
        between: solved frames per clip frame.
        notes: messages about skipped frames and the floor.
    """

    robot: Robot
    targets: WholeBodyTargets
    between: int
    notes: tuple[str, ...]

    @classmethod
    def of(cls, body: BodyPoints, robot: Robot, speed: float = 1.0) -> WholeBodyTask:
        """Scale a clip to a robot.

        Args:
            body: at any rate.

        Raises:
            ClipError: if legs or floor are missing.
            RobotError: if legs or soles are missing.
        """
        body, between, notes = at_solving_rate(body)
        scaler = WholeBodyScaler(body, robot)
        return cls(robot, scaler.targets(body).paced(speed), between, (*notes, *scaler.floor.notes))

    def __len__(self) -> int:
        return len(self.targets)

    def solve(
        self,
        settings: RetargetSettings | None = None,
        progress: Callable[[int, int], None] | None = None,
        method: str = LIVE,
    ) -> WholeBodyMotion:
        """Solve the motion.

        Args:
            method: 'live' (frame by frame) or 'clip' (all frames at once).

        Raises:
            ClipError: if the first posture does not converge.
            UnknownNameError: if the method is unknown.
        """
        solver = whole_body_solver(method).following(self.targets, self.robot, settings)
        trajectory = solver.solve(self.targets, progress)
        return WholeBodyMotion(every(trajectory, self.between), every(self.targets, self.between))


def whole_body_settings(acceleration: float | None = None, method: str = LIVE) -> RetargetSettings:
    """Return whole-body settings."""
    settings = whole_body_solver(method).SETTINGS
    return settings if acceleration is None else replace(settings, acceleration=acceleration)


def retarget_whole_body(
    body: BodyPoints,
    robot: Robot,
    settings: RetargetSettings | None = None,
    progress: Callable[[int, int], None] | None = None,
    speed: float = 1.0,
    method: str = LIVE,
) -> WholeBodyTrajectory:
    """Return root, joints and contacts of a clip; arguments and errors as `WholeBodyTask.of` and `solve`."""
    return WholeBodyTask.of(body, robot, speed).solve(settings, progress, method).trajectory


# -------- Rates


def rate_factors(rate: float) -> tuple[int, int]:
    """Return solved frames per clip frame, and clip frames per solved frame, for a clip rate [Hz]; one of both is 1."""
    if rate < SLOWEST:
        return math.ceil(SLOWEST / rate - 1e-9), 1
    return 1, max(1, math.ceil(rate / FASTEST - 1e-9))


def at_solving_rate(body: BodyPoints) -> tuple[BodyPoints, int, tuple[str, ...]]:
    """Resample a body to a rate between SLOWEST and FASTEST.

    Returns:
        The body; its frames per clip frame; a note if frames are skipped.
    """
    more, fewer = rate_factors(body.rate)
    if more > 1 and body.n_frames > 2:
        t = np.arange((body.n_frames - 1) * more + 1) / more
        positions = CubicSpline(np.arange(body.n_frames), body.positions, axis=0)(t)
        return replace(body, rate=body.rate * more, positions=positions, missing=body.missing.copy()), more, ()
    if fewer > 1 and body.n_frames > 2 * fewer:
        rate = body.rate / fewer
        note = f"{rate:g} of {body.rate:g} frames/s are solved and written, the useful maximum"
        positions = body.positions[::fewer].copy()
        return replace(body, rate=rate, positions=positions, missing=body.missing.copy()), 1, (note,)
    return body, 1, ()


def every(frames: Frames, step: int) -> Frames:
    """Return every `step`-th frame of a trajectory (with matching velocities) or of targets."""
    if step == 1:
        return frames
    thin = over_frames(frames, lambda _, rows: rows[::step])
    changed: dict[str, Any] = {"rate": frames.rate / step}
    if isinstance(thin, WholeBodyTrajectory):
        changed["velocities"] = forward_differences(thin.positions, changed["rate"])
    return replace(thin, **changed)
