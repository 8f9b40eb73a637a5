"""Commands with gains: torque = tau + kp (q - measured) + kd (v - measured).

Targets define torques: they are neither interpolated nor speed-limited, and may lie outside the range. When commands
cease, stiffness fades and damping grows: the robot sinks instead of toppling.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from humanoid_control.errors import ConfigError, NotANumberError, UnknownNameError

STIFFEST, MOST_DAMPING = 5000.0, 500.0  # [N m/rad], [N m s/rad]; more than any robot drive accepts
SILENCE = 0.1  # [s] without a command before joints are lowered: five periods of a policy
DESCENT = 0.8  # [s] over which stiffness fades


class Gains(NamedTuple):
    """Gains (n,) of n joints; NaN: none.

    Attributes:
        kp: [N m/rad].
        kd: [N m s/rad].
    """

    kp: np.ndarray
    kd: np.ndarray


class GainsReader:
    """Checks of gain messages; an invalid message is rejected whole."""

    def __init__(self, joint_names: Sequence[str], passed_over: Sequence[str] = ()) -> None:
        self._index = {name: k for k, name in enumerate(joint_names)}
        self._passed_over = frozenset(passed_over)
        self._n = len(joint_names)
        self._last: tuple[list[str], np.ndarray, np.ndarray] = ([], np.zeros(0, int), np.zeros(0, int))

    def read(self, names: list[str], kp: Sequence[float], kd: Sequence[float]) -> Gains:
        """Return the gains of a message.

        Args:
            kp: [N m/rad].
            kd: [N m s/rad].

        Raises:
            UnknownNameError: if the robot lacks a joint.
            ConfigError: if a joint is repeated, a length wrong, or a gain out of range.
            NotANumberError: if a gain is not finite.
        """
        if names != self._last[0]:
            self._last = (list(names), *self._order(names))
        if len(kp) != len(names) or len(kd) != len(names):
            raise ConfigError(f"joint_gains: {len(kp)} kp and {len(kd)} kd for {len(names)} names: message dropped")
        _, places, joints = self._last
        out = Gains(np.full(self._n, np.nan), np.full(self._n, np.nan))
        for what, values, most, row in (("kp", kp, STIFFEST, out.kp), ("kd", kd, MOST_DAMPING, out.kd)):
            row[joints] = found = np.asarray(values, dtype=float)[places]
            wrong = np.flatnonzero(~((found >= 0.0) & (found <= most)))
            if len(wrong):
                name, value = names[places[wrong[0]]], found[wrong[0]]
                kind = ConfigError if np.isfinite(value) else NotANumberError
                raise kind(f"joint_gains: {what} of {name} is {value:g}, not within 0 and {most:g}: message dropped")
        return out

    def _order(self, names: list[str]) -> tuple[np.ndarray, np.ndarray]:
        rows = []
        for k, name in enumerate(names):
            if name in self._index:
                rows.append((k, self._index[name]))
            elif name not in self._passed_over:
                raise UnknownNameError("joint", name, self._index, hint="(joint_gains: message dropped)")
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise ConfigError(f"joint_gains name {twice} twice: message dropped")
        order = np.array(rows, dtype=int).reshape(-1, 2)
        return order[:, 0], order[:, 1]


class GainedCommand:
    """Latest command with gains, and its decay.

    Attributes:
        which: joints under it (n,).
        q: position at the last `update` (n,) [rad]; 0 elsewhere, as v, tau, kp, kd.
        descending: commands have ceased.
    """

    def __init__(self, n: int, damping: np.ndarray, silence: float = SILENCE) -> None:
        """Set up without joints.

        Args:
            damping: while lowering (n,) [N m s/rad].
            silence: before lowering [s].
        """
        self.which: np.ndarray = np.zeros(n, dtype=bool)
        self.q, self.v, self.tau, self.kp, self.kd = np.zeros((5, n))
        self._given = np.zeros((5, n))
        self._damping, self.silence = damping, silence
        self.release()

    def release(self) -> None:
        """Release all joints."""
        self.which[:] = False
        self._given[:], self.last, self.any, self.descending = 0.0, -np.inf, False, False

    def take(self, command: tuple[np.ndarray, np.ndarray, np.ndarray], gains: Gains, now: float) -> np.ndarray:
        """Store a command; return joints with position and gains (n,).

        Args:
            command: q, v, tau (n,); NaN: none, or 0.
            now: [s].
        """
        q, v, tau = command
        which: np.ndarray = np.isfinite(q) & np.isfinite(gains.kp) & np.isfinite(gains.kd)
        self.which[:] = which
        for row, values in zip(self._given, (q, v, tau, *gains), strict=True):
            row[:] = np.where(which & np.isfinite(values), values, 0.0)
        self.last, self.any = now, bool(which.any())
        return which

    def update(self, now: float) -> None:
        """Update to `now` [s]: the command, or its decay towards pure damping."""
        q, v, tau, kp, kd = self._given
        late = now - self.last - self.silence
        self.descending = self.any and late > 0.0
        if not self.descending:
            self.q[:], self.v[:], self.tau[:], self.kp[:], self.kd[:] = q, v, tau, kp, kd
            return
        share = min(late / DESCENT, 1.0)
        left = 1.0 - share
        self.q[:], self.kp[:], self.tau[:] = q, left * kp, left * tau
        self.kd[:] = np.where(self.which, left * kd + share * self._damping, 0.0)
        # v is scaled so that the new kd times v equals the faded torque left kd v
        with np.errstate(divide="ignore", invalid="ignore"):
            self.v[:] = np.where(self.kd > 0.0, left * kd * v / self.kd, 0.0)
