"""Points that follow whatever they are told without ever jumping."""

from __future__ import annotations

import numpy as np

_LONGEST = 0.1  # [s] a longer pause between two steps gives no more room


class SteadyPoints:
    """Follows wanted points; a jump becomes an offset that is worn off at a bounded speed.

    Attributes:
        shown: (K, 3) the points [m]; between two steps none moves farther than `max_speed` allows.
    """

    def __init__(self, start: np.ndarray, max_speed: float, return_speed: float) -> None:
        """Begin at rest.

        Args:
            start: (K, 3) [m].
            max_speed: of a shown point [m/s].
            return_speed: at which the offset after a jump shrinks [m/s].
        """
        self.shown = np.array(start, dtype=float)
        self.max_speed, self.return_speed = max_speed, return_speed
        self._wanted = self.shown.copy()
        self._from, self._blend, self._lead = self.shown.copy(), 1.0, 0.0

    def begin(self, lead_in: float) -> None:
        """From now on, move over to what is wanted in this time [s], along a minimum-jerk profile."""
        self._from, self._blend, self._lead = self.shown.copy(), 0.0, lead_in

    def follow(self, wanted: np.ndarray, dt: float) -> np.ndarray:
        """The points (K, 3) after a step of dt [s]; where `wanted` (K, 3) is not finite the last is wanted still."""
        dt = min(max(dt, 0.0), _LONGEST)
        goal = self._led(np.where(np.isfinite(wanted).all(axis=1, keepdims=True), wanted, self._wanted), dt)
        offset = self.shown - self._wanted
        moved = np.linalg.norm(goal - self._wanted, axis=1, keepdims=True)
        offset = np.where(moved > self.max_speed * dt, self.shown - goal, offset)
        size = np.linalg.norm(offset, axis=1, keepdims=True)
        offset = offset * np.maximum(0.0, 1.0 - self.return_speed * dt / np.maximum(size, 1e-12))
        step = goal + offset - self.shown
        size = np.linalg.norm(step, axis=1, keepdims=True)
        self.shown = self.shown + step * np.minimum(1.0, self.max_speed * dt / np.maximum(size, 1e-12))
        self._wanted = goal
        return self.shown

    def _led(self, wanted: np.ndarray, dt: float) -> np.ndarray:
        """What is wanted during a lead-in: between the posture it began in and the one to reach."""
        if self._blend >= 1.0:
            return wanted
        self._blend = min(1.0, self._blend + dt / self._lead) if self._lead > 0 else 1.0
        s = self._blend**3 * (10 - 15 * self._blend + 6 * self._blend**2)
        return (1 - s) * self._from + s * wanted
