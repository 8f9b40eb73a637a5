"""Output of tf transforms, if the tf messages are installed (not in the ROS wheels)."""

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
    """Publisher of `/tf`, inactive without the tf messages.

    Attributes:
        sends: the messages are installed.
    """

    def __init__(self, node: Any) -> None:
        self.sends = TFMessage is not None
        self._publisher: Any = node.create_publisher(TFMessage, "/tf", EVENTS) if self.sends else None

    def publish(self, *transforms: Any) -> None:
        if self.sends and transforms:
            self._publisher.publish(TFMessage(transforms=transforms))


class FrameNames:
    """Publisher of `/tf_static`: REP 120 frames other than robot links."""

    def __init__(self, node: Any, robot: Robot, frame: Callable[[str], str]) -> None:
        """Publish once, latched.

        Args:
            frame: `NodeParameters.frame`, which adds the prefix.
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
    """Return pose X of `child` in `frame`; needs the tf messages."""
    t = TransformStamped(child_frame_id=child)
    t.header.stamp, t.header.frame_id = stamp, frame
    to, turn = t.transform.translation, t.transform.rotation
    to.x, to.y, to.z, turn.x, turn.y, turn.z, turn.w = pin.SE3ToXYZQUAT(X).tolist()
    return t


def base_transform(odometry: Odometry) -> Any:
    t = TransformStamped(header=odometry.header, child_frame_id=odometry.child_frame_id)
    p = odometry.pose.pose.position
    t.transform.translation.x, t.transform.translation.y, t.transform.translation.z = p.x, p.y, p.z
    t.transform.rotation = odometry.pose.pose.orientation
    return t
