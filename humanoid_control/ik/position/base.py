"""What position-based solvers share: solve to the end, or be one tick of the common interface."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from humanoid_control.ik.position.stopping import Stop, StopSettings
from humanoid_control.ik.solvers.integrate import explicit_euler
from humanoid_control.ik.solvers.interface import StepReport
from humanoid_control.ik.solvers.moving import Moving
from humanoid_control.ik.tasks import Task
from humanoid_control.robots import Robot


@dataclass(frozen=True)
class Solution:
    """Where an iteration ended.

    Attributes:
        q: (nq,). residual: length of the weighted residual there.
        iterations: how many. stop: why it ended.
        history: residual before each iteration and at the end.
        residuals, jacobians: how often each was computed.
    """

    q: np.ndarray
    residual: float
    iterations: int
    stop: Stop
    history: tuple[float, ...]
    residuals: int
    jacobians: int

    @property
    def converged(self) -> bool:
        """Whether the targets are met."""
        return self.stop is Stop.CONVERGED


class PositionSolver(ABC):
    """Iterates from a start, usually the posture of the tick before: that is the warm start.

    The time it takes is not known beforehand, so these are not for the control loop; `step` is there to compare.
    """

    def __init__(self, robot: Robot, stop: StopSettings | None = None, moving: Moving | None = None) -> None:
        self.robot, self.stop, self.moving = robot, stop or StopSettings(), moving or Moving(robot)
        self.data = robot.model.createData()

    @abstractmethod
    def solve(self, q: np.ndarray, tasks: Sequence[Task]) -> Solution:
        """Iterate from q (nq,) until a criterion ends it."""

    def reset(self) -> None:  # noqa: B027 - part of the interface, nothing to do here
        """There is nothing to forget."""

    def step(self, q: np.ndarray, tasks: Sequence[Task], dt: float) -> tuple[np.ndarray, np.ndarray, StepReport]:
        """Solve from q, then go there as fast as the joints may; arguments as of every solver."""
        found = self.solve(q, tasks)
        v = pin.difference(self.robot.model, q, found.q) / dt
        ok = bool(np.isfinite(v).all())
        v = v if ok else np.zeros(self.robot.nv)
        speed = np.abs(v[self.robot.iv :]) / self.robot.velocity
        scale = min(1.0, 1.0 / max(float(speed.max(initial=0.0)), 1e-300))
        q_next = explicit_euler(self.robot, q, scale * v, dt, keep_range=True)
        note = "" if found.converged else found.stop.value
        report = StepReport(ok, found.residual, speed_scale=scale, iterations=found.iterations, note=note)
        return q_next, scale * v, report
