"""The poses of a mechanism's joints as one array, read from pinocchio's data without copying."""

from __future__ import annotations

import ctypes

import numpy as np
import pinocchio as pin

POSE_COLUMNS = 12  # the three columns of the rotation, then the position


class PoseRows:
    """Where all joints are, after forward kinematics, as rows (J, 12): columns of the rotation, then the position.

    pinocchio keeps them just so, one after the other; building arrays from its objects would take longer (30 us for
    Lola) than all distances do.
    """

    def __init__(self, data: pin.Data) -> None:
        """Prepare; `data` may be updated as often as one likes, and must not be replaced."""
        self._data = data  # keeps the memory alive
        count = len(data.oMi)
        address = data.oMi[0].rotation.__array_interface__["data"][0]
        last = data.oMi[count - 1].translation.__array_interface__["data"][0]
        self._in_place = last - address == 8 * (POSE_COLUMNS * count - 3)
        if self._in_place:
            memory = (ctypes.c_double * (POSE_COLUMNS * count)).from_address(address)
            self._rows = np.ctypeslib.as_array(memory).reshape(count, POSE_COLUMNS)
            self._in_place = bool(np.array_equal(self._rows, pose_rows(list(data.oMi)), equal_nan=True))
        if not self._in_place:
            self._rows = np.empty((count, POSE_COLUMNS))

    def rows(self) -> np.ndarray:
        """(J, 12) as they are now; valid until the next call or update of the data."""
        if not self._in_place:
            self._rows[:] = pose_rows(list(self._data.oMi))
        return self._rows


def pose_rows(poses: list[pin.SE3]) -> np.ndarray:
    """The same layout from poses in a list."""
    return np.array([np.concatenate([X.rotation.T.ravel(), X.translation]) for X in poses]).reshape(-1, POSE_COLUMNS)
