"""What a null-space objective is: a scalar cost H(q) and its gradient."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
import pinocchio as pin

from humanoid_control.robots import Robot


class Objective(ABC):
    """A cost H(q) that is made smaller with whatever freedom the tasks leave (Liegeois, eq. 4.11)."""

    @abstractmethod
    def cost(self, robot: Robot, data: pin.Data, q: np.ndarray) -> float:
        """H(q), at what `prepare` has computed in `data`."""

    @abstractmethod
    def gradient(self, robot: Robot, data: pin.Data, q: np.ndarray) -> np.ndarray:
        """dH / dv, (nv,)."""
