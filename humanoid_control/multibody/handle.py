"""A model's arrays by their addresses: one small array in place of sixteen on the way into compiled code.

numba takes some 0.2 us for each array that Python hands over; the dynamics of a robot take ten. The arrays must stay
alive and in place while a handle is in use: whoever makes one keeps them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import carray, types
from numba.extending import intrinsic

from humanoid_control.jit import inlined, kernel
from humanoid_control.multibody.arrays import Tables, Work
from humanoid_control.multibody.by_matrix import accelerate_dense, accelerate_sparse, dense_matrix
from humanoid_control.multibody.recursive import accelerate

DIMENSIONS = (2, 1, 1, 1, 1, 1, 2, 1, 1, 1, 1) + (1, 1, 1, 2, 1)  # of the fields of `Tables` and of `Work`


def handle_of(tables: Tables, work: Work) -> np.ndarray:
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
    """The tables behind a handle."""
    ints, nodes = carray(_to_ints(h[0]), (h[1], h[2])), carray(_to_ints(h[13]), (h[14], h[15]))
    floats, par, qpos, single, columns = _floats(h, 3), _floats(h, 5), _ints(h, 7), _ints(h, 9), _ints(h, 11)
    members, group_columns, rank, lam = _ints(h, 16), _ints(h, 18), _ints(h, 20), _ints(h, 22)
    return Tables(ints, floats, par, qpos, single, columns, nodes, members, group_columns, rank, lam)


@inlined
def work_at(h):
    """The work arrays behind a handle."""
    M = carray(_to_floats(h[30]), (h[31], h[32]))
    return Work(_floats(h, 24), _floats(h, 26), _floats(h, 28), M, _floats(h, 33))


@kernel
def recursive_at(h, q, v, tau, wrench, armature, qdd):
    """`accelerate` behind a handle."""
    accelerate(tables_at(h), q, v, tau, wrench, armature, work_at(h), qdd)


@kernel
def sparse_at(h, q, v, tau, wrench, armature, qdd):
    """`accelerate_sparse` behind a handle."""
    accelerate_sparse(tables_at(h), q, v, tau, wrench, armature, work_at(h), qdd)


@kernel
def dense_at(h, q, v, tau, wrench, armature, qdd):
    """`accelerate_dense` behind a handle."""
    accelerate_dense(tables_at(h), q, v, tau, wrench, armature, work_at(h), qdd)


@kernel
def dense_matrix_at(h, q, v, tau, wrench, armature):
    """`dense_matrix` behind a handle."""
    dense_matrix(tables_at(h), q, v, tau, wrench, armature, work_at(h))
