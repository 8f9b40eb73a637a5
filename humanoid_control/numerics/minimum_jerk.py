"""Minimum-jerk profile: from rest to rest with no velocity and no acceleration at either end (Flash and Hogan 1985)."""

from __future__ import annotations

from typing import TypeVar

import numpy as np

PEAK_SPEED = 1.875  # of the profile, half way: as a multiple of the mean speed
PEAK_ACCELERATION = 5.7735  # 10 / sqrt(3), of a profile of length 1 in time 1

Share = TypeVar("Share", float, np.ndarray)


def minimum_jerk(s: Share) -> Share:
    """Share of a path that is covered after a share s of its time, s in 0..1: 10 s^3 - 15 s^4 + 6 s^5."""
    return s * s * s * (10 + s * (6 * s - 15))
