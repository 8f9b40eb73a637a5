"""References from joint commands, and winch states from messages, for a tendon controller."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from humanoid_control.errors import ConfigError, UnknownNameError
from humanoid_control.tendons.control.commands import no_states
from humanoid_control.tendons.control.laws import JointReference

TIMEOUT = 0.1  # [s] without a command before references rest
SOFT_TIME, SOFT_SPEED = 2.0, 0.6  # [s], [rad/s]: soft start towards the first commands
SMOOTH = 8.0  # [Hz] filter of the differentiated acceleration
STRONGEST = 20.0  # [rad/s^2] its maximum
LONGEST_WIRE = 5.0  # [m] a longer wire is in millimetres
JUMP = 0.01  # [m] between samples, beyond the winding speed


class JointReferences:
    """Smooth references of D joints from position or velocity commands.

    Positions are approached within the speed limits, slowly in the first seconds.

    Attributes:
        lower: (D,) [rad].
        upper: (D,) [rad].
        velocity: (D,) speed limits [rad/s].
        moved: a command has arrived.
    """

    def __init__(self, lower: np.ndarray, upper: np.ndarray, velocity: np.ndarray) -> None:
        self.lower, self.upper, self.velocity = lower, upper, velocity
        self.reset()

    def reset(self) -> None:
        d = len(self.lower)
        self._wanted, self._v, self._tau, self._a = np.zeros((4, d))
        self._position, self._before = np.zeros((2, d))
        self._given, self._last, self._since, self.moved = np.zeros(d, dtype=bool), -math.inf, 0.0, False

    def begin(self, theta: np.ndarray, now: float) -> None:
        """Rest at theta (D,) [rad] from time `now` [s]."""
        self.reset()
        self._wanted[:], self._position[:], self._since = theta, theta, now

    def rest(self, theta: np.ndarray) -> JointReference:
        return JointReference(np.array(theta, dtype=float), *np.zeros((3, len(theta))))

    def add(self, position: np.ndarray, velocity: np.ndarray, effort: np.ndarray, now: float) -> None:
        """Add a command; NaN: absent.

        Args:
            position: (D,) [rad].
            velocity: (D,) [rad/s].
            effort: (D,) added to the model's torque [N m].
            now: monotonic clock [s].
        """
        given = np.isfinite(position)
        self._wanted[given] = np.clip(position, self.lower, self.upper)[given]
        self._given[:] = given
        most = self.velocity
        self._v[:] = np.clip(np.nan_to_num(velocity), -most, most)
        self._tau[:] = np.nan_to_num(effort)
        self._last, self.moved = now, True

    def heard(self, now: float) -> bool:
        return now - self._last <= TIMEOUT

    def at(self, now: float, dt: float) -> JointReference:
        """Return the reference at `now`, dt after the last one [s]."""
        # Without commands the velocities would carry the joints away: rest at the present position.
        if not self.heard(now):
            self._v[:], self._tau[:] = 0.0, 0.0
            self._wanted[:] = self._position
        ahead = np.where(self._given, 0.0, self._v * dt)
        if ahead.any():
            self._wanted[:] = np.clip(self._wanted + ahead, self.lower, self.upper)
        most = np.minimum(self.velocity, SOFT_SPEED) if now - self._since < SOFT_TIME else self.velocity
        step = np.clip(self._wanted - self._position, -most * dt, most * dt)
        self._position += step
        v = np.clip(self._v, -most, most)
        share = 1.0 - math.exp(-2.0 * math.pi * SMOOTH * dt)
        a = np.clip((v - self._before) / dt, -STRONGEST, STRONGEST)
        self._a += share * (a - self._a)
        self._before[:] = v
        return JointReference(self._position, v, self._a, self._tau)


class WinchReadings:
    """States of M winches from messages in any tendon order.

    Attributes:
        states: newest states.
        known: every tendon has reported.
        problem: message, or empty.
    """

    def __init__(self, names: Sequence[str], fastest: np.ndarray) -> None:
        """Create the readings; `fastest` (M,) are no-load winch speeds [m/s]."""
        self.names, self._fastest = tuple(names), np.asarray(fastest)
        self._index = {n: k for k, n in enumerate(names)}
        self.states, self._received = no_states(len(names)), np.zeros(len(names), dtype=bool)
        self._order: tuple[list[str], np.ndarray] = ([], np.zeros(0, dtype=int))
        self.problem, self._last = "", -math.inf

    @property
    def known(self) -> bool:
        return bool(self._received.all())

    def take(
        self,
        names: Sequence[str],
        position: Sequence[float],
        velocity: Sequence[float],
        effort: Sequence[float],
        now: float,
    ) -> bool:
        """Take a message.

        Args:
            position: wires [m].
            velocity: wire rates [m/s]; may be empty.
            effort: tensions [N].
            now: monotonic clock [s].

        Returns:
            True if a wire moved farther than its winch can wind.

        Raises:
            UnknownNameError: if a tendon is unknown.
            ConfigError: if a size is wrong, a length is in millimetres, or a tendon is named twice.
        """
        if list(names) != self._order[0]:
            for name in names:
                if name not in self._index:
                    raise UnknownNameError("tendon", name[:60], self.names)
            if len(set(names)) < len(names):
                raise ConfigError("tendon states: a tendon is named twice")
            self._order = list(names), np.array([self._index[n] for n in names], dtype=int)
        for what, row in (("lengths", position), ("tensions", effort)):
            if len(row) != len(names):
                raise ConfigError(f"tendon states: {len(row)} {what} for {len(names)} tendons")
        rows, s = self._order[1], self.states
        x, T = np.asarray(position, dtype=float), np.asarray(effort, dtype=float)
        if (np.abs(x) > LONGEST_WIRE).any():
            k = int(np.argmax(np.abs(x)))
            raise ConfigError(f"tendon states: {names[k]} is {x[k]:.4g} m long: lengths are in metres")
        good = np.isfinite(x) & np.isfinite(T)
        self.problem = ""
        if not good.all():
            self.problem = f"tendon states: not a number for {names[int(np.argmin(good))]}: its last values are kept"
        rows, x, T = rows[good], x[good], T[good]
        dt = now - self._last
        moved = np.where(self._received[rows], x - s.wire[rows], 0.0)
        jumped = bool((np.abs(moved) > JUMP + 2.0 * self._fastest[rows] * max(dt, 0.02)).any()) if dt < 10 else False
        if len(velocity) == len(names) and np.isfinite(velocity).all():
            s.speed[rows] = -np.asarray(velocity, dtype=float)[good]
        elif dt > 0:
            s.speed[rows] = -moved / max(dt, 1e-4)
        s.wire[rows], s.tension[rows], self._received[rows] = x, np.maximum(T, 0.0), True
        self._last = now
        return jumped
