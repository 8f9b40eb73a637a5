"""Two robots in one tree of frames: each has its own names, takes its own alone, and shares the world."""

import pytest

pytest.importorskip("rclpy", reason="needs ROS 2")

from diagnostic_msgs.msg import KeyValue
from geometry_msgs.msg import PoseStamped, TwistStamped, WrenchStamped
from nav_msgs.msg import Odometry
from sensor_msgs.msg import Imu
from std_msgs.msg import String
from visualization_msgs.msg import MarkerArray

from humanoid_control.errors import ConfigError
from humanoid_control.nodes.base.messages import LATCHED
from humanoid_control.nodes.base.parameters import NodeParameters, check_frame_prefix
from humanoid_control.robots import load_robot
from humanoid_control.robots.standard_frames import standard_frames
from test.nodes.interfaces import TF2_MSGS, with_package

pytestmark = [pytest.mark.ros, pytest.mark.patient]
QUIET = ("robot:=hrp2", "missed_warn:=100.0", "missed_error:=100.0")
SIDES = ("left", "right")


@pytest.mark.nightly
def test_frames_of_two_robots_are_disjoint_and_each_takes_its_own(graph, monkeypatch):
    with_package("tf2_msgs", TF2_MSGS, monkeypatch)
    from tf2_msgs.msg import TFMessage

    moving, static = graph.listen(TFMessage, "/tf", 200), graph.listen(TFMessage, "/tf_static", LATCHED)
    heard, states = {}, {}
    for side in SIDES:
        own = (*QUIET, f"frame_prefix:={side}/")
        args = ("-r", f"__ns:=/{side}")
        graph.start("simulator", "base:=floating", "sensor_every:=1", *own, args=args, fresh=True)
        graph.start("walker", "cmd_vel_type:=TwistStamped", *own, args=args, fresh=True)
        heard[side] = [
            graph.listen(Odometry, f"{side}/ground_truth/odometry"),
            graph.listen(Odometry, f"{side}/odom"),
            graph.listen(Imu, f"{side}/imu"),
            graph.listen(WrenchStamped, f"{side}/wrench/l_foot"),
            graph.listen(MarkerArray, f"{side}/footsteps/planned"),
        ]
        states[side] = graph.listen(String, f"{side}/walking/state", LATCHED)

    def everything():
        return all(all(topics) for topics in heard.values()) and len(static) > 1 and len(moving) > 20

    graph.until(everything, "all topics of both, by sensors whose frames have the prefix")
    footprints = {f"{side}/base_footprint" for side in SIDES}
    graph.until(lambda: footprints <= {t.child_frame_id for m in moving for t in m.transforms}, "both footprints")

    def frames_of(message):
        headers = message.markers if hasattr(message, "markers") else [message]
        yield from (m.header.frame_id for m in headers)
        if hasattr(message, "child_frame_id"):
            yield message.child_frame_id

    on_topics = {side: {f for topic in heard[side] for m in topic for f in frames_of(m)} for side in SIDES}
    robot = load_robot("hrp2", "floating")
    for side in SIDES:
        assert on_topics[side] == {"world", *(f"{side}/{f}" for f in ("odom", robot.root_link, "l_foot_sole"))}
    transforms = [t for m in (*moving, *static) for t in m.transforms]
    children = {t.child_frame_id for t in transforms}
    by_side = {side: {c for c in children if c.startswith(f"{side}/")} for side in SIDES}
    assert children == by_side["left"] | by_side["right"]
    bare = {side: {c.removeprefix(f"{side}/") for c in names} for side, names in by_side.items()}
    named = {name for name, f in standard_frames(robot).items() if not f.own}
    assert bare["left"] == bare["right"] >= named | {robot.root_link, "base_footprint", "l_foot_sole", "r_foot_sole"}
    for t in transforms:
        side = t.child_frame_id.partition("/")[0]
        assert t.header.frame_id == "world" or t.header.frame_id.startswith(f"{side}/"), "no tree hangs on the other"

    graph.until(lambda: all(s and s[-1].data == "STAND" for s in states.values()), "both stand")
    velocity = graph.publisher(TwistStamped, "left/cmd_vel")

    def move(frame):
        m = TwistStamped()
        m.header.frame_id, m.twist.linear.x = frame, 0.0
        return lambda: velocity.publish(m)

    said = graph.until_said("/left/walker", "cmd_vel in frame 'right/base_footprint'", move("right/base_footprint"))
    assert "only left/base_footprint or the root link 'left/" in said["message"]
    graph.until_said("/left/walker", "cmd_vel in frame 'base_footprint'", move("base_footprint"))
    answers, goal = (
        graph.listen(KeyValue, "left/footsteps/status", LATCHED),
        graph.publisher(PoseStamped, "left/goal_pose"),
    )

    def answered(frame, key, words):
        """Wait for an answer; those to goals before may still be on their way."""
        m = PoseStamped()
        m.header.frame_id = frame
        graph.until(
            lambda: any(a.key == key and words in a.value for a in answers),
            f"{key}: a goal in {frame}",
            meanwhile=lambda: goal.publish(m),
        )

    answered("right/odom", "refused", "'right/odom' is neither 'left/odom' nor 'left/base_footprint'")
    answered("left/base_footprint", "accepted", "")


def test_names_of_frames_have_the_prefix_and_lose_it_again():
    p = NodeParameters(frame_prefix="left/")
    assert [p.frame(f) for f in ("torso", "odom", "world", "map", "")] == [
        "left/torso",
        "left/odom",
        "world",
        "map",
        "",
    ]
    assert [p.local_frame(f) for f in ("left/torso", "world", "")] == ["torso", "world", ""]
    assert NodeParameters().local_frame("torso") == "torso"
    for frame in ("torso", "right/torso", "odom"):
        with pytest.raises(ConfigError, match="does not belong to this robot, whose frames begin with 'left/'"):
            p.local_frame(frame)
    check_frame_prefix("left_1/arm-")
    for prefix in ("/left", "a b", "ä/"):
        with pytest.raises(ConfigError, match="frame_prefix"):
            check_frame_prefix(prefix)
