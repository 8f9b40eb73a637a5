"""Low-pass filter and derivatives of measured signals: coordinates for inverse dynamics, forces of plates.

The sequence is OpenSim's, so the results are comparable: the signal continues beyond both ends by half its
length as its point reflection 2 y_0 - y_i; a Butterworth filter of third order runs forward and backward, which
together is of sixth order with half the amplitude (-6 dB) at the cut-off; a natural quintic spline goes through what
comes out, and its derivatives are those of the signal. `mocap.cleaning.low_pass` is another filter (second order twice,
-3 dB at the cut-off) for another purpose: to take the noise out of markers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from humanoid_control.errors import ConfigError, SizeError

ORDER = 3  # of the Butterworth filter, which runs twice
SHORTEST = 6  # frames: a quintic goes through six points
MAX_GAP = 0.1  # [s] of missing samples that are bridged
_UNEVEN = 1e-3  # of a step: times beyond it from an even grid make the signal be resampled


class SmoothMotion(NamedTuple):
    """A signal with its derivatives.

    Attributes:
        times: (n,) [s].
        values, velocity, acceleration: (n, ...) per second and per second squared; NaN where there is no number: in
            gaps, and all derivatives of what is too short.
        warnings: what was bridged, left out or resampled, one sentence each.
    """

    times: np.ndarray
    values: np.ndarray
    velocity: np.ndarray
    acceleration: np.ndarray
    warnings: tuple[str, ...]


def differentiate(
    times: np.ndarray, values: np.ndarray, cutoff: float | None, max_gap: float = MAX_GAP
) -> SmoothMotion:
    """Filter a signal and differentiate it twice, as this file says.

    A gap (NaN, or a hole in the times) up to `max_gap` is bridged by monotone cubics, a longer one stays and parts the
    signal: both sides are treated each on its own. A part of fewer than SHORTEST frames is neither filtered nor
    differentiated. Uneven times are resampled with the median step, and the result is given at the times asked for.

    Args:
        times: (n,) growing [s].
        values: (n, ...); NaN = missing. Angles without jumps of a full turn.
        cutoff: of the filter [Hz]; None leaves the noise in.
        max_gap: longest gap that is bridged [s].

    Raises:
        ConfigError: the cut-off is not between 0 and half the rate, times that do not grow, or a value is infinite.
        SizeError: times and values differ in length.
    """
    values = _checked(times, values, cutoff)
    n = len(values)
    columns = values.reshape(n, -1)
    out = np.full((3, *columns.shape), np.nan)
    report = _Report()
    for rows, chosen, part in _parts(times, columns, max_gap, report):
        out[(slice(None), rows, chosen)] = _smooth(times[rows], part, cutoff, 2, report)
    position, velocity, acceleration = out.reshape(3, *values.shape)
    return SmoothMotion(np.array(times), position, velocity, acceleration, report.sentences(n))


def low_pass(times: np.ndarray, values: np.ndarray, cutoff: float, max_gap: float = MAX_GAP) -> np.ndarray:
    """(n, ...) the signal through the filter of `differentiate`, without its derivatives; arguments and errors are
    those of `differentiate`."""
    values = _checked(times, values, cutoff)
    columns = values.reshape(len(values), -1)
    out = np.full(columns.shape, np.nan)
    for rows, chosen, part in _parts(times, columns, max_gap, _Report()):
        out[rows, chosen] = _smooth(times[rows], part, cutoff, 0, _Report())[0]
    return out.reshape(values.shape)


def check_cutoff(cutoff: float, rate: float) -> None:
    """Raise ConfigError, which names the allowed range, unless a cut-off [Hz] suits signals of that rate [Hz]."""
    if not (np.isfinite(cutoff) and 0 < cutoff < rate / 2):
        raise ConfigError(
            f"the cut-off of the low-pass filter is {cutoff:g} Hz: it must be above 0 and below {rate / 2:g} Hz, "
            f"half the rate of {rate:g} Hz"
        )


def rate_of(times: np.ndarray) -> float:
    """Samples a second by the median step of times (n,) [s]; NaN for fewer than two."""
    return float(1 / np.median(np.diff(times))) if len(times) > 1 else float("nan")


# -------- parts of a signal


class _Report:
    """What happened to the parts of a signal."""

    def __init__(self) -> None:
        self.bridged = self.left = 0
        self.short: set[int] = set()
        self.steps = ""

    def sentences(self, n: int) -> tuple[str, ...]:
        said = []
        if self.steps:
            said.append(self.steps)
        if self.bridged:
            said.append(f"{self.bridged} missing samples in short gaps were bridged")
        if self.left:
            said.append(f"{self.left} samples are missing in gaps too long to bridge: no number there")
        if self.short:
            whole = f"of only {min(self.short)} frame(s)"
            where = "the signal is" if n in self.short else "parts of the signal are"
            said.append(f"{where} {whole}: not filtered, no derivatives (at least {SHORTEST} frames)")
        return tuple(said)


def _checked(times: np.ndarray, values: np.ndarray, cutoff: float | None) -> np.ndarray:
    """The values as floats, once times, values and cut-off can be used."""
    times, values = np.asarray(times), np.asarray(values, dtype=float)
    if times.ndim != 1 or values.ndim < 1 or len(values) != len(times):
        raise SizeError(f"differentiate: expected values of shape ({len(times)}, ...), got {values.shape}")
    if not np.isfinite(times).all() or not (np.diff(times) > 0).all():
        bad = int(np.argmin(np.concatenate([[True], np.diff(times) > 0]) & np.isfinite(times)))
        raise ConfigError(f"the times do not grow at sample {bad}: sort the samples or correct the time column")
    if np.isinf(values).any():
        raise ConfigError(f"the signal is infinite in sample {int(np.argwhere(np.isinf(values))[0][0])}: correct it")
    if cutoff is not None:
        if len(times) > 1:
            check_cutoff(cutoff, rate_of(times))
        elif not (np.isfinite(cutoff) and cutoff > 0):
            raise ConfigError(f"the cut-off of the low-pass filter is {cutoff:g} Hz: it must be positive")
    return values


def _parts(times: np.ndarray, columns: np.ndarray, max_gap: float, report: _Report) -> list:
    """Runs without gaps of columns that miss the same samples: (rows, columns) to write to, and the numbers there."""
    step = 1 / rate_of(times) if len(times) > 1 else 1.0
    # A hole in the times parts all columns; so does a gap from the sample before it to the one after it.
    longest = max(max_gap, 1.5 * step) + 1e-9
    patterns, which = np.unique(np.isnan(columns), axis=1, return_inverse=True)
    which = np.ravel(which)
    parts = []
    for k in range(patterns.shape[1]):
        chosen = np.flatnonzero(which == k)
        seen = np.flatnonzero(~patterns[:, k])
        breaks = np.flatnonzero(np.diff(times[seen]) > longest) + 1
        covered = 0
        for run in np.split(seen, breaks) if len(seen) else []:
            rows = np.arange(run[0], run[-1] + 1)
            part = columns[np.ix_(run, chosen)]
            if len(rows) > len(run):
                from scipy.interpolate import PchipInterpolator  # slow to import, and seldom needed

                part = PchipInterpolator(times[run], part)(times[rows])
                report.bridged += (len(rows) - len(run)) * len(chosen)
            covered += len(rows)
            parts.append((rows[:, None], chosen[None], part))
        report.left += (len(times) - covered) * len(chosen)
    return parts


def _smooth(times: np.ndarray, part: np.ndarray, cutoff: float | None, order: int, report: _Report) -> np.ndarray:
    """(order + 1, n, c) filtered values and their derivatives of a part (n, c) without gaps."""
    from scipy.interpolate import make_interp_spline
    from scipy.signal import butter, sosfiltfilt

    times = np.ravel(times)
    n = len(times)
    out = np.full((order + 1, *part.shape), np.nan)
    if n < SHORTEST:
        report.short.add(n)
        out[0] = part
        return out
    grid, y = _even(times, part, report)
    if cutoff is not None:
        dt = (grid[-1] - grid[0]) / (len(grid) - 1)
        pad = len(grid) // 2
        check_cutoff(cutoff, 1 / dt)
        y = np.pad(y, [(pad, pad), (0, 0)], mode="reflect", reflect_type="odd")
        y = sosfiltfilt(butter(ORDER, cutoff, fs=1 / dt, output="sos"), y, axis=0, padtype=None)
        if order == 0 and len(grid) == n:
            return y[None, pad : pad + n]
        grid = grid[0] + dt * np.arange(-pad, len(grid) + pad)
    elif order == 0:
        return part[None]
    spline = make_interp_spline(grid, y, k=5, bc_type=_natural(y))
    for k in range(order + 1):
        out[k] = spline(times, nu=k)
    return out


def _even(times: np.ndarray, part: np.ndarray, report: _Report) -> tuple[np.ndarray, np.ndarray]:
    """Times with one step, and the signal at them."""
    grid = np.linspace(times[0], times[-1], len(times))
    step = grid[1] - grid[0]
    if np.abs(times - grid).max() <= _UNEVEN * step:
        return grid, part
    from scipy.interpolate import make_interp_spline

    steps = np.diff(times)
    grid = np.linspace(times[0], times[-1], max(round((times[-1] - times[0]) / np.median(steps)) + 1, SHORTEST))
    report.steps = f"the time steps vary from {steps.min():.4g} to {steps.max():.4g} s: resampled evenly for the filter"
    return grid, make_interp_spline(times, part, k=5, bc_type=_natural(part))(grid)


def _natural(y: np.ndarray) -> tuple:
    """Ends of a natural quintic spline: third and fourth derivative zero."""
    ends = [(3, np.zeros(y.shape[1:])), (4, np.zeros(y.shape[1:]))]
    return ends, ends
