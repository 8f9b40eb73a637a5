"""Settings of the feasibility pass, common to all robots."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace

from humanoid_control.errors import ConfigError

ENDLESS = ("hover_time",)  # may be infinite


@dataclass(frozen=True)
class FeasibilitySettings:
    """Settings of `make_feasible`.

    Attributes:
        rate: frame rate of the result [Hz].
        hold: duration of the end postures [s].
        ease: duration in which the clip time starts, and stops [s].
        cutoff: low-pass frequency of root and joints [Hz].
        shortest_gap: shorter gaps of a creeping foot are closed [s].
        creep: largest motion of a creeping foot [m].
        creep_turn: its largest turn [rad].
        creep_rise: its largest rise, else the gap must be short [m].
        shortest_support: shorter contacts are dropped [s].
        double_support: least double support around a change of support, at the pace of the clip [s].
        shortest_swing: shorter swings are lengthened or closed [s].
        hover_height: below it a foot hovers [m].
        hover_speed: slower hovering feet are put down [m/s].
        hover_time: longest single stance next to a hovering foot [s].
        toe_off: rear feet roll over the toe edge.
        toe_off_time: shortest roll over the toe edge [s].
        toe_off_pitch: range of the foot pitch at lift-off [rad].
        swing_speed: largest mean foot speed per leg length [1/s].
        narrowest: least ankle distance, at most the neutral width [m].
        margin: target distance of the zero-moment point from the edge [m].
        margin_least: guaranteed distance of the zero-moment point from the edge [m].
        passes: number of passes of planning and inverse kinematics; the posture is eased between them.
        torque_share: share of a leg or waist torque limit above which the posture is eased. The result may exceed it;
            slowing begins at 0.85 of any limit.
        yaw_rate: largest yaw rate of the pelvis [rad/s].
        least_pace: lowest pace of local slowing; 1: unchanged.
        turning_pace: lowest pace where no standing sole holds the moment about the vertical; there it replaces
            `least_pace` (`turning_moment`).
        pace: pace of the whole clip; 0: automatic.
        lost_center: 95th percentile error of the centre of mass that rejects a motion [m].
        most_flight: share of flight that rejects a clip.
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
    turning_pace: float = 0.25
    pace: float = 0.0
    lost_center: float = 0.02
    most_flight: float = 0.6

    def __post_init__(self) -> None:
        for f in fields(self):
            value = getattr(self, f.name)
            endless = f.name in ENDLESS and value == math.inf
            if isinstance(value, float) and not endless and not (math.isfinite(value) and value >= 0):
                raise ConfigError(f"feasibility: {f.name} must not be negative, got {value}")
        if not 50.0 <= self.rate <= 500.0:
            raise ConfigError(f"feasibility: rate must be between 50 and 500 Hz, got {self.rate:g}")
        if self.pace and not 0.1 <= self.pace <= 2.0:
            raise ConfigError(f"feasibility: pace must be between 0.1 and 2, got {self.pace:g}; 0: automatic")
        if not 0.1 <= self.least_pace <= 1.0:
            raise ConfigError(f"feasibility: least_pace must be between 0.1 and 1, got {self.least_pace:g}")
        if not 0.1 <= self.turning_pace <= 1.0:
            raise ConfigError(f"feasibility: turning_pace must be between 0.1 and 1, got {self.turning_pace:g}")
        if self.passes < 1:
            raise ConfigError(f"feasibility: passes must be 1 or more, got {self.passes}")

    @property
    def slow_double_support(self) -> float:
        """Least double support [s]: at a constant pace below 1 it lasts as much longer as the rest of the clip."""
        return self.double_support / min(1.0, self.pace or 1.0)

    def at_speed(self, speed: float) -> FeasibilitySettings:
        """Return the settings for a clip whose retargeted motion is slowed already: double support is as much longer.

        Args:
            speed: playback speed of the clip; above 1: no change.
        """
        return replace(self, double_support=self.double_support / min(1.0, speed))

    def frames(self, seconds: float) -> int:
        """Convert a duration [s] to frames."""
        return round(seconds * self.rate)
