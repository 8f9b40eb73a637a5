"""Low-pass filter by Fourier transform: the smoothing of Dube 2012, section 5.2.1, with a Butterworth filter's gain.

The package filters forward and backward in time (`humanoid_control.mocap.cleaning.low_pass`).
"""

from __future__ import annotations

import numpy as np

ORDER = 4  # beyond the cut-off the gain falls by 24 dB an octave
PAD = 4.0  # periods of the cut-off frequency by which the ends are continued


def fourier_low_pass(paths: np.ndarray, rate: float, cutoff: float) -> np.ndarray:
    """Paths (T, ...) with the gain 1 / sqrt(1 + (f / cutoff)^8) at the frequency f.

    The transform takes a signal to be periodic: each path is continued beyond its ends by its own mirror image through
    the end point, and the straight line between the new ends is taken out before and put back afterwards.
    """
    n = len(paths)
    pad = min(n - 1, int(np.ceil(PAD * rate / cutoff)))
    before = 2 * paths[0] - paths[pad:0:-1]
    after = 2 * paths[-1] - paths[-2 : -2 - pad : -1]
    whole = np.concatenate([before, paths, after])
    share = np.linspace(0.0, 1.0, len(whole)).reshape(-1, *[1] * (paths.ndim - 1))
    line = (1 - share) * whole[0] + share * whole[-1]
    # The last sample equals the first one once the line is gone: as a period it must not come twice.
    spectrum = np.fft.rfft((whole - line)[:-1], axis=0)
    frequency = np.fft.rfftfreq(len(whole) - 1, 1 / rate).reshape(-1, *[1] * (paths.ndim - 1))
    gain = 1 / np.sqrt(1 + (frequency / cutoff) ** (2 * ORDER))
    smooth = np.fft.irfft(spectrum * gain, n=len(whole) - 1, axis=0)
    return smooth[pad : pad + n] + line[pad : pad + n]
