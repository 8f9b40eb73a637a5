"""Messages of targets that are too many, too large, malformed or in other frames: commands go on, and it is said."""

import time
from types import SimpleNamespace

import numpy as np
import pinocchio as pin
import pytest

rclpy = pytest.importorskip("rclpy", reason="needs ROS 2")

from geometry_msgs.msg import Point
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState
from visualization_msgs.msg import Marker, MarkerArray

from humanoid_control.nodes.base.messages import stamp_of, target_markers
from humanoid_control.nodes.base.serialized_markers import MarkerPoses
from humanoid_control.nodes.targets import target_frames
from humanoid_control.robots import load_robot
from test.robots_under_test import nightly

pytestmark = [pytest.mark.ros]
WRISTS = ("l_wrist", "r_wrist")
CALM = "missed_warn:=100.0"


class Hands:
    """Targets of both hands for a running node, and where its commands put them."""

    def __init__(self, graph):
        self.graph, self.robot = graph, load_robot("hrp2", "fixed")
        self.process = graph.start("whole_body_ik", "robot:=hrp2", "start_blind:=true", CALM)
        self.commands = graph.listen(JointState, "joint_commands")
        self.targets = graph.publisher(MarkerArray, "targets")
        self.home = self.robot.point_positions(self.robot.q(), WRISTS)
        graph.until(lambda: len(self.commands) > 20, "commands")

    def message(self, positions, frame="world", names=WRISTS):
        message = target_markers(names, frame)
        for m, (x, y, z) in zip(message.markers, np.asarray(positions, dtype=float).tolist(), strict=True):
            m.pose.position.x, m.pose.position.y, m.pose.position.z = x, y, z
            m.header.stamp = self.graph.node.get_clock().now().to_msg()
        return message

    def send(self, positions, frame="world"):
        self.targets.publish(self.message(positions, frame))
        self.graph.spin(0.015)

    def error(self, positions):
        hands = self.robot.point_positions(self.robot.q(np.array(self.commands[-1].position)), WRISTS)
        return np.linalg.norm(hands - positions, axis=1).max()


def crowd(k, markers, size, stamp):
    """Serialized markers with names that never came before, or names, points or texts as long as they may be."""
    message = target_markers([f"n{k}_{i}" for i in range(markers)])
    for m in message.markers:
        m.header.stamp = stamp
    kind, first = k % 3, message.markers[0]
    if size and kind == 0:
        first.ns = f"{k}" + "x" * size
    elif size and kind == 1:
        first.points = [Point()] * (size // 24)
    elif size:
        first.text = "y" * size
    return serialize_message(message)


@pytest.mark.timed
@pytest.mark.parametrize(("markers", "size"), [nightly(300, 0), nightly(4000, 0), (3, 990_000)])
def test_commands_go_on_whatever_names_come_and_however_many(graph, markers, size):
    """A hundred messages a second, up to 1 MB each; new names by the hundred once took seconds each."""
    hands = Hands(graph)
    graph.diagnostics("whole_body_ik")  # to be heard later, too, when the network is busy
    stamp = stamp_of(0)  # none: they are of now whenever they come
    made = [crowd(k, markers, size, stamp) for k in range(6)]
    assert max(map(len, made)) <= 2**20
    goal = hands.home + [0.0, 0.0, 0.03]

    def gaps(crowded):
        """Times between commands while good targets come, with others among them or alone [s]."""
        hands.commands.clear()
        due = time.monotonic()
        for k in range(100):
            if crowded:
                hands.targets.publish(made[k % len(made)])
            if k % 3 == 0:
                hands.targets.publish(hands.message(goal))
            due += 0.01
            graph.spin(max(due - time.monotonic(), 0.0))
        return np.diff([m.header.stamp.sec + 1e-9 * m.header.stamp.nanosec for m in hands.commands])

    alone, among = gaps(False), gaps(True)
    usual, late = (float(np.quantile(g, 0.99)) for g in (alone, among))
    print(
        f"99 % of the gaps of commands: {1e3 * usual:.1f} ms, then {1e3 * late:.1f}; greatest {1e3 * among.max():.1f}"
    )
    assert late < max(0.02, 3 * usual) and among.max() < max(0.2, 3 * alone.max()), "a busy machine is late anyway"
    assert hands.error(goal) < 0.01, "good targets among them are followed"

    def again():
        hands.targets.publish(made[0])
        graph.spin(0.02)

    said = graph.until_said("whole_body_ik", "is unknown", again)
    assert len(said["message"]) < 700
    if markers > 256:
        graph.until_said("whole_body_ik", f"{markers - 256} markers in a targets message beyond the first 256", again)


@pytest.mark.patient
def test_other_frames_are_transformed_or_refused_by_name_and_odd_markers_harm_nothing(graph):
    hands = Hands(graph)
    goal, root = hands.home + [0.0, 0.0, 0.03], hands.robot.X_world_root
    graph.until(lambda: hands.error(goal) < 0.005, "the goal", meanwhile=lambda: hands.send(goal))
    said = graph.until_said("whole_body_ik", "'camera'", lambda: hands.send(hands.home, "camera"))
    assert "targets in frame 'camera' are rejected: publish them in 'world' or 'base_link'" in said["message"]
    assert "tf2_ros is not installed" in said["message"] and hands.error(goal) < 0.005, "they are not followed"

    lower = hands.home
    in_root = np.array([root.actInv(p) for p in lower])
    graph.until(
        lambda: hands.error(lower) < 0.005, "root", meanwhile=lambda: hands.send(in_root, hands.robot.root_link)
    )
    graph.until(lambda: hands.error(goal) < 0.005, "no frame", meanwhile=lambda: hands.send(goal, ""))
    for position in (1e308, np.inf):
        said = graph.until_said("whole_body_ik", "not a number", lambda x=position: hands.send(np.full((2, 3), x)))
        assert hands.error(goal) < 0.005
    message = hands.message(goal)
    for m in message.markers:
        m.lifetime.sec, m.id, m.header.stamp.sec = 0x5A5A0000, 0x5A5A0000, 0x5A5A0000
        m.points, m.type = [Point(x=1e308)], Marker.POINTS
    for _ in range(5):
        hands.targets.publish(message)
    graph.until_said("whole_body_ik", "ok", lambda: hands.send(goal))
    assert "Warning" not in graph.output(hands.process) and "failed" not in graph.output(hands.process)
    p = np.array([m.position for m in hands.commands])
    assert np.isfinite(p).all()


def buffer_of(X):
    """As much of tf2_ros as is used; the wheels lack it."""

    def lookup_transform(target, source, when):
        if source != "camera":
            raise LookupError(f'"{source}" passed to lookupTransform does not exist')
        assert target == "world" and when.nanoseconds == 0
        x, y, z, *o = pin.SE3ToXYZQUAT(X).tolist()
        rotation = dict(zip("xyzw", o, strict=True))
        return SimpleNamespace(transform=SimpleNamespace(translation=Point(x=x, y=y, z=z),
                                                         rotation=SimpleNamespace(**rotation)))  # fmt: skip

    listener = []
    return SimpleNamespace(
        Buffer=lambda: SimpleNamespace(lookup_transform=lookup_transform),
        TransformListener=lambda buffer, node: listener.append(node),
    )


@pytest.mark.patient
def test_with_tf2_poses_are_transformed_and_frames_without_transform_named(monkeypatch):
    from rclpy.time import Time

    robot, X = load_robot("hrp2", "fixed"), pin.SE3.Random()
    monkeypatch.setattr(target_frames, "tf2_ros", buffer_of(X))
    monkeypatch.setattr(target_frames, "Time", Time, raising=False)
    frames = target_frames.TargetFrames(None, robot)
    poses = [pin.SE3.Random() for _ in range(4)]
    numbers = np.array([pin.SE3ToXYZQUAT(p) for p in poses])
    numbers[3, :3] = 1e308
    where = ("camera", robot.root_link, "lidar", "")
    names, moved = frames.in_world(MarkerPoses(("a", "b", "c", "d"), numbers, 0.0, where))
    assert names == ("a", "b", "d") and np.isnan(moved[2, :3]).all()
    for got, wanted in zip(moved[:2], (X * poses[0], robot.X_world_root * poses[1]), strict=True):
        same = pin.XYZQUATToSE3(got).inverse() * wanted
        assert np.abs(pin.log6(same).vector).max() < 1e-9
    assert "'lidar' are rejected" in frames.problem and "does not exist" in frames.problem
    frames.in_world(MarkerPoses(("a",), numbers[:1], 0.0, ("world",)))
    assert frames.problem == ""
    many = tuple(f"f{k}" for k in range(200))
    names, _ = frames.in_world(MarkerPoses(many, np.zeros((200, 7)), 0.0, many))
    assert names == () and "and 197 more" in frames.problem and len(frames.problem) < 400


def test_a_root_that_moves_with_the_joints_is_no_frame_of_targets():
    """Of a robot that is held elsewhere than at its pelvis."""
    robot = load_robot("hrp2", "fixed")
    moving = SimpleNamespace(base="fixed", root_link="l_hand", model=robot.model, X_world_root=robot.X_world_root)
    frames = target_frames.TargetFrames(None, moving)
    names, _ = frames.in_world(MarkerPoses(("a",), np.zeros((1, 7)), 0.0, ("l_hand",)))
    assert names == () and "'l_hand'" in frames.problem
