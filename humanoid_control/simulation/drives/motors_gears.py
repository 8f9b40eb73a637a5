"""Motors, gears and friction, per drive and compiled for all shafts.

L di/dt = u - R i - k_e w, torque = k_m i, with the shaft speed w. For constant u and w the current is exact, also for
steps beyond L / R.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import NamedTuple

import numpy as np

from humanoid_control.compiled.array_types import F1, F2, I1, I2
from humanoid_control.compiled.jit import inlined, kernel
from humanoid_control.errors import ConfigError, RobotError
from humanoid_control.multibody.arrays import Tables
from humanoid_control.multibody.layout import COORD, GRAD, NC, NW, RATE
from humanoid_control.robots.drives import Drive
from humanoid_control.simulation.drives.drive_train import DriveTrain

# Entries of a motor's row, `MotorSettings.array`, and of an elastic gear's, `ElasticGear.array`.
RESISTANCE, INDUCTANCE, BACK_EMF, TORQUE_CONSTANT, CURRENT_LIMIT, VOLTAGE_LIMIT = range(6)
RATIO, GEAR_STIFFNESS, GEAR_DAMPING = range(3)


@dataclass(frozen=True)
class MotorSettings:
    """DC motor, or a brushless motor along its torque axis.

    Attributes:
        resistance: [ohm].
        inductance: [H].
        back_emf: k_e [V s/rad].
        torque_constant: k_m [N m/A]; None: k_e.
        current_limit: [A].
        voltage_limit: [V].
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
        """Return [R, L, k_e, k_m, current limit, voltage limit] for kernels."""
        km = self.back_emf if self.torque_constant is None else self.torque_constant
        return np.array([self.resistance, self.inductance, self.back_emf, km, self.current_limit, self.voltage_limit])


@kernel
def current_rate(current: float, voltage: float, speed: float, motor: np.ndarray) -> float:
    """Return di/dt [A/s]; the voltage is clipped at the amplifier's limit."""
    u = min(max(voltage, -motor[VOLTAGE_LIMIT]), motor[VOLTAGE_LIMIT])
    return (u - motor[RESISTANCE] * current - motor[BACK_EMF] * speed) / motor[INDUCTANCE]


@kernel
def decay_of(h: float, motor: np.ndarray) -> tuple[float, float]:
    """Return the share of a decaying current left after h [s], and its mean."""
    # x = h R / L; the mean of exp(-t R / L) over the step is (1 - exp(-x)) / x.
    x = h * motor[RESISTANCE] / motor[INDUCTANCE]
    return np.exp(-x), -np.expm1(-x) / x


def decays(motors: np.ndarray, h: float) -> np.ndarray:
    """Return `decay_of` of motors (n, 6): (n, 2)."""
    return np.array([decay_of(h, motor) for motor in motors]).reshape(-1, 2)


@kernel
def deadbeat_voltage(current: float, desired: float, speed: float, h: float, motor: np.ndarray) -> float:
    """Return the constant voltage [V] that reaches the current `desired` [A] in h [s], without limits."""
    return _deadbeat(current, desired, speed, decay_of(h, motor)[0], motor)


@inlined
def _deadbeat(current: float, desired: float, speed: float, keep: float, motor: F1) -> float:
    return motor[RESISTANCE] * (desired - keep * current) / (1.0 - keep) + motor[BACK_EMF] * speed


@kernel
def motor_step(current: float, voltage: float, speed: float, h: float, motor: np.ndarray) -> tuple[float, float, float]:
    """Integrate the current [A] exactly over h [s] at constant voltage [V] and shaft speed [rad/s].

    The amplifier lowers the voltage at the current limit; back-EMF beyond the voltage limit exceeds it.

    Returns:
        Final current, mean current [A], applied voltage [V].
    """
    return _motor_step(current, voltage, speed, decay_of(h, motor), motor)


@inlined
def _motor_step(
    current: float, voltage: float, speed: float, decay: tuple[float, float], motor: F1
) -> tuple[float, float, float]:
    R, ke, most, highest = motor[RESISTANCE], motor[BACK_EMF], motor[CURRENT_LIMIT], motor[VOLTAGE_LIMIT]
    # i(h) = settled + (i(0) - settled) exp(-h R / L), with settled = (u - k_e w) / R.
    keep, in_the_mean = decay
    u = min(max(voltage, -highest), highest)
    settled = (u - ke * speed) / R
    after = settled + (current - settled) * keep
    # Current limit: the amplifier regulates the voltage such that the step ends at the limit.
    if abs(after) > most:
        u = _deadbeat(current, most if after > 0.0 else -most, speed, keep, motor)
        u = min(max(u, -highest), highest)
        settled = (u - ke * speed) / R
        after = settled + (current - settled) * keep
    return after, settled + (current - settled) * in_the_mean, u


@kernel
def current_controlled_step(
    current: np.ndarray,
    desired: np.ndarray,
    speed: np.ndarray,
    decay: np.ndarray,
    motors: np.ndarray,
    torque: np.ndarray,
) -> None:
    """Advance all drives (n,) under deadbeat control, which reaches `desired` [A] in one step within limits.

    Args:
        current: (n,) changed in place [A].
        speed: (n,) [rad/s].
        decay: (n, 2) of `decays`.
        motors: (n, 6).
        torque: (n,) output, step mean [N m].
    """
    for k in range(current.shape[0]):
        motor, left = motors[k], (decay[k, 0], decay[k, 1])
        # One-step control: the voltage is chosen for the current at the end, then limited by the amplifier.
        goal = min(max(desired[k], -motor[CURRENT_LIMIT]), motor[CURRENT_LIMIT])
        u = _deadbeat(current[k], goal, speed[k], left[0], motor)
        current[k], mean, _ = _motor_step(current[k], u, speed[k], left, motor)
        torque[k] = motor[TORQUE_CONSTANT] * mean


# -------- Gears


@dataclass(frozen=True)
class GearFriction:
    """Friction (coulomb + (stiction - coulomb) exp(-(v/v_s)^2) + share |load|) tanh(v/v_0) + viscous v.

    Torques [N m] and speeds v [rad/s] of one gear side.

    Attributes:
        coulomb: without load.
        stiction: peak near standstill.
        stribeck_speed: v_s.
        viscous: [N m s/rad].
        smoothing_speed: v_0.
        load_share: 0 to 1.
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
        """Create load-independent friction."""
        return cls(coulomb, coulomb if stiction is None else stiction, stribeck_speed, viscous)

    @classmethod
    def roller_screw(cls, coulomb: float, viscous: float, load_share: float) -> GearFriction:
        """Create load-dependent friction."""
        return cls(coulomb, coulomb, viscous=viscous, load_share=load_share)

    def array(self) -> np.ndarray:
        return np.array([getattr(self, f.name) for f in fields(self)])


@kernel
def friction_torque(speed: float, load: float, friction: np.ndarray) -> tuple[float, float]:
    """Return the friction torque [N m], signed as the speed [rad/s], and its slope [N m s/rad].

    The slope is negative where stiction decays. `load`: transmitted torque of any sign [N m].
    """
    coulomb, stiction, vs, viscous, v0, share = friction
    # tanh instead of sign: the slope at standstill stays finite.
    x, y = speed / vs, speed / v0
    peak = (stiction - coulomb) * np.exp(-x * x) if stiction != coulomb else 0.0
    size = coulomb + peak + share * abs(load)
    sign = np.tanh(y)
    slope = size * (1.0 - sign * sign) / v0 - 2.0 * x / vs * peak * sign + viscous
    return size * sign + viscous * speed, slope


@dataclass(frozen=True)
class ElasticGear:
    """Gear with a spring and damper at the link.

    Attributes:
        ratio: rotor turns per link turn.
        stiffness: [N m/rad].
        damping: [N m s/rad].
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
        return np.array([self.ratio, self.stiffness, self.damping])


@kernel
def gear_torque(
    rotor: float, rotor_speed: float, link: float, link_speed: float, gear: np.ndarray
) -> tuple[float, float]:
    """Return gear torques on link and rotor [N m], from angles and speeds relative to the carrier."""
    ratio, k, d = gear
    # The spring deflection is measured at the link; the rotor feels the torque reduced by the ratio, reversed.
    torque = k * (rotor / ratio - link) + d * (rotor_speed / ratio - link_speed)
    return torque, -torque / ratio


# -------- A drive of the file


def motor_settings(drive: Drive) -> MotorSettings:
    """Return the motor of a drive, with k_e = k_m.

    Raises:
        RobotError: if the drive has no motor.
    """
    m = drive.motor
    if m is None:
        raise RobotError(f"drive '{drive.name}' has no motor in the drive file")
    return MotorSettings(
        resistance=m.resistance,
        inductance=m.inductance,
        back_emf=m.torque_constant,
        current_limit=m.current_limit,
        voltage_limit=m.voltage_limit,
    )


def gear_friction(drive: Drive) -> GearFriction:
    return GearFriction(**asdict(drive.friction))


def elastic_gear(drive: Drive) -> ElasticGear | None:
    """Return the elastic gear, or None."""
    e = drive.elastic
    return None if e is None else ElasticGear(drive.ratio, e.stiffness, e.damping)


# -------- All shafts of a robot


class ShaftTable(NamedTuple):
    """All m shafts of a robot.

    Attributes:
        body: (m,) of the rotors.
        joints: (m, 2) coordinates, -1: none.
        gear: (m, 3) `ElasticGear.array`, 0: rigid.
        motor: (m, 6) `MotorSettings.array`.
        friction: (m, 6) `GearFriction.array`.
        torque: (m,) [N m].
    """

    body: I1
    joints: I2
    gear: F2
    motor: F2
    friction: F2
    torque: F1


def shaft_table(train: DriveTrain, friction: bool = True) -> ShaftTable:
    """Pack the shafts of a drive train."""
    model, m = train.model, len(train.shafts)
    number = {c: k for k, c in enumerate(model.coordinates)}
    joints = np.full((m, 2), -1, dtype=np.int64)
    gear = np.zeros((m, 3))
    for k, s in enumerate(train.shafts):
        joints[k, : len(s.joints)] = [number[j] for j in s.joints]
        own = elastic_gear(s.drive) if s.elastic else None
        if own is not None:
            gear[k] = own.array()
    return ShaftTable(
        np.array([model.body(s.body) for s in train.shafts]),
        joints,
        gear,
        np.array([motor_settings(s.drive).array() for s in train.shafts]),
        np.array([(gear_friction(s.drive) if friction else GearFriction()).array() for s in train.shafts]),
        np.zeros(m),
    )


def no_shafts() -> ShaftTable:
    return ShaftTable(
        np.zeros(0, np.int64),
        np.zeros((0, 2), np.int64),
        np.zeros((0, 3)),
        np.zeros((0, 6)),
        np.zeros((0, 6)),
        np.zeros(0),
    )


@kernel
def shaft_forces(t: Tables, W: F1, s: ShaftTable, q: F1, v: F1, h: float, tau: F1, armature: F1) -> None:
    """Add the generalised forces of all shafts to tau (nv,), after `kinematics_pass`, from torques in `s`.

    h [s] > 0: friction takes the speed at the end of the step, by added armature (nv,).
    """
    for k in range(s.body.shape[0]):
        i = s.body[k]
        o = (i + 1) * NW
        lost, slope = friction_torque(W[o + RATE], s.torque[k], s.friction[k])
        # Secant instead of tangent: lost(w+) ~ (lost / w) w+ never changes sign, even where stiction falls.
        if abs(W[o + RATE]) > 1e-9:
            slope = lost / W[o + RATE]
        whole = 0.0
        for c in range(t.ints[i, NC]):
            tau[t.ints[i, COORD + c]] += W[o + GRAD + c] * (s.torque[k] - lost)
            whole += abs(W[o + GRAD + c])
        for c in range(t.ints[i, NC]):  # row sums bound the matrix from above if a screw moves two joints
            armature[t.ints[i, COORD + c]] += h * slope * abs(W[o + GRAD + c]) * whole
        if s.gear[k, GEAR_STIFFNESS] > 0.0:
            own, joint = t.ints[i, COORD], s.joints[k, 0]
            passed, back = gear_torque(q[t.qpos[own]], v[own], q[t.qpos[joint]], v[joint], s.gear[k])
            tau[joint] += passed
            tau[own] += back


@kernel
def desired_currents(t: Tables, W: F1, s: ShaftTable, torque: F1, current: F1) -> None:
    """Compute currents (m,) for torques (nv,) without friction, after `kinematics_pass`."""
    k = 0
    while k < s.body.shape[0]:
        i = s.body[k]
        o = (i + 1) * NW + GRAD
        first = s.joints[k, 0]
        if t.ints[i, NC] == 2:  # two screws that move two joints: G^T tau = Q
            e = (s.body[k + 1] + 1) * NW + GRAD
            # 2 x 2 solve by Cramer's rule, G = dphi/dq of both screws.
            det = W[o] * W[e + 1] - W[o + 1] * W[e]
            a, b = torque[first], torque[s.joints[k, 1]]
            current[k] = (W[e + 1] * a - W[e] * b) / det / s.motor[k, TORQUE_CONSTANT]
            current[k + 1] = (W[o] * b - W[o + 1] * a) / det / s.motor[k + 1, TORQUE_CONSTANT]
            k += 2
        else:
            # A rigid shaft transmits by its kinematic gradient; behind an elastic gear by the reduction.
            ratio = s.gear[k, RATIO] if s.gear[k, GEAR_STIFFNESS] > 0.0 else W[o]
            current[k] = torque[first] / ratio / s.motor[k, TORQUE_CONSTANT]
            k += 1


@kernel
def limit_joint_torques(W: F1, s: ShaftTable, limit: F1, current: F1, torque: F1) -> None:
    """Cut motor torques and currents where a joint torque, without friction, exceeds its limit.

    Call after `current_controlled_step`: changing screw ratios and back-EMF escape the current limits. The cut ignores
    the voltage limit.

    Args:
        W: body rows.
        limit: (nv,) [N m].
        current: (m,) cut [A].
        torque: (nv,) output [N m].
    """
    joints, gear, motor, given = s.joints, s.gear, s.motor, s.torque
    _joint_torques(W, s.body, joints, gear, given, torque)
    cut = False
    for k in range(given.shape[0]):
        share = 1.0
        for c in range(2):
            j = joints[k, c]
            if j >= 0 and abs(torque[j]) > limit[j]:
                # A screw that moves two joints is cut for the more restrictive one.
                share = min(share, limit[j] / abs(torque[j]))
        if share < 1.0:
            cut = True
            given[k] *= share
            current[k] = given[k] / motor[k, TORQUE_CONSTANT]
    if cut:
        _joint_torques(W, s.body, joints, gear, given, torque)


@inlined
def _joint_torques(W: F1, body: I1, joints: I2, gear: F2, given: F1, torque: F1) -> None:
    torque[:] = 0.0
    for k in range(given.shape[0]):
        if gear[k, GEAR_STIFFNESS] > 0.0:
            torque[joints[k, 0]] += gear[k, RATIO] * given[k]
        else:
            o = (body[k] + 1) * NW + GRAD
            for c in range(2):
                if joints[k, c] >= 0:
                    torque[joints[k, c]] += W[o + c] * given[k]
