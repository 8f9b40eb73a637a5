"""Plausibility of joint positions: ranges and speeds of finite values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

RANGE_MARGIN = 0.5  # [rad] tolerance beyond limits: stops yield, zeros are inexact
FASTEST = 3.0  # maximum joint speed, relative to its limit
UNEVEN = 0.01  # [s] jitter of sample times
STEP = 0.05  # [rad] noise
BELIEVED = 3  # consecutive agreeing samples that are accepted
TURN = 2 * math.pi  # [rad] beyond its limits an encoder is a turn off
TURNS_WITHOUT_ENDS = 10  # wider ranges mean no stops
NEAR = 0.8  # [rad] distance from whole turns at which a change counts as turns
ENDLESS = 1e8  # [rad] no joint turns farther: five weeks at 30 rad/s
TOLD = 2.0  # [s] duration of a report: diagnostics run once a second
NAMED = 3  # maximum joints in a report


class JointPlausibility:
    """Judge of joint positions by range and distance from the last good sample.

    Implausible samples are refused; consecutive ones that agree are accepted.
    Samples a whole turn out of range are never accepted. An encoder wrap is removed for joints `without_ends`, and
    refused for others while it lasts.

    Attributes:
        restarts: joints accepted after a jump in the last sample, with velocities [rad/s]; their filters must restart.
    """

    def __init__(
        self,
        names: Sequence[str],
        lower: np.ndarray,
        upper: np.ndarray,
        velocity: np.ndarray,
        encoders: bool = True,
    ) -> None:
        """Create the judge of n joints.

        Args:
            lower: (n,) [rad].
            upper: (n,) [rad].
            velocity: (n,) speed limits [rad/s].
            encoders: positions are measured and may wrap; False: commanded.
        """
        self._encoders = encoders
        self._names, self._limits = tuple(names), (lower, upper)
        self._low, self._high = np.maximum(lower - RANGE_MARGIN, -ENDLESS), np.minimum(upper + RANGE_MARGIN, ENDLESS)
        self._velocity, self._endless = np.abs(velocity), without_ends(lower, upper) & encoders
        self._fastest = FASTEST * self._velocity
        self.reset()

    def reset(self) -> None:
        """Discard all samples."""
        n = len(self._names)
        self._good, self._time = np.full(n, np.nan), np.full(n, np.nan)
        self._refused, self._refused_at = np.full(n, np.nan), np.full(n, np.nan)
        self._first, self._first_at = np.full(n, np.nan), np.full(n, np.nan)  # first of consecutive odd samples
        self._count, self._wrapped = np.zeros(n, dtype=int), np.zeros(n, dtype=bool)
        self._turns = np.zeros(n)  # [rad] added to samples of joints without ends
        self.restarts: dict[int, float] = {}
        self._texts: dict[int, tuple[str, float]] = {}

    def shift(self, step: float) -> None:
        """Shift all times by a clock step [s]."""
        self._time += step
        self._refused_at += step
        self._first_at += step
        self._texts = {joint: (text, time + step) for joint, (text, time) in self._texts.items()}

    def check(self, joints: np.ndarray, q: np.ndarray, time: float) -> np.ndarray:
        """Return (k,) True for usable positions.

        Args:
            joints: (k,) indices.
            q: (k,) positions [rad], NaN if missing; wraps are removed in place.
            time: [s].
        """
        self.restarts.clear()
        number = np.isfinite(q)
        if self._endless.any():
            self._unwrap(joints, q, time)
        moved = np.abs(np.where(number, q, np.nan) - self._good[joints])
        far = moved > self._reach(self._fastest[joints], time - self._time[joints])  # False without a good sample
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
        """Return a message about recent refusals, or empty."""
        if self._texts:
            self._texts = {joint: told for joint, told in self._texts.items() if time - told[1] < TOLD}
        texts = [text for text, _ in self._texts.values()]
        more = f" and {len(texts) - NAMED} more joints" if len(texts) > NAMED else ""
        return "; ".join(texts[:NAMED]) + more

    def _unwrap(self, joints: np.ndarray, q: np.ndarray, time: float) -> None:
        """Remove whole turns from samples (k,), in place."""
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
        reach = self._reach(self._fastest[joints], time - self._refused_at[joints])
        return self._wrapped[joints] & (np.abs(q - self._refused[joints]) <= reach)

    def _agrees(self, joint: int, q: float, moved: float, time: float) -> bool:
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
            why = "jumped by a whole turn: its encoder restarted"
        elif not self._low[joint] <= q <= self._high[joint]:
            why = f"its range is {lower:.2f} .. {upper:.2f}"
        else:
            why = f"{moved:.2f} rad from the previous position, more than {FASTEST:g} times its speed limit"
        verdict = f"accepted, {BELIEVED} in a row agree" if believed else "refused"
        self._texts[joint] = f"{self._names[joint]} at {q:.4g} rad ({why}): {verdict}", time
        return believed

    def _is_turn(self, joint: int, q: float, time: float) -> bool:
        away = q - float(self._good[joint])
        if not (self._encoders and abs(away) < ENDLESS) or round(away / TURN) == 0:
            return False
        rest = abs(away - TURN * round(away / TURN))
        return bool(rest <= self._reach(self._fastest[joint], time - self._time[joint]))

    @staticmethod
    def _reach(fastest: Any, elapsed: Any) -> Any:
        return STEP + fastest * (np.maximum(elapsed, 0.0) + UNEVEN)


class EncoderTurns:
    """Whole turns between n encoders and joint angles.

    Joints without ends continue across wraps; for others a wrapped reading is refused while it lasts.
    """

    def __init__(self, lower: np.ndarray, upper: np.ndarray) -> None:
        """Start with limits lower, upper (n,) [rad], infinite without ends."""
        self._endless = without_ends(lower, upper)
        self.restart()

    def restart(self) -> None:
        """Accept the next readings."""
        n = len(self._endless)
        self._before, self._turns = np.full(n, np.nan), np.zeros(n)

    def unwrap(self, joints: np.ndarray, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return positions (k,) [rad] without wraps, and (k,) True for invalid wraps of limited joints.

        Args:
            joints: (k,) indices.
            q: (k,) encoder readings [rad], NaN if missing.
        """
        q = q + self._turns[joints]
        away = q - self._before[joints]
        jump = TURN * np.round(np.nan_to_num(away, nan=0.0, posinf=0.0, neginf=0.0) / TURN)
        jump[~(np.abs(away - jump) <= NEAR)] = 0.0  # it moved, or was placed elsewhere
        wrapped = jump != 0.0
        endless = wrapped & self._endless[joints]
        q = q - np.where(endless, jump, 0.0)
        self._turns[joints] -= np.where(endless, jump, 0.0)
        good = np.isfinite(q) & ~(wrapped & ~endless)
        self._before[joints[good]] = q[good]
        return q, wrapped & ~endless

    def counted(self, joints: np.ndarray, q: np.ndarray) -> np.ndarray | None:
        """Return successive readings with the turns counted so far; None if one of them may have wrapped.

        Args:
            joints: (k,) indices.
            q: (m, k) encoder readings [rad].
        """
        before, q = self._before[joints], q + self._turns[joints]
        steps = np.diff(q, axis=0, prepend=before[None])
        near = (np.abs(steps) < 0.5 * TURN).all() and (np.abs(q[-1] - before) < 0.5 * TURN).all()
        return q if near else None  # no joint is near an unknown position, which is not a number


def without_ends(lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """Return (n,) True for ranges [rad] that are infinite or exceed ten turns."""
    return np.asarray(upper - lower > TURNS_WITHOUT_ENDS * TURN)


def named_twice(names: Sequence[str]) -> str:
    """Return the first repeated name, or empty."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return ""
