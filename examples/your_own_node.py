"""A ROS 2 node of your own on top of a stack: it listens to the joints and waves the right hand by targets.

Here the stack is started by the same program; without the `Session`, `humanoid up targets` in another terminal does it.
"""

import argparse

import numpy as np
import rclpy
from rclpy.node import Node
from sensor_msgs.msg import JointState
from visualization_msgs.msg import Marker, MarkerArray

from humanoid_control.robots import load_robot
from humanoid_control.session import Session

HAND = "r_wrist"


class Wave(Node):
    """Publishes where the hand shall be, 50 times a second, beginning where it is."""

    def __init__(self, robot) -> None:
        super().__init__("wave")
        self.robot, self.start, self.distances = robot, None, []
        self.create_subscription(JointState, "estimated_joint_states", self.on_joints, 1)
        self.targets = self.create_publisher(MarkerArray, "targets", 1)
        self.create_timer(0.02, self.publish_target)

    def on_joints(self, message: JointState) -> None:
        angle = dict(zip(message.name, message.position, strict=True))
        q = self.robot.q(np.array([angle[name] for name in self.robot.joint_names]))
        hand = self.robot.point_positions(q, [HAND])[0]
        if self.start is None:
            self.start, self.target, self.begin = hand, float(hand[2]), self.get_clock().now()
        self.distances.append(abs(hand[2] - self.target))

    def publish_target(self) -> None:
        if self.start is None:
            return
        now = self.get_clock().now()
        height = 0.15 * (1 - np.cos(2 * np.pi * 0.5 * 1e-9 * (now - self.begin).nanoseconds))
        marker = Marker(ns=HAND, action=Marker.ADD)  # ns names the point of the robot, or a link
        marker.header.frame_id, marker.header.stamp = "world", now.to_msg()
        marker.pose.position.x, marker.pose.position.y = map(float, self.start[:2])
        marker.pose.position.z = self.target = float(self.start[2] + height)
        self.targets.publish(MarkerArray(markers=[marker]))


parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--seconds", type=float, default=20.0)
seconds = parser.parse_args().seconds
with Session("targets", "hrp2") as session:
    rclpy.init()
    node = Wave(load_robot("hrp2", "fixed"))
    end = node.get_clock().now() + rclpy.duration.Duration(seconds=seconds)
    while node.get_clock().now() < end and not session.stopped.is_set():
        rclpy.spin_once(node, timeout_sec=0.1)
    print(f"the hand is {100 * np.median(node.distances):.1f} cm from its target in the median")
