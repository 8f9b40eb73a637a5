"""Clip playback: lead-in, pause, seek, speed, loop; stick figure of the person."""

from __future__ import annotations

import math

import numpy as np

from humanoid_control.numerics.minimum_jerk import minimum_jerk
from humanoid_control.retargeting.scaling import Targets


class ClipPlayer:
    """Current targets of a playing clip.

    A lead-in blends from the robot's points to the first frame. Looping blends from the last frame to the first.

    Attributes:
        finished: whether a clip without loop has ended.
    """

    def __init__(
        self, targets: Targets, rest: np.ndarray, lead_in: float = 1.5, loop: bool = True, speed: float = 1.0
    ) -> None:
        """Start the lead-in.

        Args:
            lead_in: blend time to the first frame, also when looping [s].
        """
        self.targets, self.lead_in, self.loop, self.speed = targets, lead_in, loop, speed
        self.playing = True
        self.duration = targets.duration
        self._rest = np.array(rest)
        self.restart()

    def begin_at(self, points: np.ndarray) -> None:
        """Restart with a lead-in from these points (7, 3), keeping play or pause."""
        playing, self._rest = self.playing, np.array(points)
        self.restart()
        self.playing = playing

    def restart(self) -> None:
        """Restart at the lead-in."""
        self.time, self.playing, self.finished = 0.0, True, False
        self._from, self._to, self._blend = self._rest, self.targets.positions[0], 0.0

    def seek(self, time: float) -> None:
        """Blend from the current points to a clip time [s]; NaN is ignored."""
        if math.isnan(time):
            return
        self._from = self.points()
        self.time, self.finished = float(np.clip(time, 0.0, self.duration)), False
        self._to, self._blend = self._sample(self.targets.positions), 0.0

    def advance(self, dt: float) -> None:
        """Advance the time by dt [s]; negative and NaN values count as 0."""
        dt = max(0.0, dt)  # NaN becomes 0
        if self._blend < 1.0:
            self._blend = min(1.0, self._blend + dt / self.lead_in) if self.lead_in > 0 else 1.0
            return
        if not self.playing or self.finished:
            return
        self.time += dt * self.speed
        if self.time < self.duration:
            return
        if self.loop:
            self.time = 0.0
            self._from, self._to, self._blend = self.targets.positions[-1], self.targets.positions[0], 0.0
        else:
            self.time, self.finished = self.duration, True

    def points(self) -> np.ndarray:
        """Return the current targets (7, 3) [m]."""
        if self._blend < 1.0:
            s = minimum_jerk(self._blend)
            return (1 - s) * self._from + s * self._to
        return self._sample(self.targets.positions)

    def body(self) -> np.ndarray:
        """Return the current body points (P, 3) [m]."""
        return self._sample(self.targets.body)

    def _sample(self, frames: np.ndarray) -> np.ndarray:
        x = np.clip(self.time * self.targets.rate, 0.0, len(frames) - 1.0)
        k = min(int(x), len(frames) - 2)
        return (1 - (x - k)) * frames[k] + (x - k) * frames[k + 1]


# -------- stick figure

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
    """Stick figure of the person, shifted aside and to the floor."""

    def __init__(self, targets: Targets, left: float) -> None:
        """Choose the bones that the clip shows.

        Args:
            left: shift to the left [m].
        """
        self.names = list(targets.body_names)
        self.bones = [b for b in BONES if all(n in self.names or n == "mid_hip" for n in b)]
        feet = [k for k, n in enumerate(self.names) if n.split("_")[-1] in ("ankle", "toe", "heel")]
        lowest = np.nanquantile(targets.body[:, feet, 2], 0.01) - 0.03 if feet else 0.0
        self.shift = np.array([0.0, left, -float(lowest)])

    def segments(self, body: np.ndarray) -> np.ndarray:
        """Return bone end points (2 B, 3) for body points (P, 3), without incomplete bones."""
        p = {name: body[k] for k, name in enumerate(self.names)}
        p["mid_hip"] = (p["l_hip"] + p["r_hip"]) / 2
        rows = [p[n] for a, b in self.bones if np.isfinite([p[a], p[b]]).all() for n in (a, b)]
        return np.array(rows).reshape(-1, 3) + self.shift
