"""Sensor errors: noise, bias, resolution, delay, lost samples, from one seed."""

from __future__ import annotations

import zlib
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from humanoid_control.errors import ConfigError, UnknownNameError

# Measured quantities, each with the unit of its noise, bias and resolution.
QUANTITIES = {
    "position": "rad",
    "velocity": "rad/s",
    "effort": "N m",
    "orientation": "rad",
    "gyro": "rad/s",
    "accel": "m/s^2",
    "force": "N",
    "torque": "N m",
    "length": "m",
    "tension": "N",
}
SENSORS = {
    "joint_states": ("position", "velocity", "effort"),
    "imu": ("orientation", "gyro", "accel"),
    "wrench": ("force", "torque"),
    "tendon_states": ("length", "tension"),
}


AHEAD = 64  # readings whose errors are drawn at once


@dataclass(frozen=True)
class Imperfection:
    """Sensor errors by quantity or sensor; default: none.

    Attributes:
        noise: standard deviation per quantity.
        bias: standard deviation of a constant offset per component.
        resolution: rounding per quantity, except orientations.
        delay: least age per sensor [s].
        dropout: probability of a lost sample per sensor.
    """

    noise: Mapping[str, float]
    bias: Mapping[str, float]
    resolution: Mapping[str, float]
    delay: Mapping[str, float]
    dropout: Mapping[str, float]

    @classmethod
    def from_texts(
        cls, noise: str = "", bias: str = "", resolution: str = "", delay: str = "", dropout: str = ""
    ) -> Imperfection:
        """Parse texts such as 'position=0.001,gyro=0.02'; one number for delay or dropout applies to all sensors.

        Raises:
            UnknownNameError: if a quantity or sensor is unknown.
            ConfigError: if a value is invalid.
        """
        out = cls(
            _parse("noise", noise, QUANTITIES),
            _parse("bias", bias, QUANTITIES),
            _parse("resolution", resolution, [q for q in QUANTITIES if q != "orientation"]),
            _parse("delay", delay, SENSORS, single=True),
            _parse("dropout", dropout, SENSORS, single=True),
        )
        if max(out.dropout.values(), default=0.0) > 1:
            raise ConfigError(f"dropout is a probability, at most 1, got '{dropout}'")
        return out


def _parse(what: str, text: str, known: Iterable[str], single: bool = False) -> dict[str, float]:
    parts = [p.strip() for p in text.split(",") if p.strip()]
    if single and len(parts) == 1 and "=" not in parts[0]:
        parts = [f"{name}={parts[0]}" for name in known]
    out = {}
    for part in parts:
        name, equals, value = (t.strip() for t in part.partition("="))
        if not equals:
            raise ConfigError(f"{what} must be name=number, for example {next(iter(known))}=0.01, got '{part}'")
        if name not in known:
            raise UnknownNameError(f"name in {what}", name, known)
        try:
            out[name] = float(value)
        except ValueError:
            raise ConfigError(f"{what} of {name} must be a number, got '{value}'") from None
        if not 0 <= out[name] < np.inf:
            raise ConfigError(f"{what} of {name} must be 0 or more, got {value}")
    return out


class Sensor:
    """One sensor: true values in, readings with errors out, None for lost samples.

    Equal seeds and calls give equal bytes: each call draws the same random numbers, lost or not.
    """

    def __init__(self, sensor: str, sizes: Sequence[int], model: Imperfection, seed: int, label: str = "") -> None:
        """Create the sensor.

        Args:
            sensor: one of SENSORS.
            sizes: number of values of each quantity; orientations are quaternions x y z w.
            label: distinguishes sensors of a kind.
        """
        if sensor not in SENSORS:
            raise UnknownNameError("sensor", sensor, SENSORS)
        self._quantities, self._sizes = SENSORS[sensor], tuple(sizes)
        self._seed = [seed, zlib.crc32(f"{sensor}/{label}".encode())]
        self._noise, self._bias, self._resolution = (
            [float(table.get(k, 0.0)) for k in self._quantities]
            for table in (model.noise, model.bias, model.resolution)
        )
        self.delay, self.dropout = float(model.delay.get(sensor, 0.0)), float(model.dropout.get(sensor, 0.0))
        self.reset()

    def reset(self) -> None:
        """Restart with the same random numbers, and draw the constant biases."""
        self._rng = np.random.default_rng(self._seed)
        self._old: deque[tuple[float, np.ndarray]] = deque()
        free = [_free(k, n) for k, n in zip(self._quantities, self._sizes, strict=True)]
        offsets = [self._rng.normal(size=n) * s for n, s in zip(free, self._bias, strict=True)]
        self._bias_of_all = np.concatenate(offsets)
        self._turned = 4 if self._quantities[0] == "orientation" else 0  # entries of a leading quaternion
        ends = np.cumsum(self._sizes)
        self._parts = [slice(int(b - n), int(b)) for n, b in zip(self._sizes, ends, strict=True)]
        self._steps = [(part, step) for part, step in zip(self._parts, self._resolution, strict=True) if step]
        noise = np.repeat(self._noise, free)
        self._drawn = np.flatnonzero(noise)
        self._deviation = noise[self._drawn]
        # Errors drawn in advance: a block costs little more than a row and holds the same numbers.
        self._errors, self._next = np.zeros((0, len(noise))), 0

    def read(self, time: float, *values: np.ndarray) -> tuple[np.ndarray, ...] | None:
        """Return the reading of the true values, one array per quantity; None if lost, or if no sample is old enough.

        The delayed values get bias and noise, then rounding. `time` [s] must not decrease between resets.
        """
        self.sample(time, *values)
        error = self._error()
        lost = self.dropout and self._rng.random() < self.dropout
        if self.delay:
            while len(self._old) > 1 and self._old[1][0] <= time - self.delay + 1e-9:
                self._old.popleft()
            then, out = self._old[0]
            if then > time - self.delay + 1e-9:
                return None
            out = out.copy()
        else:
            out = np.concatenate(values)
        if lost:
            return None
        self._disturb(out, error)
        return tuple(out[part] for part in self._parts)

    def sample(self, time: float, *values: np.ndarray) -> None:
        """Store true values for delayed readings, without random draws."""
        if self.delay:
            self._old.append((time, np.concatenate(values)))

    def _error(self) -> np.ndarray:
        if not len(self._drawn):
            return self._bias_of_all
        if self._next == len(self._errors):
            ahead = 1 if self.dropout else AHEAD  # lost samples are drawn between the readings
            self._errors, self._next = np.tile(self._bias_of_all, (ahead, 1)), 0
            self._errors[:, self._drawn] += self._deviation * self._rng.standard_normal((ahead, len(self._drawn)))
        self._next += 1
        return np.asarray(self._errors[self._next - 1])

    def _disturb(self, values: np.ndarray, error: np.ndarray) -> None:
        if self._turned:
            turn = error[:3]
            if turn.any():
                values[:4] = (pin.Quaternion(values[:4]) * pin.Quaternion(pin.exp3(turn))).coeffs()
            error = error[3:]
        values[self._turned :] += error
        for part, step in self._steps:
            values[part] = step * np.round(values[part] / step)


def _free(quantity: str, size: int) -> int:
    return 3 if quantity == "orientation" else size
