"""Plausibility of joint positions: ranges and speeds, against numbers that are finite and still nonsense."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

RANGE_MARGIN = 0.5  # [rad] beyond its limits that a joint may be: stops give way, zeros are not exact
FASTEST = 3.0  # times its speed limit that a joint may move
UNEVEN = 0.01  # [s] by which samples may come closer together than they were taken
STEP = 0.05  # [rad] that a joint may seem to move in no time: noise
BELIEVED = 3  # samples in a row that agree: there the joint really is
TURN = 2 * math.pi  # [rad] beyond its limits no joint is, only its encoder may have counted one turn too many
TURNS_WITHOUT_ENDS = 10  # in a range wider than that no stop holds a joint, and descriptions write it for none
NEAR = 0.8  # [rad] from whole turns, within which a change from one sample to the next is taken for whole turns
ENDLESS = 1e8  # [rad] beyond which no joint has turned: at 30 rad/s that takes five weeks
TOLD = 2.0  # [s] for which a refusal is reported: diagnostics come once a second
NAMED = 3  # joints in a report


class JointPlausibility:
    """Judge of samples of joint positions, each against the joint's range and the last good sample.

    A sample beyond the range, or farther from the last good one than the joint moves, is refused. Samples in a row that
    are refused but agree with each other are believed: the robot was put there, or a limit is not what it is said to
    be. What lies a whole turn outside the range is never believed.

    An encoder that counts one turn and begins again shows a jump by a whole turn. Such a jump is no motion: it is taken
    out of the samples of a joint `without_ends`, and refused for other joints as long as it lasts.

    Attributes:
        restarts: joints that are believed since the last sample after a jump, with their velocities by the samples
            that agreed [rad/s], at most their speed limits: there, a filter has to begin again.
    """

    def __init__(
        self,
        names: Sequence[str],
        lower: np.ndarray,
        upper: np.ndarray,
        velocity: np.ndarray,
        encoders: bool = True,
    ) -> None:
        """Create the joint plausibility, for n joints.

        Args:
            names: of the joints.
            lower, upper: (n,) limits [rad].
            velocity: (n,) speed limits [rad/s].
            encoders: positions are measured, and jumps by whole turns are not motion; False: they are commanded.
        """
        self._encoders = encoders
        self._names, self._limits = tuple(names), (lower, upper)
        self._low, self._high = np.maximum(lower - RANGE_MARGIN, -ENDLESS), np.minimum(upper + RANGE_MARGIN, ENDLESS)
        self._velocity, self._endless = np.abs(velocity), without_ends(lower, upper) & encoders
        self._fastest = FASTEST * self._velocity
        self.forget()

    def forget(self) -> None:
        """Nothing was measured yet."""
        n = len(self._names)
        self._good, self._time = np.full(n, np.nan), np.full(n, np.nan)
        self._refused, self._refused_at = np.full(n, np.nan), np.full(n, np.nan)
        self._first, self._first_at = np.full(n, np.nan), np.full(n, np.nan)  # of the odd samples in a row
        self._count, self._wrapped = np.zeros(n, dtype=int), np.zeros(n, dtype=bool)
        self._turns = np.zeros(n)  # [rad] that are added to samples of joints without ends
        self.restarts: dict[int, float] = {}
        self._texts: dict[int, tuple[str, float]] = {}

    def shift(self, step: float) -> None:
        """Go along with the clock of all times, which was set ahead by a step [s]."""
        self._time += step
        self._refused_at += step
        self._first_at += step
        self._texts = {joint: (text, time + step) for joint, (text, time) in self._texts.items()}

    def check(self, joints: np.ndarray, q: np.ndarray, time: float) -> np.ndarray:
        """Judge one sample of some joints.

        Args:
            joints: (k,) indices.
            q: (k,) positions [rad], NaN: not measured; changed in place where a joint without ends has wrapped.
            time: [s].

        Returns:
            (k,) True where the position is to be used.
        """
        self.restarts.clear()
        number = np.isfinite(q)
        if self._endless.any():
            self._unwrap(joints, q, time)
        moved = np.abs(np.where(number, q, np.nan) - self._good[joints])
        far = moved > self._reach(self._fastest[joints], time - self._time[joints])  # False where none was good yet
        use = number & (q >= self._low[joints]) & (q <= self._high[joints]) & ~far
        if self._wrapped.any():
            use &= ~self._still_wrapped(joints, q, time)
        self._count[joints[use]], self._wrapped[joints[use]] = 0, False
        for k in np.flatnonzero(number & ~use):
            use[k] = self._agrees(int(joints[k]), float(q[k]), float(moved[k]), time)
        own = joints[use]
        self._good[own], self._time[own] = q[use], time
        return use

    def problem(self, time: float) -> str:
        """Words for what was refused, or believed, lately; empty where nothing was; time: [s]."""
        if self._texts:
            self._texts = {joint: told for joint, told in self._texts.items() if time - told[1] < TOLD}
        texts = [text for text, _ in self._texts.values()]
        more = f" and {len(texts) - NAMED} more joints" if len(texts) > NAMED else ""
        return "; ".join(texts[:NAMED]) + more

    def _unwrap(self, joints: np.ndarray, q: np.ndarray, time: float) -> None:
        """Take whole turns out of the samples (k,) of joints without ends, in place."""
        q += self._turns[joints]
        jump = TURN * np.round((q - self._good[joints]) / TURN)
        rest = np.abs(q - jump - self._good[joints])
        reach = self._reach(self._fastest[joints], time - self._time[joints])
        possible = (np.abs(q) <= ENDLESS) & (rest <= reach)
        wrapped = self._endless[joints] & (jump != 0.0) & possible & (np.abs(jump) > reach)
        if wrapped.any():
            q[wrapped] -= jump[wrapped]
            self._turns[joints[wrapped]] -= jump[wrapped]

    def _still_wrapped(self, joints: np.ndarray, q: np.ndarray, time: float) -> np.ndarray:
        """Test (k,) which samples continue from one that was a whole turn away."""
        reach = self._reach(self._fastest[joints], time - self._refused_at[joints])
        return self._wrapped[joints] & (np.abs(q - self._refused[joints]) <= reach)

    def _agrees(self, joint: int, q: float, moved: float, time: float) -> bool:
        """Take note of an odd position; True where it agrees with the odd ones before, so that it is believed."""
        agrees = abs(q - float(self._refused[joint])) <= self._reach(
            self._fastest[joint], time - self._refused_at[joint]
        )
        self._count[joint] = self._count[joint] + 1 if agrees and self._count[joint] else 1
        if self._count[joint] == 1:
            self._first[joint], self._first_at[joint] = q, time
            self._wrapped[joint] = self._is_turn(joint, q, time)
        self._refused[joint], self._refused_at[joint] = q, time
        lower, upper = (float(limit[joint]) for limit in self._limits)
        possible = max(lower - TURN, -ENDLESS) <= q <= min(upper + TURN, ENDLESS)
        believed = bool(possible and self._count[joint] >= BELIEVED and not self._wrapped[joint])
        if believed and self._count[joint] == BELIEVED:
            elapsed, limit = time - self._first_at[joint], float(self._velocity[joint])
            velocity = (q - float(self._first[joint])) / elapsed if elapsed > 0.0 else 0.0
            self.restarts[joint] = min(max(velocity, -limit), limit)
        if self._wrapped[joint]:
            why = "a whole turn from where it was: its encoder began again"
        elif not self._low[joint] <= q <= self._high[joint]:
            why = f"its range is {lower:.2f} .. {upper:.2f}"
        else:
            why = f"{moved:.2f} rad from where it was, {FASTEST:g} times its speed limit is not so fast"
        verdict = f"believed, {BELIEVED} in a row agree" if believed else "refused"
        self._texts[joint] = f"{self._names[joint]} at {q:.4g} rad ({why}): {verdict}", time
        return believed

    def _is_turn(self, joint: int, q: float, time: float) -> bool:
        """Test whether a position is whole turns away from the last good one, and else near it."""
        away = q - float(self._good[joint])
        if not (self._encoders and abs(away) < ENDLESS) or round(away / TURN) == 0:
            return False
        rest = abs(away - TURN * round(away / TURN))
        return bool(rest <= self._reach(self._fastest[joint], time - self._time[joint]))

    @staticmethod
    def _reach(fastest: Any, elapsed: Any) -> Any:
        """Distance that a joint may move, at most [rad], in a time [s]."""
        return STEP + fastest * (np.maximum(elapsed, 0.0) + UNEVEN)


class EncoderTurns:
    """Whole turns between the readings of n encoders and the joint angles.

    A joint that turns without ends continues where its encoder begins again. A joint with ends cannot be a whole turn
    away from where it was: such a reading is refused as long as it lasts.
    """

    def __init__(self, lower: np.ndarray, upper: np.ndarray) -> None:
        """Begin; lower, upper: (n,) ends of the ranges [rad], infinite where a joint has none."""
        self._endless = without_ends(lower, upper)
        self.restart()

    def restart(self) -> None:
        """Take the next readings as they are."""
        n = len(self._endless)
        self._before, self._turns = np.full(n, np.nan), np.zeros(n)

    def unwrap(self, joints: np.ndarray, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Take whole turns out of readings.

        Args:
            joints: (k,) indices.
            q: (k,) readings of their encoders [rad]; NaN: no reading.

        Returns:
            (k,) positions [rad], and (k,) True where a joint with ends seems to have turned: its reading is none.
        """
        q = q + self._turns[joints]
        away = q - self._before[joints]
        jump = TURN * np.round(np.nan_to_num(away, nan=0.0, posinf=0.0, neginf=0.0) / TURN)
        jump[~(np.abs(away - jump) <= NEAR)] = 0.0  # it moved, or was put elsewhere
        wrapped = jump != 0.0
        endless = wrapped & self._endless[joints]
        q = q - np.where(endless, jump, 0.0)
        self._turns[joints] -= np.where(endless, jump, 0.0)
        good = np.isfinite(q) & ~(wrapped & ~endless)
        self._before[joints[good]] = q[good]
        return q, wrapped & ~endless


def without_ends(lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """Test (n,) which joints turn on and on, by their ranges [rad]: infinite ones, or of more than ten turns."""
    return np.asarray(upper - lower > TURNS_WITHOUT_ENDS * TURN)


def named_twice(names: Sequence[str]) -> str:
    """The first name that a list has twice; empty where there is none."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return ""
