"""Ground that nobody knows beforehand: what the soles that stand on it tell of its slope."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

TIME = 1.5  # [s] in which the slope is believed: longer than bumps last, shorter than hills
LEVEL, SURE = float(np.tan(np.radians(0.8))), float(np.tan(np.radians(1.6)))  # slope that may be a wrong IMU's; is none


class FeltGround:
    """A plane through the sole that stands, with the slope that soles have had: a `terrain.HeightMap`.

    Up to a slope that an IMU's error could be, the ground is level.

    Attributes:
        felt: (2,) slope along x and y of the world. place: (3,) of the sole that stands [m].
    """

    def __init__(self) -> None:
        self.felt, self.place = np.zeros(2), np.zeros(3)

    def begin(self, *soles: pin.SE3) -> None:
        """Take the slope under soles as it is."""
        self.felt = np.mean([_slope(X) for X in soles], axis=0)

    def feel(self, X: pin.SE3, dt: float) -> None:
        """Take the slope under a sole that carries the robot, measured once more after dt [s]."""
        self.felt += (1.0 - np.exp(-dt / TIME)) * (_slope(X) - self.felt)

    @property
    def slope(self) -> np.ndarray:
        """Slope (2,) that is believed."""
        size = float(np.hypot(*self.felt))
        return self.felt * min(max((size - LEVEL) / (SURE - LEVEL), 0.0), 1.0)

    def heights(self, points: np.ndarray) -> np.ndarray:
        """Heights (k,) at points (k, 2) [m]."""
        z, dx, dy = self.as_plane()
        return z + points @ np.array([dx, dy])

    def as_plane(self) -> tuple[float, float, float]:
        """Height at the origin [m] and slopes along x and y."""
        x, y, z = (float(c) for c in self.place)
        dx, dy = (float(c) for c in self.slope)
        return z - dx * x - dy * y, dx, dy


def _slope(X: pin.SE3) -> np.ndarray:
    n = X.rotation[:, 2]
    return -n[:2] / max(float(n[2]), 0.5)
