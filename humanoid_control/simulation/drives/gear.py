"""Gears: friction of Harmonic Drives and of roller screws, and the elastic gear between rotor and link.

The numbers of a friction come as one row [coulomb, stiction, stribeck speed, viscous, smoothing speed, load share] of
`GearFriction.array`. Equations and numbers are ours; the source names the models without printing them.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from humanoid_control.errors import ConfigError
from humanoid_control.jit import kernel


@dataclass(frozen=True)
class GearFriction:
    """Friction torque (coulomb + (stiction - coulomb) exp(-(v/v_s)^2) + share |load|) tanh(v/v_0) + viscous v.

    All on one side of the gear, the one whose speed v is used: torques [N m] and speeds [rad/s] of that side.

    Attributes:
        coulomb: torque at moderate speed, without load. stiction: peak about standstill, at least `coulomb`.
        stribeck_speed: v_s, where the peak has fallen off. viscous: [N m s/rad].
        smoothing_speed: v_0, below which the torque is in proportion to speed.
        load_share: part of the transmitted torque that is lost to friction, 0 to 1.
    """

    coulomb: float = 0.0
    stiction: float = 0.0
    stribeck_speed: float = 0.1
    viscous: float = 0.0
    smoothing_speed: float = 0.01
    load_share: float = 0.0

    def __post_init__(self) -> None:
        for f in fields(self):
            value = getattr(self, f.name)
            if not (np.isfinite(value) and value >= 0) or (f.name.endswith("speed") and value == 0):
                least = "positive" if f.name.endswith("speed") else "0 or more"
                raise ConfigError(f"gear friction: {f.name} must be {least}, got {value:g}")
        if self.stiction < self.coulomb:
            raise ConfigError(
                f"gear friction: stiction {self.stiction:g} must not be less than coulomb {self.coulomb:g}"
            )
        if self.load_share >= 1:
            raise ConfigError(f"gear friction: load_share must be less than 1, got {self.load_share:g}")

    @classmethod
    def harmonic_drive(
        cls, coulomb: float, viscous: float, stiction: float | None = None, stribeck_speed: float = 0.1
    ) -> GearFriction:
        """Friction of a Harmonic Drive: Coulomb, Stribeck and viscous parts, whatever the load."""
        return cls(coulomb, coulomb if stiction is None else stiction, stribeck_speed, viscous)

    @classmethod
    def roller_screw(cls, coulomb: float, viscous: float, load_share: float) -> GearFriction:
        """Friction of a planetary roller screw: a part of the load, beside Coulomb and viscous parts."""
        return cls(coulomb, coulomb, viscous=viscous, load_share=load_share)

    def array(self) -> np.ndarray:
        """The row that kernels read (6,)."""
        return np.array([getattr(self, f.name) for f in fields(self)])


@kernel
def friction_torque(speed: float, load: float, friction: np.ndarray) -> tuple[float, float]:
    """Friction torque, to be subtracted from the drive's, and its derivative with respect to speed.

    Args:
        speed: [rad/s]. load: transmitted torque on the same side [N m], its sign does not matter.
        friction: `GearFriction.array`.

    Returns:
        Torque [N m] with the sign of the speed, and slope [N m s/rad] for implicit steps (negative where stiction
        falls off).
    """
    coulomb, stiction, vs, viscous, v0, share = friction
    x, y = speed / vs, speed / v0
    peak = (stiction - coulomb) * np.exp(-x * x)
    size = coulomb + peak + share * abs(load)
    sign = np.tanh(y)
    slope = size * (1.0 - sign * sign) / v0 - 2.0 * x / vs * peak * sign + viscous
    return size * sign + viscous * speed, slope


@dataclass(frozen=True)
class ElasticGear:
    """A gear with a spring and a damper on its link side.

    Attributes:
        ratio: turns of the rotor per turn of the link. stiffness [N m/rad], damping [N m s/rad]: at the link.
    """

    ratio: float
    stiffness: float
    damping: float = 0.0

    def __post_init__(self) -> None:
        if not (np.isfinite(self.ratio) and self.ratio != 0):
            raise ConfigError(f"elastic gear: ratio must be a number other than 0, got {self.ratio:g}")
        if not (np.isfinite(self.stiffness) and self.stiffness > 0):
            raise ConfigError(f"elastic gear: stiffness must be positive, got {self.stiffness:g}")
        if not (np.isfinite(self.damping) and self.damping >= 0):
            raise ConfigError(f"elastic gear: damping must be 0 or more, got {self.damping:g}")

    def array(self) -> np.ndarray:
        """The row that kernels read (3,): ratio, stiffness, damping."""
        return np.array([self.ratio, self.stiffness, self.damping])


@kernel
def gear_torque(
    rotor: float, rotor_speed: float, link: float, link_speed: float, gear: np.ndarray
) -> tuple[float, float]:
    """Torques of an elastic gear: (on the link, on the rotor) [N m]. What it takes from one it gives or dissipates.

    Angles [rad] and speeds [rad/s] are both relative to the segment that carries the motor.
    """
    ratio, k, d = gear
    torque = k * (rotor / ratio - link) + d * (rotor_speed / ratio - link_speed)
    return torque, -torque / ratio
