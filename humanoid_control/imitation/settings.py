"""How a trajectory is solved: the method, how it avoids self-collision, and its numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

from humanoid_control.errors import ConfigError, UnknownNameError

METHODS = {
    "ours": "constrained least squares: range, speed, acceleration and self-collision in every step",
    "weighted_dls": "damped least squares with joint-limit weights (Dube 2012, eq. 4.19 and 4.25)",
    "dls": "damped least squares (eq. 4.18)",
    "pinv": "pseudo-inverse (eq. 4.16)",
}
AVOIDANCE = {
    "ours": "distances are constraints of the solver; only with method 'ours'",
    "shift": "shoulder abduction and elbow flexion of a colliding arm are shifted afterwards (eq. 4.58)",
    "none": "self-collision is ignored",
}


@dataclass(frozen=True)
class RetargetSettings:
    """How a trajectory is solved.

    Attributes:
        method: one of METHODS.
        avoidance: one of AVOIDANCE; empty: 'ours' for method 'ours', 'none' for the others.
        iterations: solver steps a frame; 0: 3 for method 'ours', 1 for the others.
        damping: lambda of the damped methods, damping of a step of ours [m/rad]; 0: 0.01 for ours, 0.03 for the others.
        velocity_scale: share of the joint speed limits that may be used; infinite: no limit.
        acceleration: limit on joint accelerations, method 'ours' [rad/s^2].
        posture: pull to the rest posture, where the points do not decide; method 'ours' [m/rad].
        smoothing: cost of a change of joint velocity, method 'ours' [m/rad].
        forearms: how much the turn of the forearms counts, where the clip shows it: length of a lever beside each wrist
            whose end is followed like a point [m]; 0: not at all.
        margin: distance that shapes keep, avoidance 'ours' [m].
        activation: distance below which a pair becomes a constraint [m].
        approach: share of its distance above the margin that a pair may lose in a second [1/s].
        recovery: speed at which a pair inside the margin separates [m/s].
        feed_forward: the source's open loop: step by the change of the targets, not by the error; it drifts.
    """

    method: str = "ours"
    avoidance: str = ""
    iterations: int = 0
    damping: float = 0.0
    velocity_scale: float = 1.0
    acceleration: float = 200.0
    posture: float = 0.01
    smoothing: float = 0.05
    forearms: float = 0.05
    margin: float = 0.01
    activation: float = 0.1
    approach: float = 30.0
    recovery: float = 0.3
    feed_forward: bool = False

    def __post_init__(self) -> None:
        ours = self.method == "ours"
        if self.method not in METHODS:
            raise UnknownNameError("method", self.method, METHODS)
        if self.avoidance and self.avoidance not in AVOIDANCE:
            raise UnknownNameError("avoidance", self.avoidance, AVOIDANCE)
        object.__setattr__(self, "avoidance", self.avoidance or ("ours" if ours else "none"))
        if self.avoidance == "ours" and not ours:
            raise ConfigError(f"avoidance 'ours' is part of method 'ours', not of '{self.method}': use 'shift'")
        if self.feed_forward and ours:
            raise ConfigError("feed_forward is an option of the source's methods, not of 'ours'")
        object.__setattr__(self, "iterations", self.iterations or (3 if ours else 1))
        object.__setattr__(self, "damping", self.damping or (0.01 if ours else 0.03))
        for f in fields(self):
            value = getattr(self, f.name)
            endless = f.name in ("velocity_scale", "acceleration") and value == math.inf
            if isinstance(value, float) and not endless and not (math.isfinite(value) and value >= 0):
                raise ConfigError(f"{f.name} must be a number that is not negative, got {value}")
        if self.iterations < 1 or self.velocity_scale == 0 or self.acceleration == 0:
            raise ConfigError("iterations, velocity_scale and acceleration must be positive")
