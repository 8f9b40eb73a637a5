"""Interface of all solvers of inverse kinematics: tasks in; the next configuration, its velocity and a report out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from humanoid_control.ik.tasks.task import Task


@dataclass(frozen=True)
class StepReport:
    """Report of one tick.

    Attributes:
        ok: the answer is what the method promises; if not, `note` says what was done instead.
        task_residual: length of J v - v_desired over all rows, weighted: what the tasks did not get this tick.
        manipulability: sqrt(det(J W^-1 J^T)) of the weighted rows; NaN where the method does not compute it.
        damping: lambda in use.
        null_scale, speed_scale: factors by which the null-space motion, and then everything, was slowed.
        iterations: 1 for differential methods.
        note: one line for the log, or empty.
    """

    ok: bool = True
    task_residual: float = 0.0
    manipulability: float = float("nan")
    damping: float = 0.0
    null_scale: float = 1.0
    speed_scale: float = 1.0
    iterations: int = 1
    note: str = ""


class IkSolver(Protocol):
    """A solver that turns tasks into the next configuration."""

    def step(self, q: np.ndarray, tasks: Sequence[Task], dt: float) -> tuple[np.ndarray, np.ndarray, StepReport]:
        """The next configuration (nq,), the velocity (nv,) that leads there, and a report.

        Args:
            q: (nq,) configuration now.
            tasks: with their `level` where the solver knows priorities.
            dt: [s] > 0.
        """
        ...

    def reset(self) -> None:
        """Forget what earlier ticks left."""
        ...
