"""Motor encoders of tendons as they are: counts from an unknown start, noise, spikes, slack, wrong moment arms."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from humanoid_control.errors import ConfigError
from humanoid_control.tendons.mappings.mapping import Array


@dataclass(frozen=True)
class EncoderErrors:
    """What falsifies measured lengths.

    Attributes:
        noise: standard deviation of each length [m]. quantum: size of an encoder's step [m]; 0 for none.
        spikes: share of lengths with a spike, 0..1; spike: its size [m].
        drift: standard deviation of what a length drifts in one step [m].
        scale: standard deviation of each tendon's factor on its length, 1 on average: moment arms of the model that
            are wrong. One is drawn per tendon and kept.
        from_start: lengths are counted from the first sample, as by an incremental encoder, so that the zero is lost.
    """

    noise: float = 0.0
    quantum: float = 0.0
    spikes: float = 0.0
    spike: float = 5e-3
    drift: float = 0.0
    scale: float = 0.0
    from_start: bool = False

    def __post_init__(self) -> None:
        for what, value in vars(self).items():
            if not value >= 0:
                raise ConfigError(f"tendon encoders: {what} is {value}, must not be negative")
        if self.spikes > 1:
            raise ConfigError(f"tendon encoders: spikes is {self.spikes}, a share of 0..1")


class TendonEncoders:
    """Measures the lengths of M tendons with errors; the same seed gives the same errors.

    Attributes:
        factors: (M,) on each tendon's length since zero. slack: (M,) what each encoder reads more than the path [m],
            to be set by whoever makes a tendon slack (positive) or breaks it (negative).
    """

    def __init__(self, count: int, errors: EncoderErrors | None = None, seed: int = 0) -> None:
        self.errors = errors or EncoderErrors()
        self._rng = np.random.default_rng(seed)
        self.factors = 1.0 + self.errors.scale * self._rng.standard_normal(count)
        self.slack = np.zeros(count)
        self._drifted = np.zeros(count)
        self._start: Array | None = None

    def measure(self, lengths: Array) -> Array:
        """Measured lengths (M,) [m] of true lengths since zero (M,) [m]; one call is one step of the drift."""
        e, rng, m = self.errors, self._rng, len(self.factors)
        z = self.factors * lengths + self.slack
        if e.drift:
            self._drifted += e.drift * rng.standard_normal(m)
            z += self._drifted
        if e.noise:
            z += e.noise * rng.standard_normal(m)
        if e.spikes:
            z += e.spike * (rng.uniform(size=m) < e.spikes) * rng.choice([-1.0, 1.0], m)
        if e.quantum:
            z = e.quantum * np.round(z / e.quantum)
        if e.from_start:
            self._start = z if self._start is None else self._start
            z = z - self._start
        return z

    def measure_many(self, lengths: Array) -> Array:
        """Measured lengths (T, M) of a whole motion, step by step."""
        return np.array([self.measure(row) for row in lengths]).reshape(len(lengths), -1)
