"""The polynomial joint-muscle mapping, eq. (4): lengths as polynomials of total degree P of all joints."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from humanoid_control.errors import ConfigError
from humanoid_control.tendons.mappings.mapping import Array, FitReport, JointMuscleMapping
from humanoid_control.tendons.mappings.monomials import Monomials
from humanoid_control.tendons.mappings.polynomial_kernels import directional, evaluate, evaluate_rows


class PolynomialMapping(JointMuscleMapping):
    """L = Phi C with Phi the monomials of the joint angles, each joint scaled to [-1, 1] over its range.

    Equation (4) as printed does not multiply and counts the factors wrongly; this is its corrected form, with C on the
    right and P factors to a monomial.

    Args:
        basis: the monomials. coefficients: (m, M) [m] of the scaled variables; their value at the zero posture is
            taken off, so that f(0) = 0.
    """

    kind = "polynomial"

    def __init__(
        self,
        basis: Monomials,
        coefficients: Array,
        joint_names: Sequence[str],
        muscle_names: Sequence[str],
        limits: Array,
        model_hash: str = "",
        fit: FitReport | None = None,
    ) -> None:
        super().__init__(joint_names, muscle_names, limits, model_hash, fit)
        if coefficients.shape != (len(basis.exponents), len(self.muscle_names)):
            expected = (len(basis.exponents), len(self.muscle_names))
            raise ConfigError(f"polynomial mapping: coefficients must be {expected}, got {coefficients.shape}")
        self.basis = basis
        self.centre = self.limits.mean(axis=1)
        self.scale = 2.0 / (self.limits[:, 1] - self.limits[:, 0])
        self.coefficients = np.ascontiguousarray(coefficients, float).copy()
        self._gradients = self._differentiate()
        self._phi = np.empty(len(basis.exponents))
        self._dphi = np.empty(basis.low)
        self.zero_offset = self.lengths(np.zeros(len(self.joint_names)))  # (M,) [m], taken off
        self.coefficients[0] -= self.zero_offset

    def _differentiate(self) -> Array:
        """Coefficients (low, M * D) of all partial derivatives by angle."""
        m, d = len(self.muscle_names), len(self.joint_names)
        out = np.zeros((self.basis.low, m, d))
        for j in range(d):
            rows = np.flatnonzero(self.basis.lower[:, j] >= 0)
            powers = self.basis.exponents[rows, j]
            out[self.basis.lower[rows, j], :, j] = powers[:, None] * self.coefficients[rows] * self.scale[j]
        return np.ascontiguousarray(out.reshape(self.basis.low, m * d))

    @property
    def degree(self) -> int:
        """Total degree P."""
        return self.basis.degree

    def evaluate_into(self, theta: Array, lengths: Array, jacobian: Array) -> None:
        """As the interface says."""
        b = self.basis
        c, g = self.coefficients, self._gradients
        evaluate(theta, self.centre, self.scale, b.parent, b.variable, c, g, self._phi, lengths, jacobian)

    def directional_into(self, theta: Array, v: Array, out: Array) -> None:
        """As the interface says, exact."""
        b, g = self.basis, self._gradients
        directional(theta, v, self.centre, self.scale, b.parent, b.variable, g, self._phi, self._dphi, out)

    def _evaluate_rows(self, rows: Array) -> tuple[Array, Array]:
        b = self.basis
        c, g = self.coefficients, self._gradients
        lengths = np.empty((len(rows), len(self.muscle_names)))
        jacobians = np.empty((*lengths.shape, len(self.joint_names)))
        evaluate_rows(rows, self.centre, self.scale, b.parent, b.variable, c, g, self._phi, lengths, jacobians)
        return lengths, jacobians
