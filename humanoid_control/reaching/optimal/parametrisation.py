"""Joint trajectories by few parameters: Hermite segments, and one ninth-order polynomial.

On a segment of duration h, with s = (t - t_k) / h,

    d^k q / dt^k = sum_a  phi_a^(k)(s) / h^k  x_a,      x_a one of  q, h q', h^2 q''  at a knot,

so all parameters x are angles.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np

from humanoid_control.compiled.array_types import F1, F3
from humanoid_control.errors import ConfigError, UnknownNameError

QUINTIC, CUBIC, NINTH = "quintic", "cubic", "ninth"
PARAMETRISATIONS = {
    QUINTIC: "quintic Hermite segments, without jumps in position, speed and acceleration",
    CUBIC: "cubic Hermite segments: accelerations jump at the knots; for the torque alone",
    NINTH: "one polynomial of ninth order, by two inner points; for times up to 2 s",
}
NINTH_TIME = 2.0  # [s] beyond it one polynomial is too stiff for human motion
ORDERS = 4  # position, velocity, acceleration, jerk
_AT = {QUINTIC: (0, 0, 0, 1, 1, 1), CUBIC: (0, 0, 1, 1), NINTH: (0, 0, 0, 1 / 3, 1 / 3, 2 / 3, 2 / 3, 1, 1, 1)}
_ORDER = {QUINTIC: (0, 1, 2, 0, 1, 2), CUBIC: (0, 1, 0, 1), NINTH: (0, 1, 2, 0, 1, 0, 1, 0, 1, 2)}
_POINTS = {QUINTIC: 5, CUBIC: 5, NINTH: 14}


class Quadrature(NamedTuple):
    """Gauss-Legendre points of a segment, equal for all segments.

    Attributes:
        phi: (K, L, 4) time derivatives 0 to 3 of the basis at K points, L parameters.
        weight: (K,) [s].
        segments: count.
        stride: parameters between segments.
    """

    phi: F3
    weight: F1
    segments: int
    stride: int


class Parametrisation:
    """Trajectories of one kind and duration.

    Attributes:
        segments: 1 for a polynomial.
        h: segment duration [s].
        numbers: parameters G per joint.
        order: (G,) derivative of each parameter.
        quadrature: points of the cost.
    """

    def __init__(self, kind: str, segments: int, seconds: float, points: int = 0) -> None:
        """Create the parametrisation.

        Args:
            kind: QUINTIC, CUBIC or NINTH.
            segments: count.
            seconds: duration [s].
            points: quadrature points per segment; 0: those of squared jerk, plus 2.

        Raises:
            UnknownNameError: if the kind is unknown.
            ConfigError: if the duration is not positive, or there are no segments.
        """
        if kind not in PARAMETRISATIONS:
            raise UnknownNameError("parametrisation", kind, PARAMETRISATIONS)
        if not (np.isfinite(seconds) and seconds > 0):
            raise ConfigError(f"the duration of a reach must be positive, got {seconds:g} s")
        if segments < 1:
            raise ConfigError(f"a trajectory needs at least one segment, got {segments}")
        self.kind, self.segments, self.seconds = kind, 1 if kind == NINTH else segments, float(seconds)
        self.h = self.seconds / self.segments
        self._local = len(_AT[kind])
        self._stride = self._local if kind == NINTH else self._local // 2
        self.numbers = self._stride * (self.segments - 1) + self._local
        first = np.array(_ORDER[kind])
        self.order = first if kind == NINTH else np.tile(first[: self._stride], self.segments + 1)
        self._polynomials = _basis_polynomials(kind)
        nodes, weight = np.polynomial.legendre.leggauss(points or _POINTS[kind])
        self.quadrature = Quadrature(self._basis(0.5 * (nodes + 1)), 0.5 * self.h * weight, self.segments, self._stride)

    @property
    def has_jerk(self) -> bool:
        """False if accelerations jump at knots, invisible to costs of jerk."""
        return self.kind != CUBIC

    def ends(self, free_acceleration: bool = False) -> np.ndarray:
        """Return the mask (G,) of parameters fixed by the ends; the acceleration may be free."""
        fixed = np.zeros(self.numbers, dtype=bool)
        count = 2 if self.kind == CUBIC else 3
        fixed[:count] = fixed[-count:] = True
        return fixed & ~(free_acceleration & (self.order == 2))

    def fit(self, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
        """Return parameters x (G, N) for derivatives (knots, N) at the knots."""
        k = np.array([0, 0, 0, 1, 1, 2, 2, 3, 3, 3]) if self.kind == NINTH else np.arange(self.numbers) // self._stride
        value = np.stack([q[k], v[k], a[k]])
        return np.asarray(value[self.order, np.arange(self.numbers)] * (self.h**self.order)[:, None])

    def knots(self) -> np.ndarray:
        """Return the times of the knots [s]."""
        return np.linspace(0.0, self.seconds, 4 if self.kind == NINTH else self.segments + 1)

    def evaluate(self, x: np.ndarray, t: np.ndarray) -> np.ndarray:
        """Return position, velocity, acceleration and jerk (4, T, N) of x (G, N) at times (T,) [s]."""
        s = np.clip(np.asarray(t, dtype=float) / self.h, 0.0, self.segments)
        k = np.minimum(s.astype(int), self.segments - 1)
        phi = self._basis(s - k)
        nodes = x[self._stride * k[:, None] + np.arange(self._local)]
        return np.asarray(np.einsum("tlo,tln->otn", phi, nodes))

    def _basis(self, s: np.ndarray) -> np.ndarray:
        powers = s[:, None] ** np.arange(self._local)
        return np.ascontiguousarray(np.einsum("tp,kap->tak", powers, self._polynomials) / self.h ** np.arange(ORDERS))


@functools.cache
def _basis_polynomials(kind: str) -> np.ndarray:
    """Return coefficients (4, L, L), lowest first, of the basis and three derivatives."""
    at, order = _AT[kind], _ORDER[kind]
    n = len(at)
    # Row i evaluates condition i; each basis polynomial has one condition 1 and all others 0.
    rows = np.zeros((n, n))
    for i, (s, k) in enumerate(zip(at, order, strict=True)):
        for p in range(k, n):
            rows[i, p] = np.prod(np.arange(p - k + 1, p + 1)) * s ** (p - k)
    out = np.zeros((ORDERS, n, n))
    out[0] = np.linalg.inv(rows).T
    for k in range(1, ORDERS):
        out[k, :, :-1] = out[k - 1, :, 1:] * np.arange(1, n)
    return out
