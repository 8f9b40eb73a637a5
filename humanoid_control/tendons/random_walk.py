"""Random walks of joint angles within their limits: the motion of the source's simulations."""

from __future__ import annotations

import numpy as np

from humanoid_control.errors import ConfigError
from humanoid_control.tendons.mappings.mapping import Array

_KEPT = 0.9  # of the velocity, from step to step


def random_walk(limits: Array, start: Array, steps: int, sigma: float, seed: int = 0) -> Array:
    """Angles (steps + 1, D) [rad] that begin at start (D,) and are turned back at their limits (D, 2).

    The law is not in the source. The change v of each angle in a step follows v <- 0.9 v + sqrt(1 - 0.81) sigma xi
    with xi normal, so that its standard deviation is sigma [rad].

    Raises:
        ConfigError: the start is not within the limits, or sigma is negative or as large as half a range.
    """
    limits, start = np.asarray(limits, float), np.asarray(start, float)
    low, high = limits.T
    if start.shape != low.shape or not ((low <= start) & (start <= high)).all():
        raise ConfigError(f"random walk: start {np.round(start, 3).tolist()} is not within the joint limits")
    if not 0 <= sigma < 0.1 * (high - low).min():
        raise ConfigError(f"random walk: sigma {sigma} rad must be from 0 to a tenth of the smallest range of a joint")
    rng = np.random.default_rng(seed)
    q, v = start.copy(), np.zeros(len(start))
    out = np.empty((steps + 1, len(start)))
    out[0] = q
    for k in range(1, steps + 1):
        v = _KEPT * v + np.sqrt(1.0 - _KEPT**2) * sigma * rng.standard_normal(len(v))
        q = q + v
        beyond = np.where(q < low, low - q, np.where(q > high, high - q, 0.0))
        q = np.clip(q + 2.0 * beyond, low, high)
        v = np.where(beyond != 0.0, -v, v)
        out[k] = q
    return out
