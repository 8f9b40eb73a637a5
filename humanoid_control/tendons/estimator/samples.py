"""Ordering, validation and counting of incoming tendon-length samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from humanoid_control.errors import ConfigError, UnknownNameError
from humanoid_control.tendons.mappings.mapping import Array

_LONGEST = 5.0  # [m] longer lengths are in millimetres
_DUE = 1.5  # periods after which a sample counts as missing


@dataclass
class SampleCounts:
    """Counts of samples since the start.

    Attributes:
        accepted: passed on.
        late: accepted, but too old.
        reordered: dropped, older than the last.
        duplicated: dropped, as old as the last.
        missing: periods without a sample.
        incomplete: accepted with missing tendons.
        refused: invalid.
    """

    accepted: int = 0
    late: int = 0
    reordered: int = 0
    duplicated: int = 0
    missing: int = 0
    incomplete: int = 0
    refused: int = 0


@dataclass(frozen=True)
class TendonSample:
    """Sample in the estimator's tendon order.

    Attributes:
        stamp: [s].
        lengths: (M,) [m], NaN if missing.
        tensions: (M,) [N] or None.
    """

    stamp: float
    lengths: Array
    tensions: Array | None


class TendonSamples:
    """Reorders samples and drops duplicated and outdated ones.

    Args:
        period: expected sample period [s].
        max_age: age of a late sample [s].
        relative: lengths are changes and may be negative.
    """

    def __init__(self, names: Sequence[str], period: float, max_age: float = 0.1, relative: bool = True) -> None:
        if not (period > 0 and max_age > 0):
            raise ConfigError(f"tendon samples: period and maximum age must be above 0, got {period} s and {max_age} s")
        self._index = {name: i for i, name in enumerate(names)}
        self._period, self._max_age, self._relative = period, max_age, relative
        self.counts = SampleCounts()
        self._last: float | None = None

    def accept(
        self,
        stamp: float,
        names: Sequence[str],
        lengths: Sequence[float],
        tensions: Sequence[float] = (),
        now: float | None = None,
    ) -> TendonSample | None:
        """Return the sample in tendon order, or None if dropped.

        Args:
            stamp: time of measurement [s].
            lengths: [m].
            tensions: [N], or empty.
            now: time of arrival [s].

        Raises:
            ConfigError: if sizes differ, a tendon is named twice, or a length is in millimetres or negative.
            UnknownNameError: if a tendon is unknown.
        """
        try:
            sample = self._read(stamp, names, lengths, tensions)
        except (ConfigError, UnknownNameError):
            self.counts.refused += 1
            raise
        if self._last is not None and stamp <= self._last:
            if stamp == self._last:
                self.counts.duplicated += 1
            else:
                self.counts.reordered += 1
            return None
        if self._last is not None and stamp - self._last > _DUE * self._period:
            self.counts.missing += round((stamp - self._last) / self._period) - 1
        self._last = stamp
        self.counts.accepted += 1
        self.counts.late += now is not None and now - stamp > self._max_age
        self.counts.incomplete += bool(np.isnan(sample.lengths).any())
        return sample

    @property
    def dropped(self) -> int:
        """Number of dropped samples."""
        return self.counts.duplicated + self.counts.reordered

    def reset(self) -> None:
        """Accept any stamp next, after a clock jump; keep the counts."""
        self._last = None

    def _read(
        self, stamp: float, names: Sequence[str], lengths: Sequence[float], tensions: Sequence[float]
    ) -> TendonSample:
        if not np.isfinite(stamp):
            raise ConfigError(f"tendon sample: time {stamp} is not finite; stamp the samples")
        if len(lengths) != len(names) or len(tensions) not in (0, len(names)):
            raise ConfigError(f"tendon sample: {len(names)} names, {len(lengths)} lengths, {len(tensions)} tensions")
        z = np.full(len(self._index), np.nan)
        t = np.full(len(self._index), np.nan) if len(tensions) else None
        seen = set()
        for k, name in enumerate(names):
            if name not in self._index:
                raise UnknownNameError("tendon", name, self._index)
            if name in seen:
                raise ConfigError(f"tendon sample: tendon '{name}' is named twice; send each once")
            seen.add(name)
            length = float(lengths[k])
            if abs(length) > _LONGEST and np.isfinite(length):
                raise ConfigError(f"tendon sample: length of '{name}' is {length:g} m; millimetres? Send metres")
            if length < 0 and not self._relative:
                raise ConfigError(f"tendon sample: length of '{name}' is {length:g} m; path lengths are positive")
            exists = length != 0.0 or self._relative  # a zero path length means an unread drive
            z[self._index[name]] = length if np.isfinite(length) and exists else np.nan
            if t is not None:
                t[self._index[name]] = tensions[k]
        return TendonSample(stamp, z, t)
