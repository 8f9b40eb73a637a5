"""Joint command messages: checks, interpolation, initial blend."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from humanoid_control.compiled.array_types import B1, F1
from humanoid_control.compiled.jit import kernel
from humanoid_control.compiled.packed import Packed, Table, unpack
from humanoid_control.errors import ConfigError, UnknownNameError
from humanoid_control.hardware.transport import Mode
from humanoid_control.numerics.minimum_jerk import PEAK_SPEED, minimum_jerk

OLD, AHEAD = 0.5, 0.5  # [s] permitted age of a stamp, and lead over the clock
LONGEST_PERIOD = 0.1  # [s] longest period that is interpolated; slower commands are steps
SMOOTHING = 0.2  # weight of each new interval in the estimate of the period


class JointCommand(NamedTuple):
    """Checked command (n,): q [rad], v [rad/s], tau feed-forward [N m]; NaN: none.

    A joint without position follows its velocity, or else its torque.
    """

    q: np.ndarray
    v: np.ndarray
    tau: np.ndarray


class CommandReader:
    """Checks of command messages for n joints; an invalid message is rejected whole.

    Unnamed joints and non-finite positions are not commanded. Velocity drives accept a velocity alone, torque drives a
    torque alone.
    """

    def __init__(self, joint_names: Sequence[str], passed_over: Sequence[str] = (), modes: Sequence[Mode] = ()) -> None:
        """Set up.

        Args:
            passed_over: other joints of the robot.
            modes: modes of the drives; empty: positions.
        """
        given = list(modes) or [Mode.POSITION] * len(joint_names)
        self._by_velocity = np.array([m is Mode.VELOCITY for m in given], dtype=bool)
        self._by_torque = np.array([m is Mode.EFFORT for m in given], dtype=bool)
        self._index = {name: k for k, name in enumerate(joint_names)}
        self._passed_over = frozenset(passed_over)
        self._n = len(joint_names)
        self._last: tuple[list[str], np.ndarray, np.ndarray] = ([], np.zeros(0, int), np.zeros(0, int))

    def read(
        self, names: list[str], position: Sequence[float], velocity: Sequence[float], effort: Sequence[float]
    ) -> JointCommand | None:
        """Return the command of a message; None if it commands no joint.

        Args:
            position: [rad].
            velocity: [rad/s].
            effort: [N m].

        Raises:
            UnknownNameError: if the robot lacks a joint.
            ConfigError: if a joint is repeated, a length wrong, or positions missing.
        """
        # names rarely change: reuse the order of the last message
        if names != self._last[0]:
            self._last = (list(names), *self._order(names))
        _, places, joints = self._last
        q, v, tau = (
            self._values(kind, values, len(names), places, joints)
            for kind, values in (("position", position), ("velocity", velocity), ("effort", effort))
        )
        direct = self._by_velocity | self._by_torque
        if not len(position) and len(names) and not direct[joints].any():
            raise ConfigError("a command needs positions: message dropped")
        known = np.isfinite(q)
        v[~known & ~self._by_velocity], tau[~known & ~self._by_torque] = np.nan, np.nan
        known |= direct & (np.isfinite(v) | np.isfinite(tau))
        return JointCommand(q, v, tau) if known.any() else None

    def _order(self, names: list[str]) -> tuple[np.ndarray, np.ndarray]:
        rows = []
        for k, name in enumerate(names):
            if name in self._index:
                rows.append((k, self._index[name]))
            elif name not in self._passed_over:
                raise UnknownNameError("joint", name, self._index, hint="(message dropped)")
        order = np.array(rows, dtype=int).reshape(-1, 2)
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise ConfigError(f"command names {twice} twice: message dropped")
        return order[:, 0], order[:, 1]

    def _values(
        self, kind: str, values: Sequence[float], given: int, places: np.ndarray, joints: np.ndarray
    ) -> np.ndarray:
        out = np.full(self._n, np.nan)
        if len(values):
            if len(values) != given:
                raise ConfigError(f"command with {len(values)} values of {kind} for {given} names: message dropped")
            found = np.asarray(values, dtype=float)[places]
            out[joints] = np.where(np.isfinite(found), found, np.nan)
        return out


def check_stamp(age: float) -> None:
    """Check the age of a stamp [s].

    Raises:
        ConfigError: if it is out of [-AHEAD, OLD].
    """
    if not -AHEAD <= age <= OLD:
        when = f"{age:.2f} s old" if age > 0 else f"{-age:.2f} s from the future"
        raise ConfigError(f"command is {when}: dropped; do the clocks of both computers agree?")


class DirectCommands:
    """Velocity and torque commands without position; each expires."""

    def __init__(self, n: int, timeout: float) -> None:
        """Set up for n joints; `timeout` [s]."""
        self._v, self._tau = np.full((2, n), np.nan)
        self._last, self.timeout, self._any = np.full(n, -np.inf), timeout, False

    def restart(self) -> None:
        """Drop all commands."""
        self._v[:], self._tau[:], self._last[:], self._any = np.nan, np.nan, -np.inf, False

    def add(self, command: JointCommand, now: float) -> np.ndarray:
        """Store a command; return joints without position (n,)."""
        placed, fast, pushed = (np.isfinite(x) for x in command)
        fast &= ~placed
        pushed &= ~placed & ~fast
        given = fast | pushed
        if self._any or given.any():
            # a position or the other quantity replaces an earlier command
            self._v = np.where(fast, command.v, np.where(placed | pushed, np.nan, self._v))
            self._tau = np.where(pushed, command.tau, np.where(placed | fast, np.nan, self._tau))
            self._last[given] = now
            self._any = bool(np.isfinite(self._v).any() or np.isfinite(self._tau).any())
        return given

    def at(self, now: float) -> tuple[np.ndarray, np.ndarray]:
        """Return velocities (n,) [rad/s] and torques (n,) [N m]; NaN: none."""
        late = now - self._last > self.timeout
        return np.where(late, np.nan, self._v), np.where(late, np.nan, self._tau)


class Curves(NamedTuple):
    """Cubic Hermite curves of n joints over one command period, arrays (n,).

    q0, q1 [rad], v0, v1 [rad/s] at start and end.

    Attributes:
        given: the command included v1.
        tau: feed-forward [N m].
    """

    q0: F1
    v0: F1
    q1: F1
    v1: F1
    tau: F1
    given: B1


@kernel
def curve_at(table: Table[Curves], out: np.ndarray, t: float, h: float) -> None:
    """Evaluate curves of duration h [s] at t [s] into out (2, n): [rad], [rad/s]."""
    c = unpack(table, Curves)
    for i in range(out.shape[1]):
        if t < h:
            u = max(t, 0.0) / h
            # Hermite polynomial q0 + m0 u + b u^2 + a u^3, u = t / h, m = h v
            q0, q1, m0, m1 = c.q0[i], c.q1[i], h * c.v0[i], h * c.v1[i]
            a, b = 2 * (q0 - q1) + m0 + m1, 3 * (q1 - q0) - 2 * m0 - m1
            out[0, i] = q0 + u * (m0 + u * (b + u * a))
            out[1, i] = (m0 + u * (2 * b + 3 * u * a)) / h
        else:
            # extrapolate for one more period, then hold
            v = c.v1[i] if c.given[i] else 0.0  # a linear segment ends at the command
            out[0, i] = c.q1[i] + v * min(t - h, h) if h > 0 else c.q1[i]
            out[1, i] = v if t < 2 * h else 0.0


@kernel
def add_command(table: Table[Curves], command: np.ndarray, now: np.ndarray, direct: np.ndarray, h: float) -> None:
    """Start curves from the present references; uncommanded joints keep their last command.

    Args:
        command: see `JointCommand` (3, n).
        now: positions and velocities (2, n).
        direct: commanded without position (n,); old positions become invalid.
        h: duration [s].
    """
    c = unpack(table, Curves)
    for i in range(command.shape[1]):
        q0, v0 = now[0, i], now[1, i]
        commanded = np.isfinite(command[0, i])
        # an uncommanded joint goes to its last command and rests there
        q1, v1 = (command[0, i], command[1, i]) if commanded else (c.q1[i], 0.0)
        if direct[i]:
            q1 = np.nan
        # no start or end position: begin at the command
        if not (np.isfinite(q0) and np.isfinite(q1)):
            q0, v0 = q1, 0.0
        given = np.isfinite(v1)
        if not given:
            # without a velocity the segment is a straight line
            v1 = 0.0
            if h > 0:
                v0 = v1 = (q1 - q0) / h
        c.q0[i], c.v0[i], c.q1[i], c.v1[i], c.given[i] = q0, v0, q1, v1, given
        if commanded:
            c.tau[i] = command[2, i]


class CommandInterpolator:
    """Cubic Hermite interpolation between commands.

    Curves last one command period, so positions are continuous and one period late. Late commands are extrapolated for
    at most one period, then held. Overshoot is at most the larger speed times the period.

    Attributes:
        tau: last feed-forward (n,) [N m]; NaN: none.
        period: estimated [s]; 0: too slow to interpolate.
        last: time of the last command [s]; -inf: none.
        since: start of gapless commands [s].
    """

    def __init__(self, n: int, timeout: float) -> None:
        """Set up for n joints; `timeout`: longest gap [s]."""
        self.timeout = timeout
        q0, v0, q1, v1, tau = np.full((5, n), np.nan)
        curves = Curves(q0, v0, q1, v1, tau, np.zeros(n, dtype=bool))
        self._curves, self._now, self._command = Packed(curves), np.empty((2, n)), np.empty((3, n))
        self.tau = tau
        self.direct = DirectCommands(n, timeout)
        self.restart()

    def restart(self) -> None:
        """Drop all commands."""
        for rows in self._curves.record[:-1]:
            rows[:] = np.nan
        self._curves.record.given[:] = False
        self.period, self.last, self.since, self._stamp = 0.0, -np.inf, np.inf, np.nan
        self.direct.restart()

    def discard(self, joints: np.ndarray) -> None:
        """Drop the commands of `joints` (n,)."""
        for rows in self._curves.record[:-1]:
            rows[joints] = np.nan

    def add(self, command: JointCommand, now: float, stamp: float) -> None:
        """Add a checked command.

        Args:
            now: monotonic arrival [s].
            stamp: its own, for the period [s].
        """
        # after a gap the old curve is not a start any more
        if now - self.last > self.timeout:
            self.restart()
            self.since = now
        self._measure_period(stamp)
        self.fill(now, self._now)
        for row, values in zip(self._command, command, strict=True):
            row[:] = values
        add_command(self._curves.table, self._command, self._now, self.direct.add(command, now), self.period)
        self.last = now

    def _measure_period(self, stamp: float) -> None:
        interval = stamp - self._stamp
        self._stamp = stamp
        if not 0.0 < interval <= LONGEST_PERIOD:  # the first command, or a clock that was set
            self.period = self.period if interval <= 0.0 else 0.0
        elif self.period == 0.0:
            self.period = interval
        else:
            self.period += SMOOTHING * (interval - self.period)

    def at(self, now: float) -> tuple[np.ndarray, np.ndarray]:
        """Return positions (n,) [rad] and velocities (n,) [rad/s]; NaN: none."""
        out = np.empty_like(self._now)
        self.fill(now, out)
        return out[0], out[1]

    def fill(self, now: float, out: np.ndarray) -> None:
        """Write positions and velocities into out (2, n)."""
        curve_at(self._curves.table, out, now - self.last, self.period)

    def steady(self, now: float, since: float) -> bool:
        """Return True if commands have been gapless for `since` [s]."""
        return now - self.last <= self.timeout and now - self.since >= since

    def silent(self, now: float) -> bool:
        """Return True if no command came within the timeout."""
        return now - self.last > self.timeout


class Blend:
    """Blend from a posture to moving commands: q = q_hold + s(u) (q_command - q_hold).

    s is the minimum-jerk curve; its duration bounds the added speed.
    """

    def __init__(self, q_hold: np.ndarray, q_command: np.ndarray, begin: float, least: float, speed: float) -> None:
        """Plan the blend.

        Args:
            q_command: command at the start (n,) [rad]; NaN: none.
            begin: monotonic [s].
            least: shortest duration [s].
            speed: largest added speed [rad/s].
        """
        self.hold, self._begin = q_hold.copy(), begin
        away = np.abs(q_command - q_hold)
        farthest = float(np.nanmax(away)) if np.isfinite(away).any() else 0.0
        # the peak speed of a minimum jerk is PEAK_SPEED times its mean speed
        self.duration = max(least, PEAK_SPEED * farthest / speed)

    def at(self, now: float, q_command: np.ndarray) -> np.ndarray:
        """Return the reference (n,); the posture where nothing is commanded."""
        share = self.share(now)
        return np.where(np.isfinite(q_command), self.hold + share * (q_command - self.hold), self.hold)

    def share(self, now: float) -> float:
        """Return the share s of the commands."""
        return minimum_jerk(min(max((now - self._begin) / self.duration, 0.0), 1.0))

    def over(self, now: float) -> bool:
        """Return True after the blend."""
        return now >= self._begin + self.duration
