"""Drives by roller screws: the knee with one, the ankle with two side by side."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from humanoid_control.multibody.coupling_parameters import coupler_parameters, hinge_parameters, positive, unit, vector
from humanoid_control.multibody.gear_mechanisms import OneJoint
from humanoid_control.multibody.mechanism import Mechanism
from humanoid_control.multibody.screw_couplings import coupler_screw, hinge_screw, hinge_tilt


def rotated(axis: np.ndarray, angle: float, v: np.ndarray) -> np.ndarray:
    """A vector (3,) turned about a unit axis by an angle [rad] (Rodrigues)."""
    c, s = np.cos(angle), np.sin(angle)
    return c * v + s * np.cross(axis, v) + (1 - c) * (axis @ v) * axis


class KneeScrew(OneJoint):
    """A screw between a hinge B on the parent and a pivot A on the child (Schwienbacher 2014, eq. (3.3) to (3.20)).

    Args:
        r_b: hinge B on the parent link (3,), r_a: pivot A on the child link, from the joint, axes agree at zero [m].
        axis: of the joint (3,).
        lead: travel of the screw in one turn [m].
    """

    coupling = staticmethod(hinge_screw)

    def __init__(
        self, name: str, lower: float, upper: float, *, r_b: np.ndarray, r_a: np.ndarray, axis: np.ndarray, lead: float
    ) -> None:
        super().__init__(name, lower, upper)
        self.r_b, self.r_a, self.axis = vector(r_b, "r_b"), vector(r_a, "r_a"), unit(axis, "the joint axis")
        self.par, self.ratio = hinge_parameters(r_b, r_a, axis), 2 * np.pi / positive(lead, "the lead")
        self.at_zero = float(np.linalg.norm(self.r_a - self.r_b))

    def motor(self, q: np.ndarray) -> np.ndarray:
        return np.array([self.ratio * (self._at(q)[0] - self.at_zero)])

    def closure(self, q: np.ndarray) -> np.ndarray:
        r = rotated(self.axis, float(np.atleast_1d(q)[0]), self.r_a) - self.r_b
        return np.array([self._at(q)[0] - float(np.linalg.norm(r))])

    def screw_axis(self) -> np.ndarray:
        """Direction (3,) of the screw on the parent at joint angle zero: the rotor's axis with the tilt left out."""
        return (self.r_a - self.r_b) / self.at_zero

    def tilt(self, q: float) -> tuple[float, float, float]:
        """Angle by which the screw unit has turned about the joint axis since q = 0 [rad], and its two derivatives."""
        return hinge_tilt(self.par, 0, float(q))


class AnkleScrews(Mechanism):
    """Two screws that move two joints together by couplers (Schwienbacher 2014, eq. (3.22) to (3.36)).

    Args:
        lower, upper: (2,) ranges of the joint nearer to the screws' link and of the one after it [rad].
        r_pc_a, axis_1: first joint, seen from the screws' link [m], and its axis.
        r_pc_f, axis_2: second joint, seen from the first, and its axis; all axes agree where both joints are zero.
        r_bot, r_top: lower end of each coupler, from the second joint, and start of each screw (2, 3) [m].
        direction: of travel of the carriages (3,), or (2, 3) one each.
        coupler: length of both [m]. lead: travel of a screw in one turn [m]. branch: -1 as on Lola, or 1.
    """

    def __init__(
        self,
        name: str,
        lower: ArrayLike,
        upper: ArrayLike,
        *,
        r_pc_a: np.ndarray,
        axis_1: np.ndarray,
        r_pc_f: np.ndarray,
        axis_2: np.ndarray,
        r_bot: np.ndarray,
        r_top: np.ndarray,
        direction: np.ndarray,
        coupler: float,
        lead: float,
        branch: int = -1,
    ) -> None:
        super().__init__(name, lower, upper)
        directions = np.broadcast_to(np.asarray(direction, dtype=float), (2, 3))
        self.pars = np.array(
            [
                coupler_parameters(r_pc_a, axis_1, r_pc_f, axis_2, r_bot[k], r_top[k], directions[k], coupler, branch)
                for k in range(2)
            ]
        )
        self.ratio = 2 * np.pi / positive(lead, "the lead")
        at_zero = [coupler_screw(p, 0, 0.0, 0.0)[0] for p in self.pars]
        self.at_zero = np.where(np.isfinite(at_zero), at_zero, 0.0)

    def travel(self, q: np.ndarray) -> np.ndarray:
        """How far both carriages (2,) are from the start of their screws [m]."""
        return self._at(q)[:, 0]

    def motor(self, q: np.ndarray) -> np.ndarray:
        return self.ratio * (self.travel(q) - self.at_zero)

    def jacobian(self, q: np.ndarray) -> np.ndarray:
        return self.ratio * self._at(q)[:, 1:3]

    def hessian(self, q: np.ndarray) -> np.ndarray:
        return self.ratio * self._at(q)[:, [[3, 4], [4, 5]]]

    def closure(self, q: np.ndarray) -> np.ndarray:
        return np.array([np.linalg.norm(r) - p[18] for r, p in zip(self.couplers(q), self.pars, strict=True)])

    def couplers(self, q: np.ndarray) -> np.ndarray:
        """Both couplers (2, 3), from the carriage to the moved link, in the axes of the screws' link [m]."""
        out = []
        for p, travel in zip(self.pars, self.travel(q), strict=True):
            below = rotated(p[9:12], float(q[1]), p[12:15]) + p[6:9]
            out.append(p[0:3] + rotated(p[3:6], float(q[0]), below) - travel * p[15:18])
        return np.array(out)

    def _at(self, q: np.ndarray) -> np.ndarray:
        return np.array([coupler_screw(p, 0, float(q[0]), float(q[1])) for p in self.pars])
