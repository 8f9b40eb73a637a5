"""Polynomials and cubic splines of one coordinate, with derivatives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from humanoid_control.compiled.array_types import F1, I1
from humanoid_control.compiled.jit import inlined
from humanoid_control.errors import RobotError
from humanoid_control.numerics.spline import LINEAR_TERMS, check_spline, polynomial_at, spline_at, spline_data

POLYNOMIAL, SPLINE = 0, 1


@dataclass(frozen=True)
class Function:
    """Polynomial or spline of one coordinate [rad or m]; RobotError unless exactly one is valid.

    Attributes:
        coefficients: constant first.
        x: rising abscissae.
        y: ordinates.
        gain: factor of the value.
    """

    coefficients: tuple[float, ...] = ()
    x: tuple[float, ...] = ()
    y: tuple[float, ...] = ()
    gain: float = 1.0

    def __post_init__(self) -> None:
        if bool(self.coefficients) == bool(self.x):
            raise RobotError("a function is either a polynomial with coefficients or a spline with points")
        if not np.isfinite((*self.coefficients, *self.x, *self.y, self.gain)).all():
            raise RobotError("a function contains a non-finite number")
        if self.x:
            check_spline(self.x, self.y)

    @property
    def constant(self) -> bool:
        """True if independent of the coordinate."""
        return not self.x and not any(self.coefficients[1:])

    @property
    def linear(self) -> bool:
        """True for a straight line or a constant."""
        return not self.x and not any(self.coefficients[2:])

    def scaled(self, factor: float) -> Function:
        """Return the function times a factor."""
        return Function(self.coefficients, self.x, self.y, self.gain * factor)

    def __call__(self, u: np.ndarray | float) -> np.ndarray:
        """Return the values at u, in the same shape."""
        table, at = pack_functions([self]), np.asarray(u, dtype=float)
        return np.array([evaluate(table, 0, float(v))[0] for v in at.ravel()]).reshape(at.shape)


class FunctionTable(NamedTuple):
    """Functions as flat arrays.

    Attributes:
        kind: (functions,) POLYNOMIAL or SPLINE.
        start: (functions,) first index in `data`.
        size: (functions,) coefficients or points.
        data: ascending coefficients; of a spline x, four coefficients a piece in powers of the distance from its left
            point, last value and slope.
    """

    kind: I1
    start: I1
    size: I1
    data: F1


def pack_functions(functions: list[Function]) -> FunctionTable:
    """Return functions as flat arrays."""
    kind, start, count, data = [], [], [], list[float]()
    # Lengths differ, so each function starts at its own offset in the shared data; gains are included there.
    for f in functions:
        start.append(len(data))
        if f.x:
            kind.append(SPLINE)
            count.append(len(f.x))
            data += spline_data(f.x, f.gain * np.array(f.y)).tolist()
        else:
            kind.append(POLYNOMIAL)
            own = [f.gain * c for c in f.coefficients]
            # Trailing zeros are dropped, down to the LINEAR_TERMS coefficients that `polynomial_at` always reads.
            while len(own) > LINEAR_TERMS and own[-1] == 0.0:
                own.pop()
            own += [0.0] * (LINEAR_TERMS - len(own))
            count.append(len(own))
            data += own
    kinds, starts, sizes = (np.array(v, dtype=np.int64) for v in (kind, start, count))
    return FunctionTable(kinds, starts, sizes, np.array(data or [0.0]))


@inlined
def evaluate(table: FunctionTable, k: int, u: float) -> tuple[float, float, float]:
    """Return value, first and second derivative of function k at u."""
    at, n, data = table.start[k], table.size[k], table.data
    # Kernels hold numbers, not function objects: the kind selects the formula.
    if table.kind[k] == POLYNOMIAL:
        return polynomial_at(data, at, n, u)
    return spline_at(data, at, n, u)
