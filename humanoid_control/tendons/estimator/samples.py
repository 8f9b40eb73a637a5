"""Samples of tendon lengths as they arrive: late, twice, out of order, incomplete; put in order and counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from humanoid_control.errors import ConfigError, UnknownNameError
from humanoid_control.tendons.mappings.mapping import Array

_LONGEST = 5.0  # m; no tendon of a robot is longer, and in millimetres every one is
_DUE = 1.5  # periods without a sample after which one is missing


@dataclass
class SampleCounts:
    """Counts of samples since the start.

    Attributes:
        accepted: samples handed on. late: of these, older than allowed when they came. reordered: older than one
            handed on before, dropped. duplicated: of the same time as the last, dropped. missing: periods without one.
        incomplete: samples handed on in which a tendon lacked. refused: samples with an error.
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
    """One sample in the order of the estimator's tendons.

    Attributes:
        stamp: [s]. lengths: (M,) [m], NaN where a tendon lacks. tensions: (M,) [N] or None.
    """

    stamp: float
    lengths: Array
    tensions: Array | None


class TendonSamples:
    """Brings samples into the order of the tendons, and drops what came twice or too late to be in order.

    Args:
        names: the estimator's tendons. period: expected time between samples [s].
        max_age: age at arrival from which a sample counts as late [s].
        relative: lengths are changes from an unknown start, so that they may be negative.
    """

    def __init__(self, names: Sequence[str], period: float, max_age: float = 0.1, relative: bool = True) -> None:
        if not (period > 0 and max_age > 0):
            raise ConfigError(f"tendon samples: period {period} s and greatest age {max_age} s must be above 0")
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
        """The sample to use, or None when it is to be dropped.

        Args:
            stamp: when it was measured [s]; now: when it came, for its age.
            lengths: [m] by name. tensions: [N] by name, or none.

        Raises:
            ConfigError: counts that differ, a tendon named twice, a length in millimetres or negative.
            UnknownNameError: a tendon that the estimator does not know.
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
        """Number of samples dropped, because they were not newer than the last."""
        return self.counts.duplicated + self.counts.reordered

    def reset(self) -> None:
        """Start afresh, after a clock that jumped back; the counts stay."""
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
            exists = length != 0.0 or self._relative  # a path of no length does not exist: its drive was not read
            z[self._index[name]] = length if np.isfinite(length) and exists else np.nan
            if t is not None:
                t[self._index[name]] = tensions[k]
        return TendonSample(stamp, z, t)
