"""Changes of the lengths since an earlier moment whose angles are in the state too: the observations r2 and r3."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from humanoid_control.tendons.filters.filter_settings import FilterSettings
from humanoid_control.tendons.filters.observations import Observation
from humanoid_control.tendons.filters.prediction import squared_pseudo_inverse
from humanoid_control.tendons.filters.two_moments import compare_moments, moved_angles
from humanoid_control.tendons.mappings.mapping import JointMuscleMapping

if TYPE_CHECKING:
    from humanoid_control.tendons.filters.group_filter import GroupFilter

LEAST = 5.0  # a joint that moved by less than so many deviations of the noise counts as resting; noise hardly ever does
CLEAR = 2.0  # by how many deviations of what the motion is uncertain a moment arm must have changed to tell anything


class Moments(Observation):
    """Changes since some steps ago (r2): each comparison begins a new one, with the noise of both its ends for new."""

    moments = 2

    def __init__(self, mapping: JointMuscleMapping, settings: FilterSettings) -> None:
        super().__init__(mapping, settings)
        m, d = len(mapping.muscle_names), len(mapping.joint_names)
        self._variance = np.full(m, 2 * settings.length_noise**2)  # of a change: both its ends are measured [m^2]
        self._G, self._before, self._f = np.zeros((m, d)), np.zeros((m, d)), np.zeros(m)
        self._z = np.full(m, np.nan)
        self._angles, self._doubt, self._later = np.zeros(d), np.zeros(d), np.zeros((m, d))
        self._unused = np.zeros(m)
        self._A, self._B, self._L = np.zeros((d, d)), np.zeros((d, d)), np.zeros((d, d))

    def restart(self, f: GroupFilter) -> None:
        """The angles now become those of the earlier moment, and so do the lengths if there are any yet."""
        d = f.d
        f.x[d : 2 * d] = f.x[:d]
        f.P[: 2 * d, : 2 * d] = np.tile(f.P[:d, :d], (2, 2))
        self.mapping.evaluate_into(f.x[d : 2 * d], self._f, self._before)
        self._z[:] = f.now

    def compare(self, f: GroupFilter) -> bool:
        """As the interface says."""
        if f.since == 0:  # the first lengths: nothing to compare with yet
            self.restart(f)
        if f.since < self.settings.every:
            return False
        self._compare(f)
        return True

    def _compare(self, f: GroupFilter) -> None:
        """H, nu and R of the change since the earlier moment, whose lengths and Jacobian are at hand."""
        d = f.d
        self.mapping.evaluate_into(f.x[:d], self.lengths, self._G)
        squared_pseudo_inverse(self._G, f.use, self.settings.cutoff, self._A, self._B, self._L)
        count = moved_angles(
            f.x, f.P, self._B, self.curvature, self._variance, LEAST, self._angles, self._doubt
        )  # fmt: skip
        later = self._later
        if count == d:
            later = self._G
        elif count == 0:
            later = self._before
        else:
            self.mapping.evaluate_into(self._angles, self._unused, later)
        compare_moments(
            f.x, f.P, self._G, later, self._before, self._doubt, self.curvature, self.r, CLEAR, self.H, self.R
        )  # fmt: skip
        np.subtract(f.now, self._z, out=self.nu)
        self.nu -= self.lengths
        self.nu += self._f

    def close(self, f: GroupFilter) -> None:
        """Where it is time, the estimate becomes the earlier moment to compare with."""
        if f.since >= self.settings.every:
            self.restart(f)
            f.since = 0


class SincePowerOn(Moments):
    """Changes since power-on (r3), compared in every step: z - z_0 = f(theta) - f(theta_0) + n - n_0.

    The noise n_0 of the first lengths is the same in all of them. Taken for new each time it would average out, and the
    filter become too sure without end. So n_0 is in the state, as what is wrong with each first length, (M,) after the
    angles of both moments; then only n is new, and the update is exact for a linear mapping.
    """

    def __init__(self, mapping: JointMuscleMapping, settings: FilterSettings) -> None:
        super().__init__(mapping, settings)
        m, d = len(mapping.muscle_names), len(mapping.joint_names)
        self.r = np.full(m, settings.length_noise**2)
        self.H[:, 2 * d :] = -np.eye(m)

    def states(self, d: int, m: int) -> int:
        """As the interface says."""
        return 2 * d + m

    def restart(self, f: GroupFilter) -> None:
        """As the interface says: power-on is now."""
        super().restart(f)
        first = 2 * f.d
        f.x[first:] = 0.0
        f.P[first:], f.P[:, first:] = 0.0, 0.0
        f.P.flat[first * (f.P.shape[1] + 1) :: f.P.shape[1] + 1] = self.settings.length_noise**2

    def compare(self, f: GroupFilter) -> bool:
        """As the interface says."""
        d = f.d
        if f.since == 0:
            self.restart(f)
        if f.since < 1:
            return False
        # the angles at power-on are corrected with every update
        self.mapping.evaluate_into(f.x[d : 2 * d], self._f, self._before)
        self._compare(f)
        self.nu += f.x[2 * d :]
        return True

    def close(self, f: GroupFilter) -> None:
        """Power-on stays the earlier moment."""
