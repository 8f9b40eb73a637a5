"""Smoothing of targets: position samples with errors become smooth references with velocities."""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from humanoid_control.compiled.array_types import F1, F2
from humanoid_control.compiled.jit import kernel
from humanoid_control.compiled.packed import Packed, Table, unpack
from humanoid_control.errors import check_time_step

FARTHEST = 1e4  # [m] largest coordinate of a plausible target
SAME_INSTANT = 1e-4  # [s] samples closer than this give no usable velocity
NEARLY = 1 - 1e-12  # share of a squared limit above which the length is computed exactly, free of overflow
ACCEPTED, NOT_A_NUMBER, JUMP, UNKNOWN = range(4)  # SampleVerdict for kernels, which do not support enums


@dataclass(frozen=True)
class TargetFilterSettings:
    """Settings of the smoothing and of the rejection of samples.

    Attributes:
        bandwidth: cut-off frequency of the smoothing [Hz].
        max_speed: speed limit of the reference [m/s].
        max_jump: distance of successive samples above which the new one is rejected at first [m].
        jump_hold: time of samples at the new place before a jump is accepted [s].
        timeout: time without samples after which the reference comes to rest [s].
        horizon: time of extrapolation beyond the last sample [s].
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
    NOT_A_NUMBER = NOT_A_NUMBER  # or an implausible position
    JUMP = JUMP
    UNKNOWN = UNKNOWN  # the robot has no such target


class Samples(NamedTuple):
    """Newest samples of n targets.

    Attributes:
        time: time stamps (n,) [s]; NaN: none.
        jump: rejected positions (n, 3) [m]; NaN: none.
        jump_since: time of the first sample near `jump` (n,) [s].
    """

    position: F2
    velocity: F2
    time: F1
    jump: F2
    jump_since: F1


class Plausibility(NamedTuple):
    """Rejection thresholds of TargetFilterSettings."""

    max_jump: float
    jump_hold: float
    timeout: float
    max_speed: float


class Smoothing(NamedTuple):
    """Coefficients of one tick of the references.

    Attributes:
        omega: natural frequency [rad/s].
    """

    now: float
    dt: float
    omega: float
    decay: float
    timeout: float
    horizon: float


class TargetFilter:
    """Critically damped second-order references that follow position samples, with velocity feed-forward.

    x'' = omega^2 (p - x) + 2 omega (p' - x'), solved exactly over each tick: stable for any tick length, without lag at
    constant velocity, without overshoot at rest.
    """

    def __init__(self, settings: TargetFilterSettings | None = None) -> None:
        """Start without targets."""
        self.settings = settings or TargetFilterSettings()
        self.x, self.v = np.zeros((0, 3)), np.zeros((0, 3))
        none = np.zeros((0, 3))
        self._samples = Packed(Samples(none, none.copy(), np.zeros(0), none.copy(), np.zeros(0)))

    def add(self, position: np.ndarray) -> int:
        """Add a target at rest at a position (3,) [m] and return its row."""
        p, zero, none = np.array(position, dtype=float).reshape(1, 3), np.zeros((1, 3)), np.full((1, 3), np.nan)
        self.x, self.v = np.concatenate([self.x, p]), np.concatenate([self.v, zero])
        more = (p, zero, none[0, :1], none, zero[0, :1])
        grown = (np.concatenate(pair) for pair in zip(self._samples.record, more, strict=True))
        self._samples = Packed(Samples(*grown))
        return len(self.x) - 1

    def update(self, rows: np.ndarray, positions: np.ndarray, time: float) -> np.ndarray:
        """Process samples (k, 3) [m] with one time stamp; samples not newer than the last count as repeats."""
        s, verdicts, fast = self.settings, np.empty(len(rows), dtype=np.int64), np.zeros(len(rows), dtype=bool)
        law = Plausibility(s.max_jump, s.jump_hold, s.timeout, s.max_speed)
        if accept_samples(self._samples.table, rows, positions, float(time), law, verdicts, fast):
            limit_lengths(self._samples.record.velocity, rows[fast], s.max_speed)
        return verdicts

    def shift(self, step: float) -> None:
        """Shift all stored times by `step` [s], after the clock was set."""
        samples = self._samples.record
        samples.time[:] += step
        samples.jump_since[:] += step

    def ages(self, now: float) -> np.ndarray:
        """Time since the last accepted sample (n,) [s]; infinite where there was none."""
        time = self._samples.record.time
        return np.where(np.isnan(time), np.inf, now - time)

    def step(self, now: float, dt: float) -> tuple[np.ndarray, np.ndarray]:
        """Advance by dt to `now` [s] and return reference positions (n, 3) [m] and velocities (n, 3) [m/s].

        Raises:
            ConfigError: if dt is not positive and finite.
        """
        check_time_step(dt, "target filter")
        s, omega = self.settings, 2 * math.pi * self.settings.bandwidth
        tick = Smoothing(float(now), dt, omega, math.exp(-omega * dt), s.timeout, s.horizon)
        v, moved = self.v.copy(), np.empty_like(self.x)
        if advance_references(self._samples.table, self.x, v, moved, tick, s.max_speed):
            rows = limit_lengths(v, range(len(v)), s.max_speed)
            moved[rows] = v[rows] * dt
            # In a long tick the mean speed may exceed the limit although the end speed does not.
            limit_lengths(moved, range(len(v)), s.max_speed * dt)
        self.x, self.v = self.x + moved, v
        return self.x, self.v


def limit_lengths(vectors: np.ndarray, rows: Iterable[int], longest: float) -> list[int]:
    """Shorten rows of vectors (n, 3) in place to `longest`; return the shortened rows."""
    shortened = []
    for k in rows:
        length = math.hypot(*vectors[k])
        if length > longest:
            vectors[k] = vectors[k] * longest / length
            shortened.append(k)
    return shortened


@kernel(allocates=True)
def accept_samples(
    table: Table[Samples],
    rows: np.ndarray,
    positions: np.ndarray,
    time: float,
    law: Plausibility,
    verdicts: np.ndarray,
    fast: np.ndarray,
) -> bool:
    """Judge and store samples; arguments as in `TargetFilter.update`.

    Args:
        verdicts: SampleVerdict of each sample (k,), filled.
        fast: True where a velocity may exceed the limit (k,), filled.
    """
    samples, any_fast = unpack(table, Samples), False
    for k in range(rows.shape[0]):
        row, p = rows[k], positions[k]
        if not (abs(p[0]) < FARTHEST and abs(p[1]) < FARTHEST and abs(p[2]) < FARTHEST):  # also rejects NaN
            verdicts[k] = NOT_A_NUMBER
            continue
        at, dt = samples.position[row], time - samples.time[row]
        first = np.isnan(dt)
        jumped = not first and _distance(p, at) > law.max_jump
        # A jump is rejected until samples have stayed near the new place for `jump_hold`: a single outlier never gets
        # through.
        if jumped:
            if not _distance(p, samples.jump[row]) <= law.max_jump:  # also true where no jump was stored (NaN)
                samples.jump_since[row] = time
            samples.jump[row] = p
            if time - samples.jump_since[row] < law.jump_hold:
                verdicts[k] = JUMP
                continue
        # The sample is consistent with the last one, or the jump is accepted.
        samples.jump[row] = np.nan
        # After a jump or a timeout the difference of positions is not a velocity of the target.
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
    """Advance the references by one tick: their velocities at its end, and their displacements.

    Args:
        moved: displacements (n, 3) [m], filled.
    """
    samples, any_fast, dt, most = unpack(table, Samples), False, tick.dt, NEARLY * max_speed * max_speed
    for k in range(x.shape[0]):
        age = tick.now - samples.time[k]
        alive = age < tick.timeout  # false also without a sample (NaN)
        # Extrapolate the goal with its velocity, at most by the horizon.
        ahead = min(max(age, 0.0), tick.horizon) if alive else 0.0
        speed = path = 0.0
        for i in range(3):
            # Relative to the moving goal the error decays as (e + (e' + omega e) t) exp(-omega t).
            u = samples.velocity[k, i] if alive else 0.0
            goal = samples.position[k, i] + u * ahead
            # Error at the start of the tick, relative to the goal at that time.
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
