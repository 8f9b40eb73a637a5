"""Encoders that count one turn and begin again: whole turns are no motion."""

from __future__ import annotations

import numpy as np

from humanoid_control.estimation.plausibility import TURN, without_ends

NEAR = 0.8  # [rad] from whole turns, within which a change from one sample to the next is taken for whole turns


class EncoderTurns:
    """Whole turns between what the encoders of n joints read and where the joints are.

    A joint that turns without ends goes on where its encoder begins again. A joint with ends cannot be a whole turn
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
            joints: (k,) indices. q: (k,) what their encoders read [rad]; NaN: nothing.

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
