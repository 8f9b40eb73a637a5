"""Supervision of every joint in every cycle: what is worth a warning, and what stops the robot."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

WARN, FAULT = 1, 2
I2T_TIME = 5.0  # [s] over which the square of the torque is averaged
JUMPS = 3  # samples in a row that no joint can have moved by: the encoder is wrong, not the sample


@dataclass(frozen=True)
class SupervisionLimits:
    """Limits of n joints; infinite, or NaN for the supply: not supervised.

    Attributes:
        lower, upper: (n,) range [rad]. margin: beyond it [rad].
        velocity: (n,) [rad/s]. effort: (n,) [N m]. continuous: (n,) torque that a motor bears for ever [N m].
        following_error: (n,) between reference and measurement [rad].
        warm, hot: (n,) temperatures for warning and fault [deg C].
        low_voltage, high_voltage: (n,) of the supply [V].
    """

    lower: np.ndarray
    upper: np.ndarray
    margin: float
    velocity: np.ndarray
    effort: np.ndarray
    continuous: np.ndarray
    following_error: np.ndarray
    warm: np.ndarray
    hot: np.ndarray
    low_voltage: np.ndarray
    high_voltage: np.ndarray


class JointSamples(NamedTuple):
    """Measurement of n joints in one cycle; NaN: not measured.

    Attributes:
        q: (n,) [rad]. v: (n,) [rad/s]. tau: (n,) [N m]. temperature: (n,) [deg C]. voltage: (n,) [V].
        age: (n,) of the sample [s].
        failed: (n,) True where the drive reports a fault.
        q_ref: (n,) the reference that the drives were given for the time of the samples [rad].
    """

    q: np.ndarray
    v: np.ndarray
    tau: np.ndarray
    temperature: np.ndarray
    voltage: np.ndarray
    age: np.ndarray
    failed: np.ndarray
    q_ref: np.ndarray


class Finding(NamedTuple):
    """Something wrong with a joint.

    Attributes:
        level: WARN or FAULT. joint: its index. check: name of the check. text: one line, with value and limit.
    """

    level: int
    joint: int
    check: str
    text: str


class Check(NamedTuple):
    """One check: a quantity with a level for warning and one for fault, each with the time it must last.

    Attributes:
        name: of it. unit: of the quantity. powered: only looked at while the robot has power.
        value: makes the quantity (n,) of the samples; NaN is never too much.
        warn, fault: (n,) levels of the quantity.
        warn_after, fault_after: time for which it must be above without a break [s]; 0: at once.
    """

    name: str
    unit: str
    powered: bool
    value: Callable[[JointSamples], np.ndarray]
    warn: np.ndarray
    fault: np.ndarray
    warn_after: float
    fault_after: float


def checks_of(limits: SupervisionLimits, period: float) -> list[Check]:
    """The checks of a robot whose cycle takes `period` [s]; that of the mean torque is `Supervision`'s own."""
    m, n = limits, len(limits.lower)
    never = np.full(n, np.inf)

    def all_joints(value: float) -> np.ndarray:
        return np.full(n, value)

    return [
        Check("silent for", "s", False, lambda s: s.age, all_joints(3 * period), all_joints(10 * period), 0.0, 0.0),
        Check(
            "following error", "rad", True, lambda s: np.abs(s.q_ref - s.q), 0.7 * m.following_error,
            m.following_error, 0.05, 0.05,
        ),
        Check(
            "beyond its range by", "rad", True, lambda s: np.maximum(m.lower - s.q, s.q - m.upper),
            all_joints(0.5 * m.margin), all_joints(m.margin), 0.05, 3 * period,
        ),
        Check("speed", "rad/s", True, lambda s: np.abs(s.v), 1.05 * m.velocity, 1.2 * m.velocity, 0.05, 3 * period),
        Check("torque", "N m", True, lambda s: np.abs(s.tau), 1.02 * m.effort, 1.1 * m.effort, 0.2, 0.2),
        Check("temperature", "deg C", False, lambda s: s.temperature, m.warm, m.hot, 0.1, 0.1),
        Check("supply below by", "V", False, lambda s: m.low_voltage - s.voltage, all_joints(0.0), never, 0.1, 0.1),
        Check("supply above by", "V", True, lambda s: s.voltage - m.high_voltage, all_joints(0.0), never, 0.1, 0.1),
    ]  # fmt: skip


class Supervision:
    """All checks of all joints.

    Attributes:
        mean_square: (n,) of the torque [N^2 m^2].
    """

    def __init__(self, names: tuple[str, ...], limits: SupervisionLimits, period: float) -> None:
        self.names, self.limits, self.period = names, limits, period
        self._checks = checks_of(limits, period)
        shape = (len(self._checks), len(names))
        self._warn, self._fault = np.stack([c.warn for c in self._checks]), np.stack([c.fault for c in self._checks])
        self._warn_after = np.array([[max(c.warn_after, 0.5 * period)] for c in self._checks])
        self._fault_after = np.array([[max(c.fault_after, 0.5 * period)] for c in self._checks])
        self._always = np.array([[not c.powered] for c in self._checks])
        self._values, self._warned, self._failed = np.zeros(shape), np.zeros(shape), np.zeros(shape)
        self.mean_square = np.zeros(len(names))

    def update(self, samples: JointSamples, powered: bool) -> list[Finding]:
        """Look at a cycle.

        Args:
            samples: of it. powered: whether drives follow the reference.

        Returns:
            Findings, the worst first; faults of drives are the caller's, who knows their words.
        """
        for row, check in zip(self._values, self._checks, strict=True):
            row[:] = check.value(samples)
        counted = self._always | powered
        over_warn, over_fault = counted & (self._values > self._warn), counted & (self._values > self._fault)
        self._warned = np.where(over_warn, self._warned + self.period, 0.0)
        self._failed = np.where(over_fault, self._failed + self.period, 0.0)
        findings = self._mean_torque(samples) if powered else []
        if over_warn.any() or over_fault.any():
            findings += self._told(self._failed >= self._fault_after - 1e-9, FAULT, self._fault)
            findings += self._told(self._warned >= self._warn_after - 1e-9, WARN, self._warn)
        return sorted(findings, key=lambda f: -f.level)

    def _told(self, bad: np.ndarray, level: int, limit: np.ndarray) -> list[Finding]:
        out = []
        for c, j in np.argwhere(bad):
            check = self._checks[c]
            value, most = self._values[c, j], limit[c, j]
            text = f"{self.names[j]} {check.name} {value:.3g} {check.unit}"
            out.append(Finding(level, int(j), check.name, f"{text} (limit {most:.3g})" if most else text))
        return out

    def _mean_torque(self, samples: JointSamples) -> list[Finding]:
        """The heat of the windings goes with the square of the torque."""
        share = self.period / I2T_TIME
        square = np.where(np.isfinite(samples.tau), samples.tau**2, self.mean_square)
        self.mean_square += share * (square - self.mean_square)
        out = []
        for j in np.flatnonzero(self.mean_square > self.limits.continuous**2):
            rms, most = np.sqrt(self.mean_square[j]), self.limits.continuous[j]
            text = f"{self.names[j]} mean torque {rms:.3g} N m over {I2T_TIME:g} s (limit {most:.3g})"
            out.append(Finding(FAULT, int(j), "mean torque", text))
        return out


class JumpFilter:
    """Samples that no joint can have moved by since the last one are dropped: the last good one stays.

    Attributes:
        count: (n,) of such samples in a row; JUMPS of them are a fault.
    """

    def __init__(self, velocity: np.ndarray, period: float) -> None:
        """Prepare for joints with these speed limits (n,) [rad/s]."""
        self._most = 3 * velocity * period
        self._last, self._cycles = np.full(len(velocity), np.nan), np.zeros(len(velocity))
        self.count = np.zeros(len(velocity), dtype=int)

    def update(self, q: np.ndarray, fresh: np.ndarray) -> np.ndarray:
        """The positions (n,) that may be believed; `fresh` (n,) where a sample is new."""
        self._cycles += 1
        jumped = fresh & (np.abs(q - self._last) > self._most * self._cycles)
        self.count = np.where(jumped, self.count + 1, np.where(fresh, 0, self.count))
        good = fresh & np.isfinite(q) & ~jumped
        self._last[good], self._cycles[good] = q[good], 0.0
        return self._last.copy()

    def failed(self) -> np.ndarray:
        """(n,) True where the encoder jumps on."""
        return self.count >= JUMPS

    def restart(self, joints: np.ndarray | None = None) -> None:
        """Believe the next samples, wherever they are; joints: (n,) only of these."""
        rows = slice(None) if joints is None else joints
        self._last[rows], self.count[rows] = np.nan, 0
