"""Our way to walk with little momentum: the constrained solver, with momentum as one of its tasks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from humanoid_control.ik.momentum_costs import RangeTask
from humanoid_control.ik.momentum_tasks import AngularMomentumTask
from humanoid_control.ik.momentum_walk import WalkTask
from humanoid_control.ik.momentum_walkers import VERTICAL, Walker
from humanoid_control.ik.safe_types import IkSettings
from humanoid_control.ik.tasks import PostureTask, Task
from humanoid_control.ik.velocity_ik import VelocityIk
from humanoid_control.robots import Robot

WAIST_WEIGHT = 3.0  # of its posture against the arms': a pelvis that turns far takes reach from the legs
OURS = IkSettings(damping=0.02, smoothing=0.05, margin=0.01, activation=0.05, approach=30.0)


class ConstrainedWalker(Walker):
    """Ours: one quadratic program; momentum is a task, and range, speed, acceleration and self-collision constraints.

    Attributes:
        momentum: the task about the vertical, or about one axis alone. tasks: all tasks.
    """

    def __init__(
        self,
        robot: Robot,
        walk: WalkTask,
        axes: tuple[bool, bool, bool] = VERTICAL,
        settings: IkSettings = OURS,
        weight: float = 1.0,
        level_weight: float = 0.15,
    ) -> None:
        """Make it.

        Args:
            robot, walk: who and what.
            axes: of the world, about which there should be no momentum.
            settings: of the solver.
            weight: of the momentum about z.
            level_weight: of that about x and y, which arms cannot cancel: large, it would take them from z.
        """
        super().__init__(robot, walk)
        posture = np.zeros(robot.n)
        posture[walk.comfortable] = 1.0
        posture[walk.groups.waist] *= WAIST_WEIGHT
        self.momentum = AngularMomentumTask(axes=(False, False, axes[2]), weight=weight)
        level = AngularMomentumTask(axes=(axes[0], axes[1], False), weight=level_weight)
        keep = PostureTask(walk.posture, posture, weight=0.07, gain=3.0)
        self.tasks: list[Task] = [walk, self.momentum, keep, RangeTask(walk.free)]
        if axes[0] or axes[1]:
            self.tasks.append(level)
        self.solver = VelocityIk(robot, replace(settings, base_velocity=10.0))

    def step(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        result = self.solver.step(q, self.tasks, self.walk.dt)
        return result.v, result.q
