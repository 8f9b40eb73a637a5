"""Rows of point, orientation and joint tasks in one compiled pass over their table."""

from __future__ import annotations

import numpy as np

from humanoid_control.ik.orientation import rotation_vector
from humanoid_control.jit import kernel

POINT, TURN, JOINT = 0, 1, 2
NONE = -1


@kernel
def place_points(
    R: np.ndarray,
    p: np.ndarray,
    parent: np.ndarray,
    start: np.ndarray,
    joint: np.ndarray,
    share: np.ndarray,
    lever: np.ndarray,
    out_x: np.ndarray,
    out_share: np.ndarray,
    out_moment: np.ndarray,
) -> None:
    """Where weighted points are, and what of each every joint carries.

    A point on a link, the centre of mass, or that of a limb: each is a weighted mean of points fixed in joints.

    Args:
        R, p: (N, 3, 3), (N, 3) poses of the joints. parent: (N,).
        start: (P + 1,) where the parts of each point begin in the next three.
        joint, share, lever: (T,), (T,), (T, 3) which joint, which share, where in the joint's frame [m].
        out_x: (P, 3) filled: the points in the world.
        out_share, out_moment: (P, N), (P, N, 3) filled: the share each joint carries, and that times its place.
    """
    count = parent.shape[0]
    for k in range(start.shape[0] - 1):
        for j in range(count):
            out_share[k, j] = 0.0
            for c in range(3):
                out_moment[k, j, c] = 0.0
        for c in range(3):
            out_x[k, c] = 0.0
        for t in range(start[k], start[k + 1]):
            j = joint[t]
            out_share[k, j] += share[t]
            for c in range(3):
                at = p[j, c] + R[j, c, 0] * lever[t, 0] + R[j, c, 1] * lever[t, 1] + R[j, c, 2] * lever[t, 2]
                out_moment[k, j, c] += share[t] * at
                out_x[k, c] += share[t] * at
        for j in range(count - 1, 0, -1):
            out_share[k, parent[j]] += out_share[k, j]
            for c in range(3):
                out_moment[k, parent[j], c] += out_moment[k, j, c]


@kernel
def fill_rows(
    R: np.ndarray,
    J6: np.ndarray,
    joints: np.ndarray,
    support: np.ndarray,
    column_joint: np.ndarray,
    column_of: np.ndarray,
    factor: np.ndarray,
    x: np.ndarray,
    carried: np.ndarray,
    moment: np.ndarray,
    kind: np.ndarray,
    first: np.ndarray,
    a: np.ndarray,
    b: np.ndarray,
    frame: np.ndarray,
    frame_R: np.ndarray,
    base: np.ndarray,
    base_R: np.ndarray,
    scale: np.ndarray,
    gain: np.ndarray,
    target: np.ndarray,
    velocity: np.ndarray,
    out_J: np.ndarray,
    out_v: np.ndarray,
) -> None:
    """Jacobian and wanted velocity of every block of a table; see TaskTable for what the arrays hold.

    Args:
        R: (N, 3, 3) orientations of the joints. J6: (6, nv) their twists at the world origin. joints: (n,) angles.
        support: (N, nv) which columns move which joint. column_joint: (nv,) the joint of each column.
        column_of, factor: (nv,) the free velocity of each column, or NONE, and its multiplier.
        x, carried, moment: from `place_points`.
        kind, first: (B,) kind of each block and its first row.
        a, b: (B,) point and origin of a POINT; a the joint of a JOINT.
        frame, frame_R: (B,), (B, 3, 3) joint of a TURN's frame, and its orientation there.
        base, base_R: the same of the frame in whose axes a block is, NONE for the world.
        scale, gain: (B,). target: (B, 3, 3). velocity: (B, 3).
        out_J, out_v: (m, k), (m,) filled.
    """
    nv = J6.shape[1]
    out_J[:, :] = 0.0
    A0, A1, error, column = np.empty((3, 3)), np.empty((3, 3)), np.empty(3), np.empty(3)
    seen_R, d = np.empty((3, 3)), np.empty(3)
    for k in range(kind.shape[0]):
        row, w = first[k], scale[k]
        if kind[k] == JOINT:
            c = nv - joints.shape[0] + a[k]
            if column_of[c] != NONE:
                out_J[row, column_of[c]] += w * factor[c]
            out_v[row] = w * (velocity[k, 0] + gain[k] * (target[k, 0, 0] - joints[a[k]]))
            continue
        turned = base[k] != NONE
        if turned:
            _product(R[base[k]], base_R[k], A0)
        if kind[k] == TURN:
            _product(R[frame[k]], frame_R[k], A1)
            if turned:
                _product_transposed(A0, A1, seen_R)
                rotation_vector(seen_R, target[k], error)
            else:
                rotation_vector(A1, target[k], error)
        else:
            for i in range(3):
                d[i] = x[a[k], i] - (x[b[k], i] if b[k] != NONE else 0.0)
            for i in range(3):
                seen = A0[0, i] * d[0] + A0[1, i] * d[1] + A0[2, i] * d[2] if turned else d[i]
                error[i] = target[k, 0, i] - seen
        for i in range(3):
            out_v[row + i] = w * (velocity[k, i] + gain[k] * error[i])
        for c in range(nv):
            to = column_of[c]
            if to == NONE:
                continue
            o0, o1, o2 = J6[3, c], J6[4, c], J6[5, c]
            if kind[k] == TURN:
                s = support[frame[k], c] - (support[base[k], c] if turned else 0.0)
                column[0], column[1], column[2] = s * o0, s * o1, s * o2
            else:
                j = column_joint[c]
                s, m0, m1, m2 = carried[a[k], j], moment[a[k], j, 0], moment[a[k], j, 1], moment[a[k], j, 2]
                if b[k] != NONE:
                    s -= carried[b[k], j]
                    m0, m1, m2 = m0 - moment[b[k], j, 0], m1 - moment[b[k], j, 1], m2 - moment[b[k], j, 2]
                if turned and support[base[k], c] != 0.0:  # the axes turn under the point: - omega x d
                    m0, m1, m2 = m0 - d[0], m1 - d[1], m2 - d[2]
                column[0] = s * J6[0, c] + o1 * m2 - o2 * m1
                column[1] = s * J6[1, c] + o2 * m0 - o0 * m2
                column[2] = s * J6[2, c] + o0 * m1 - o1 * m0
            f = w * factor[c]
            for i in range(3):
                u = A0[0, i] * column[0] + A0[1, i] * column[1] + A0[2, i] * column[2] if turned else column[i]
                out_J[row + i, to] += f * u


@kernel
def _product(A: np.ndarray, B: np.ndarray, out: np.ndarray) -> None:
    """out := A B, (3, 3)."""
    for i in range(3):
        for j in range(3):
            out[i, j] = A[i, 0] * B[0, j] + A[i, 1] * B[1, j] + A[i, 2] * B[2, j]


@kernel
def _product_transposed(A: np.ndarray, B: np.ndarray, out: np.ndarray) -> None:
    """out := A^T B, (3, 3)."""
    for i in range(3):
        for j in range(3):
            out[i, j] = A[0, i] * B[0, j] + A[1, i] * B[1, j] + A[2, i] * B[2, j]
