"""Whether a filter knows how wrong it is: NIS from its innovations, NEES where the truth is known."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import chi2

from humanoid_control.tendons.mappings.mapping import Array


def nees(error: Array, covariance: Array) -> float:
    """Normalised estimation error squared, e^T P^-1 e; its mean is the number of states when P is honest.

    Args:
        error: (n,) estimate minus truth. covariance: (n, n) P.
    """
    return float(error @ np.linalg.solve(covariance, error))


@dataclass
class ChiSquareMean:
    """Running mean of NIS or NEES values against the interval that an honest filter stays in.

    Attributes:
        total: sum of the values. freedom: sum of their degrees of freedom. values: how many were added.
    """

    total: float = 0.0
    freedom: int = 0
    values: int = 0

    def add(self, value: float, freedom: int) -> None:
        """Take in a value with its degrees of freedom; none are known of an update that used no length."""
        if freedom > 0:
            self.total += value
            self.freedom += freedom
            self.values += 1

    @property
    def per_degree(self) -> float:
        """Mean value per degree of freedom: 1 when consistent, above when overconfident; NaN before any value."""
        return self.total / self.freedom if self.freedom else float("nan")

    def bounds(self, confidence: float = 0.99) -> tuple[float, float]:
        """Interval of `per_degree` for independent values of a consistent filter."""
        if not self.freedom:
            return 0.0, float("inf")
        low, high = chi2.ppf([(1 - confidence) / 2, (1 + confidence) / 2], self.freedom)
        return float(low / self.freedom), float(high / self.freedom)
