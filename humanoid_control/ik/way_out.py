"""Out of a collision that the distances alone do not lead out of: home, by the neutral posture."""

from __future__ import annotations

import numpy as np

SHALLOWER = 1e-3  # [m] and
NEARER = 0.05  # [rad]: progress that keeps a stage from being given up
AWAY, HOME, THROUGH, FREE = range(4)


class WayOut:
    """Watches whether shapes inside each other come apart, and goes home where they do not.

    The gradient of a distance is local: an arm through the torso is pushed to both sides at once. Then all joints go
    straight to the neutral posture, slowly, until no pair is inside any more. What gets in the way of that is let
    through step by step, each after `patience` without progress.

    Attributes:
        stage: AWAY: along the gradients, with the tasks; HOME: to the neutral posture, pairs that are inside are let
            through and the others kept apart; THROUGH: so are pairs that are apart, but whose two links both are inside
            something; FREE: all are.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget what was."""
        self.stage, self._best, self._left, self._since = AWAY, -np.inf, np.inf, 0.0

    def look(self, closest: float, from_home: float, patience: float, dt: float) -> None:
        """Take note of a tick.

        Args:
            closest: signed distance of the deepest pair [m].
            from_home: how far the farthest joint is from the neutral posture [rad].
            patience: [s]. dt: [s].
        """
        if closest >= 0:
            self.reset()
            return
        better = closest > self._best + SHALLOWER if self.stage == AWAY else from_home < self._left - NEARER
        self._since += dt
        if better:
            self._best, self._left, self._since = closest, from_home, 0.0
        elif self._since > patience:
            self.stage, self._left, self._since = min(self.stage + 1, FREE), from_home, 0.0
