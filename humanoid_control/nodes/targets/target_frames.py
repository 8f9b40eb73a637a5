"""Frames of targets: the world, the robot's own links, and with tf2 every frame with a transform to the world."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pinocchio as pin

from humanoid_control.nodes.base.messages import WORLD
from humanoid_control.nodes.base.serialized_markers import MarkerPoses
from humanoid_control.robots import Robot
from humanoid_control.robots.standard_frames import standard_frames

try:  # not among the ROS wheels; without it only known frames are understood
    import tf2_ros
    from rclpy.time import Time
except ImportError:
    tf2_ros = None

FARTHEST = 1e6  # [m] no target lies farther away, and no sum of such numbers overflows
WORLDS = ("world", "odom", "map")  # links that models have above the root link: not the frames of these names
NAMED = 3  # frames, and targets, in a report


class LinkFrames:
    """Poses of the frames of a robot whose root link stands still: its links, its points, and the names of REP 120."""

    def __init__(self, robot: Robot, joints: Callable[[], np.ndarray]) -> None:
        """Find the frames.

        Args:
            robot: with a fixed base.
            joints: returns the measured position (n,) of each joint [rad].
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
        """Test whether the joint of a target moves a frame: such a target would run away from itself."""
        if target not in self._frames:
            return False
        frames, supports = self._robot.model.frames, self._robot.model.supports
        own, other = (frames[self._frames[name][0]].parentJoint for name in (target, frame))
        return bool(own and own in list(supports[other]))

    def pose(self, name: str) -> pin.SE3:
        """Pose of a frame in the world, by the joints as they were measured last."""
        k, X_link_frame = self._frames[name]
        pin.forwardKinematics(self._robot.model, self._data, self._robot.q(self._joints()))
        return pin.updateFramePlacement(self._robot.model, self._data, k) * X_link_frame


class TargetFrames:
    """Brings targets into the world from the frames that their messages name.

    Attributes:
        problem: which targets of the last message were refused, why, and what to do; empty where none was.
    """

    def __init__(
        self,
        node: Any,
        robot: Robot,
        world: str = WORLD,
        joints: Callable[[], np.ndarray] | None = None,
        prefix: str = "",
    ) -> None:
        """Listen to transforms, where there is tf2.

        Args:
            node: whose transforms they are. robot: whose root link is a frame, too, where it stands still.
            world: name of the world's frame.
            joints: as of `LinkFrames`; None: no other link is a frame.
            prefix: of the names of the robot's frames, `frame_prefix`.
        """
        self.problem, self._world, self._prefix = "", world, prefix
        self._known: dict[str, pin.SE3 | None] = {"": None, world: None}
        self._root = ""
        parent = robot.model.frames[robot.model.getFrameId(robot.root_link)].parentJoint
        if robot.base == "floating" or parent == 0:  # else it moves with the joints
            self._root = f"{prefix}{robot.root_link}"
            self._known.setdefault(self._root, robot.X_world_root)
        self._links = LinkFrames(robot, joints) if joints is not None and self._root else None
        self._buffer: Any = None
        if tf2_ros is not None:
            self._buffer = tf2_ros.Buffer()
            self._listener = tf2_ros.TransformListener(self._buffer, node)

    def in_world(self, m: MarkerPoses) -> tuple[tuple[str, ...], np.ndarray]:
        """Names (k,) of the targets whose frame is understood, and their poses (k, 7) in the world.

        Numbers that no place has come as NaN.
        """
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
        """Pose of a frame in the world, None where it is the world; and why it is not known, which else is empty."""
        if frame in self._known:
            return self._known[frame], ""
        link = frame.removeprefix(self._prefix)
        if self._links is not None and frame.startswith(self._prefix) and link in self._links:
            if carrier := next((name for name in targets if self._links.carries(name, link)), ""):
                return None, f"'{carrier[:60]}' moves this frame itself"
            return self._links.pose(link), ""
        if self._buffer is None:
            return None, "tf2_ros is not installed here to transform them"
        if lost >= NAMED:  # no message asks for more than a few
            return None, "unknown"
        try:
            t = self._buffer.lookup_transform(self._world, frame, Time()).transform
        except Exception as e:  # tf2 has a class for every reason, and none for all
            return None, f"{e}"[:120]
        p, o = t.translation, t.rotation
        numbers = np.array([p.x, p.y, p.z, o.x, o.y, o.z, o.w])
        if not (np.abs(numbers) < FARTHEST).all() or abs(np.linalg.norm(numbers[3:]) - 1) > 0.1:
            return None, "its transform is none"
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
        return f"targets in frame {frames} are refused: publish them in {known}, or a transform to it ({why})"


def _moved(X: pin.SE3, poses: np.ndarray) -> np.ndarray:
    """Poses (k, 7) seen from the frame in which X is the pose of theirs; quaternions keep their lengths."""
    x, y, z, w = pin.SE3ToXYZQUAT(X)[3:]
    left = np.array([[w, -z, y, x], [z, w, -x, y], [-y, x, w, z], [-x, -y, -z, w]])
    return np.concatenate([poses[:, :3] @ X.rotation.T + X.translation, poses[:, 3:] @ left.T], axis=1)
