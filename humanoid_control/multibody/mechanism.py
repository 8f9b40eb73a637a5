"""What all drives share: motor angles from joint angles, and back by Newton's method."""

from __future__ import annotations

from abc import ABC, abstractmethod
from itertools import product

import numpy as np
from numpy.typing import ArrayLike

from humanoid_control.errors import RobotError

MAX_STEPS, HALVINGS, TOLERANCE = 60, 25, 1e-13
MARGIN = 0.05  # how far beyond the joint range the search may go, as a share of it


class Mechanism(ABC):
    """A drive: n joint angles q [rad] that fix m = n motor angles phi [rad], counted from where all joints are zero.

    Motor angles are explicit in the joint angles; the other way needs Newton's method (Schwienbacher 2014, section
    3.5). A motor torque tau acts on the joints as Q = jacobian(q)^T tau. Arrays are (n,) and (m,) also where n = 1.

    Attributes:
        name: of the drive, for messages.
        lower, upper: (n,) the joint ranges [rad].
    """

    def __init__(self, name: str, lower: ArrayLike, upper: ArrayLike) -> None:
        self.name = name
        self.lower = np.atleast_1d(np.asarray(lower, dtype=float))
        self.upper = np.atleast_1d(np.asarray(upper, dtype=float))

    @property
    def n(self) -> int:
        """How many joints it drives."""
        return len(self.lower)

    @abstractmethod
    def motor(self, q: np.ndarray) -> np.ndarray:
        """Motor angles (m,) at joint angles (n,); NaN where the loop cannot close."""

    @abstractmethod
    def jacobian(self, q: np.ndarray) -> np.ndarray:
        """d phi / d q (m, n)."""

    @abstractmethod
    def hessian(self, q: np.ndarray) -> np.ndarray:
        """d2 phi / d q2 (m, n, n)."""

    @abstractmethod
    def closure(self, q: np.ndarray) -> np.ndarray:
        """By how much each rigid member (m,) would have to change its length [m], from the mechanism's points at q."""

    def jacobian_rate(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Time derivative (m, n) of the Jacobian at joint velocities v (n,), exact."""
        return self.hessian(q) @ np.atleast_1d(np.asarray(v, dtype=float))

    def joint(self, phi: np.ndarray, start: np.ndarray | None = None) -> np.ndarray:
        """Joint angles (n,) inside the joint range at motor angles (m,), by Newton's method with halved steps.

        Args:
            phi: (m,) [rad].
            start: (n,) where to begin; default: the middle of the range. From a bad start others are tried.

        Raises:
            RobotError: no joint angles of the range give these motor angles.
        """
        phi = np.atleast_1d(np.asarray(phi, dtype=float))
        middle = (self.lower + self.upper) / 2
        starts = [middle if start is None else np.atleast_1d(np.asarray(start, dtype=float)), middle]
        starts += [np.array(p) for p in product(*np.linspace(self.lower, self.upper, 5).T)]
        for q in starts:
            found = self._newton(phi, q)
            if found is not None:
                return found
        asked, reach = np.round(phi, 6).tolist(), np.round([self.lower, self.upper], 4).tolist()
        raise RobotError(
            f"{self.name}: no joint angles between {reach[0]} and {reach[1]} rad give the motor angles {asked} rad: "
            "check the motor angles and where they count from"
        )

    def _newton(self, phi: np.ndarray, q: np.ndarray) -> np.ndarray | None:
        room = MARGIN * (self.upper - self.lower)
        low, high = self.lower - room, self.upper + room
        q = np.clip(np.where(np.isfinite(q), q, low), low, high)
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
                if float(rest @ rest) < size:  # also False where the loop does not close
                    break
                share /= 2
            else:  # no step brings it nearer: rounding decides, or this is not the way
                return q if np.abs(step).max() < 1e3 * TOLERANCE and self._inside(q) else None
            moved = float(np.abs(nearer - q).max())
            q, error = nearer, rest
            if moved < TOLERANCE and np.abs(error).max() < 1e-6:
                break
        return q if np.abs(np.linalg.solve(self.jacobian(q), error)).max() < 1e-11 and self._inside(q) else None

    def _inside(self, q: np.ndarray) -> bool:
        return bool((q >= self.lower - 1e-6).all() and (q <= self.upper + 1e-6).all())

    def check(self) -> None:
        """Make sure that the loop closes over the whole joint range, with a transmission that keeps its sign.

        Raises:
            RobotError: it does not; the message says at which joint angles.
        """
        sign, samples = 0.0, 41 if self.n == 1 else 15
        for point in product(*np.linspace(self.lower, self.upper, samples).T):
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
