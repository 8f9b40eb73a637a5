"""OpenSim's low-pass filter and derivatives.

The signal is padded by half its length as its point reflection 2 y_0 - y_i. A third-order Butterworth filter runs
forward and backward (-6 dB at the cut-off). A natural quintic spline gives the derivatives. `mocap.cleaning.low_pass`
is for marker noise.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from humanoid_control.errors import ConfigError, SizeError

ORDER = 3  # of the Butterworth filter, which runs twice
SHORTEST = 6  # frames: a quintic goes through six points
MAX_GAP = 0.1  # [s] longest gap that is bridged
_UNEVEN = 1e-3  # share of a step: larger deviations from an even grid require resampling


class SmoothMotion(NamedTuple):
    """Signal with derivatives; NaN in gaps, derivatives also in short parts.

    Attributes:
        times: (n,) [s].
        values: (n, ...) filtered.
        velocity: (n, ...) per second.
        acceleration: (n, ...) per second squared.
    """

    times: np.ndarray
    values: np.ndarray
    velocity: np.ndarray
    acceleration: np.ndarray
    warnings: tuple[str, ...]


def differentiate(
    times: np.ndarray, values: np.ndarray, cutoff: float | None, max_gap: float = MAX_GAP
) -> SmoothMotion:
    """Filter a signal and differentiate it twice.

    Gaps (NaN, or holes in the times) up to `max_gap` are bridged by monotone cubics; longer gaps split the signal.
    Parts shorter than SHORTEST frames stay as they are. Uneven times are resampled with the median step.

    Args:
        times: (n,) increasing [s].
        values: (n, ...); NaN: missing. Angles without jumps of a full turn.
        cutoff: [Hz]; None: no filter.
        max_gap: [s].

    Raises:
        ConfigError: if the cut-off is not below half the rate, times do not increase, or a value is infinite.
        SizeError: if lengths differ.
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
    """Return the signal (n, ...) filtered as in `differentiate`."""
    values = _checked(times, values, cutoff)
    columns = values.reshape(len(values), -1)
    out = np.full(columns.shape, np.nan)
    for rows, chosen, part in _parts(times, columns, max_gap, _Report()):
        out[rows, chosen] = _smooth(times[rows], part, cutoff, 0, _Report())[0]
    return out.reshape(values.shape)


def check_cutoff(cutoff: float, rate: float) -> None:
    """Raise ConfigError unless 0 < cutoff < rate / 2 [Hz]."""
    if not (np.isfinite(cutoff) and 0 < cutoff < rate / 2):
        raise ConfigError(
            f"the cutoff of the low-pass filter is {cutoff:g} Hz, but must be above 0 and below {rate / 2:g} Hz, "
            f"half the rate of {rate:g} Hz"
        )


def rate_of(times: np.ndarray) -> float:
    """Return the rate [Hz] from the median step of times [s], or NaN."""
    return float(1 / np.median(np.diff(times))) if len(times) > 1 else float("nan")


# -------- parts of a signal


class _Report:
    """Counts of bridged, missing and short parts."""

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
            said.append(f"{self.left} samples are missing in gaps too long to bridge: left as NaN")
        if self.short:
            whole = f"of only {min(self.short)} frame(s)"
            where = "the signal is" if n in self.short else "parts of the signal are"
            said.append(f"{where} {whole}: not filtered, no derivatives (at least {SHORTEST} frames)")
        return tuple(said)


def _checked(times: np.ndarray, values: np.ndarray, cutoff: float | None) -> np.ndarray:
    """Return the values as floats after all checks."""
    times, values = np.asarray(times), np.asarray(values, dtype=float)
    if times.ndim != 1 or values.ndim < 1 or len(values) != len(times):
        raise SizeError(f"differentiate: expected values of shape ({len(times)}, ...), got {values.shape}")
    if not np.isfinite(times).all() or not (np.diff(times) > 0).all():
        bad = int(np.argmin(np.concatenate([[True], np.diff(times) > 0]) & np.isfinite(times)))
        raise ConfigError(f"the times do not increase at sample {bad}: sort the samples or correct the time column")
    if np.isinf(values).any():
        raise ConfigError(f"the signal is infinite in sample {int(np.argwhere(np.isinf(values))[0][0])}: correct it")
    if cutoff is not None:
        if len(times) > 1:
            check_cutoff(cutoff, rate_of(times))
        elif not (np.isfinite(cutoff) and cutoff > 0):
            raise ConfigError(f"the cutoff of the low-pass filter must be positive, got {cutoff:g} Hz")
    return values


def _parts(times: np.ndarray, columns: np.ndarray, max_gap: float, report: _Report) -> list:
    """Return gapless runs: (rows, columns, samples)."""
    step = 1 / rate_of(times) if len(times) > 1 else 1.0
    # At least 1.5 steps, or an even signal would be split at each sample; 1e-9 absorbs rounding.
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
                from scipy.interpolate import PchipInterpolator  # slow import, seldom needed

                part = PchipInterpolator(times[run], part)(times[rows])
                report.bridged += (len(rows) - len(run)) * len(chosen)
            covered += len(rows)
            parts.append((rows[:, None], chosen[None], part))
        report.left += (len(times) - covered) * len(chosen)
    return parts


def _smooth(times: np.ndarray, part: np.ndarray, cutoff: float | None, order: int, report: _Report) -> np.ndarray:
    """Return filtered values and derivatives (order + 1, n, c)."""
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
    """Return evenly spaced times and the signal at them."""
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
    """Return zero third and fourth derivatives at both ends."""
    ends = [(3, np.zeros(y.shape[1:])), (4, np.zeros(y.shape[1:]))]
    return ends, ends
