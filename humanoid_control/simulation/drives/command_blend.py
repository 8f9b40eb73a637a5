"""Rate limits of position commands that arrive late, in bursts, or after a break."""

from __future__ import annotations

import numpy as np

from humanoid_control.numerics.minimum_jerk import PEAK_SPEED, minimum_jerk
from humanoid_control.simulation.drives.position_control import EFFORT, POSITION, DriveCommands

ROUND_OFF = 1e-12  # [rad]
CATCH_UP = 0.05  # [s] time constant with which a late reference approaches its command
THERE = 0.02  # share of the largest motion per period, within which a reference has caught up
SLOW_DOWN = 0.05  # [s] deceleration to rest if commands stop


class CommandBlend:
    """Blend of n references from held positions to moving commands.

    q_ref = q_hold + s(t / T) (q_cmd - q_hold), with a minimum-jerk profile s. The joint with the longest way reaches a
    share of its speed limit; all steps are clipped to it.

    Attributes:
        active: during a blend.
        reference: (n,) [rad].
    """

    def __init__(self, velocity: np.ndarray, share: float = 1.0) -> None:
        """Create an inactive blend.

        Args:
            velocity: (n,) speed limits [rad/s].
            share: share of the limits that is used while blending.
        """
        self._velocity, self._share = np.array(velocity, dtype=float), share
        self.active, self.reference = False, np.zeros(len(self._velocity))
        self._hold, self._time, self._length = self.reference, 0.0, 0.0
        self._blends = np.ones(len(self._velocity), dtype=bool)

    def begin(self, hold: np.ndarray, command: np.ndarray, new: np.ndarray | None = None) -> None:
        """Begin a blend.

        Args:
            hold: (n,) held positions [rad].
            command: (n,) [rad]; NaN: joint stays.
            new: (n,) joints to blend; None: all. Others follow at up to their speed limits.
        """
        mask = np.ones(len(hold), dtype=bool) if new is None else new
        self._blends = mask | self._blends if self.active else mask.copy()
        way = np.where(self._blends, np.nan_to_num(np.abs(command - hold) / self._velocity), 0.0)
        self._hold, self.reference = hold.copy(), hold.copy()
        self._time, self._length = 0.0, PEAK_SPEED * float(way.max(initial=0.0)) / self._share
        self.active = self._length > 0.0

    def end(self) -> None:
        """Stop the references where they are."""
        self.active = False

    def step(self, command: np.ndarray, dt: float) -> np.ndarray:
        """Return the references (n,) [rad] after a step dt [s], moved by at most speed limit times dt.

        NaN in `command` (n,) [rad] holds a reference; dt <= 0 holds all.
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
    """Speed limit of position references.

    Bursts of commands would make steps, which drives answer with full torque. Here late references catch up gradually,
    and references without commands slow down after coasting.

    Attributes:
        behind: (n,) references that are catching up.
    """

    def __init__(self, velocity: np.ndarray) -> None:
        """Create the limit for joint speeds up to `velocity` (n,) [rad/s]."""
        self._velocity = np.array(velocity, dtype=float)
        n = len(self._velocity)
        self.behind, self._before = np.zeros(n, dtype=bool), np.zeros(n)
        self._goal, self._speed = np.zeros(n), np.zeros(n)
        self._since, self._commanded_speed = 0.0, np.zeros(n)

    def note(self, drives: DriveCommands, joints: np.ndarray) -> None:
        """Store the references at the end of a period, before new commands; joints: (n,) [rad]."""
        self._before = np.where(drives.mode == EFFORT, joints, drives.q_ref)

    def restart(self, drives: DriveCommands, joints: np.ndarray) -> None:
        """Restart from the present references."""
        self.behind[:] = False
        self._since, self._commanded_speed[:] = drives.since, 0.0
        self.note(drives, joints)

    def limit(self, drives: DriveCommands, commanded: np.ndarray, time: float, dt: float) -> None:
        """Limit the motion of the references in place before a period `dt` [s].

        Args:
            commanded: (n,) joints with a new command.
            time: time at the beginning [s].
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
            drives.since = time  # restarts coasting: else the drives stop moving references
        self._goal = np.where(k, end, self._goal)
        self._speed = np.where(k & ~old, speed, self._speed)

    def _slow_down(self, drives: DriveCommands, old: np.ndarray, position: np.ndarray, time: float, dt: float) -> float:
        """Slow down references without commands; return the remaining speed share."""
        late = time + dt - self._since - drives.coast
        if late <= ROUND_OFF:
            self._commanded_speed = drives.v_ref.copy()
            return 1.0
        share = max(0.0, 1.0 - max(0.0, late - dt) / SLOW_DOWN)
        own = position & ~old
        drives.v_ref[own] = share * self._commanded_speed[own]
        return share
