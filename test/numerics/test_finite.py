"""`all_finite` against numpy, with values at the ends of the range of a double."""

import numpy as np
import pytest

from humanoid_control.numerics.finite import all_finite


@pytest.mark.parametrize("value", [0.0, -0.0, 5e-324, 1e154, 1e200, -1.7e308, np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("shape", [(1,), (7,), (46, 20)])
def test_it_agrees_with_numpy_wherever_the_value_stands(value, shape):
    for place in (0, -1):
        values = np.ones(shape)
        values.reshape(-1)[place] = value
        assert all_finite(values) is bool(np.isfinite(values).all())


def test_no_value_is_finite():
    assert all_finite(np.zeros(0))
