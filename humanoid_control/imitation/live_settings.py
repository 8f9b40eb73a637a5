"""How live markers are followed: the numbers, with their meanings."""

from __future__ import annotations

import math
from dataclasses import dataclass

from humanoid_control.capture.live_calibration import UP
from humanoid_control.errors import ConfigError, UnknownNameError


@dataclass(frozen=True)
class LiveSettings:
    """How live markers become targets.

    Attributes:
        marker_set: name of a built-in set, path of a YAML file; empty: found by the labels.
        calibration: for how long the person stands upright at first [s].
        upright: turn spine and clavicles so that standing means the robot's zero posture, as `scale_to_robot`.
        up: axis of the recording that points upward, "+x" ... "-z"; "auto": found from the body.
        fade: a marker that vanishes goes on with its velocity, which fades to zero over this time [s].
        return_speed: a marker that comes back is moved over to with this speed at the most [m/s].
        max_speed: of a target, whatever is fed [m/s].
        timeout: silence of all markers after which it is said that the posture is held [s].
        lead_in: time to move from the present posture to the markers' [s].
    """

    marker_set: str = ""
    calibration: float = 2.0
    upright: bool = True
    up: str = "auto"
    fade: float = 0.3
    return_speed: float = 1.0
    max_speed: float = 6.0
    timeout: float = 0.5
    lead_in: float = 1.5

    def __post_init__(self) -> None:
        if self.up != "auto" and self.up not in UP:
            raise UnknownNameError("axis", self.up, ("auto", *UP))
        for name in ("calibration", "fade", "return_speed", "max_speed", "timeout"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0):
                raise ConfigError(f"{name} of live markers must be positive, got {value}")
        if not (math.isfinite(self.lead_in) and self.lead_in >= 0):
            raise ConfigError(f"lead_in of live markers must not be negative, got {self.lead_in}")
