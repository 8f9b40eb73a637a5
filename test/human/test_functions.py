"""Functions of a coordinate: values, derivatives, ends of splines."""

import numpy as np
import pytest

from humanoid_control.errors import RobotError
from humanoid_control.human.functions import Function, evaluate, pack_functions

X = (0.0, 0.2, 0.5, 0.9, 1.4, 1.6)
Y = (0.0, 0.3, -0.1, 0.2, 0.9, 0.4)


def at(function, u):
    return np.array(evaluate(pack_functions([Function((1.0, 2.0)), function]), 1, u))


@pytest.mark.parametrize("function", [Function((), X, Y, 0.7), Function((0.3, -1.0, 0.5, 2.0)), Function((2.0, 3.0))])
def test_derivatives_are_those_of_the_value(function):
    h = 1e-5
    for u in (-0.3, 0.1, 0.6, 1.55, 1.9):
        _, d1, d2 = at(function, u)
        before, after = at(function, u - h), at(function, u + h)
        assert d1 == pytest.approx((after[0] - before[0]) / (2 * h), abs=1e-8)
        assert d2 == pytest.approx((after[1] - before[1]) / (2 * h), abs=1e-6)


def test_a_cubic_is_its_own_spline_and_its_value_is_c2():
    cubic = np.polynomial.Polynomial([0.2, -1.0, 0.4, 1.3])
    spline = Function((), X, tuple(cubic(np.array(X))))
    for u in np.linspace(0.0, 1.6, 33):
        assert np.allclose(at(spline, u), [cubic(u), cubic.deriv()(u), cubic.deriv(2)(u)], atol=1e-12)
    wild = Function((), X, Y)
    for x in X[1:-1]:
        assert np.allclose(at(wild, x - 1e-9), at(wild, x + 1e-9), atol=1e-6)
    assert np.allclose([at(wild, x)[0] for x in X], Y)


def test_a_spline_goes_on_straight_and_short_ones_are_a_parabola_and_a_line():
    wild = Function((), X, Y)
    for end, beyond in ((X[0], -0.5), (X[-1], 2.5)):
        y, slope, _ = at(wild, end)
        assert np.allclose(at(wild, beyond), [y + slope * (beyond - end), slope, 0.0])
    parabola = Function((), (0.0, 1.0, 3.0), (1.0, 0.0, 4.0))
    assert np.allclose(at(parabola, 2.0), [1.0, 2.0, 2.0])
    assert np.allclose(at(Function((), (0.0, 2.0), (1.0, 5.0)), 1.5), [4.0, 2.0, 0.0])


@pytest.mark.parametrize(
    "make, told",
    [
        (lambda: Function(), "either a polynomial"),
        (lambda: Function((1.0,), (0.0, 1.0), (0.0, 1.0)), "either a polynomial"),
        (lambda: Function((), (0.0,), (0.0,)), "at least two"),
        (lambda: Function((), (0.0, 0.0), (0.0, 1.0)), "must increase"),
        (lambda: Function((np.nan,)), "non-finite"),
    ],
)
def test_what_is_no_function_is_refused(make, told):
    with pytest.raises(RobotError, match=told):
        make()
