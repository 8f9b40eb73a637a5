"""Splines and polynomials: against SciPy's B-splines, their ends, outside, and what is refused."""

import numpy as np
import pytest
from scipy.interpolate import make_interp_spline

from humanoid_control.errors import RobotError
from humanoid_control.numerics.spline import polynomial_at, spline_at, spline_data, spline_size


def third_of_cubic(x, y):
    """Third derivative of the cubic through four points."""
    return 6 * np.polynomial.polynomial.polyfit(x - x[0], y, 3)[3]


def reference(x, y):
    """The same spline by SciPy's banded collocation."""
    ends = [(3, third_of_cubic(x[:4], y[:4]))], [(3, third_of_cubic(x[-4:], y[-4:]))]
    return make_interp_spline(x, y, k=3, bc_type=ends)


@pytest.mark.parametrize("n", [4, 5, 6, 9, 17, 40])
def test_the_spline_is_scipys_with_these_ends(n):
    rng = np.random.default_rng(n)
    x, y = np.cumsum(rng.uniform(0.1, 1.0, n)), rng.normal(size=n)
    data, f = spline_data(x, y), reference(x, y)
    assert len(data) == spline_size(n)
    data = np.concatenate([[7.0, 8.0, 9.0], data])  # read at an offset
    for u in [*rng.uniform(x[0], x[-1], 200), *x]:
        ours = spline_at(data, 3, n, float(u))
        for k in range(3):
            assert ours[k] == pytest.approx(float(f(u, k)), abs=1e-9 * max(1, np.abs(f(x, k)).max()))


def test_a_cubic_is_met_exactly_and_three_points_make_a_parabola():
    x = np.array([-1.0, -0.3, 0.1, 0.8, 2.0])
    p = np.polynomial.Polynomial([0.3, -0.7, 0.2, 0.5])
    data = spline_data(x, p(x))
    for u in np.linspace(-1, 2, 41):
        assert np.allclose(spline_at(data, 0, 5, u), [p(u), p.deriv()(u), p.deriv(2)(u)], atol=1e-13)
    p = np.polynomial.Polynomial([0.3, -0.7, 0.2])
    data = spline_data(x[:3], p(x[:3]))
    for u in np.linspace(-1, 0.1, 21):
        assert np.allclose(spline_at(data, 0, 3, u), [p(u), p.deriv()(u), p.deriv(2)(u)], atol=1e-13)
    line = spline_data([1.0, 3.0], [5.0, 9.0])
    for u in (-4.0, 1.0, 2.0, 3.0, 10.0):
        assert np.allclose(spline_at(line, 0, 2, u), [3.0 + 2.0 * u, 2.0, 0.0], atol=1e-13)


@pytest.mark.parametrize("n", [3, 4, 9])
def test_outside_it_goes_on_straight_without_a_step_in_value_or_slope(n):
    rng = np.random.default_rng(1)
    x, y = np.cumsum(rng.uniform(0.2, 1.0, n)), rng.normal(size=n)
    data = spline_data(x, y)
    for end, out in ((x[0], -1.0), (x[-1], 1.0)):
        value, slope, bend = spline_at(data, 0, n, float(end))
        assert abs(bend) > 1e-3
        for far in (1e-9, 0.5, 20.0):
            beyond = spline_at(data, 0, n, float(end + out * far))
            assert np.allclose(beyond, [value + out * far * slope, slope, 0.0], rtol=1e-12, atol=1e-9)
    for a, b in zip(y, x, strict=True):
        assert spline_at(data, 0, n, float(b))[0] == pytest.approx(a, abs=1e-12)


@pytest.mark.parametrize("n", [2, 3, 6])
def test_polynomials_are_numpys(n):
    c = np.random.default_rng(n).normal(size=n)
    p = np.polynomial.Polynomial(c)
    data = np.concatenate([[9.0], c])
    for u in (-1.3, 0.0, 0.4, 2.0):
        assert np.allclose(polynomial_at(data, 1, n, u), [p(u), p.deriv()(u), p.deriv(2)(u)], atol=1e-12)


@pytest.mark.parametrize(
    ("x", "y", "says"),
    [
        ([0.0], [1.0], "at least two x and y"),
        ([0.0, 1.0], [1.0], "got 2 and 1"),
        ([0.0, 1.0, 1.0], [1.0, 2.0, 3.0], "must increase"),
        ([0.0, np.nan, 1.0], [1.0, 2.0, 3.0], "non-finite"),
        ([0.0, 0.5, 1.0], [1.0, np.inf, 3.0], "non-finite"),
    ],
)
def test_points_that_make_no_spline_are_refused_in_one_line(x, y, says):
    with pytest.raises(RobotError, match=says) as e:
        spline_data(x, y)
    assert "\n" not in str(e.value)
