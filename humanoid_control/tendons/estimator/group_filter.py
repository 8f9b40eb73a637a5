"""Extended Kalman filter of a joint group: prediction by eq. (7) of Kawaharazuka 2018, then an observation."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import NamedTuple

import numpy as np

from humanoid_control.compiled.array_types import F3, I1
from humanoid_control.compiled.jit import kernel
from humanoid_control.compiled.packed import Packed, Table, unpack
from humanoid_control.errors import ConfigError
from humanoid_control.numerics.cholesky import cholesky
from humanoid_control.tendons.estimator.diagnosis import Comparison, InnovationTest, innovation_test, is_honest
from humanoid_control.tendons.estimator.kalman import (
    AngleLimits,
    Estimate,
    Gate,
    Innovations,
    allow,
    copy_angles,
    hold_limits,
    update,
)
from humanoid_control.tendons.estimator.observations import observation_of
from humanoid_control.tendons.estimator.prediction import (
    LengthChanges,
    PredictionMemory,
    ProcessNoise,
    predict_by_lengths,
    predict_still,
)
from humanoid_control.tendons.estimator.recovery import SPACING, PostureSearch
from humanoid_control.tendons.estimator.settings import EstimatorSettings
from humanoid_control.tendons.estimator.tiled_update import Measurements, UpdateMemory
from humanoid_control.tendons.mappings.mapping import Array, Ints, JointMuscleMapping
from humanoid_control.tendons.tendon import TendonGroup

FASTER = 4.0  # factor on believed joint speeds if several tendons contradict
ITERATIONS = 4  # maximum iterations of an update after the first
MOST_INFLATED = 25.0  # maximum inflation of a contradicted covariance
SUSPECT = 3.0  # [standard deviations] leave-one-out innovation of a suspect tendon


class FilterArrays(NamedTuple):
    """Kernel arguments of a filter; `allowed` (M,) 1: usable in this step."""

    estimate: Estimate
    changes: LengthChanges
    process: ProcessNoise
    gate: Gate
    hessian: F3
    prediction: PredictionMemory
    measured: Measurements
    allowed: I1
    limits: AngleLimits
    update: UpdateMemory
    innovations: InnovationTest


@kernel
def predict_by_lengths_at(table: Table[FilterArrays]) -> int:
    f = unpack(table, FilterArrays)
    return predict_by_lengths(f.estimate, f.changes, f.process, f.gate, f.hessian, f.prediction)


@kernel
def predict_still_at(table: Table[FilterArrays]) -> None:
    f = unpack(table, FilterArrays)
    predict_still(f.estimate, f.changes, f.process)


@kernel(allocates=True)
def update_at(table: Table[FilterArrays], again: bool) -> Innovations:
    """Update with the allowed tendons; if `again`, from the prior of the last update."""
    f = unpack(table, FilterArrays)
    # A repeated update (new linearisation or more noise) starts from the stored prior.
    if again:
        f.estimate.x[:] = f.update.x0
        f.estimate.P[:] = f.update.P0
    allow(f.measured, f.allowed)
    return update(f.estimate, f.measured, f.gate, f.update)


@kernel(allocates=True)
def widen_at(table: Table[FilterArrays]) -> None:
    """Return to the prior of the last update, with noise of a `FASTER` motion."""
    f = unpack(table, FilterArrays)
    f.estimate.x[:] = f.update.x0
    f.estimate.P[:] = f.update.P0
    # FASTER^2 - 1 is added because the prior already contains the variance once.
    for a in range(f.process.motion.shape[0]):
        f.estimate.P[a, a] += (FASTER * FASTER - 1.0) * f.process.owned[a] * f.process.motion[a]


@kernel
def is_honest_at(table: Table[FilterArrays], nis: float, count: int, largest: float) -> bool:
    return is_honest(unpack(table, FilterArrays).innovations, nis, count, largest)


@kernel
def hold_limits_at(table: Table[FilterArrays]) -> int:
    f = unpack(table, FilterArrays)
    return hold_limits(f.estimate, f.limits)


@kernel
def copy_angles_at(to: Table[FilterArrays], at: np.ndarray, owner: Table[FilterArrays], there: np.ndarray) -> None:
    copy_angles(unpack(to, FilterArrays).estimate, at, unpack(owner, FilterArrays).estimate, there)


class GroupFilter:
    """Extended Kalman filter of the D angles of a group.

    r2 and r3 add D angles of an earlier instant; r3 adds the M length errors of that instant. A step is `predict`,
    `borrow`, `correct`, `borrow`, `close`.

    Attributes:
        x: state, angles first [rad].
        P: covariance.
        now: (M,) lengths [m].
        since: steps since the first lengths, or r2's earlier instant.
        dz: (M,) length change [m].
        delta: (D,) predicted angle change [rad].
        G: (M, D) moment arms at the prediction [m/rad].
        nis: of the last update.
        count: lengths in the last update.
        score: (M,) leave-one-out innovations [standard deviations].
        allowed: (M,) 1: usable.
        use: (M,) 1: used by the last update.
        rank: of the Jacobian.
        honest: innovations are consistent (`InnovationTest`).
        contradicted: several tendons are excluded; set from outside.
        search: posture search; None for relative observations or without a gate.
        recoveries: number of relocations and restarts.
        recovered: the last step was one.
        comparison: packed `Comparison`.
    """

    def __init__(
        self, group: TendonGroup, mapping: JointMuscleMapping, settings: EstimatorSettings | None = None
    ) -> None:
        self.settings = s = settings or EstimatorSettings()
        for what, have, need in (
            ("joints", mapping.joint_names, group.joints),
            ("tendons", mapping.muscle_names, group.tendons),
        ):
            if tuple(have) != tuple(need):
                raise ConfigError(f"group '{group.name}': its mapping has other {what}: {', '.join(have)}")
        self.group, self.mapping = group, mapping
        self.observation = o = observation_of(mapping, s)
        d, m, ny = len(group.joints), len(group.tendons), len(group.own)
        self.d, self.m = d, m
        n = o.states(d, m)
        self._angles = np.arange(d)
        self._starts = np.where(np.arange(d) < ny, s.start_noise, s.borrowed_start)
        self.x, self.P = np.zeros(n), np.zeros((n, n))
        self.offset, self.now, self._last = np.zeros(m), np.full(m, np.nan), np.full(m, np.nan)
        self._f, self.G, self.delta = np.zeros(m), np.zeros((m, d)), np.zeros(d)
        self.dz, self.score = np.zeros(m), np.zeros(m)
        self.use, self.allowed = np.ones(m, dtype=np.int64), np.ones(m, dtype=np.int64)
        self._L, memory = np.zeros((n, n)), UpdateMemory.of(m, n)
        self._prior = memory.x0
        self.innovations = innovation_test(m)
        # without a gate no estimate is doubted
        self.search = PostureSearch(mapping, s, ny, self._starts) if o.locates and s.gate > 0 else None
        own = (np.arange(d) < ny if s.share else np.ones(d)).astype(float)
        step = np.where(own > 0, s.step_noise, s.borrowed_noise)
        process = ProcessNoise(
            own,
            step,
            np.zeros(d),
            float(s.fastest),
            float(s.motion_noise**2),
            float(2 * s.length_noise**2),
            float(s.cutoff),
        )
        self._limits = AngleLimits(mapping.limits[:, 0].copy(), mapping.limits[:, 1].copy(), float(s.limit_noise**2))
        # Kernel arguments share the arrays above.
        self._packed = Packed(
            FilterArrays(
                Estimate(self.x, self.P),
                LengthChanges(self.now, self._last, self.allowed, self.use, self.G, self.dz, self.delta),
                process,
                Gate(float(s.gate), m // 3) if s.gate > 0 else Gate(np.inf, 0),
                o.mean_squared_hessian,
                PredictionMemory(np.zeros((d, d)), np.zeros((d, d)), np.zeros((d, d)), np.zeros(m)),
                Measurements(o.H, o.nu, o.R, self.use, self.score),
                self.allowed,
                self._limits,
                memory,
                self.innovations,
            )
        )
        self.comparison = Packed(Comparison(self.now, self.offset, o.lengths, self.score, self.use))
        self.nis, self.count, self.rank, self.recoveries = 0.0, 0, 0, 0
        self.honest, self.contradicted, self.recovered = True, False, False
        self._steps, self._searching, self._excess = 0, False, 1.0
        self.since = -1
        self.reset(np.zeros(d))

    @property
    def theta(self) -> Array:
        """(D,) angles, own first [rad]."""
        return self.x[: self.d]

    @property
    def covariance(self) -> Array:
        """(D, D) covariance of `theta` [rad^2]."""
        return self.P[: self.d, : self.d]

    @property
    def variance(self) -> Array:
        """(D,) variances of `theta` [rad^2]."""
        return self.P.diagonal()[: self.d]

    def reset(self, theta: Array, noise: Array | None = None) -> None:
        """Start at angles (D,) with deviations noise (D,) [rad]; discard earlier lengths."""
        theta = np.asarray(theta, float)
        if theta.shape != (self.d,) or not np.isfinite(theta).all():
            raise ConfigError(f"group '{self.group.name}': start needs {self.d} finite angles, got {theta.shape}")
        self.x[: self.d] = theta
        self._last[:] = np.nan
        self._spread(self._starts if noise is None else np.asarray(noise, float))
        self.since = -1
        if self.search is not None:
            self.search.reset()
            self._steps, self._searching = 0, False

    def _spread(self, noise: Array) -> None:
        self.P[:] = 0.0
        self.P[self._angles, self._angles] = noise**2
        self.observation.restart(self)
        self.innovations.means[:] = self.m - 1
        self.honest, self.contradicted = True, False

    def zero(self, z: Array, theta: Array | None = None) -> None:
        """Calibrate: lengths z (M,) [m] belong to theta (D,), default the estimate."""
        at = self.theta if theta is None else np.asarray(theta, float)
        self.offset[:] = np.where(np.isfinite(z), self.mapping.lengths(at) - z, self.offset)

    def predict(self, z: Array, use: Ints | None = None) -> None:
        """Predict from lengths z (M,) [m], NaN if missing; use (M,) is 0 for excluded tendons."""
        self.now[:] = z
        self.allowed[:] = 1 if use is None else use
        self.mapping.evaluate_into(self.x[: self.d], self._f, self.G)
        if self.settings.by_tendons:
            self.rank = predict_by_lengths_at(self._packed.table)
        else:
            predict_still_at(self._packed.table)
        self.observation.predicted(self)
        self.since += 1

    def correct(self) -> None:
        """Update with the lengths of `predict` and apply the limits."""
        self.nis, self.count, self.recovered = 0.0, 0, False
        if self.observation.compare(self):
            self._update()
        if self.settings.limits == "soft":
            hold_limits_at(self._packed.table)
        elif self.settings.limits == "hard":
            np.clip(self.theta, self._limits.lower, self._limits.upper, out=self.theta)
        self._steps += 1
        if self._searching or not self.honest or self.contradicted or self._steps % SPACING == 0:
            self._doubt()
        self._check()

    def _update(self) -> None:
        u, test = self._iterated(), self.innovations
        # Several tendons show more motion than predicted: update again with more noise.
        if self.search is not None and u.degrees > 1 and u.nis - u.largest > test.surprising[u.degrees - 1]:
            widen_at(self._packed.table)
            self.observation.compare(self)
            u = self._iterated()
        self.nis, self.count, self._excess = u.used_nis, u.used, u.nis / max(u.degrees, 1)
        self.honest = is_honest_at(self._packed.table, u.nis, u.degrees, u.largest)

    def _iterated(self) -> Innovations:
        """Update iteratively (iterated extended Kalman filter, Jazwinski 1970, ch. 8.3); once without a gate."""
        u = update_at(self._packed.table, False)
        for _ in range(ITERATIONS if self.search is not None else 0):
            if not self.observation.relinearise(self, self._prior):
                break
            u = update_at(self._packed.table, True)
        return u

    def _doubt(self) -> None:
        search = self.search
        if search is None:
            return
        d, doubted = self.d, self.contradicted or not self.honest
        search.watch(self._steps, self.measured, self.x[:d], doubted)
        if doubted and search.due:
            suspects = (np.abs(self.score) > SUSPECT) | (self.use == 0)
            search.begin(self.measured, self.x[:d], self.covariance, suspects)
            # meanwhile the covariance reflects the size of the innovations
            self.P *= min(max(self._excess, 1.0), MOST_INFLATED)
        found = search.advance()
        self._searching = search.running
        if found is not None:
            self.x[:d] = found.theta
            self._spread(np.zeros(d))
            self.P[:d, :d] = found.P
            self.observation.restart(self)
            self._recovered()

    def _recovered(self) -> None:
        self.since = min(self.since, 0)
        self.recoveries += 1
        self.recovered = True

    def _check(self) -> None:
        # two instants make P singular by construction, so only the present angles are tested
        if not cholesky(self.covariance, self.d, self._L) or not isfinite(self.x @ self.x):
            self.restart()

    def restart(self) -> None:
        """Restart at the present angles, clipped to their limits, with initial uncertainty."""
        d, (lower, upper, _) = self.d, self._limits
        at = np.where(np.isfinite(self.x[:d]), self.x[:d], (lower + upper) / 2)
        self.x[:d] = np.clip(at, lower, upper)
        self._spread(self._starts)
        self._recovered()
        if self.search is not None:
            self.search.stop()
            self._searching = False

    @property
    def measured(self) -> Array:
        """(M,) calibrated lengths of the last step [m]."""
        return self.now + self.offset

    @property
    def expected(self) -> Array:
        """(M,) expected lengths of the last update [m]; relative observations define only changes."""
        return self.observation.lengths

    def positions(self, joints: Sequence[str]) -> Ints:
        """Return the state indices of joints, for all instants."""
        at = np.array([self.group.joints.index(j) for j in joints])
        return np.concatenate([at + k * self.d for k in range(self.observation.instants)])

    def borrow(self, at: Ints, owner: GroupFilter, there: Ints) -> None:
        """Overwrite borrowed states `at` (k,) by the owner's states `there` (k,), eqs (8)-(10) of Kawaharazuka 2018."""
        # Only own angles are lent and only borrowed ones overwritten: the order of groups is irrelevant.
        copy_angles_at(self._packed.table, at, owner._packed.table, there)

    def close(self) -> None:
        """End a step."""
        self.observation.close(self)

    def step(self, z: Array, use: Ints | None = None) -> Array:
        """Predict, correct and close with lengths z (M,) [m]; return the angles (D,) [rad]."""
        self.predict(z, use)
        self.correct()
        self.close()
        return self.theta.copy()
