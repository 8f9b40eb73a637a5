"""Reference motions of trackers: embedded in the network, or given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from humanoid_control.errors import PolicyError, shown
from humanoid_control.policy.model import REFERENCE, PolicyModel

BLEND = 1.0  # [s] from the idle posture to the motion
ORIENTATIONS = {"anchor_quat_xyzw", "body_quat_wxyz"}  # channels


def _yaw_removed(R: np.ndarray, yaw: float) -> np.ndarray:
    c, s = np.cos(yaw), np.sin(yaw)
    return np.array([[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]]) @ R


def _yaw(R: np.ndarray) -> float:
    return float(np.arctan2(R[1, 0], R[0, 0]))


class EmbeddedReference:
    """Motion embedded in a network, which outputs its frames.

    Yaw and floor position are aligned with the robot at the first step.

    Attributes:
        joint_pos: present frame, policy order (n,) [rad].
    """

    def __init__(self, model: PolicyModel) -> None:
        self._model = model
        self._frame: dict[str, np.ndarray] = {}
        self._anchor = model.bodies.index(model.anchor) if model.anchor in model.bodies else 0
        self._aligned: tuple[float, float, np.ndarray, np.ndarray] | None = None

    def reset(self) -> None:
        """Align again at the next step."""
        self._aligned = None

    @property
    def joint_pos(self) -> np.ndarray:
        return self._frame["joint_pos"]

    def take(self, outputs: Mapping[str, np.ndarray]) -> None:
        """Store a frame from network outputs."""
        for output in self._model.outputs:
            kind, _, channel = output.kind.partition(".")
            if kind == REFERENCE:
                self._frame[channel] = outputs[output.name].ravel().astype(float)

    def advance(self, seconds: float) -> None:
        """Do nothing: the network advances itself."""

    def leaning(self, R_root_anchor: np.ndarray) -> np.ndarray:
        """Return the world's up axis in the root axes of a robot whose anchor link follows the present frame (3,)."""
        if not ORIENTATIONS & self._frame.keys():
            return np.array([0.0, 0.0, 1.0])
        return np.asarray(R_root_anchor @ self._pose()[0][2])

    def _pose(self) -> tuple[np.ndarray, np.ndarray]:
        f, k = self._frame, self._anchor
        if "anchor_quat_xyzw" in f:
            quaternion, position = f["anchor_quat_xyzw"], f.get("anchor_pos", np.full(3, np.nan))
        elif "body_quat_wxyz" in f:
            quaternion = f["body_quat_wxyz"].reshape(-1, 4)[k][[1, 2, 3, 0]]
            position = f["body_pos"].reshape(-1, 3)[k] if "body_pos" in f else np.full(3, np.nan)
        else:
            return np.eye(3), np.full(3, np.nan)
        size = float(np.linalg.norm(quaternion))
        if not 0.5 < size < 2.0:
            raise PolicyError(f"{self._model.path}: the motion's rotation {shown(quaternion)} is not a unit quaternion")
        return pin.Quaternion(quaternion / size).toRotationMatrix(), position

    def channels(self, R_anchor: np.ndarray, p_anchor: np.ndarray) -> dict[str, np.ndarray]:
        """Return values of reference terms for the robot's anchor link in the world."""
        R_motion, p_motion = self._pose()
        if self._aligned is None:
            self._aligned = _yaw(R_anchor), _yaw(R_motion), p_anchor * (1, 1, 0), p_motion * (1, 1, 0)
        yaw, motion_yaw, origin, motion_origin = self._aligned
        R, R_goal = _yaw_removed(R_anchor, yaw), _yaw_removed(R_motion, motion_yaw)
        p = _yaw_removed(np.eye(3), yaw) @ (p_anchor - origin)
        p_goal = _yaw_removed(np.eye(3), motion_yaw) @ (p_motion - motion_origin)
        return {
            "joint_pos": self._frame["joint_pos"],
            "joint_vel": self._frame["joint_vel"],
            "anchor_ori_b": (R.T @ R_goal)[:, :2].ravel(),
            "anchor_pos_b": R.T @ (p_goal - p),
        }


class MotionFrame(NamedTuple):
    """Frame of a whole-body motion, joints in policy order.

    Attributes:
        velocity: base, forward and sideward, own axes (2,) [m/s].
        height: [m].
        roll: [rad].
        pitch: [rad].
        yaw_rate: [rad/s].
        joints: (n,) [rad].
        joint_velocity: (n,) [rad/s]; None: at rest.
        R_anchor: orientation of the anchor, world of the motion (3, 3); None: upright.
    """

    velocity: np.ndarray
    height: float
    roll: float
    pitch: float
    yaw_rate: float
    joints: np.ndarray
    joint_velocity: np.ndarray | None = None
    R_anchor: np.ndarray | None = None


def blend_frames(a: MotionFrame, b: MotionFrame, share: float) -> MotionFrame:
    """Interpolate two frames; the anchor of `b` is kept."""
    still = np.zeros_like(b.joints)
    speeds = [still if f.joint_velocity is None else f.joint_velocity for f in (a, b)]
    return MotionFrame(
        (1.0 - share) * a.velocity + share * b.velocity,
        (1.0 - share) * a.height + share * b.height,
        (1.0 - share) * a.roll + share * b.roll,
        (1.0 - share) * a.pitch + share * b.pitch,
        (1.0 - share) * a.yaw_rate + share * b.yaw_rate,
        (1.0 - share) * a.joints + share * b.joints,
        (1.0 - share) * speeds[0] + share * speeds[1],
        b.R_anchor,
    )


class Motion(NamedTuple):
    """Whole-body motion at constant rate, joints in policy order.

    Attributes:
        rate: [Hz].
        position: root link (T, 3) [m].
        quaternion: root link, x y z w (T, 4).
        joints: (T, n) [rad].
        R_anchor: orientation of the anchor, world frame (T, 3, 3), or None.
    """

    rate: float
    position: np.ndarray
    quaternion: np.ndarray
    joints: np.ndarray
    R_anchor: np.ndarray | None = None

    def frames(self) -> list[MotionFrame]:
        """Return all frames, with velocities from differences."""
        R = [pin.Quaternion(q / np.linalg.norm(q)).toRotationMatrix() for q in self.quaternion]
        velocity = np.gradient(self.position, 1.0 / self.rate, axis=0)
        rates = np.gradient(self.joints, 1.0 / self.rate, axis=0)
        out = []
        for k in range(len(R)):
            a, b = max(k - 1, 0), min(k + 1, len(R) - 1)
            turned = pin.log3(R[a].T @ R[b]) * self.rate / max(b - a, 1)
            roll, pitch, _ = pin.rpy.matrixToRpy(R[k])
            local = R[k].T @ velocity[k]
            anchor = None if self.R_anchor is None else self.R_anchor[k]
            row = (local[:2], self.position[k, 2], roll, pitch, turned[2], self.joints[k], rates[k], anchor)
            out.append(MotionFrame(*row))
        return out


class MotionReference:
    """Given motion, clip or live frames, blended in from the idle posture."""

    def __init__(self, model: PolicyModel, height: float = 0.793) -> None:
        """Start idle; `height` of the standing base [m]."""
        self.idle = MotionFrame(np.zeros(2), height, 0.0, 0.0, 0.0, model.default.copy())
        self._motion: list[MotionFrame] = []
        self._rate = 1.0
        self.reset()

    def reset(self) -> None:
        """Restart from the idle posture."""
        self._time, self._last = 0.0, np.zeros(len(self.idle.joints))
        self._given: MotionFrame | None = None
        self._aligned: tuple[float, float] | None = None

    @property
    def joint_pos(self) -> np.ndarray:
        """Joints of the present frame (n,) [rad]."""
        return self._now().joints

    @property
    def ended(self) -> bool:
        """True after the last frame."""
        return bool(self._motion) and self._time >= (len(self._motion) - 1) / self._rate + BLEND

    def follow(self, motion: Motion) -> None:
        """Start following a clip."""
        self._motion, self._rate = motion.frames(), motion.rate
        self._time, self._given = 0.0, None

    def give(self, frame: MotionFrame) -> None:
        """Follow a live frame at the next step."""
        self._given = frame

    def advance(self, seconds: float) -> None:
        """Advance by `seconds`."""
        self._time += seconds

    def leaning(self, R_root_anchor: np.ndarray) -> np.ndarray:
        """Return the world's up axis in the root axes of the present frame (3,)."""
        frame = self._now()
        across = np.cos(frame.pitch)
        return np.array([-np.sin(frame.pitch), across * np.sin(frame.roll), across * np.cos(frame.roll)])

    def _now(self) -> MotionFrame:
        target = self._given
        if target is None:
            if not self._motion:
                return self.idle
            k = min(int(max(self._time - BLEND, 0.0) * self._rate + 0.5), len(self._motion) - 1)
            target = self._motion[k]
        share = min(self._time / BLEND, 1.0)
        return target if share >= 1.0 else blend_frames(self.idle, target, share)

    def channels(self, R_anchor: np.ndarray, p_anchor: np.ndarray) -> dict[str, np.ndarray]:
        """Return values of reference terms."""
        f = self._now()
        R_motion = np.eye(3) if f.R_anchor is None else f.R_anchor
        if self._aligned is None:
            self._aligned = _yaw(R_anchor), _yaw(R_motion)
        R, R_goal = _yaw_removed(R_anchor, self._aligned[0]), _yaw_removed(R_motion, self._aligned[1])
        return {
            "joint_pos": f.joints,
            "joint_vel": np.zeros_like(f.joints) if f.joint_velocity is None else f.joint_velocity,
            "anchor_ori_b": (R.T @ R_goal)[:, :2].ravel(),
            "base_lin_vel_xy": np.asarray(f.velocity),
            "base_height": np.atleast_1d(f.height),
            "roll_pitch": np.array([f.roll, f.pitch]),
            "yaw_rate": np.atleast_1d(f.yaw_rate),
        }
