"""Supervision of every joint in every cycle: warnings and faults."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from humanoid_control.compiled.array_types import B1, F1, F2, F3, I1
from humanoid_control.compiled.jit import kernel
from humanoid_control.compiled.packed import BoundRecord, Packed, Table, unpack
from humanoid_control.hardware.transmission import JointReading

WARN, FAULT = 1, 2
I2T_TIME = 5.0  # [s] time constant of the mean squared torque
JUMPS = 3  # implausible samples in a row that mean an encoder fault


@dataclass(frozen=True)
class SupervisionLimits:
    """Limits (n,) of n joints; infinite, or NaN for the supply: not supervised.

    lower, upper [rad], velocity [rad/s], effort [N m], supply voltages [V].

    Attributes:
        margin: tolerance beyond the range [rad].
        continuous: sustained torque [N m].
        warm: warning [deg C].
        hot: fault [deg C].
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
    """Measurement (n,) of n joints in one cycle; NaN: not measured.

    q [rad], v [rad/s], tau [N m], temperature [deg C], voltage [V].

    Attributes:
        age: [s].
        q_ref: reference of the drives at sample time [rad].
    """

    q: F1
    v: F1
    tau: F1
    temperature: F1
    voltage: F1
    age: F1
    failed: B1
    q_ref: F1


class WatchFinding(NamedTuple):
    """Warning or fault of a joint.

    Attributes:
        text: one line with value and limit.
    """

    level: int
    joint: int
    check: str
    text: str


class Check(NamedTuple):
    """Check of one quantity with levels (n,) for warning and fault.

    Attributes:
        powered: active only with power.
        warn_after: uninterrupted time above [s].
        fault_after: uninterrupted time above [s].
    """

    name: str
    unit: str
    powered: bool
    warn: np.ndarray
    fault: np.ndarray
    warn_after: float
    fault_after: float


SILENT, FOLLOWING, RANGE, SPEED, TORQUE, TEMPERATURE, LOW_VOLTAGE, HIGH_VOLTAGE = range(8)
"""Rows of the checks in all tables, in the order of `checks_of`."""
ABOVE, HEATED = 1, 2  # bits returned by `judge`: a quantity above a level; mean torque above the continuous torque


def checks_of(limits: SupervisionLimits, period: float) -> list[Check]:
    """Return all checks except mean torque; `period` of the cycle [s]."""
    m, n = limits, len(limits.lower)
    never = np.full(n, np.inf)

    def all_joints(value: float) -> np.ndarray:
        return np.full(n, value)

    return [
        Check("silent for", "s", False, all_joints(3 * period), all_joints(10 * period), 0.0, 0.0),
        Check("following error", "rad", True, 0.7 * m.following_error, m.following_error, 0.05, 0.05),
        Check(
            "beyond its range by", "rad", True, all_joints(0.5 * m.margin), all_joints(m.margin), 0.05, 3 * period
        ),
        Check("speed", "rad/s", True, 1.05 * m.velocity, 1.2 * m.velocity, 0.05, 3 * period),
        Check("torque", "N m", True, 1.02 * m.effort, 1.1 * m.effort, 0.2, 0.2),
        Check("temperature", "deg C", False, m.warm, m.hot, 0.1, 0.1),
        Check("supply below by", "V", False, all_joints(0.0), never, 0.1, 0.1),
        Check("supply above by", "V", True, all_joints(0.0), never, 0.1, 0.1),
    ]  # fmt: skip


class CheckTables(NamedTuple):
    """Tables of c checks and n joints; level 0: warning, 1: fault.

    Attributes:
        always: active without power (c,).
        above: time above the level (2, c, n) [s].
        mean_square: mean square of the torque (n,) [N^2 m^2].
    """

    lower: F1
    upper: F1
    low_voltage: F1
    high_voltage: F1
    continuous: F1
    level: F3
    always: B1
    value: F2
    above: F3
    mean_square: F1
    period: float


class Judgement(NamedTuple):
    """Arguments of `judge`."""

    samples: JointSamples
    tables: CheckTables


@kernel
def judge(table: Table[Judgement], powered: bool) -> int:
    """Update quantities and times above levels; returns bits ABOVE and HEATED.

    NaN (not measured) is never above a level.
    """
    r = unpack(table, Judgement)
    s, t = r.samples, r.tables
    out, value = 0, t.value
    # each quantity is positive in the bad direction, so that one comparison serves all checks
    for i in range(s.q.shape[0]):
        value[SILENT, i] = s.age[i]
        value[FOLLOWING, i] = abs(s.q_ref[i] - s.q[i])
        value[RANGE, i] = max(t.lower[i] - s.q[i], s.q[i] - t.upper[i])
        value[SPEED, i] = abs(s.v[i])
        value[TORQUE, i] = abs(s.tau[i])
        value[TEMPERATURE, i] = s.temperature[i]
        value[LOW_VOLTAGE, i] = t.low_voltage[i] - s.voltage[i]
        value[HIGH_VOLTAGE, i] = s.voltage[i] - t.high_voltage[i]
    # a single cycle below the level restarts its time
    for level in range(2):
        for c in range(value.shape[0]):
            # following and range errors mean nothing without power
            counted = powered or t.always[c]
            for i in range(value.shape[1]):
                if counted and value[c, i] > t.level[level, c, i]:
                    t.above[level, c, i] += t.period
                    out |= ABOVE
                else:
                    t.above[level, c, i] = 0.0
    if powered:
        # exponential mean of tau^2, proportional to the winding heat
        share = t.period / I2T_TIME
        for i in range(s.q.shape[0]):
            if np.isfinite(s.tau[i]):
                t.mean_square[i] += share * (s.tau[i] * s.tau[i] - t.mean_square[i])
            if t.mean_square[i] > t.continuous[i] * t.continuous[i]:
                out |= HEATED
    return out


class Supervision:
    """All checks of all joints.

    Attributes:
        mean_square: mean square of the torque (n,) [N^2 m^2].
    """

    def __init__(self, names: tuple[str, ...], limits: SupervisionLimits, period: float) -> None:
        self.names, self.limits, self.period = names, limits, period
        self._checks = checks_of(limits, period)
        n, c = len(names), len(self._checks)
        level = np.array([[x.warn for x in self._checks], [x.fault for x in self._checks]])
        self._after = np.array([[x.warn_after for x in self._checks], [x.fault_after for x in self._checks]])
        # a delay of 0 still needs one cycle above the level
        self._after = np.maximum(self._after, 0.5 * period)[:, :, None]
        always = np.array([not x.powered for x in self._checks])
        self.mean_square = np.zeros(n)
        bounds = (limits.lower, limits.upper, limits.low_voltage, limits.high_voltage, limits.continuous)
        lower, upper, low, high, continuous = np.array(bounds, dtype=float)
        self._tables = CheckTables(
            lower, upper, low, high, continuous, level, always, np.zeros((c, n)), np.zeros((2, c, n)),
            self.mean_square, period,
        )  # fmt: skip
        self._bound = BoundRecord(lambda samples: Judgement(samples, self._tables))

    def update(self, samples: JointSamples, powered: bool) -> list[WatchFinding]:
        """Check one cycle; return findings, worst first.

        Args:
            powered: drives follow the reference.
        """
        seen = judge(self._bound.table(samples), powered)
        # the usual cycle: no text is built
        if not seen:
            return []
        findings = self._mean_torque() if seen & HEATED else []
        if seen & ABOVE:
            for level in (FAULT, WARN):
                k, t = level - WARN, self._tables
                findings += self._limit_findings(t.above[k] >= self._after[k] - 1e-9, level, t.level[k])
        return sorted(findings, key=lambda f: -f.level)

    def _limit_findings(self, bad: np.ndarray, level: int, limit: np.ndarray) -> list[WatchFinding]:
        out = []
        for c, j in np.argwhere(bad):
            check = self._checks[c]
            value, most = self._tables.value[c, j], limit[c, j]
            text = f"{self.names[j]} {check.name} {value:.3g} {check.unit}"
            out.append(WatchFinding(level, int(j), check.name, f"{text} (limit {most:.3g})" if most else text))
        return out

    def _mean_torque(self) -> list[WatchFinding]:
        out = []
        for j in np.flatnonzero(self.mean_square > self.limits.continuous**2):
            rms, most = np.sqrt(self.mean_square[j]), self.limits.continuous[j]
            text = f"{self.names[j]} mean torque {rms:.3g} N m over {I2T_TIME:g} s (limit {most:.3g})"
            out.append(WatchFinding(FAULT, int(j), "mean torque", text))
        return out


class JumpColumns(NamedTuple):
    """State of a `JumpFilter` of n joints.

    Attributes:
        most: largest plausible change per cycle (n,) [rad].
        last: last good sample (n,) [rad].
    """

    most: F1
    last: F1
    cycles: F1
    jumps: I1


@kernel
def drop_jumps(table: Table[JumpColumns], q: np.ndarray, fresh: np.ndarray) -> bool:
    """Replace implausible q (n,) by the last good sample; True if an encoder fails."""
    f = unpack(table, JumpColumns)
    failed = False
    for i in range(q.shape[0]):
        f.cycles[i] += 1.0
        if fresh[i]:
            # the plausible change grows with the cycles since the last good sample (NaN at first: accepted)
            jumped = abs(q[i] - f.last[i]) > f.most[i] * f.cycles[i]
            f.jumps[i] = f.jumps[i] + 1 if jumped else 0
            # NaN neither jumps nor is a good sample
            if np.isfinite(q[i]) and not jumped:
                f.last[i], f.cycles[i] = q[i], 0.0
        # also for joints without a fresh sample
        q[i] = f.last[i]
        failed = failed or f.jumps[i] >= JUMPS
    return failed


class JumpFilter:
    """Filter of implausible position jumps: the last good sample is kept.

    Attributes:
        count: jumps in a row (n,); JUMPS of them are a fault.
    """

    def __init__(self, velocity: np.ndarray, period: float) -> None:
        """Set up for speed limits `velocity` (n,) [rad/s]."""
        n = len(velocity)
        self.count, self.failing = np.zeros(n, dtype=int), False
        # three times the speed limit: no joint moves that fast
        self._packed = Packed(JumpColumns(3 * velocity * period, np.full(n, np.nan), np.zeros(n), self.count))

    def update(self, q: np.ndarray, fresh: np.ndarray) -> np.ndarray:
        """Filter q (n,) in place; `fresh`: new samples."""
        self.failing = drop_jumps(self._packed.table, q, fresh)
        return q

    def failed(self) -> np.ndarray:
        """Return True for failed encoders (n,)."""
        return self.count >= JUMPS

    def restart(self, joints: np.ndarray | None = None) -> None:
        """Accept the next samples anywhere; `joints` (n,): only these."""
        rows = slice(None) if joints is None else joints
        self._packed.record.last[rows], self.count[rows] = np.nan, 0


class SampleColumns(NamedTuple):
    """Arrays read (v, q, stamp, fresh, enabled, failed) and filled (age, still, believed)."""

    q: F1
    v: F1
    stamp: F1
    fresh: B1
    enabled: B1
    failed: B1
    age: F1
    still: F1
    believed: B1
    still_speed: float
    period: float


DRIVE_FAILED, UNPOWERED = 1, 2  # bits returned by `look_at_samples`


@kernel
def look_at_samples(table: Table[SampleColumns], now: float, since: float) -> int:
    """Update sample age, rest time and validity; returns bits DRIVE_FAILED and UNPOWERED."""
    s = unpack(table, SampleColumns)
    out = 0
    for i in range(s.q.shape[0]):
        # without any sample, age counts from the last transition
        s.age[i] = now - (s.stamp[i] if np.isfinite(s.stamp[i]) else since)
        s.still[i] = s.still[i] + s.period if abs(s.v[i]) < s.still_speed else 0.0
        s.believed[i] = s.fresh[i] and np.isfinite(s.q[i])
        # a failed drive has no power either: report the fault only
        if s.failed[i]:
            out |= DRIVE_FAILED
        elif s.believed[i] and not s.enabled[i]:
            out |= UNPOWERED
    return out


class SampleWatch:
    """Age, rest time and validity of samples of n joints.

    Attributes:
        age: (n,) [s]; without any sample, since the last transition.
        still: time at rest (n,) [s].
    """

    def __init__(self, joints: JointReading, still_speed: float, period: float) -> None:
        """Watch `joints`; a joint below `still_speed` [rad/s] is at rest."""
        n, j = len(joints.q), joints
        self.age, self.still, self.believed = np.zeros(n), np.zeros(n), np.zeros(n, dtype=bool)
        self._packed = Packed(
            SampleColumns(
                j.q, j.v, j.stamp, j.fresh, j.enabled, j.failed, self.age, self.still, self.believed, still_speed,
                period,
            )
        )  # fmt: skip

    def update(self, now: float, since: float) -> int:
        """Update for one cycle; returns bits DRIVE_FAILED and UNPOWERED.

        Args:
            since: time of the last transition [s].
        """
        return int(look_at_samples(self._packed.table, now, since))
