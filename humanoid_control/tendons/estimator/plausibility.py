"""Plausibility of a whole sample of tendon lengths."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Protocol

import numpy as np

from humanoid_control.tendons.estimator.group_filter import GroupFilter
from humanoid_control.tendons.estimator.settings import EstimatorSettings
from humanoid_control.tendons.mappings.mapping import Array, JointMuscleMapping
from humanoid_control.tendons.mappings.postures import random_postures
from humanoid_control.tendons.tendon import TendonGroup

FASTEST = 3.0  # maximum apparent joint speed, relative to its limit
STEP = 0.1  # [rad] apparent motion from length noise
UNEVEN = 0.01  # [s] jitter of sample times
FEW = 4  # a group may have one in so many faulty tendons, and always one
BELIEVED = 3  # consecutive agreeing samples that are accepted
POSTURES = 2000  # random postures that span possible lengths
MOST_CORNERS = 8  # joints of a group up to which all corners are tried
BEYOND, ROOM = 0.5, 0.01  # margin of a length: fraction of its span, [m]
STIFF = 0.005  # [m/rad] damping of small lever arms (Levenberg 1944)


class JudgedEstimator(Protocol):
    """Interface of `TendonEstimator` used here."""

    settings: EstimatorSettings
    groups: tuple[TendonGroup, ...]
    filters: list[GroupFilter]
    joint_names: tuple[str, ...]
    muscle_names: tuple[str, ...]


class TendonPlausibility:
    """Judge of samples by the joint motion since the last good sample.

    A sample that implies an excessive joint speed is refused; consecutive refused samples that agree are accepted. With
    known postures, a sample is
    refused if most tendons of a group are outside all possible lengths.

    Attributes:
        problem: message for the last sample, or empty.
        velocity: (J,) joint velocities after an accepted jump [rad/s], else None.
    """

    def __init__(
        self, estimator: JudgedEstimator, velocity: Sequence[float] | None = None, placed: bool = False
    ) -> None:
        """Create the judge.

        Args:
            estimator: tendons and joints.
            velocity: (J,) speed limits [rad/s]; None: `largest_step` per sample.
            placed: lengths belong to known postures (whole paths or calibrated).
        """
        self._estimator, self._timed, self._placed = estimator, velocity is not None, placed
        most = np.full(len(estimator.joint_names), estimator.settings.largest_step)
        self._limit = most if velocity is None else np.abs(np.asarray(velocity, dtype=float))
        names = estimator.muscle_names
        self._rows = [np.array([names.index(m) for m in g.tendons]) for g in estimator.groups]
        self._own = [np.array([estimator.joint_names.index(j) for j in g.own]) for g in estimator.groups]
        self._joints = [np.array([estimator.joint_names.index(j) for j in g.joints]) for g in estimator.groups]
        self._spans: list[Array] = []
        if self._timed:  # a node loads compiled code now, not at its first sample
            self._motion(np.zeros(len(names)))
            self._find_spans()
        self.reset()

    def place(self) -> None:
        """Treat lengths as calibrated from now on."""
        self._placed = True
        if self._timed:
            self._find_spans()

    def _find_spans(self) -> None:
        if self._placed and not self._spans:
            self._spans = [_span_of(f.mapping) for f in self._estimator.filters]

    def reset(self) -> None:
        self._good: tuple[Array, Array] | None = None  # time (M,) and length (M,) of each tendon
        self._refused: tuple[Array, Array] | None = None
        self._count, self.problem = 0, ""
        self.velocity: Array | None = None

    def shift(self, step: float) -> None:
        """Shift all times by a clock step [s]."""
        for kept in (self._good, self._refused):
            if kept is not None:
                kept[0][:] += step

    def check(self, time: float, lengths: Array) -> bool:
        """Return True if a sample of lengths (M,) [m], NaN if missing, is usable.

        `time` is in [s], or the sample number without speed limits.
        """
        self.problem, self.velocity = "", None
        if not self._timed and self._good is not None and self._is_small(lengths):
            self._accept(time, lengths)
            return True
        self._find_spans()
        if impossible := self._impossible(lengths):
            self.problem = f"tendon lengths outside all postures, {impossible}: ignored"
            return False
        if self._good is None or not (worst := self._too_fast(self._good, time, lengths)):
            self._accept(time, lengths)
            return True
        agrees = self._refused is not None and not self._too_fast(self._refused, time, lengths)
        self._count = self._count + 1 if agrees and self._count else 1
        before, self._refused = self._refused, (np.full(len(lengths), time), lengths.copy())
        believed = self._count >= BELIEVED
        verdict = f"accepted, {BELIEVED} in a row agree" if believed else "left out"
        self.problem = f"tendon lengths imply that {worst}: {verdict}"
        if believed:
            assert before is not None
            moved = self._motion(lengths - before[1]) / max(time - float(before[0].max()), 1e-9)
            self.velocity = np.clip(moved, -self._limit, self._limit)
            self._accept(time, lengths)
        return believed

    def _accept(self, time: float, lengths: Array) -> None:
        """Store a good sample; missing tendons keep their last length and time."""
        known = np.isfinite(lengths)
        if self._good is None:
            if known.any():
                self._good = np.where(known, time, np.nan), np.where(known, lengths, np.nan)
        else:
            self._good[0][known], self._good[1][known] = time, lengths[known]
        self._count = 0

    def _is_small(self, lengths: Array) -> bool:
        assert self._good is not None
        change = lengths - self._good[1]
        change[np.isnan(change)] = 0.0
        # The damped inverse of `_motion` has a gain below 1 / (2 STIFF).
        return float(change @ change) <= (2.0 * STIFF * STEP) ** 2

    def _impossible(self, lengths: Array) -> str:
        for f, rows, span in zip(self._estimator.filters, self._rows, self._spans, strict=False):
            z = lengths[rows] + f.offset
            out = np.nan_to_num(np.maximum(span[:, 0] - z, z - span[:, 1]), nan=-np.inf)
            if 2 * (out > 0.0).sum() > max(np.isfinite(z).sum(), 2):
                k = int(np.argmax(out))
                least, most = span[k] - f.offset[k]
                return f"{f.group.tendons[k]} of {lengths[rows][k]:.3f} m, not {least:.3f} to {most:.3f}"
        return ""

    def _too_fast(self, before: tuple[Array, Array], time: float, lengths: Array) -> str:
        change = lengths - before[1]
        since = np.zeros(len(self._limit))  # age of each joint's group
        for rows, own in zip(self._rows, self._own, strict=True):
            known = np.isfinite(change[rows])
            since[own] = np.max(time - before[0][rows][known], initial=0.0)
        faster, uneven = (FASTEST, UNEVEN) if self._timed else (1.0, 0.0)
        most = STEP + faster * self._limit * (since + uneven)
        moved = np.abs(self._motion(change))
        # A few unexplained tendons are tolerated: later tests judge single tendons.
        if (moved > most).any() and (alone := self._alone(change, most)).any():
            moved = np.abs(self._motion(np.where(alone, np.nan, change)))
        k = int(np.argmax(moved / most))
        if moved[k] <= most[k]:
            return ""
        bound = f"{FASTEST:g} times its speed limit allows" if self._timed else "largest_step allows"
        return f"{self._estimator.joint_names[k]} moved by {moved[k]:.2f} rad, {bound} {most[k]:.2f}"

    def _alone(self, change: Array, most: Array) -> Array:
        """Return the few tendons (M,) per group that no admissible motion explains."""
        out = np.zeros(len(change), dtype=bool)
        for f, rows, joints in zip(self._estimator.filters, self._rows, self._joints, strict=True):
            beyond = np.abs(change[rows]) > np.abs(f.mapping.jacobian(f.theta)) @ most[joints]
            if beyond.sum() <= max(1, np.isfinite(change[rows]).sum() // FEW):
                out[rows[beyond]] = True
        return out

    def _motion(self, change: Array) -> Array:
        """Return the joint motion (J,) [rad] implied by a length change (M,) [m]."""
        out = np.zeros(len(self._limit))
        for f, rows, own in zip(self._estimator.filters, self._rows, self._own, strict=True):
            known = np.isfinite(change[rows])
            if not known.any():
                continue
            jacobian = f.mapping.jacobian(f.theta)[known]
            normal = jacobian.T @ jacobian + STIFF**2 * np.eye(jacobian.shape[1])
            out[own] = np.linalg.solve(normal, jacobian.T @ change[rows][known])[: len(own)]
        return out


def _span_of(mapping: JointMuscleMapping) -> Array:
    """Return minimum and maximum lengths (M, 2) within the joint ranges, with margins [m]."""
    limits = mapping.limits
    corners = np.array(list(product(*limits))) if len(limits) <= MOST_CORNERS else limits.T
    at = np.vstack([random_postures(limits, POSTURES), corners])
    lengths = np.array([mapping.lengths(theta) for theta in at])
    least, most = lengths.min(axis=0), lengths.max(axis=0)
    margin = BEYOND * (most - least) + ROOM
    return np.column_stack([least - margin, most + margin])
