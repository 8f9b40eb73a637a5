"""Targets as PoseStamped and as frames of tf, over DDS: in the robot's own frames, with one owner each."""

import numpy as np
import pinocchio as pin
import pytest

rclpy = pytest.importorskip("rclpy", reason="needs ROS 2")

from geometry_msgs.msg import PoseStamped, TransformStamped
from sensor_msgs.msg import JointState
from visualization_msgs.msg import MarkerArray

from humanoid_control.nodes.base.messages import target_markers
from humanoid_control.nodes.base.serialized_markers import MarkerPoses
from humanoid_control.nodes.targets.target_frames import LinkFrames, TargetFrames
from humanoid_control.robots import load_robot
from humanoid_control.robots.standard_frames import standard_frames
from test.nodes.interfaces import TF2_MSGS, with_package

pytestmark = [pytest.mark.ros, pytest.mark.patient]
NEAR = 0.005  # [m]


class Arms:
    """A running whole_body_ik, single targets for it, and where its commands put the robot."""

    def __init__(self, graph, *parameters, fresh=False):
        self.graph, self.robot = graph, load_robot("hrp2", "fixed")
        own = ("robot:=hrp2", "start_blind:=true", "missed_warn:=100.0")
        self.process = graph.start("whole_body_ik", *own, *parameters, fresh=fresh)
        self.commands = graph.listen(JointState, "joint_commands")
        graph.until(lambda: len(self.commands) > 20, "commands")
        self.home = self.place("l_wrist").translation.copy()

    @property
    def q(self):
        return np.array(self.commands[-1].position) if self.commands else self.robot.postures["neutral"]

    def place(self, name):
        """Pose in the world of a link, a point, or a frame of REP 120, at the last command."""
        r = self.robot
        pin.framesForwardKinematics(r.model, r.data, r.q(self.q))
        if name in r.points:
            return r.data.oMf[r.points[name]].copy()
        f = standard_frames(r).get(name)
        pin.framesForwardKinematics(r.model, r.data, r.q(self.q))
        return r.data.oMf[r.model.getFrameId(f.link)] * f.X_link_frame if f else r.data.oMf[r.model.getFrameId(name)]

    def error(self, position, name="l_wrist"):
        return np.linalg.norm(self.place(name).translation - position)

    def stamped(self, X, frame="world"):
        m = PoseStamped()
        m.header.frame_id, m.header.stamp = frame, self.graph.node.get_clock().now().to_msg()
        p, o = m.pose.position, m.pose.orientation
        p.x, p.y, p.z, o.x, o.y, o.z, o.w = pin.SE3ToXYZQUAT(X).tolist()
        return m

    def until_there(self, name, X, send):
        self.graph.until(lambda: self.error(X.translation, name) < NEAR, f"{name} at its target", meanwhile=send)


def at(position, rotation=None):
    return pin.SE3(np.eye(3) if rotation is None else rotation, np.asarray(position, dtype=float))


def test_poses_in_the_robots_own_frames_are_followed_and_others_refused_by_name(graph):
    arms = Arms(graph, "pose_targets:=l_wrist, r_hand")
    left, hand = (graph.publisher(PoseStamped, f"targets/{name}") for name in ("l_wrist", "r_hand"))
    goal = at(arms.home + [0.0, 0.0, 0.03])
    arms.until_there("l_wrist", goal, lambda: left.publish(arms.stamped(goal)))
    for frame in ("pelvis", "torso", "r_ankle"):
        lower = at(arms.home + [0.02, 0.0, 0.0])
        arms.until_there(
            "l_wrist",
            lower,
            lambda f=frame, X=lower: left.publish(arms.stamped(arms.place(f).actInv(X), f)),
        )
        arms.until_there("l_wrist", goal, lambda: left.publish(arms.stamped(goal)))

    turned = arms.place("r_hand").copy()
    turned.rotation = pin.rpy.rpyToMatrix(0.0, 0.0, 0.2) @ turned.rotation
    graph.until(
        lambda: np.linalg.norm(pin.log3(turned.rotation.T @ arms.place("r_hand").rotation)) < 0.02,
        "a link turns with its pose",
        meanwhile=lambda: hand.publish(arms.stamped(turned)),
    )

    away = arms.home + [0.0, 0.0, 0.1]
    for frame, words in {"camera": "'camera'", "l_hand": "'l_wrist' moves this frame"}.items():
        said = graph.until_said("whole_body_ik", words, lambda f=frame: left.publish(arms.stamped(at(away), f)))
        assert f"targets/l_wrist: targets in frame '{frame}' are rejected" in said["message"]
        graph.until(lambda: arms.error(goal.translation) < NEAR, "the wrist at its last target")
    bad = arms.stamped(goal)
    bad.pose.position.x = np.nan
    graph.until_said("whole_body_ik", "not a number", lambda: left.publish(bad))
    graph.until_said(
        "whole_body_ik", "ok", lambda: (left.publish(arms.stamped(goal)), hand.publish(arms.stamped(turned)))
    )
    assert np.isfinite([m.position for m in arms.commands]).all()


def test_a_target_has_one_owner_among_its_topics_and_the_other_is_named(graph):
    arms, second = Arms(graph), rclpy.create_node("second")
    try:
        markers = graph.publisher(MarkerArray, "targets")
        single = second.create_publisher(PoseStamped, "targets/l_wrist", 5)
        graph.until(lambda: single.get_subscription_count() > 0, "the node")
        goal, other = arms.home + [0.0, 0.0, 0.03], at(arms.home - [0.0, 0.0, 0.02])
        right = arms.place("r_wrist").translation + [0.0, 0.0, 0.03]

        def many():
            m = target_markers(["l_wrist", "r_wrist"])
            for marker, p in zip(m.markers, (goal, right), strict=True):
                marker.header.stamp = graph.node.get_clock().now().to_msg()
                marker.pose.position.x, marker.pose.position.y, marker.pose.position.z = p.tolist()
            markers.publish(m)

        def one():
            single.publish(arms.stamped(other))

        arms.until_there("l_wrist", at(goal), many)
        said = graph.until_said("whole_body_ik", "target 'l_wrist'", lambda: (many(), one()))
        assert said["level"] == 2
        assert "/test on targets is followed, /second on targets/l_wrist is ignored" in said["message"]
        graph.until(lambda: arms.error(goal) < NEAR, "the target of the first", meanwhile=lambda: (many(), one()))
        arms.until_there("l_wrist", other, one)  # the first is silent
        said = graph.until_said("whole_body_ik", "target 'l_wrist'", lambda: (many(), one()))
        assert "/second on targets/l_wrist is followed, /test on targets is ignored" in said["message"]
        arms.until_there("r_wrist", at(right), lambda: (many(), one()))
        both = lambda: (many(), one())  # noqa: E731
        graph.until(lambda: arms.error(other.translation) < NEAR, "the others of the message", meanwhile=both)
    finally:
        second.destroy_node()


@pytest.mark.nightly
def test_frames_of_tf_are_targets_where_the_parameter_says_so(graph, monkeypatch):
    with_package("tf2_msgs", TF2_MSGS, monkeypatch)
    from tf2_msgs.msg import TFMessage

    arms = Arms(graph, "tf_targets:=true", 'pose_targets:=""', fresh=True)
    tf = graph.publisher(TFMessage, "/tf")
    goal = at(arms.home + [0.0, 0.0, 0.03])

    def send(X, frame="world", child="target/l_wrist"):
        m = arms.stamped(X, frame)
        t = TransformStamped(header=m.header, child_frame_id=child)
        p, q = m.pose.position, m.pose.orientation
        t.transform.translation.x, t.transform.translation.y, t.transform.translation.z = p.x, p.y, p.z
        t.transform.rotation = q
        tf.publish(TFMessage(transforms=[TransformStamped(child_frame_id="lidar"), t]))

    arms.until_there("l_wrist", goal, lambda: send(goal))
    lower = at(arms.home)
    arms.until_there("l_wrist", lower, lambda: send(arms.place("torso").actInv(lower), "torso"))
    said = graph.until_said("whole_body_ik", "'camera'", lambda: send(goal, "camera"))
    assert "/tf: targets in frame 'camera' are rejected" in said["message"]
    graph.until_said("whole_body_ik", "target 'l_wrst' is unknown", lambda: send(goal, child="target/l_wrst"))
    graph.until(lambda: arms.error(lower.translation) < NEAR, "the wrist to stay at its last target")


def test_unknown_names_and_tf_without_its_messages_are_refused_in_one_line(graph):
    process = graph.start("whole_body_ik", "robot:=hrp2", "pose_targets:=l_wrst", wait=False)
    graph.until(lambda: process.poll() is not None, "an end")
    assert process.poll() == 2
    assert "unknown target in parameter pose_targets 'l_wrst': did you mean l_wrist" in graph.output(process)


def test_frames_of_links_are_those_of_pinocchio_and_a_target_carries_what_its_joint_moves():
    robot, rng = load_robot("hrp2", "fixed"), np.random.default_rng(3)
    joints = rng.uniform(robot.lower, robot.upper)
    frames = LinkFrames(robot, lambda: joints)
    data = robot.model.createData()
    pin.framesForwardKinematics(robot.model, data, robot.q(joints))
    for link in ("l_hand", "head", "r_foot"):
        assert np.abs(pin.log6(frames.pose(link).actInv(data.oMf[robot.model.getFrameId(link)])).vector).max() < 1e-12
    for name, f in standard_frames(robot).items():
        X = data.oMf[robot.model.getFrameId(f.link)] * f.X_link_frame
        assert np.abs(pin.log6(frames.pose(name).actInv(X)).vector).max() < 1e-12
    assert "world" not in frames, "which is the root's parent in the model, and an own frame of the node"
    carried = {name for name in ("l_upper_arm", "l_forearm", "l_hand", "l_gripper", "chest", "r_hand", "pelvis")
               if frames.carries("l_forearm", name)}  # fmt: skip
    assert carried == {"l_forearm", "l_hand", "l_gripper"}


def test_frames_of_a_robot_with_a_prefix_are_understood_with_it_alone():
    robot = load_robot("hrp2", "fixed")
    joints = robot.postures["neutral"]
    frames = TargetFrames(None, robot, "left/odom", lambda: joints, "left/")
    poses = np.tile([0.1, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0], (5, 1))
    where = ("left/odom", "left/torso", "left/pelvis", "torso", "right/torso")
    names, moved = frames.in_world(MarkerPoses(("a", "b", "c", "d", "e"), poses, 0.0, where))
    assert names == ("a", "b", "c") and "'right/torso', 'torso' are rejected" in frames.problem
    torso = LinkFrames(robot, lambda: joints).pose("torso")
    np.testing.assert_allclose(moved[1, :3], torso.act(np.array([0.1, 0.0, 0.0])), atol=1e-12)
