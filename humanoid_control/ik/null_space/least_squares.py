"""Weighted resolved motion rate with null-space objectives, without pseudo-inverse or projector (algorithm 4.3).

Also here:

* Damped least squares: near singularities the tasks give way so that the joints stay slow (section 4.4).
* Solvers by singular values: weak directions left out, or damped just enough for a speed limit (section 4.4).
* The transposed Jacobian in place of its inverse: cheap, never singular, slow (section 4.3.2).
* Strict priorities: each level is served as well as those above it leave room for, and never disturbs them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from humanoid_control.errors import ConfigError
from humanoid_control.ik.free_velocities import DofSelection
from humanoid_control.ik.null_space.momentum_tracking import MomentumTracking
from humanoid_control.ik.null_space.objectives import Objective, manipulability
from humanoid_control.ik.null_space.velocity_solver import Resolved, SolverSettings, StepReport, VelocitySolver
from humanoid_control.ik.task_rows import Rows, stacked
from humanoid_control.ik.tasks.task import Task, prepare
from humanoid_control.jit import kernel
from humanoid_control.numerics.cholesky import cholesky, solve_factored
from humanoid_control.robots.robot import Robot

# -------- Weighted resolved motion rate with null-space objectives

DEPENDENT = "tasks depend on each other: damped"
RESCUE = 1e-4  # damping where the rows depend on each other, relative to the largest row


def weighted_step(
    J: np.ndarray, v: np.ndarray, mobility: np.ndarray, z: np.ndarray, damping: float = 0.0
) -> tuple[np.ndarray, np.ndarray, float, bool]:
    """Algorithm 4.3 for its two parts at once: one Cholesky factor, two right-hand sides.

    The velocity is task + null, with task = W^-1 J^T B^-1 v and null = z - W^-1 J^T B^-1 J z, B = J W^-1 J^T +
    damping^2 E. Without damping this is (4.12): the tasks exactly, with the least |u|_W, and z as far as they allow.

    Args:
        J: (m, k). v: (m,). mobility: (k,) diagonal of W^-1. z: (k,) wished velocities.
        damping: lambda.

    Returns:
        task (k,), null (k,), the manipulability sqrt(det(J W^-1 J^T)) (with the damping, if any), and whether B could
        be factored.
    """
    w, WJ, L = factored_rows(J, mobility, damping)
    if w < 0.0:
        return np.zeros(len(z)), np.zeros(len(z)), 0.0, False
    return task_part(WJ, L, np.ascontiguousarray(v, dtype=float)), null_part(J, WJ, L, z), w, True


@kernel
def factored_rows(J: np.ndarray, mobility: np.ndarray, damping: float) -> tuple[float, np.ndarray, np.ndarray]:
    """(sqrt(det B), J W^-1 (m, k), L (m, m)) with L L^T = B = J W^-1 J^T + damping^2 E; -1 where B has no factor."""
    m, k = J.shape
    WJ, B, L = np.empty((m, k)), np.zeros((m, m)), np.empty((m, m))
    columns = np.empty((k, m))
    for i in range(m):
        for c in range(k):
            WJ[i, c] = J[i, c] * mobility[c]
            columns[c, i] = J[i, c]
    for i in range(m):  # along the columns: several entries of B with one instruction
        for c in range(k):
            s = WJ[i, c]
            for j in range(i + 1):
                B[i, j] += s * columns[c, j]
        B[i, i] += damping * damping
    if not cholesky(B, m, L):
        return -1.0, WJ, L
    w = 1.0
    for i in range(m):
        w *= L[i, i]
    return w, WJ, L


@kernel
def task_part(WJ: np.ndarray, L: np.ndarray, v: np.ndarray) -> np.ndarray:
    """W^-1 J^T B^-1 v (k,)."""
    m, k = WJ.shape
    x, out = v.copy(), np.zeros(k)
    solve_factored(L, m, x)
    for i in range(m):
        for c in range(k):
            out[c] += WJ[i, c] * x[i]
    return out


@kernel
def null_part(J: np.ndarray, WJ: np.ndarray, L: np.ndarray, z: np.ndarray) -> np.ndarray:
    """What of z (k,) leaves the tasks alone: z - W^-1 J^T B^-1 J z."""
    m, k = WJ.shape
    y, out = np.empty(m), z.copy()
    for i in range(m):
        s = 0.0
        for c in range(k):
            s += J[i, c] * z[c]
        y[i] = s
    solve_factored(L, m, y)
    for i in range(m):
        for c in range(k):
            out[c] -= WJ[i, c] * y[i]
    return out


class ResolvedRate(VelocitySolver):
    """All tasks exactly, objectives in what they leave, least weighted velocity: the method that runs on Lola.

    Priorities are not looked at. Tasks that contradict each other, or a singular posture, have no exact answer; then
    the damped one is given and the report says so.
    """

    def __init__(
        self,
        robot: Robot,
        objectives: Sequence[Objective] = (),
        settings: SolverSettings | None = None,
        dofs: DofSelection | None = None,
        momentum: MomentumTracking | None = None,
    ) -> None:
        """Make the solver.

        Args:
            robot, objectives, settings, dofs: as of every velocity solver.
            momentum: angular momentum to track in the null space, besides what the objectives want there.
        """
        super().__init__(robot, objectives, settings, dofs)
        self.momentum = momentum

    def velocity(self, q: np.ndarray, tasks: Sequence[Task], dt: float) -> tuple[np.ndarray, StepReport]:
        if self.momentum is not None:
            self.momentum.place(self.data, q)
        return super().velocity(q, tasks, dt)

    def resolve(self, rows: Rows, v: np.ndarray, z: np.ndarray) -> Resolved:
        J, m = rows.J, self.dofs
        w, WJ, L = factored_rows(J, m.mobility, 0.0)
        ok, damping = w > 0.0, 0.0
        if not ok:
            largest = float(np.max(np.einsum("ij,j,ij->i", J, m.mobility, J), initial=0.0))
            damping = RESCUE * float(np.sqrt(largest)) if largest > 0 else 1.0
            factor, WJ, L = factored_rows(J, m.mobility, damping)
            if factor < 0.0:  # what is not a number has no factor with any damping
                return Resolved(np.zeros(m.k), np.zeros(m.k), 0.0, damping, False, DEPENDENT)
        task = task_part(WJ, L, v)
        if self.momentum is not None:
            z = z + m.downhill(1.0, self.momentum.rates(m.expand(task)))
        null = null_part(J, WJ, L, z)
        return Resolved(task, null, w) if ok else Resolved(task, null, 0.0, damping, False, DEPENDENT)


# -------- Damped least squares: near singularities the tasks give way so that the joints stay slow (section 4.4)


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
        robot: Robot, tasks: Sequence[Task], dofs: DofSelection | None = None, share: float = 0.1, most: float = 0.05
    ) -> DampingSchedule:
        """A threshold that is a share of the median manipulability of some tasks over random postures.

        Its scale depends on units and number of the rows, so that no fixed number fits all tasks.
        """
        rng, data, m, found = np.random.default_rng(0), robot.model.createData(), dofs or DofSelection(robot), []
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
        dofs: DofSelection | None = None,
        schedule: DampingSchedule | None = None,
    ) -> None:
        super().__init__(robot, objectives, settings, dofs)
        self.schedule = schedule or DampingSchedule()

    def resolve(self, rows: Rows, v: np.ndarray, z: np.ndarray) -> Resolved:
        mobility, s = self.dofs.mobility, self.schedule
        w = 0.0
        if np.isfinite(s.threshold):
            task, null, w, ok = weighted_step(rows.J, v, mobility, z)
            if ok and w >= s.threshold:
                return Resolved(task, null, w)
            w = w if ok else 0.0
        damping = s.damping(w)
        task, null, _, ok = weighted_step(rows.J, v, mobility, z, damping)
        return Resolved(task, null, w if np.isfinite(s.threshold) else float("nan"), damping, ok)


# -------- Solvers by singular values: weak directions left out, or damped just enough for a speed limit (section 4.4)


class TruncatedSvd(VelocitySolver):
    """The pseudo-inverse without the directions whose singular value is below epsilon.

    The objectives may use the directions that were left out: nothing else does.
    """

    def __init__(
        self,
        robot: Robot,
        objectives: Sequence[Objective] = (),
        settings: SolverSettings | None = None,
        dofs: DofSelection | None = None,
        epsilon: float = 0.005,
    ) -> None:
        """Make the solver.

        Args:
            robot, objectives, settings, dofs: as of every solver.
            epsilon: singular values of J W^-1/2 below it are dropped.

        Raises:
            ConfigError: epsilon is not positive.
        """
        super().__init__(robot, objectives, settings, dofs)
        if not epsilon > 0:
            raise ConfigError(f"truncated SVD: epsilon must be positive, got {epsilon:g}")
        self.epsilon = epsilon

    def resolve(self, rows: Rows, v: np.ndarray, z: np.ndarray) -> Resolved:
        half = np.sqrt(self.dofs.mobility)
        U, sigma, Vt = _svd(rows.J * half)
        kept = sigma >= self.epsilon
        V, wished = Vt[kept].T, z / half
        task = half * (V @ ((U[:, kept].T @ v) / sigma[kept]))
        null = half * (wished - V @ (V.T @ wished))
        dropped = int(len(v) - kept.sum())
        note = f"{dropped} weak directions left out" if dropped else ""
        return Resolved(task, null, float(np.prod(sigma)) if len(v) <= len(z) else 0.0, note=note)


class BoundedNorm(VelocitySolver):
    """Least damping for which the tasks' velocity keeps a bound on its norm: lambda from the singular values.

    |u|_W^2 = sum (sigma_i b_i / (sigma_i^2 + lambda^2))^2 falls with lambda; the root is found by Newton's method on
    1/|u|, as for a trust region (after Maciejewski and Klein 1988).
    """

    def __init__(
        self,
        robot: Robot,
        objectives: Sequence[Objective] = (),
        settings: SolverSettings | None = None,
        dofs: DofSelection | None = None,
        most: float = 10.0,
    ) -> None:
        """Make the solver.

        Args:
            robot, objectives, settings, dofs: as of every solver.
            most: bound on the weighted norm of the tasks' velocity [rad/s].

        Raises:
            ConfigError: the bound is not positive.
        """
        super().__init__(robot, objectives, settings, dofs)
        if not most > 0:
            raise ConfigError(f"bounded norm: the bound must be positive, got {most:g}")
        self.most = most

    def resolve(self, rows: Rows, v: np.ndarray, z: np.ndarray) -> Resolved:
        half = np.sqrt(self.dofs.mobility)
        U, sigma, Vt = _svd(rows.J * half)
        b = U.T @ v
        damping = damping_for_norm(sigma, b, self.most)
        live = sigma > 1e-9 * max(float(sigma.max(initial=0.0)), 1e-300)
        gain = np.zeros(len(sigma))
        gain[live] = sigma[live] / (sigma[live] ** 2 + damping**2)
        wished = z / half
        task = half * (Vt.T @ (gain * b))
        null = half * (wished - Vt.T @ (gain * sigma * (Vt @ wished)))
        return Resolved(task, null, float(np.prod(sigma)) if len(v) <= len(z) else 0.0, damping)


def damping_for_norm(sigma: np.ndarray, b: np.ndarray, most: float) -> float:
    """The least lambda >= 0 with sum (sigma b / (sigma^2 + lambda^2))^2 <= most^2.

    Args:
        sigma: (r,) singular values; those that are zero to rounding do not count.
        b: (r,) what is wanted in their directions.
        most: > 0.
    """
    live = sigma > 1e-9 * max(float(sigma.max(initial=0.0)), 1e-300)
    s, b = sigma[live], b[live]
    if not np.isfinite(b).all() or np.linalg.norm(b / s) <= most:
        return 0.0
    square = 0.0  # lambda^2; the iterates stay below the root and rise towards it
    for _ in range(100):
        x = s * b / (s * s + square)
        norm = float(np.linalg.norm(x))
        if norm <= most * (1 + 1e-12):
            break
        square += (norm - most) / most * norm**2 / float(np.sum(x * x / (s * s + square)))
    return float(np.sqrt(square))


def _svd(A: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    if not np.isfinite(A).all():
        A = np.full(A.shape, 0.0)
    return np.linalg.svd(A, full_matrices=False)


# -------- The transposed Jacobian in place of its inverse: cheap, never singular, slow (section 4.3.2)


class JacobianTranspose(VelocitySolver):
    """u = W^-1 J^T K e (4.17), as if the wanted task velocities were forces that pull at the joints.

    The largest eigenvalue of J W^-1 J^T multiplies the gain of the loop; where that would make it unstable in steps of
    dt, the velocity is divided by it, and the report says so. There is no null space: objectives are not looked at.
    """

    def resolve(self, rows: Rows, v: np.ndarray, z: np.ndarray) -> Resolved:
        J = rows.J
        if not len(v) or not np.isfinite(J).all():
            return Resolved(np.full(len(z), 0.0 if not len(v) else np.nan), np.zeros(len(z)))
        largest = float(np.linalg.eigvalsh((J * self.dofs.mobility) @ J.T)[-1])
        task = self.dofs.mobility * (J.T @ v) / max(1.0, largest)
        note = f"slowed {largest:.2g} times to stay stable" if largest > 1 else ""
        return Resolved(task, np.zeros(len(z)), note=note)


# -------- Strict priorities: each level is served as well as those above it leave room for, and never disturbs them


class Hierarchy(VelocitySolver):
    """Levels 0, 1, 2, ... in the null space of all rows above, objectives in what is left (section 4.3.4).

    Z is an orthonormal basis of the augmented null space. A level minimises |J_i (u + Z y) - v_i| over y; then Z loses
    the directions it used. What a level cannot have it does not get, and no level above pays for it. Directions weaker
    than epsilon count as lost, which keeps joints slow where levels compete (algorithmic singularities).
    """

    def __init__(
        self,
        robot: Robot,
        objectives: Sequence[Objective] = (),
        settings: SolverSettings | None = None,
        dofs: DofSelection | None = None,
        epsilon: float = 1e-4,
    ) -> None:
        """Make the solver.

        Args:
            robot, objectives, settings, dofs: as of every solver.
            epsilon: singular values below it are dropped.

        Raises:
            ConfigError: epsilon is not positive.
        """
        super().__init__(robot, objectives, settings, dofs)
        if not epsilon > 0:
            raise ConfigError(f"hierarchy: epsilon must be positive, got {epsilon:g}")
        self.epsilon = epsilon

    def resolve(self, rows: Rows, v: np.ndarray, z: np.ndarray) -> Resolved:
        half = np.sqrt(self.dofs.mobility)
        J = rows.J * half
        u, Z = np.zeros(len(z)), np.eye(len(z))
        lost: list[int] = []
        if not np.isfinite(J).all():
            return Resolved(np.full(len(z), np.nan), u)
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
        wished = z / half
        null = half * (Z @ (Z.T @ wished))
        note = f"no room for all of level {', '.join(map(str, lost))}" if lost else ""
        return Resolved(half * u, null, note=note)
