"""When an iteration ends: any one of the four criteria of table 4.1, and which one it was."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np

from humanoid_control.errors import ConfigError


class Stop(Enum):
    """Why an iteration ended."""

    CONVERGED = "converged"
    GRADIENT = "gradient too small"
    PROGRESS = "progress too small"
    ITERATIONS = "iteration limit"
    SINGULAR = "rows depend on each other"


@dataclass(frozen=True)
class StopSettings:
    """The criteria; any one ends the iteration (the source says so, its formula prints 'and': erratum E-15).

    Attributes:
        iterations: k_max.
        converged: eps_c, of the weighted residual's length.
        progress: eps_p, of its change from one iteration to the next.
        gradient: eps_g, of the gradient's length.
    """

    iterations: int = 100
    converged: float = 1e-8
    progress: float = 1e-12
    gradient: float = 1e-10

    def __post_init__(self) -> None:
        if not (self.iterations >= 0 and self.converged > 0 and self.progress >= 0 and self.gradient >= 0):
            raise ConfigError("stopping: iterations >= 0, converged > 0, progress >= 0 and gradient >= 0 are needed")

    def fired(
        self, k: int, residual: np.ndarray, previous: np.ndarray | None, gradient: np.ndarray | None
    ) -> Stop | None:
        """The criterion that ends the iteration now, the most welcome one first; None: go on.

        Args:
            k: iterations done.
            residual: (m,) now. previous: (m,) an iteration ago; None at the start.
            gradient: (k,) of half the squared residual; None where the method does not compute it.
        """
        if float(np.linalg.norm(residual)) < self.converged:
            return Stop.CONVERGED
        if gradient is not None and float(np.linalg.norm(gradient)) < self.gradient:
            return Stop.GRADIENT
        comparable = previous is not None and len(previous) == len(residual)  # a half-space's row comes and goes
        if comparable and float(np.linalg.norm(residual - previous)) < self.progress:
            return Stop.PROGRESS
        return Stop.ITERATIONS if k >= self.iterations else None
