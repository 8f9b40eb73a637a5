"""Single targets for teleoperation and MoveIt: PoseStamped on `targets/NAME`, tf frames `target/NAME`."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pinocchio as pin
from geometry_msgs.msg import PoseStamped
from rclpy.serialization import deserialize_message

from humanoid_control.errors import ConfigError, UnknownNameError
from humanoid_control.nodes.base.command_owner import SHOWN, TARGETS_IN, gid_of, publishers_of
from humanoid_control.nodes.base.messages import POLLED_IN, seconds
from humanoid_control.nodes.base.serialized_markers import POSE, MarkerPoses
from humanoid_control.nodes.base.tick_node import Level, TickNode
from humanoid_control.robots import Robot

try:  # not in the ROS wheels
    from tf2_msgs.msg import TFMessage
except ImportError:
    TFMessage = None

POSE_TOPIC, CHILD, TF = "targets/", "target/", "/tf"
MOST_TRANSFORMS = 64  # targets in a tf message
NAMED = 3  # names in a report
Take = Callable[[MarkerPoses, str, bytes], None]


class TargetOwners:
    """Ownership of targets with several sources: the first, until silent for `timeout` [s]."""

    def __init__(self, node: TickNode, names: Sequence[str], timeout: float) -> None:
        self._node, self._names, self._timeout = node, frozenset(names), timeout
        self._owners: dict[str, tuple[str, bytes, float]] = {}
        self._refused: dict[str, tuple[str, bytes, float]] = {}
        node.reports.append(self.report)

    def owned(self, m: MarkerPoses, topic: str, gid: bytes) -> MarkerPoses:
        """Return targets that this publisher owns; it acquires unowned ones."""
        shared = self._names.intersection(m.names)
        if not shared:
            return m
        now, lost = time.monotonic(), set()
        for name in shared:
            other, owner, at = self._owners.get(name, (topic, gid, now))
            if (other, owner) != (topic, gid) and now - at <= self._timeout:
                self._refused[name] = topic, gid, now
                lost.add(name)
            else:
                self._owners[name] = topic, gid, now
        if not lost:
            return m
        use = [k for k, name in enumerate(m.names) if name not in lost]
        names, frames = (tuple(row[k] for k in use) for row in (m.names, m.frames))
        return MarkerPoses(names, m.poses[use], m.stamp, frames, m.passed_over)

    def report(self, now: float) -> None:
        """Report rejected sources, in each tick."""
        if not self._refused:
            self._node.health.clear("owner of a target")
            return
        self._refused = {name: row for name, row in self._refused.items() if now - row[2] < SHOWN}
        texts = []
        for name in sorted(self._refused)[:NAMED]:
            topic, gid, _ = self._refused[name]
            owner_topic, owner, _ = self._owners[name]
            first, second = self._node_of(owner_topic, owner), self._node_of(topic, gid)
            texts.append(f"target '{name}': {first} on {owner_topic} is followed, {second} on {topic} is ignored")
        self._node.health.check("owner of a target", bool(texts), Level.ERROR, "; ".join(texts))

    def _node_of(self, topic: str, gid: bytes) -> str:
        return publishers_of(self._node, topic).get(gid, "a node that has ended")


class PoseTargets:
    """Subscriptions of single targets by topic, and by tf if requested."""

    def __init__(
        self, node: TickNode, robot: Robot, text: str, default: str, use_tf: bool, take: Take, prefix: str = ""
    ) -> None:
        """Subscribe.

        Args:
            text: comma-separated names of targets with their own topic.
            default: default of `text`; its names may be missing in the robot.
            use_tf: also use frames `target/NAME` on /tf.
            take: called with targets, topic and publisher identity of a message.

        Raises:
            UnknownNameError: if the robot lacks a point or link.
            ConfigError: if the tf messages are not installed.
        """
        links = {f.name for f in robot.model.frames if f.type == pin.FrameType.BODY}
        known = {*robot.points, *links}
        names = [name.strip() for name in text.split(",") if name.strip()]
        if text == default:
            names = [name for name in names if name in known]
        for name in names:
            if name not in known:
                raise UnknownNameError("target in parameter pose_targets", name, known)
        self._take, self.names, self._child = take, tuple(dict.fromkeys(names)), f"{prefix}{CHILD}"
        for name in self.names:
            take_one = self._pose_of(name, f"{POSE_TOPIC}{name}")
            node.listen(PoseStamped, f"{POSE_TOPIC}{name}", take_one, TARGETS_IN, takes_info=True, wakes=True)
        if use_tf:
            if TFMessage is None:
                raise ConfigError(
                    "parameter tf_targets needs tf2_msgs, which is not installed: use topics targets/NAME"
                )
            self.names = tuple(sorted(known))
            node.listen(TFMessage, TF, self._transforms, POLLED_IN, raw=True, takes_info=True, wakes=False)

    def _pose_of(self, name: str, topic: str) -> Callable[[Any, Mapping[str, Any]], None]:
        def on_pose(m: PoseStamped, info: Mapping[str, Any]) -> None:
            p, o = m.pose.position, m.pose.orientation
            pose = np.array([[p.x, p.y, p.z, o.x, o.y, o.z, o.w]])
            self._take(MarkerPoses((name,), pose, seconds(m.header.stamp), (m.header.frame_id,)), topic, gid_of(info))

        return on_pose

    def _transforms(self, data: bytes, info: Mapping[str, Any]) -> None:
        if self._child.encode() not in data:
            return
        found = [t for t in deserialize_message(data, TFMessage).transforms if t.child_frame_id.startswith(self._child)]
        found = found[:MOST_TRANSFORMS]
        by_stamp: dict[float, list[Any]] = {}
        for t in found:
            by_stamp.setdefault(seconds(t.header.stamp), []).append(t)
        for stamp, rows in sorted(by_stamp.items()):
            poses = np.empty((len(rows), POSE))
            for k, t in enumerate(rows):
                p, o = t.transform.translation, t.transform.rotation
                poses[k] = p.x, p.y, p.z, o.x, o.y, o.z, o.w
            names = tuple(t.child_frame_id.removeprefix(self._child) for t in rows)
            frames = tuple(t.header.frame_id for t in rows)
            self._take(MarkerPoses(names, poses, stamp, frames), TF, gid_of(info))
