"""Tasks that come and go at run time without a jump of the joint velocities (source: section 5.1, after Gienger)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from humanoid_control.errors import ConfigError
from humanoid_control.ik.solvers.rows import Rows
from humanoid_control.ik.tasks import Task

STEEPEST, BENT = 1.875, 5.7735  # largest slope and curvature of the smooth step, for a ramp of length 1


@dataclass(frozen=True)
class SwitchSettings:
    """Bounds on what a change of the task set may do to a joint.

    Attributes:
        acceleration: [rad/s^2]. jerk: [rad/s^3].
        longest: the ramp takes at the most this long [s].
    """

    acceleration: float = 20.0
    jerk: float = 400.0
    longest: float = 2.0

    def __post_init__(self) -> None:
        if not (self.acceleration > 0 and self.jerk > 0 and self.longest > 0):
            raise ConfigError("switching: acceleration, jerk and longest must be positive")

    def ramp_time(self, jump: float) -> float:
        """How long the ramp must be so that a jump of velocity [rad/s] keeps the bounds [s]."""
        return min(max(STEEPEST * jump / self.acceleration, float(np.sqrt(BENT * jump / self.jerk))), self.longest)


def smooth_step(x: float) -> float:
    """From 0 to 1 with no slope and no curvature at either end."""
    x = min(max(x, 0.0), 1.0)
    return x * x * x * (10.0 + x * (6.0 * x - 15.0))


class Switching:
    """What is left over of the velocity before a change, and how it fades.

    A task that leaves frees motion: what the joints did for it goes on in the null space and fades. A task that comes
    wants motion: it first wants what it gets already, and its own wish fades in. Both together leave the velocity as
    it was at the first tick, and the tasks that stay never notice. A change before the ramp is over begins a new one
    from the velocity of that moment; the acceleration may then jump, by no more than the bound.
    """

    def __init__(self, settings: SwitchSettings) -> None:
        self.settings = settings
        self.reset()

    def reset(self) -> None:
        """Forget the tasks and velocities of earlier ticks."""
        self._tasks: list[Task] | None = None
        self._age = self._time = 0.0
        self._left = np.zeros(0)
        self._new: dict[int, np.ndarray] = {}
        self._before: np.ndarray | None = None

    def fading(self) -> float:
        """Share of the old motion that is still kept, 1 at the change, 0 when it is over."""
        return 0.0 if self._time <= 0 else 1.0 - smooth_step(self._age / self._time)

    def changed(self, tasks: Sequence[Task]) -> bool:
        """Whether the set of tasks is another than at the tick before."""
        return self._tasks is not None and {id(t) for t in tasks} != {id(t) for t in self._tasks}

    def begin(self, tasks: Sequence[Task], rows: Rows, wanted: np.ndarray, before: np.ndarray) -> None:
        """Start a ramp.

        Args:
            tasks, rows: those of this tick.
            wanted: (k,) the free velocities they would lead to at once.
            before: (k,) those of the tick before.
        """
        known = {id(t) for t in self._tasks or ()}
        if self.fading() > 0.0:  # those that were still coming go on coming
            known -= set(self._new)
        mine = zip(tasks, rows.parts, strict=True)
        self._new = {id(t): rows.J[part] @ before for t, part in mine if id(t) not in known}
        self._left = before - wanted
        self._age, self._time = 0.0, self.settings.ramp_time(float(np.abs(self._left).max(initial=0.0)))

    def blended(self, tasks: Sequence[Task], rows: Rows) -> np.ndarray:
        """What the rows want this tick (m,), with new tasks fading in."""
        keep = self.fading()
        if keep == 0.0:
            return rows.v
        v = rows.v.copy()
        for task, part in zip(tasks, rows.parts, strict=True):
            was = self._new.get(id(task))
            if was is not None and len(was) == part.stop - part.start:
                v[part] += keep * (was - v[part])
        return v

    def leftover(self, k: int) -> np.ndarray:
        """Velocity (k,) that goes on in the null space this tick."""
        keep = self.fading()
        return keep * self._left if keep > 0.0 else np.zeros(k)

    def end_tick(self, tasks: Sequence[Task], dt: float) -> None:
        """Remember the tasks and let time pass."""
        self._tasks = list(tasks)
        self._age += dt
