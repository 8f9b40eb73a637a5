"""The frame `base_footprint` of the walker, as REP 120 defines it."""

from types import SimpleNamespace

import numpy as np
import pinocchio as pin
import pytest

pytest.importorskip("rclpy", reason="needs ROS 2")

from builtin_interfaces.msg import Time

from humanoid_control.nodes.walking.outputs import WalkOutputs


def test_the_footprint_is_the_middle_of_the_soles_on_the_lower_one_with_the_yaw_of_the_base():
    outputs = WalkOutputs.__new__(WalkOutputs)
    outputs.robot = SimpleNamespace(root_link="base_link")
    outputs.frame, outputs.drift, outputs._place, outputs.way = "odom", 0.02, None, 0.0
    yaw, tilt = 0.8, 0.3
    R = pin.rpy.rpyToMatrix(tilt, -0.2, yaw)
    soles = [pin.SE3(np.eye(3), np.array(p)) for p in ([1.0, 2.1, 0.05], [1.4, 1.9, -0.01])]
    q = np.concatenate([[3.0, 4.0, 1.0], pin.Quaternion(R).coeffs()])
    m = outputs.odometry(SimpleNamespace(q=q, v=np.zeros(6), soles=soles), Time())
    X = outputs.X_odom_footprint
    np.testing.assert_allclose(X.translation, [1.2, 2.0, -0.01])
    np.testing.assert_allclose(pin.rpy.matrixToRpy(X.rotation), [0.0, 0.0, np.arctan2(R[1, 0], R[0, 0])], atol=1e-12)
    assert (m.header.frame_id, m.child_frame_id) == ("odom", "base_link") and m.pose.pose.position.x == 3.0
