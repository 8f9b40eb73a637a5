"""Butterworth low-pass filter, forwards and backwards over a signal (zero phase).

As `scipy.signal.butter` and `sosfiltfilt`, without their import time.
"""

from __future__ import annotations

import numpy as np

from humanoid_control.compiled.jit import kernel
from humanoid_control.errors import check_time_step


def low_pass(cutoff: float, dt: float) -> np.ndarray:
    """Return the second-order Butterworth filter b0, b1, b2, a1, a2 by the bilinear transform.

    Args:
        cutoff: frequency of gain 0.71 [Hz], below half the sampling rate.
        dt: sampling time [s].

    Raises:
        ConfigError: if dt is not positive and finite.
    """
    check_time_step(dt, "low-pass filter")
    k = np.tan(np.pi * cutoff * dt)
    gain = 1.0 / (1.0 + np.sqrt(2.0) * k + k * k)
    b = gain * k * k
    return np.array([b, 2 * b, b, 2 * gain * (k * k - 1.0), gain * (1.0 - np.sqrt(2.0) * k + k * k)])


@kernel(allocates=True)
def filtered_both_ways(x: np.ndarray, f: np.ndarray, edge: int) -> np.ndarray:
    """Filter signals (n, m) forwards and backwards.

    Args:
        edge: samples of point-symmetric continuation at both ends.
    """
    n, m = x.shape
    out, y = np.empty((n, m)), np.empty(n + 2 * edge)
    for column in range(m):
        # Point-symmetric continuation reduces transients at the ends.
        for i in range(edge):
            y[i] = 2 * x[0, column] - x[edge - i, column]
            y[n + edge + i] = 2 * x[n - 1, column] - x[n - 2 - i, column]
        for i in range(n):
            y[edge + i] = x[i, column]
        for _ in range(2):
            second = (f[2] - f[4]) * y[0]  # steady state of the first value
            first = (f[1] - f[3]) * y[0] + second
            for i in range(len(y)):
                # Transposed direct form II.
                z = y[i]
                y[i] = f[0] * z + first
                first = f[1] * z - f[3] * y[i] + second
                second = f[2] * z - f[4] * y[i]
            y[:] = y[::-1].copy()
        for i in range(n):
            out[i, column] = y[edge + i]
    return out
