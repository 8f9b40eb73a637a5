"""The retargeted motion as the feasibility pass reads it: at an even rate, eased in and out, smooth, with its soles.

The clip's time runs from rate 0 to 1 at the beginning and back at the end, since many clips begin in mid-walk. Before
and after, the first and the last posture are held. A pace below 1 slows the clip where its dynamics ask for that.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin
from scipy.interpolate import CubicSpline

from humanoid_control.errors import ClipError, RobotError
from humanoid_control.numerics.butterworth import filtered_both_ways, low_pass
from humanoid_control.performing.settings import FeasibilitySettings
from humanoid_control.retargeting import WholeBodyTrajectory
from humanoid_control.retargeting.whole_body.scaling import Legs
from humanoid_control.robots import Robot
from humanoid_control.walking.feet import Feet

EDGE = 0.3  # [s] by which both ends of a signal are continued for a filter
FINE = 1e-3  # [s] of the grid on which the pace is integrated


def smoothed(x: np.ndarray, cutoff: float, rate: float) -> np.ndarray:
    """Low-pass a signal (T, ...) without delay.

    Args:
        x: even samples along the first axis.
        cutoff: [Hz]; not below half the rate: x itself.
        rate: [Hz].
    """
    if cutoff >= 0.45 * rate or len(x) < 4:
        return np.array(x, dtype=float)
    flat = np.ascontiguousarray(x, dtype=float).reshape(len(x), -1)
    edge = min(len(x) - 1, max(3, round(EDGE * rate)))
    offset = flat[:1].copy()  # far from the origin the filter would lose digits
    return np.asarray(offset + filtered_both_ways(flat - offset, low_pass(cutoff, 1.0 / rate), edge)).reshape(x.shape)


def yaw_of(R: np.ndarray) -> np.ndarray:
    """Heading of rotations (..., 3, 3): of the x axis where that is level, without a jump where it stands upright."""
    return np.arctan2(R[..., 1, 0] - R[..., 0, 1], R[..., 0, 0] + R[..., 1, 1])


def rotations_z(yaw: np.ndarray) -> np.ndarray:
    """Rotations (..., 3, 3) about the vertical by angles (...)."""
    out = np.zeros((*np.shape(yaw), 3, 3))
    out[..., 0, 0] = out[..., 1, 1] = np.cos(yaw)
    out[..., 1, 0], out[..., 2, 2] = np.sin(yaw), 1.0
    out[..., 0, 1] = -out[..., 1, 0]
    return out


def wrapped(angle: np.ndarray | float) -> np.ndarray:
    """The angle within -pi .. pi."""
    return np.asarray((np.asarray(angle) + np.pi) % (2 * np.pi) - np.pi)


# -------- The robot's soles


@dataclass(frozen=True)
class RigidSoles:
    """Both soles of a robot, left and right, as rectangles that the ankle carries.

    The frame of a sole lies under the ankle: x forward, y to the left, z up from the sole.

    Attributes:
        legs: of the robot.
        joints: pinocchio joints that carry the soles. X_joint_sole: their frames in those of the joints.
        corners: (2, 4, 3) heel left, heel right, toe left, toe right, in the frame of the sole [m].
        pressed: the same corners, as far as the ankles' drives carry the whole weight on them [m].
        length: hip to ankle of a straight leg [m]. width: distance of both soles in the neutral posture [m].
        toe_links: a toe link follows the sole, so that it cannot roll over its toe edge.
        carriers: (2, 4) pinocchio joints that carry the corners: of a foot with a toe link, the toe's for its toe edge.
    """

    legs: Legs
    joints: tuple[int, int]
    X_joint_sole: tuple[pin.SE3, pin.SE3]
    corners: np.ndarray
    pressed: np.ndarray
    length: float
    width: float
    toe_links: bool
    carriers: np.ndarray

    @classmethod
    def of(cls, robot: Robot) -> RigidSoles:
        """Read the soles of a robot.

        Raises:
            RobotError: no floating base, legs or soles; no mass.
        """
        legs = Legs.of(robot)
        if not robot.mass > 0:
            raise RobotError(f"{robot.name}: its links have no mass, so forces of its motion are not known")
        joints = (legs.joints[3], legs.joints[4])
        pin.forwardKinematics(robot.model, robot.data, robot.q("neutral"))
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
            toes,
            carriers,
        )

    @property
    def breadth(self) -> float:
        """Least distance of both frames at which the soles, side by side, do not overlap [m]."""
        return float(self.corners[1, :, 1].max() - self.corners[0, :, 1].min())

    @property
    def toe(self) -> np.ndarray:
        """(2,) distance from the frame forward to the toe edge [m]."""
        return np.asarray(self.corners[:, 2:, 0].mean(axis=1))

    @property
    def heel(self) -> np.ndarray:
        """(2,) distance from the frame backward to the heel edge [m]."""
        return np.asarray(-self.corners[:, :2, 0].mean(axis=1))

    def poses(self, robot: Robot, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Rotations (T, 2, 3, 3) and places (T, 2, 3) of the soles at configurations q (T, nq)."""
        R, p = np.empty((len(q), 2, 3, 3)), np.empty((len(q), 2, 3))
        model, data = robot.model, robot.data
        for k, row in enumerate(q):
            pin.forwardKinematics(model, data, row)
            for f in (0, 1):
                X = data.oMi[self.joints[f]] * self.X_joint_sole[f]
                R[k, f], p[k, f] = X.rotation, X.translation
        return R, p


def _carriers(robot: Robot, corners: np.ndarray, joints: tuple[int, int]) -> np.ndarray:
    """Joints (2, 4) of the links whose soles reach the corners (2, 4, 3) in the neutral posture, `robot.data` there."""
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
    """Corners (2, 4, 3) drawn inward to what the ankles' drives hold with the whole weight on one foot [m]."""
    feet, out = Feet(robot), corners.copy()
    for f in (0, 1):
        X = X_joint_sole[f].inverse() * robot.model.frames[feet.frames[f]].placement
        low, high = (X.act(np.array([*edge, 0.0]))[:2] for edge in (feet.lower[f], feet.upper[f]))
        out[f, :, :2] = np.clip(out[f, :, :2], np.minimum(low, high), np.maximum(low, high))
    return out


# -------- The clip's time


def clip_times(duration: float, settings: FeasibilitySettings, pace: np.ndarray | None = None) -> np.ndarray:
    """Times of the clip (T,) at the frames of the result [s]; the first and the last are held.

    Args:
        duration: of the clip [s].
        settings: rate, hold and ease.
        pace: (P,) local pace at even times of the clip, from its beginning to its end; None: 1.
    """
    s = settings
    grid = np.linspace(0.0, duration, max(2, int(np.ceil(duration / FINE)) + 1))
    slow = np.ones_like(grid) if pace is None else np.interp(grid, np.linspace(0.0, duration, len(pace)), pace)
    if s.pace:
        slow = np.full_like(grid, s.pace)
    spent = np.concatenate([[0.0], np.cumsum(0.5 * (1 / slow[1:] + 1 / slow[:-1]) * np.diff(grid))])
    # A ramp of the rate from 0 to 1 over a time passes half of that time.
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
    """Integral from 0 to u of a rate that rises from 0 to 1 as a cubic, level at both ends."""
    return np.asarray(u**3 - 0.5 * u**4)


@dataclass(frozen=True)
class SourceMotion:
    """A retargeted motion at the frames of the result.

    Attributes:
        robot, soles: whose it is.
        rate: [Hz].
        clock: (T,) times of the clip [s].
        q: (T, nq) configurations.
        edges: (T, 4) edges of the soles in contact, in the order of `contacts.EDGES`; all of them while held.
        sole_R, sole_p: (T, 2, 3, 3), (T, 2, 3) poses of the soles.
        flight: share of the clip in which no edge is in contact.
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

    @classmethod
    def of(
        cls,
        trajectory: WholeBodyTrajectory,
        robot: Robot,
        settings: FeasibilitySettings,
        pace: np.ndarray | None = None,
    ) -> SourceMotion:
        """Resample, ease and smooth a trajectory.

        Args:
            trajectory: of the robot's joints.
            robot: with a floating base.
            settings: rate, hold, ease, filter.
            pace: as of `clip_times`.

        Raises:
            ClipError: joints of another robot, values that are not numbers, no rate, fewer than five frames.
            RobotError: no legs, soles or masses.
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
        return cls(robot, soles, settings.rate, clock, q, edges, *soles.poses(robot, q), flight)

    def __len__(self) -> int:
        return len(self.q)


def check_trajectory(trajectory: WholeBodyTrajectory, robot: Robot) -> None:
    """Refuse a trajectory that is not one of this robot.

    Raises:
        ClipError: see `SourceMotion.of`.
    """
    names = tuple(trajectory.joint_names)
    if names != tuple(robot.joint_names):
        other = sorted({*names} ^ {*robot.joint_names})
        what = f"joint {other[0]} is in only one of both" if other else "its joints come in another order"
        raise ClipError(f"the motion is not one of {robot.name}: {what}")
    if not (np.isfinite(trajectory.rate) and trajectory.rate > 0):
        raise ClipError(f"the motion has a rate of {trajectory.rate:g} Hz: expected a positive number")
    q = trajectory.q()
    if not np.isfinite(q).all():
        bad = np.argwhere(~np.isfinite(q))[0]
        raise ClipError(f"the motion contains a non-numeric value in frame {bad[0]}")
    if len(q) < 5:
        raise ClipError(f"the motion has {len(q)} frames: at least 5 are needed")


def continuous_quaternions(x: np.ndarray) -> np.ndarray:
    """Quaternions (T, 4) with the sign that is nearest to the one before."""
    flips = np.einsum("ti,ti->t", x[1:], x[:-1]) < 0.0
    return np.asarray(x * np.concatenate([[1.0], np.where(np.cumsum(flips) % 2, -1.0, 1.0)])[:, None])
