"""Playback of whole-body targets: pause, seek, speed, loop; at a seam, the feet step to the new stance."""

from __future__ import annotations

import math

import numpy as np
import pinocchio as pin

from humanoid_control.numerics.minimum_jerk import minimum_jerk
from humanoid_control.retargeting.player import Player, between_frames, bone_ends
from humanoid_control.retargeting.whole_body.contacts import ContactSoles, sole_corners
from humanoid_control.retargeting.whole_body.frames import FrameInputs
from humanoid_control.retargeting.whole_body.scaling import BODY_POINTS, WholeBodyTargets

LIFT = 0.06  # [m] swing height at a seam
STAYS = 0.01  # [m, rad] error below which a foot does not step
COAST = 0.12  # [s] decay time of the initial velocity at a seam
L_HIP, R_HIP = BODY_POINTS.index("l_hip"), BODY_POINTS.index("r_hip")


class WholeBodyPlayer(Player):
    """Current targets of a playing clip, as inputs of `WholeBodyRetargeter`.

    Attributes:
        heading: current pelvis yaw [rad].
        X_world_clip: pose of the clip's world in the robot's.
    """

    def __init__(
        self,
        targets: WholeBodyTargets,
        frames: FrameInputs,
        soles: ContactSoles,
        seam: float = 1.5,
        loop: bool = True,
        speed: float = 1.0,
        free: np.ndarray | None = None,
    ) -> None:
        """Start at the first frame.

        Args:
            frames: from `WholeBodyRetargeter.inputs`.
            seam: transition time to another moment [s].
            free: (K,) True for vectors (`RetargetingProblem.free`); default: none.
        """
        super().__init__(targets.duration, seam, loop, speed)
        self.targets, self.frames, self.soles = targets, frames, soles
        self._placed = np.ones((frames.points.shape[1], 1)) if free is None else 1.0 - free[:, None]
        self._poses = frames.soles.copy()
        self._poses[:, :, 2] = np.unwrap(self._poses[:, :, 2], axis=0)
        self._heading = np.unwrap(targets.heading)
        self.X_world_clip = pin.SE3.Identity()
        self.restart()

    def restart(self) -> None:
        """Jump to the first frame at its original place."""
        self.X_world_clip = pin.SE3.Identity()
        self.time, self.finished, self._blend = 0.0, False, 1.0
        self._sample()

    def _leave(self) -> None:
        self._sample()
        self._from = self._points, self._soles, *self._velocity()
        high = self._soles[:, 3:].min(axis=1)
        self._first = int(high[1] > high[0])  # the raised foot first, else the left one

    def _arrive(self) -> None:
        """Move the clip so that it continues at the robot's place."""
        points, _, v, _ = self._from
        hips, heading = 0.5 * (points[L_HIP] + points[R_HIP]) + 0.5 * COAST * (v[L_HIP] + v[R_HIP]), self.heading
        self.X_world_clip = pin.SE3.Identity()
        self._sample()
        there = 0.5 * (self._points[L_HIP] + self._points[R_HIP])
        R = pin.rpy.rpyToMatrix(0.0, 0.0, heading - self.heading)
        shift = hips - R @ there
        self.X_world_clip = pin.SE3(R, np.array([shift[0], shift[1], 0.0]))
        self._sample()

    def _velocity(self) -> tuple[np.ndarray, np.ndarray]:
        """Return velocities of points (K, 3) and soles (2, 5), zero while paused."""
        still = np.zeros_like(self._points), np.zeros_like(self._soles)
        if self._blend < 1.0 or not self.playing or self.finished or self.time <= 0.0:
            return still
        points, soles, now, dt = self._points, self._soles, self.time, 1.0 / self.targets.rate
        self.time = max(now - dt, 0.0)
        self._sample()
        moved = (points - self._points, soles - self._soles)
        elapsed, self.time = (now - self.time) / self.speed, now
        self._sample()
        return moved[0] / elapsed, moved[1] / elapsed

    def advance(self, dt: float) -> FrameInputs:
        """Advance by dt [s] and return one frame of targets; negative and NaN values count as 0."""
        self._pass(dt)
        self._sample()
        if self._blend < 1.0:
            return self._over_the_seam()
        return FrameInputs(self._points[None], self._soles[None], self._contact[None])

    def _sample(self) -> None:
        k, s = between_frames(self.time * self.targets.rate, len(self._heading))

        def between(a: np.ndarray) -> np.ndarray:
            return np.asarray((1 - s) * a[k] + s * a[k + 1])

        R, p = self.X_world_clip.rotation, self.X_world_clip.translation
        turn = math.atan2(R[1, 0], R[0, 0])
        self._points = between(self.frames.points) @ R.T + self._placed * p
        self._soles = between(self._poses)
        self._soles[:, :2] = self._soles[:, :2] @ R[:2, :2].T + p[:2]
        self._soles[:, 2] += turn
        self._contact = self.frames.contact[k]
        self.heading = float(between(self._heading)) + turn

    def _over_the_seam(self) -> FrameInputs:
        points, soles, v, v_soles = self._from
        s, coast = minimum_jerk(self._blend), COAST * (1.0 - math.exp(-self._blend * self.transition / COAST))
        now = (1 - s) * (points + coast * v) + s * self._points
        poses, contact = np.empty((2, 5)), np.ones(4, dtype=np.bool_)
        for f in (0, 1):
            part = min(max(2.0 * self._blend - (f != self._first), 0.0), 1.0)
            u, begin, end = minimum_jerk(part), soles[f] + coast * v_soles[f], self._soles[f]
            begin[3:] = np.maximum(begin[3:], 0.0)
            way = end - begin
            way[2] -= 2 * math.pi * round(way[2] / (2 * math.pi))
            steps = float(np.abs(way[:3]).max()) > STAYS
            poses[f] = begin + u * way
            if steps:
                poses[f, 3:] += LIFT * 16.0 * (part * (1.0 - part)) ** 2
            on = self._contact[2 * f : 2 * f + 2] if part >= 1.0 else np.array([not steps or part <= 0.0] * 2)
            contact[2 * f : 2 * f + 2] = on
        return FrameInputs(now[None], poses[None], contact[None])

    # -- display

    def shown(self) -> np.ndarray:
        """Return the current targets (12, 3) of BODY_POINTS [m]."""
        return self._points[: len(BODY_POINTS)]

    def skeleton(self) -> np.ndarray:
        """Return bone end points (2 B, 3) of the targets, feet included [m]."""
        p = {n: self._points[k] for n, k in _JOINTS.items()}
        corners = np.empty((4, 3))
        for f, side in enumerate("lr"):
            sole_corners(self.soles, f, self._soles[f], corners)
            p[f"{side}_ankle"], p[f"{side}_toe"] = 0.5 * (corners[0] + corners[1]), 0.5 * (corners[2] + corners[3])
        return bone_ends(p)


# Figure joint -> row of BODY_POINTS; the figure's shoulder is the robot's "gh".
_JOINTS = {name.replace("_gh", "_shoulder"): k for k, name in enumerate(BODY_POINTS)}
