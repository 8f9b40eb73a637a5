"""Settings of the feasibility pass: one set for all robots, since lengths scale with the leg where that matters."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

from humanoid_control.errors import ConfigError

ENDLESS = ("hover_time",)  # may be infinite


@dataclass(frozen=True)
class FeasibilitySettings:
    """Settings of `make_feasible`.

    Attributes:
        rate: frames a second of the result [Hz].
        hold: time for which the first and the last posture are held, with both feet on the floor [s].
        ease: time over which the clip's time starts and stops [s].
        cutoff: of the low-pass filter of root and joints [Hz].
        shortest_gap: shorter gaps of a contact are closed, where the foot creeps [s].
        creep: a foot creeps where it moves less [m]. creep_turn: and turns less [rad].
        creep_rise: a foot that creeps and rises less never left the floor [m].
        shortest_support: shorter contacts are dropped while the other foot stands [s].
        double_support: least time on both feet around a change of the carrying foot [s].
        shortest_swing: shorter swings are lengthened, or closed [s].
        hover_height: a foot hovers below it [m]. hover_speed: and where it is slower [m/s]; in a long swing it is put
            down. hover_time: longest stance on one leg beside a foot below that height [s].
        toe_off: rear feet roll over their toe edge before they lift off. toe_off_time: least duration [s].
            toe_off_pitch: least and largest pitch at lift-off [rad].
        swing_speed: mean speed of a swinging foot at most, for each metre of the leg [1/s].
        narrowest: distance of the ankles at least, where the robot's neutral width allows [m].
        margin, margin_least: distance of the zero-moment point from the edge that is aimed at, and that is kept [m].
        passes: of the program and the inverse kinematics.
        friction: of the floor.
        torque_share: share of a torque limit above which the posture is eased.
        yaw_rate: of the pelvis at most [rad/s].
        least_pace: slowest local pace. pace: 0: chosen; else the pace of the whole clip.
        lost_center: 95th percentile of the distance of the centre of mass from its plan above which the motion is
            refused [m].
        most_flight: share of the clip in flight above which it is refused.
    """

    rate: float = 100.0
    hold: float = 1.5
    ease: float = 1.2
    cutoff: float = 6.0
    shortest_gap: float = 0.1
    creep: float = 0.03
    creep_turn: float = 0.2
    creep_rise: float = 0.02
    shortest_support: float = 0.15
    double_support: float = 0.1
    shortest_swing: float = 0.3
    hover_height: float = 0.09
    hover_speed: float = 0.35
    hover_time: float = 1.0
    toe_off: bool = True
    toe_off_time: float = 0.06
    toe_off_pitch: tuple[float, float] = (math.radians(3.0), math.radians(25.0))
    swing_speed: float = 2.6 / 0.6
    narrowest: float = 0.16
    margin: float = 0.03
    margin_least: float = 0.006
    passes: int = 3
    friction: float = 0.7
    torque_share: float = 0.8
    yaw_rate: float = 4.0
    least_pace: float = 0.5
    pace: float = 0.0
    lost_center: float = 0.02
    most_flight: float = 0.6

    def __post_init__(self) -> None:
        for f in fields(self):
            value = getattr(self, f.name)
            endless = f.name in ENDLESS and value == math.inf
            if isinstance(value, float) and not endless and not (math.isfinite(value) and value >= 0):
                raise ConfigError(f"feasibility: {f.name} must be a number that is not negative, got {value}")
        if not 50.0 <= self.rate <= 500.0:
            raise ConfigError(f"feasibility: rate must be between 50 and 500 Hz, got {self.rate:g}")
        if self.pace and not 0.1 <= self.pace <= 2.0:
            raise ConfigError(f"feasibility: pace must be between 0.1 and 2, got {self.pace:g}; 0: chosen by itself")
        if not 0.1 <= self.least_pace <= 1.0:
            raise ConfigError(f"feasibility: least_pace must be between 0.1 and 1, got {self.least_pace:g}")
        if self.passes < 1:
            raise ConfigError(f"feasibility: passes must be 1 or more, got {self.passes}")

    def frames(self, seconds: float) -> int:
        """Number of frames in a time [s]."""
        return round(seconds * self.rate)
