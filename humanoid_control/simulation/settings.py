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
        step: length of an integration step [s].
        gravity: [m/s^2], downward.
        coast: time for which a position drive's reference moves on with the commanded velocity after a command [s].
        ground: its shape; it acts on the soles of robots whose base floats.
        contact: of soles and ground.
        drives: 'ideal': torque at once; 'rigid' or 'elastic': motors and gears of the robot's file of drives;
            'tendons': tendons at constant tensions, see `multibody_world.TensionWorld`; 'winches': the winches of its
            tendons move it, see `winch_world.WinchWorld`.
        tension: of every tendon under drives 'tendons' [N]; 0: those that hold the neutral posture.
        moment_arm_error: standard deviation of the factors by which the moment arms of the tendons differ from those of
            the robot's file.
        seed: of the factors.
        winch_error: standard deviation of the factors by which the stiffness of winches' wires differs from that of the
            units.
        path_friction: of tendons along their paths under drives 'winches', as a share of the tension.
        touching: other links whose collision shapes meet the ground too, or 'all'.
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
        """Refuse numbers out of range.

        Raises:
            UnknownNameError: no such kind of drives. ConfigError: the first number out of range.
        """
        if not 0 < self.step <= 0.01:
            raise ConfigError(f"simulation step must be between 0 and 0.01 s, got {self.step:g}")
        if self.drives not in DRIVES:
            raise UnknownNameError("kind of drives", self.drives, DRIVES)
        for what in ("gravity", "coast", "tension", "moment_arm_error", "winch_error", "path_friction", "seed"):
            value = getattr(self, what)
            if not (np.isfinite(value) and value >= 0):
                raise ConfigError(f"simulation {what} must be 0 or more, got {value:g}")
