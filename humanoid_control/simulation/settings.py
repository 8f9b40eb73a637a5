"""Settings of the simulated world."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from humanoid_control.errors import ConfigError, UnknownNameError
from humanoid_control.simulation.contact.ground import Ground
from humanoid_control.simulation.contact.points import ContactSettings
from humanoid_control.simulation.drives.drive_train import DEPTHS

IDEAL = "ideal"
TENDONS = "tendons"
WINCHES = "winches"
ALL = "all"
TOUCHING = (ALL, "soles")
DRIVES = (IDEAL, *DEPTHS, TENDONS, WINCHES)


@dataclass(frozen=True)
class WorldSettings:
    """Integration step, gravity, ground, contact and drives of a world.

    Attributes:
        step: integration step [s].
        gravity: downward [m/s^2].
        coast: continued motion of a position reference at the commanded velocity [s].
        ground: ground below a floating base.
        touching: links besides the soles that touch the ground, or 'all'.
        drives: 'ideal'; 'rigid' or 'elastic' gears; 'tendons' at constant tensions; 'winches' on tendons.
        tension: tension of every tendon with drives 'tendons' [N]; 0: the neutral posture is held.
        moment_arm_error: standard deviation of factors on moment arms.
        winch_error: standard deviation of factors on wire stiffness.
        path_friction: friction along the path of tendons on winches, relative to the tension.
        seed: seed of the random factors.
    """

    step: float = 0.001
    gravity: float = 9.81
    coast: float = 0.01
    ground: Ground = field(default_factory=Ground.plane)
    contact: ContactSettings = field(default_factory=ContactSettings)
    touching: tuple[str, ...] | str = ()
    drives: str = IDEAL
    tension: float = 0.0
    moment_arm_error: float = 0.0
    winch_error: float = 0.0
    path_friction: float = 0.0
    seed: int = 0

    def check(self) -> None:
        """Check the ranges.

        Raises:
            UnknownNameError: if `drives` is unknown.
            ConfigError: if a number is out of range.
        """
        if not 0 < self.step <= 0.01:
            raise ConfigError(f"simulation step must be between 0 and 0.01 s, got {self.step:g}")
        if self.drives not in DRIVES:
            raise UnknownNameError("kind of drives", self.drives, DRIVES)
        for what in ("gravity", "coast", "tension", "moment_arm_error", "winch_error", "path_friction", "seed"):
            value = getattr(self, what)
            if not (np.isfinite(value) and value >= 0):
                raise ConfigError(f"simulation {what} must be 0 or more, got {value:g}")
