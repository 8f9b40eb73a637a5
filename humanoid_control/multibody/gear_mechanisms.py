"""Drives of one joint by a gear or by levers: Harmonic Drive, planar four-bar, camera vergence."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from humanoid_control.multibody.coupling_parameters import four_bar_parameters, linear_parameters, vergence_parameters
from humanoid_control.multibody.lever_couplings import four_bar, linear, vergence_lever
from humanoid_control.multibody.mechanism import Mechanism


class OneJoint(Mechanism):
    """A drive of one joint by a scaled coupling: phi = ratio g(q).

    Attributes:
        coupling: the compiled g(par, at, q) -> (g, g', g''). par: its parameters. ratio: of the gear before it.
    """

    coupling: Callable
    par: np.ndarray
    ratio: float = 1.0

    def motor(self, q: np.ndarray) -> np.ndarray:
        return np.array([self.ratio * self._at(q)[0]])

    def jacobian(self, q: np.ndarray) -> np.ndarray:
        return np.array([[self.ratio * self._at(q)[1]]])

    def hessian(self, q: np.ndarray) -> np.ndarray:
        return np.array([[[self.ratio * self._at(q)[2]]]])

    def _at(self, q: np.ndarray) -> tuple[float, float, float]:
        return self.coupling(self.par, 0, float(np.atleast_1d(q)[0]))


class HarmonicDrive(OneJoint):
    """phi = N q (Schwienbacher 2014, eq. (3.1)); N may be negative. Also a mimicking joint."""

    coupling = staticmethod(linear)

    def __init__(self, name: str, lower: float, upper: float, ratio: float, offset: float = 0.0) -> None:
        super().__init__(name, lower, upper)
        self.par = linear_parameters(ratio, offset)

    def closure(self, q: np.ndarray) -> np.ndarray:
        return np.zeros(1)


class FourBar(OneJoint):
    """A rocker of length c that drives the joint's crank of length a by a coupler of length b; pivots d apart."""

    coupling = staticmethod(four_bar)

    def __init__(
        self,
        name: str,
        lower: float,
        upper: float,
        *,
        crank: float,
        coupler: float,
        rocker: float,
        ground: float,
        crank_zero: float,
        branch: int = 1,
        ratio: float = 1.0,
    ) -> None:
        super().__init__(name, lower, upper)
        self.par, self.ratio = four_bar_parameters(crank, coupler, rocker, ground, crank_zero, branch), float(ratio)

    def closure(self, q: np.ndarray) -> np.ndarray:
        a, b, c, d, zero, _, p_0 = self.par
        t, p = float(np.atleast_1d(q)[0]) + zero, self._at(q)[0] + p_0
        end = np.array([d + c * np.cos(p) - a * np.cos(t), c * np.sin(p) - a * np.sin(t)])
        return np.array([float(np.linalg.norm(end)) - b])


class Vergence(OneJoint):
    """The motor of a pair of cameras by a double lever and couplers (Schwienbacher 2014, eq. (3.38) to (3.45)).

    Args:
        r_ax, lever, coupler, r_k, r_b: as in the source, in its axes (lever about x, receptacle about y) [m].
        ratio: N of the gear between motor and lever (3.43).
        share: by how much of q one camera turns: 1/2 where q is the angle between both viewing directions.
        branch: 1 or -1: the side of the lever.
    """

    coupling = staticmethod(vergence_lever)

    def __init__(
        self,
        name: str,
        lower: float,
        upper: float,
        *,
        r_ax: float,
        lever: float,
        coupler: float,
        r_k: np.ndarray,
        r_b: np.ndarray,
        ratio: float = 1.0,
        share: float = 0.5,
        branch: int = 1,
    ) -> None:
        super().__init__(name, lower, upper)
        self.par, self.ratio = vergence_parameters(r_ax, lever, coupler, r_k, r_b, share, branch), float(ratio)

    def closure(self, q: np.ndarray) -> np.ndarray:
        rax, lever, coupler, kx, kz, bx, bz, share, _, zero = self.par
        phi, turn = self._at(q)[0] + zero, share * float(np.atleast_1d(q)[0])
        a = np.array([rax, lever * np.sin(phi), lever * np.cos(phi)])
        c, s = np.cos(turn), np.sin(turn)
        b = np.array([kx + c * bx + s * bz, 0.0, kz - s * bx + c * bz])
        return np.array([float(np.linalg.norm(a - b)) - coupler])
