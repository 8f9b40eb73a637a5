"""Joint-angle estimator of a tendon-driven body: one filter per group, with lent angles (Kawaharazuka 2018)."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence

import numpy as np

from humanoid_control.errors import ConfigError
from humanoid_control.tendons.estimator.diagnosis import (
    FaultDetector,
    Observability,
    observability,
    relative_observability,
)
from humanoid_control.tendons.estimator.group_filter import GroupFilter
from humanoid_control.tendons.estimator.plausibility import TendonPlausibility
from humanoid_control.tendons.estimator.settings import EstimatorSettings
from humanoid_control.tendons.mappings.mapping import Array, Ints, JointMuscleMapping
from humanoid_control.tendons.tendon import TendonGroup, joint_owners

_EVERY, _KEPT = 10, 50  # steps between stored postures, and their number


class TendonEstimator:
    """Estimates each joint once, in the group that owns it.

    In a step all groups predict (7), exchange borrowed angles, update, and exchange again (8)-(10). The order of groups
    is irrelevant.

    Attributes:
        joint_names: (J,) in group order.
        muscle_names: (M,) each once.
        filters: one per group.
        faults: excluded tendons.
        theta: (J,) angles [rad].
        deviation: (J,) standard deviations [rad].
        problem: message if the last sample was refused or implausible.
    """

    def __init__(
        self,
        groups: Sequence[TendonGroup],
        mappings: Mapping[str, JointMuscleMapping],
        settings: EstimatorSettings | None = None,
    ) -> None:
        owner = joint_owners(groups)
        self.settings = settings or EstimatorSettings()
        missing = [g.name for g in groups if g.name not in mappings]
        if missing:
            raise ConfigError(
                f"tendon estimator: no mapping for group '{missing[0]}'; available: {', '.join(mappings)}"
            )
        self.groups = tuple(groups)
        self.filters = [GroupFilter(g, mappings[g.name], self.settings) for g in groups]
        self.joint_names = tuple(owner)
        self.muscle_names = tuple(dict.fromkeys(m for g in groups for m in g.tendons))
        self._rows = [np.array([self.muscle_names.index(m) for m in g.tendons]) for g in groups]
        self._own = [np.array([self.joint_names.index(j) for j in g.own]) for g in groups]
        number = {g.name: k for k, g in enumerate(groups)}
        # (borrower, indices, owner, indices), one for each owner of a borrowing group
        self._loans: list[tuple[GroupFilter, Ints, GroupFilter, Ints]] = []
        for k, g in enumerate(groups if self.settings.share else ()):
            for name in dict.fromkeys(owner[j] for j in g.borrow):
                joints = [j for j in g.borrow if owner[j] == name]
                mine, lender = self.filters[k], self.filters[number[name]]
                self._loans.append((mine, mine.positions(joints), lender, lender.positions(joints)))
        self.faults = FaultDetector(self.muscle_names, self.settings.length_noise, self.settings.slack_tension)
        self.faults.relative = self.settings.observation != "absolute"
        self._steps = 0
        by_steps = self.settings.gate > 0 and self.settings.largest_step > 0
        placed = self.settings.observation == "absolute"
        self._judge = TendonPlausibility(self, placed=placed) if by_steps else None
        self.problem = ""
        self._passed: list[deque[Array]] = [deque(maxlen=_KEPT) for _ in groups]
        self.theta = np.zeros(len(self.joint_names))
        self.deviation = np.zeros(len(self.joint_names))
        self.reset()

    def reset(self, angles: Mapping[str, float] | None = None) -> None:
        """Restart from angles by name [rad]; others start at 0 within their limits.

        Raises:
            ConfigError: if a joint is not estimated or an angle is not finite.
        """
        angles = dict(angles or {})
        for name, value in angles.items():
            if name not in self.joint_names or not np.isfinite(value):
                known = ", ".join(self.joint_names)
                raise ConfigError(f"tendon estimator: start angle {value} of '{name}'; give finite angles of {known}")
        for f in self.filters:
            low, high = f.mapping.limits.T
            middle = np.clip(0.0, low, high)
            f.reset(np.array([angles.get(j, m) for j, m in zip(f.group.joints, middle, strict=True)]))
        self.faults.reset()
        self._steps, self.problem = 0, ""
        if self._judge is not None:
            self._judge.reset()
        for passed in self._passed:
            passed.clear()
        self._exchange()
        self._collect()

    def zero(self, lengths: Array, angles: Mapping[str, float] | None = None) -> None:
        """Calibrate: lengths (M,) [m] belong to the given angles, else to the estimate."""
        for f, rows in zip(self.filters, self._rows, strict=True):
            theta = [dict(angles or {}).get(j, x) for j, x in zip(f.group.joints, f.theta, strict=True)]
            f.zero(lengths[rows], np.array(theta))

    def step(self, lengths: Array, tensions: Array | None = None) -> Array:
        """Process lengths (M,) [m], NaN if missing, and tensions (M,) [N]; return angles (J,) [rad].

        Raises:
            ConfigError: if the number of lengths is wrong.
        """
        if lengths.shape != (len(self.muscle_names),):
            raise ConfigError(f"tendon estimator: expected {len(self.muscle_names)} lengths, got shape {lengths.shape}")
        if self._judge is not None:
            used = self._judge.check(self._steps, lengths)
            self.problem = self._judge.problem
            if not used:
                lengths = np.full(len(lengths), np.nan)  # a refused sample is one without lengths
        use = self.faults.usable(lengths, tensions)
        for f, rows in zip(self.filters, self._rows, strict=True):
            f.predict(lengths[rows], use[rows])
        self._exchange()
        for f in self.filters:
            f.correct()
        self._exchange()
        for f, rows in zip(self.filters, self._rows, strict=True):
            if f.count:
                self.faults.update(rows, f.comparison, self.settings.gate)
                excluded = self.faults.excluded_of(rows)
                f.contradicted = excluded > 1
                if f.recovered:
                    self.faults.readmit(rows)
                elif excluded > max(1, len(rows) // 2):  # more faults than likely: the estimate is wrong
                    self.faults.readmit(rows)
                    f.restart()
            f.close()
        self._collect()
        self._steps += 1
        if self._steps % _EVERY == 0:
            for passed, f in zip(self._passed, self.filters, strict=True):
                passed.append(f.theta.copy())
        return self.theta.copy()

    def observability(self) -> dict[str, Observability]:
        """Return the observability of each group's own joints; too slow for each step.

        Relative observations use the recent motion.
        """
        return {f.group.name: self.observability_of(k) for k, f in enumerate(self.filters)}

    def observability_of(self, group: int, postures: int = _KEPT) -> Observability:
        """Return the observability of one group, from at most `postures` recent postures."""
        f, passed = self.filters[group], self._passed[group]
        own, names = len(f.group.own), f.group.own
        if self.settings.observation == "absolute":
            return observability(f.mapping.jacobian(f.theta)[:, :own], names)
        if len(passed) < 2:
            return observability(np.zeros((own, own)), names)
        path = np.array(passed)
        return relative_observability(f.mapping, path[:: max(1, -(-len(path) // postures))], own=own)

    def _exchange(self) -> None:
        for borrower, at, lender, there in self._loans:
            borrower.borrow(at, lender, there)

    def _collect(self) -> None:
        for f, own in zip(self.filters, self._own, strict=True):
            self.theta[own] = f.x[: len(own)]
            self.deviation[own] = np.sqrt(f.P.diagonal()[: len(own)])

    @property
    def nis(self) -> tuple[float, int]:
        """NIS of all groups in the last step, and its degrees of freedom."""
        return sum(f.nis for f in self.filters), sum(f.count for f in self.filters)


class EstimatorComparison:
    """Reference and second estimator on the same lengths: the JAEs-error (Kawaharazuka 2018, V-B).

    Attributes:
        error: (J,) second minus reference [rad].
    """

    def __init__(self, reference: TendonEstimator, other: TendonEstimator) -> None:
        if set(reference.joint_names) != set(other.joint_names) or reference.muscle_names != other.muscle_names:
            raise ConfigError("comparison: both estimators need the same joints and tendons, in the same order")
        self.reference, self.other = reference, other
        self._order = np.array([other.joint_names.index(j) for j in reference.joint_names])
        self.error = np.zeros(len(reference.joint_names))

    def step(self, lengths: Array, tensions: Array | None = None) -> Array:
        """Step both estimators; return the reference's angles (J,) [rad]."""
        theta = self.reference.step(lengths, tensions)
        self.error = self.other.step(lengths, tensions)[self._order] - theta
        return theta
