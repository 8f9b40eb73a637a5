"""Cubic splines through points, and polynomials, with two derivatives, for kernels.

The ends follow Forsythe, Malcolm and Moler 1977: the third derivative of the first (last) piece equals the one of the
cubic through the first (last) four points. For three points it is zero; two points give a line. Splines continue
linearly outside.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from humanoid_control.compiled.array_types import F1
from humanoid_control.compiled.jit import inlined
from humanoid_control.errors import RobotError

LINEAR_TERMS = 2  # number of coefficients with a closed form


def check_spline(x: Sequence[float] | np.ndarray, y: Sequence[float] | np.ndarray) -> None:
    """Check the points of a spline.

    Raises:
        RobotError: if there are fewer than two points, lengths differ, x does not increase, or a number is not finite.
    """
    if len(x) != len(y) or len(x) < 2:
        raise RobotError(f"a spline needs at least two x and y, got {len(x)} and {len(y)}")
    if not np.isfinite([*x, *y]).all():
        raise RobotError("a spline contains a non-finite number")
    if not (np.diff(x) > 0).all():
        raise RobotError("the x of a spline must increase")


def spline_size(points: int) -> int:
    """Return the length of `spline_data` for a number of points."""
    return 5 * points - 2


def spline_data(x: Sequence[float] | np.ndarray, y: Sequence[float] | np.ndarray) -> F1:
    """Return the data (5 n - 2,) of a spline through n points, for `spline_at`.

    x (n,), four coefficients a piece in powers of the distance from its left point, constant first, then value and
    slope at the last point.
    """
    check_spline(x, y)
    at, values = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    pieces, last = spline_pieces(at, values)
    return np.concatenate([at, pieces.ravel(), last])


def spline_pieces(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, tuple[float, float]]:
    """Return the piece coefficients (n - 1, 4), constant first, and value and slope at the last point.

    The unknowns are second derivatives over six at the points.
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
            rhs[0], rhs[-1] = h[0] * _third_difference(x[:4], y[:4]), h[-1] * _third_difference(x[-4:], y[-4:])
        s = np.linalg.solve(M, rhs)
    first = slope - h * (s[1:] + 2 * s[:-1])
    pieces = np.stack([y[:-1], first, 3 * s[:-1], np.diff(s) / h], axis=1)
    _, b, c, d = pieces[-1]
    return pieces, (float(y[-1]), float(b + h[-1] * (2 * c + 3 * d * h[-1])))


def _third_difference(x: np.ndarray, y: np.ndarray) -> float:
    d: np.ndarray = y
    for k in range(1, 4):
        d = np.diff(d) / (x[k:] - x[:-k])
    return float(d[0])


# -------- In kernels


@inlined
def spline_at(data: F1, at: int, n: int, u: float) -> tuple[float, float, float]:
    """Return value, first and second derivative at u of a spline through n points.

    Args:
        data: `spline_data`, from offset `at`.
    """
    pieces = at + n
    if u < data[at]:
        slope = data[pieces + 1]
        return data[pieces] + slope * (u - data[at]), slope, 0.0
    if u > data[at + n - 1]:
        last = pieces + 4 * (n - 1)
        return data[last] + data[last + 1] * (u - data[at + n - 1]), data[last + 1], 0.0
    # Bisection for the piece.
    low, high = 0, n - 1
    while high - low > 1:
        middle = (low + high) // 2
        if u < data[at + middle]:
            high = middle
        else:
            low = middle
    # Horner's scheme on the piece that contains u.
    t, c = u - data[at + low], pieces + 4 * low
    b, c2, c3 = data[c + 1], data[c + 2], data[c + 3]
    return data[c] + t * (b + t * (c2 + t * c3)), b + t * (2.0 * c2 + 3.0 * t * c3), 2.0 * c2 + 6.0 * t * c3


@inlined
def polynomial_at(data: F1, at: int, n: int, u: float) -> tuple[float, float, float]:
    """Return value, first and second derivative at u of a polynomial.

    Args:
        data: n >= 2 coefficients, constant first, from offset `at`.
    """
    if n == LINEAR_TERMS:
        return data[at] + data[at + 1] * u, data[at + 1], 0.0
    # Horner's scheme with two derivatives.
    f, d1, d2 = 0.0, 0.0, 0.0
    for i in range(n - 1, -1, -1):
        d2 = d2 * u + 2.0 * d1
        d1 = d1 * u + f
        f = f * u + data[at + i]
    return f, d1, d2
