"""What navigation reads of the walker: the frame `base_footprint` of REP 120, odometry, the outline on the floor."""

import copy
from types import SimpleNamespace

import numpy as np
import pinocchio as pin
import pytest

pytest.importorskip("rclpy", reason="needs ROS 2")

from builtin_interfaces.msg import Time
from geometry_msgs.msg import TwistStamped

from humanoid_control.nodes.walking.outputs import WalkOutputs
from test.nodes.walking.direct import Direct


def test_the_footprint_is_the_middle_of_the_soles_on_the_lower_one_with_the_yaw_of_the_base():
    outputs = WalkOutputs.__new__(WalkOutputs)
    outputs._root_frame = "base_link"
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


def test_nav2_finds_odometry_with_covariance_an_outline_and_its_own_cmd_vel_at_its_rate(monkeypatch):
    """TwistStamped at 20 Hz, as Nav2's controller server sends it; `odom` and `footprint` as it reads them."""
    d, heard = Direct(monkeypatch, "cmd_vel_type:=TwistStamped", robot="lola"), {"odom": [], "footprint": []}

    def hear(topic):
        d.bus.listeners[topic].append(lambda m: heard[topic].append((d.now, copy.deepcopy(m))))

    for topic in heard:
        hear(topic)
    try:
        d.stand()
        begin, m = d.now, TwistStamped()
        m.header.frame_id, m.twist.linear.x = "base_footprint", 0.2
        d.run(3.0, meanwhile=lambda: d.bus.publish("cmd_vel", m))  # 20 times a second
        walked = [message for t, message in heard["odom"] if t > begin]
    finally:
        d.close()
    assert len(walked) > 20 * 3.0
    assert {(x.header.frame_id, x.child_frame_id) for x in walked} == {("odom", d.walker.robot.root_link)}
    P = np.array([np.reshape(x.pose.covariance, (6, 6)) for x in walked])
    V = np.array([np.reshape(x.twist.covariance, (6, 6)) for x in walked])
    assert np.allclose(P, P.transpose(0, 2, 1)) and np.linalg.eigvalsh(P).min() > 0 and np.linalg.eigvalsh(V).min() > 0
    assert P[-1, 0, 0] > P[0, 0, 0], "it drifts with the way"
    assert walked[-1].pose.pose.position.x - walked[0].pose.pose.position.x > 0.2
    outline = [np.array([[p.x, p.y] for p in message.points]) for _, message in heard["footprint"]]
    assert len(outline) >= 2 and np.ptp(outline[0][:, 1]) > 0.3 and np.allclose(outline[0], outline[-1])
