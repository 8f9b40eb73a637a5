"""Forward dynamics of a model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from humanoid_control.compiled.array_types import F1, F2
from humanoid_control.compiled.jit import kernel
from humanoid_control.compiled.packed import Packed, Table, unpack
from humanoid_control.errors import RobotError, UnknownNameError
from humanoid_control.multibody.acceleration_pass import articulated_body
from humanoid_control.multibody.arrays import Arrays, Tables, Work
from humanoid_control.multibody.mass_matrix import mass_matrix, solve_dense, solve_sparse
from humanoid_control.multibody.model import Model


class ModelArrays(NamedTuple):
    """Arrays of a model, passed to solvers as one packed table."""

    tables: Tables
    work: Work


@kernel
def articulated_body_at(table: Table[ModelArrays], q: F1, v: F1, tau: F1, wrench: F2, armature: F1, qdd: F1) -> None:
    m = unpack(table, ModelArrays)
    articulated_body(m.tables, q, v, tau, wrench, armature, m.work, qdd)


@kernel
def sparse_at(table: Table[ModelArrays], q: F1, v: F1, tau: F1, wrench: F2, armature: F1, qdd: F1) -> None:
    m = unpack(table, ModelArrays)
    solve_sparse(m.tables, q, v, tau, wrench, armature, m.work, qdd)


@kernel
def dense_at(table: Table[ModelArrays], q: F1, v: F1, tau: F1, wrench: F2, armature: F1, qdd: F1) -> None:
    m = unpack(table, ModelArrays)
    solve_dense(m.tables, q, v, tau, wrench, armature, m.work, qdd)


@kernel
def mass_matrix_at(table: Table[ModelArrays], q: F1, v: F1, tau: F1, wrench: F2, armature: F1) -> None:
    m = unpack(table, ModelArrays)
    mass_matrix(m.tables, q, v, tau, wrench, armature, m.work)


# -------- Solvers by name

ARTICULATED_BODY, SPARSE, DENSE = "articulated_body", "sparse", "dense"
BLOCKED = 96  # size above which LAPACK's blocked factorisation is faster than a loop
SOLVERS = {ARTICULATED_BODY: articulated_body_at, SPARSE: sparse_at, DENSE: dense_at}


class ForwardDynamics:
    """Accelerations of a model: M(q) qdd + h(q, v) = tau + forces.

    After a call the work memory of `arrays` holds the motion of the bodies.
    """

    def __init__(
        self, model: Model, solver: str = ARTICULATED_BODY, gravity: tuple[float, float, float] = (0.0, 0.0, -9.81)
    ) -> None:
        """Create a solver.

        Args:
            model: any model.
            solver: 'articulated_body' (O(n) with sub-systems), 'sparse' (branch-induced L^T L) or 'dense' (Cholesky).
            gravity: in the environment [m/s^2].

        Raises:
            UnknownNameError: if the solver is unknown.
        """
        if solver not in SOLVERS:
            raise UnknownNameError("solver", solver, SOLVERS)
        self.model, self.solver = model, solver
        self.arrays = Arrays(model, gravity, with_matrix=solver != ARTICULATED_BODY)
        self._zero = np.zeros(model.nv)
        self._no_wrench = np.zeros((len(model.bodies), 6))
        self._q_shape, self._v_shape = (model.nq,), (model.nv,)
        self._bind()

    def _bind(self) -> None:
        self._solve: Callable[..., None] = SOLVERS[self.solver]
        self._packed = Packed(ModelArrays(self.arrays.tables, self.arrays.work))
        if self.solver == DENSE and self.model.nv > BLOCKED:
            self._solve = self._solve_large

    def _solve_large(self, table: Any, *given: np.ndarray) -> None:
        from scipy.linalg import cho_factor, cho_solve  # slow to import and rarely needed

        mass_matrix_at(table, *given[:-1])
        a = self.arrays
        factor = cho_factor(a.work.M, lower=True, check_finite=False)
        given[-1][:] = cho_solve(factor, a.work.rhs, check_finite=False)[a.tables.rank]

    def __getstate__(self) -> dict[str, Any]:
        return {k: x for k, x in self.__dict__.items() if k not in ("_solve", "_packed")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._bind()  # a copy has its arrays elsewhere

    def __call__(
        self,
        q: np.ndarray,
        v: np.ndarray,
        tau: np.ndarray | None = None,
        wrench: np.ndarray | None = None,
        armature: np.ndarray | None = None,
    ) -> np.ndarray:
        """Return generalised accelerations (nv,).

        Args:
            q: (nq,).
            v: (nv,).
            tau: (nv,).
            wrench: (bodies, 6) impressed [moment, force] at body origins in body axes; massless symmetric leaves feel
                none.
            armature: (nv,) added inertia.

        Raises:
            RobotError: if a shape is wrong.
        """
        q, v = np.ascontiguousarray(q, dtype=float), np.ascontiguousarray(v, dtype=float)
        if q.shape != self._q_shape or v.shape != self._v_shape:
            _check("q", q, self._q_shape)
            _check("v", v, self._v_shape)
        tau = self._zero if tau is None else _check("tau", tau, self._v_shape)
        wrench = self._no_wrench if wrench is None else _check("wrench", wrench, self._no_wrench.shape)
        armature = self._zero if armature is None else _check("armature", armature, self._v_shape)
        qdd = np.empty(self._v_shape)
        self._solve(self._packed.table, q, v, tau, wrench, armature, qdd)
        return qdd


def _check(name: str, value: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    out = np.ascontiguousarray(value, dtype=float)
    if out.shape != shape:
        raise RobotError(f"{name} must have the shape {shape}, got {out.shape}")
    return out
