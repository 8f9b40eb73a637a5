"""Goals of trajectories: checked, watched while they are executed, and ended with an outcome and its reason.

The meaning of tolerances and codes is that of the action control_msgs/FollowJointTrajectory.
"""

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

UNSET, NONE = 0.0, -1.0  # tolerances: as the robot's own are; there is none


class GoalCode(enum.IntEnum):
    """Error codes of the action."""

    SUCCESSFUL = 0
    INVALID_GOAL = -1
    INVALID_JOINTS = -2
    OLD_HEADER_TIMESTAMP = -3
    PATH_TOLERANCE_VIOLATED = -4
    GOAL_TOLERANCE_VIOLATED = -5


class Outcome(NamedTuple):
    """Outcome of a goal, and one line that says why."""

    code: GoalCode
    text: str = ""


class Tolerance(NamedTuple):
    """Tolerance of one joint: distance from the trajectory that it may have; UNSET or NONE. [rad], [rad/s]."""

    name: str
    position: float = UNSET
    velocity: float = UNSET


class DefaultTolerances(NamedTuple):
    """Tolerances of all joints of which a goal says nothing; 0: none.

    Attributes:
        path: on the way [rad]. end: at the end [rad]. time: after the end, in which it must be reached [s].
    """

    path: float = 0.0
    end: float = 0.0
    time: float = 0.0


class TrajectoryGoal(NamedTuple):
    """A goal as a client sends it.

    Attributes:
        names, points: of the trajectory. path: tolerances on the way. end: tolerances at the end.
        time: after the end, in which the end must be reached [s]; UNSET, or below zero: for ever.
        age: of the trajectory's stamp [s]; negative: it begins later; 0: it has none.
    """

    names: Sequence[str]
    points: Sequence[TrajectoryPoint]
    path: Sequence[Tolerance] = ()
    end: Sequence[Tolerance] = ()
    time: float = UNSET
    age: float = 0.0


class GoalFeedback(NamedTuple):
    """State of a goal: its joints, time from the begin [s], (2, n) positions and velocities [rad], [rad/s]."""

    names: tuple[str, ...]
    time: float
    desired: np.ndarray
    actual: np.ndarray


class GoalFollower:
    """One goal at a time on its way through a `TrajectoryPlayer`, which whoever else commands the robot may take over.

    Attributes:
        player: that executes the trajectory.
    """

    def __init__(
        self, player: TrajectoryPlayer, names: Sequence[str], lower: np.ndarray, upper: np.ndarray, slowing: np.ndarray
    ) -> None:
        """Prepare.

        Args:
            player: that executes trajectories. names: of all n joints of the robot.
            lower, upper: (n,) range in which points must be [rad].
            slowing: (n,) deceleration with which a goal that fails or is cancelled comes to rest [rad/s^2].
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
        """Execute a goal in place of the one before; the reason where it is refused, and what runs goes on.

        Args:
            goal: as sent. q, v: (n,) reference now [rad], [rad/s]. defaults: where the goal says nothing.
            now: monotonic time [s].
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
        """Reason that speaks against a goal, of those that the player does not look at."""
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
        """Tolerances (2, k) of positions and velocities of the joints of a goal.

        Raises:
            UnknownNameError: of a joint that is not in the trajectory. ConfigError: a value that is none.
        """
        out = np.full((2, len(names)), np.inf)
        out[0] = default or np.inf
        for t in given:
            if t.name not in names:
                raise UnknownNameError("joint", t.name, names, hint="(tolerances are of joints of the trajectory)")
            for row, value in enumerate((t.position, t.velocity)):
                if value != NONE and not value >= 0.0:
                    raise ConfigError(f"tolerance of {t.name}: {value:g} is neither positive, nor 0, nor -1")
                if value != UNSET:
                    out[row, names.index(t.name)] = value if value > 0.0 else np.inf
        return out

    def update(self, now: float, q: np.ndarray, v: np.ndarray) -> Outcome | None:
        """Outcome of the goal, once it has one; then it is over, and where it failed the robot comes to rest.

        Args:
            now: monotonic time [s]. q, v: (n,) measured [rad], [rad/s]; NaN: not measured.
        """
        assert self._spline is not None, "no goal was begun"
        if self.player.spline is not self._spline:
            return Outcome(GoalCode.INVALID_GOAL, "somebody else commands: another trajectory, or joint_commands")
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
        """Line about the joint that is the most beyond its tolerance."""
        share = np.where(np.isfinite(limit), off / limit, 0.0)
        row, k = np.unravel_index(int(np.argmax(np.where(np.isfinite(share), share, np.inf))), share.shape)
        unit = ("rad", "rad/s")[row]
        name = self._names[self._rows[k]]
        return f"{name} {off[row, k]:.3f} {unit} {where} (tolerance {limit[row, k]:g})"

    def feedback(self, now: float, q: np.ndarray, v: np.ndarray) -> GoalFeedback:
        """State of the goal at a time, for measured q, v (n,) [rad], [rad/s]."""
        assert self._spline is not None, "no goal was begun"
        time = self.player.elapsed(now)
        time = time if np.isfinite(time) else 0.0
        desired, actual = np.array(self._spline.at(time)), np.array([q[self._rows], v[self._rows]])
        return GoalFeedback(self._spline.names, time, desired, actual)

    def give_up(self) -> None:
        """Command nothing more, unless somebody else does."""
        if self.player.spline is self._spline:
            self.player.stop()

    def halt(self, q: np.ndarray, v: np.ndarray) -> None:
        """Come to rest where the references q, v (n,) [rad], [rad/s] lead, each joint at its deceleration at most."""
        if self._spline is None or self.player.spline is not self._spline:
            return
        rows = self._rows
        time = float(np.max(np.abs(v[rows]) / self._slowing[rows], initial=0.0))
        end = np.clip(q[rows] + 0.5 * time * v[rows], self._lower[rows], self._upper[rows])
        self.player.start(self._spline.names, [TrajectoryPoint(time, end.tolist(), [0.0] * len(rows))], q, v)
