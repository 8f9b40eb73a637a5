"""Retargeted motion as input of the feasibility pass.

Clip time starts and stops smoothly, as many clips start in mid-walk; end postures are held.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin
from scipy.interpolate import CubicSpline

from humanoid_control.errors import ClipError, RobotError
from humanoid_control.kinematics.forward_kinematics import joint_axis
from humanoid_control.numerics.butterworth import filtered_both_ways, low_pass
from humanoid_control.performing.settings import FeasibilitySettings
from humanoid_control.retargeting import WholeBodyTrajectory
from humanoid_control.retargeting.whole_body.scaling import Legs
from humanoid_control.robots import Robot
from humanoid_control.walking.feet import Feet

ALONG = 0.7  # cosine to the forward axis above which an ankle joint tilts sideways
EDGE = 0.3  # [s] extension of both signal ends for a filter
FINE = 1e-3  # [s] integration step of the pace


def smoothed(x: np.ndarray, cutoff: float, rate: float) -> np.ndarray:
    """Low-pass a signal (T, ...) without delay.

    Args:
        cutoff: [Hz]; above 0.45 of the rate: no filter.
        rate: [Hz].
    """
    if cutoff >= 0.45 * rate or len(x) < 4:
        return np.array(x, dtype=float)
    flat = np.ascontiguousarray(x, dtype=float).reshape(len(x), -1)
    edge = min(len(x) - 1, max(3, round(EDGE * rate)))
    offset = flat[:1].copy()  # keeps digits far from the origin
    return np.asarray(offset + filtered_both_ways(flat - offset, low_pass(cutoff, 1.0 / rate), edge)).reshape(x.shape)


def yaw_of(R: np.ndarray) -> np.ndarray:
    """Return headings of rotations (..., 3, 3), continuous if upright."""
    return np.arctan2(R[..., 1, 0] - R[..., 0, 1], R[..., 0, 0] + R[..., 1, 1])


def rotations_z(yaw: np.ndarray) -> np.ndarray:
    """Return rotations (..., 3, 3) about the vertical by yaw (...)."""
    out = np.zeros((*np.shape(yaw), 3, 3))
    out[..., 0, 0] = out[..., 1, 1] = np.cos(yaw)
    out[..., 1, 0], out[..., 2, 2] = np.sin(yaw), 1.0
    out[..., 0, 1] = -out[..., 1, 0]
    return out


def wrapped(angle: np.ndarray | float) -> np.ndarray:
    """Wrap an angle to -pi .. pi."""
    return np.asarray((np.asarray(angle) + np.pi) % (2 * np.pi) - np.pi)


# -------- The robot's soles


@dataclass(frozen=True)
class RigidSoles:
    """Left and right sole as rectangles carried by the ankles.

    Sole frame, below the ankle: x forward, y left, z up.

    Attributes:
        corners: heel left, right, toe left, right, in the sole frame (2, 4, 3) [m].
        pressed: corners, as far as ankle drives can load them with the whole weight [m].
        length: straight leg [m].
        width: between the soles in the neutral posture [m].
        tilt: sideways tilt of a shank over a flat sole that the ankles allow [rad].
        toe_links: excludes rolling over the toe edge.
        carriers: pinocchio joints of the corners (2, 4).
    """

    legs: Legs
    joints: tuple[int, int]
    X_joint_sole: tuple[pin.SE3, pin.SE3]
    corners: np.ndarray
    pressed: np.ndarray
    length: float
    width: float
    tilt: float
    toe_links: bool
    carriers: np.ndarray

    @classmethod
    def of(cls, robot: Robot) -> RigidSoles:
        """Read the soles of a robot.

        Raises:
            RobotError: if floating base, legs, soles or mass are missing.
        """
        legs = Legs.of(robot)
        if not robot.mass > 0:
            raise RobotError(f"{robot.name}: its links have no mass, so the forces of its motion are unknown")
        joints = (legs.joints[3], legs.joints[4])
        pin.forwardKinematics(robot.model, robot.data, robot.q("neutral"))
        tilt = min(_ankle_tilt(robot, shank, foot) for shank, foot in zip(legs.joints[1:3], joints, strict=True))
        X_joint_sole, corners = [], np.empty((2, 4, 3))
        for f in (0, 1):
            own = legs.corners[4 * f : 4 * f + 4]
            left, right = legs.soles.side[f, :2]
            share = left / (left - right)
            heel = (1 - share) * own[0] + share * own[1]
            at = heel + np.array([legs.soles.ankle[f, 0], 0.0, 0.0])
            corners[f] = own - at
            X_joint_sole.append(robot.data.oMi[joints[f]].actInv(pin.SE3(np.eye(3), at)))
        carriers = _carriers(robot, legs.corners.reshape(2, 4, 3), joints)
        toes = bool((carriers != np.array(joints)[:, None]).any())
        width = float(np.mean(legs.corners[:4, 1]) - np.mean(legs.corners[4:, 1]))
        width -= float(np.mean(corners[0, :, 1]) - np.mean(corners[1, :, 1]))
        pressed = _pressed(robot, corners, X_joint_sole)
        return cls(
            legs,
            joints,
            (X_joint_sole[0], X_joint_sole[1]),
            corners,
            pressed,
            legs.thigh + legs.shank,
            width,
            tilt,
            toes,
            carriers,
        )

    @property
    def breadth(self) -> float:
        """Smallest distance of the frames without overlap [m]."""
        return float(self.corners[1, :, 1].max() - self.corners[0, :, 1].min())

    @property
    def toe(self) -> np.ndarray:
        """Forward distance of the toe edge (2,) [m]."""
        return np.asarray(self.corners[:, 2:, 0].mean(axis=1))

    @property
    def heel(self) -> np.ndarray:
        """Backward distance of the heel edge (2,) [m]."""
        return np.asarray(-self.corners[:, :2, 0].mean(axis=1))

    def poses(self, robot: Robot, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return sole rotations (T, 2, 3, 3) and places (T, 2, 3)."""
        R, p = np.empty((len(q), 2, 3, 3)), np.empty((len(q), 2, 3))
        model, data = robot.model, robot.data
        for k, row in enumerate(q):
            pin.forwardKinematics(model, data, row)
            for f in (0, 1):
                X = data.oMi[self.joints[f]] * self.X_joint_sole[f]
                R[k, f], p[k, f] = X.rotation, X.translation
        return R, p


def _ankle_tilt(robot: Robot, shank: int, foot: int) -> float:
    """Return the sideways tilt that the joints between shank and foot allow [rad]; `robot.data` is neutral."""
    total = 0.0
    for joint in robot.model.supports[foot]:
        axis = robot.data.oMi[joint].rotation @ joint_axis(robot.model, joint)[0] if joint > shank else np.zeros(3)
        if abs(axis[0]) > ALONG:
            k = robot.model.joints[joint].idx_v - robot.iv
            total += min(-robot.lower[k], robot.upper[k])
    return total


def _carriers(robot: Robot, corners: np.ndarray, joints: tuple[int, int]) -> np.ndarray:
    """Return joints (2, 4) of links that reach the corners; `robot.data` holds the neutral posture."""
    out = np.repeat(np.array(joints)[:, None], 4, axis=1)
    for foot in robot.feet:
        frame = robot.model.frames[robot.model.getFrameId(foot.link, pin.FrameType.BODY)]
        joint = int(frame.parentJoint)
        if joint in joints:
            continue
        own = np.array([(robot.data.oMi[joint] * frame.placement).act(c) for c in foot.corners()])
        f = int(own[:, 1].mean() < corners[:, :, 1].mean())
        out[f, corners[f, :, 0] > own[:, 0].min() - 1e-6] = joint
    return out


def _pressed(robot: Robot, corners: np.ndarray, X_joint_sole: list[pin.SE3]) -> np.ndarray:
    """Return corners (2, 4, 3) that ankle drives hold with the whole weight [m]."""
    feet, out = Feet(robot), corners.copy()
    for f in (0, 1):
        X = X_joint_sole[f].inverse() * robot.model.frames[feet.frames[f]].placement
        low, high = (X.act(np.array([*edge, 0.0]))[:2] for edge in (feet.lower[f], feet.upper[f]))
        out[f, :, :2] = np.clip(out[f, :, :2], np.minimum(low, high), np.maximum(low, high))
    return out


# -------- The clip's time


def clip_times(duration: float, settings: FeasibilitySettings, pace: np.ndarray | None = None) -> np.ndarray:
    """Return clip times (T,) [s] of the result, with held ends.

    Args:
        duration: [s].
        pace: relative speed at even clip times (P,); None: 1.
    """
    s = settings
    grid = np.linspace(0.0, duration, max(2, int(np.ceil(duration / FINE)) + 1))
    slow = np.ones_like(grid) if pace is None else np.interp(grid, np.linspace(0.0, duration, len(pace)), pace)
    if s.pace:
        slow = np.full_like(grid, s.pace)
    spent = np.concatenate([[0.0], np.cumsum(0.5 * (1 / slow[1:] + 1 / slow[:-1]) * np.diff(grid))])
    # a ramp of the rate from 0 to 1 covers half of its duration
    ease = min(s.ease, spent[-1])
    total = spent[-1] + ease
    t = np.arange(int(np.floor(total * s.rate)) + 1) / s.rate
    up, down = np.clip(t / ease, 0.0, 1.0), np.clip((total - t) / ease, 0.0, 1.0)
    passed = np.where(t <= 0.5 * total, _ramp(up) * ease, spent[-1] - _ramp(down) * ease)
    passed += np.where(t <= 0.5 * total, np.maximum(t - ease, 0.0), -np.maximum(total - t - ease, 0.0))
    at = np.interp(passed, spent, grid)
    hold = s.frames(s.hold)
    return np.concatenate([np.zeros(hold), at, np.full(hold + 1, duration)])


def _ramp(u: np.ndarray) -> np.ndarray:
    """Integrate a cubic rate from 0 to 1 over 0 .. u."""
    return np.asarray(u**3 - 0.5 * u**4)


@dataclass(frozen=True)
class SourceMotion:
    """Retargeted motion at the frames of the result.

    Attributes:
        clock: clip times (T,) [s].
        edges: sole edges in contact, as `contacts.EDGES`; all while held (T, 4).
        flight: share of the clip without contact.
        tempo: pace of the clip at the frames, without the eased start and stop (T,).
    """

    robot: Robot
    soles: RigidSoles
    rate: float
    clock: np.ndarray
    q: np.ndarray
    edges: np.ndarray
    sole_R: np.ndarray
    sole_p: np.ndarray
    flight: float
    tempo: np.ndarray

    @classmethod
    def of(
        cls,
        trajectory: WholeBodyTrajectory,
        robot: Robot,
        settings: FeasibilitySettings,
        pace: np.ndarray | None = None,
    ) -> SourceMotion:
        """Resample, ease and smooth a trajectory.

        Raises:
            ClipError: if the trajectory is invalid or of another robot.
            RobotError: if legs, soles or masses are missing.
        """
        check_trajectory(trajectory, robot)
        soles, T = RigidSoles.of(robot), len(trajectory.positions)
        duration = (T - 1) / trajectory.rate
        clock = clip_times(duration, settings, pace)
        own = trajectory.q().copy()
        own[:, 3:7] = continuous_quaternions(own[:, 3:7])
        q = CubicSpline(np.arange(T) / trajectory.rate, own, axis=0)(clock)
        q = smoothed(q, settings.cutoff, settings.rate)
        q[:, 3:7] /= np.linalg.norm(q[:, 3:7], axis=1, keepdims=True)
        q[:, robot.iq :] = np.clip(q[:, robot.iq :], robot.lower, robot.upper)
        edges = trajectory.contacts[np.clip(np.round(clock * trajectory.rate).astype(int), 0, T - 1)].copy()
        hold = settings.frames(settings.hold)
        edges[:hold], edges[len(edges) - hold :] = True, True
        flight = float(1.0 - trajectory.contacts.any(axis=1).mean())
        tempo = np.ones(1) if pace is None else pace
        tempo = np.array([settings.pace]) if settings.pace else tempo
        tempo = np.interp(clock, np.linspace(0.0, duration, len(tempo)), tempo)
        return cls(robot, soles, settings.rate, clock, q, edges, *soles.poses(robot, q), flight, tempo)

    def __len__(self) -> int:
        return len(self.q)


def check_trajectory(trajectory: WholeBodyTrajectory, robot: Robot) -> None:
    """Check that a trajectory fits the robot.

    Raises:
        ClipError: if joints differ, values are not finite, the rate is not positive, or frames are fewer than 5.
    """
    names = tuple(trajectory.joint_names)
    if names != tuple(robot.joint_names):
        other = sorted({*names} ^ {*robot.joint_names})
        what = f"joint {other[0]} is in only one of them" if other else "its joints have another order"
        raise ClipError(f"the motion does not belong to {robot.name}: {what}")
    if not (np.isfinite(trajectory.rate) and trajectory.rate > 0):
        raise ClipError(f"the motion has a rate of {trajectory.rate:g} Hz: expected a positive number")
    q = trajectory.q()
    if not np.isfinite(q).all():
        bad = np.argwhere(~np.isfinite(q))[0]
        raise ClipError(f"the motion contains a non-numeric value in frame {bad[0]}")
    if len(q) < 5:
        raise ClipError(f"the motion has {len(q)} frames: at least 5 are needed")


def continuous_quaternions(x: np.ndarray) -> np.ndarray:
    """Return quaternions (T, 4) with continuous sign."""
    flips = np.einsum("ti,ti->t", x[1:], x[:-1]) < 0.0
    return np.asarray(x * np.concatenate([[1.0], np.where(np.cumsum(flips) % 2, -1.0, 1.0)])[:, None])


def quaternion_product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return products (T, 4) of quaternions (T, 4) x y z w."""
    (ax, ay, az, aw), (bx, by, bz, bw) = a.T, b.T
    return np.stack(
        [
            aw * bx + ax * bw + ay * bz - az * by,
            aw * by - ax * bz + ay * bw + az * bx,
            aw * bz + ax * by - ay * bx + az * bw,
            aw * bw - ax * bx - ay * by - az * bz,
        ],
        axis=1,
    )
