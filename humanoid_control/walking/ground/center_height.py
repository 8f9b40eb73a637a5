"""Height of the centre of mass over time: over the support, up from the moment both feet stand, down before they do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from humanoid_control.numerics.minimum_jerk import minimum_jerk
from humanoid_control.walking.planning.plan import Phase

ABOVE = 0.02  # [m] by which the floor of a support may be above the sole that stands
LEAST = 1e-5  # [m] of a change that counts


class Rise(NamedTuple):
    """A smooth change of height by an amount [m], from one time to another [s]."""

    amount: float
    begin: float
    end: float

    def at(self, t: float) -> float:
        """What has been made of it [m]."""
        return self.amount * minimum_jerk(min(max((t - self.begin) / (self.end - self.begin), 0.0), 1.0))


class CenterHeight:
    """Height of the centre of mass: smooth changes added to each other, so that no new plan makes it jump.

    Attributes:
        rises: that have begun or will.
    """

    def __init__(self, height: float) -> None:
        """Begin at a height [m] of the world."""
        self._base, self.rises = height, list[Rise]()

    def at(self, t: float) -> float:
        """Height at a time [m]."""
        return self._base + sum(r.at(t) for r in self.rises)

    @property
    def goal(self) -> float:
        """Where all changes lead to [m]."""
        return self._base + sum(r.amount for r in self.rises)

    def change(self, amount: float, begin: float, end: float) -> None:
        """Add a change by an amount [m] from one time to another [s]."""
        if abs(amount) > LEAST:
            self.rises.append(Rise(amount, begin, max(end, begin + 0.05)))

    def forget(self, t: float) -> None:
        """Take back the changes that have not begun at t, and sum up those that are over."""
        over = [r for r in self.rises if r.end <= t]
        self._base += sum(r.amount for r in over)
        self.rises = [r for r in self.rises if r.begin < t < r.end]


def support_heights(feet: Sequence[float], phases: Sequence[Phase]) -> list[Rise]:
    """Floors that phases ask for, each with the time in which it is reached: `amount` is its height [m].

    The floor of a support is the mean of the sole that stands, twice, and of those that stood before and will stand
    after it: so a slope across is walked without going up and down, and stairs are climbed from tread to tread. Up it
    goes from touch-down until the middle of the next swing, down from the middle of the swing until the next lift-off.

    Args:
        feet: heights of both soles before [m]. phases: in time.

    Returns:
        One a phase: the floor of the support by the foot that has landed in it; the last: of both feet.
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
