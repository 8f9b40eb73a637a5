"""Functions of one coordinate that move the axes of joints: constant, polynomial, cubic spline; value and derivatives.

A spline is piecewise cubic with continuous second derivative. Its ends are those of Forsythe, Malcolm and Moler 1977:
the third derivative of the first (last) piece is that of the cubic through the first (last) four points. Outside it
goes on linearly with the slope at its end.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from humanoid_control.errors import RobotError
from humanoid_control.jit import inlined
from humanoid_control.numerics.array_types import F1, I1

POLYNOMIAL, SPLINE = 0, 1
LINEAR_TERMS = 2  # coefficients of a polynomial that is evaluated at once


@dataclass(frozen=True)
class Function:
    """Function of one coordinate [rad or m].

    Args:
        coefficients: of a polynomial, the constant first; empty for a spline.
        x, y: points of a spline, x rising; empty for a polynomial.
        gain: factor on its value.

    Raises:
        RobotError: neither or both; a spline of fewer than two points, or whose x do not rise; no finite numbers.
    """

    coefficients: tuple[float, ...] = ()
    x: tuple[float, ...] = ()
    y: tuple[float, ...] = ()
    gain: float = 1.0

    def __post_init__(self) -> None:
        if bool(self.coefficients) == bool(self.x):
            raise RobotError("a function is either a polynomial with coefficients or a spline with points")
        if len(self.x) != len(self.y) or len(self.x) == 1:
            raise RobotError(f"a spline of {len(self.x)} x and {len(self.y)} y: it needs two points or more of both")
        if not np.isfinite((*self.coefficients, *self.x, *self.y, self.gain)).all():
            raise RobotError("a function holds a number that is not finite")
        if any(b <= a for a, b in zip(self.x, self.x[1:], strict=False)):
            raise RobotError("the x of a spline must rise")

    @property
    def constant(self) -> bool:
        """True where it does not depend on the coordinate."""
        return not self.x and not any(self.coefficients[1:])

    @property
    def linear(self) -> bool:
        """True where it is a straight line, or constant."""
        return not self.x and not any(self.coefficients[2:])

    def scaled(self, factor: float) -> Function:
        """The function times a number."""
        return Function(self.coefficients, self.x, self.y, self.gain * factor)

    def __call__(self, u: np.ndarray | float) -> np.ndarray:
        """Values at coordinates u, of the same shape."""
        table, at = pack_functions([self]), np.asarray(u, dtype=float)
        return np.array([evaluate(table, 0, float(v))[0] for v in at.ravel()]).reshape(at.shape)


class FunctionTable(NamedTuple):
    """Functions for kernels.

    Attributes:
        kind, start, size (functions,): sort of each, place of its numbers, number of coefficients or points.
        data: ascending coefficients of polynomials, gain included; of a spline x, then four coefficients of each piece
            in powers of the distance from its left point, then value and slope at the last point.
    """

    kind: I1
    start: I1
    size: I1
    data: F1


def pack_functions(functions: list[Function]) -> FunctionTable:
    """Lay functions out for kernels."""
    kind, start, count, data = [], [], [], list[float]()
    for f in functions:
        start.append(len(data))
        if f.x:
            kind.append(SPLINE)
            count.append(len(f.x))
            pieces, last = spline_pieces(np.array(f.x), f.gain * np.array(f.y))
            data += [*f.x, *pieces.ravel().tolist(), *last]
        else:
            kind.append(POLYNOMIAL)
            own = [f.gain * c for c in f.coefficients]
            while len(own) > LINEAR_TERMS and own[-1] == 0.0:
                own.pop()
            own += [0.0] * (LINEAR_TERMS - len(own))
            count.append(len(own))
            data += own
    kinds, starts, sizes = (np.array(v, dtype=np.int64) for v in (kind, start, count))
    return FunctionTable(kinds, starts, sizes, np.array(data or [0.0]))


def spline_pieces(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, tuple[float, float]]:
    """Coefficients (n - 1, 4) of the pieces, ascending, and value and slope at the last point.

    Unknown are a sixth of the second derivatives at the points.
    """
    n = len(x)
    h, slope = np.diff(x), np.diff(y) / np.diff(x)
    M, rhs = np.zeros((n, n)), np.zeros(n)
    if n == 2:
        s: np.ndarray = np.zeros(2)
    else:
        for i in range(1, n - 1):
            M[i, i - 1], M[i, i], M[i, i + 1] = h[i - 1], 2 * (h[i - 1] + h[i]), h[i]
            rhs[i] = slope[i] - slope[i - 1]
        M[0, :2], M[-1, -2:] = (-1.0, 1.0), (-1.0, 1.0)
        if n > 3:
            rhs[0], rhs[-1] = h[0] * _third(x[:4], y[:4]), h[-1] * _third(x[-4:], y[-4:])
        s = np.linalg.solve(M, rhs)
    first = slope - h * (s[1:] + 2 * s[:-1])
    pieces = np.stack([y[:-1], first, 3 * s[:-1], np.diff(s) / h], axis=1)
    _, b, c, d = pieces[-1]
    return pieces, (float(y[-1]), float(b + h[-1] * (2 * c + 3 * d * h[-1])))


def _third(x: np.ndarray, y: np.ndarray) -> float:
    """Third divided difference of four points."""
    d: np.ndarray = y
    for k in range(1, 4):
        d = np.diff(d) / (x[k:] - x[:-k])
    return float(d[0])


@inlined
def evaluate(table: FunctionTable, k: int, u: float) -> tuple[float, float, float]:
    """Value, first and second derivative of the k-th function at u."""
    at, n, data = table.start[k], table.size[k], table.data
    if table.kind[k] == POLYNOMIAL:
        if n == LINEAR_TERMS:
            return data[at] + data[at + 1] * u, data[at + 1], 0.0
        f, d1, d2 = 0.0, 0.0, 0.0
        for i in range(n - 1, -1, -1):
            d2 = d2 * u + 2.0 * d1
            d1 = d1 * u + f
            f = f * u + data[at + i]
        return f, d1, d2
    pieces = at + n
    if u < data[at]:
        slope = data[pieces + 1]
        return data[pieces] + slope * (u - data[at]), slope, 0.0
    if u > data[at + n - 1]:
        last = pieces + 4 * (n - 1)
        return data[last] + data[last + 1] * (u - data[at + n - 1]), data[last + 1], 0.0
    low, high = 0, n - 1
    while high - low > 1:
        middle = (low + high) // 2
        if u < data[at + middle]:
            high = middle
        else:
            low = middle
    t, c = u - data[at + low], pieces + 4 * low
    b, c2, c3 = data[c + 1], data[c + 2], data[c + 3]
    return data[c] + t * (b + t * (c2 + t * c3)), b + t * (2.0 * c2 + 3.0 * t * c3), 2.0 * c2 + 6.0 * t * c3
