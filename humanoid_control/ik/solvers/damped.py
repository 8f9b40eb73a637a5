"""Damped least squares: near singularities the tasks give way so that the joints stay slow (section 4.4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from humanoid_control.errors import ConfigError
from humanoid_control.ik.objectives import Objective, manipulability
from humanoid_control.ik.solvers.base import Resolved, VelocitySolver
from humanoid_control.ik.solvers.interface import SolverSettings
from humanoid_control.ik.solvers.moving import Moving
from humanoid_control.ik.solvers.resolved_rate import weighted_step
from humanoid_control.ik.solvers.rows import Rows
from humanoid_control.ik.solvers.stack import stacked
from humanoid_control.ik.tasks import Task, prepare
from humanoid_control.robots import Robot


@dataclass(frozen=True)
class DampingSchedule:
    """How lambda follows the manipulability: none where it is high, rising smoothly below a threshold.

    lambda^2 = most^2 (1 - w / threshold)^2 for w < threshold, else 0 (Nakamura and Hanafusa 1986).

    Attributes:
        most: lambda at a singularity.
        threshold: of w = sqrt(det(J W^-1 J^T)); infinite: always `most`.
    """

    most: float = 0.05
    threshold: float = float("inf")

    def __post_init__(self) -> None:
        if not (self.most > 0 and self.threshold >= 0):
            raise ConfigError(f"damping: most > 0 and threshold >= 0, got {self.most:g} and {self.threshold:g}")

    def damping(self, w: float) -> float:
        """lambda at the manipulability w."""
        return 0.0 if w >= self.threshold else self.most * (1.0 - w / self.threshold)

    @staticmethod
    def typical(
        robot: Robot, tasks: Sequence[Task], moving: Moving | None = None, share: float = 0.1, most: float = 0.05
    ) -> DampingSchedule:
        """A threshold that is a share of the median manipulability of some tasks over random postures.

        Its scale depends on units and number of the rows, so that no fixed number fits all tasks.
        """
        rng, data, m, found = np.random.default_rng(0), robot.model.createData(), moving or Moving(robot), []
        for _ in range(40):
            q = robot.q(rng.uniform(np.maximum(robot.lower, -3.0), np.minimum(robot.upper, 3.0)))
            prepare(robot, data, q)
            J = stacked(robot, data, q, tasks, m).J
            found.append(manipulability(J * np.sqrt(m.mobility)))
        return DampingSchedule(most, share * float(np.median(found)))


class DampedLeastSquares(VelocitySolver):
    """The velocity that makes |J u - v|^2 + lambda^2 |u|_W^2 least, rows weighted by their tasks' weights.

    With lambda > 0 the null space is no longer square to the tasks: objectives disturb them a little.
    """

    def __init__(
        self,
        robot: Robot,
        objectives: Sequence[Objective] = (),
        settings: SolverSettings | None = None,
        moving: Moving | None = None,
        schedule: DampingSchedule | None = None,
    ) -> None:
        super().__init__(robot, objectives, settings, moving)
        self.schedule = schedule or DampingSchedule()

    def resolve(self, rows: Rows, v: np.ndarray, z: np.ndarray) -> Resolved:
        mobility, s = self.moving.mobility, self.schedule
        w = 0.0
        if np.isfinite(s.threshold):
            task, null, w, ok = weighted_step(rows.J, v, mobility, z)
            if ok and w >= s.threshold:
                return Resolved(task, null, w)
            w = w if ok else 0.0
        damping = s.damping(w)
        task, null, _, ok = weighted_step(rows.J, v, mobility, z, damping)
        return Resolved(task, null, w if np.isfinite(s.threshold) else float("nan"), damping, ok)
