"""Clip playback: lead-in, pause, seek, speed, loop; stick figure of the person."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from humanoid_control.numerics.minimum_jerk import minimum_jerk
from humanoid_control.retargeting.scaling import Targets


class Player:
    """Time of a playing clip: pause, seek, speed, loop. A transition blends to another moment of the clip.

    Attributes:
        transition: its duration [s].
        finished: whether a clip without loop has ended.
    """

    def __init__(self, duration: float, transition: float, loop: bool, speed: float) -> None:
        self.duration, self.transition, self.loop, self.speed = duration, transition, loop, speed
        self.time, self.playing, self.finished, self._blend = 0.0, True, False, 1.0

    def seek(self, time: float) -> None:
        """Blend from the current targets to a clip time [s]; NaN is ignored."""
        if math.isnan(time):
            return
        self._leave()
        self.time, self.finished, self._blend = float(np.clip(time, 0.0, self.duration)), False, 0.0
        self._arrive()

    def _leave(self) -> None:
        """Keep the current targets as the start of a transition."""
        raise NotImplementedError

    def _arrive(self) -> None:
        """Prepare the end of a transition."""
        raise NotImplementedError

    def _pass(self, dt: float) -> None:
        """Advance transition or clip by dt [s]; negative and NaN values count as 0."""
        dt = max(0.0, dt)  # NaN becomes 0
        if self._blend < 1.0:
            self._blend = min(1.0, self._blend + dt / self.transition) if self.transition > 0 else 1.0
        elif self.playing and not self.finished:
            self.time += dt * self.speed
            if self.time >= self.duration:
                self.time, self.finished = self.duration, not self.loop
                if self.loop:
                    self.seek(0.0)


class ClipPlayer(Player):
    """Current targets of a playing clip.

    A lead-in blends from the robot's points to the first frame. Looping blends from the last frame to the first.
    """

    def __init__(
        self, targets: Targets, rest: np.ndarray, lead_in: float = 1.5, loop: bool = True, speed: float = 1.0
    ) -> None:
        """Start the lead-in.

        Args:
            lead_in: blend time to the first frame, also when looping [s].
        """
        super().__init__(targets.duration, lead_in, loop, speed)
        self.targets, self._rest = targets, np.array(rest)
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

    def _leave(self) -> None:
        self._from = self.points()

    def _arrive(self) -> None:
        self._to = self._sample(self.targets.positions)

    def advance(self, dt: float) -> None:
        """Advance the time by dt [s]; negative and NaN values count as 0."""
        self._pass(dt)

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
        k, s = between_frames(self.time * self.targets.rate, len(frames))
        return (1 - s) * frames[k] + s * frames[k + 1]


def between_frames(at: float, T: int) -> tuple[int, float]:
    """Return the frame before a moment of T frames, and the share of the next one."""
    x = min(max(at, 0.0), T - 1.0)
    k = min(int(x), T - 2)
    return k, x - k


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
        return bone_ends({name: at for name, at in p.items() if np.isfinite(at).all()}, self.bones) + self.shift


def bone_ends(points: dict[str, np.ndarray], bones: Sequence[tuple[str, str]] = BONES) -> np.ndarray:
    """Return the ends (2 B, 3) of the bones with both ends in `points` (3,) [m]."""
    if {"l_hip", "r_hip"} <= set(points):
        points = points | {"mid_hip": 0.5 * (points["l_hip"] + points["r_hip"])}
    return np.array([points[n] for a, b in bones if a in points and b in points for n in (a, b)]).reshape(-1, 3)
