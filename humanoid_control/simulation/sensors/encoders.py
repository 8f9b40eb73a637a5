"""Absolute encoders at links, incremental encoders at motors.

At start-up absolute readings, as motor angles, initialise the counters without homing. Joints without one (Lola's head)
home at a limit switch (Schwienbacher 2014, section 3.5).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from humanoid_control.errors import ConfigError, RobotError, UnknownNameError
from humanoid_control.multibody.mechanisms import DriveMechanism
from humanoid_control.robots import Robot
from humanoid_control.robots.drives import DriveFile

TURN = 2 * np.pi


class AbsoluteEncoders:
    """Link-side encoders: angle + mounting offset + noise, rounded to counts.

    Attributes:
        counts: (n,) per turn; 0: no encoder.
        mounting: (n,) offsets [rad].
        noise: standard deviation [rad].
    """

    def __init__(
        self, counts: np.ndarray, mounting: np.ndarray | None = None, noise: float = 0.0, seed: int = 0
    ) -> None:
        self.counts = np.asarray(counts, dtype=float)
        self.mounting = np.zeros(len(self.counts)) if mounting is None else np.asarray(mounting, dtype=float)
        if self.mounting.shape != self.counts.shape or not np.isfinite(self.mounting).all():
            raise ConfigError(f"mounting offsets must be {len(self.counts)} finite angles")
        if not (np.isfinite(noise) and noise >= 0):
            raise ConfigError(f"encoder noise must not be negative, got {noise:g}")
        self.noise, self.random = float(noise), np.random.default_rng(seed)

    def read(self, joints: np.ndarray) -> np.ndarray:
        """Return unwrapped readings (n,) at joint angles (n,) [rad]; NaN without an encoder."""
        with np.errstate(divide="ignore", invalid="ignore"):
            step = TURN / self.counts
            angle = joints + self.mounting + self.noise * self.random.standard_normal(len(self.counts))
            return np.where(self.counts > 0, step * np.round(angle / step), np.nan)

    @property
    def deviation(self) -> np.ndarray:
        """Standard deviation (n,) of a reading, noise plus rounding [rad]."""
        with np.errstate(divide="ignore"):
            return np.sqrt(self.noise**2 + (TURN / self.counts) ** 2 / 12)


def absolute_encoders(
    robot: Robot, file: DriveFile, mounting: np.ndarray | None = None, noise: float = 0.0, seed: int = 0
) -> AbsoluteEncoders:
    """Create the encoders of a drives file; without file 17 bits everywhere."""
    counts = np.full(robot.n, 0.0 if file.drives else 2.0**17)
    for drive in file.drives:
        counts[[robot.index[j] for j in drive.joints]] = drive.joint_counts
    return AbsoluteEncoders(counts, mounting, noise, seed)


class MotorEncoders:
    """Incremental encoders of all drives, zero at power-on; joint vectors (n,) in rad.

    Args:
        mechanisms: mechanism of each drive, by name.
        joints: (n,) true angles at power-on.
    """

    def __init__(
        self, robot: Robot, file: DriveFile, mechanisms: Mapping[str, DriveMechanism], joints: np.ndarray
    ) -> None:
        self.robot = robot
        self.drives = [d for d in file.drives if d.motor_counts > 0]
        self.mechanisms = mechanisms
        self.index = {d.name: np.array([robot.index[j] for j in d.joints]) for d in self.drives}
        self.counts = {d.name: d.motor_counts for d in self.drives}
        self.at_power_on = self._motors(joints)
        self.reference = {d.name: np.full(len(d.joints), np.nan) for d in self.drives}

    def counters(self, joints: np.ndarray) -> dict[str, np.ndarray]:
        now = self._motors(joints)
        return {
            name: np.floor((phi - self.at_power_on[name]) * self.counts[name] / TURN).astype(np.int64)
            for name, phi in now.items()
        }

    def start_up(self, joints: np.ndarray, reading: np.ndarray) -> None:
        """Initialise the counters of drives with absolute encoders.

        Args:
            joints: (n,) true angles.
            reading: (n,) without known offsets; NaN without encoder.

        Raises:
            RobotError: if a drive's loop cannot close there.
        """
        counters = self.counters(joints)
        for name, index in self.index.items():
            if np.isfinite(reading[index]).all():
                self._refer(name, reading[index], counters[name])

    def home(self, name: str, joints: np.ndarray, switch: np.ndarray | None = None) -> None:
        """Initialise a drive's counters at its limit switch.

        Args:
            joints: (n,) true angles.
            switch: (k,) nominal angles; default: lower limits.

        Raises:
            UnknownNameError: if the drive has no motor encoder.
            RobotError: if its loop cannot close there.
        """
        if name not in self.index:
            raise UnknownNameError("drive", name, self.index, hint=f"(with a motor encoder, robot {self.robot.name})")
        angles = self.mechanisms[name].turn[0] if switch is None else np.atleast_1d(np.asarray(switch, dtype=float))
        self._refer(name, angles, self.counters(joints)[name])

    def joints(self, counters: Mapping[str, np.ndarray], start: np.ndarray | None = None) -> np.ndarray:
        """Return joint angles (n,) from counters, NaN before initialisation.

        Args:
            start: (n,) guess for Newton's method; default: mid-range.

        Raises:
            RobotError: if no angles in range fit.
        """
        out = np.full(self.robot.n, np.nan)
        for name, index in self.index.items():
            if np.isfinite(self.reference[name]).all():
                near = None if start is None or not np.isfinite(start[index]).all() else start[index]
                phi = self.reference[name] + (counters[name] + 0.5) * TURN / self.counts[name]
                out[index] = self.mechanisms[name].joint(phi, near)
        return self.robot.follow(out)

    def _motors(self, joints: np.ndarray) -> dict[str, np.ndarray]:
        return {name: self.mechanisms[name].motor(joints[index]) for name, index in self.index.items()}

    def _refer(self, name: str, angles: np.ndarray, counters: np.ndarray) -> None:
        phi = self.mechanisms[name].motor(angles)
        if not np.isfinite(phi).all():
            raise RobotError(f"drive '{name}': its loop cannot close at {np.degrees(angles).round(2).tolist()} deg")
        self.reference[name] = phi - (counters + 0.5) * TURN / self.counts[name]
