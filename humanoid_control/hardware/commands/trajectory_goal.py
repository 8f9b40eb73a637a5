"""Trajectory goals with the semantics of control_msgs/FollowJointTrajectory."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from humanoid_control.errors import ConfigError, HumanoidError, UnknownNameError
from humanoid_control.hardware.commands.trajectory import (
    OutOfDateError,
    TrajectoryPlayer,
    TrajectoryPoint,
    TrajectorySpline,
    scheduled,
)

UNSET, NONE = 0.0, -1.0  # tolerance values: use the robot's default; no tolerance


class GoalCode(enum.IntEnum):
    """Error codes of the action."""

    SUCCESSFUL = 0
    INVALID_GOAL = -1
    INVALID_JOINTS = -2
    OLD_HEADER_TIMESTAMP = -3
    PATH_TOLERANCE_VIOLATED = -4
    GOAL_TOLERANCE_VIOLATED = -5


class Outcome(NamedTuple):
    """Result of a goal with a one-line reason."""

    code: GoalCode
    text: str = ""


class Tolerance(NamedTuple):
    """Tolerances of one joint [rad], [rad/s]; or UNSET, NONE."""

    name: str
    position: float = UNSET
    velocity: float = UNSET


class DefaultTolerances(NamedTuple):
    """Default tolerances of all joints; 0: none.

    Attributes:
        path: largest error on the way [rad].
        end: largest error at the end [rad].
        time: to reach the end [s].
    """

    path: float = 0.0
    end: float = 0.0
    time: float = 0.0


class TrajectoryGoal(NamedTuple):
    """Goal of a client.

    Attributes:
        time: to reach the end [s]; UNSET: default; negative: unlimited.
        age: age of the stamp [s]; negative: starts later; 0: no stamp.
    """

    names: Sequence[str]
    points: Sequence[TrajectoryPoint]
    path: Sequence[Tolerance] = ()
    end: Sequence[Tolerance] = ()
    time: float = UNSET
    age: float = 0.0


class GoalFeedback(NamedTuple):
    """State of a goal: time from the start [s], desired and actual (2, n) [rad], [rad/s]."""

    names: tuple[str, ...]
    time: float
    desired: np.ndarray
    actual: np.ndarray


class GoalFollower:
    """Supervision of one goal in a `TrajectoryPlayer`."""

    def __init__(
        self, player: TrajectoryPlayer, names: Sequence[str], lower: np.ndarray, upper: np.ndarray, slowing: np.ndarray
    ) -> None:
        """Set up.

        Args:
            slowing: deceleration after failure or cancel (n,) [rad/s^2].
        """
        self.player, self._names = player, tuple(names)
        self._index = {name: k for k, name in enumerate(names)}
        self._lower, self._upper, self._slowing = lower, upper, slowing
        self._spline: TrajectorySpline | None = None
        self._rows = np.zeros(0, dtype=int)
        self._path = self._end = np.zeros((2, 0))
        self._time = np.inf

    def begin(
        self, goal: TrajectoryGoal, q: np.ndarray, v: np.ndarray, defaults: DefaultTolerances, now: float = 0.0
    ) -> Outcome | None:
        """Start a goal; return a refusal, or None.

        Args:
            q: reference (n,) [rad].
            v: reference (n,) [rad/s].
        """
        if refused := self._refused(goal):
            return refused
        names = tuple(goal.names)
        rows = np.array([self._index[n] for n in names], dtype=int)
        try:
            path = self._tolerances(names, goal.path, defaults.path)
            end = self._tolerances(names, goal.end, defaults.end)
            points, delay = scheduled(goal.points, goal.age)
            self.player.start(names, points, q, v, now + delay if delay > 0.0 else -np.inf)
        except OutOfDateError as e:
            return Outcome(GoalCode.OLD_HEADER_TIMESTAMP, str(e))
        except HumanoidError as e:
            return Outcome(GoalCode.INVALID_GOAL, str(e))
        self._spline, self._rows, self._path, self._end = self.player.spline, rows, path, end
        time = goal.time or defaults.time
        self._time = time if time > 0.0 else np.inf
        return None

    def _refused(self, goal: TrajectoryGoal) -> Outcome | None:
        if strange := [n for n in goal.names if n not in self._index]:
            return Outcome(GoalCode.INVALID_JOINTS, str(UnknownNameError("joint", strange[0], self._names)))
        if not goal.names or len(set(goal.names)) < len(goal.names):
            return Outcome(GoalCode.INVALID_JOINTS, "each joint of the trajectory must be named once")
        for k, p in enumerate(goal.points):
            for name, angle in zip(goal.names, p.q, strict=False):
                j = self._index[name]
                if not self._lower[j] <= angle <= self._upper[j]:
                    where = f"[{self._lower[j]:.3f}, {self._upper[j]:.3f}]"
                    return Outcome(GoalCode.INVALID_GOAL, f"point {k}: {name} at {angle:.3f} rad, its range is {where}")
        return None

    @staticmethod
    def _tolerances(names: tuple[str, ...], given: Sequence[Tolerance], default: float) -> np.ndarray:
        """Return tolerances (2, k)."""
        out = np.full((2, len(names)), np.inf)
        out[0] = default or np.inf
        for t in given:
            if t.name not in names:
                raise UnknownNameError("joint", t.name, names, hint="(tolerances apply to joints of the trajectory)")
            for row, value in enumerate((t.position, t.velocity)):
                if value != NONE and not value >= 0.0:
                    raise ConfigError(f"tolerance of {t.name}: {value:g} is neither positive, nor 0, nor -1")
                if value != UNSET:
                    out[row, names.index(t.name)] = value if value > 0.0 else np.inf
        return out

    def update(self, now: float, q: np.ndarray, v: np.ndarray) -> Outcome | None:
        """Return the outcome once known; the caller then ends the goal.

        Args:
            q: measured (n,) [rad].
            v: measured (n,) [rad/s].
        """
        assert self._spline is not None, "no goal is active"
        if self.player.spline is not self._spline:
            return Outcome(GoalCode.INVALID_GOAL, "another source is commanding: a trajectory, or joint_commands")
        time = self.player.elapsed(now)
        if not np.isfinite(time):
            return None
        off = np.abs(np.array([q[self._rows], v[self._rows]]) - np.array(self._spline.at(time)))
        if time < self._spline.duration:
            if (off > self._path).any():
                return Outcome(GoalCode.PATH_TOLERANCE_VIOLATED, self._worst(off, self._path, "off the trajectory"))
            return None
        if ((off <= self._end) | np.isinf(self._end)).all():
            return Outcome(GoalCode.SUCCESSFUL)
        if time > self._spline.duration + self._time:
            return Outcome(GoalCode.GOAL_TOLERANCE_VIOLATED, self._worst(off, self._end, "off the goal"))
        return None

    def _worst(self, off: np.ndarray, limit: np.ndarray, where: str) -> str:
        share = np.where(np.isfinite(limit), off / limit, 0.0)
        row, k = np.unravel_index(int(np.argmax(np.where(np.isfinite(share), share, np.inf))), share.shape)
        unit = ("rad", "rad/s")[row]
        name = self._names[self._rows[k]]
        return f"{name} {off[row, k]:.3f} {unit} {where} (tolerance {limit[row, k]:g})"

    def feedback(self, now: float, q: np.ndarray, v: np.ndarray) -> GoalFeedback:
        """Return the state for measured q (n,) [rad], v (n,) [rad/s]."""
        assert self._spline is not None, "no goal is active"
        time = self.player.elapsed(now)
        time = time if np.isfinite(time) else 0.0
        desired, actual = np.array(self._spline.at(time)), np.array([q[self._rows], v[self._rows]])
        return GoalFeedback(self._spline.names, time, desired, actual)

    def give_up(self) -> None:
        """Stop commanding, unless another source does."""
        if self.player.spline is self._spline:
            self.player.stop()

    def halt(self, q: np.ndarray, v: np.ndarray) -> None:
        """Decelerate to rest from references q (n,) [rad], v (n,) [rad/s]."""
        if self._spline is None or self.player.spline is not self._spline:
            return
        rows = self._rows
        time = float(np.max(np.abs(v[rows]) / self._slowing[rows], initial=0.0))
        end = np.clip(q[rows] + 0.5 * time * v[rows], self._lower[rows], self._upper[rows])
        self.player.start(self._spline.names, [TrajectoryPoint(time, end.tolist(), [0.0] * len(rows))], q, v)
