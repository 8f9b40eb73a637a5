"""The low-pass filter of second order is SciPy's, in one direction and in both."""

import numpy as np
import pytest
from scipy.signal import butter, sosfiltfilt

from humanoid_control.numerics.butterworth import filtered_both_ways, low_pass

EDGE = 9  # sosfiltfilt's own for two poles


@pytest.mark.parametrize("dt", [0.004, 0.02])
@pytest.mark.parametrize("n", [EDGE + 1, 60])
def test_a_signal_through_the_filter_both_ways(dt, n):
    sos, f = butter(2, 12.0, fs=1 / dt, output="sos"), low_pass(12.0, dt)
    assert f == pytest.approx(sos[0, [0, 1, 2, 4, 5]], abs=1e-14)
    x = np.random.default_rng(0).normal(size=(n, 3)).cumsum(axis=0)
    assert filtered_both_ways(x, f, EDGE) == pytest.approx(sosfiltfilt(sos, x, axis=0), abs=1e-11)
    assert filtered_both_ways(x, f, 0) == pytest.approx(sosfiltfilt(sos, x, axis=0, padtype=None), abs=1e-11)
