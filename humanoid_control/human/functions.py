"""Functions of one coordinate that move the axes of joints: constant, polynomial, cubic spline; value and derivatives.

Splines are those of `numerics.spline`, which are OpenSim's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from humanoid_control.errors import RobotError
from humanoid_control.jit import inlined
from humanoid_control.numerics.array_types import F1, I1
from humanoid_control.numerics.spline import LINEAR_TERMS, check_spline, polynomial_at, spline_at, spline_data

POLYNOMIAL, SPLINE = 0, 1


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
        if not np.isfinite((*self.coefficients, *self.x, *self.y, self.gain)).all():
            raise RobotError("a function holds a number that is not finite")
        if self.x:
            check_spline(self.x, self.y)

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
            data += spline_data(f.x, f.gain * np.array(f.y)).tolist()
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


@inlined
def evaluate(table: FunctionTable, k: int, u: float) -> tuple[float, float, float]:
    """Value, first and second derivative of the k-th function at u."""
    at, n, data = table.start[k], table.size[k], table.data
    if table.kind[k] == POLYNOMIAL:
        return polynomial_at(data, at, n, u)
    return spline_at(data, at, n, u)
