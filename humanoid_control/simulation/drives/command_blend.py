"""Position commands that lead drives: no step, and no haste, where they come late, together, or back after a break."""

from __future__ import annotations

import numpy as np

from humanoid_control.numerics.minimum_jerk import PEAK_SPEED, minimum_jerk
from humanoid_control.simulation.drives.position_control import EFFORT, POSITION, DriveCommands

ROUND_OFF = 1e-12  # [rad]
CATCH_UP = 0.05  # [s] in which a reference that is behind comes nearer to its command by two thirds
THERE = 0.02  # share of a period's way, within which a reference has caught up
SLOW_DOWN = 0.05  # [s] in which a reference comes to rest when commands fail to come


class CommandBlend:
    """Moves n references from where they are held to commands that may move meanwhile.

    q_ref = q_hold + s(t / T) (q_cmd - q_hold), with a minimum-jerk profile s, and a T in which the joint with the
    longest way reaches its speed limit, or a share of it. A command that moves adds its own speed, so each step is also
    cut to that; the blend ends when its time is over and all joints have arrived.

    Attributes:
        active: True during a blend.
        reference: (n,) the references as they are now [rad].
    """

    def __init__(self, velocity: np.ndarray, share: float = 1.0) -> None:
        """Create the command blend.

        Args:
            velocity: (n,) speed limits of the joints [rad/s].
            share: of them, at which joints are blended in.
        """
        self._velocity, self._share = np.array(velocity, dtype=float), share
        self.active, self.reference = False, np.zeros(len(self._velocity))
        self._hold, self._time, self._length = self.reference, 0.0, 0.0
        self._blends = np.ones(len(self._velocity), dtype=bool)

    def begin(self, hold: np.ndarray, command: np.ndarray, new: np.ndarray | None = None) -> None:
        """Begin where the joints are held.

        Args:
            hold: (n,) [rad].
            command: (n,) first command [rad]; NaN where there is none, those are left where they are.
            new: (n,) true of joints to blend in, besides those of a blend that is continuing; None: of all. The others
                follow their commands at up to their speed limits.
        """
        mask = np.ones(len(hold), dtype=bool) if new is None else new
        self._blends = mask | self._blends if self.active else mask.copy()
        way = np.where(self._blends, np.nan_to_num(np.abs(command - hold) / self._velocity), 0.0)
        self._hold, self.reference = hold.copy(), hold.copy()
        self._time, self._length = 0.0, PEAK_SPEED * float(way.max(initial=0.0)) / self._share
        self.active = self._length > 0.0

    def end(self) -> None:
        """Leave the references where they are."""
        self.active = False

    def step(self, command: np.ndarray, dt: float) -> np.ndarray:
        """The references after a step.

        Args:
            command: (n,) [rad] as it is now; NaN where there is none: that reference stays where it is.
            dt: length of the step [s].

        Returns:
            (n,) [rad], where dt is not positive those before: no farther than speed limit times dt from those before.
        """
        dt = max(0.0, dt)  # 0 where dt is NaN
        self._time += dt
        u = min(1.0, self._time / self._length) if self._length > 0.0 else 1.0
        known = np.isfinite(command)
        goal = np.where(known, command, self.reference)
        wanted = self._hold + np.where(self._blends, minimum_jerk(u), 1.0) * (goal - self._hold)
        wanted = np.where(known, wanted, self.reference)
        most = np.where(self._blends, self._share, 1.0) * self._velocity * dt
        self.reference = self.reference + np.clip(wanted - self.reference, -most, most)
        self.active = u < 1.0 or bool((np.abs(goal - self.reference) > 1e-9).any())
        return self.reference


class ReferenceRate:
    """Limit on the references of position drives: none goes farther in a period than its joint's speed limit allows.

    Commands are made at that speed at most, but some come late and together, or not at all, and what follows them
    would be a step: drives answer a step by all their torque, and joints next to are thrown about. A reference that
    would go too far catches up with its command little by little; the others are left alone. Where commands fail to
    come, references do not stop dead at the end of their coasting, but slow down.

    Attributes:
        behind: (n,) references that are catching up.
    """

    def __init__(self, velocity: np.ndarray) -> None:
        """Create the reference rate.

        Args:
            velocity: (n,) speed limits of the joints [rad/s].
        """
        self._velocity = np.array(velocity, dtype=float)
        n = len(self._velocity)
        self.behind, self._before = np.zeros(n, dtype=bool), np.zeros(n)
        self._goal, self._speed = np.zeros(n), np.zeros(n)
        self._since, self._commanded_speed = 0.0, np.zeros(n)

    def note(self, drives: DriveCommands, joints: np.ndarray) -> None:
        """Take note of the references at the end of a period, before new commands come; joints: (n,) [rad]."""
        self._before = np.where(drives.mode == EFFORT, joints, drives.q_ref)

    def restart(self, drives: DriveCommands, joints: np.ndarray) -> None:
        """Begin with the references as they are."""
        self.behind[:] = False
        self._since, self._commanded_speed[:] = drives.since, 0.0
        self.note(drives, joints)

    def limit(self, drives: DriveCommands, commanded: np.ndarray, time: float, dt: float) -> None:
        """Limit what a period moves the references by, before it.

        Args:
            drives: changed in place.
            commanded: (n,) joints with a new command since the last period.
            time: at the beginning of the period [s].
            dt: its length [s].
        """
        old, position = self.behind & ~commanded, drives.mode == POSITION
        if commanded.any():
            self._since = drives.since
        share = self._slow_down(drives, old, position, time, dt)
        goal = np.where(old, self._goal, drives.q_ref)
        speed = np.where(old, share * self._speed, drives.v_ref)
        end = np.clip(goal + speed * dt, drives.limits.lower, drives.limits.upper)
        most = self._velocity * dt + ROUND_OFF
        far = self.behind & (np.abs(goal - self._before) > THERE * most)
        self.behind = position & (far | (np.abs(end - self._before) > most))
        there = old & position & ~self.behind
        drives.q_ref[there], drives.v_ref[there] = goal[there], speed[there]
        if (k := self.behind).any():
            step = np.clip(speed * dt + (goal - self._before) * (dt / CATCH_UP), -most, most)
            drives.q_ref[k], drives.v_ref[k] = self._before[k], step[k] / dt
        if k.any() or share > 0.0:
            drives.since = time  # or the drives would stop them
        self._goal = np.where(k, end, self._goal)
        self._speed = np.where(k & ~old, speed, self._speed)

    def _slow_down(self, drives: DriveCommands, old: np.ndarray, position: np.ndarray, time: float, dt: float) -> float:
        """Slow references down whose commands do not come; the share of the commanded speed that is left."""
        late = time + dt - self._since - drives.coast
        if late <= ROUND_OFF:
            self._commanded_speed = drives.v_ref.copy()
            return 1.0
        share = max(0.0, 1.0 - max(0.0, late - dt) / SLOW_DOWN)
        own = position & ~old
        drives.v_ref[own] = share * self._commanded_speed[own]
        return share
