"""Player of the targets of a clip: lead-in, play and pause, seek, speed, loop; and the dancer as a stick figure."""

from __future__ import annotations

import math

import numpy as np

from humanoid_control.numerics.minimum_jerk import minimum_jerk
from humanoid_control.retargeting.scaling import Targets


class ClipPlayer:
    """The targets at the present moment of a playing clip.

    It begins with a lead-in, in which the points move from where they are on the robot to the first frame; where it
    loops, the last frame moves over into the first in the same way, so that nothing ever jumps.

    Attributes:
        time: position in the clip [s], 0 .. duration.
        playing: False while paused.
        finished: a clip that does not loop has reached its end.
    """

    def __init__(
        self, targets: Targets, rest: np.ndarray, lead_in: float = 1.5, loop: bool = True, speed: float = 1.0
    ) -> None:
        """Make a player.

        Args:
            targets: of the clip.
            rest: (7, 3) where the points are before the clip begins [m].
            lead_in: time for moving to the first frame, and from the last to the first when looping [s].
            loop: begin again at the end.
            speed: 1 is the speed of the clip.
        """
        self.targets, self.lead_in, self.loop, self.speed = targets, lead_in, loop, speed
        self.playing = True
        self.duration = targets.duration
        self._rest = np.array(rest)
        self.restart()

    def begin_at(self, points: np.ndarray) -> None:
        """Begin with a lead-in from these points (7, 3), playing or paused as it was."""
        playing, self._rest = self.playing, np.array(points)
        self.restart()
        self.playing = playing

    def restart(self) -> None:
        """Back to the lead-in."""
        self.time, self.playing, self.finished = 0.0, True, False
        self._from, self._to, self._blend = self._rest, self.targets.positions[0], 0.0

    def seek(self, time: float) -> None:
        """Go to a place in the clip [s], by moving over to it from where the points are now; NaN is passed over."""
        if math.isnan(time):
            return
        self._from = self.points()
        self.time, self.finished = float(np.clip(time, 0.0, self.duration)), False
        self._to, self._blend = self._sample(self.targets.positions), 0.0

    def advance(self, dt: float) -> None:
        """Advance the time [s]; not for a negative or NaN dt."""
        dt = max(0.0, dt)  # 0 where dt is NaN
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
        """The seven targets (7, 3) now [m]."""
        if self._blend < 1.0:
            s = minimum_jerk(self._blend)
            return (1 - s) * self._from + s * self._to
        return self._sample(self.targets.positions)

    def body(self) -> np.ndarray:
        """The dancer's body points (P, 3) now [m]."""
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
    """Bones between the dancer's body points, moved aside and to the floor, so that he stands next to the robot."""

    def __init__(self, targets: Targets, left: float) -> None:
        """Create the figure.

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
