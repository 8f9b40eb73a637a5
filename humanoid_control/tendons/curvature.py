"""How much the lengths of a mapping bend: what a linearised filter neglects."""

from __future__ import annotations

import numpy as np

from humanoid_control.tendons.mapping import Array, JointMuscleMapping

_SAMPLES = 8


def typical_curvature(mapping: JointMuscleMapping) -> Array:
    """(M,) root mean square of the second derivative of each length along random directions [m/rad^2]."""
    d = len(mapping.joint_names)
    middle, half = mapping.limits.mean(axis=1), np.ptp(mapping.limits, axis=1) / 2
    rng = np.random.default_rng(0)
    out = np.zeros(len(mapping.muscle_names))
    for _ in range(_SAMPLES):
        v = rng.standard_normal(d)
        theta = middle + 0.7 * half * rng.uniform(-1, 1, d)
        slope = mapping.jacobian_directional(theta, v / np.sqrt(v @ v))
        out += np.einsum("md,md->m", slope, slope) / _SAMPLES
    return np.sqrt(out)
