"""Muscle units: motor, gear, drum and wire of a tendon, referred to the wire.

With drum radius r, gear ratio N, efficiency eta, rotor inertia J and torque constant kt:

    mass m = J N^2 / r^2 [kg]     force F = kt i N eta / r [N]     no-load speed w0 = omega0 r / N [m/s]

A driving motor gives |F| <= F_max (1 - |w| / w0). A wire of stretch s pulls with T = max(0, k s + c ds/dt); s1 > 0
stiffens it to k (1 + s / s1).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from humanoid_control.errors import ConfigError

NEVER_BELOW = ("viscous", "friction", "damping", "stiffening")


@dataclass(frozen=True)
class MuscleUnit:
    """Winch and wire; default values are estimates.

    Attributes:
        mass: rotor, at the wire [kg].
        viscous: motor and gear friction [N s/m].
        friction: Coulomb friction of motor and gear [N].
        force: maximum motor force [N].
        speed: no-load winding speed [m/s].
        stiffness: wire [N/m].
        damping: wire [N s/m].
        stiffening: s1, at which the stiffness doubles [m]; 0: linear.
        drum: radius [m].
        gear: ratio.
        force_per_current: at the wire [N/A].
        resistance: motor [Ohm].
        thermal: resistances core to case, case to air [K/W]; capacities of core, case [J/K].
        estimated: True if no value was published or measured.
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
                    raise ConfigError(f"muscle unit: {what} must not be negative, got {value:g}")
            elif not (np.isfinite(value) and value > 0):
                raise ConfigError(f"muscle unit: {what} must be above 0, got {value:g}")


class WinchMotor(NamedTuple):
    """Data sheet of a motor, gear and drum.

    Attributes:
        rotor: J [kg m^2].
        gear: ratio N.
        drum: radius r [m].
        torque_constant: kt [N m/A].
        efficiency: eta, 0..1.
        speed: no-load speed omega0 [rad/s].
        current: peak [A].
    """

    rotor: float
    gear: float
    drum: float
    torque_constant: float
    efficiency: float
    speed: float
    current: float


def unit_of_motor(motor: WinchMotor, **more: float) -> MuscleUnit:
    """Return the unit of a motor, gear and drum.

    Args:
        motor: data sheet.
        **more: other `MuscleUnit` attributes.

    Raises:
        ConfigError: if a value is not above 0, or the efficiency is above 1.
    """
    for what, value in motor._asdict().items():
        if not (np.isfinite(value) and value > 0):
            raise ConfigError(f"muscle unit: {what} must be above 0, got {value:g}")
    if motor.efficiency > 1:
        raise ConfigError(f"muscle unit: efficiency must be in 0..1, got {motor.efficiency:g}")
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
