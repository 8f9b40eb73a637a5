"""Forward dynamics of one model by any of the solvers."""

from __future__ import annotations

import numpy as np

from humanoid_control.errors import UnknownNameError
from humanoid_control.multibody.arrays import Arrays
from humanoid_control.multibody.inertia_matrix import accelerate_dense, accelerate_sparse
from humanoid_control.multibody.model import Model
from humanoid_control.multibody.recursive import accelerate

RECURSIVE, SPARSE, DENSE = "recursive", "sparse", "dense"
SOLVERS = {RECURSIVE: accelerate, SPARSE: accelerate_sparse, DENSE: accelerate_dense}


class ForwardDynamics:
    """Accelerations of a model: M(q) qdd + h(q, v) = tau + forces.

    Attributes:
        arrays: the model in the form that the compiled code reads; its work holds the bodies' motion after a call.
    """

    def __init__(
        self, model: Model, solver: str = RECURSIVE, gravity: tuple[float, float, float] = (0.0, 0.0, -9.81)
    ) -> None:
        """Prepare a solver.

        Args:
            model: any.
            solver: 'recursive' (O(n) with sub-systems), 'sparse' (branch-induced L^T L) or 'dense' (Cholesky).
            gravity: [m/s^2], in the environment.

        Raises:
            UnknownNameError: no such solver.
        """
        if solver not in SOLVERS:
            raise UnknownNameError("solver", solver, SOLVERS)
        self.model, self.solver = model, solver
        self._solve = SOLVERS[solver]
        self.arrays = Arrays(model, gravity, with_matrix=solver != RECURSIVE)
        self._zero = np.zeros(model.nv)
        self._no_wrench = np.zeros((len(model.bodies), 6))

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
        """
        a, qdd = self.arrays, np.empty(self.model.nv)
        self._solve(
            a.tables,
            q,
            v,
            self._zero if tau is None else tau,
            self._no_wrench if wrench is None else wrench,
            self._zero if armature is None else armature,
            a.work,
            qdd,
        )
        return qdd
