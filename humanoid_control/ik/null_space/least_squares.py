"""Weighted least-squares solvers from task to joint velocities (Schwienbacher 2014, chapter 4).

`ResolvedRate` runs on Lola; `DampedLeastSquares`, `TruncatedSvd` and `BoundedNorm` handle singularities.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from humanoid_control.errors import ConfigError, check_time_step
from humanoid_control.ik.free_velocities import DofSelection
from humanoid_control.ik.integrate import explicit_euler
from humanoid_control.ik.null_space.compiled_rate import NUMBERS, CompiledRate, RateWork
from humanoid_control.ik.null_space.momentum_tracking import MomentumTracking
from humanoid_control.ik.null_space.objectives import SAMPLED_RANGE, Objective, SelfCollisionCost, manipulability
from humanoid_control.ik.null_space.velocity_solver import (
    NOT_FINITE,
    ResolvedVelocity,
    SolverSettings,
    VelocitySolver,
)
from humanoid_control.ik.null_space.weighted_step import factored_rows, null_part, task_part, weighted_step
from humanoid_control.ik.solver import StepReport
from humanoid_control.ik.task_rows import Rows, stacked
from humanoid_control.ik.tasks.task import Task, prepare
from humanoid_control.robots.robot import Robot

DEPENDENT = "tasks depend on each other: damped"
RESCUE_DAMPING = 1e-4  # relative to the largest row, for dependent rows


def rescue_damping(J: np.ndarray, mobility: np.ndarray) -> float:
    """Return the damping for dependent rows J (m, k); 0 if all rows are zero."""
    return RESCUE_DAMPING * float(np.sqrt(np.max(np.einsum("ij,j,ij->i", J, mobility, J), initial=0.0)))


# -------- Exact, damped where none exists


class ResolvedRate(VelocitySolver):
    """Exact tasks, objectives in their null space, least weighted velocity: the method on Lola.

    Priorities are ignored. Contradictory tasks and singular postures are damped and reported.
    """

    def __init__(
        self,
        robot: Robot,
        objectives: Sequence[Objective] = (),
        settings: SolverSettings | None = None,
        dofs: DofSelection | None = None,
        momentum: MomentumTracking | None = None,
    ) -> None:
        """Build the solver."""
        super().__init__(robot, objectives, settings, dofs)
        self.momentum, self._compiled = momentum, CompiledRate(robot)

    def __getstate__(self) -> dict[str, Any]:
        """Copy without the compiled tick, which holds addresses."""
        return vars(self) | {"_compiled": CompiledRate(self.robot)}

    def velocity(self, q: np.ndarray, tasks: Sequence[Task], dt: float) -> tuple[np.ndarray, StepReport]:
        _, v, report = self.step(q, tasks, dt)
        return v, report

    def step(self, q: np.ndarray, tasks: Sequence[Task], dt: float) -> tuple[np.ndarray, np.ndarray, StepReport]:
        check_time_step(dt, "inverse kinematics")
        q = np.ascontiguousarray(q, dtype=float)
        if self._switching is None and type(self) is ResolvedRate:
            work = RateWork(tasks, self.objectives, self.momentum, self.settings, self.dofs)
            outcome = self._compiled.run(work, q, dt)
            if outcome is not None:
                return self._result(outcome, q)
        return self._step_by_step(q, tasks, dt)

    def _result(self, outcome: np.ndarray, q: np.ndarray) -> tuple[np.ndarray, np.ndarray, StepReport]:
        nq, begun = self.robot.nq, q.copy()
        residual, w, null_scale, speed_scale, finite, demand = outcome[-NUMBERS:].tolist()
        self.v = outcome[nq:-NUMBERS]
        self._data.later(begun)
        if self.momentum is not None:
            self.momentum.demand = demand
        for objective in self.objectives:
            if isinstance(objective, SelfCollisionCost):
                objective.near = partial(objective.pairs.update, begun, objective.activation)
        ok, note = (True, "") if finite else (False, NOT_FINITE)
        return outcome[:nq], self.v, StepReport(ok, residual, w, 0.0, null_scale, speed_scale, 1, note)

    def _step_by_step(
        self, q: np.ndarray, tasks: Sequence[Task], dt: float
    ) -> tuple[np.ndarray, np.ndarray, StepReport]:
        if self.momentum is not None:
            self.momentum.place(q)
        v, report = super().velocity(q, tasks, dt)
        return explicit_euler(self.robot, q, v, dt, self.settings.keep_range), v, report

    def resolve(self, rows: Rows, v: np.ndarray, z: np.ndarray) -> ResolvedVelocity:
        J, m = rows.J, self.dofs
        w, WJ, U = factored_rows(J, m.mobility, 0.0)
        ok, damping = w > 0.0, 0.0
        if not ok:
            damping = rescue_damping(J, m.mobility) or 1.0
            factor, WJ, U = factored_rows(J, m.mobility, damping)
            if factor < 0.0:  # non-finite rows cannot be factorised with any damping
                return ResolvedVelocity(np.zeros(m.k), np.zeros(m.k), 0.0, damping, False, DEPENDENT)
        task = task_part(WJ, U, v)
        if self.momentum is not None:
            z = z + m.downhill(1.0, self.momentum.rates(m.expand(task)))
        null = null_part(J, WJ, U, z)
        return ResolvedVelocity(task, null, w) if ok else ResolvedVelocity(task, null, 0.0, damping, False, DEPENDENT)


@dataclass(frozen=True)
class DampingSchedule:
    """Damping lambda as a function of the manipulability w.

    lambda^2 = max_damping^2 (1 - w / threshold)^2 for w < threshold, else 0 (Nakamura and Hanafusa 1986).

    Attributes:
        threshold: manipulability w = sqrt(det(J W^-1 J^T)) below which damping begins; infinite: always `max_damping`.
    """

    max_damping: float = 0.05
    threshold: float = float("inf")

    def __post_init__(self) -> None:
        if not (self.max_damping > 0 and self.threshold >= 0):
            got = f"got {self.max_damping:g} and {self.threshold:g}"
            raise ConfigError(f"damping: max_damping > 0 and threshold >= 0 are needed, {got}")

    def damping(self, w: float) -> float:
        """Return lambda at the manipulability w."""
        return 0.0 if w >= self.threshold else self.max_damping * (1.0 - w / self.threshold)

    @staticmethod
    def typical(
        robot: Robot,
        tasks: Sequence[Task],
        dofs: DofSelection | None = None,
        share: float = 0.1,
        max_damping: float = 0.05,
    ) -> DampingSchedule:
        """Return a schedule with a share of the median manipulability over random postures as threshold."""
        rng, data, m, found = np.random.default_rng(0), robot.model.createData(), dofs or DofSelection(robot), []
        for _ in range(40):
            q = robot.q(rng.uniform(*robot.range_within(SAMPLED_RANGE)))
            prepare(robot, data, q)
            J = stacked(robot, data, q, tasks, m).J
            found.append(manipulability(J * np.sqrt(m.mobility)))
        return DampingSchedule(max_damping, share * float(np.median(found)))


class DampedLeastSquares(VelocitySolver):
    """Minimiser of |J u - v|^2 + lambda^2 |u|_W^2, with weighted rows.

    For lambda > 0 objectives disturb the tasks slightly.
    """

    def __init__(
        self,
        robot: Robot,
        objectives: Sequence[Objective] = (),
        settings: SolverSettings | None = None,
        dofs: DofSelection | None = None,
        schedule: DampingSchedule | None = None,
    ) -> None:
        super().__init__(robot, objectives, settings, dofs)
        self.schedule = schedule or DampingSchedule()

    def resolve(self, rows: Rows, v: np.ndarray, z: np.ndarray) -> ResolvedVelocity:
        mobility, s = self.dofs.mobility, self.schedule
        w = 0.0
        if np.isfinite(s.threshold):
            task, null, w, ok = weighted_step(rows.J, v, mobility, z)
            if ok and w >= s.threshold:
                return ResolvedVelocity(task, null, w)
            w = w if ok else 0.0
        damping = s.damping(w)
        task, null, _, ok = weighted_step(rows.J, v, mobility, z, damping)
        return ResolvedVelocity(task, null, w if np.isfinite(s.threshold) else float("nan"), damping, ok)


# -------- By singular values (Schwienbacher 2014, section 4.4)


class TruncatedSvd(VelocitySolver):
    """Pseudo-inverse without singular values below epsilon; objectives may use their directions."""

    def __init__(
        self,
        robot: Robot,
        objectives: Sequence[Objective] = (),
        settings: SolverSettings | None = None,
        dofs: DofSelection | None = None,
        epsilon: float = 0.005,
    ) -> None:
        """Set the threshold.

        Args:
            epsilon: smallest kept singular value of J W^-1/2.

        Raises:
            ConfigError: if epsilon is not positive.
        """
        super().__init__(robot, objectives, settings, dofs)
        if not epsilon > 0:
            raise ConfigError(f"truncated SVD: epsilon must be positive, got {epsilon:g}")
        self.epsilon = epsilon

    def resolve(self, rows: Rows, v: np.ndarray, z: np.ndarray) -> ResolvedVelocity:
        half = np.sqrt(self.dofs.mobility)
        U, sigma, Vt = _svd(rows.J * half)
        kept = sigma >= self.epsilon
        V, z_weighted = Vt[kept].T, z / half
        task = half * (V @ ((U[:, kept].T @ v) / sigma[kept]))
        null = half * (z_weighted - V @ (V.T @ z_weighted))
        dropped = int(len(v) - kept.sum())
        note = f"{dropped} weak directions dropped" if dropped else ""
        return ResolvedVelocity(task, null, float(np.prod(sigma)) if len(v) <= len(z) else 0.0, note=note)


class BoundedNorm(VelocitySolver):
    """Least damping that bounds the norm of the task velocity.

    |u|_W^2 = sum (sigma_i b_i / (sigma_i^2 + lambda^2))^2 falls with lambda; the root is found by Newton's method on
    1/|u|, as for a trust region (after Maciejewski and Klein 1988).
    """

    def __init__(
        self,
        robot: Robot,
        objectives: Sequence[Objective] = (),
        settings: SolverSettings | None = None,
        dofs: DofSelection | None = None,
        max_norm: float = 10.0,
    ) -> None:
        """Set the bound.

        Args:
            max_norm: bound on the weighted norm [rad/s].

        Raises:
            ConfigError: if the bound is not positive.
        """
        super().__init__(robot, objectives, settings, dofs)
        if not max_norm > 0:
            raise ConfigError(f"bounded norm: the bound must be positive, got {max_norm:g}")
        self.max_norm = max_norm

    def resolve(self, rows: Rows, v: np.ndarray, z: np.ndarray) -> ResolvedVelocity:
        half = np.sqrt(self.dofs.mobility)
        U, sigma, Vt = _svd(rows.J * half)
        b = U.T @ v
        damping = damping_for_norm(sigma, b, self.max_norm)
        live = sigma > 1e-9 * max(float(sigma.max(initial=0.0)), 1e-300)
        gain = np.zeros(len(sigma))
        gain[live] = sigma[live] / (sigma[live] ** 2 + damping**2)
        z_weighted = z / half
        task = half * (Vt.T @ (gain * b))
        null = half * (z_weighted - Vt.T @ (gain * sigma * (Vt @ z_weighted)))
        return ResolvedVelocity(task, null, float(np.prod(sigma)) if len(v) <= len(z) else 0.0, damping)


def damping_for_norm(sigma: np.ndarray, b: np.ndarray, max_norm: float) -> float:
    """Return the least lambda >= 0 with sum (sigma b / (sigma^2 + lambda^2))^2 <= max_norm^2."""
    live = sigma > 1e-9 * max(float(sigma.max(initial=0.0)), 1e-300)
    s, b = sigma[live], b[live]
    if not np.isfinite(b).all() or np.linalg.norm(b / s) <= max_norm:
        return 0.0
    square = 0.0  # lambda^2; the iterates stay below the root and rise towards it
    for _ in range(100):
        x = s * b / (s * s + square)
        norm = float(np.linalg.norm(x))
        if norm <= max_norm * (1 + 1e-12):
            break
        square += (norm - max_norm) / max_norm * norm**2 / float(np.sum(x * x / (s * s + square)))
    return float(np.sqrt(square))


def _svd(A: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    if not np.isfinite(A).all():
        A = np.full(A.shape, 0.0)
    return np.linalg.svd(A, full_matrices=False)


# -------- Without an inverse; with priorities


class JacobianTranspose(VelocitySolver):
    """u = W^-1 J^T K e (4.17): desired task velocities act like joint forces; never singular, but slow.

    The loop gain is multiplied by the largest eigenvalue of J W^-1 J^T. If steps of dt would be unstable, the velocity
    is divided by it and the report notes it. Objectives are ignored.
    """

    def resolve(self, rows: Rows, v: np.ndarray, z: np.ndarray) -> ResolvedVelocity:
        J = rows.J
        if not len(v) or not np.isfinite(J).all():
            return ResolvedVelocity(np.full(len(z), 0.0 if not len(v) else np.nan), np.zeros(len(z)))
        largest = float(np.linalg.eigvalsh((J * self.dofs.mobility) @ J.T)[-1])
        task = self.dofs.mobility * (J.T @ v) / max(1.0, largest)
        note = f"slowed {largest:.2g} times to stay stable" if largest > 1 else ""
        return ResolvedVelocity(task, np.zeros(len(z)), note=note)


class Hierarchy(VelocitySolver):
    """Strict priorities: each level in the null space of all higher ones, objectives in the rest (section 4.3.4).

    Z is an orthonormal basis of the remaining null space. A level minimises |J_i (u + Z y) - v_i| over y; then Z loses
    the used directions, including those weaker than epsilon. Joints thus stay slow at algorithmic singularities.
    """

    def __init__(
        self,
        robot: Robot,
        objectives: Sequence[Objective] = (),
        settings: SolverSettings | None = None,
        dofs: DofSelection | None = None,
        epsilon: float = 1e-4,
    ) -> None:
        """Set the threshold.

        Args:
            epsilon: smallest kept singular value.

        Raises:
            ConfigError: if epsilon is not positive.
        """
        super().__init__(robot, objectives, settings, dofs)
        if not epsilon > 0:
            raise ConfigError(f"hierarchy: epsilon must be positive, got {epsilon:g}")
        self.epsilon = epsilon

    def resolve(self, rows: Rows, v: np.ndarray, z: np.ndarray) -> ResolvedVelocity:
        half = np.sqrt(self.dofs.mobility)
        J = rows.J * half
        u, Z = np.zeros(len(z)), np.eye(len(z))
        lost: list[int] = []
        if not np.isfinite(J).all():
            return ResolvedVelocity(np.full(len(z), np.nan), u)
        for level in np.unique(rows.level):
            own = rows.level == level
            A = J[own] @ Z
            U, sigma, Vt = np.linalg.svd(A, full_matrices=True)
            rank = int(np.sum(sigma >= self.epsilon))
            y = (U[:, :rank].T @ (v[own] - J[own] @ u)) / sigma[:rank]
            u = u + Z @ (Vt[:rank].T @ y)
            Z = Z @ Vt[rank:].T
            if rank < A.shape[0]:
                lost.append(int(level))
        null = half * (Z @ (Z.T @ (z / half)))
        note = f"not fully satisfied: level {', '.join(map(str, lost))}" if lost else ""
        return ResolvedVelocity(half * u, null, note=note)
