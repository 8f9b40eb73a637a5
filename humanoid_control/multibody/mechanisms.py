"""Drive mechanisms: motor angles from joint angles, and back by Newton's method (Schwienbacher 2014, chapter 3)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from itertools import product

import numpy as np
from numpy.typing import ArrayLike

from humanoid_control.errors import RobotError
from humanoid_control.multibody.couplings import (
    CouplerGeometry,
    FourBarGeometry,
    VergenceGeometry,
    checked_vector,
    coupler_parameters,
    coupler_screw,
    four_bar,
    four_bar_parameters,
    hinge_parameters,
    hinge_screw,
    hinge_tilt,
    linear,
    linear_parameters,
    positive,
    rotate_about,
    unit_vector,
    vergence_lever,
    vergence_parameters,
)

MAX_STEPS, HALVINGS, TOLERANCE = 60, 25, 1e-13
MARGIN = 0.05  # search range beyond the joint range, relative


class DriveMechanism(ABC):
    """Drive of n joint angles q [rad] with m = n motor angles phi [rad], zero at zero joint angles.

    phi(q) is explicit; the inverse uses Newton's method (Schwienbacher 2014, section 3.5). Motor torques give joint
    torques jacobian(q)^T tau. Arrays are (n,), also for n = 1; limits [rad] may be infinite.
    """

    def __init__(self, name: str, lower: ArrayLike, upper: ArrayLike) -> None:
        self.name = name
        self.lower = np.atleast_1d(np.asarray(lower, dtype=float))
        self.upper = np.atleast_1d(np.asarray(upper, dtype=float))

    @property
    def n(self) -> int:
        return len(self.lower)

    @property
    def turn(self) -> tuple[np.ndarray, np.ndarray]:
        """(n,) joint limits [rad], or one turn about zero."""
        lower, upper = self.lower, self.upper
        low = np.where(np.isinf(lower), np.where(np.isinf(upper), -np.pi, upper - 2 * np.pi), lower)
        return low, np.where(np.isinf(upper), low + 2 * np.pi, upper)

    @abstractmethod
    def motor(self, q: np.ndarray) -> np.ndarray:
        """Return motor angles (m,) at joint angles (n,); NaN if the loop cannot close."""

    @abstractmethod
    def jacobian(self, q: np.ndarray) -> np.ndarray:
        """Return d phi / d q (m, n)."""

    @abstractmethod
    def hessian(self, q: np.ndarray) -> np.ndarray:
        """Return d2 phi / d q2 (m, n, n)."""

    @abstractmethod
    def closure(self, q: np.ndarray) -> np.ndarray:
        """Return the closure error (m,) of the rigid members at q [m]."""

    def jacobian_rate(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return the time derivative (m, n) of the Jacobian at v (n,)."""
        return self.hessian(q) @ np.atleast_1d(np.asarray(v, dtype=float))

    def joint(self, phi: np.ndarray, start: np.ndarray | None = None) -> np.ndarray:
        """Return joint angles (n,) within limits at motor angles (m,) [rad], by damped Newton.

        Several starts are tried, first `start` (n,).

        Raises:
            RobotError: if no joint angles within limits give phi.
        """
        phi = np.atleast_1d(np.asarray(phi, dtype=float))
        low, high = self.turn
        middle = (low + high) / 2
        starts = [middle if start is None else np.atleast_1d(np.asarray(start, dtype=float)), middle]
        starts += [np.array(p) for p in product(*np.linspace(low, high, 5).T)]
        for q in starts:
            found = self._newton(phi, q)
            if found is not None:
                return found
        given, span = np.round(phi, 6).tolist(), np.round([self.lower, self.upper], 4).tolist()
        raise RobotError(
            f"{self.name}: no joint angles between {span[0]} and {span[1]} rad match the motor angles {given} rad: "
            "check the motor angles and their zeros"
        )

    def _newton(self, phi: np.ndarray, q: np.ndarray) -> np.ndarray | None:
        room = MARGIN * (self.upper - self.lower)
        low, high = self.lower - room, self.upper + room
        q = np.clip(np.where(np.isfinite(q), q, self.turn[0] - np.where(np.isfinite(room), room, 0.0)), low, high)
        error = self.motor(q) - phi
        if not np.isfinite(error).all():
            return None
        for _ in range(MAX_STEPS):
            try:
                step = -np.linalg.solve(self.jacobian(q), error)
            except np.linalg.LinAlgError:
                return None
            share, size = 1.0, float(error @ error)
            for _ in range(HALVINGS):
                nearer = np.clip(q + share * step, low, high)
                rest = self.motor(nearer) - phi
                if float(rest @ rest) < size:  # also False if the loop does not close
                    break
                share /= 2
            else:  # no decrease: rounding, or no solution from here
                return q if np.abs(step).max() < 1e3 * TOLERANCE and self._inside(q) else None
            moved = float(np.abs(nearer - q).max())
            q, error = nearer, rest
            if moved < TOLERANCE and np.abs(error).max() < 1e-6:
                break
        return q if np.abs(np.linalg.solve(self.jacobian(q), error)).max() < 1e-11 and self._inside(q) else None

    def _inside(self, q: np.ndarray) -> bool:
        return bool((q >= self.lower - 1e-6).all() and (q <= self.upper + 1e-6).all())

    def check(self) -> None:
        """Check that the loop closes over the joint range, without a singularity.

        Raises:
            RobotError: otherwise.
        """
        sign, samples = 0.0, 41 if self.n == 1 else 15
        for point in product(*np.linspace(*self.turn, samples).T):
            q = np.array(point)
            at = f"at joint angle{'s' * (self.n > 1)} {', '.join(f'{np.degrees(x):.1f}' for x in q)} deg"
            if not np.isfinite(self.motor(q)).all():
                raise RobotError(f"{self.name}: the loop cannot close {at}: change its lengths or the joint's range")
            turn = float(np.sign(np.linalg.det(self.jacobian(q))))
            if turn == 0 or (sign and turn != sign):
                raise RobotError(
                    f"{self.name}: the transmission is singular near {at[3:]}: change its points or the joint's range"
                )
            sign = turn


# -------- Gears and levers


class OneJoint(DriveMechanism):
    """Drive of one joint: phi = ratio g(q), with compiled `coupling` g(par, at, q) -> (g, g', g'')."""

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
    """phi = N q (Schwienbacher 2014, eq. (3.1)), N of any sign; also a mimic joint."""

    coupling = staticmethod(linear)

    def __init__(self, name: str, lower: float, upper: float, ratio: float, offset: float = 0.0) -> None:
        super().__init__(name, lower, upper)
        self.par = linear_parameters(ratio, offset)

    def closure(self, q: np.ndarray) -> np.ndarray:
        return np.zeros(1)


class FourBar(OneJoint):
    """Rocker of length c that drives the joint's crank a by a coupler b; pivots d apart."""

    coupling = staticmethod(four_bar)

    def __init__(self, name: str, lower: float, upper: float, geometry: FourBarGeometry, ratio: float = 1.0) -> None:
        super().__init__(name, lower, upper)
        self.par, self.ratio = four_bar_parameters(geometry), float(ratio)

    def closure(self, q: np.ndarray) -> np.ndarray:
        a, b, c, d, zero, _, p_0 = self.par
        t, p = float(np.atleast_1d(q)[0]) + zero, self._at(q)[0] + p_0
        end = np.array([d + c * np.cos(p) - a * np.cos(t), c * np.sin(p) - a * np.sin(t)])
        return np.array([float(np.linalg.norm(end)) - b])


class Vergence(OneJoint):
    """Motor of a camera pair by a double lever (3.43)."""

    coupling = staticmethod(vergence_lever)

    def __init__(self, name: str, lower: float, upper: float, geometry: VergenceGeometry, ratio: float = 1.0) -> None:
        super().__init__(name, lower, upper)
        self.par, self.ratio = vergence_parameters(geometry), float(ratio)

    def closure(self, q: np.ndarray) -> np.ndarray:
        rax, lever, coupler, kx, kz, bx, bz, share, _, zero = self.par
        phi, turn = self._at(q)[0] + zero, share * float(np.atleast_1d(q)[0])
        a = np.array([rax, lever * np.sin(phi), lever * np.cos(phi)])
        c, s = np.cos(turn), np.sin(turn)
        b = np.array([kx + c * bx + s * bz, 0.0, kz - s * bx + c * bz])
        return np.array([float(np.linalg.norm(a - b)) - coupler])


# -------- Roller screws


def rotated(axis: np.ndarray, angle: float, v: np.ndarray) -> np.ndarray:
    (nx, ny, nz), (x, y, z) = axis, v
    return np.array(rotate_about(nx, ny, nz, np.sin(angle), np.cos(angle), x, y, z))


class KneeScrew(OneJoint):
    """Screw between hinge B on the parent and pivot A on the child (Schwienbacher 2014, eq. (3.3) to (3.20)).

    Args:
        r_b: hinge B (3,), from the joint [m].
        r_a: pivot A (3,), from the joint [m]; axes agree at q = 0.
        axis: of the joint (3,).
        lead: travel per turn [m].
    """

    coupling = staticmethod(hinge_screw)

    def __init__(
        self, name: str, lower: float, upper: float, *, r_b: np.ndarray, r_a: np.ndarray, axis: np.ndarray, lead: float
    ) -> None:
        super().__init__(name, lower, upper)
        self.r_b, self.r_a = checked_vector(r_b, "r_b"), checked_vector(r_a, "r_a")
        self.axis = unit_vector(axis, "the joint axis")
        self.par, self.ratio = hinge_parameters(r_b, r_a, axis), 2 * np.pi / positive(lead, "the lead")
        self.at_zero = float(np.linalg.norm(self.r_a - self.r_b))

    def motor(self, q: np.ndarray) -> np.ndarray:
        return np.array([self.ratio * (self._at(q)[0] - self.at_zero)])

    def closure(self, q: np.ndarray) -> np.ndarray:
        r = rotated(self.axis, float(np.atleast_1d(q)[0]), self.r_a) - self.r_b
        return np.array([self._at(q)[0] - float(np.linalg.norm(r))])

    def screw_axis(self) -> np.ndarray:
        """Return the screw direction (3,) on the parent at q = 0."""
        return (self.r_a - self.r_b) / self.at_zero

    def tilt(self, q: float) -> tuple[float, float, float]:
        """Return the screw's rotation about the joint axis since q = 0 [rad], and two derivatives."""
        return hinge_tilt(self.par, 0, float(q))


class AnkleScrews(DriveMechanism):
    """Two screws that move two joints by couplers (Schwienbacher 2014, eq. (3.22) to (3.36)).

    Args:
        lower: (2,) [rad], the joint nearer to the screws first.
        upper: (2,) [rad].
        screws: both, with the same joints.
        lead: travel per turn [m].
    """

    def __init__(
        self, name: str, lower: ArrayLike, upper: ArrayLike, screws: Sequence[CouplerGeometry], lead: float
    ) -> None:
        super().__init__(name, lower, upper)
        self.pars = np.array([coupler_parameters(g) for g in screws])
        self.ratio = 2 * np.pi / positive(lead, "the lead")
        at_zero = [coupler_screw(p, 0, 0.0, 0.0)[0] for p in self.pars]
        self.at_zero = np.where(np.isfinite(at_zero), at_zero, 0.0)

    def travel(self, q: np.ndarray) -> np.ndarray:
        """Return carriage distances (2,) from the start of the screws [m]."""
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
        """Return coupler vectors (2, 3) from carriage to link, in the screws' link [m]."""
        out = []
        for p, travel in zip(self.pars, self.travel(q), strict=True):
            below = rotated(p[9:12], float(q[1]), p[12:15]) + p[6:9]
            out.append(p[0:3] + rotated(p[3:6], float(q[0]), below) - travel * p[15:18])
        return np.array(out)

    def _at(self, q: np.ndarray) -> np.ndarray:
        return np.array([coupler_screw(p, 0, float(q[0]), float(q[1])) for p in self.pars])
