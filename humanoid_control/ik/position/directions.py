"""Descent directions of algorithm 4.2: steepest descent, Gauss-Newton, quasi-Newton, conjugate gradients (4.5)."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from scipy.linalg import lapack


class Direction(Protocol):
    """How the next direction d = -B^-1 g is found."""

    def reset(self) -> None:
        """Begin anew."""
        ...

    def direction(self, J: np.ndarray, g: np.ndarray) -> np.ndarray:
        """d (k,) from the Jacobian (m, k) and the gradient g = J^T r (k,)."""
        ...

    def moved(self, s: np.ndarray, y: np.ndarray) -> None:
        """Learn from the step s (k,) that was taken and the change y (k,) of the gradient over it."""
        ...


class SteepestDescent:
    """B = E."""

    def reset(self) -> None:
        """Nothing is kept."""

    def direction(self, J: np.ndarray, g: np.ndarray) -> np.ndarray:
        return -g

    def moved(self, s: np.ndarray, y: np.ndarray) -> None:
        """Nothing is learned."""


class GaussNewton:
    """B = J^T J + delta E: Newton's method without the curvature of f, which the source calls exact (erratum E-16).

    Attributes:
        delta: makes B regular where there are fewer rows than free velocities.
    """

    def __init__(self, delta: float = 1e-6) -> None:
        self.delta = delta

    def reset(self) -> None:
        """Nothing is kept."""

    def direction(self, J: np.ndarray, g: np.ndarray) -> np.ndarray:
        B = J.T @ J
        B[np.diag_indices_from(B)] += self.delta
        _, d, info = lapack.dposv(B, -g, lower=1)
        return d if info == 0 else -g

    def moved(self, s: np.ndarray, y: np.ndarray) -> None:
        """Nothing is learned."""


class Bfgs:
    """Quasi-Newton: B^-1 is built up from the changes of the gradient (Broyden, Fletcher, Goldfarb, Shanno)."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Begin with B = E."""
        self._inverse: np.ndarray | None = None

    def direction(self, J: np.ndarray, g: np.ndarray) -> np.ndarray:
        return -g if self._inverse is None else -self._inverse @ g

    def moved(self, s: np.ndarray, y: np.ndarray) -> None:
        curvature = float(s @ y)
        if curvature <= 1e-12 * float(np.linalg.norm(s) * np.linalg.norm(y)):
            return  # the update would not stay positive definite
        if self._inverse is None:
            self._inverse = np.eye(len(s)) * (curvature / float(y @ y))
        By = self._inverse @ y
        self._inverse = (
            self._inverse
            + np.outer(s, s) * ((curvature + float(y @ By)) / curvature**2)
            - (np.outer(By, s) + np.outer(s, By)) / curvature
        )


class ConjugateGradient:
    """d = -g + beta d_before with beta of Polak and Ribiere, not below 0: where it would be, it starts anew."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Begin with steepest descent."""
        self._g: np.ndarray | None = None
        self._d: np.ndarray | None = None

    def direction(self, J: np.ndarray, g: np.ndarray) -> np.ndarray:
        d = -g
        if self._g is not None and self._d is not None:
            beta = max(0.0, float(g @ (g - self._g)) / max(float(self._g @ self._g), 1e-300))
            d = d + beta * self._d
        if float(d @ g) >= 0.0:
            d = -g
        self._g, self._d = g, d
        return d

    def moved(self, s: np.ndarray, y: np.ndarray) -> None:
        """Nothing is learned."""
