"""Segments of the body that suddenly have another length: their markers are mixed up, so their direction is held."""

from __future__ import annotations

import numpy as np

from humanoid_control.capture import BodyPoints

CHAIN = (
    ("spine", "mid_hip", "sternum"),
    ("l clavicle", "sternum", "l_shoulder"),
    ("r clavicle", "sternum", "r_shoulder"),
    ("l upper arm", "l_shoulder", "l_elbow"),
    ("r upper arm", "r_shoulder", "r_elbow"),
    ("l lower arm", "l_elbow", "l_wrist"),
    ("r lower arm", "r_elbow", "r_wrist"),
)
SHORTEST, LONGEST = 0.5, 1.7  # of the length at the calibration; soft tissue and joint centres move by less


class SegmentGuard:
    """Compares the segments of each frame with those of the calibration.

    Attributes:
        problems: one sentence for each segment that was held in the last frame.
    """

    def __init__(self, calibration: BodyPoints) -> None:
        self._index = {name: k for k, name in enumerate(calibration.names)}
        p = calibration.in_pelvis()
        self._good = np.median(p, axis=0)
        self._width = float(np.median(np.linalg.norm(self._hips(p), axis=-1)))
        self._length = {n: float(np.median(np.linalg.norm(self._segment(p, a, b), axis=-1))) for n, a, b in CHAIN}
        self.problems: list[str] = []

    def _hips(self, p: np.ndarray) -> np.ndarray:
        return p[..., self._index["l_hip"], :] - p[..., self._index["r_hip"], :]

    def _segment(self, p: np.ndarray, a: str, b: str) -> np.ndarray:
        end = p[..., self._index[b], :]
        return end if a == "mid_hip" else end - p[..., self._index[a], :]

    def check(self, p: np.ndarray) -> np.ndarray:
        """Body points (P, 3) [m], pelvis frame; a segment of impossible length as it was when it was last possible.

        Where the hips are impossible nothing can be judged, and the whole body is held.
        """
        self.problems = []
        width = float(np.linalg.norm(self._hips(p)))
        if not SHORTEST <= width / self._width <= LONGEST or not np.isfinite(p).all():
            self.problems = [f"the hips are {width:.2f} m apart, at the calibration {self._width:.2f} m"]
            return self._good
        out = p.copy()
        for name, a, b in CHAIN:
            length = float(np.linalg.norm(self._segment(p, a, b)))
            if not SHORTEST <= length / self._length[name] <= LONGEST:
                start = np.zeros(3) if a == "mid_hip" else out[self._index[a]]
                out[self._index[b]] = start + self._segment(self._good, a, b)
                usual = self._length[name]
                self.problems.append(f"the {name} is {length:.2f} m long, at the calibration {usual:.2f} m")
            elif a != "mid_hip":  # carried along where the segment before it is held
                out[self._index[b]] += out[self._index[a]] - p[self._index[a]]
        self._good = out
        return out
