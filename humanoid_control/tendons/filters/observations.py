"""What measured lengths are compared with: the lengths themselves, eq. (2), or their changes, eqs (11) and (12)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from humanoid_control.tendons.filters.curvature import squared_curvature
from humanoid_control.tendons.filters.filter_settings import FilterSettings
from humanoid_control.tendons.filters.increments import bent
from humanoid_control.tendons.filters.prediction import squared_pseudo_inverse
from humanoid_control.tendons.filters.two_moments import compare_moments
from humanoid_control.tendons.mappings.mapping import JointMuscleMapping

if TYPE_CHECKING:
    from humanoid_control.tendons.filters.group_filter import GroupFilter


# By how many deviations moment arms must have changed to tell anything: r3 compares ten times as often as r2, and
# always with the same lengths.
_CLEAR = {"r2": 2.0, "r3": 3.0}


class Observation:
    """One way to observe D angles by M lengths.

    Attributes:
        moments: how often the state has the angles. H: (M, moments * D) Jacobian. nu: (M,) innovation [m].
        R: (M,) variance, of what a linear update neglects too, so that weights and gate are right far from the truth as
            well [m^2]. lengths: (M,) that the angles would have [m]; by changes alone only their changes count.
        curvature: (M, D, D) mean squares of the second derivatives of the lengths [m^2/rad^4].
    """

    moments = 1

    def __init__(self, mapping: JointMuscleMapping, settings: FilterSettings) -> None:
        m, d = len(mapping.muscle_names), len(mapping.joint_names)
        self.mapping, self.settings = mapping, settings
        self.lengths, self.nu = np.zeros(m), np.zeros(m)
        self.curvature = squared_curvature(mapping)
        self.H = np.zeros((m, self.moments * d))
        self.r = np.full(m, settings.length_noise**2 * (1.0 if settings.observation == "absolute" else 2.0))
        self.R = self.r.copy()

    def restart(self, f: GroupFilter) -> None:
        """The filter was set to other angles."""

    def predicted(self, f: GroupFilter) -> None:
        """The filter has moved its angles by `f.delta` for changes `f.dz` of the lengths, from where they had f.G."""

    def compare(self, f: GroupFilter) -> bool:
        """Fill H, nu and R at the predicted angles; False while there is nothing to compare with."""
        raise NotImplementedError

    def close(self, f: GroupFilter) -> None:
        """The filter has updated its angles."""


class Lengths(Observation):
    """z = f(theta), eq. (2)."""

    def compare(self, f: GroupFilter) -> bool:
        """As the interface says."""
        self.mapping.evaluate_into(f.theta, self.lengths, self.H)
        np.subtract(f.measured, self.lengths, out=self.nu)
        bent(self.curvature, f.variance, f.variance, 0.5, self.r, self.R)
        return True


class Steps(Observation):
    """Changes in one step: as printed, or by the differentiated mapping.

    As printed dz = G dtheta, eq. (12), is true of any prediction by the same tendons: dead reckoning. With the state in
    G, dz = G(theta) dtheta, the change of the moment arms tells the angles.
    """

    def predicted(self, f: GroupFilter) -> None:
        """As the interface says; the Jacobian belongs to the estimate before the step, which is at hand here."""
        np.subtract(f.dz, f.G @ f.delta, out=self.nu)
        f.asked *= f.use  # a change that contradicted the others is no measurement either
        if self.settings.observation == "literal":
            self.H[:] = f.G
        else:
            self.mapping.directional_into(f.x - f.delta, f.delta, self.H)
            bent(self.curvature, f.variance, f.delta**2, 1.0, self.r, self.R)

    def compare(self, f: GroupFilter) -> bool:
        """As the interface says."""
        return f.since >= 1


class Moments(Observation):
    """Changes since an earlier moment whose angles are in the state too: some steps ago (r2) or at power-on (r3)."""

    moments = 2

    def __init__(self, mapping: JointMuscleMapping, settings: FilterSettings) -> None:
        super().__init__(mapping, settings)
        m, d = len(mapping.muscle_names), len(mapping.joint_names)
        self._clear = _CLEAR[settings.observation]
        self._since_start = settings.observation == "r3"
        self._G, self._before, self._f = np.zeros((m, d)), np.zeros((m, d)), np.zeros(m)
        self._z = np.full(m, np.nan)
        self._A, self._B, self._L = np.zeros((d, d)), np.zeros((d, d)), np.zeros((d, d))

    def restart(self, f: GroupFilter) -> None:
        """The angles now become those of the earlier moment, and so do the lengths if there are any yet."""
        d = f.d
        f.x[d:] = f.x[:d]
        f.P[:] = np.tile(f.P[:d, :d], (2, 2))
        self.mapping.evaluate_into(f.x[d:], self._f, self._before)
        self._z[:] = f.now

    def compare(self, f: GroupFilter) -> bool:
        """As the interface says."""
        if f.since == 0:  # the first lengths: nothing to compare with yet
            self._z[:] = f.now
        if f.since < (1 if self._since_start else self.settings.every):
            return False
        d = f.d
        self.mapping.evaluate_into(f.x[:d], self.lengths, self._G)
        if self._since_start:  # the angles at power-on are corrected with every update
            self.mapping.evaluate_into(f.x[d:], self._f, self._before)
        squared_pseudo_inverse(self._G, f.use, self.settings.cutoff, self._A, self._B, self._L)
        compare_moments(f.x, f.P, self._G, self._before, self._B, self.curvature, self.r, self._clear, self.H, self.R)
        np.subtract(f.now, self._z, out=self.nu)
        self.nu -= self.lengths
        self.nu += self._f
        return True

    def close(self, f: GroupFilter) -> None:
        """Where it is time, the estimate becomes the earlier moment that r2 compares with."""
        if not self._since_start and f.since >= self.settings.every:
            self.restart(f)
            f.since = 0


def observation_of(mapping: JointMuscleMapping, settings: FilterSettings) -> Observation:
    """The observation that the settings name."""
    kinds: dict[str, type[Observation]] = {"absolute": Lengths, "r2": Moments, "r3": Moments}
    return kinds.get(settings.observation, Steps)(mapping, settings)
