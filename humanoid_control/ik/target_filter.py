"""A target as it arrives, sampled and now and then wrong, made into a smooth reference."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class FilterSettings:
    """How targets are smoothed and what is not believed.

    Attributes:
        bandwidth: of the smoothing [Hz].
        max_speed: of the reference [m/s].
        max_jump: two successive samples farther apart than this are not believed at first [m].
        jump_hold: a jump is believed when the samples stay at the new place for this long [s].
        timeout: without a sample for this long the reference comes to rest [s].
        horizon: how far ahead of the last sample the reference moves on with its velocity [s].
    """

    bandwidth: float = 10.0
    max_speed: float = 3.0
    max_jump: float = 0.4
    jump_hold: float = 0.5
    timeout: float = 0.25
    horizon: float = 0.05


class Verdict(enum.Enum):
    """What became of a sample."""

    TAKEN = "taken"
    NOT_A_NUMBER = "not a number"
    JUMP = "jumped"


class TargetFilter:
    """A critically damped second-order reference that follows position samples, with velocity feed-forward.

    x'' = omega^2 (p - x) + 2 omega (p' - x'), solved exactly over each tick, so that any tick length is stable; a
    target at constant velocity is followed without lag, and one at rest is reached without overshoot.

    Attributes:
        x, v: (3,) reference position [m] and velocity [m/s].
    """

    def __init__(self, position: np.ndarray, settings: FilterSettings | None = None) -> None:
        """Start at rest at a position (3,)."""
        self.settings = settings or FilterSettings()
        self.omega = 2 * math.pi * self.settings.bandwidth
        self.x, self.v = np.array(position, dtype=float), np.zeros(3)
        self._sample, self._sample_velocity = self.x.copy(), np.zeros(3)
        self._time = float("nan")
        self._suspect: np.ndarray | None = None
        self._suspect_since = 0.0

    def offer(self, position: np.ndarray, time: float) -> Verdict:
        """Take a sample (3,) that was made at `time` [s]; samples not newer than the last are taken as a repeat."""
        s = self.settings
        if not np.isfinite(position).all():
            return Verdict.NOT_A_NUMBER
        first = math.isnan(self._time)
        if not first and np.linalg.norm(position - self._sample) > s.max_jump and not self._believe(position, time):
            return Verdict.JUMP
        self._suspect = None
        dt = time - self._time
        if first or dt > s.timeout or np.linalg.norm(position - self._sample) > s.max_jump:
            self._sample_velocity = np.zeros(3)
        elif dt > 1e-4:
            self._sample_velocity = self._limited((position - self._sample) / dt)
        self._sample, self._time = np.array(position, dtype=float), time
        return Verdict.TAKEN

    def _believe(self, position: np.ndarray, time: float) -> bool:
        s = self.settings
        if self._suspect is None or np.linalg.norm(position - self._suspect) > s.max_jump:
            self._suspect_since = time
        self._suspect = np.array(position, dtype=float)
        return time - self._suspect_since >= s.jump_hold

    def age(self, now: float) -> float:
        """Time since the last sample that was taken [s]; infinite when there was none."""
        return float("inf") if math.isnan(self._time) else now - self._time

    def step(self, now: float, dt: float) -> tuple[np.ndarray, np.ndarray]:
        """Advance by dt to `now`; reference position (3,) [m] and velocity (3,) [m/s]."""
        age = self.age(now)
        moving = age < self.settings.timeout
        goal_velocity = self._sample_velocity if moving else np.zeros(3)
        ahead = min(max(age, 0.0), self.settings.horizon) if moving else 0.0
        goal = self._sample + goal_velocity * ahead
        # In the frame that moves with the goal the error decays as (e0 + (e0' + omega e0) t) exp(-omega t).
        w, e, ed = self.omega, self.x - (goal - goal_velocity * dt), self.v - goal_velocity
        k = ed + w * e
        decay = math.exp(-w * dt)
        e_next = (e + k * dt) * decay
        ed_next = (k - w * (e + k * dt)) * decay
        v = self._limited(goal_velocity + ed_next)
        limited = not np.array_equal(v, goal_velocity + ed_next)
        self.x = self.x + v * dt if limited else goal + e_next
        self.v = v
        return self.x, self.v

    def _limited(self, v: np.ndarray) -> np.ndarray:
        speed = float(np.linalg.norm(v))
        return v if speed <= self.settings.max_speed else v * (self.settings.max_speed / speed)
