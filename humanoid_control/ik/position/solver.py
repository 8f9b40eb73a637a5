"""Position solvers: base, Newton-Raphson (Schwienbacher 2014, algorithm 4.1), Levenberg-Marquardt."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np
import pinocchio as pin
from scipy.linalg import lapack

from humanoid_control.errors import ConfigError, check_time_step
from humanoid_control.ik.free_velocities import DofSelection
from humanoid_control.ik.integrate import explicit_euler
from humanoid_control.ik.solver import StepReport
from humanoid_control.ik.tasks.task import Task, prepare
from humanoid_control.robots.robot import Robot


class Stop(Enum):
    """Reason for the end of an iteration."""

    CONVERGED = "converged"
    GRADIENT = "gradient too small"
    PROGRESS = "progress too small"
    ITERATIONS = "iteration limit"
    SINGULAR = "rows depend on each other"


@dataclass(frozen=True)
class StopSettings:
    """Stopping criteria; any one suffices (table 4.1; its formula prints 'and').

    Attributes:
        converged: eps_c, bound on the weighted residual norm.
        progress: eps_p, bound on its change.
        gradient: eps_g, bound on the gradient norm.
    """

    iterations: int = 100
    converged: float = 1e-8
    progress: float = 1e-12
    gradient: float = 1e-10

    def __post_init__(self) -> None:
        if not (self.iterations >= 0 and self.converged > 0 and self.progress >= 0 and self.gradient >= 0):
            raise ConfigError("stopping: iterations >= 0, converged > 0, progress >= 0 and gradient >= 0 are needed")

    def fired(
        self, k: int, residual: np.ndarray, previous: np.ndarray | None, gradient: np.ndarray | None
    ) -> Stop | None:
        """Return the criterion that ends the iteration, the best one first; None: continue."""
        if float(np.linalg.norm(residual)) < self.converged:
            return Stop.CONVERGED
        if gradient is not None and float(np.linalg.norm(gradient)) < self.gradient:
            return Stop.GRADIENT
        comparable = previous is not None and len(previous) == len(residual)  # the row of a half-space comes and goes
        if comparable and float(np.linalg.norm(residual - previous)) < self.progress:
            return Stop.PROGRESS
        return Stop.ITERATIONS if k >= self.iterations else None


@dataclass(frozen=True)
class Solution:
    """Outcome of an iteration."""

    q: np.ndarray
    residual: float
    iterations: int
    stop: Stop
    history: tuple[float, ...]
    residuals: int
    jacobians: int

    @property
    def converged(self) -> bool:
        """True if the targets are met."""
        return self.stop is Stop.CONVERGED


class TaskResidual:
    """Residual r(q) = f(q) - x of tasks and its Jacobian by the free velocities.

    Orientation rows use the geometric Jacobian, which differs from the derivative of the angle-axis error by a factor
    that preserves the error's direction. The gradient J^T r is therefore exact.
    """

    def __init__(self, robot: Robot, tasks: Sequence[Task], dofs: DofSelection, data: pin.Data) -> None:
        self.robot, self.tasks = robot, [t for t in tasks if t.weight > 0]
        self.dofs, self.data = dofs, data
        self.residuals = self.jacobians = 0

    def residual(self, q: np.ndarray) -> np.ndarray:
        """Return the weighted residual (m,)."""
        self.residuals += 1
        prepare(self.robot, self.data, q)
        return self._residual(q)

    def _residual(self, q: np.ndarray) -> np.ndarray:
        parts = [-t.weight * t.error(self.robot, self.data, q) for t in self.tasks]
        return np.concatenate(parts) if parts else np.zeros(0)

    def residual_and_jacobian(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return r (m,) and J (m, k)."""
        r = self.residual(q)
        self.jacobians += 1
        if not len(r):
            return r, np.zeros((0, self.dofs.k))
        J = np.concatenate([t.weight * t.rows(self.robot, self.data, q)[0] for t in self.tasks])
        return r, self.dofs.reduce(J)

    def moved(self, q: np.ndarray, step: np.ndarray) -> np.ndarray:
        """Return the configuration after a step (k,) of the free velocities."""
        return pin.integrate(self.robot.model, q, self.dofs.expand(step))


class PositionSolver(ABC):
    """Base of iterative solvers; `step` is for comparisons, since the computing time is not bounded."""

    def __init__(self, robot: Robot, stop: StopSettings | None = None, dofs: DofSelection | None = None) -> None:
        self.robot, self.stop, self.dofs = robot, stop or StopSettings(), dofs or DofSelection(robot)
        self.data = robot.model.createData()

    @abstractmethod
    def solve(self, q: np.ndarray, tasks: Sequence[Task]) -> Solution:
        """Iterate from q (nq,) until a criterion ends the iteration."""

    def reset(self) -> None:  # noqa: B027 - part of the interface, nothing to do here
        """No state to discard."""

    def step(self, q: np.ndarray, tasks: Sequence[Task], dt: float) -> tuple[np.ndarray, np.ndarray, StepReport]:
        """Solve from q, then move there as fast as the joints permit; see `IkSolver.step`."""
        check_time_step(dt, "inverse kinematics")
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


class NewtonRaphson(PositionSolver):
    """q := q - J# r with J# = W^-1 J^T (J W^-1 J^T)^-1 (4.3): quadratic convergence near regular roots.

    Attributes:
        refresh: iterations between Jacobians.
    """

    def __init__(
        self, robot: Robot, stop: StopSettings | None = None, dofs: DofSelection | None = None, refresh: int = 1
    ) -> None:
        super().__init__(robot, stop, dofs)
        if refresh < 1:
            raise ConfigError(f"Newton-Raphson: refresh must be 1 or more, got {refresh}")
        self.refresh = refresh

    def solve(self, q: np.ndarray, tasks: Sequence[Task]) -> Solution:
        """Iterate from q (nq,).

        Raises:
            ConfigError: if there are more rows than free velocities.
        """
        problem, mobility = TaskResidual(self.robot, tasks, self.dofs, self.data), self.dofs.mobility
        previous: np.ndarray | None = None
        history: list[float] = []
        k = 0
        while True:
            if k % self.refresh == 0:
                r, J = problem.residual_and_jacobian(q)
                if len(r) > self.dofs.k:
                    raise ConfigError(
                        f"Newton-Raphson: {len(r)} rows for {self.dofs.k} free velocities; "
                        "leave tasks out, or use least squares"
                    )
                WJ = mobility[:, None] * J.T
                factor, info = lapack.dpotrf(J @ WJ, lower=1) if len(r) else (np.zeros((0, 0)), 0)
            else:
                r = problem.residual(q)
            history.append(float(np.linalg.norm(r)))
            end = self.stop.fired(k, r, previous, None)
            if end is None and (info != 0 or not np.isfinite(r).all() or len(r) != len(factor)):
                end = Stop.SINGULAR
            if end is not None:
                return Solution(q, history[-1], k, end, tuple(history), problem.residuals, problem.jacobians)
            q = problem.moved(q, -WJ @ lapack.dpotrs(factor, r, lower=1)[0])
            previous, k = r, k + 1


class LevenbergMarquardt(PositionSolver):
    """d = -(J^T J + mu E)^-1 J^T r with adapted mu (Nielsen 1999).

    Steps must lower the residual; for unreachable targets it ends at a local minimum.

    Attributes:
        start: initial mu relative to the largest diagonal entry of J^T J.
    """

    def __init__(
        self, robot: Robot, stop: StopSettings | None = None, dofs: DofSelection | None = None, start: float = 1e-3
    ) -> None:
        super().__init__(robot, stop, dofs)
        self.start = start

    def solve(self, q: np.ndarray, tasks: Sequence[Task]) -> Solution:
        """Iterate from q (nq,)."""
        problem = TaskResidual(self.robot, tasks, self.dofs, self.data)
        r, J = problem.residual_and_jacobian(q)
        H, g = J.T @ J, J.T @ r
        diagonal = np.diag_indices_from(H)
        mu, rise = self.start * max(float(H[diagonal].max(initial=0.0)), 1e-12), 2.0
        previous: np.ndarray | None = None
        history, k = [float(np.linalg.norm(r))], 0
        while True:
            end = self.stop.fired(k, r, previous, g)
            if end is None and (not np.isfinite(r).all() or mu > 1e14):
                end = Stop.PROGRESS
            if end is not None:
                return Solution(q, history[-1], k, end, tuple(history), problem.residuals, problem.jacobians)
            k += 1
            B = H.copy()
            B[diagonal] += mu
            _, d, info = lapack.dposv(B, -g, lower=1)
            there = problem.moved(q, d)
            r_there = problem.residual(there) if info == 0 else r
            predicted = 0.5 * float(d @ (mu * d - g))
            gained = 0.5 * (float(r @ r) - float(r_there @ r_there))
            if info == 0 and gained > 0.0 and predicted > 0.0:
                previous, q = r, there
                r, J = problem.residual_and_jacobian(q)
                H, g = J.T @ J, J.T @ r
                mu, rise = mu * max(1 / 3, 1 - (2 * gained / predicted - 1) ** 3), 2.0
            else:
                mu, rise, previous = mu * rise, 2 * rise, None
            history.append(float(np.linalg.norm(r)))
