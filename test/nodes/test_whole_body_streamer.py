"""The node `whole_body_streamer`: over DDS a clip becomes a motion of the whole body whose feet stay on the floor."""

import numpy as np
import pytest

rclpy = pytest.importorskip("rclpy", reason="needs ROS 2")

from nav_msgs.msg import Odometry
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64
from std_srvs.srv import Trigger
from visualization_msgs.msg import MarkerArray

from humanoid_control.evaluation.ground_contact import measure_ground_contact
from humanoid_control.evaluation.recorded_run import nanoseconds
from humanoid_control.nodes.base.messages import stamp_of, target_markers
from humanoid_control.retargeting.whole_body.contacts import EDGES
from humanoid_control.robots import load_robot
from test.walking_person import RATE, walking_person

pytestmark = pytest.mark.ros


def test_feet_stay_limits_hold_and_the_clip_obeys(graph):
    robot = load_robot("hrp2", "floating")
    joints = graph.listen(JointState, "reference_joint_states", 2000)
    odom = graph.listen(Odometry, "reference_odometry", 2000)
    contacts, times = graph.listen(MarkerArray, "contacts", 2000), graph.listen(Float64, "clip/time")
    graph.start("whole_body_streamer", "robot:=hrp2", "clip:=dance", "show_every:=1")
    graph.until(lambda: len(contacts) > 150, "three seconds of it", 60)
    said = graph.diagnostics("whole_body_streamer")
    assert said["level"] == 0 and float(said["error_mm"]) < 60 and "heel" in said["contacts"]

    roots = {nanoseconds(m.header.stamp): m.pose.pose for m in odom}
    flags = {nanoseconds(m.markers[0].header.stamp): [k.text == "on" for k in m.markers] for m in contacts}
    assert [k.ns for k in contacts[-1].markers] == list(EDGES)
    rows = [(ns, m) for m in joints if (ns := nanoseconds(m.header.stamp)) in roots and ns in flags]
    assert len(rows) > 0.9 * min(len(joints), len(odom)) and tuple(rows[0][1].name) == robot.joint_names
    q = []
    for ns, m in rows:
        p, o = roots[ns].position, roots[ns].orientation
        q.append([p.x, p.y, p.z, o.x, o.y, o.z, o.w, *m.position])
        assert (np.abs(m.velocity) <= robot.velocity * (1 + 1e-6)).all()
    q = np.array(q)
    assert (q[:, 7:] >= robot.lower - 1e-9).all() and (q[:, 7:] <= robot.upper + 1e-9).all()
    ground = measure_ground_contact(robot, q, np.array([flags[ns] for ns, _ in rows]), 50.0)
    assert len(ground.slip) >= 4 and ground.slip.max() < 2e-3 and ground.penetration.max() < 1e-3
    steps = np.diff([ns for ns, _ in rows])
    moved = np.abs(np.diff(q[:, 7:], axis=0)) / (1e-9 * steps[:, None])
    assert (moved <= robot.velocity * (1 + 1e-6)).all(), "by the stamps, too"

    seek = graph.publisher(Float64, "clip/seek")
    seek.publish(Float64(data=10.0))
    graph.until(lambda: times[-1].data >= 10.0, "the moment that was sought")
    assert graph.call(Trigger, "whole_body_streamer/pause").success
    graph.until(lambda: len(times) > 3 and times[-1].data == times[-3].data, "the pause")


def test_a_person_of_live_markers_is_followed_and_feet_stay(graph):
    robot, body = load_robot("hrp2", "floating"), walking_person(3)[0]
    joints = graph.listen(JointState, "reference_joint_states", 3000)
    odom = graph.listen(Odometry, "reference_odometry", 3000)
    contacts = graph.listen(MarkerArray, "contacts", 3000)
    graph.start("whole_body_streamer", "robot:=hrp2", "source:=live", "live_calibration:=0.5", "lead_in:=0.5",
                "show_every:=1")  # fmt: skip
    graph.until(lambda: len(joints) > 5, "the robot that stands", 60)
    assert np.ptp([m.position for m in joints], axis=0).max() < 1e-9
    refused = graph.diagnostics("whole_body_streamer")
    assert "no targets" in refused["message"]
    publisher, message = graph.publisher(MarkerArray, "markers"), target_markers(body.names)
    for frame in np.concatenate([body.positions[:1].repeat(60, axis=0), body.positions]):
        stamp = stamp_of(graph.node.get_clock().now().nanoseconds)
        for marker, (x, y, z) in zip(message.markers, frame.tolist(), strict=True):
            marker.header.stamp = stamp
            marker.pose.position.x, marker.pose.position.y, marker.pose.position.z = x, y, z
        publisher.publish(message)
        graph.spin(1.0 / RATE)
    graph.until(lambda: odom[-1].pose.pose.position.x > odom[0].pose.pose.position.x + 0.3, "the robot that walked")
    roots = {nanoseconds(m.header.stamp): m.pose.pose for m in odom}
    flags = {nanoseconds(m.markers[0].header.stamp): [k.text == "on" for k in m.markers] for m in contacts}
    q, on = [], []
    for m in joints:
        if (ns := nanoseconds(m.header.stamp)) in roots and ns in flags:
            p, o = roots[ns].position, roots[ns].orientation
            q.append([p.x, p.y, p.z, o.x, o.y, o.z, o.w, *m.position])
            on.append(flags[ns])
    q = np.array(q)
    assert len(q) > 200
    ground = measure_ground_contact(robot, q, np.array(on), RATE)
    assert len(ground.slip) >= 4 and ground.slip.max() < 2e-3 and ground.penetration.max() < 1e-3
    assert (q[:, 7:] >= robot.lower - 1e-9).all() and (q[:, 7:] <= robot.upper + 1e-9).all()
    assert graph.call(Trigger, "whole_body_streamer/calibrate").message == "stand upright"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("robot:=we4rii",), "we4rii has no feet: retarget its upper body"),
        (("robot:=hrp2", "clip:=nowhere.trc"), "nowhere.trc"),
    ],
)
def test_what_it_cannot_follow_is_one_line(graph, arguments, words):
    process = graph.start("whole_body_streamer", *arguments, wait=False)
    assert process.wait(60) == 2
    said = graph.output(process)
    assert words in said and "Traceback" not in said
