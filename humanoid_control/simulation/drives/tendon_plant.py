"""Tendons of a simulated robot: lengths, tensions, and encoder errors."""

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
        noise: standard deviation [m].
        quantum: encoder step [m]; 0: none.
        spikes: share of samples, 0..1.
        spike: size [m].
        drift: standard deviation per step [m].
        scale: standard deviation of a factor per tendon (mean 1).
        from_start: lengths count from the first sample.
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
                raise ConfigError(f"tendon encoders: {what} must not be negative, got {value}")
        if self.spikes > 1:
            raise ConfigError(f"tendon encoders: spikes must be between 0 and 1, got {self.spikes}")


class TendonEncoders:
    """Encoders of M tendons with reproducible errors.

    Attributes:
        factors: (M,) on the length since zero.
        slack: (M,) offset [m]: positive for slack, negative for reeled-in tendons.
    """

    def __init__(self, count: int, errors: EncoderErrors | None = None, seed: int = 0) -> None:
        self.errors = errors or EncoderErrors()
        self._rng = np.random.default_rng(seed)
        self.factors = 1.0 + self.errors.scale * self._rng.standard_normal(count)
        self.slack = np.zeros(count)
        self._drifted = np.zeros(count)
        self._start: Array | None = None

    def measure(self, lengths: Array) -> Array:
        """Return measured lengths (M,) [m] of true lengths since zero (M,) [m]; one drift step per call."""
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
        """Return measured lengths (T, M) of a motion."""
        return np.array([self.measure(row) for row in lengths]).reshape(len(lengths), -1)


# -------- The plant

PRETENSION = 10.0  # [N] default least tension: a wire without tension leaves its pulley
STRONGEST = 1e6  # [N] default greatest tension
PREFERENCE = 1e-6  # weight of small tensions, as a share of the mean squared moment arm


@dataclass(frozen=True)
class TendonStates:
    """True or measured states of M tendons.

    Attributes:
        lengths: (M,) of the paths, on winches of the wires [m].
        tensions: (M,) [N].
        rates: (M,) of the lengths [m/s]; None if not measured.
    """

    names: tuple[str, ...]
    lengths: np.ndarray
    tensions: np.ndarray
    rates: np.ndarray | None = None


class TendonPlant:
    """Tendons that move a robot's joints instead of drives.

    Tensions t give the torques -G^T t, G = dl / dtheta. Chosen are the smallest tensions within limits that come
    nearest to the drive torques.

    Attributes:
        geometry: over the crossed joints.
        joints: (D,) their indices.
        least: (M,) [N].
        most: (M,) [N].
        factors: (M,) on moment arms and length changes.
        unsolved: failed tension programs, which keep the last tensions.
    """

    def __init__(
        self, robot: Robot, moment_arm_error: float = 0.0, seed: int = 0, tendons: TendonSet | None = None
    ) -> None:
        """Create the plant.

        Args:
            moment_arm_error: standard deviation of `factors`; lengths at zero angles stay right.
            tendons: other routing over the same joints.

        Raises:
            RobotError: if the robot has no valid tendon file.
            ConfigError: if the error is negative.
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
        """Return lengths and tensions under drive torques (n,) [N m]."""
        lengths, arms = self.measure(joints)
        return TendonStates(self.names, lengths.copy(), self.tensions(arms, torque[self.joints]))

    def torques(self, joints: np.ndarray, tensions: np.ndarray) -> np.ndarray:
        """Return -G^T t (D,) [N m] of tensions t (M,) [N]."""
        return -(tensions @ self.measure(joints)[1])

    def measure(self, joints: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return lengths (M,) [m] and moment arms (M, D) [m] at joint angles (n,) [rad], in reused arrays."""
        zero, factors = self.geometry.zero, self.factors
        self.geometry.raw_into(joints[self.joints], self._lengths, self._arms)
        self._lengths += (factors - 1.0) * (self._lengths - zero)
        self._arms *= factors[:, None]
        return self._lengths, self._arms

    def tensions(self, arms: np.ndarray, torque: np.ndarray) -> np.ndarray:
        """Return argmin |G^T t + torque|^2 within limits: tensions (M,) [N] for torques (D,) [N m], arms G (M, D) [m].

        Without a solution, the last tensions (initially the least) are returned.
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
