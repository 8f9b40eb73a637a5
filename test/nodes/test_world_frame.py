"""The world by another name: in all headers, and in what is asked of targets and poses."""

import pytest

pytest.importorskip("rclpy", reason="needs ROS 2")

from geometry_msgs.msg import PoseStamped
from nav_msgs.msg import Odometry
from visualization_msgs.msg import MarkerArray

from humanoid_control.nodes.base.messages import target_markers

pytestmark = [pytest.mark.ros, pytest.mark.patient]
QUIET = ("missed_warn:=100.0", "missed_error:=100.0")


def test_odometry_markers_and_targets_are_in_the_frame_that_the_parameter_names(graph):
    graph.start("simulator", "rate:=100.0", "publish_description:=false", "world_frame:=odom", *QUIET)
    odometry = graph.listen(Odometry, "ground_truth/odometry")
    markers = graph.listen(MarkerArray, "ik_markers")
    graph.start(
        "whole_body_ik", "rate:=50.0", "world_frame:=odom", *QUIET,
        args=("-r", "estimated_joint_states:=joint_states"),
    )  # fmt: skip
    targets = graph.publisher(MarkerArray, "targets")

    def send(frame):
        m = target_markers(["l_wrist"], frame)
        m.markers[0].pose.position.x, m.markers[0].pose.position.y, m.markers[0].pose.position.z = 0.3, 0.3, 1.0
        m.markers[0].header.stamp = graph.node.get_clock().now().to_msg()
        return lambda: targets.publish(m)

    graph.until(lambda: odometry and markers, "odometry and markers", meanwhile=send("odom"))
    assert {m.header.frame_id for m in odometry} == {"odom"}
    assert {m.header.frame_id for m in markers[-1].markers} == {"odom"}
    graph.until_said("whole_body_ik", "publish them in 'odom'", meanwhile=send("world"))
    base = graph.publisher(PoseStamped, "simulator/set_base")
    pose = PoseStamped()
    pose.header.frame_id = "world"
    graph.until_said("simulator", "poses in the frame 'odom', not 'world'", meanwhile=lambda: base.publish(pose))
