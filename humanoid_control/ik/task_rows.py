"""Stacked weighted rows of tasks; `TaskTable` computes the tasks that it supports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from humanoid_control.ik.free_velocities import DofSelection
from humanoid_control.ik.task_table import TaskTable, is_tabled
from humanoid_control.ik.tasks.task import Task
from humanoid_control.robots.robot import Robot


@dataclass(frozen=True)
class Rows:
    """Weighted rows of tasks with respect to the free velocities."""

    J: np.ndarray
    v: np.ndarray
    level: np.ndarray
    parts: list[slice]


def stacked(
    robot: Robot, data: pin.Data, q: np.ndarray, tasks: Sequence[Task], dofs: DofSelection, max_gain: float = np.inf
) -> Rows:
    """Stack the rows of tasks, each computed by the task itself."""
    Js, vs, levels, parts, start = [], [], [], [], 0
    for task in tasks:
        J, v = task.rows(robot, data, q)
        if task.gain > max_gain:
            v = v - (task.gain - max_gain) * task.error(robot, data, q)
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
        return Rows(np.zeros((0, dofs.k)), np.zeros(0), np.zeros(0, dtype=int), parts)
    J = np.ascontiguousarray(dofs.reduce(np.concatenate(Js)))  # the memory layout for which the kernels are compiled
    return Rows(J, np.concatenate(vs), np.array(levels, dtype=int), parts)


class TaskStack:
    """Cache of `stacked` for an unchanged set of tasks."""

    def __init__(self, robot: Robot, dofs: DofSelection) -> None:
        self.robot, self.dofs = robot, dofs
        self._key: tuple[tuple[int, bool, int], ...] | None = None

    def rows(self, data: pin.Data, q: np.ndarray, tasks: Sequence[Task], max_gain: float = np.inf) -> Rows:
        """Return the rows as `stacked`; the next call may reuse the arrays."""
        key = tuple((id(t), t.weight > 0.0, t.level) for t in tasks)
        if key != self._key:
            self._key, self._tasks = key, list(tasks)  # keeps the tasks alive, so that their ids stay unique
            quick = [is_tabled(t) and t.weight > 0.0 for t in tasks]
            self._table = TaskTable(self.robot, self.dofs, [t for t, w in zip(tasks, quick, strict=True) if w])
            self._slow = [t for t, w in zip(tasks, quick, strict=True) if not w]
            self._quick = quick
        J, v = self._table.fill(q, max_gain)
        table = Rows(J, v, self._table.level, self._table.parts)
        if not self._slow:
            return table
        others = stacked(self.robot, data, q, self._slow, self.dofs, max_gain)
        m, quick_parts, slow_parts = len(table.v), iter(table.parts), iter(others.parts)
        parts = [next(quick_parts) if w else slice((s := next(slow_parts)).start + m, s.stop + m) for w in self._quick]
        J, v = np.concatenate([table.J, others.J]), np.concatenate([table.v, others.v])
        return Rows(J, v, np.concatenate([table.level, others.level]), parts)
