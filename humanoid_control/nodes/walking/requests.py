"""Requests to a walker, validated: velocities, footsteps, a goal, upper-body targets."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import pinocchio as pin

from humanoid_control.errors import ConfigError, HumanoidError, NotANumberError
from humanoid_control.nodes.base.health import Health, Level
from humanoid_control.robots import Robot
from humanoid_control.walking import Footstep, StepTimes
from humanoid_control.walking.dancing.upper_body import ARM_POINTS, LiveMotion, UpperBody
from humanoid_control.walking.feet import LEFT, RIGHT

AXES = ("linear.x", "linear.y", "angular.z")
FEET = {"l_foot": LEFT, "r_foot": RIGHT}
MOST_FOOTSTEPS = 1000
APPEND = "append"
FOOTPRINT = "base_footprint"
IMPOSSIBLE = 1e6  # bound of a request [m, m/s, rad/s]


class VelocityRequest:
    """Newest velocity of `cmd_vel`. Non-finite velocities are rejected.

    Attributes:
        velocity: forward, left [m/s] and turning left [rad/s] (3,).
    """

    def __init__(self, health: Health, root: str = "", timeout: float = 0.5, footprint: str = FOOTPRINT) -> None:
        """Start at rest.

        Args:
            root: alternative frame of velocities, the root link.
            timeout: maximum age of a stamped velocity [s].
            footprint: default frame of velocities.
        """
        self._health, self._frames, self._timeout = health, ("", footprint, root), timeout
        self.reset()

    def reset(self) -> None:
        self.velocity, self._received_at = np.zeros(3), -np.inf

    def take(self, message: Any, now: float = 0.0) -> None:
        """Accept a Twist or TwistStamped at ROS time `now` [s]."""
        if hasattr(message, "header") and not self._current(message.header, now):
            return
        twist = getattr(message, "twist", message)
        v = np.array([twist.linear.x, twist.linear.y, twist.angular.z])
        bad = [name for name, x in zip(AXES, v, strict=True) if not abs(x) < IMPOSSIBLE]
        text = f"cmd_vel: {', '.join(bad)} is not a number: rejected"
        if self._health.check("cmd_vel", bool(bad), Level.ERROR, text):
            return
        self.velocity, self._received_at = v, time.monotonic()

    def _current(self, header: Any, now: float) -> bool:
        """Test frame and age of a header, and report faults."""
        frame, stamp = header.frame_id, header.stamp.sec + 1e-9 * header.stamp.nanosec
        text = f"cmd_vel in frame '{frame}': only {self._frames[1]} or the root link '{self._frames[-1]}' is supported"
        if self._health.check("cmd_vel_frame", frame not in self._frames, Level.ERROR, text):
            return False
        old = stamp > 0.0 and now - stamp > self._timeout
        text = f"cmd_vel is {now - stamp:.2f} s old by its stamp: rejected; do the clocks of both computers agree?"
        return not self._health.check("cmd_vel_stamp", old, Level.ERROR, text)

    def now(self, now: float, timeout: float) -> np.ndarray:
        """Return the velocity (3,); zero if older than `timeout` [s]."""
        return self.velocity if now - self._received_at <= timeout else np.zeros(3)


class UpperRequest:
    """Targets of the upper body from the trajectory streamer.

    Attributes:
        motion: motion that the walker tracks.
    """

    NAMES = ("sternum", *ARM_POINTS)

    def __init__(self, robot: Robot, health: Health) -> None:
        """Start at rest.

        Raises:
            RobotError: if the robot lacks imitation points.
        """
        self._body, self._health = UpperBody(robot), health
        self.reset()

    def reset(self) -> None:
        self.motion, self.count = LiveMotion(self._body), 0

    def take(self, names: Sequence[str], positions: np.ndarray, t: float) -> None:
        """Accept named targets (k, 3) [m] in the world at walker time `t` [s]."""
        at = dict(zip(names, positions, strict=True))
        missing = [name for name in self.NAMES if name not in at]
        text = f"targets: {', '.join(missing[:3])} missing: ignored"
        if self._health.check("targets", bool(missing), Level.WARN, text):
            return
        points = np.array([at[name] for name in self.NAMES])
        text = "targets: not a number: ignored"
        if self._health.check("targets", not np.isfinite(points).all(), Level.WARN, text):
            return
        good = self.motion.take(points, t)
        self.count += 1
        self._health.check("targets_jump", not good, Level.WARN, "targets jump: the previous ones are held for a while")


def read_goal(message: Any, X_odom_footprint: pin.SE3, odom_frame: str, footprint: str = FOOTPRINT) -> pin.SE3:
    """Return the pose of a PoseStamped in the odometry frame.

    Raises:
        ConfigError: if the frame is unknown or the pose invalid.
    """
    try:
        X, frame = _pose(message.pose), message.header.frame_id
    except HumanoidError as e:
        raise ConfigError(f"goal_pose: {e}") from None
    if frame not in ("", odom_frame, footprint):
        raise ConfigError(f"goal_pose: frame '{frame}' is neither '{odom_frame}' nor '{footprint}'")
    return X_odom_footprint * X if frame == footprint else X


def read_footsteps(
    message: Any, times: StepTimes, X_odom_footprint: pin.SE3, odom_frame: str, footprint: str = FOOTPRINT
) -> tuple[list[Footstep], bool]:
    """Return the footsteps of a message, and whether to append them.

    MarkerArray: one marker a step; ns is l_foot or r_foot, pose is the landing pose of the sole, text `append` in the
    first one appends. PoseArray or Path: the feet alternate, starting with the foot nearer to the first pose.

    Args:
        message: MarkerArray, PoseArray or Path.
        X_odom_footprint: pose of the frame `footprint`.
        odom_frame: default frame of the steps.
        footprint: name of the footprint frame.

    Raises:
        ConfigError: if a step is invalid; names its index.
    """
    feet: list[int] = []
    append = False
    if hasattr(message, "markers"):
        markers = [m for m in message.markers if m.action == 0]
        poses, frames = [m.pose for m in markers], [m.header.frame_id for m in markers]
        for k, m in enumerate(markers):
            if m.ns not in FEET:
                raise ConfigError(f"footstep {k}: ns '{m.ns}' is neither l_foot nor r_foot")
            feet.append(FEET[m.ns])
        append = bool(markers) and markers[0].text == APPEND
    else:
        poses = [getattr(p, "pose", p) for p in message.poses]
        own = [getattr(p, "header", message.header).frame_id for p in message.poses]
        frames = [frame or message.header.frame_id for frame in own]
    if not 1 <= len(poses) <= MOST_FOOTSTEPS:
        raise ConfigError(f"a list of footsteps has 1 to {MOST_FOOTSTEPS}, got {len(poses)}")
    steps: list[Footstep] = []
    for k, (pose, frame) in enumerate(zip(poses, frames, strict=True)):
        try:
            X = _pose(pose)
        except HumanoidError as e:
            raise ConfigError(f"footstep {k}: {e}") from None
        if frame not in ("", odom_frame, footprint):
            raise ConfigError(f"footstep {k}: frame '{frame}' is neither '{odom_frame}' nor '{footprint}'")
        X = X_odom_footprint * X if frame == footprint else X
        if k == 0 and not feet:
            feet = [LEFT if X_odom_footprint.actInv(X.translation)[1] > 0 else RIGHT]
        if k >= len(feet):
            feet.append(1 - feet[-1])
        swing = (1 - times.double_support) * times.nominal
        steps.append(Footstep(feet[k], X, swing, times.double_support * times.nominal, times.lift))
    return steps, append


def _pose(pose: Any) -> pin.SE3:
    p, o = pose.position, pose.orientation
    numbers = np.array([p.x, p.y, p.z, o.x, o.y, o.z, o.w])
    if not (np.abs(numbers) < IMPOSSIBLE).all():
        raise NotANumberError("its pose is not a number")
    length = float(np.linalg.norm(numbers[3:]))
    if length < 0.1:
        raise ConfigError("its quaternion is zero")
    numbers[3:] /= length
    return pin.XYZQUATToSE3(numbers)
