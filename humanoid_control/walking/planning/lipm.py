"""The linear inverted pendulum: divergent component of motion for zero-moment points that move along straight lines.

c'' = w^2 (c - p), split into xi = c + c'/w, which runs away from p, and c, which follows xi (Takenaka 2009,
Englsberger 2013):

    c' = w (xi - c),    xi' = w (xi - p),    w^2 = g / z.

For p linear in t, with the velocity v, on [t0, t1] (from the general polynomial, Englsberger 2015)

    xi(t) = p(t) + v / w + (xi(t1) - p(t1) - v / w) exp(w (t - t1)).

Taken backward from a rest xi(end) = p(end) this is exact and stable whatever the number of pieces.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from humanoid_control.jit import kernel


class ZmpPath(NamedTuple):
    """A zero-moment point that moves along straight lines, and the divergent component that belongs to it.

    Attributes:
        t: (k,) times of its corners, rising [s]. p: (k, 2) corners [m]. Outside: the first and the last one.
        xi: (k, 2) divergent component of motion at the corners [m]. omega: of the pendulum [1/s].
    """

    t: np.ndarray
    p: np.ndarray
    xi: np.ndarray
    omega: float

    @classmethod
    def of(cls, t: np.ndarray, p: np.ndarray, omega: float) -> ZmpPath:
        """The path through corners, at rest at the end.

        Args:
            t: (k,) rising [s]. p: (k, 2) [m]. omega: [1/s].
        """
        t, p = np.asarray(t, dtype=float), np.asarray(p, dtype=float)
        xi = np.empty_like(p)
        xi[-1] = p[-1]
        for i in range(len(t) - 2, -1, -1):
            xi[i] = _dcm(t[i], t[i], t[i + 1], p[i], p[i + 1], xi[i + 1], omega)
        return cls(t, p, xi, float(omega))

    def zmp(self, t: float) -> np.ndarray:
        """The zero-moment point (2,) [m]."""
        return np.asarray(_zmp_at(self.t, self.p, float(t)))

    def dcm(self, t: float) -> np.ndarray:
        """The divergent component of motion (2,) [m]."""
        return np.asarray(_dcm_at(self.t, self.p, self.xi, self.omega, float(t)))


class SampledPath(NamedTuple):
    """A zero-moment point and its divergent component at close times, straight between them.

    Attributes:
        t: (k,) rising [s]. p, xi: (k, 2) [m]. omega: of the pendulum [1/s].
    """

    t: np.ndarray
    p: np.ndarray
    xi: np.ndarray
    omega: float

    def zmp(self, t: float) -> np.ndarray:
        """The zero-moment point (2,) [m]."""
        return _between(self.t, self.p, t)

    def dcm(self, t: float) -> np.ndarray:
        """The divergent component of motion (2,) [m]."""
        return _between(self.t, self.xi, t)


def _between(times: np.ndarray, values: np.ndarray, t: float) -> np.ndarray:
    """Value at t, linear between samples, held outside."""
    return np.array([np.interp(t, times, column) for column in values.T])


@kernel
def _zmp_at(times: np.ndarray, p: np.ndarray, t: float) -> np.ndarray:
    i = np.searchsorted(times, t, side="right") - 1
    if i < 0:
        return p[0].copy()
    if i >= len(times) - 1:
        return p[-1].copy()
    s = (t - times[i]) / (times[i + 1] - times[i])
    return p[i] + s * (p[i + 1] - p[i])


@kernel
def _dcm_at(times: np.ndarray, p: np.ndarray, xi: np.ndarray, omega: float, t: float) -> np.ndarray:
    i = np.searchsorted(times, t, side="right") - 1
    if i < 0:
        return p[0] + (xi[0] - p[0]) * np.exp(omega * (t - times[0]))
    if i >= len(times) - 1:
        return xi[-1].copy()
    return _dcm(t, times[i], times[i + 1], p[i], p[i + 1], xi[i + 1], omega)


@kernel
def _dcm(t: float, t0: float, t1: float, p0: np.ndarray, p1: np.ndarray, xi1: np.ndarray, omega: float) -> np.ndarray:
    """Divergent component (2,) at t of the piece from (t0, p0) to (t1, p1) that ends at xi1."""
    if t1 <= t0:
        return xi1.copy()
    v = (p1 - p0) / (t1 - t0)
    return p0 + v * (t - t0) + v / omega + (xi1 - p1 - v / omega) * np.exp(omega * (t - t1))


def shift_to(shift: np.ndarray, omega: float, duration: float) -> np.ndarray:
    """How far (2,) the zero-moment point must move, for a time from now on, for xi now to be another by `shift` (2,).

    From xi(t0) = int_t0^inf w exp(-w (s - t0)) p(s) ds, with a constant shift of p over the duration [s].
    """
    return shift / (1.0 - np.exp(-omega * duration))


@kernel
def follow_dcm(c: np.ndarray, xi0: np.ndarray, xi1: np.ndarray, omega: float, dt: float) -> np.ndarray:
    """Centre of mass (2,) after dt, with xi moving evenly from xi0 to xi1: c' = w (xi - c), integrated exactly."""
    v = (xi1 - xi0) / dt
    rest = xi0 - v / omega  # of the particular solution c = xi(t) - v / w
    return rest + v * dt + (c - rest) * np.exp(-omega * dt)
