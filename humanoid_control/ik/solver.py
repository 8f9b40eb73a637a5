"""Solvers of the whole-body inverse kinematics, what they share: settings, the interface, and the report of a step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from humanoid_control.errors import ConfigError, UnknownNameError
from humanoid_control.ik.tasks.task import Task

RECOVER, STOP = "recover", "stop"


@dataclass(frozen=True)
class IkSettings:
    """Weights of the cost and numbers of the default limits; a solver's may be replaced between ticks.

    Attributes:
        damping: cost of every joint velocity, keeps the problem well posed at singularities [s/rad].
        smoothing: cost of a change of joint velocity against the previous tick [s/rad].
        velocity_scale: share of the joint speed limits that may be used, above 0 and up to 1.
        acceleration: limit on the acceleration of every joint [rad/s^2]; nothing comes before it.
        acceleration_scale: share of the robot's own limits, `Robot.acceleration_limits`, that a joint may use besides;
            infinite: `acceleration` alone counts.
        margin: distance that shapes of the robot keep from each other [m].
        activation: distance below which a pair becomes a row of the problem [m]; farther off where the robot is fast.
        barrier_gain: a pair may lose this share of its distance above the margin each second [1/s].
        pair_recovery_speed: how fast a pair that is too close, or inside, must separate at most [m/s].
        joint_recovery_speed: of a joint that returns into its range, of homing out of a collision, and of joints that
            move no target and return to their posture [rad/s].
        range_ease: distance from the end of its range within which a joint slows down gently, so that its drive, which
            lags, does not run into its stop [rad]; 0: it brakes at a constant rate until it is there.
        base_velocity: bound on the velocity of a floating base [m/s, rad/s].
        slack_weight: cost of the squared slack of a pair's row, relative to 1 for a task [s^2/m^2].
        max_gain: tasks' gains are held to this share of 1 / dt.
        swept: check the path through this tick and on to the stop, and slow down where it is not clear.
        on_penetration: reaction to shapes inside each other: `recover`, or `stop`: brake and stay (a safety stop).
        recovery_timeout: after so long without getting less deep, shapes inside each other come apart by homing to the
            neutral posture [s].
        recovery_joint_speed: limit of all joints while shapes are inside each other or a joint is outside its range
            [rad/s].
    """

    damping: float = 0.02
    smoothing: float = 0.05
    velocity_scale: float = 1.0
    acceleration: float = 200.0
    acceleration_scale: float = 1.0
    margin: float = 0.02
    activation: float = 0.12
    barrier_gain: float = 8.0
    pair_recovery_speed: float = 0.2
    joint_recovery_speed: float = 0.5
    range_ease: float = 0.05
    base_velocity: float = 2.0
    slack_weight: float = 1e5
    max_gain: float = 1.0
    swept: bool = True
    on_penetration: str = RECOVER
    recovery_timeout: float = 0.4
    recovery_joint_speed: float = 1.0

    def __post_init__(self) -> None:
        for name in ("acceleration", "acceleration_scale", "barrier_gain", "slack_weight", "max_gain"):
            if not getattr(self, name) > 0:
                raise ConfigError(f"inverse kinematics: {name} must be positive, got {getattr(self, name):g}")
        if not 0 < self.velocity_scale <= 1:
            raise ConfigError(f"inverse kinematics: velocity_scale must lie in 0..1, got {self.velocity_scale:g}")
        for name, value in vars(self).items():
            if isinstance(value, float) and not value >= 0:  # also not a number
                raise ConfigError(f"inverse kinematics: {name} must not be negative, got {value:g}")
        if self.on_penetration not in (RECOVER, STOP):
            raise UnknownNameError("reaction to penetration", self.on_penetration, (RECOVER, STOP))


@dataclass(frozen=True)
class StepReport:
    """Report of one tick.

    Attributes:
        ok: the answer is what the method promises; if not, `note` says what was done instead.
        task_residual: length of J v - v_desired over all rows, weighted: what the tasks did not get this tick.
        manipulability: sqrt(det(J W^-1 J^T)) of the weighted rows; NaN where the method does not compute it.
        damping: lambda in use.
        null_scale: factor on the null-space motion.
        speed_scale: factor on the whole motion, applied afterwards.
        iterations: 1 for differential methods.
        note: one line for the log, or empty.
    """

    ok: bool = True
    task_residual: float = 0.0
    manipulability: float = float("nan")
    damping: float = 0.0
    null_scale: float = 1.0
    speed_scale: float = 1.0
    iterations: int = 1
    note: str = ""


class IkSolver(Protocol):
    """A solver that turns tasks into the next configuration."""

    def step(self, q: np.ndarray, tasks: Sequence[Task], dt: float) -> tuple[np.ndarray, np.ndarray, StepReport]:
        """The next configuration (nq,), the velocity (nv,) that leads there, and a report.

        Args:
            q: (nq,) configuration now.
            tasks: with their `level` where the solver knows priorities.
            dt: [s] > 0.

        Raises:
            ConfigError: dt is not positive and finite; nothing has moved.
        """
        ...

    def reset(self) -> None:
        """Forget what earlier ticks left."""
        ...
