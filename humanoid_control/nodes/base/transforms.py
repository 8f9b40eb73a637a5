"""Transforms for tf, where its messages are installed: they are not among the ROS wheels, whose users have no tf."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pinocchio as pin
from builtin_interfaces.msg import Time
from nav_msgs.msg import Odometry

from humanoid_control.nodes.base.messages import EVENTS, LATCHED
from humanoid_control.robots import Robot
from humanoid_control.robots.standard_frames import standard_frames

try:
    from geometry_msgs.msg import TransformStamped
    from tf2_msgs.msg import TFMessage
except ImportError:
    TFMessage = None


class TransformOutput:
    """Publisher of `/tf`, which does nothing without tf's messages.

    Attributes:
        sends: the messages are installed. Nothing has to be made for it otherwise.
    """

    def __init__(self, node: Any) -> None:
        self.sends = TFMessage is not None
        self._publisher: Any = node.create_publisher(TFMessage, "/tf", EVENTS) if self.sends else None

    def publish(self, *transforms: Any) -> None:
        """Send transforms, if there are any."""
        if self.sends and transforms:
            self._publisher.publish(TFMessage(transforms=transforms))


class FrameNames:
    """Publisher of `/tf_static`: the frames of REP 120 that a robot's own links do not have already."""

    def __init__(self, node: Any, robot: Robot, frame: Callable[[str], str]) -> None:
        """Publish them once, for late subscribers too; nothing without tf's messages.

        Args:
            node: that publishes them. robot: whose they are. frame: `NodeParameters.frame`, which adds the prefix.
        """
        if TFMessage is None:
            return
        stamp = node.get_clock().now().to_msg()
        named = {name: f for name, f in standard_frames(robot).items() if not f.own}
        self._publisher = node.create_publisher(TFMessage, "/tf_static", LATCHED)
        self._publisher.publish(
            TFMessage(
                transforms=[transform(stamp, frame(f.link), frame(name), f.X_link_frame) for name, f in named.items()]
            )
        )


def transform(stamp: Time, frame: str, child: str, X: pin.SE3) -> Any:
    """Pose X of a frame `child` in a frame [m]; only where tf's messages are installed."""
    t = TransformStamped(child_frame_id=child)
    t.header.stamp, t.header.frame_id = stamp, frame
    to, turn = t.transform.translation, t.transform.rotation
    to.x, to.y, to.z, turn.x, turn.y, turn.z, turn.w = pin.SE3ToXYZQUAT(X).tolist()
    return t


def base_transform(odometry: Odometry) -> Any:
    """The pose of odometry; only where tf's messages are installed."""
    t = TransformStamped(header=odometry.header, child_frame_id=odometry.child_frame_id)
    p = odometry.pose.pose.position
    t.transform.translation.x, t.transform.translation.y, t.transform.translation.z = p.x, p.y, p.z
    t.transform.rotation = odometry.pose.pose.orientation
    return t
