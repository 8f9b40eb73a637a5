"""Coordinates in millimetres, told from those in metres by their size."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from humanoid_control.errors import RobotError
from humanoid_control.tendons.tendon import Vec3

LONGEST = 3.0  # [m] no link of a humanoid reaches farther from the origin of its frame


def refuse_millimetres(points: Sequence[Vec3], where: str) -> None:
    """Make sure that coordinates on links are in metres.

    Raises:
        RobotError: one is so large that it must be millimetres.
    """
    largest = float(np.abs(np.array(points, dtype=float)).max()) if len(points) else 0.0
    if largest > LONGEST:
        raise RobotError(f"{where}: a coordinate of {largest:g} on a link looks like millimetres; give metres")
