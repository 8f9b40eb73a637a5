"""Local pace of a clip: slower where its frames require it, else unchanged.

`slowed` turns the required paces of frames into a smooth pace over the clip, for the feasibility pass and stretched
clips.

`Stretch` shows a trajectory at such a pace. Each slowed part lasts a whole number of frames longer, so all other
frames are those of the clip, bit by bit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import pinocchio as pin
from scipy.interpolate import CubicSpline
from scipy.ndimage import minimum_filter1d

from humanoid_control.performing.source_motion import continuous_quaternions, smoothed, yaw_of
from humanoid_control.retargeting import WholeBodyTrajectory
from humanoid_control.retargeting.scaling import over_frames
from humanoid_control.retargeting.trajectory import forward_differences
from humanoid_control.retargeting.whole_body.contacts import runs
from humanoid_control.retargeting.whole_body.scaling import WholeBodyTargets
from humanoid_control.robots import Robot

PACE_TORQUE = 0.85  # of a limit, above which the clip is slowed: the rest is for feedback
PACE_STEP = 0.8  # pace where a contact wrench is missing, once more per round
PACE_WINDOW, PACE_CUTOFF = 0.25, 1.5  # [s] window around a frame; [Hz]
ONE = 0.998  # pace above which a frame keeps its own time
EXACT = 1e-6  # frames: rounding of clip times that are whole frames
Shown = TypeVar("Shown", WholeBodyTrajectory, WholeBodyTargets)


def slowed(pace: np.ndarray, required: np.ndarray, frames: np.ndarray, rate: float) -> np.ndarray:
    """Return a pace (P,) of the clip, slowed to the required paces (T,) of the frames.

    Args:
        frames: part of the clip, of P, that each frame shows (T,).
        rate: frame rate of the parts [Hz].
    """
    own = np.ones(len(pace))
    np.minimum.at(own, frames, required)  # the slowest of all frames that show the same part
    own = minimum_filter1d(own, 2 * round(PACE_WINDOW * rate) + 1, mode="nearest")
    return np.clip(np.minimum(smoothed(own * pace, PACE_CUTOFF, rate), pace), 0.0, 1.0)


def pace_for_torque(share: np.ndarray) -> np.ndarray:
    """Return paces for torque shares.

    Inertial forces grow with the square of the pace; weight does not, so slowing does not reduce a standing torque.
    """
    return np.asarray(np.sqrt(PACE_TORQUE / np.maximum(share, PACE_TORQUE)))


def pace_for_speed(speed: np.ndarray, limit: float) -> np.ndarray:
    """Return paces at which speeds are at most the limit."""
    return np.asarray(limit / np.maximum(np.abs(speed), limit))


def yaw_rate(quaternion: np.ndarray, rate: float) -> np.ndarray:
    """Return the yaw rate (T,) [rad/s] of quaternions (T, 4) x y z w, by central differences."""
    R = np.array([pin.Quaternion(x).toRotationMatrix() for x in quaternion])
    return np.asarray(np.gradient(np.unwrap(yaw_of(R))) * rate)


@dataclass(frozen=True)
class Stretch:
    """Clip times of the shown frames.

    Attributes:
        pace: relative speed of the clip's frames (P,); 1: unchanged.
        clock: clip frames that are shown (T,); whole numbers outside of slowed parts.
    """

    pace: np.ndarray
    clock: np.ndarray

    @classmethod
    def of(cls, pace: np.ndarray) -> Stretch:
        """Return the times of a pace, slowed a little more until each slowed part lasts whole frames."""
        pace = np.where(pace > ONE, 1.0, pace)
        more, weight = 1.0 / pace - 1.0, np.ones(len(pace))  # frames that each frame lasts longer, by trapezoids
        weight[[0, -1]] = 0.5
        for a, b in runs(pace < 1.0):
            longer = float(more[a:b] @ weight[a:b])
            more[a:b] *= np.ceil(longer - EXACT) / longer
        spent = np.concatenate([[0.0], np.cumsum(1.0 + 0.5 * (more[1:] + more[:-1]))])
        shown = np.arange(round(spent[-1]) + 1)
        # between two frames the time a frame lasts is linear, so the time spent is a parabola, which is inverted
        k = np.clip(np.searchsorted(spent, shown, "right") - 1, 0, len(pace) - 2)
        d, lasts = shown - spent[k], 1.0 + more[k]
        clock = k + 2.0 * d / (lasts + np.sqrt(lasts**2 + 2.0 * (more[k + 1] - more[k]) * d))
        whole = np.round(clock)
        return cls(1.0 / (1.0 + more), np.where(np.abs(clock - whole) < EXACT, whole, clock))

    @property
    def frames(self) -> np.ndarray:
        """Nearest clip frames (T,)."""
        return np.round(self.clock).astype(int)

    @property
    def slowed(self) -> bool:
        """Whether any part is slowed."""
        return bool((self.pace < 1.0).any())

    def trajectory(self, t: WholeBodyTrajectory, robot: Robot) -> WholeBodyTrajectory:
        """Return a trajectory (P frames) at the pace: cubic between frames, in joint ranges if the clip is."""
        if not self.slowed:
            return t
        q = t.q().copy()
        q[:, 3:7] = continuous_quaternions(q[:, 3:7])
        between = CubicSpline(np.arange(len(q)), q, axis=0)(self.clock)
        between[:, 3:7] /= np.linalg.norm(between[:, 3:7], axis=1, keepdims=True)
        low, high = np.minimum(robot.lower, t.positions.min(axis=0)), np.maximum(robot.upper, t.positions.max(axis=0))
        between[:, robot.iq :] = np.clip(between[:, robot.iq :], low, high)
        exact = self.clock == self.frames
        between[exact] = t.q()[self.frames[exact]]
        shown = self._shown(t)
        return replace(
            shown,
            positions=between[:, robot.iq :],
            velocities=forward_differences(between[:, robot.iq :], t.rate),
            root_position=between[:, :3],
            root_quaternion=between[:, 3:7],
            clearance=np.minimum(t.clearance[np.floor(self.clock).astype(int)], t.clearance[self._next]),
        )

    def targets(self, targets: WholeBodyTargets) -> WholeBodyTargets:
        """Return targets (P frames) at the pace: points between frames, all else of the nearest frame."""
        return self._shown(targets) if self.slowed else targets

    @property
    def _next(self) -> np.ndarray:
        return np.ceil(self.clock).astype(int)

    def _shown(self, record: Shown) -> Shown:
        before = np.floor(self.clock).astype(int)

        def rows(name: str, x: np.ndarray) -> np.ndarray:
            if name not in ("positions", "errors"):
                return np.asarray(x[self.frames])
            share = (self.clock - before).reshape(-1, *[1] * (x.ndim - 1))
            return np.where(share > 0, (1 - share) * x[before] + share * x[self._next], x[before])

        return over_frames(record, rows)
