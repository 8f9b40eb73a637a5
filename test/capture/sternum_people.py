"""People whose sternum is estimated."""

from __future__ import annotations

import numpy as np

POINTS = ("l_hip", "r_hip", "l_shoulder", "r_shoulder", "sternum")


def of(points):
    return [points.point(name) for name in POINTS]


def distance(points, path):
    return np.linalg.norm(points.point("sternum") - path, axis=1)
