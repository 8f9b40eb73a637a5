"""Transforms of simulator and walker as real tf2 messages over DDS, beside odometry and the robot's own model."""

import numpy as np
import pinocchio as pin
import pytest

pytest.importorskip("rclpy", reason="needs ROS 2")

from geometry_msgs.msg import PoseStamped
from nav_msgs.msg import Odometry

from humanoid_control.robots import load_robot
from humanoid_control.robots.standard_frames import standard_frames
from test.nodes.interfaces import TF2_MSGS, with_package

pytestmark = [pytest.mark.ros, pytest.mark.patient]
QUIET = ("missed_warn:=100.0", "missed_error:=100.0")


@pytest.fixture
def transforms(graph, monkeypatch):
    """All transforms that were heard: (parent, child) -> the messages."""
    with_package("tf2_msgs", TF2_MSGS, monkeypatch)
    from tf2_msgs.msg import TFMessage

    heard = graph.listen(TFMessage, "/tf", 200)

    def collected():
        out = {}
        for message in heard:
            for t in message.transforms:
                out.setdefault((t.header.frame_id, t.child_frame_id), []).append(t)
        return out

    return collected


def placed(t):
    """A transform or a pose as SE3."""
    p, o = (t.translation, t.rotation) if hasattr(t, "translation") else (t.position, t.orientation)
    assert abs(np.linalg.norm([o.x, o.y, o.z, o.w]) - 1) < 1e-9
    return pin.XYZQUATToSE3(np.array([p.x, p.y, p.z, o.x, o.y, o.z, o.w]))


def tree_of(heard):
    """Parent of each frame; a frame has one."""
    parents = {}
    for parent, child in heard:
        assert parents.setdefault(child, parent) == parent
    return parents


@pytest.mark.nightly
def test_the_simulator_places_the_root_link_and_the_soles(graph, transforms):
    graph.start("simulator", "robot:=lola", "base:=floating", *QUIET, fresh=True)
    truth = graph.listen(Odometry, "ground_truth/odometry", 200)
    robot = load_robot("lola", "floating")
    root = ("world", robot.root_link)
    put = PoseStamped()
    put.header.frame_id, put.pose.position.z = "world", 2.0
    o = put.pose.orientation
    o.x, o.y, o.z, o.w = pin.Quaternion(pin.rpy.rpyToMatrix(0.3, -0.2, 0.7)).coeffs().tolist()
    graph.publisher(PoseStamped, "simulator/set_base").publish(put)
    graph.until(lambda: truth and truth[-1].pose.pose.orientation.z > 0.2, "another pose")
    begin = len(truth)
    graph.until(lambda: len(transforms().get(root, ())) > 20 and len(truth) > begin + 20, "transforms")
    heard = transforms()
    assert tree_of(heard) == {robot.root_link: "world", **{f"{f.name}_sole": f.link for f in robot.feet}}
    by_stamp = {(m.header.stamp.sec, m.header.stamp.nanosec): m for m in truth}
    same = [(t, by_stamp[k]) for t in heard[root] if (k := (t.header.stamp.sec, t.header.stamp.nanosec)) in by_stamp]
    assert len(same) > 5 and any(m.pose.pose.orientation.z > 0.2 for _, m in same)
    for t, m in same:
        assert np.abs(pin.log6(placed(t.transform).actInv(placed(m.pose.pose))).vector).max() < 1e-9
    for foot in robot.feet:
        X = placed(heard[foot.link, f"{foot.name}_sole"][-1].transform)
        np.testing.assert_allclose(X.translation, np.mean(foot.corners(), axis=0), atol=1e-12)
        np.testing.assert_allclose(X.rotation, np.eye(3), atol=1e-12)


def test_the_walker_has_one_tree_from_odom_and_the_footprint_between_the_soles(graph, transforms):
    robot = load_robot("lola", "floating")
    simulator = ("robot:=lola", "base:=floating", "publish_tf:=false", "sensor_every:=1")
    graph.start("simulator", *simulator, *QUIET, fresh=True)
    graph.start("walker", "robot:=lola", *QUIET, fresh=True)
    odom = graph.listen(Odometry, "odom", 200)
    base, foot = ("odom", robot.root_link), ("odom", "base_footprint")
    graph.until(lambda: len(transforms().get(foot, ())) > 10 and len(odom) > 10, "transforms")
    heard = transforms()
    assert tree_of(heard)[robot.root_link] == "odom" and ("world", robot.root_link) not in heard
    by_stamp = {(m.header.stamp.sec, m.header.stamp.nanosec): m for m in odom}
    pairs = [(t, by_stamp[k]) for t in heard[base] if (k := (t.header.stamp.sec, t.header.stamp.nanosec)) in by_stamp]
    assert len(pairs) > 5
    for t, m in pairs:
        assert t.child_frame_id == m.child_frame_id
        assert np.abs(pin.log6(placed(t.transform).actInv(placed(m.pose.pose))).vector).max() < 1e-9
    for t in heard[foot]:
        X = placed(t.transform)
        assert abs(X.rotation[2, 2] - 1) < 1e-9, "the footprint is level"
        assert abs(X.translation[2]) < 0.02 and np.hypot(*X.translation[:2]) < 0.1, "below a robot that stands"


def test_the_frames_of_rep_120_are_static_transforms_on_the_robots_links(graph, transforms):
    from tf2_msgs.msg import TFMessage

    from humanoid_control.nodes.base.messages import LATCHED

    graph.start("simulator", "robot:=lola", "base:=floating", *QUIET, fresh=True)
    static = graph.listen(TFMessage, "/tf_static", LATCHED)
    graph.until(lambda: static, "static transforms, by a late subscriber")
    robot = load_robot("lola", "floating")
    heard = {t.child_frame_id: t for t in static[0].transforms}
    named = {name: f for name, f in standard_frames(robot).items() if not f.own}
    assert set(heard) == set(named) >= {"gaze", "l_sole", "r_sole", "l_wrist", "r_wrist"}
    for name, f in named.items():
        assert heard[name].header.frame_id == f.link
        assert np.abs(pin.log6(placed(heard[name].transform).actInv(f.X_link_frame)).vector).max() < 1e-9
