"""From tasks to rows: compiled where the kind of task is known, by the task itself where not."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pinocchio as pin

from humanoid_control.ik.solvers.moving import Moving
from humanoid_control.ik.solvers.rows import Rows
from humanoid_control.ik.solvers.task_table import TABLED, TaskTable
from humanoid_control.ik.tasks import Task
from humanoid_control.robots import Robot


def stacked(
    robot: Robot, data: pin.Data, q: np.ndarray, tasks: Sequence[Task], moving: Moving, most_gain: float = np.inf
) -> Rows:
    """The rows of some tasks, each asked for its own, at what `prepare` has computed; tasks of weight 0 have none.

    Args:
        robot, data, q: where.
        tasks: which.
        moving: the free velocities.
        most_gain: gains above it are taken as it [1/s].
    """
    Js, vs, levels, parts, start = [], [], [], [], 0
    for task in tasks:
        J, v = task.rows(robot, data, q)
        if task.gain > most_gain:
            v = v - (task.gain - most_gain) * task.error(robot, data, q)
        w = task.weight
        if w == 0.0:
            J, v = J[:0], v[:0]
        elif w != 1.0:
            J, v = w * J, w * v
        Js.append(J)
        vs.append(v)
        levels += [task.level] * len(v)
        parts.append(slice(start, start + len(v)))
        start += len(v)
    if not start:
        return Rows(np.zeros((0, moving.k)), np.zeros(0), np.zeros(0, dtype=int), parts)
    J = np.ascontiguousarray(moving.reduce(np.concatenate(Js)))  # what kernels are compiled for
    return Rows(J, np.concatenate(vs), np.array(levels, dtype=int), parts)


class TaskStack:
    """The same rows tick after tick: tables are kept while the set of tasks stays."""

    def __init__(self, robot: Robot, moving: Moving) -> None:
        self.robot, self.moving = robot, moving
        self._key: tuple[tuple[int, bool, int], ...] | None = None

    def rows(self, data: pin.Data, q: np.ndarray, tasks: Sequence[Task], most_gain: float = np.inf) -> Rows:
        """As `stacked`; the arrays may be used again by the next call."""
        key = tuple((id(t), t.weight > 0.0, t.level) for t in tasks)
        if key != self._key:
            self._key, self._tasks = key, list(tasks)  # keeping them keeps their ids
            quick = [type(t) in TABLED and t.weight > 0.0 for t in tasks]
            self._table = TaskTable(self.robot, self.moving, [t for t, w in zip(tasks, quick, strict=True) if w])
            self._slow = [t for t, w in zip(tasks, quick, strict=True) if not w]
            self._quick = quick
        table = self._table.fill(data, q, most_gain)
        if not self._slow:
            return table
        others = stacked(self.robot, data, q, self._slow, self.moving, most_gain)
        m, quick_parts, slow_parts = len(table.v), iter(table.parts), iter(others.parts)
        parts = [next(quick_parts) if w else slice((s := next(slow_parts)).start + m, s.stop + m) for w in self._quick]
        J, v = np.concatenate([table.J, others.J]), np.concatenate([table.v, others.v])
        return Rows(J, v, np.concatenate([table.level, others.level]), parts)
