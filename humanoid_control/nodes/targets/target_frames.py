"""Frames of targets: the world, robot links, and any frame known to tf2."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pinocchio as pin

from humanoid_control.nodes.base.messages import WORLD
from humanoid_control.nodes.base.serialized_markers import MarkerPoses
from humanoid_control.robots import Robot
from humanoid_control.robots.standard_frames import standard_frames

try:  # not in the ROS wheels; without it only known frames work
    import tf2_ros
    from rclpy.time import Time
except ImportError:
    tf2_ros = None

FARTHEST = 1e6  # [m] bound of target coordinates, so that sums cannot overflow
WORLDS = ("world", "odom", "map")  # links above the root link in some models; not the frames of these names
NAMED = 3  # frames and targets named in a report


class LinkFrames:
    """Poses of links, points and REP 120 frames of a fixed-base robot."""

    def __init__(self, robot: Robot, joints: Callable[[], np.ndarray]) -> None:
        """Find the frames.

        Args:
            robot: fixed base.
            joints: returns the measured joint positions (n,) [rad].
        """
        self._robot, self._joints, self._data = robot, joints, robot.model.createData()
        fixed = pin.SE3.Identity()
        links = ((k, f.name) for k, f in enumerate(robot.model.frames) if f.type == pin.FrameType.BODY)
        self._frames = {name: (k, fixed) for k, name in links if name not in WORLDS}
        for name, k in robot.points.items():
            self._frames.setdefault(name, (k, fixed))
        for name, f in standard_frames(robot).items():
            self._frames.setdefault(name, (robot.model.getFrameId(f.link), f.X_link_frame))

    def __contains__(self, name: str) -> bool:
        return name in self._frames

    def carries(self, target: str, frame: str) -> bool:
        """Test whether the joint of a target moves a frame: the target would chase itself."""
        if target not in self._frames:
            return False
        frames, supports = self._robot.model.frames, self._robot.model.supports
        own, other = (frames[self._frames[name][0]].parentJoint for name in (target, frame))
        return bool(own and own in list(supports[other]))

    def pose(self, name: str) -> pin.SE3:
        """Return the measured pose of a frame in the world."""
        k, X_link_frame = self._frames[name]
        pin.forwardKinematics(self._robot.model, self._data, self._robot.q(self._joints()))
        return pin.updateFramePlacement(self._robot.model, self._data, k) * X_link_frame


class TargetFrames:
    """Transformation of targets to the world.

    Attributes:
        problem: rejected targets of the last message, with reason; empty: none.
    """

    def __init__(
        self,
        node: Any,
        robot: Robot,
        world: str = WORLD,
        joints: Callable[[], np.ndarray] | None = None,
        prefix: str = "",
    ) -> None:
        """Subscribe to transforms, if tf2 is available.

        Args:
            robot: its fixed root link is also a frame.
            joints: see `LinkFrames`; None: no other links.
        """
        self.problem, self._world, self._prefix = "", world, prefix
        self._known: dict[str, pin.SE3 | None] = {"": None, world: None}
        self._root = ""
        parent = robot.model.frames[robot.model.getFrameId(robot.root_link)].parentJoint
        if robot.base == "floating" or parent == 0:  # otherwise it moves with the joints
            self._root = f"{prefix}{robot.root_link}"
            self._known.setdefault(self._root, robot.X_world_root)
        self._links = LinkFrames(robot, joints) if joints is not None and self._root else None
        self._buffer: Any = None
        if tf2_ros is not None:
            self._buffer = tf2_ros.Buffer()
            self._listener = tf2_ros.TransformListener(self._buffer, node)

    def in_world(self, m: MarkerPoses) -> tuple[tuple[str, ...], np.ndarray]:
        """Return names (k,) and world poses (k, 7) of targets with known frames; implausible: NaN."""
        poses = np.where(np.abs(m.poses) < FARTHEST, m.poses, np.nan)
        rows: dict[str, list[int]] = {}
        for k, frame in enumerate(m.frames):
            rows.setdefault(frame, []).append(k)
        if rows.keys() <= {"", self._world}:
            self.problem = ""
            return m.names, poses
        lost: dict[str, str] = {}
        use = np.ones(len(m.names), dtype=bool)
        for frame, own in rows.items():
            X, why = self._pose(frame, len(lost), [m.names[k] for k in own])
            if why:
                lost[frame] = why
                use[own] = False
            elif X is not None:
                poses[own] = _moved(X, poses[own])
        self.problem = self._report(lost)
        return tuple(name for name, good in zip(m.names, use, strict=True) if good), poses[use]

    def _pose(self, frame: str, lost: int, targets: Sequence[str]) -> tuple[pin.SE3 | None, str]:
        """Return the pose of a frame (None: identity), and why it is unknown (else empty)."""
        if frame in self._known:
            return self._known[frame], ""
        link = frame.removeprefix(self._prefix)
        if self._links is not None and frame.startswith(self._prefix) and link in self._links:
            if carrier := next((name for name in targets if self._links.carries(name, link)), ""):
                return None, f"'{carrier[:60]}' moves this frame"
            return self._links.pose(link), ""
        if self._buffer is None:
            return None, "tf2_ros is not installed here to transform them"
        if lost >= NAMED:  # limits the look-ups per message
            return None, "unknown"
        try:
            t = self._buffer.lookup_transform(self._world, frame, Time()).transform
        except Exception as e:  # tf2 exceptions have no common base class
            return None, f"{e}"[:120]
        p, o = t.translation, t.rotation
        numbers = np.array([p.x, p.y, p.z, o.x, o.y, o.z, o.w])
        if not (np.abs(numbers) < FARTHEST).all() or abs(np.linalg.norm(numbers[3:]) - 1) > 0.1:
            return None, "its transform is invalid"
        numbers[3:] /= np.linalg.norm(numbers[3:])
        return pin.XYZQUATToSE3(numbers), ""

    def _report(self, lost: dict[str, str]) -> str:
        if not lost:
            return ""
        frames = ", ".join(f"'{frame[:60]}'" for frame in sorted(lost)[:NAMED])
        frames += f" and {len(lost) - NAMED} more" if len(lost) > NAMED else ""
        known = f"'{self._world}'" + (f" or '{self._root}'" if self._root else "")
        known += ", or a link" if self._links is not None else ""
        why = lost[min(lost)]
        return f"targets in frame {frames} are rejected: publish them in {known}, or publish a transform to it ({why})"


def _moved(X: pin.SE3, poses: np.ndarray) -> np.ndarray:
    """Transform poses (k, 7) by X; quaternions keep their norms."""
    x, y, z, w = pin.SE3ToXYZQUAT(X)[3:]
    left = np.array([[w, -z, y, x], [z, w, -x, y], [-y, x, w, z], [-x, -y, -z, w]])
    return np.concatenate([poses[:, :3] @ X.rotation.T + X.translation, poses[:, 3:] @ left.T], axis=1)
