"""Low-pass filter in the frequency domain: the smoothing of Dube 2012, section 5.2.1, with a cut-off of our own."""

from __future__ import annotations

import numpy as np

from humanoid_control.errors import ConfigError

ORDER = 4  # steepness: beyond the cut-off the gain falls by 24 dB an octave
_PAD = 4.0  # periods of the cut-off frequency by which the ends are continued


def low_pass(paths: np.ndarray, rate: float, cutoff: float) -> np.ndarray:
    """Paths without what is faster than the cut-off, and without delay.

    The gain at the frequency f is that of a Butterworth filter, 1 / sqrt(1 + (f / cutoff)^8): 0.71 at the cut-off,
    0.998 at half of it, no ripple and hardly any ringing. The Fourier transform takes a signal to be periodic; so that
    the ends do not ring, each path is continued beyond its ends by its own mirror image through the end point, and the
    straight line between the new ends is taken out before and put back afterwards (a line passes a low-pass filter).

    Args:
        paths: (T, ...) evenly sampled, without NaN.
        rate: frames a second [Hz].
        cutoff: [Hz]; from half the rate upward there is nothing to take out and the paths come back as they are.

    Returns:
        (T, ...) smoothed.

    Raises:
        ConfigError: rate or cut-off is not positive.
    """
    if not (np.isfinite(cutoff) and cutoff > 0 and np.isfinite(rate) and rate > 0):
        raise ConfigError(f"low_pass: cut-off {cutoff} Hz at {rate} Hz: both must be positive")
    n = len(paths)
    if cutoff >= rate / 2 or n < 2:
        return np.array(paths, dtype=float)
    pad = min(n - 1, int(np.ceil(_PAD * rate / cutoff)))
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
