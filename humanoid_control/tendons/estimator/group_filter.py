"""The filter of one group of joints: eq. (7), then eq. (2) or a relative observation, with what it borrows."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

import numpy as np

from humanoid_control.errors import ConfigError
from humanoid_control.numerics.cholesky import cholesky
from humanoid_control.tendons.estimator.kalman import (
    bent,
    hold_limits,
    increments,
    motions,
    overwrite,
    predict,
    update,
    wanted,
)
from humanoid_control.tendons.estimator.observations import observation_of
from humanoid_control.tendons.estimator.settings import FilterSettings
from humanoid_control.tendons.mappings.mapping import Array, Ints, JointMuscleMapping
from humanoid_control.tendons.tendon import TendonGroup


class GroupFilter:
    """Extended Kalman filter of the D angles of a group; r2 and r3 carry D more, those of an earlier moment,
    and r3 the M errors of the lengths at that moment [m].

    One step is `predict`, `correct`, and `close`; between them angles may be borrowed (`borrow`).

    Attributes:
        x: (D,), (2 D,) or (2 D + M,) state, the group's angles first [rad]. P: its covariance.
        now: (M,) lengths of this step [m]. since: steps after the first lengths, or after r2's earlier moment.
        dz: (M,) their change [m]. delta: (D,) what eq. (7) made of it [rad]. G: (M, D) before that [m/rad].
        nis, count: normalised innovation squared of the last update, and how many lengths it used.
        score: (M,) leave-one-out innovation of each tendon at the last update [standard deviations].
        asked: (M,) 1 where the step may use the tendon. use: (M,) 1 where the last update used it.
        rank: of the Jacobian at the last prediction.
        recoveries: how often the covariance had to be started afresh.
    """

    def __init__(self, group: TendonGroup, mapping: JointMuscleMapping, settings: FilterSettings | None = None) -> None:
        self.settings = s = settings or FilterSettings()
        for what, have, want in (
            ("joints", mapping.joint_names, group.joints),
            ("tendons", mapping.muscle_names, group.tendons),
        ):
            if tuple(have) != tuple(want):
                raise ConfigError(f"group '{group.name}': its mapping has other {what}: {', '.join(have)}")
        self.group, self.mapping = group, mapping
        self.observation = observation_of(mapping, s)
        d, m, ny = len(group.joints), len(group.tendons), len(group.own)
        self.d, self.m = d, m
        n = self.observation.states(d, m)
        self._angles = np.arange(d)
        self._own = (np.arange(d) < ny if s.share else np.ones(d)).astype(float)
        self._steps = np.where(self._own > 0, s.step_noise, s.borrowed_noise)
        self._starts = np.where(np.arange(d) < ny, s.start_noise, s.borrowed_start)
        self._lower, self._upper = mapping.limits[:, 0].copy(), mapping.limits[:, 1].copy()
        self.x, self.P = np.zeros(n), np.zeros((n, n))
        self._f, self.G, self.delta = np.zeros(m), np.zeros((m, d)), np.zeros(d)
        self._A, self._B, self._L = np.zeros((d, d)), np.zeros((d, d)), np.zeros((n, n))
        self._x0, self._P0, self._w = np.zeros(n), np.zeros((n, n)), np.zeros(n)
        self._at = np.zeros(n, dtype=np.int64)
        self._bend, self.dz, self.score = np.zeros(m), np.zeros(m), np.zeros(m)
        self._motion, self._nothing = np.zeros(d), np.zeros(m)
        self.use, self.asked = np.ones(m, dtype=np.int64), np.ones(m, dtype=np.int64)
        self._gate, self._most = (s.gate, m // 3) if s.gate > 0 else (np.inf, 0)
        self.nis, self.count, self.rank, self.recoveries = 0.0, 0, 0, 0
        self.offset = np.zeros(m)
        self.z, self.now = np.full(m, np.nan), np.full(m, np.nan)
        self.since = -1
        self.reset(np.zeros(d))

    @property
    def theta(self) -> Array:
        """(D,) angles of the group, own ones first [rad]."""
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
        """Start from angles (D,) with standard deviations noise (D,) [rad]; lengths seen before are forgotten."""
        theta = np.asarray(theta, float)
        if theta.shape != (self.d,) or not np.isfinite(theta).all():
            raise ConfigError(f"group '{self.group.name}': start needs {self.d} finite angles, got {theta.shape}")
        self.x[: self.d] = theta
        self.z[:] = np.nan
        self._spread(self._starts if noise is None else np.asarray(noise, float))
        self.since = -1

    def _spread(self, noise: Array) -> None:
        self.P[:] = 0.0
        self.P[self._angles, self._angles] = noise**2
        self.observation.restart(self)

    def zero(self, z: Array, theta: Array | None = None) -> None:
        """Calibrate: the tendons now measured at z (M,) [m] belong to the posture theta (D,), else the estimate."""
        at = self.theta if theta is None else np.asarray(theta, float)
        self.offset = np.where(np.isfinite(z), self.mapping.lengths(at) - z, self.offset)

    def predict(self, z: Array, use: Ints | None = None) -> None:
        """Move the angles by the change of the lengths z (M,) [m]; NaN where a tendon was not measured.

        Args:
            use: (M,) 0 for tendons to leave out in this step.
        """
        s, d = self.settings, self.d
        self.now[:] = z
        self.asked[:] = 1 if use is None else use
        increments(self.now, self.z, self.asked, self.use, self.dz)
        self.mapping.evaluate_into(self.x[:d], self._f, self.G)
        motions(self.G, self.dz, s.fastest, self._motion)
        if s.by_tendons:
            # the gate grants what the error of the angles does to the moment arms
            bent(self.observation.curvature, self.variance, self._motion, 1.0, self._nothing, self._bend)
            self._motion *= s.motion_noise**2
            self.rank = predict(
                self.x, self.P, self.G, self.dz, self.use, self._own, self._steps, 2 * s.length_noise**2,
                self._motion, s.cutoff, self._bend, self._gate, self._most, self._A, self._B, self._L, self.delta,
            )  # fmt: skip
        else:
            self.delta[:] = 0.0
            self._motion *= s.motion_noise**2
            self.P[self._angles, self._angles] += self._steps**2 + self._own * self._motion
        self.observation.predicted(self)
        self.since += 1

    def correct(self) -> None:
        """Compare with the lengths given to `predict` and update; pull angles beyond their limits back."""
        s, d, o = self.settings, self.d, self.observation
        self.nis, self.count = 0.0, 0
        if o.compare(self):
            wanted(o.nu, self.asked, self.use)
            self.nis, self.count, _ = update(
                self.x, self.P, o.H, o.nu, o.R, self.use, self._gate, self._most,
                self._x0, self._P0, self._w, self._at, self.score,
            )  # fmt: skip
        if s.limits == "soft":
            hold_limits(self.x, self.P, self._lower, self._upper, s.limit_noise**2)
        elif s.limits == "hard":
            np.clip(self.x[:d], self._lower, self._upper, out=self.x[:d])
        self._check()

    def _check(self) -> None:
        """A covariance that is none any more is started afresh."""
        # with the angles of an earlier moment P is singular by construction, so the block of those now is judged
        if not cholesky(self.covariance, self.d, self._L) or not isfinite(self.x @ self.x):
            self.restart()

    def restart(self) -> None:
        """Start afresh from where the angles are, or the nearest that they can be, as unsure as at first; counted."""
        d = self.d
        at = np.where(np.isfinite(self.x[:d]), self.x[:d], (self._lower + self._upper) / 2)
        self.x[:d] = np.clip(at, self._lower, self._upper)
        self._spread(self._starts)
        self.since = min(self.since, 0)
        self.recoveries += 1

    @property
    def measured(self) -> Array:
        """(M,) lengths of the last step, calibrated where `zero` was called [m]."""
        return self.now + self.offset

    @property
    def expected(self) -> Array:
        """(M,) lengths that the last update expected [m]; with a relative observation only their changes count."""
        return self.observation.lengths

    def positions(self, joints: Sequence[str]) -> Ints:
        """Where the angles of these joints are in the state; with r2 and r3 also those of the earlier moment."""
        at = np.array([self.group.joints.index(j) for j in joints])
        return np.concatenate([at + k * self.d for k in range(self.observation.moments)])

    def borrow(self, at: Ints, owner: GroupFilter, there: Ints) -> None:
        """Overwrite the state at positions at (k,) with the owner's at positions there (k,), eqs (8)-(10).

        Only own angles are lent and only borrowed ones overwritten, so that the order of groups does not matter.
        """
        overwrite(self.x, self.P, at, owner.x, owner.P, there)

    def close(self) -> None:
        """End of a step: where it is time, the estimate becomes the earlier moment that r2 compares with."""
        self.observation.close(self)

    def step(self, z: Array, use: Ints | None = None) -> Array:
        """Predict, correct and close with lengths z (M,) [m]; the angles (D,) [rad]."""
        self.predict(z, use)
        self.correct()
        self.close()
        return self.theta.copy()
