"""Tendons on round pulleys: moment arms that never change."""

from __future__ import annotations

import numpy as np

from humanoid_control.tendons.mappings.mapping import JointMuscleMapping


class Pulleys(JointMuscleMapping):
    """Ten tendons over four joints."""

    arms = np.random.default_rng(0).uniform(-0.03, 0.03, (10, 4))

    def evaluate_into(self, theta, lengths, jacobian):
        lengths[:] = self.arms @ theta
        jacobian[:] = self.arms

    def directional_into(self, theta, v, out):
        out[:] = 0.0
