"""Centre-of-mass height over time: rises begin at touch-down, descents end at lift-off."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from humanoid_control.numerics.minimum_jerk import minimum_jerk
from humanoid_control.walking.planning.plan import Phase

ABOVE = 0.02  # [m] bound of the support height above the stance sole
LEAST = 1e-5  # [m] smallest change that counts


class Rise(NamedTuple):
    """Smooth change of height by an amount [m], between two times [s]."""

    amount: float
    begin: float
    end: float

    def at(self, t: float) -> float:
        """Return the completed part of the change [m]."""
        return self.amount * minimum_jerk(min(max((t - self.begin) / (self.end - self.begin), 0.0), 1.0))


class CenterHeight:
    """CoM height as a sum of smooth changes, so that replanning causes no jump."""

    def __init__(self, height: float) -> None:
        self._base, self.rises = height, list[Rise]()

    def at(self, t: float) -> float:
        """Return the height [m]."""
        return self._base + sum(r.at(t) for r in self.rises)

    @property
    def goal(self) -> float:
        """Height after all changes [m]."""
        return self._base + sum(r.amount for r in self.rises)

    def change(self, amount: float, begin: float, end: float) -> None:
        """Add a change [m] between two times [s]."""
        if abs(amount) > LEAST:
            self.rises.append(Rise(amount, begin, max(end, begin + 0.05)))

    def truncate(self, t: float) -> None:
        """Discard changes that have not begun at t, and sum up finished ones."""
        over = [r for r in self.rises if r.end <= t]
        self._base += sum(r.amount for r in over)
        self.rises = [r for r in self.rises if r.begin < t < r.end]


def support_heights(feet: Sequence[float], phases: Sequence[Phase]) -> list[Rise]:
    """Return the support height of each phase and the time to reach it; `amount` is the height [m].

    It averages the stance sole, with weight 2, and the previous and next sole. Rises last from touch-down to the middle
    of the next swing, descents from mid-swing to the next lift-off.

    Args:
        feet: initial heights of both soles [m].
    """
    if not phases:
        return []
    foot = phases[0].step.foot
    z = [feet[foot], feet[1 - foot], *(float(p.step.X.translation[2]) for p in phases)]
    floors = []
    for k in range(1, len(z)):
        mean = 0.25 * (z[k - 1] + 2 * z[k] + z[k + 1]) if k + 1 < len(z) else 0.5 * (z[k - 1] + z[k])
        floors.append(min(mean, z[k] + ABOVE))
    out = []
    for k, p in enumerate(phases):
        after = phases[min(k + 1, len(phases) - 1)]
        up = Rise(floors[k + 1], p.land, p.end + 0.5 * (after.land - after.lift))
        out.append(up if floors[k + 1] > floors[k] else Rise(floors[k + 1], 0.5 * (p.lift + p.land), p.end))
    return out
