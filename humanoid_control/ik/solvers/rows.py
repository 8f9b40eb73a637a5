"""The rows of all tasks under each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from humanoid_control.ik.solvers.moving import Moving
from humanoid_control.ik.tasks import Task
from humanoid_control.robots import Robot


@dataclass(frozen=True)
class Rows:
    """Weighted rows of the tasks, by the free velocities.

    Attributes:
        J: (m, k). v: (m,) what is wanted. level: (m,) priority of each.
        parts: for each task the rows that are its.
    """

    J: np.ndarray
    v: np.ndarray
    level: np.ndarray
    parts: list[slice]


def stacked(
    robot: Robot, data: pin.Data, q: np.ndarray, tasks: Sequence[Task], moving: Moving, most_gain: float = np.inf
) -> Rows:
    """The rows of some tasks at what `prepare` has computed; tasks of weight 0 have none.

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
    return Rows(moving.reduce(np.concatenate(Js)), np.concatenate(vs), np.array(levels, dtype=int), parts)
