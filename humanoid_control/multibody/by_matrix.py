"""The O(n^3) solvers: inertia matrix, then Cholesky, dense or along the branches (section 2.17)."""

from __future__ import annotations

from humanoid_control.jit import kernel
from humanoid_control.multibody.cholesky import clear_pattern, dense_solve, sparse_solve
from humanoid_control.multibody.inertia_matrix import inertia_matrix
from humanoid_control.multibody.motion import add_wrenches, forward1


@kernel
def dense_matrix(t, q, v, tau, wrench, armature, w):
    """Inertia matrix and right-hand side, in the order of the tree, into the work arrays."""
    forward1(t, q, v, w)
    add_wrenches(t, wrench, w)
    w.M[:] = 0.0
    inertia_matrix(t, tau, armature, w)


@kernel
def accelerate_dense(t, q, v, tau, wrench, armature, w, qdd):
    """Accelerations into qdd by a dense Cholesky decomposition."""
    dense_matrix(t, q, v, tau, wrench, armature, w)
    dense_solve(w.M, w.rhs)
    for k in range(t.rank.shape[0]):
        qdd[k] = w.rhs[t.rank[k]]


@kernel
def accelerate_sparse(t, q, v, tau, wrench, armature, w, qdd):
    """Accelerations into qdd by the reversed sparse Cholesky decomposition."""
    forward1(t, q, v, w)
    add_wrenches(t, wrench, w)
    clear_pattern(w.M, t.lam)
    inertia_matrix(t, tau, armature, w)
    sparse_solve(w.M, t.lam, w.rhs)
    for k in range(t.rank.shape[0]):
        qdd[k] = w.rhs[t.rank[k]]
