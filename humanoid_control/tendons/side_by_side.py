"""Two estimators on the same lengths, one calibrated and one not: their difference is the measure of the source."""

from __future__ import annotations

import numpy as np

from humanoid_control.errors import ConfigError
from humanoid_control.tendons.mappings.mapping import Array
from humanoid_control.tendons.tendon_estimator import TendonEstimator


class SideBySide:
    """Runs a reference and a second estimator together (section V-B, "JAEs-error").

    Attributes:
        error: (J,) second minus reference after the last step, in the order of the reference's joints [rad].
    """

    def __init__(self, reference: TendonEstimator, other: TendonEstimator) -> None:
        if set(reference.joint_names) != set(other.joint_names) or reference.muscle_names != other.muscle_names:
            raise ConfigError("side by side: both estimators need the same joints and tendons, in the same order")
        self.reference, self.other = reference, other
        self._order = np.array([other.joint_names.index(j) for j in reference.joint_names])
        self.error = np.zeros(len(reference.joint_names))

    def step(self, lengths: Array, tensions: Array | None = None) -> Array:
        """One step of both with lengths (M,) [m]; the reference's angles (J,) [rad]."""
        theta = self.reference.step(lengths, tensions)
        self.error = self.other.step(lengths, tensions)[self._order] - theta
        return theta
