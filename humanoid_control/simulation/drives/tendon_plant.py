"""Tendons of a simulated robot: lengths and tensions, and the errors with which motor encoders measure lengths."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from humanoid_control.errors import ConfigError
from humanoid_control.numerics.box_program import BoxQp
from humanoid_control.numerics.box_qp import solve_box_qp
from humanoid_control.robots.robot import Robot
from humanoid_control.robots.tendons import tendon_geometry
from humanoid_control.tendons.mappings.mapping import Array
from humanoid_control.tendons.routing.geometry import TendonGeometry
from humanoid_control.tendons.tendon import TendonSet


@dataclass(frozen=True)
class EncoderErrors:
    """Errors of measured lengths.

    Attributes:
        noise: standard deviation of each length [m].
        quantum: size of an encoder's step [m]; 0 for none.
        spikes: share of lengths with a spike, 0..1
        spike: its size [m].
        drift: standard deviation of what a length drifts in one step [m].
        scale: standard deviation of each tendon's factor on its length, 1 on average: moment arms of the model that
            are wrong. One is drawn per tendon and kept.
        from_start: lengths are counted from the first sample, as by an incremental encoder, so that the zero is lost.
    """

    noise: float = 0.0
    quantum: float = 0.0
    spikes: float = 0.0
    spike: float = 5e-3
    drift: float = 0.0
    scale: float = 0.0
    from_start: bool = False

    def __post_init__(self) -> None:
        for what, value in vars(self).items():
            if not value >= 0:
                raise ConfigError(f"tendon encoders: {what} is {value}, must not be negative")
        if self.spikes > 1:
            raise ConfigError(f"tendon encoders: spikes is {self.spikes}, a share of 0..1")


class TendonEncoders:
    """Measures the lengths of M tendons with errors; the same seed gives the same errors.

    Attributes:
        factors: (M,) on each tendon's length since zero.
        slack: (M,) what each encoder reads more than the path [m], to be set by whoever makes a tendon slack (positive)
            or breaks it (negative).
    """

    def __init__(self, count: int, errors: EncoderErrors | None = None, seed: int = 0) -> None:
        self.errors = errors or EncoderErrors()
        self._rng = np.random.default_rng(seed)
        self.factors = 1.0 + self.errors.scale * self._rng.standard_normal(count)
        self.slack = np.zeros(count)
        self._drifted = np.zeros(count)
        self._start: Array | None = None

    def measure(self, lengths: Array) -> Array:
        """Measured lengths (M,) [m] of true lengths since zero (M,) [m]; one call is one step of the drift."""
        e, rng, m = self.errors, self._rng, len(self.factors)
        z = self.factors * lengths + self.slack
        if e.drift:
            self._drifted += e.drift * rng.standard_normal(m)
            z += self._drifted
        if e.noise:
            z += e.noise * rng.standard_normal(m)
        if e.spikes:
            z += e.spike * (rng.uniform(size=m) < e.spikes) * rng.choice([-1.0, 1.0], m)
        if e.quantum:
            z = e.quantum * np.round(z / e.quantum)
        if e.from_start:
            self._start = z if self._start is None else self._start
            z = z - self._start
        return z

    def measure_many(self, lengths: Array) -> Array:
        """Measured lengths (T, M) of a whole motion, step by step."""
        return np.array([self.measure(row) for row in lengths]).reshape(len(lengths), -1)


# -------- The plant

PRETENSION = 10.0  # [N] of a tendon whose file names no least tension; a wire without tension leaves its pulley
STRONGEST = 1e6  # [N] of a tendon whose file names no greatest tension
PREFERENCE = 1e-6  # weight of small tensions, as a share of the mean squared moment arm


@dataclass(frozen=True)
class TendonStates:
    """True or measured lengths and tensions of a robot's tendons.

    Attributes:
        names: of M tendons.
        lengths: (M,) of the whole paths [m]; of winches the wires.
        tensions: (M,) [N].
        rates: (M,) of these lengths [m/s]; None where nothing measures them.
    """

    names: tuple[str, ...]
    lengths: np.ndarray
    tensions: np.ndarray
    rates: np.ndarray | None = None


class TendonPlant:
    """Tendons that move a robot's joints instead of its drives.

    A tension t pulls its tendon shorter, so that the tendons give the torques -G^T t (virtual work, with the moment
    arms G = dl / dtheta). Of all tensions in their range those are taken which come nearest to the torques of the
    drives, and of these the smallest ones; the least tension keeps every tendon taut.

    Attributes:
        geometry: of the tendons over the joints that they cross.
        joints: (D,) which joints of the robot these are.
        least, most: (M,) range of the tensions [N].
        factors: (M,) by which moment arms and changes of length differ from those of the geometry.
        unsolved: programs of tensions without a solution so far; the tensions stayed as they were.
    """

    def __init__(
        self, robot: Robot, moment_arm_error: float = 0.0, seed: int = 0, tendons: TendonSet | None = None
    ) -> None:
        """Create the tendon plant.

        Args:
            tendons: routed in another way than the robot's file has them, over the same joints.
            moment_arm_error: standard deviation of `factors`, 1 on average, as in `EncoderErrors.scale`;
                with all joints at zero the lengths are right nevertheless.
            seed: of the factors.

        Raises:
            RobotError, UnknownNameError: the robot has no tendons, or a file of them with an error.
            ConfigError: an error below 0.
        """
        self.robot, self.geometry = robot, tendon_geometry(robot)
        if tendons is not None:
            self.geometry = TendonGeometry(robot.model, tendons, self.geometry.joint_names)
        self.names = self.geometry.tendon_names
        self.factors = TendonEncoders(len(self.names), EncoderErrors(scale=moment_arm_error), seed).factors
        self.joints = np.array([robot.joint_index(name) for name in self.geometry.joint_names])
        given = np.array([(t.min_tension, t.max_tension) for t in self.geometry.tendons])
        self.least = np.where(given[:, 0] > 0, given[:, 0], np.minimum(PRETENSION, given[:, 1]))
        self.most = np.minimum(given[:, 1], STRONGEST)
        m, d = len(self.names), len(self.joints)
        self._lengths, self._arms = np.zeros(m), np.zeros((m, d))
        self._x, self._multipliers = np.zeros(m), np.zeros(m + 1)
        self._no_rows, self._no_bounds = np.zeros((1, m)), np.zeros(1)
        self._last, self.unsolved = np.minimum(self.least, self.most), 0

    def states(self, joints: np.ndarray, torque: np.ndarray) -> TendonStates:
        """Lengths and tensions at joint angles (n,) [rad] under torques (n,) of the drives [N m]."""
        lengths, arms = self.measure(joints)
        return TendonStates(self.names, lengths.copy(), self.tensions(arms, torque[self.joints]))

    def torques(self, joints: np.ndarray, tensions: np.ndarray) -> np.ndarray:
        """Torques (D,) [N m] of tensions (M,) [N] on the joints they cross, at joint angles (n,) [rad]: -G^T t."""
        return -(tensions @ self.measure(joints)[1])

    def measure(self, joints: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Lengths (M,) [m] and moment arms (M, D) [m] at joint angles (n,) [rad], in arrays that are used again."""
        zero, factors = self.geometry.zero, self.factors
        self.geometry.raw_into(joints[self.joints], self._lengths, self._arms)
        self._lengths += (factors - 1.0) * (self._lengths - zero)
        self._arms *= factors[:, None]
        return self._lengths, self._arms

    def tensions(self, arms: np.ndarray, torque: np.ndarray) -> np.ndarray:
        """Tensions (M,) [N] for torques (D,) [N m] with moment arms (M, D) [m]: argmin |G^T t + torque|^2 in range.

        Where there is no solution the last ones, at first the least.
        """
        H = arms @ arms.T
        weight = PREFERENCE * max(float(np.trace(H)) / len(H), 1e-9)
        H[np.diag_indices(len(H))] += weight
        g = arms @ torque - weight * self.least
        problem = BoxQp(H, g, self.least, self.most, self._no_rows, self._no_bounds)
        if solve_box_qp(problem, 0, 1.0, self._x, self._multipliers) < 0 or not np.isfinite(self._x).all():
            self.unsolved += 1
        else:
            self._last = self._x.copy()
        return self._last.copy()
