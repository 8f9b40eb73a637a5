"""How much the lengths of a mapping bend: what a linearised filter neglects."""

from __future__ import annotations

import numpy as np

from humanoid_control.tendons.mappings.mapping import Array, JointMuscleMapping

_SAMPLES = 8  # postures
_SHARE = 0.7  # of each range


def squared_curvature(mapping: JointMuscleMapping) -> Array:
    """(M, D, D) mean square over postures of each second derivative of each length [m^2/rad^4]."""
    d = len(mapping.joint_names)
    middle, half = mapping.limits.mean(axis=1), np.ptp(mapping.limits, axis=1) / 2
    rng = np.random.default_rng(0)
    out = np.zeros((len(mapping.muscle_names), d, d))
    for _ in range(_SAMPLES):
        theta = middle + _SHARE * half * rng.uniform(-1, 1, d)
        for e, along in enumerate(np.eye(d)):
            out[:, :, e] += mapping.jacobian_directional(theta, along) ** 2 / _SAMPLES
    return out
