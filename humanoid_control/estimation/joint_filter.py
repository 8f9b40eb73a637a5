"""Joint positions filtered and differentiated, for encoders that give no velocity."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from humanoid_control.errors import ConfigError
from humanoid_control.estimation.plausibility import TURN, without_ends
from humanoid_control.kinematics.joint_state import JointState

CLOCK_BACK = 1.0  # [s] a sample older than the last one by more comes from a clock that was set back, or restarted
NEAR_A_TURN = 0.8  # [rad] from whole turns: so far a joint may come off its prediction, and its encoder began again


class JointFilter:
    """A critically damped tracking filter for each joint: position and velocity from position samples.

    Between samples the state moves on with its velocity; at a sample the innovation e corrects position by
    (1 - r^2) e and velocity by (1 - r)^2 e / dt with r = exp(-omega dt), the fading-memory (alpha-beta) filter. A
    joint that moves at constant velocity is followed without lag.

    A joint that runs into a stop is not followed through it: an estimate is outside the range only as far as the joint
    itself was measured there.

    An encoder that counts one turn and begins again does not move the joint: whole turns are taken out of the
    innovation of a joint `without_ends`; its estimate continues to turn.

    Attributes:
        names: of the n joints.
        position: (n,) estimate [rad]; NaN until a joint has been measured once.
        velocity: (n,) estimate [rad/s]; 0 until then.
    """

    def __init__(
        self,
        names: Sequence[str],
        bandwidth: float = 30.0,
        limits: tuple[np.ndarray, np.ndarray] = (np.array(-np.inf), np.array(np.inf)),
    ) -> None:
        """Make the filter.

        Args:
            names: of the joints, in the order of all samples.
            bandwidth: omega / 2 pi [Hz]; high follows faster, low smooths more.
            limits: lower and upper (n,) ends of their ranges [rad]; default: none.

        Raises:
            ConfigError: bandwidth not positive.
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
        """Forget everything."""
        self.position[:], self.velocity[:], self._time[:] = np.nan, 0.0, np.nan

    def shift(self, step: float) -> None:
        """Go along with the clock of all times, which was set ahead by a step [s]."""
        self._time += step

    def restart(self, joint: int, time: float, position: float, velocity: float) -> None:
        """Begin one joint again at a position [rad] with a velocity [rad/s], as after a jump; time: [s]."""
        self.position[joint], self.velocity[joint], self._time[joint] = position, velocity, time

    def update(self, time: float, measured: np.ndarray) -> None:
        """Take a sample.

        Args:
            time: of the sample [s]; a sample not newer than the last one of its joint is passed over. After a clock
                was set back by more than a second the joint begins again. A time that is no number is passed over.
            measured: (n,) positions [rad]; NaN where a joint was not measured.
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
        """The state at a time [s]: predicted, but never farther ahead than `horizon` [s]."""
        ahead = np.clip(time - self._time, 0.0, horizon)
        position = self._within(self.position + self.velocity * ahead, self.position)
        return JointState(self.names, position, self.velocity.copy(), self._no_effort, time)

    def _within(self, position: np.ndarray, known: np.ndarray) -> np.ndarray:
        """Positions (n,), no farther outside the range than known ones (n,)."""
        return np.clip(position, np.fmin(self._lower, known), np.fmax(self._upper, known))

    def age(self, time: float) -> np.ndarray:
        """Time (n,) since each joint was last measured [s]; NaN for never."""
        return time - self._time
