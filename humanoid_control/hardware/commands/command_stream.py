"""Joint commands on their way to the limiter: messages checked, positions between messages, the blend at the start."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from humanoid_control.errors import ConfigError, UnknownNameError
from humanoid_control.hardware.transport import Mode
from humanoid_control.jit import kernel
from humanoid_control.numerics.array_types import B1, F1
from humanoid_control.numerics.minimum_jerk import PEAK_SPEED, minimum_jerk
from humanoid_control.numerics.packed import Packed, Table, unpack

OLD, AHEAD = 0.5, 0.5  # [s] age of a stamp, and how far ahead of the clock it may be
LONGEST_PERIOD = 0.1  # [s] of commands that are interpolated; those farther apart are steps
SMOOTHING = 0.2  # share of each new interval in the estimate of the period


class JointCommand(NamedTuple):
    """A checked command for n joints; NaN: not commanded, or not given.

    A joint without a position is commanded its velocity, or, without that too, its torque.

    Attributes:
        q: (n,) [rad]. v: (n,) [rad/s]. tau: (n,) feed-forward [N m].
    """

    q: np.ndarray
    v: np.ndarray
    tau: np.ndarray


class CommandReader:
    """Checks of command messages, for the n joints of one robot. A message with a mistake is refused whole.

    Joints that a message does not name, or whose position is not finite, are not commanded by it. A message that
    commands no joint is no command. Joints that are held fixed may be named and are passed over. A joint whose drive
    follows velocities may be commanded by its velocity alone, one whose drive follows torques by its torque alone.
    """

    def __init__(self, joint_names: Sequence[str], passed_over: Sequence[str] = (), modes: Sequence[Mode] = ()) -> None:
        """Prepare.

        Args:
            joint_names: of n joints. passed_over: other joints of the robot. modes: of the n drives; empty: positions.
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
        """The command in a message; None where it commands no joint.

        Args:
            names: of joints. position [rad], velocity [rad/s], effort [N m]: one for each name, or empty.

        Raises:
            UnknownNameError: a joint that the robot does not have. ConfigError: a joint twice, a wrong length, no
                positions at all.
        """
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
    """Make sure that a command was made just now, by the age of its stamp [s].

    Raises:
        ConfigError: it is older than half a second, or from the future.
    """
    if not -AHEAD <= age <= OLD:
        when = f"{age:.2f} s old" if age > 0 else f"{-age:.2f} s from the future"
        raise ConfigError(f"command is {when}: dropped; do the clocks of both computers agree?")


class DirectCommands:
    """Commands without positions: velocities and torques of n joints. Each holds until it is silent for the timeout."""

    def __init__(self, n: int, timeout: float) -> None:
        """Prepare for n joints; silence is longer than `timeout` [s]."""
        self._v, self._tau = np.full((2, n), np.nan)
        self._last, self.timeout, self._any = np.full(n, -np.inf), timeout, False

    def restart(self) -> None:
        """Forget all commands."""
        self._v[:], self._tau[:], self._last[:], self._any = np.nan, np.nan, -np.inf, False

    def add(self, command: JointCommand, now: float) -> np.ndarray:
        """Take a command; (n,) True where it has no position, but a velocity or a torque."""
        placed, fast, pushed = (np.isfinite(x) for x in command)
        fast &= ~placed
        pushed &= ~placed & ~fast
        given = fast | pushed
        if self._any or given.any():
            self._v = np.where(fast, command.v, np.where(placed | pushed, np.nan, self._v))
            self._tau = np.where(pushed, command.tau, np.where(placed | fast, np.nan, self._tau))
            self._last[given] = now
            self._any = bool(np.isfinite(self._v).any() or np.isfinite(self._tau).any())
        return given

    def at(self, now: float) -> tuple[np.ndarray, np.ndarray]:
        """Velocities (n,) [rad/s] and torques (n,) [N m] at a time; NaN where none is commanded."""
        late = now - self._last > self.timeout
        return np.where(late, np.nan, self._v), np.where(late, np.nan, self._tau)


class Curves(NamedTuple):
    """Cubic Hermite curves of n joints, over one command period.

    Attributes:
        q0, q1: (n,) positions at both ends [rad]. v0, v1: (n,) velocities there [rad/s].
        given: (n,) the velocity at the end came with the command. tau: (n,) feed-forward [N m].
    """

    q0: F1
    v0: F1
    q1: F1
    v1: F1
    tau: F1
    given: B1


@kernel
def curve_at(table: Table[Curves], out: np.ndarray, t: float, h: float) -> None:
    """Positions [rad] and velocities [rad/s] into out (2, n), t [s] after the begin of curves that take h [s]."""
    c = unpack(table, Curves)
    for i in range(out.shape[1]):
        if t < h:
            u = max(t, 0.0) / h
            q0, q1, m0, m1 = c.q0[i], c.q1[i], h * c.v0[i], h * c.v1[i]
            a, b = 2 * (q0 - q1) + m0 + m1, 3 * (q1 - q0) - 2 * m0 - m1
            out[0, i] = q0 + u * (m0 + u * (b + u * a))
            out[1, i] = (m0 + u * (2 * b + 3 * u * a)) / h
        else:
            v = c.v1[i] if c.given[i] else 0.0  # a straight line ends at the command
            out[0, i] = c.q1[i] + v * min(t - h, h) if h > 0 else c.q1[i]
            out[1, i] = v if t < 2 * h else 0.0


@kernel
def add_command(table: Table[Curves], command: np.ndarray, now: np.ndarray, direct: np.ndarray, h: float) -> None:
    """Begin curves to a command from where the joints are told to be now.

    Joints that the command leaves out stay at their last one.

    Args:
        command: (3, n) as in `JointCommand`. now: (2, n) positions and velocities now. h: time that curves take [s].
        direct: (n,) commanded without a position: where it was commanded before is no place to go back to.
    """
    c = unpack(table, Curves)
    for i in range(command.shape[1]):
        q0, v0 = now[0, i], now[1, i]
        commanded = np.isfinite(command[0, i])
        q1, v1 = (command[0, i], command[1, i]) if commanded else (c.q1[i], 0.0)
        if direct[i]:
            q1 = np.nan
        if not (np.isfinite(q0) and np.isfinite(q1)):
            q0, v0 = q1, 0.0
        given = np.isfinite(v1)
        if not given:
            v1 = 0.0
            if h > 0:
                v0 = v1 = (q1 - q0) / h
        c.q0[i], c.v0[i], c.q1[i], c.v1[i], c.given[i] = q0, v0, q1, v1, given
        if commanded:
            c.tau[i] = command[2, i]


class CommandInterpolator:
    """Positions between commands: a cubic Hermite curve from the last reference to the newest command.

    The curve takes one command period, so positions come one period late and have no steps. A command that is late is
    extrapolated with its velocity for at most one period, then held. Commands without velocities are followed along
    straight lines. Beyond the span of both ends the curve goes by at most the greater speed times the period.

    Attributes:
        tau: (n,) feed-forward of the last command of each joint [N m]; NaN: none.
        period: of the commands, estimated from their stamps [s]; 0: too far apart to interpolate.
        last: monotonic time of the last command [s]; -inf: none.
        since: monotonic time since which commands have come without a gap [s].
        direct: commands without positions.
    """

    def __init__(self, n: int, timeout: float) -> None:
        """Prepare for n joints; a gap between commands is longer than `timeout` [s]."""
        self.timeout = timeout
        q0, v0, q1, v1, tau = np.full((5, n), np.nan)
        curves = Curves(q0, v0, q1, v1, tau, np.zeros(n, dtype=bool))
        self._curves, self._now, self._command = Packed(curves), np.empty((2, n)), np.empty((3, n))
        self.tau = tau
        self.direct = DirectCommands(n, timeout)
        self.restart()

    def restart(self) -> None:
        """Forget all commands: no joint is commanded."""
        for rows in self._curves.record[:-1]:
            rows[:] = np.nan
        self._curves.record.given[:] = False
        self.period, self.last, self.since, self._stamp = 0.0, -np.inf, np.inf, np.nan
        self.direct.restart()

    def forget(self, joints: np.ndarray) -> None:
        """Forget what was commanded of joints, (n,) bool."""
        for rows in self._curves.record[:-1]:
            rows[joints] = np.nan

    def add(self, command: JointCommand, now: float, stamp: float) -> None:
        """Take a command.

        Args:
            command: checked. now: monotonic time of its arrival [s]. stamp: its own [s], for the period.
        """
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
        if not 0.0 < interval <= LONGEST_PERIOD:  # also the first one, and a clock that was set
            self.period = self.period if interval <= 0.0 else 0.0
        elif self.period == 0.0:
            self.period = interval
        else:
            self.period += SMOOTHING * (interval - self.period)

    def at(self, now: float) -> tuple[np.ndarray, np.ndarray]:
        """Position (n,) [rad] and velocity (n,) [rad/s] at a time; NaN where nothing is commanded."""
        out = np.empty_like(self._now)
        self.fill(now, out)
        return out[0], out[1]

    def fill(self, now: float, out: np.ndarray) -> None:
        """Write what `at` gives into (2, n)."""
        curve_at(self._curves.table, out, now - self.last, self.period)

    def steady(self, now: float, since: float) -> bool:
        """True where commands have come without a gap for `since` [s] until now."""
        return now - self.last <= self.timeout and now - self.since >= since

    def silent(self, now: float) -> bool:
        """True where no command has come for longer than the timeout."""
        return now - self.last > self.timeout


class Blend:
    """A transition from a constant posture to moving commands, q = q_hold + s(u) (q_command - q_hold).

    s is the minimum-jerk curve over a time long enough that the blend itself adds at most `speed`.

    Attributes:
        duration: [s]. hold: (n,) posture at the begin [rad].
    """

    def __init__(self, q_hold: np.ndarray, q_command: np.ndarray, begin: float, least: float, speed: float) -> None:
        """Plan the transition.

        Args:
            q_hold: (n,) [rad]. q_command: (n,) at the begin [rad]; NaN: the joint is not commanded.
            begin: monotonic time [s]. least: duration at least [s]. speed: that the blend may add [rad/s].
        """
        self.hold, self._begin = q_hold.copy(), begin
        away = np.abs(q_command - q_hold)
        farthest = float(np.nanmax(away)) if np.isfinite(away).any() else 0.0
        self.duration = max(least, PEAK_SPEED * farthest / speed)

    def at(self, now: float, q_command: np.ndarray) -> np.ndarray:
        """Reference (n,) at a time, for the commands of that time; the posture where nothing is commanded."""
        share = self.share(now)
        return np.where(np.isfinite(q_command), self.hold + share * (q_command - self.hold), self.hold)

    def share(self, now: float) -> float:
        """Share s of the commands at a time."""
        return minimum_jerk(min(max((now - self._begin) / self.duration, 0.0), 1.0))

    def over(self, now: float) -> bool:
        """True once the commands are followed as they are."""
        return now >= self._begin + self.duration
