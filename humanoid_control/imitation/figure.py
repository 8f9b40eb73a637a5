"""The dancer as a stick figure beside the robot."""

from __future__ import annotations

import numpy as np

from humanoid_control.imitation.scaling import Targets

BONES = (
    ("l_hip", "r_hip"),
    ("mid_hip", "sternum"),
    ("sternum", "l_shoulder"),
    ("sternum", "r_shoulder"),
    ("l_shoulder", "l_elbow"),
    ("l_elbow", "l_wrist"),
    ("r_shoulder", "r_elbow"),
    ("r_elbow", "r_wrist"),
    ("sternum", "head"),
    ("l_hip", "l_knee"),
    ("l_knee", "l_ankle"),
    ("l_ankle", "l_toe"),
    ("r_hip", "r_knee"),
    ("r_knee", "r_ankle"),
    ("r_ankle", "r_toe"),
)


class Figure:
    """Bones between the dancer's body points, moved to the side and down to the floor so that he stands beside it."""

    def __init__(self, targets: Targets, left: float) -> None:
        """Prepare.

        Args:
            targets: whose body is shown.
            left: how far to the left [m].
        """
        self.names = list(targets.body_names)
        self.bones = [b for b in BONES if all(n in self.names or n == "mid_hip" for n in b)]
        feet = [k for k, n in enumerate(self.names) if n.split("_")[-1] in ("ankle", "toe", "heel")]
        lowest = np.nanquantile(targets.body[:, feet, 2], 0.01) - 0.03 if feet else 0.0
        self.shift = np.array([0.0, left, -float(lowest)])

    def segments(self, body: np.ndarray) -> np.ndarray:
        """End points (2 B, 3) of the bones for body points (P, 3); bones with a missing end are left out."""
        p = {name: body[k] for k, name in enumerate(self.names)}
        p["mid_hip"] = (p["l_hip"] + p["r_hip"]) / 2
        rows = [p[n] for a, b in self.bones if np.isfinite([p[a], p[b]]).all() for n in (a, b)]
        return np.array(rows).reshape(-1, 3) + self.shift
