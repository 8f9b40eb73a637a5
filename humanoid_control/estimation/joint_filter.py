"""Filter of joint positions and their velocities, for encoders without velocity."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from humanoid_control.errors import ConfigError
from humanoid_control.estimation.plausibility import TURN, without_ends
from humanoid_control.kinematics.joint_state import JointState

CLOCK_BACK = 1.0  # [s] a sample older than the last by more than this comes from a reset clock
NEAR_A_TURN = 0.8  # [rad] distance from whole turns at which a deviation counts as an encoder wrap


class JointFilter:
    """Critically damped tracking filter of joint positions and velocities.

    A sample with innovation e corrects position by (1 - r^2) e and velocity by (1 - r)^2 e / dt, r = exp(-omega dt):
    the fading-memory (alpha-beta) filter. Constant velocity is tracked without lag. Predictions stop at joint limits.
    Encoder wraps of joints `without_ends` are ignored.

    Attributes:
        names: (n,).
        position: (n,) [rad]; NaN before the first measurement.
        velocity: (n,) [rad/s].
    """

    def __init__(
        self,
        names: Sequence[str],
        bandwidth: float = 30.0,
        limits: tuple[np.ndarray, np.ndarray] = (np.array(-np.inf), np.array(np.inf)),
    ) -> None:
        """Create the filter.

        Args:
            bandwidth: omega / 2 pi [Hz].
            limits: lower and upper (n,) limits [rad]; default: none.

        Raises:
            ConfigError: if the bandwidth is not positive.
        """
        if not bandwidth > 0:
            raise ConfigError(f"filter bandwidth must be positive, got {bandwidth:g} Hz")
        self.names, n = tuple(names), len(names)
        self.bandwidth = float(bandwidth)
        self._lower, self._upper = limits
        self._endless = without_ends(*limits)
        self.position = np.full(n, np.nan)
        self.velocity = np.zeros(n)
        self._time = np.full(n, np.nan)
        self._no_effort = np.full(n, np.nan)

    def reset(self) -> None:
        self.position[:], self.velocity[:], self._time[:] = np.nan, 0.0, np.nan

    def shift(self, step: float) -> None:
        """Shift all times by a clock step [s]."""
        self._time += step

    def restart(self, joint: int, time: float, position: float, velocity: float) -> None:
        """Restart a joint at a position [rad], velocity [rad/s] and time [s], as after a jump."""
        self.position[joint], self.velocity[joint], self._time[joint] = position, velocity, time

    def update(self, time: float, measured: np.ndarray) -> None:
        """Process a sample of positions (n,) [rad], NaN if not measured, at a time [s].

        Samples not newer than the joint's last one, and non-finite times, are ignored. A clock reset by more than a
        second restarts the joint.
        """
        if not np.isfinite(time):
            return
        seen = np.isfinite(measured)
        fresh = seen & (np.isnan(self.position) | (time < self._time - CLOCK_BACK))
        self.position[fresh], self.velocity[fresh], self._time[fresh] = measured[fresh], 0.0, time
        dt = np.where(seen & ~fresh, time - self._time, 0.0)
        go = dt > 1e-9
        if not go.any():
            return
        step = np.where(go, dt, 1.0)
        r = np.exp(-2 * np.pi * self.bandwidth * step)
        predicted = self.position + self.velocity * step
        e = np.where(go, measured - predicted, 0.0)
        turns = TURN * np.round(e / TURN)
        turns = np.where(self._endless & (np.abs(e - turns) <= NEAR_A_TURN), turns, 0.0)
        e, measured = e - turns, measured - turns
        free = np.where(go, predicted + (1 - r**2) * e, self.position)
        self.velocity = np.where(go, self.velocity + (1 - r) ** 2 / step * e, self.velocity)
        self.position = np.where(go, self._within(free, measured), self.position)
        self._time = np.where(go, time, self._time)

    def at(self, time: float, horizon: float = 0.02) -> JointState:
        """Return the state predicted for a time [s], at most `horizon` [s] ahead."""
        ahead = np.clip(time - self._time, 0.0, horizon)
        position = self._within(self.position + self.velocity * ahead, self.position)
        return JointState(self.names, position, self.velocity.copy(), self._no_effort, time)

    def _within(self, position: np.ndarray, known: np.ndarray) -> np.ndarray:
        return np.clip(position, np.fmin(self._lower, known), np.fmax(self._upper, known))

    def age(self, time: float) -> np.ndarray:
        """Return the time (n,) since each joint's last measurement [s], or NaN."""
        return time - self._time
