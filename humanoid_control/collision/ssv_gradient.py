"""How the distance of each pair changes with the mechanism's velocity."""

from __future__ import annotations

import numpy as np

from humanoid_control.collision.jit import kernel


@kernel
def gradient_rows(
    J: np.ndarray,
    support: np.ndarray,
    pair_rows: np.ndarray,
    joint: np.ndarray,
    pair: np.ndarray,
    table: np.ndarray,
    columns: np.ndarray,
    out: np.ndarray,
) -> None:
    """d distance / d v = n . (velocity of the second core point - velocity of the first) (section 3.3, E-2).

    Both points lie on one line along n, so both have the same wrench (n, p x n): one product with all columns of the
    Jacobian, counted +1 where a column moves only the second segment, -1 where only the first, 0 where both or none.

    Args:
        J: (nv, 6) Jacobian of all joints at the world's origin, transposed: linear, then angular.
        support: (njoints, nv) 1 where a column moves a joint.
        pair_rows, joint: of SsvModel.
        pair, table: (k,), (k, 11) of `nearest_pairs`.
        columns: (6, nv) scratch. out: (k, nv), filled.
    """
    for c in range(6):
        for v in range(J.shape[0]):
            columns[c, v] = J[v, c]
    for k in range(out.shape[0]):
        n0, n1, n2 = table[k, 1], table[k, 2], table[k, 3]
        x, y, z = table[k, 4], table[k, 5], table[k, 6]
        m0, m1, m2 = y * n2 - z * n1, z * n0 - x * n2, x * n1 - y * n0
        first, second = joint[pair_rows[pair[k], 0]], joint[pair_rows[pair[k], 1]]
        for v in range(J.shape[0]):
            rate = n0 * columns[0, v] + n1 * columns[1, v] + n2 * columns[2, v]
            rate += m0 * columns[3, v] + m1 * columns[4, v] + m2 * columns[5, v]
            out[k, v] = (support[second, v] - support[first, v]) * rate
