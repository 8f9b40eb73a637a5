"""Boxes around segments, which tell cheaply that two segments are farther apart than the distance that matters.

Both boxes are enlarged by half that distance; where they then do not overlap, the segments are farther apart: the
middle of the shortest connection would lie in both (section 4.13).
"""

from __future__ import annotations

import numpy as np

from humanoid_control.collision.jit import kernel

NO_BOXES, OBB, AABB = range(3)
BROAD_PHASES = {"none": NO_BOXES, "obb": OBB, "aabb": AABB}
BOX_COLUMNS = 15  # of an oriented box: centre, axes (a rotation matrix, row by row), half sides
PARALLEL = 1e-12  # keeps the cross product of two parallel axes from telling boxes apart


def tight_box(vertices: np.ndarray, radii: np.ndarray, R: np.ndarray) -> np.ndarray:
    """The smallest box (BOX_COLUMNS,) around swept-sphere volumes with given axes.

    Args:
        vertices: (n, 3, 3) of n volumes; unused ones lie inside.
        radii: (n,).
        R: (3, 3) whose columns are the box's axes.
    """
    local = vertices @ R
    low, high = (local - radii[:, None, None]).min(axis=(0, 1)), (local + radii[:, None, None]).max(axis=(0, 1))
    return np.concatenate([R @ (low + high) / 2, R.ravel(), (high - low) / 2])


@kernel
def boxes_apart(a: np.ndarray, b: np.ndarray, reach: float) -> bool:
    """Whether two oriented boxes, each enlarged by reach / 2 on all sides, do not touch: fifteen separating axes.

    Args:
        a, b: (BOX_COLUMNS,).
        reach: [m].
    """
    x, y, z = b[0] - a[0], b[1] - a[1], b[2] - a[2]
    h = 0.5 * reach
    ax, ay, az = a[12] + h, a[13] + h, a[14] + h
    bx, by, bz = b[12] + h, b[13] + h, b[14] + h
    # In the frame of a: t from centre to centre, r the axes of b, m their magnitudes.
    tx, ty, tz = a[3] * x + a[6] * y + a[9] * z, a[4] * x + a[7] * y + a[10] * z, a[5] * x + a[8] * y + a[11] * z
    rxx = a[3] * b[3] + a[6] * b[6] + a[9] * b[9]
    rxy = a[3] * b[4] + a[6] * b[7] + a[9] * b[10]
    rxz = a[3] * b[5] + a[6] * b[8] + a[9] * b[11]
    mxx, mxy, mxz = abs(rxx) + PARALLEL, abs(rxy) + PARALLEL, abs(rxz) + PARALLEL
    if abs(tx) > ax + bx * mxx + by * mxy + bz * mxz:
        return True
    ryx = a[4] * b[3] + a[7] * b[6] + a[10] * b[9]
    ryy = a[4] * b[4] + a[7] * b[7] + a[10] * b[10]
    ryz = a[4] * b[5] + a[7] * b[8] + a[10] * b[11]
    myx, myy, myz = abs(ryx) + PARALLEL, abs(ryy) + PARALLEL, abs(ryz) + PARALLEL
    if abs(ty) > ay + bx * myx + by * myy + bz * myz:
        return True
    rzx = a[5] * b[3] + a[8] * b[6] + a[11] * b[9]
    rzy = a[5] * b[4] + a[8] * b[7] + a[11] * b[10]
    rzz = a[5] * b[5] + a[8] * b[8] + a[11] * b[11]
    mzx, mzy, mzz = abs(rzx) + PARALLEL, abs(rzy) + PARALLEL, abs(rzz) + PARALLEL
    if abs(tz) > az + bx * mzx + by * mzy + bz * mzz:
        return True
    # The axes of b, then the nine cross products.
    return (
        abs(tx * rxx + ty * ryx + tz * rzx) > bx + ax * mxx + ay * myx + az * mzx
        or abs(tx * rxy + ty * ryy + tz * rzy) > by + ax * mxy + ay * myy + az * mzy
        or abs(tx * rxz + ty * ryz + tz * rzz) > bz + ax * mxz + ay * myz + az * mzz
        or abs(tz * ryx - ty * rzx) > ay * mzx + az * myx + by * mxz + bz * mxy
        or abs(tz * ryy - ty * rzy) > ay * mzy + az * myy + bx * mxz + bz * mxx
        or abs(tz * ryz - ty * rzz) > ay * mzz + az * myz + bx * mxy + by * mxx
        or abs(tx * rzx - tz * rxx) > ax * mzx + az * mxx + by * myz + bz * myy
        or abs(tx * rzy - tz * rxy) > ax * mzy + az * mxy + bx * myz + bz * myx
        or abs(tx * rzz - tz * rxz) > ax * mzz + az * mxz + bx * myy + by * myx
        or abs(ty * rxx - tx * ryx) > ax * myx + ay * mxx + by * mzz + bz * mzy
        or abs(ty * rxy - tx * ryy) > ax * myy + ay * mxy + bx * mzz + bz * mzx
        or abs(ty * rxz - tx * ryz) > ax * myz + ay * mxz + bx * mzy + by * mzx
    )


@kernel
def bounds_apart(a: np.ndarray, b: np.ndarray, reach: float) -> bool:
    """Whether two boxes along the world's axes, (low, high) in six numbers, are more than reach apart along one."""
    return (
        max(a[0] - b[3], b[0] - a[3]) > reach
        or max(a[1] - b[4], b[1] - a[4]) > reach
        or max(a[2] - b[5], b[2] - a[5]) > reach
    )
