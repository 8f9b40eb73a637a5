"""Plausibility of a whole sample of tendon lengths, against what all tendons say together and no joint can do."""

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

FASTEST = 3.0  # times its speed limit that a joint may seem to move
STEP = 0.1  # [rad] that a joint may seem to move in no time: noise of lengths, over the lever arms
UNEVEN = 0.01  # [s] by which samples may come closer together than they were taken
FEW = 4  # part of a group's tendons, as a divisor, that may be wrong by themselves; one always may
BELIEVED = 3  # samples in a row that agree: there the joints really are
POSTURES = 2000  # random ones, between which lengths of possible postures lie
MOST_CORNERS = 8  # joints of a group whose ends are all combined
BEYOND, ROOM = 0.5, 0.01  # share of the span between these, and length [m], by which a length may be outside of it
STIFF = 0.005  # [m/rad] below which a lever arm tells nothing of a joint (Levenberg 1944)


class JudgedEstimator(Protocol):
    """What is asked of a `TendonEstimator`."""

    settings: EstimatorSettings
    groups: tuple[TendonGroup, ...]
    filters: list[GroupFilter]
    joint_names: tuple[str, ...]
    muscle_names: tuple[str, ...]


class TendonPlausibility:
    """Judge of samples of lengths, each by the joint motion that its change since the last good sample implies.

    A bus that lost its drives for a cycle, or a posture that was set, moves all lengths at once. Tendon by tendon such
    a sample contradicts nothing. One that implies a joint speed far beyond the limit is refused. Samples in a row that
    are refused but agree with each other are believed.

    Of lengths that begin at a known posture also the first sample is judged: where most tendons of a group are shorter
    or longer than in any posture within the joint ranges, the sample is left out however often it comes.

    Attributes:
        problem: words for the last sample; empty where it was good. velocity: (J,) of the joints by the samples that
            agreed, where the last one was believed after a jump [rad/s]; else None.
    """

    def __init__(
        self, estimator: JudgedEstimator, velocity: Sequence[float] | None = None, placed: bool = False
    ) -> None:
        """Judge nothing yet.

        Args:
            estimator: whose tendons and joints they are.
            velocity: (J,) speed limits of its joints [rad/s]; None: samples are counted, not timed, and a joint moves
                by the setting `largest_step` of the estimator from one to the next at most.
            placed: lengths belong to known postures: those of whole paths, or calibrated ones.
        """
        self._estimator, self._timed, self._placed = estimator, velocity is not None, placed
        most = np.full(len(estimator.joint_names), estimator.settings.largest_step)
        self._limit = most if velocity is None else np.abs(np.asarray(velocity, dtype=float))
        names = estimator.muscle_names
        self._rows = [np.array([names.index(m) for m in g.tendons]) for g in estimator.groups]
        self._own = [np.array([estimator.joint_names.index(j) for j in g.own]) for g in estimator.groups]
        self._joints = [np.array([estimator.joint_names.index(j) for j in g.joints]) for g in estimator.groups]
        self._spans: list[Array] = []
        if self._timed:  # in a node: loads what is compiled, now and not at a sample
            self._motion(np.zeros(len(names)))
            self._find_spans()
        self.forget()

    def place(self) -> None:
        """Take lengths for those of known postures from now on: they were calibrated."""
        self._placed = True
        if self._timed:
            self._find_spans()

    def _find_spans(self) -> None:
        if self._placed and not self._spans:
            self._spans = [_span_of(f.mapping) for f in self._estimator.filters]

    def forget(self) -> None:
        """Discard all samples: the next one is the first."""
        self._good: tuple[Array, Array] | None = None  # time (M,) and length (M,) of each tendon
        self._refused: tuple[Array, Array] | None = None
        self._count, self.problem = 0, ""
        self.velocity: Array | None = None

    def shift(self, step: float) -> None:
        """Go along with the clock of all times, which was set ahead by a step [s]."""
        for kept in (self._good, self._refused):
            if kept is not None:
                kept[0][:] += step

    def check(self, time: float, lengths: Array) -> bool:
        """Judge one sample, lengths (M,) [m] with NaN where a tendon lacks, of a time [s]; True: it is to be used.

        The time is the number of the sample where samples are counted.
        """
        self.problem, self.velocity = "", None
        if not self._timed and self._good is not None and self._is_small(lengths):
            self._accept(time, lengths)
            return True
        self._find_spans()
        if impossible := self._impossible(lengths):
            self.problem = f"tendon lengths that no posture has, {impossible}: left out"
            return False
        if self._good is None or not (worst := self._too_fast(self._good, time, lengths)):
            self._accept(time, lengths)
            return True
        agrees = self._refused is not None and not self._too_fast(self._refused, time, lengths)
        self._count = self._count + 1 if agrees and self._count else 1
        before, self._refused = self._refused, (np.full(len(lengths), time), lengths.copy())
        believed = self._count >= BELIEVED
        verdict = f"believed, {BELIEVED} in a row agree" if believed else "left out"
        self.problem = f"tendon lengths imply that {worst}: {verdict}"
        if believed:
            assert before is not None
            moved = self._motion(lengths - before[1]) / max(time - float(before[0].max()), 1e-9)
            self.velocity = np.clip(moved, -self._limit, self._limit)
            self._accept(time, lengths)
        return believed

    def _accept(self, time: float, lengths: Array) -> None:
        """Keep a good sample: a tendon that lacks keeps its last length, and the time of that."""
        known = np.isfinite(lengths)
        if self._good is None:
            if known.any():
                self._good = np.where(known, time, np.nan), np.where(known, lengths, np.nan)
        else:
            self._good[0][known], self._good[1][known] = time, lengths[known]
        self._count = 0

    def _is_small(self, lengths: Array) -> bool:
        """Test whether lengths changed so little that no joint can have moved too far, whatever the lever arms are.

        `_motion` is a damped inverse: its gain is below 1 / (2 `STIFF`).
        """
        assert self._good is not None
        change = lengths - self._good[1]
        change[np.isnan(change)] = 0.0
        return float(change @ change) <= (2.0 * STIFF * STEP) ** 2

    def _impossible(self, lengths: Array) -> str:
        """Words for the tendon that is farthest out of its span, in a group most of which is; empty: there is none."""
        for f, rows, span in zip(self._estimator.filters, self._rows, self._spans, strict=False):
            z = lengths[rows] + f.offset
            out = np.nan_to_num(np.maximum(span[:, 0] - z, z - span[:, 1]), nan=-np.inf)
            if 2 * (out > 0.0).sum() > max(np.isfinite(z).sum(), 2):
                k = int(np.argmax(out))
                least, most = span[k] - f.offset[k]
                return f"{f.group.tendons[k]} of {lengths[rows][k]:.3f} m, not {least:.3f} to {most:.3f}"
        return ""

    def _too_fast(self, before: tuple[Array, Array], time: float, lengths: Array) -> str:
        """Words for the joint that moved farther since another sample than it can; empty where none did.

        A few tendons that no motion explains are not counted: each tendon is judged against the others later.
        """
        change = lengths - before[1]
        since = np.zeros(len(self._limit))  # that the lengths of each joint's group are apart
        for rows, own in zip(self._rows, self._own, strict=True):
            known = np.isfinite(change[rows])
            since[own] = np.max(time - before[0][rows][known], initial=0.0)
        faster, uneven = (FASTEST, UNEVEN) if self._timed else (1.0, 0.0)
        most = STEP + faster * self._limit * (since + uneven)
        moved = np.abs(self._motion(change))
        if (moved > most).any() and (alone := self._alone(change, most)).any():
            moved = np.abs(self._motion(np.where(alone, np.nan, change)))
        k = int(np.argmax(moved / most))
        if moved[k] <= most[k]:
            return ""
        bound = f"{FASTEST:g} times its speed limit allows" if self._timed else "largest_step allows"
        return f"{self._estimator.joint_names[k]} moved by {moved[k]:.2f} rad, {bound} {most[k]:.2f}"

    def _alone(self, change: Array, most: Array) -> Array:
        """Tendons (M,) whose change (M,) [m] no motion of up to (J,) [rad] makes, where they are few in their group."""
        out = np.zeros(len(change), dtype=bool)
        for f, rows, joints in zip(self._estimator.filters, self._rows, self._joints, strict=True):
            beyond = np.abs(change[rows]) > np.abs(f.mapping.jacobian(f.theta)) @ most[joints]
            if beyond.sum() <= max(1, np.isfinite(change[rows]).sum() // FEW):
                out[rows[beyond]] = True
        return out

    def _motion(self, change: Array) -> Array:
        """Motion (J,) of the joints that a change of lengths (M,) [m] implies, to first order [rad]."""
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
    """Least and greatest length (M, 2) of each tendon within the joint ranges, and a margin [m]."""
    limits = mapping.limits
    corners = np.array(list(product(*limits))) if len(limits) <= MOST_CORNERS else limits.T
    at = np.vstack([random_postures(limits, POSTURES), corners])
    lengths = np.array([mapping.lengths(theta) for theta in at])
    least, most = lengths.min(axis=0), lengths.max(axis=0)
    margin = BEYOND * (most - least) + ROOM
    return np.column_stack([least - margin, most + margin])
