"""The filter of one group of joints: eq. (7), then eq. (2) or a relative observation, with what it borrows."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

import numpy as np

from humanoid_control.errors import ConfigError
from humanoid_control.tendons.curvature import typical_curvature
from humanoid_control.tendons.filter_settings import FilterSettings
from humanoid_control.tendons.increments import (
    granted_to_change,
    granted_to_update,
    increments,
    overwrite,
    wanted,
)
from humanoid_control.tendons.kalman import hold_limits, smallest_pivot, update
from humanoid_control.tendons.mapping import Array, Ints, JointMuscleMapping
from humanoid_control.tendons.prediction import predict
from humanoid_control.tendons.tendon import TendonGroup


class GroupFilter:
    """Extended Kalman filter of the D angles of a group; r2 and r3 carry D more, those of an earlier moment.

    One step is `predict`, `correct`, and `close`; between them angles may be borrowed (`borrow`).

    Attributes:
        x: (D,) or (2 D,) state, the group's angles first [rad]. P: its covariance.
        nis, count: normalised innovation squared of the last update, and how many lengths it used.
        score: (M,) leave-one-out innovation of each tendon at the last update [standard deviations].
        use: (M,) 1 where the last update used the tendon.
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
        d, m = len(group.joints), len(group.tendons)
        self.d, self.m = d, m
        self.cloned = s.observation in ("r2", "r3")
        n = self.n = 2 * d if self.cloned else d
        ny = len(group.own)
        self._angles = np.arange(d)
        self._own = (np.arange(d) < ny if s.share else np.ones(d)).astype(float)
        own = self._own > 0
        self._steps = np.where(own, s.step_noise, s.borrowed_noise)
        self._starts = np.where(np.arange(d) < ny, s.start_noise, s.borrowed_start)
        self._lower, self._upper = mapping.limits[:, 0].copy(), mapping.limits[:, 1].copy()
        relative = s.observation != "absolute"
        self._r = np.full(m, s.length_noise**2 * (2.0 if relative else 1.0))
        self.x, self.P = np.zeros(n), np.zeros((n, n))
        self._f, self._G, self._H = np.zeros(m), np.zeros((m, d)), np.zeros((m, n))
        self._Gc, self._fc = np.zeros((m, d)), np.zeros(m)
        self._A, self._B, self._L = np.zeros((d, d)), np.zeros((d, d)), np.zeros((n, n))
        self._x0, self._P0, self._w, self._k = np.zeros(n), np.zeros((n, n)), np.zeros(n), np.zeros(n)
        self._at = np.zeros(n, dtype=np.int64)
        self._delta, self._bend = np.zeros(d), np.zeros(m)
        self._dz = np.zeros(m)
        self._nu, self.score, self.use = np.zeros(m), np.zeros(m), np.ones(m, dtype=np.int64)
        self._gate, self._most = (s.gate, m // 3) if s.gate > 0 else (np.inf, 0)
        self._curvature = typical_curvature(mapping)
        self.nis, self.count, self.rank, self.recoveries = 0.0, 0, 0, 0
        self.offset = np.zeros(m)
        self.z, self._z_before, self._now = np.full(m, np.nan), np.full(m, np.nan), np.full(m, np.nan)
        self._asked = np.ones(m, dtype=np.int64)
        self._since = -1
        self.reset(np.zeros(d))

    @property
    def theta(self) -> Array:
        """(D,) angles of the group, own ones first [rad]."""
        return self.x[: self.d]

    @property
    def covariance(self) -> Array:
        """(D, D) covariance of `theta` [rad^2]."""
        return self.P[: self.d, : self.d]

    def reset(self, theta: Array, noise: Array | None = None) -> None:
        """Start from angles (D,) with standard deviations noise (D,) [rad]; lengths seen before are forgotten."""
        theta = np.asarray(theta, float)
        if theta.shape != (self.d,) or not np.isfinite(theta).all():
            raise ConfigError(f"group '{self.group.name}': start needs {self.d} finite angles, got {theta.shape}")
        self.x[: self.d] = theta
        self._spread(self._starts if noise is None else np.asarray(noise, float))
        self.z[:] = np.nan
        self._since = -1
        if self.cloned:
            self._clone()

    def _spread(self, noise: Array) -> None:
        self.P[:] = 0.0
        self.P[self._angles, self._angles] = noise**2
        if self.cloned:
            self.x[self.d :] = self.x[: self.d]
            self.P[:] = np.tile(self.P[: self.d, : self.d], (2, 2))

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
        self._now[:] = z
        self._asked[:] = 1 if use is None else use
        dz = self._dz
        increments(self._now, self.z, self._asked, self.use, dz)
        self.mapping.evaluate_into(self.x[:d], self._f, self._G)
        if s.predict == "tendons":
            granted_to_change(self.P, self._G, dz, self._curvature, self._bend)
            self.rank = predict(
                self.x, self.P, self._G, dz, self.use, self._own, self._steps, 2 * s.length_noise**2, s.cutoff,
                self._bend, self._gate, self._most, self._A, self._B, self._L, self._delta,
            )  # fmt: skip
        else:
            self._delta[:] = 0.0
            self.P[self._angles, self._angles] += self._steps**2
        if s.observation in ("r1", "literal"):  # its Jacobian belongs to the estimate before, which is at hand here
            np.subtract(dz, self._G @ self._delta, out=self._nu)
            self._asked *= self.use  # a change that contradicted the others is no measurement either
            if s.observation == "literal":
                self._H[:] = self._G
            else:
                self.mapping.directional_into(self.x - self._delta, self._delta, self._H)
        self._since += 1
        if self._since == 0:  # the first lengths: nothing to compare with yet
            self._z_before[:] = z

    def correct(self) -> None:
        """Compare with the lengths given to `predict` and update; pull angles beyond their limits back."""
        s, d = self.settings, self.d
        self.nis, self.count = 0.0, 0
        if self._due():
            self._observe()
            wanted(self._nu, self._asked, self.use)
            absolute = s.observation == "absolute"
            granted_to_update(self.x, self.P, absolute, self._delta, self._curvature, self._bend)
            self.nis, self.count, _ = update(
                self.x, self.P, self._H, self._nu, self._r, self.use, self._bend, self._gate, self._most,
                self._x0, self._P0, self._w, self._k, self._at, self.score,
            )  # fmt: skip
        if s.limits == "soft":
            hold_limits(self.x, self.P, self._lower, self._upper, s.limit_noise**2)
        elif s.limits == "hard":
            np.clip(self.x[:d], self._lower, self._upper, out=self.x[:d])
        self._check()

    def _due(self) -> bool:
        kind = self.settings.observation
        least = {"absolute": 0, "r2": self.settings.every}.get(kind, 1)
        return self._since >= least

    def _observe(self) -> None:
        """Innovation and its Jacobian by the observation chosen."""
        kind, d = self.settings.observation, self.d
        if kind in ("r1", "literal"):
            return
        self.mapping.evaluate_into(self.x[:d], self._f, self._G if self.cloned else self._H)
        if kind == "absolute":
            self._nu[:] = self._now + self.offset - self._f
            return
        self._H[:, :d] = self._G
        if kind == "r3":  # the angles at power-on are corrected with every update
            self.mapping.evaluate_into(self.x[d:], self._fc, self._Gc)
        self._H[:, d:] = -self._Gc
        self._nu[:] = self._now - self._z_before - (self._f - self._fc)

    def _check(self) -> None:
        """A covariance that is none any more is started afresh, and counted."""
        L = self._L
        d = self.d
        # with the copy of an earlier moment P is singular by construction, so the angles' own block is judged
        if not smallest_pivot(self.P[:d, :d], L) > 0.0 or not isfinite(self.x @ self.x):
            self.x[:d] = np.where(np.isfinite(self.x[:d]), self.x[:d], (self._lower + self._upper) / 2)
            self._spread(self._starts)
            if self.cloned:
                self._clone()
                self._z_before[:] = self._now
                self._since = 0
            self.recoveries += 1

    @property
    def measured(self) -> Array:
        """(M,) lengths of the last step, calibrated where `zero` was called [m]."""
        return self._now + self.offset

    @property
    def expected(self) -> Array:
        """(M,) lengths that the last update expected [m]; with a relative observation only their changes count."""
        return self._f

    def positions(self, joints: Sequence[str]) -> Ints:
        """Where the angles of these joints are in the state; with r2 and r3 also those of the earlier moment."""
        at = np.array([self.group.joints.index(j) for j in joints])
        return np.concatenate([at, at + self.d]) if self.cloned else at

    def borrow(self, at: Ints, owner: GroupFilter, there: Ints) -> None:
        """Overwrite the state at positions at (k,) with the owner's at positions there (k,), eqs (8)-(10).

        Only own angles are lent and only borrowed ones overwritten, so that the order of groups does not matter.
        """
        overwrite(self.x, self.P, at, owner.x, owner.P, there)

    def close(self) -> None:
        """End of a step: where it is time, the estimate becomes the earlier moment that r2 compares with."""
        if self.settings.observation == "r2" and self._since >= self.settings.every:
            self._clone()
            self._z_before[:] = self._now
            self._since = 0

    def _clone(self) -> None:
        d = self.d
        self.x[d:] = self.x[:d]
        self.P[:] = np.tile(self.P[:d, :d], (2, 2))
        self.mapping.evaluate_into(self.x[d:], self._fc, self._Gc)

    def step(self, z: Array, use: Ints | None = None) -> Array:
        """Predict, correct and close with lengths z (M,) [m]; the angles (D,) [rad]."""
        self.predict(z, use)
        self.correct()
        self.close()
        return self.theta.copy()
