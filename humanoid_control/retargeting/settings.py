"""Settings of retargeting: method, collision avoidance, limits and weights."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

from humanoid_control.errors import ConfigError, UnknownNameError

CONSTRAINED, CONSTRAINTS = "constrained", "constraints"

METHODS = {
    CONSTRAINED: "constrained least squares: range, speed, acceleration and self-collision in every step",
    "weighted_dls": "damped least squares with joint-limit weights (Dube 2012, eq. 4.19 and 4.25)",
    "dls": "damped least squares (eq. 4.18)",
    "pinv": "pseudo-inverse (eq. 4.16)",
}
AVOIDANCE = {
    CONSTRAINTS: "distances are constraints of the solver; only with method 'constrained'",
    "shift": "shoulder abduction and elbow flexion of a colliding arm are shifted afterwards (eq. 4.58)",
    "none": "self-collision is ignored",
}


ENDLESS_SETTINGS = (
    "velocity_scale",
    "acceleration",
    "acceleration_scale",
    "root_acceleration",
)  # may be infinite: no limit


@dataclass(frozen=True)
class RetargetSettings:
    """Method, collision avoidance and parameters of retargeting.

    Attributes:
        method: one of METHODS.
        avoidance: one of AVOIDANCE; empty: 'constraints' for method 'constrained', else 'none'.
        iterations: solver steps per frame; 0: 3 for 'constrained', else 1.
        damping: lambda of the damped methods, or Gauss-Newton damping [m/rad]; 0: 0.01 for 'constrained', else 0.03.
        keep_ranges: False: no joint ranges.
        velocity_scale: share of the joint speed limits; infinite: no limit.
        acceleration: joint limit, method 'constrained' [rad/s^2].
        acceleration_scale: share of `Robot.acceleration_limits` as a second limit; infinite: off.
        root_acceleration: limit of a moving root per axis, frame by frame [m/s^2].
        posture: pull to the rest posture, method 'constrained' [m/rad].
        smoothing: cost of a joint velocity change, method 'constrained' [m/rad].
        forearms: lever length at each wrist, which weights the forearm rotation if shown [m]; 0: off.
        margin: shape distance for 'constraints'; less for shapes closer at rest [m].
        activation: distance below which a pair becomes a constraint [m].
        barrier_gain: maximum relative loss rate of the distance above the margin [1/s].
        pair_recovery_speed: separation speed within the margin [m/s].
        feed_forward: open loop of Dube 2012, by target changes instead of errors: it drifts.
    """

    method: str = CONSTRAINED
    avoidance: str = ""
    iterations: int = 0
    damping: float = 0.0
    keep_ranges: bool = True
    velocity_scale: float = 1.0
    acceleration: float = 200.0
    acceleration_scale: float = 1.0
    root_acceleration: float = 40.0
    posture: float = 0.01
    smoothing: float = 0.05
    forearms: float = 0.05
    margin: float = 0.01
    activation: float = 0.1
    barrier_gain: float = 30.0
    pair_recovery_speed: float = 0.3
    feed_forward: bool = False

    def __post_init__(self) -> None:
        constrained = self.method == CONSTRAINED
        if self.method not in METHODS:
            raise UnknownNameError("method", self.method, METHODS)
        if self.avoidance and self.avoidance not in AVOIDANCE:
            raise UnknownNameError("avoidance", self.avoidance, AVOIDANCE)
        object.__setattr__(self, "avoidance", self.avoidance or (CONSTRAINTS if constrained else "none"))
        if self.avoidance == CONSTRAINTS and not constrained:
            raise ConfigError(
                f"avoidance '{CONSTRAINTS}' is part of method '{CONSTRAINED}', not of '{self.method}': use 'shift'"
            )
        if self.feed_forward and constrained:
            raise ConfigError(f"feed_forward is an option of the differential methods, not of '{CONSTRAINED}'")
        object.__setattr__(self, "iterations", self.iterations or (3 if constrained else 1))
        object.__setattr__(self, "damping", self.damping or (0.01 if constrained else 0.03))
        for f in fields(self):
            value = getattr(self, f.name)
            endless = f.name in ENDLESS_SETTINGS and value == math.inf
            if isinstance(value, float) and not endless and not (math.isfinite(value) and value >= 0):
                raise ConfigError(f"{f.name} must not be negative, got {value}")
        if self.iterations < 1 or any(getattr(self, name) == 0 for name in ENDLESS_SETTINGS):
            raise ConfigError(f"iterations, {', '.join(ENDLESS_SETTINGS)} must be positive")
