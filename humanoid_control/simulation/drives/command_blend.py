"""Return of position commands to joints that were held, or commanded by another one: no step, and no haste."""

from __future__ import annotations

import numpy as np

from humanoid_control.numerics.minimum_jerk import PEAK_SPEED, minimum_jerk


class CommandBlend:
    """Moves n references from where they are held to commands that may move meanwhile.

    q_ref = q_hold + s(t / T) (q_cmd - q_hold), with a minimum-jerk profile s, and a T in which the joint with the
    longest way reaches its speed limit. A command that moves adds its own speed, so each step is also cut to the speed
    limit; the blend ends when its time is over and all joints have arrived.

    Attributes:
        active: a blend is going on.
        reference: (n,) the references as they are now [rad].
    """

    def __init__(self, velocity: np.ndarray) -> None:
        """Prepare.

        Args:
            velocity: (n,) speed limits of the joints [rad/s].
        """
        self._velocity = np.array(velocity, dtype=float)
        self.active, self.reference = False, np.zeros(len(self._velocity))
        self._hold, self._time, self._length = self.reference, 0.0, 0.0
        self._blends = np.ones(len(self._velocity), dtype=bool)

    def begin(self, hold: np.ndarray, command: np.ndarray, new: np.ndarray | None = None) -> None:
        """Begin where the joints are held.

        Args:
            hold: (n,) [rad]. command: (n,) first command [rad]; NaN where there is none, those are left where they are.
            new: (n,) true of joints to blend in, besides those of a blend that is going on; None: of all. The others
                follow their commands at up to their speed limits.
        """
        mask = np.ones(len(hold), dtype=bool) if new is None else new
        self._blends = mask | self._blends if self.active else mask.copy()
        way = np.where(self._blends, np.nan_to_num(np.abs(command - hold) / self._velocity), 0.0)
        self._hold, self.reference = hold.copy(), hold.copy()
        self._time, self._length = 0.0, PEAK_SPEED * float(way.max(initial=0.0))
        self.active = self._length > 0.0

    def end(self) -> None:
        """Leave the references where they are."""
        self.active = False

    def step(self, command: np.ndarray, dt: float) -> np.ndarray:
        """The references after a step.

        Args:
            command: (n,) [rad] as it is now; NaN where there is none.
            dt: length of the step [s].

        Returns:
            (n,) [rad]: no farther than speed limit times dt from those before.
        """
        self._time += dt
        u = min(1.0, self._time / self._length) if self._length > 0.0 else 1.0
        goal = np.where(np.isfinite(command), command, self._hold)
        wanted = self._hold + np.where(self._blends, minimum_jerk(u), 1.0) * (goal - self._hold)
        most = self._velocity * dt
        self.reference = self.reference + np.clip(wanted - self.reference, -most, most)
        self.active = u < 1.0 or bool((np.abs(goal - self.reference) > 1e-9).any())
        return self.reference
