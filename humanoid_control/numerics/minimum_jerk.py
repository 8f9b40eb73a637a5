"""Minimum-jerk profile from rest to rest, with zero acceleration at both ends (Flash and Hogan 1985)."""

from __future__ import annotations

from typing import TypeVar

import numpy as np

PEAK_SPEED = 1.875  # at half time, relative to the mean speed
PEAK_ACCELERATION = 5.7735  # 10 / sqrt(3), for unit length and time

Share = TypeVar("Share", float, np.ndarray)


def minimum_jerk(s: Share) -> Share:
    """Return the share of a path after the share s of its time: 10 s^3 - 15 s^4 + 6 s^5."""
    return s * s * s * (10 + s * (6 * s - 15))
