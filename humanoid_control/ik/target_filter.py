"""A target as it arrives, sampled and now and then wrong, made into a smooth reference."""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from dataclasses import dataclass

Triple = tuple[float, float, float]
STILL: Triple = (0.0, 0.0, 0.0)
FARTHEST = 1e4  # [m] no robot's target lies farther from the origin


@dataclass(frozen=True)
class TargetFilterSettings:
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


class SampleVerdict(enum.Enum):
    """What became of a sample."""

    ACCEPTED = "accepted"
    NOT_A_NUMBER = "not a number"  # or no possible position
    JUMP = "jumped"


class TargetFilter:
    """A critically damped second-order reference that follows position samples, with velocity feed-forward.

    x'' = omega^2 (p - x) + 2 omega (p' - x'), solved exactly over each tick, so that any tick length is stable; a
    target at constant velocity is followed without lag, and one at rest is reached without overshoot. Three numbers
    at a time are quicker as plain floats than as arrays.

    Attributes:
        x, v: reference position [m] and velocity [m/s], three floats each.
    """

    def __init__(self, position: Sequence[float], settings: TargetFilterSettings | None = None) -> None:
        """Start at rest at a position."""
        self.settings = settings or TargetFilterSettings()
        self.x, self.v = _floats(position), STILL
        self._sample, self._sample_velocity = self.x, STILL
        self._time = math.nan
        self._suspect: Triple | None = None
        self._suspect_since = 0.0

    def update(self, position: Sequence[float], time: float) -> SampleVerdict:
        """Take a sample that was made at `time` [s]; one not newer than the last is taken as a repeat."""
        s, p = self.settings, _floats(position)
        if not all(abs(c) < FARTHEST for c in p):  # also where one is NaN
            return SampleVerdict.NOT_A_NUMBER
        first, dt = math.isnan(self._time), time - self._time
        jumped = not first and math.dist(p, self._sample) > s.max_jump
        if jumped and not self._believe(p, time):
            return SampleVerdict.JUMP
        self._suspect = None
        if first or jumped or dt > s.timeout:
            self._sample_velocity = STILL
        elif dt > 1e-4:
            a, b, c = ((new - old) / dt for new, old in zip(p, self._sample, strict=True))
            self._sample_velocity = _limited((a, b, c), s.max_speed)
        self._sample, self._time = p, time
        return SampleVerdict.ACCEPTED

    def _believe(self, p: Triple, time: float) -> bool:
        s = self.settings
        if self._suspect is None or math.dist(p, self._suspect) > s.max_jump:
            self._suspect_since = time
        self._suspect = p
        return time - self._suspect_since >= s.jump_hold

    def age(self, now: float) -> float:
        """Time since the last sample that was taken [s]; infinite when there was none."""
        return math.inf if math.isnan(self._time) else now - self._time

    def step(self, now: float, dt: float) -> tuple[Triple, Triple]:
        """Advance by dt to `now`; reference position [m] and velocity [m/s]."""
        s, age = self.settings, self.age(now)
        moving = age < s.timeout
        ahead = min(max(age, 0.0), s.horizon) if moving else 0.0
        omega = 2 * math.pi * s.bandwidth
        decay = math.exp(-omega * dt)
        position, velocity = [], []
        for p, u, x, v in zip(self._sample, self._sample_velocity if moving else STILL, self.x, self.v, strict=True):
            # In the frame that moves with the goal the error decays as (e + (e' + omega e) t) exp(-omega t).
            goal = p + u * ahead
            e = x - (goal - u * dt)
            k = v - u + omega * e
            position.append(goal + (e + k * dt) * decay)
            velocity.append(u + (k - omega * (e + k * dt)) * decay)
        free = (velocity[0], velocity[1], velocity[2])
        self.v = _limited(free, s.max_speed)
        a, b, c = (y - x if self.v is free else v * dt for y, x, v in zip(position, self.x, self.v, strict=True))
        moved = _limited((a, b, c), s.max_speed * dt)  # in a long tick it may be fast in between and slow at the end
        self.x = (self.x[0] + moved[0], self.x[1] + moved[1], self.x[2] + moved[2])
        return self.x, self.v


def _floats(p: Sequence[float]) -> Triple:
    return float(p[0]), float(p[1]), float(p[2])


def _limited(v: Triple, most: float) -> Triple:
    """The same direction, at most that fast; the very same tuple where it is slow enough."""
    speed = math.hypot(*v)
    return v if speed <= most else (v[0] * most / speed, v[1] * most / speed, v[2] * most / speed)
