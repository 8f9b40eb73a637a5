"""How long the stages of a call take: each measured in a compiled loop, without the way from Python and back."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import numpy as np

from humanoid_control.jit import kernel
from humanoid_control.multibody import ForwardDynamics
from humanoid_control.multibody.backward import backward
from humanoid_control.multibody.cholesky import clear_pattern, dense_solve, sparse_solve
from humanoid_control.multibody.forward2 import forward2
from humanoid_control.multibody.inertia_matrix import inertia_matrix
from humanoid_control.multibody.motion import add_wrenches, forward1

LOOPS = 20  # calls in one measurement
STAGES = {
    "recursive": ("fw1", "bw", "fw2"),
    "sparse": ("fw1", "matrix", "solve"),
    "dense": ("fw1", "matrix", "solve"),
}


@kernel
def recursive_stages(t, q, v, tau, wrench, w, qdd, last, n):
    """The first stages of the O(n) solver, up to the last, n times."""
    for _ in range(n):
        forward1(t, q, v, w)
        if last > 0:
            add_wrenches(t, wrench, w)
            backward(t, tau, qdd, w)
        if last > 1:
            forward2(t, w, qdd)
            qdd[:] = 0.0  # it serves as armature too


@kernel
def matrix_stages(t, q, v, tau, wrench, w, qdd, last, n, dense):
    """The same of the solvers with an inertia matrix."""
    for _ in range(n):
        forward1(t, q, v, w)
        if last > 0:
            add_wrenches(t, wrench, w)
            if dense:
                w.M[:] = 0.0
            else:
                clear_pattern(w.M, t.lam)
            inertia_matrix(t, tau, qdd, w)
        if last > 1:
            if dense:
                dense_solve(w.M, w.rhs)
            else:
                sparse_solve(w.M, t.lam, w.rhs)


def stage_runs(dynamics: ForwardDynamics, q: np.ndarray, v: np.ndarray) -> list[Callable[[], float]]:
    """For each number of stages a function that measures a call up to there [s]."""
    a, model = dynamics.arrays, dynamics.model
    zero, wrench = np.zeros(model.nv), np.zeros((len(model.bodies), 6))
    if dynamics.solver == "recursive":

        def call(last: int) -> None:
            recursive_stages(a.tables, q, v, zero, wrench, a.work, np.zeros(model.nv), last, LOOPS)
    else:
        dense = dynamics.solver == "dense"

        def call(last: int) -> None:
            matrix_stages(a.tables, q, v, zero, wrench, a.work, np.zeros(model.nv), last, LOOPS, dense)

    def run(last: int) -> float:
        start = time.perf_counter()
        call(last)
        return (time.perf_counter() - start) / LOOPS

    return [partial(run, last) for last in range(3)]
