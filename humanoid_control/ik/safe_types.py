"""Settings of the safe solver, and what a tick of it gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from humanoid_control.collision import NearPairs
from humanoid_control.errors import ConfigError, UnknownNameError
from humanoid_control.ik.solvers.interface import StepReport

LEAVE, HOLD = "leave", "hold"
NOTHING_NEAR = NearPairs(np.zeros(0, dtype=int), np.zeros(0), np.zeros((0, 3)), np.zeros((0, 3)), np.zeros((0, 3)))


@dataclass(frozen=True)
class IkSettings:
    """How the solver weighs things.

    Attributes:
        damping: cost of every joint velocity, keeps the problem well posed at singularities [s/rad].
        smoothing: cost of a change of joint velocity against the previous tick [s/rad].
        velocity_scale: share of the joint speed limits that may be used, 0..1.
        acceleration: limit on the acceleration of a joint [rad/s^2]; nothing comes before it.
        margin: distance that shapes of the robot keep from each other [m].
        activation: distance below which a pair becomes a row of the problem [m]; farther off where the robot is fast.
        approach: a pair may lose this share of its distance above the margin each second [1/s].
        recovery_speed: how fast a pair that is too close, or inside, must separate at the most [m/s].
        recovery: how fast a joint outside its range returns, and joints go home where nothing else helps [rad/s].
        base_velocity: bound on the velocity of a floating base [m/s, rad/s].
        slack_price: cost of the square of what a pair's row misses, against 1 for a task's [s^2/m^2].
        gain_share: tasks' gains are held to this share of 1 / dt.
        swept: check the way through this tick and on to the stop, and slow down where it is not clear.
        on_contact: what to do while shapes are inside each other: `leave`, or `hold`: brake and stay (a safety stop).
        patience: after so long without getting less deep, shapes inside each other are led out by way of the neutral
            posture [s].
        leaving_speed: no joint is faster than this while shapes are inside each other or a joint is outside its range
            [rad/s].
    """

    damping: float = 0.02
    smoothing: float = 0.05
    velocity_scale: float = 1.0
    acceleration: float = 200.0
    margin: float = 0.02
    activation: float = 0.12
    approach: float = 8.0
    recovery_speed: float = 0.2
    recovery: float = 0.5
    base_velocity: float = 2.0
    slack_price: float = 1e5
    gain_share: float = 1.0
    swept: bool = True
    on_contact: str = LEAVE
    patience: float = 0.4
    leaving_speed: float = 1.0

    def __post_init__(self) -> None:
        for name in ("acceleration", "approach", "slack_price", "gain_share"):
            if not getattr(self, name) > 0:
                raise ConfigError(f"inverse kinematics: {name} must be positive, got {getattr(self, name):g}")
        if self.on_contact not in (LEAVE, HOLD):
            raise UnknownNameError("reaction to contact", self.on_contact, (LEAVE, HOLD))


@dataclass(frozen=True)
class SafeReport(StepReport):
    """What became of one tick of the safe solver.

    `speed_scale` is the share that was taken of the way from braking to the wanted velocity, below 1 where the swept
    check asked for it.

    Attributes:
        near: pairs of shapes that were looked at as possible rows of the problem.
        slack: by how much the worst row was missed [m/s]; 0 where all were met.
        depth: how deep the worst pair is inside [m], 0 where none is.
        outside: how far the worst joint is outside its range [rad], 0 where none is.
    """

    near: NearPairs = NOTHING_NEAR
    slack: float = 0.0
    depth: float = 0.0
    outside: float = 0.0


class IkResult(NamedTuple):
    """What one tick gave, which is also what every solver returns.

    Attributes:
        q: (nq,) the configuration after the step.
        v: (nv,) the velocity that leads there.
        report: what became of the tick.
    """

    q: np.ndarray
    v: np.ndarray
    report: SafeReport

    @property
    def near(self) -> NearPairs:
        """The pairs of shapes that were looked at as possible rows of the problem."""
        return self.report.near

    @property
    def ok(self) -> bool:
        """The solver found the optimum; if not, the robot was told to stop."""
        return self.report.ok
