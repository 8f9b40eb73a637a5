"""Electric motors: one state a drive, the current. L di/dt = u - R i - k_e speed, torque = k_m i.

Over a step during which voltage and speed stay constant the current is known exactly, so that a step may be longer
than the electrical time constant L / R. Speeds are those of the motor shaft. The numbers of a motor come as one row
[R, L, k_e, k_m, current limit, voltage limit] of `MotorSettings.array`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from humanoid_control.errors import ConfigError
from humanoid_control.jit import kernel


@dataclass(frozen=True)
class MotorSettings:
    """A direct-current motor, or a brushless one seen along its torque axis.

    Attributes:
        resistance [ohm], inductance [H].
        back_emf: voltage per speed of the shaft [V s/rad].
        torque_constant: [N m/A]; None: the same number as `back_emf`, as energy demands of an ideal machine.
        current_limit [A], voltage_limit [V]: of the amplifier.
    """

    resistance: float
    inductance: float
    back_emf: float
    torque_constant: float | None = None
    current_limit: float = float("inf")
    voltage_limit: float = float("inf")

    def __post_init__(self) -> None:
        for name in ("resistance", "inductance", "current_limit", "voltage_limit"):
            value = getattr(self, name)
            if not value > 0:
                raise ConfigError(f"motor {name} must be positive, got {value:g}")
        for name in ("resistance", "inductance", "back_emf", "torque_constant"):
            value = getattr(self, name)
            if value is not None and not (np.isfinite(value) and value >= 0):
                raise ConfigError(f"motor {name} must be a finite number, 0 or more, got {value:g}")

    @property
    def time_constant(self) -> float:
        """L / R [s]."""
        return self.inductance / self.resistance

    def array(self) -> np.ndarray:
        """The row that kernels read (6,)."""
        km = self.back_emf if self.torque_constant is None else self.torque_constant
        return np.array([self.resistance, self.inductance, self.back_emf, km, self.current_limit, self.voltage_limit])


@kernel
def current_rate(current: float, voltage: float, speed: float, motor: np.ndarray) -> float:
    """di/dt [A/s], for integrators that ask for rates; the voltage is clipped at the amplifier's limit."""
    u = min(max(voltage, -motor[5]), motor[5])
    return (u - motor[0] * current - motor[2] * speed) / motor[1]


@kernel
def deadbeat_voltage(current: float, wanted: float, speed: float, h: float, motor: np.ndarray) -> float:
    """The constant voltage [V] that takes the current to `wanted` [A] within h [s], before any limit."""
    keep = np.exp(-h * motor[0] / motor[1])
    return motor[0] * (wanted - keep * current) / (1.0 - keep) + motor[2] * speed


@kernel
def motor_step(current: float, voltage: float, speed: float, h: float, motor: np.ndarray) -> tuple[float, float, float]:
    """Current after a step of constant voltage and speed, exactly, within the limits of the amplifier.

    Where the current would pass its limit the amplifier gives just the voltage that ends at the limit; where the
    back-EMF is more than its voltage it cannot, and the limit is passed.

    Args:
        current [A] at the start, voltage [V] wanted, speed of the shaft [rad/s], h: length of the step [s].

    Returns:
        The current at the end, its mean over the step (times k_m the mean torque) [A], and the voltage given [V].
    """
    R, most = motor[0], motor[4]
    x = h * R / motor[1]
    keep = np.exp(-x)
    u = min(max(voltage, -motor[5]), motor[5])
    settled = (u - motor[2] * speed) / R
    after = settled + (current - settled) * keep
    if abs(after) > most:
        u = deadbeat_voltage(current, most if after > 0.0 else -most, speed, h, motor)
        u = min(max(u, -motor[5]), motor[5])
        settled = (u - motor[2] * speed) / R
        after = settled + (current - settled) * keep
    return after, settled + (current - settled) * (-np.expm1(-x) / x), u


@kernel
def current_controlled_step(
    current: np.ndarray, wanted: np.ndarray, speed: np.ndarray, h: float, motors: np.ndarray, torque: np.ndarray
) -> None:
    """All drives (n,) under a deadbeat current controller: `wanted` [A] is reached in one step where limits allow.

    Moves `current` (n,) in place and writes the mean torque (n,) [N m]; motors (n, 6).
    """
    for k in range(current.shape[0]):
        goal = min(max(wanted[k], -motors[k, 4]), motors[k, 4])
        u = deadbeat_voltage(current[k], goal, speed[k], h, motors[k])
        current[k], mean, _ = motor_step(current[k], u, speed[k], h, motors[k])
        torque[k] = motors[k, 3] * mean
