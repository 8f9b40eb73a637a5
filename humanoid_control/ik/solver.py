"""Common parts of the whole-body solvers: settings, interface, and step report."""

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
    """Weights of the cost and parameters of the default limits; replaceable between ticks.

    Attributes:
        damping: cost of joint velocity [s/rad].
        smoothing: cost of a change of joint velocity [s/rad].
        velocity_scale: usable share of joint speed limits, in (0, 1].
        acceleration: acceleration limit of every joint [rad/s^2]; precedes all other limits.
        acceleration_scale: usable share of `Robot.acceleration_limits`; infinite: only `acceleration` counts.
        margin: distance kept between shapes of the robot [m].
        activation: least distance below which a pair becomes a row [m]; greater for faster pairs of exact shapes.
        barrier_gain: closing speed of a pair per distance above the margin [1/s]; farther out, half of the braking
            capacity of its joints limits the speed instead. The distance at rest is `margin`.
        pair_recovery_speed: highest required separation speed of pairs too close or in penetration [m/s].
        joint_recovery_speed: speed of the return into the range, of homing, and of idle joints [rad/s].
        range_ease: distance from the range end within which a joint slows down gently, to allow for drive lag [rad], at
            most 5 % of the range; 0: braking at a constant rate up to the end.
        base_velocity: bound on base velocity [m/s, rad/s].
        slack_weight: cost of a pair's squared slack, relative to 1 for a task [s^2/m^2].
        max_gain: upper limit of task gains as a share of 1 / dt.
        swept: check the path through this tick to the stop, and slow down if it is blocked.
        on_penetration: `recover`, or `stop` (brake and stay).
        recovery_timeout: time without decreasing depth before homing to the neutral posture starts [s].
        recovery_joint_speed: joint speed limit in penetration or outside a joint range [rad/s].
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
            if isinstance(value, float) and not value >= 0:  # NaN fails this comparison too
                raise ConfigError(f"inverse kinematics: {name} must not be negative, got {value:g}")
        if self.on_penetration not in (RECOVER, STOP):
            raise UnknownNameError("reaction to penetration", self.on_penetration, (RECOVER, STOP))


@dataclass(frozen=True)
class StepReport:
    """Report of one tick.

    Attributes:
        ok: the guarantees of the method hold; otherwise `note` gives the fallback.
        manipulability: sqrt(det(J W^-1 J^T)); NaN if not computed.
        speed_scale: factor on the whole motion, applied last.
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
        """Compute the next configuration (nq,), the velocity (nv,) that leads there, and a report.

        Raises:
            ConfigError: if dt is not positive and finite.
        """
        ...

    def reset(self) -> None:
        """Discard the state of earlier ticks."""
        ...
