"""Joint trajectories with the semantics of joint_trajectory_controller.

Segments are linear, cubic if both ends give velocities, quintic if also accelerations.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from humanoid_control.errors import ConfigError, UnknownNameError
from humanoid_control.hardware.commands.command_stream import JointCommand

LATE = 0.1  # [s] after its end in which a trajectory is still executed: its message was under way
AHEAD = 60.0  # [s] by which a stamp may lead the clock
LARGEST = 1e9  # largest value: its powers over short segments stay finite


class TrajectoryPoint(NamedTuple):
    """Trajectory point of n joints.

    Attributes:
        time: time from the start [s].
        q: (n,) [rad].
        v: (n,) [rad/s], or empty.
        a: (n,) [rad/s^2], or empty.
    """

    time: float
    q: Sequence[float]
    v: Sequence[float] = ()
    a: Sequence[float] = ()


class OutOfDateError(ConfigError):
    """Trajectory stamp too far in the past or future."""


def scheduled(points: Sequence[TrajectoryPoint], age: float) -> tuple[list[TrajectoryPoint], float]:
    """Return future points and the delay until they start [s].

    Past points are dropped as in joint_trajectory_controller.

    Args:
        age: age of the stamp [s]; negative: ahead; 0: none.

    Raises:
        OutOfDateError: if the trajectory has ended, or starts after more than `AHEAD`.
    """
    if -age > AHEAD:
        raise OutOfDateError(
            f"trajectory rejected: its stamp is {-age:.1f} s ahead of the clock, at most {AHEAD:g} s are allowed; "
            "do the clocks of both computers agree?"
        )
    if points and age > points[-1].time + LATE:
        raise OutOfDateError(f"trajectory rejected: it ended {age - points[-1].time:.2f} s ago by its stamp")
    if not points or age <= LATE:
        return list(points), max(-age, 0.0)
    return [p._replace(time=p.time - age) for p in points if p.time > age] or [points[-1]._replace(time=0.0)], 0.0


class TrajectorySpline:
    """Checked trajectory from the present reference.

    Attributes:
        duration: [s].
    """

    def __init__(
        self,
        names: Sequence[str],
        points: Sequence[TrajectoryPoint],
        q: np.ndarray,
        v: np.ndarray,
        known: Sequence[str],
    ) -> None:
        """Check points and compute coefficients.

        Args:
            q: present reference (n,) [rad].
            v: present reference (n,) [rad/s].
            known: permitted joints.

        Raises:
            UnknownNameError: if a joint is unknown.
            ConfigError: if joints repeat, points are missing, a length is wrong, times do not ascend, or a value is not
                finite or beyond LARGEST.
        """
        self.names = tuple(names)
        for name in names:
            if name not in known:
                raise UnknownNameError("joint", name, known, hint="(trajectory rejected)")
        if len(set(names)) < len(names) or not names:
            raise ConfigError("trajectory rejected: each of its joints must be named once")
        rows = self._checked(points, len(names))
        start = TrajectoryPoint(0.0, q.tolist(), v.tolist(), [0.0] * len(names))
        if rows[0].time > 0.0:
            rows = [start, *rows]
        self._times = np.array([p.time for p in rows])
        self._coefficients = [_segment(a, b) for a, b in pairwise(rows)]
        self._end = np.asarray(rows[-1].q, dtype=float)
        self.duration = float(self._times[-1])

    @staticmethod
    def _checked(points: Sequence[TrajectoryPoint], n: int) -> list[TrajectoryPoint]:
        if not points:
            raise ConfigError("trajectory rejected: it has no points")
        last = -np.inf
        for k, p in enumerate(points):
            lengths = (len(p.q), len(p.v) or n, len(p.a) or n)
            if lengths != (n, n, n):
                raise ConfigError(f"trajectory rejected: point {k} needs {n} values of each kind, got {lengths}")
            if not np.isfinite([p.time, *p.q, *p.v, *p.a]).all():
                raise ConfigError(f"trajectory rejected: point {k} has a value that is not a number")
            if np.abs([*p.q, *p.v, *p.a]).max() > LARGEST:
                raise ConfigError(f"trajectory rejected: point {k} has a value beyond {LARGEST:g}")
            if p.time < 0.0 or p.time <= last:
                raise ConfigError(f"trajectory rejected: the time of point {k} must be after the previous one")
            last = p.time
        return list(points)

    def at(self, time: float) -> tuple[np.ndarray, np.ndarray]:
        """Return positions (n,) [rad] and velocities (n,) [rad/s]; holds after the end."""
        if time >= self.duration or not self._coefficients:
            return self._end.copy(), np.zeros(len(self._end))
        k = max(int(np.searchsorted(self._times, time, side="right")) - 1, 0)
        c, t = self._coefficients[k], max(time, 0.0) - self._times[k]
        q, v = c[5], np.zeros_like(c[5])
        for row in c[4::-1]:  # Horner's scheme with derivative
            v = v * t + q
            q = q * t + row
        return q, v


class TrajectoryPlayer:
    """Execution of a trajectory; its time starts when the robot follows commands.

    Before a later start it holds its joints.

    Attributes:
        spline: None: nothing runs.
    """

    def __init__(self, joint_names: Sequence[str]) -> None:
        self._index = {name: k for k, name in enumerate(joint_names)}
        self.spline: TrajectorySpline | None = None
        self._begin, self._earliest = np.nan, -np.inf

    def start(
        self,
        names: Sequence[str],
        points: Sequence[TrajectoryPoint],
        q: np.ndarray,
        v: np.ndarray,
        earliest: float = -np.inf,
    ) -> None:
        """Replace the trajectory; on an error the old one continues.

        Args:
            q: reference of all joints [rad].
            v: reference of all joints [rad/s].
            earliest: monotonic start [s].

        Raises:
            UnknownNameError: as `TrajectorySpline`.
            ConfigError: as `TrajectorySpline`.
        """
        rows = [self._index[name] for name in names if name in self._index]
        self.spline = TrajectorySpline(names, points, q[rows], v[rows], list(self._index))
        self._begin, self._earliest = np.nan, earliest

    def stop(self) -> None:
        """Discard the trajectory."""
        self.spline = None

    def command(self, now: float, follows: bool) -> JointCommand | None:
        """Return the command; after the end the last point.

        Args:
            follows: the robot follows commands; until then the first point holds.
        """
        if self.spline is None:
            return None
        if follows and not np.isfinite(self._begin) and now >= self._earliest:
            self._begin = now
        q, v = np.full((2, len(self._index)), np.nan)
        time = now - self._begin if np.isfinite(self._begin) else 0.0
        rows = [self._index[name] for name in self.spline.names]
        q[rows], v[rows] = self.spline.at(time)
        if not np.isfinite(self._begin):
            v[rows] = 0.0
        return JointCommand(q, v, np.full(len(q), np.nan))

    def elapsed(self, now: float) -> float:
        """Return trajectory time [s]; NaN before the start."""
        return now - self._begin

    def over(self, now: float) -> bool:
        """Return True after the last point."""
        return self.spline is None or bool(now - self._begin >= self.spline.duration)


def _segment(a: TrajectoryPoint, b: TrajectoryPoint) -> np.ndarray:
    """Return coefficients (6, n) of t^0 .. t^5 between two points."""
    h = b.time - a.time
    q0, q1 = np.asarray(a.q, dtype=float), np.asarray(b.q, dtype=float)
    c = np.zeros((6, len(q0)))
    c[0] = q0
    if not (len(a.v) and len(b.v)):
        c[1] = (q1 - q0) / h
        return c
    v0, v1 = np.asarray(a.v, dtype=float), np.asarray(b.v, dtype=float)
    c[1] = v0
    if not (len(a.a) and len(b.a)):
        c[2] = (3 * (q1 - q0) - h * (2 * v0 + v1)) / h**2
        c[3] = (-2 * (q1 - q0) + h * (v0 + v1)) / h**3
        return c
    a0, a1 = np.asarray(a.a, dtype=float), np.asarray(b.a, dtype=float)
    c[2] = a0 / 2
    c[3] = (20 * (q1 - q0) - h * (8 * v1 + 12 * v0) - h**2 * (3 * a0 - a1)) / (2 * h**3)
    c[4] = (-30 * (q1 - q0) + h * (14 * v1 + 16 * v0) + h**2 * (3 * a0 - 2 * a1)) / (2 * h**4)
    c[5] = (12 * (q1 - q0) - 6 * h * (v1 + v0) - h**2 * (a0 - a1)) / (2 * h**5)
    return c
