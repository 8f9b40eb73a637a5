"""What measured lengths are compared with: the lengths themselves, eq. (2), or their changes, eqs (11) and (12)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from humanoid_control.tendons.filters.curvature import squared_curvature
from humanoid_control.tendons.filters.filter_settings import FilterSettings
from humanoid_control.tendons.filters.increments import bent
from humanoid_control.tendons.mappings.mapping import JointMuscleMapping

if TYPE_CHECKING:
    from humanoid_control.tendons.filters.group_filter import GroupFilter


class Observation:
    """One way to observe D angles by M lengths.

    Attributes:
        moments: how often the state has the angles. H: (M, n) Jacobian by the state. nu: (M,) innovation [m].
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
        self.H = np.zeros((m, self.states(d, m)))
        self.r = np.full(m, settings.length_noise**2 * (1.0 if settings.observation == "absolute" else 2.0))
        self.R = self.r.copy()

    def states(self, d: int, m: int) -> int:
        """Size of the state for D angles and M lengths."""
        return self.moments * d

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
