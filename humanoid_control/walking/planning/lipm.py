"""Linear inverted pendulum: divergent component for piecewise linear zero-moment points.

c'' = w^2 (c - p) splits into xi = c + c'/w, which diverges from p, and c, which converges to xi (Takenaka 2009,
Englsberger 2013):

    c' = w (xi - c),    xi' = w (xi - p),    w^2 = g / z.

For p linear in t with velocity v on [t0, t1] (special case of Englsberger 2015)

    xi(t) = p(t) + v / w + (xi(t1) - p(t1) - v / w) exp(w (t - t1)).

The backward recursion from rest, xi(end) = p(end), is exact and stable.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from humanoid_control.compiled.jit import kernel


class ZmpPath(NamedTuple):
    """Piecewise linear ZMP and its DCM.

    Attributes:
        t: (k,) rising times of the corners [s].
        p: (k, 2) corners, held before the first and after the last [m].
        xi: (k, 2) DCM at the corners [m].
        omega: pendulum rate sqrt(g / z) [1/s].
    """

    t: np.ndarray
    p: np.ndarray
    xi: np.ndarray
    omega: float

    @classmethod
    def of(cls, t: np.ndarray, p: np.ndarray, omega: float) -> ZmpPath:
        """Return the path through corners, at rest at the end."""
        t, p = np.asarray(t, dtype=float), np.asarray(p, dtype=float)
        xi = np.empty_like(p)
        xi[-1] = p[-1]
        for i in range(len(t) - 2, -1, -1):
            xi[i] = _dcm(t[i], t[i], t[i + 1], p[i], p[i + 1], xi[i + 1], omega)
        return cls(t, p, xi, float(omega))

    def zmp(self, t: float) -> np.ndarray:
        """Return the ZMP (2,) [m]."""
        return np.asarray(_zmp_at(self.t, self.p, float(t)))

    def dcm(self, t: float) -> np.ndarray:
        """Return the DCM (2,) [m]."""
        return np.asarray(_dcm_at(self.t, self.p, self.xi, self.omega, float(t)))


class SampledPath(NamedTuple):
    """Densely sampled ZMP and DCM, linear between samples; attributes as ZmpPath."""

    t: np.ndarray
    p: np.ndarray
    xi: np.ndarray
    omega: float

    def zmp(self, t: float) -> np.ndarray:
        return _between(self.t, self.p, t)

    def dcm(self, t: float) -> np.ndarray:
        return _between(self.t, self.xi, t)


def _between(times: np.ndarray, values: np.ndarray, t: float) -> np.ndarray:
    return np.array([np.interp(t, times, column) for column in values.T])


@kernel(allocates=True)
def _zmp_at(times: np.ndarray, p: np.ndarray, t: float) -> np.ndarray:
    i = np.searchsorted(times, t, side="right") - 1
    if i < 0:
        return p[0].copy()
    if i >= len(times) - 1:
        return p[-1].copy()
    # linear interpolation between the corners
    s = (t - times[i]) / (times[i + 1] - times[i])
    return p[i] + s * (p[i + 1] - p[i])


@kernel(allocates=True)
def _dcm_at(times: np.ndarray, p: np.ndarray, xi: np.ndarray, omega: float, t: float) -> np.ndarray:
    i = np.searchsorted(times, t, side="right") - 1
    # before the path: p rests at p[0], from which xi diverges
    if i < 0:
        return p[0] + (xi[0] - p[0]) * np.exp(omega * (t - times[0]))
    # after the path: at rest
    if i >= len(times) - 1:
        return xi[-1].copy()
    return _dcm(t, times[i], times[i + 1], p[i], p[i + 1], xi[i + 1], omega)


@kernel(allocates=True)
def _dcm(t: float, t0: float, t1: float, p0: np.ndarray, p1: np.ndarray, xi1: np.ndarray, omega: float) -> np.ndarray:
    """Return xi (2,) at t on the piece from (t0, p0) to (t1, p1) that ends at xi1."""
    if t1 <= t0:
        return xi1.copy()
    # solution backward from xi1: exp(w (t - t1)) <= 1, so errors shrink
    v = (p1 - p0) / (t1 - t0)
    return p0 + v * (t - t0) + v / omega + (xi1 - p1 - v / omega) * np.exp(omega * (t - t1))


@kernel(allocates=True)
def follow_dcm(c: np.ndarray, xi0: np.ndarray, xi1: np.ndarray, omega: float, dt: float) -> np.ndarray:
    """Return the CoM (2,) after dt, with xi linear from xi0 to xi1: c' = w (xi - c), integrated exactly."""
    v = (xi1 - xi0) / dt
    rest = xi0 - v / omega  # particular solution c = xi(t) - v / w
    return rest + v * dt + (c - rest) * np.exp(-omega * dt)
