"""Diagnosis of an estimate: tendon faults, consistency (NIS, NEES), observability."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import chdtri, gammaincinv

from humanoid_control.compiled.array_types import B1, F1, F2, I1
from humanoid_control.compiled.jit import kernel
from humanoid_control.compiled.packed import Packed, Table, unpack
from humanoid_control.tendons.mappings.mapping import Array, Ints, JointMuscleMapping

# -------- Tendon faults

WINDOW = 60  # updates in the window of a diagnosis
REJECT, READMIT = 4.0, 30  # leaky count of bad updates that excludes a tendon; consecutive good updates that readmit it
CLEAR = 8.0  # standard deviations of a significant motion or difference


class Comparison(NamedTuple):
    """Update of a group's filter for its k tendons.

    Attributes:
        measured: (k,) lengths [m].
        offset: (k,) calibration offset [m].
        expected: (k,) lengths at the angles [m].
        score: (k,) leave-one-out innovation [standard deviations].
        use: (k,) 1 if the update used the tendon.
    """

    measured: F1
    offset: F1
    expected: F1
    score: F1
    use: I1


class History(NamedTuple):
    """Counts of M tendons and a window of updates.

    Attributes:
        allowed: (M,) 1: usable in this step.
        bad: (M,) leaky count of bad updates.
        good: (M,) consecutive good updates.
        excluded: (M,).
        measured: (WINDOW, M) [m].
        expected: (WINDOW, M) [m].
    """

    allowed: I1
    bad: F1
    good: I1
    excluded: B1
    measured: F2
    expected: F2


@kernel
def count_rejections(
    history: Table[History], comparison: Table[Comparison], rows: np.ndarray, gate: float, now: int
) -> None:
    """Count an update of a group in the history.

    Args:
        history: packed `History`.
        comparison: packed `Comparison`.
        rows: (k,) tendon indices of the group.
        gate: [standard deviations].
        now: window row to write.
    """
    h, c = unpack(history, History), unpack(comparison, Comparison)
    bad, good, excluded, measured, expected = h.bad, h.good, h.excluded, h.measured[now], h.expected[now]
    for k in range(rows.shape[0]):
        i = rows[k]
        measured[i], expected[i] = c.measured[k] + c.offset[k], c.expected[k]
        # The filter itself rejected an allowed tendon, or its score is beyond the gate.
        if abs(c.score[k]) > gate or (c.use[k] == 0 and h.allowed[i] != 0):
            # One bad update outweighs four good ones; the cap bounds the recovery time.
            bad[i], good[i] = min(bad[i] + 1.0, 2 * REJECT), 0
        else:
            bad[i], good[i] = max(bad[i] - 0.25, 0.0), good[i] + 1
        # Hysteresis: exclusion by the leaky count, readmission by consecutive good updates.
        excluded[i] = good[i] < READMIT if excluded[i] else bad[i] >= REJECT


class FaultDetector:
    """Excludes tendons that contradict the others, names the fault, and readmits tendons that agree again.

    Attributes:
        names: tendons.
        excluded: (M,).
        relative: compare changes of length only.
        missing: (M,) no length in the last sample.
        slack: (M,) tension too low in the last sample.
    """

    def __init__(self, names: Sequence[str], length_noise: float, slack_tension: float = 0.0) -> None:
        self.names = tuple(names)
        self._noise, self._least = length_noise, slack_tension
        m = len(self.names)
        self.excluded, self.missing, self.slack = (np.zeros(m, dtype=bool) for _ in range(3))
        self._bad, self._good = np.zeros(m), np.zeros(m, dtype=np.int64)
        self._measured, self._expected = np.full((WINDOW, m), np.nan), np.full((WINDOW, m), np.nan)
        self._tension = np.full(m, np.nan)
        self._row, self._fresh = 0, True
        self.relative = False
        self._use = np.ones(m, dtype=np.int64)
        history = History(self._use, self._bad, self._good, self.excluded, self._measured, self._expected)
        self._packed = Packed(history)

    def reset(self) -> None:
        """Clear all counts, flags and the window."""
        for flags in (self.excluded, self.missing, self.slack):
            flags[:] = False
        self._bad[:], self._good[:] = 0.0, 0
        self._measured[:], self._expected[:], self._tension[:] = np.nan, np.nan, np.nan

    def usable(self, lengths: Array, tensions: Array | None = None) -> Ints:
        """Return (M,) 1 for usable tendons, given lengths (M,) [m] and tensions (M,) [N]."""
        np.isnan(lengths, out=self.missing)
        if tensions is not None:
            self._tension[:] = tensions
            np.less(tensions, self._least, out=self.slack)
        np.logical_not(self.missing | self.slack | self.excluded, out=self._use)
        self._fresh = True
        return self._use

    def update(self, rows: Ints, comparison: Packed[Comparison], gate: float) -> None:
        """Count the update of a group with tendon indices rows (k,); gate 0 disables the count."""
        if gate <= 0:
            return
        if self._fresh:  # all groups of a step share one row of the window
            self._row = (self._row + 1) % WINDOW
            self._measured[self._row] = np.nan
            self._fresh = False
        count_rejections(self._packed.table, comparison.table, rows, gate, self._row)

    def excluded_of(self, rows: Ints) -> int:
        """Return the number of excluded tendons among `rows`."""
        return int(np.count_nonzero(self.excluded[rows]))

    def readmit(self, rows: Ints) -> None:
        self.excluded[rows], self._bad[rows], self._good[rows] = False, 0.0, 0

    def report(self) -> dict[str, str]:
        """Return the fault of each unused tendon by name; swapped tendons name each other."""
        partner = self._swapped()
        out = {}
        for i, name in enumerate(self.names):
            if self.missing[i]:
                out[name] = "missing: no length is measured"
            elif self.slack[i]:
                out[name] = f"slack: tension {self._tension[i]:.1f} N is below {self._least:g} N"
            elif self.excluded[i]:
                out[name] = f"swapped with {self.names[partner[i]]}" if i in partner else self._reason(i)
        return out

    def _history(self, i: int) -> tuple[Array, Array]:
        order = np.roll(np.arange(WINDOW), -self._row - 1)
        z, f = self._measured[order, i], self._expected[order, i]
        known = np.isfinite(z) & np.isfinite(f)
        return z[known], f[known]

    def _reason(self, i: int) -> str:
        z, f = self._history(i)
        if len(z) < 3:
            return "inconsistent: contradicts the other tendons"
        clear = CLEAR * self._noise
        if np.ptp(z) < 1e-9 + 0.01 * self._noise and np.ptp(f) > clear:
            return "stuck: the measured length does not change"
        difference = (z - z[0]) - (f - f[0]) if self.relative else z - f
        if difference.max() > clear and difference.min() > -clear:
            return f"slack: measured {difference.max() * 1e3:.1f} mm longer than its path"
        if difference.min() < -clear and difference.max() < clear:
            return f"broken: measured {-difference.min() * 1e3:.1f} mm shorter than its path"
        return "inconsistent: contradicts the other tendons"

    def _swapped(self) -> dict[int, int]:
        pairs: dict[int, int] = {}
        bad = [int(i) for i in np.flatnonzero(self.excluded)]
        for a in bad:
            for b in bad:
                if a < b and self._moves_as(a, b) and self._moves_as(b, a):
                    pairs[a], pairs[b] = b, a
        return pairs

    def _moves_as(self, a: int, b: int) -> bool:
        """Return True if the measured changes of a match those expected of b, not of a."""
        known = np.isfinite(self._measured[:, a]) & np.isfinite(self._expected[:, a] + self._expected[:, b])
        if known.sum() < 10:
            return False
        z, own, other = self._measured[known, a], self._expected[known, a], self._expected[known, b]
        apart = np.std(z - own)
        return bool(apart > 2 * self._noise and np.std(z - other) < 0.3 * apart)


# -------- Consistency: NIS and NEES


def nees(error: Array, covariance: Array) -> float:
    """Return the normalised estimation error squared e^T P^-1 e; its mean is n for a consistent P.

    Args:
        error: (n,) estimate minus truth.
        covariance: (n, n) P.
    """
    return float(error @ np.linalg.solve(covariance, error))


@dataclass
class ChiSquareMean:
    """Running mean of NIS or NEES values."""

    total: float = 0.0
    freedom: int = 0
    values: int = 0

    def add(self, value: float, freedom: int) -> None:
        """Add a value; ignored without degrees of freedom."""
        if freedom > 0:
            self.total += value
            self.freedom += freedom
            self.values += 1

    @property
    def per_degree(self) -> float:
        """Mean per degree of freedom: 1 if consistent, higher if overconfident, NaN if empty."""
        return self.total / self.freedom if self.freedom else float("nan")

    def bounds(self, confidence: float = 0.99) -> tuple[float, float]:
        """Return the interval of `per_degree` for independent values of a consistent filter."""
        if not self.freedom:
            return 0.0, float("inf")
        low, high = 2 * gammaincinv(self.freedom / 2, [(1 - confidence) / 2, (1 + confidence) / 2])
        return float(low / self.freedom), float(high / self.freedom)


# -------- Test of the innovations

NEWEST = 0.1  # weight of an update in the leaky means
UNLIKELY = 1e-9  # maximum false-alarm probability of an update
CAPPED = 1e-6  # tail probability at which an update is capped; three such updates in a row raise an alarm

SURPRISING = 1e-2  # tail probability below which an update is repeated with more noise


class InnovationTest(NamedTuple):
    """Innovation test (NIS, Bar-Shalom 2001, ch. 5.4), robust to one faulty tendon.

    The NIS of k lengths, less the largest squared leave-one-out innovation, is at most chi-square distributed with k -
    1 degrees if consistent. Its leaky mean is tested.

    Attributes:
        means: (2,) leaky means of statistic and degrees.
        limits: (M,) of the mean, by degrees.
        caps: (M,) of an update, by degrees.
        surprising: (M,) of an update, beyond which joints probably moved farther than predicted.
    """

    means: F1
    limits: F1
    caps: F1
    surprising: F1


def innovation_test(tendons: int) -> InnovationTest:
    """Return the test for a number of tendons."""
    # Chernoff bound: for 0 < t < 1/(2 w_0) a sum of chi-squares of n degrees with weights w_j exceeds (n psi(t) - log
    # p) / t with probability at most p, psi(t) = -1/2 sum_j log(1 - 2 t w_j).
    weights = NEWEST * (1.0 - NEWEST) ** np.arange(200)
    t = np.linspace(0.01, 0.999, 200) / (2.0 * NEWEST)
    psi = -0.5 * np.log(1.0 - 2.0 * t[:, None] * weights).sum(axis=1)
    degrees = np.arange(max(tendons, 2))
    limits = ((degrees[:, None] * psi - np.log(UNLIKELY)) / t).min(axis=1)
    caps, surprising = chdtri(np.maximum(degrees, 1), np.array([[CAPPED], [SURPRISING]]))
    return InnovationTest(np.full(2, float(degrees[-1])), limits, caps, surprising)


@kernel
def is_honest(test: InnovationTest, nis: float, count: int, largest: float) -> bool:
    """Add an update; return False if the filter is inconsistent.

    Args:
        test: updated in place.
        nis: NIS of all lengths.
        count: number of lengths.
        largest: largest squared leave-one-out innovation.
    """
    means = test.means
    # One length has no redundancy and tests nothing.
    if count > 1:
        # The cap keeps a single outlier from raising an alarm.
        means[0] += NEWEST * (min(nis - largest, test.caps[count - 1]) - means[0])
        means[1] += NEWEST * (count - 1 - means[1])
    return means[0] <= test.limits[int(np.ceil(means[1] - 1e-9))]


# -------- Observability


@dataclass(frozen=True)
class Observability:
    """Sensitivity of lengths to angles.

    Attributes:
        smallest: singular value.
        largest: singular value.
        direction: (D,) least observable unit vector of angles.
        joints: main joints of `direction`, largest share first.
        rank: number of singular values above the cutoff.
    """

    smallest: float
    largest: float
    direction: Array
    joints: tuple[str, ...]
    rank: int

    @property
    def observable(self) -> bool:
        return self.rank == len(self.direction)

    def __str__(self) -> str:
        state = "observable" if self.observable else f"unobservable along {', '.join(self.joints)}"
        return f"{state}: smallest singular value {self.smallest:.3g}, largest {self.largest:.3g}"


def observability(matrix: Array, joint_names: Sequence[str], cutoff: float = 1e-3) -> Observability:
    """Return the observability of angles (D,) through a matrix (K, D) to lengths.

    Args:
        matrix: muscle Jacobian, or a stack of them.
        joint_names: (D,).
        cutoff: threshold relative to the largest singular value.
    """
    d = len(joint_names)
    rows = matrix if len(matrix) >= d else np.vstack([matrix, np.zeros((d - len(matrix), d))])
    _, s, vt = np.linalg.svd(rows, full_matrices=False)
    direction = vt[-1]
    order = np.argsort(-np.abs(direction))
    joints = tuple(joint_names[j] for j in order if abs(direction[j]) > 0.3)
    rank = int((s > cutoff * s[0]).sum()) if s[0] > 0 else 0
    return Observability(float(s[-1]), float(s[0]), direction, joints, rank)


def relative_observability(
    mapping: JointMuscleMapping, path: Array, cutoff: float = 1e-3, own: int | None = None
) -> Observability:
    """Return the observability of the posture from length changes along a path (K, D) [rad], K >= 2.

    A constant angle error e changes the increment along dtheta by d(G dtheta)/dtheta e. Only the part that no other
    motion explains counts.

    Args:
        mapping: lengths and moment arms.
        path: (K, D).
        cutoff: relative threshold of singular values.
        own: number of leading unknown joints; default: all.
    """
    rows = []
    for theta, step in zip(path[:-1], np.diff(path, axis=0), strict=True):
        G = mapping.jacobian(theta)[:, :own]
        change = mapping.jacobian_directional(theta, step)[:, :own]
        rows.append(change - G @ np.linalg.lstsq(G, change, rcond=cutoff)[0])
    return observability(np.vstack(rows), mapping.joint_names[:own], cutoff)
