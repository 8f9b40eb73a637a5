"""The one interface of all solvers, and what a tick reports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from humanoid_control.errors import ConfigError
from humanoid_control.ik.solvers.switching import SwitchSettings
from humanoid_control.ik.tasks import Task


@dataclass(frozen=True)
class SolverSettings:
    """What differential solvers have in common.

    Attributes:
        null_gain: alpha_N, how eagerly the null space lowers the objectives (4.12).
        gain_share: a task's gain is held to this share of 1 / dt: up to 1 an error dies away without overshoot, from
            2 on the loop is unstable (4.15 in steps of dt); infinite: gains are taken as they are.
        clamp: keep joint speed limits, by slowing the null-space motion first and all of it after that.
        keep_range: keep joint angles inside their range.
        switch: how the set of tasks may change without a jump of velocity; None: it may jump.
    """

    null_gain: float = 1.0
    gain_share: float = 1.0
    clamp: bool = True
    keep_range: bool = True
    switch: SwitchSettings | None = None

    def __post_init__(self) -> None:
        if not self.null_gain >= 0 or not self.gain_share > 0:
            raise ConfigError(
                f"solver: null_gain >= 0 and gain_share > 0 are needed, got {self.null_gain:g}, {self.gain_share:g}"
            )


@dataclass(frozen=True)
class StepReport:
    """What became of one tick.

    Attributes:
        ok: the answer is what the method promises; if not, `note` says what was done instead.
        unserved: length of J v - v_desired over all rows, weighted: what the tasks wanted and did not get this tick.
        manipulability: sqrt(det(J W^-1 J^T)) of the weighted rows; NaN where the method does not compute it.
        damping: lambda in use.
        null_scale, speed_scale: factors by which the null-space motion, and then everything, was slowed.
        iterations: 1 for differential methods.
        note: one line for the log, or empty.
    """

    ok: bool = True
    unserved: float = 0.0
    manipulability: float = float("nan")
    damping: float = 0.0
    null_scale: float = 1.0
    speed_scale: float = 1.0
    iterations: int = 1
    note: str = ""


class IkSolver(Protocol):
    """Whatever turns tasks into the next configuration."""

    def step(self, q: np.ndarray, tasks: Sequence[Task], dt: float) -> tuple[np.ndarray, np.ndarray, StepReport]:
        """The next configuration (nq,), the velocity (nv,) that leads there, and a report.

        Args:
            q: (nq,) where the robot is.
            tasks: what to do; with their `level` where the solver knows priorities.
            dt: [s] > 0.
        """
        ...

    def reset(self) -> None:
        """Forget what earlier ticks left."""
        ...
