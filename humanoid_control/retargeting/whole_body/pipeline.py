"""The way from a recorded person to the whole motion of a robot: one for the command, libraries, studies and scripts.

    body -> at a rate that can be solved -> scaled to the robot -> at its pace -> solved -> frames of the clip

Rates: recordings of 5 to 1,000 frames a second come in between, and back. The solver takes a frame at a time. With few
frames a foot moves far from one to the next, and is caught late; with very many, what a step of the solver leaves over
counts as speed. Between 50 and 250 Hz neither matters.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

import numpy as np
from scipy.interpolate import CubicSpline

from humanoid_control.mocap import BodyPoints
from humanoid_control.retargeting.retargeter import RetargetSettings
from humanoid_control.retargeting.whole_body.clip_retargeter import LIVE, whole_body_solver
from humanoid_control.retargeting.whole_body.retargeter import WholeBodyTrajectory
from humanoid_control.retargeting.whole_body.scaling import WholeBodyScaler, WholeBodyTargets
from humanoid_control.robots import Robot

SLOWEST, FASTEST = 50.0, 250.0  # [Hz]
Frames = TypeVar("Frames", WholeBodyTrajectory, WholeBodyTargets)


# -------- The pipeline


@dataclass(frozen=True)
class WholeBodyMotion:
    """A clip on a robot.

    Attributes:
        trajectory: of the robot, at the frames of the clip (of a very fast one at every second, third, ...).
        targets: what it should have done, at the same frames; their contacts are the person's.
    """

    trajectory: WholeBodyTrajectory
    targets: WholeBodyTargets


@dataclass(frozen=True)
class WholeBodyTask:
    """A clip that is scaled to a robot and can be solved: whatever refuses has refused, and nothing is compiled yet.

    Attributes:
        robot: with a floating base.
        targets: at the rate at which they are solved.
        between: how many of these frames there are for each of the clip's.
        notes: sentences about the clip: frames that are left out, its floor.
    """

    robot: Robot
    targets: WholeBodyTargets
    between: int
    notes: tuple[str, ...]

    @classmethod
    def of(cls, body: BodyPoints, robot: Robot, speed: float = 1.0) -> WholeBodyTask:
        """Scale a clip to a robot.

        Args:
            body: the person, with legs, at any rate.
            robot: with a floating base, legs and soles.
            speed: pace of the clip; frames a second stay.

        Raises:
            ClipError: no legs, or no floor. RobotError: no legs or soles.
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
        """Move the robot.

        Args:
            settings: of the solver; default: `whole_body_settings()`.
            progress: called with (frames solved, frames in all).
            method: one of WHOLE_BODY_METHODS: 'live', frame by frame, or 'clip', all frames at once.

        Raises:
            ClipError: the first posture does not converge. UnknownNameError: no such method.
        """
        solver = whole_body_solver(method).following(self.targets, self.robot, settings)
        trajectory = solver.solve(self.targets, progress)
        return WholeBodyMotion(every(trajectory, self.between), every(self.targets, self.between))


def whole_body_settings(acceleration: float | None = None, method: str = LIVE) -> RetargetSettings:
    """Settings of whole bodies.

    Args:
        acceleration: limit of all joints [rad/s^2]; None: as the solver has it.
        method: of WHOLE_BODY_METHODS.
    """
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
    """Root, joints and contacts of a whole clip.

    Args:
        body: the person, with legs, at any rate.
        robot: with a floating base, legs and soles.
        settings: of the solver; default: `whole_body_settings()`.
        progress: called with (frames solved, frames in all).
        speed: pace of the clip.
        method: 'live', frame by frame, or 'clip', all frames at once.

    Raises:
        ClipError: no legs, no floor, or no first posture. RobotError: no legs or soles. UnknownNameError: no such
            method.
    """
    return WholeBodyTask.of(body, robot, speed).solve(settings, progress, method).trajectory


# -------- Rates


def rate_factors(rate: float) -> tuple[int, int]:
    """How many frames are solved for each of the clip's, and how many of the clip's for each that is solved.

    One of both is 1: a slow clip is interpolated, of a fast one every second or third ... frame is taken.

    Args:
        rate: of the clip [Hz].
    """
    if rate < SLOWEST:
        return math.ceil(SLOWEST / rate - 1e-9), 1
    return 1, max(1, math.ceil(rate / FASTEST - 1e-9))


def at_solving_rate(body: BodyPoints) -> tuple[BodyPoints, int, tuple[str, ...]]:
    """The body with more or fewer frames, where its rate asks for that.

    Args:
        body: at any rate.

    Returns:
        The body; how many of its frames there are for each of the clip's (1: the same); and a note where frames are
        left out.
    """
    more, fewer = rate_factors(body.rate)
    if more > 1 and body.n_frames > 2:
        t = np.arange((body.n_frames - 1) * more + 1) / more
        positions = CubicSpline(np.arange(body.n_frames), body.positions, axis=0)(t)
        return replace(body, rate=body.rate * more, positions=positions, missing=body.missing.copy()), more, ()
    if fewer > 1 and body.n_frames > 2 * fewer:
        rate = body.rate / fewer
        note = f"{rate:g} of {body.rate:g} frames a second are solved and written: more would help nobody"
        positions = body.positions[::fewer].copy()
        return replace(body, rate=rate, positions=positions, missing=body.missing.copy()), 1, (note,)
    return body, 1, ()


def every(frames: Frames, step: int) -> Frames:
    """Each `step`th frame of a trajectory, with velocities from one of them to the next, or of targets."""
    if step == 1:
        return frames
    T = len(frames.positions)

    def thin(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {name: thin(one) for name, one in value.items()}
        return value[::step] if isinstance(value, np.ndarray) and len(value) == T else value

    thinned: dict[str, Any] = {f.name: thin(getattr(frames, f.name)) for f in fields(frames)}
    thinned["rate"] = frames.rate / step
    if isinstance(frames, WholeBodyTrajectory):
        velocities = np.zeros_like(thinned["positions"])
        velocities[:-1] = np.diff(thinned["positions"], axis=0) * thinned["rate"]
        thinned["velocities"] = velocities
    return replace(frames, **thinned)
