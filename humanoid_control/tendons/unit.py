"""Muscle units: motor, gear, drum and wire of a tendon, with everything referred to the wire.

With the drum radius r, the gear ratio N and its efficiency eta, the rotor inertia J and the torque constant kt:

    mass m = J N^2 / r^2 [kg]     force F = kt i N eta / r [N]     speed without load w0 = omega0 r / N [m/s]

A motor drives with |F| <= F_max (1 - |w| / w0). The wire pulls with T = max(0, k s + c ds/dt), s its stretch, and
stiffens with k (1 + s / s1) where s1 is given.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from humanoid_control.errors import ConfigError

NEVER_BELOW = ("viscous", "friction", "damping", "stiffening")


@dataclass(frozen=True)
class MuscleUnit:
    """One winch and its wire; the numbers of the default unit are estimated, not those of a product.

    Attributes:
        mass: of the rotor, seen at the wire [kg].
        viscous: friction of motor and gear [N s/m].
        friction: Coulomb friction of motor and gear [N].
        force: greatest force of the motor [N].
        speed: winding speed without load [m/s].
        stiffness: of the wire [N/m].
        damping: of the wire [N s/m].
        stiffening: stretch at which the wire is twice as stiff [m]; 0: it is linear.
        drum: radius [m].
        gear: ratio of the gear.
        force_per_current: of the motor at the wire [N/A].
        resistance: of the motor [Ohm].
        thermal: resistances core to case and case to air [K/W], capacities of core and case [J/K].
        estimated: True where no number of it was published or measured.
    """

    mass: float = 7.3
    viscous: float = 60.0
    friction: float = 15.0
    force: float = 600.0
    speed: float = 0.45
    stiffness: float = 5.0e4
    damping: float = 30.0
    stiffening: float = 0.0
    drum: float = 0.008
    gear: float = 29.0
    force_per_current: float = 39.4
    resistance: float = 0.5
    thermal: tuple[float, float, float, float] = (1.0, 4.0, 12.0, 150.0)
    estimated: bool = True

    def __post_init__(self) -> None:
        for what, value in vars(self).items():
            if what == "estimated":
                continue
            if what == "thermal":
                if len(self.thermal) != 4 or not all(np.isfinite(x) and x > 0 for x in self.thermal):
                    raise ConfigError(f"muscle unit: thermal must be four numbers above 0, got {list(self.thermal)}")
            elif what in NEVER_BELOW:
                if not (np.isfinite(value) and value >= 0):
                    raise ConfigError(f"muscle unit: {what} is {value:g}, must not be negative")
            elif not (np.isfinite(value) and value > 0):
                raise ConfigError(f"muscle unit: {what} is {value:g}, must be above 0")


class WinchMotor(NamedTuple):
    """Numbers of a motor's data sheet, and of the gear and the drum behind it.

    Attributes:
        rotor: inertia J [kg m^2].
        gear: ratio N.
        drum: radius r [m].
        torque_constant: kt [N m/A].
        efficiency: eta of the gear, 0..1.
        speed: omega0 of the motor without load [rad/s].
        current: peak current [A].
    """

    rotor: float
    gear: float
    drum: float
    torque_constant: float
    efficiency: float
    speed: float
    current: float


def unit_of_motor(motor: WinchMotor, **more: float) -> MuscleUnit:
    """Return the unit of a motor, a gear and a drum.

    Args:
        motor: their numbers.
        more: other attributes of `MuscleUnit`, such as friction and stiffness.

    Raises:
        ConfigError: a number that is not above 0, or an efficiency above 1.
    """
    for what, value in motor._asdict().items():
        if not (np.isfinite(value) and value > 0):
            raise ConfigError(f"muscle unit: {what} is {value:g}, must be above 0")
    if motor.efficiency > 1:
        raise ConfigError(f"muscle unit: efficiency is {motor.efficiency:g}, a share of 0..1")
    per_current = motor.torque_constant * motor.gear * motor.efficiency / motor.drum
    referred = {
        "mass": motor.rotor * motor.gear**2 / motor.drum**2,
        "force": per_current * motor.current,
        "speed": motor.speed * motor.drum / motor.gear,
        "drum": motor.drum,
        "gear": motor.gear,
        "force_per_current": per_current,
        "estimated": False,
    }
    return MuscleUnit(**{**referred, **more})  # type: ignore[arg-type]
