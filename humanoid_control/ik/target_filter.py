"""Smoothing of targets: samples of positions, now and then wrong, become smooth references with velocities."""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from humanoid_control.errors import check_time_step
from humanoid_control.jit import kernel
from humanoid_control.numerics.array_types import F1, F2
from humanoid_control.numerics.packed import Packed, Table, unpack

FARTHEST = 1e4  # [m] no robot's target lies farther from the origin
SAME_INSTANT = 1e-4  # [s] two samples this close say nothing about velocity
NEARLY = 1 - 1e-12  # of a limit squared: from there on a length is measured exactly
ACCEPTED, NOT_A_NUMBER, JUMP, UNKNOWN = range(4)  # of SampleVerdict, for kernels, which know no enum


@dataclass(frozen=True)
class TargetFilterSettings:
    """Settings of the smoothing of targets and of the rejection of samples.

    Attributes:
        bandwidth: of the smoothing [Hz].
        max_speed: of the reference [m/s].
        max_jump: two successive samples farther apart than this are rejected at first [m].
        jump_hold: a jump is accepted when the samples stay at the new place for this long [s].
        timeout: without a sample for this long the reference comes to rest [s].
        horizon: how far ahead of the last sample the reference moves on with its velocity [s].
    """

    bandwidth: float = 10.0
    max_speed: float = 3.0
    max_jump: float = 0.4
    jump_hold: float = 0.5
    timeout: float = 0.25
    horizon: float = 0.05


class SampleVerdict(enum.IntEnum):
    """Verdict on a sample."""

    ACCEPTED = ACCEPTED
    NOT_A_NUMBER = NOT_A_NUMBER  # or no possible position
    JUMP = JUMP
    UNKNOWN = UNKNOWN  # a target that the robot does not have


class Samples(NamedTuple):
    """Newest samples of n targets.

    Attributes:
        position: (n, 3) positions [m].
        velocity: (n, 3) velocities [m/s].
        time: (n,) [s], NaN: none yet.
        jump: (n, 3) a place that was rejected, NaN: none.
        jump_since: (n,) since when samples are there [s].
    """

    position: F2
    velocity: F2
    time: F1
    jump: F2
    jump_since: F1


class Plausibility(NamedTuple):
    """Thresholds that a sample is judged by; of TargetFilterSettings."""

    max_jump: float
    jump_hold: float
    timeout: float
    max_speed: float


class Smoothing(NamedTuple):
    """One tick of the references: its end and length [s], omega [rad/s] and exp(-omega dt), and of the settings."""

    now: float
    dt: float
    omega: float
    decay: float
    timeout: float
    horizon: float


class TargetFilter:
    """Critically damped second-order references that follow position samples, with velocity feed-forward.

    x'' = omega^2 (p - x) + 2 omega (p' - x'), solved exactly over each tick, so that any tick length is stable; a
    target at constant velocity is followed without lag, and one at rest is reached without overshoot.

    Attributes:
        x: (n, 3) reference positions of n targets [m].
        v: (n, 3) reference velocities of n targets [m/s].
    """

    def __init__(self, settings: TargetFilterSettings | None = None) -> None:
        """Start without targets."""
        self.settings = settings or TargetFilterSettings()
        self.x, self.v = np.zeros((0, 3)), np.zeros((0, 3))
        none = np.zeros((0, 3))
        self._samples = Packed(Samples(none, none.copy(), np.zeros(0), none.copy(), np.zeros(0)))

    def add(self, position: np.ndarray) -> int:
        """Add a target at rest at a position (3,): its row."""
        p, zero, none = np.array(position, dtype=float).reshape(1, 3), np.zeros((1, 3)), np.full((1, 3), np.nan)
        self.x, self.v = np.concatenate([self.x, p]), np.concatenate([self.v, zero])
        more = (p, zero, none[0, :1], none, zero[0, :1])
        grown = (np.concatenate(pair) for pair in zip(self._samples.record, more, strict=True))
        self._samples = Packed(Samples(*grown))
        return len(self.x) - 1

    def update(self, rows: np.ndarray, positions: np.ndarray, time: float) -> np.ndarray:
        """Take samples that were made at `time` [s]; those not newer than the last are taken as repeats.

        Args:
            rows: (k,) targets.
            positions: (k, 3) [m].

        Returns:
            (k,) SampleVerdict of each.
        """
        s, verdicts, fast = self.settings, np.empty(len(rows), dtype=np.int64), np.zeros(len(rows), dtype=bool)
        law = Plausibility(s.max_jump, s.jump_hold, s.timeout, s.max_speed)
        if accept_samples(self._samples.table, rows, positions, float(time), law, verdicts, fast):
            limit_lengths(self._samples.record.velocity, rows[fast], s.max_speed)
        return verdicts

    def shift(self, step: float) -> None:
        """Go along with the clock of all times, which was set ahead by a step [s]."""
        samples = self._samples.record
        samples.time[:] += step
        samples.jump_since[:] += step

    def ages(self, now: float) -> np.ndarray:
        """Time (n,) since the last sample that was accepted [s]; infinite where there was none."""
        time = self._samples.record.time
        return np.where(np.isnan(time), np.inf, now - time)

    def step(self, now: float, dt: float) -> tuple[np.ndarray, np.ndarray]:
        """Advance by dt to `now`: reference positions (n, 3) [m] and velocities (n, 3) [m/s].

        Raises:
            ConfigError: dt is not positive and finite; nothing has moved.
        """
        check_time_step(dt, "target filter")
        s, omega = self.settings, 2 * math.pi * self.settings.bandwidth
        tick = Smoothing(float(now), dt, omega, math.exp(-omega * dt), s.timeout, s.horizon)
        v, moved = self.v.copy(), np.empty_like(self.x)
        if advance_references(self._samples.table, self.x, v, moved, tick, s.max_speed):
            rows = limit_lengths(v, range(len(v)), s.max_speed)
            moved[rows] = v[rows] * dt
            limit_lengths(moved, range(len(v)), s.max_speed * dt)  # in a long tick it may be fast in between
        self.x, self.v = self.x + moved, v
        return self.x, self.v


def limit_lengths(vectors: np.ndarray, rows: Iterable[int], longest: float) -> list[int]:
    """Shorten some rows of vectors (n, 3) in place to a length: those that were longer."""
    shortened = []
    for k in rows:
        length = math.hypot(*vectors[k])
        if length > longest:
            vectors[k] = vectors[k] * longest / length
            shortened.append(k)
    return shortened


@kernel
def accept_samples(
    table: Table[Samples],
    rows: np.ndarray,
    positions: np.ndarray,
    time: float,
    law: Plausibility,
    verdicts: np.ndarray,
    fast: np.ndarray,
) -> bool:
    """Judge samples, and keep those that are accepted; see `TargetFilter.update`.

    Args:
        table: of the packed Samples.
        rows: (k,) rows of the targets.
        positions: (k, 3) positions [m].
        time: [s].
        verdicts: (k,) filled.
        fast: (k,) set where a new velocity may exceed the limit.

    Returns:
        whether one may.
    """
    samples, any_fast = unpack(table, Samples), False
    for k in range(rows.shape[0]):
        row, p = rows[k], positions[k]
        if not (abs(p[0]) < FARTHEST and abs(p[1]) < FARTHEST and abs(p[2]) < FARTHEST):  # also where one is NaN
            verdicts[k] = NOT_A_NUMBER
            continue
        at, dt = samples.position[row], time - samples.time[row]
        first = np.isnan(dt)
        jumped = not first and _distance(p, at) > law.max_jump
        if jumped:
            if not _distance(p, samples.jump[row]) <= law.max_jump:  # also where there was none
                samples.jump_since[row] = time
            samples.jump[row] = p
            if time - samples.jump_since[row] < law.jump_hold:
                verdicts[k] = JUMP
                continue
        samples.jump[row] = np.nan
        if first or jumped or dt > law.timeout:
            samples.velocity[row] = 0.0
        elif dt > SAME_INSTANT:
            square = 0.0
            for i in range(3):
                u = (p[i] - at[i]) / dt
                samples.velocity[row, i] = u
                square += u * u
            fast[k] = square > NEARLY * law.max_speed * law.max_speed
            any_fast = any_fast or fast[k]
        samples.position[row], samples.time[row] = p, time
        verdicts[k] = ACCEPTED
    return any_fast


@kernel
def advance_references(
    table: Table[Samples], x: np.ndarray, v: np.ndarray, moved: np.ndarray, tick: Smoothing, max_speed: float
) -> bool:
    """Velocities v (n, 3) at the end of a tick, and how far the references x (n, 3) move in it, (n, 3).

    Args:
        table: of the packed Samples.

    Returns:
        whether one of them may be faster than allowed.
    """
    samples, any_fast, dt, most = unpack(table, Samples), False, tick.dt, NEARLY * max_speed * max_speed
    for k in range(x.shape[0]):
        age = tick.now - samples.time[k]
        alive = age < tick.timeout  # false also where there was no sample
        ahead = min(max(age, 0.0), tick.horizon) if alive else 0.0
        speed = path = 0.0
        for i in range(3):
            # In the frame that moves with the goal the error decays as (e + (e' + omega e) t) exp(-omega t).
            u = samples.velocity[k, i] if alive else 0.0
            goal = samples.position[k, i] + u * ahead
            e = x[k, i] - (goal - u * dt)
            c = v[k, i] - u + tick.omega * e
            v[k, i] = u + (c - tick.omega * (e + c * dt)) * tick.decay
            moved[k, i] = goal + (e + c * dt) * tick.decay - x[k, i]
            speed += v[k, i] * v[k, i]
            path += moved[k, i] * moved[k, i]
        any_fast = any_fast or speed > most or path > most * dt * dt
    return any_fast


@kernel
def _distance(a: np.ndarray, b: np.ndarray) -> float:
    x, y, z = a[0] - b[0], a[1] - b[1], a[2] - b[2]
    return np.sqrt(x * x + y * y + z * z)
