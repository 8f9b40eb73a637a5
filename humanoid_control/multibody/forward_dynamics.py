"""Forward dynamics of a model by any of the solvers.

Compiled code gets a model's arrays by their addresses, as one small array in place of sixteen: numba takes some 0.2 us
for each array that Python hands over, and the dynamics of a robot take ten. The arrays must stay alive and in place
while an address table is in use: whoever makes one keeps them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import carray, types
from numba.extending import intrinsic
from scipy.linalg import cho_factor, cho_solve

from humanoid_control.errors import RobotError, UnknownNameError
from humanoid_control.jit import inlined, kernel
from humanoid_control.multibody.acceleration_pass import articulated_body
from humanoid_control.multibody.arrays import Arrays, Tables, Work
from humanoid_control.multibody.mass_matrix import mass_matrix, solve_dense, solve_sparse
from humanoid_control.multibody.model import Model

DIMENSIONS = (2, 1, 1, 1, 1, 1, 2, 1, 1, 1, 1) + (1, 1, 1, 2, 1)  # of the fields of `Tables` and of `Work`


def address_table(tables: Tables, work: Work) -> np.ndarray:
    """Address and shape of every array, one after the other."""
    numbers: list[int] = []
    for a, dimensions in zip((*tables, *work), DIMENSIONS, strict=True):
        assert a.flags.c_contiguous and a.ndim == dimensions
        numbers += [a.ctypes.data, *a.shape]
    return np.array(numbers, dtype=np.int64)


def _pointer(kind: Any) -> Any:
    @intrinsic
    def pointer(typingctx: Any, address: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.inttoptr(args[0], context.get_value_type(signature.return_type))

        return types.CPointer(kind)(types.int64), generate

    return pointer


_to_ints, _to_floats = _pointer(types.int64), _pointer(types.float64)


@inlined
def _ints(h, k):
    return carray(_to_ints(h[k]), (h[k + 1],))


@inlined
def _floats(h, k):
    return carray(_to_floats(h[k]), (h[k + 1],))


@inlined
def tables_at(h):
    """The tables behind an address table."""
    ints, nodes = carray(_to_ints(h[0]), (h[1], h[2])), carray(_to_ints(h[13]), (h[14], h[15]))
    floats, par, qpos, single, columns = _floats(h, 3), _floats(h, 5), _ints(h, 7), _ints(h, 9), _ints(h, 11)
    members, group_columns, rank, lam = _ints(h, 16), _ints(h, 18), _ints(h, 20), _ints(h, 22)
    return Tables(ints, floats, par, qpos, single, columns, nodes, members, group_columns, rank, lam)


@inlined
def work_at(h):
    """The work arrays behind an address table."""
    M = carray(_to_floats(h[30]), (h[31], h[32]))
    return Work(_floats(h, 24), _floats(h, 26), _floats(h, 28), M, _floats(h, 33))


@kernel
def articulated_body_at(h, q, v, tau, wrench, armature, qdd):
    """`articulated_body` behind an address table."""
    articulated_body(tables_at(h), q, v, tau, wrench, armature, work_at(h), qdd)


@kernel
def sparse_at(h, q, v, tau, wrench, armature, qdd):
    """`solve_sparse` behind an address table."""
    solve_sparse(tables_at(h), q, v, tau, wrench, armature, work_at(h), qdd)


@kernel
def dense_at(h, q, v, tau, wrench, armature, qdd):
    """`solve_dense` behind an address table."""
    solve_dense(tables_at(h), q, v, tau, wrench, armature, work_at(h), qdd)


@kernel
def mass_matrix_at(h, q, v, tau, wrench, armature):
    """`mass_matrix` behind an address table."""
    mass_matrix(tables_at(h), q, v, tau, wrench, armature, work_at(h))


# -------- Solvers by name

ARTICULATED_BODY, SPARSE, DENSE = "articulated_body", "sparse", "dense"
BLOCKED = 96  # above this size the library's blocked decomposition is faster than a simple loop
SOLVERS = {ARTICULATED_BODY: articulated_body_at, SPARSE: sparse_at, DENSE: dense_at}


class ForwardDynamics:
    """Accelerations of a model: M(q) qdd + h(q, v) = tau + forces.

    Attributes:
        arrays: the model in the form that the compiled code reads; its work holds the bodies' motion after a call.
    """

    def __init__(
        self, model: Model, solver: str = ARTICULATED_BODY, gravity: tuple[float, float, float] = (0.0, 0.0, -9.81)
    ) -> None:
        """Prepare a solver.

        Args:
            model: any.
            solver: 'articulated_body' (O(n) with sub-systems), 'sparse' (branch-induced L^T L) or 'dense' (Cholesky).
            gravity: [m/s^2], in the environment.

        Raises:
            UnknownNameError: no such solver.
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
        self._solve, self._addresses = SOLVERS[self.solver], address_table(self.arrays.tables, self.arrays.work)
        if self.solver == DENSE and self.model.nv > BLOCKED:
            self._solve = self._solve_large

    def _solve_large(self, addresses: np.ndarray, *given: np.ndarray) -> None:
        """The dense solver with LAPACK's decomposition; the last argument takes the accelerations."""
        mass_matrix_at(addresses, *given[:-1])
        a = self.arrays
        factor = cho_factor(a.work.M, lower=True, check_finite=False)
        given[-1][:] = cho_solve(factor, a.work.rhs, check_finite=False)[a.tables.rank]

    def __getstate__(self) -> dict[str, Any]:
        return {k: x for k, x in self.__dict__.items() if k not in ("_solve", "_addresses")}

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
        """Generalised accelerations (nv,).

        Args:
            q: (nq,) configuration. v: (nv,) velocity.
            tau: (nv,) generalised forces.
            wrench: (bodies, 6) impressed force on each body, [moment, force] at its origin in its axes; rotors, that
                is massless symmetric leaves, feel none.
            armature: (nv,) inertia added to each coordinate.

        Raises:
            RobotError: one of them has another shape.
        """
        q, v = np.ascontiguousarray(q, dtype=float), np.ascontiguousarray(v, dtype=float)
        if q.shape != self._q_shape or v.shape != self._v_shape:
            _check("q", q, self._q_shape)
            _check("v", v, self._v_shape)
        tau = self._zero if tau is None else _check("tau", tau, self._v_shape)
        wrench = self._no_wrench if wrench is None else _check("wrench", wrench, self._no_wrench.shape)
        armature = self._zero if armature is None else _check("armature", armature, self._v_shape)
        qdd = np.empty(self._v_shape)
        self._solve(self._addresses, q, v, tau, wrench, armature, qdd)
        return qdd


def _check(name: str, value: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    out = np.ascontiguousarray(value, dtype=float)
    if out.shape != shape:
        raise RobotError(f"{name} must have the shape {shape}, got {out.shape}")
    return out
