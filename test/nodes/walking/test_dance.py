"""The walker's node follows targets with chest and arms, standing and walking (7 s)."""

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs ROS 2")

from geometry_msgs.msg import Twist

from humanoid_control.mocap import load_body_points
from humanoid_control.nodes.base.messages import target_markers
from humanoid_control.retargeting import POINTS, scale_to_robot
from humanoid_control.robots import load_robot
from test.nodes.walking.direct import Direct


@pytest.mark.nightly
def test_arms_follow_targets_while_the_robot_stands_and_walks_and_what_is_wrong_is_named(monkeypatch):
    d = Direct(monkeypatch, "upper:=imitate", robot="hrp2")
    targets = scale_to_robot(load_body_points("dance"), load_robot("hrp2", "fixed"))
    message, frame = target_markers(POINTS), int(8.6 * targets.rate)  # both arms are out to the sides

    def stream(bad=False):
        for marker, p in zip(message.markers, targets.positions[frame], strict=True):
            at = marker.pose.position
            at.x, at.y, at.z = (float("nan"),) * 3 if bad else tuple(map(float, p))
        d.bus.publish("targets", message)

    def walking():
        stream()
        m = Twist()
        m.linear.x = 0.15
        d.bus.publish("cmd_vel", m)

    def hands():
        r, q = d.engine.robot, d.engine.q
        p = r.point_positions(q, ["l_wrist", "r_wrist", "sternum"])
        return p[:2, 2] - p[2, 2]

    try:
        d.stand()
        low = hands()
        d.run(3.0, None, stream)
        up, wanted = hands(), targets.positions[frame][5:7, 2] - targets.positions[frame][0, 2]
        assert (up > low + 0.2).all() and np.abs(up - wanted).max() < 0.15, (up, wanted)
        stream(bad=True)
        assert "targets" in d.open
        taken = d.walker.upper.count
        for marker in message.markers:
            marker.header.frame_id = "camera"
        stream()
        assert (
            "'camera' are rejected: publish them in 'world'" in d.walker.health.open["frame"][1]
            and d.walker.upper.count == taken
        )
        for marker in message.markers:
            marker.header.frame_id = "world"
        stream()
        assert "frame" not in d.open and d.walker.upper.count == taken + 1
        begin = d.engine.base_state()[0][0]
        assert d.run(8.0, lambda: d.walker.report.steps >= 4, walking)
        assert d.engine.base_state()[0][0] > begin + 0.1 and np.abs(hands() - wanted).max() < 0.2
        assert d.state in ("WALK", "STOP") and d.walker.values()["targets"] > 10
    finally:
        d.close()
