"""The bridge to a controller of ros2_control, over DDS, with a small node that has exactly a controller's topics."""

import time

import numpy as np
import pytest

rclpy = pytest.importorskip("rclpy", reason="needs ROS 2")

from rclpy.parameter import Parameter
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import JointTrajectory

from humanoid_control.robots import load_robot

pytestmark = [pytest.mark.ros, pytest.mark.patient]
ROBOT = load_robot("hrp2", "fixed")
JOINTS = [n for n in ROBOT.joint_names if "elbow" in n or "shoulder" in n][::-1]
FAST = ("soft_start:=0.3", "soft_speed:=2.0", "command_timeout:=0.6")  # a busy test sends late now and then


class Controller:
    """What forward_command_controller and joint_trajectory_controller have: a parameter `joints`, a command topic.

    Attributes:
        got: (time, positions) of every command. points: of trajectories.
    """

    def __init__(self, graph, name, joints, kind):
        self.node = rclpy.create_node(name)
        self.node.declare_parameter("joints", joints)
        self.got, self.points, self.joints = [], [], joints
        topic = "commands" if kind is Float64MultiArray else "joint_trajectory"
        self.node.create_subscription(kind, f"~/{topic}", self.take, 1000)  # none is lost while this process waits
        self.graph = graph
        graph.executor.add_node(self.node)

    def take(self, m):
        if isinstance(m, Float64MultiArray):
            self.got.append((time.monotonic(), np.array(m.data)))
            return
        assert m.joint_names == self.joints and len(m.points) == 1
        self.points.append(m.points[0])
        self.got.append((time.monotonic(), np.array(m.points[0].positions)))

    def close(self):
        self.graph.executor.remove_node(self.node)
        self.node.destroy_node()


class Robot:
    """Joint states of a robot that is where its controller commands it, and commands for the bridge."""

    def __init__(self, graph, controller):
        self.graph, self.controller = graph, controller
        self.q = ROBOT.postures["neutral"].copy()
        self.rows = [ROBOT.index[j] for j in JOINTS]
        self.states = graph.publisher(JointState, "joint_states")
        self.commands = graph.publisher(JointState, "joint_commands")

    def measure(self):
        if self.controller.got and len(self.controller.got[-1][1]) == len(self.rows):
            self.q[self.rows] = self.controller.got[-1][1]
        self.states.publish(JointState(name=list(ROBOT.joint_names), position=self.q.tolist()))

    def command(self, target, **more):
        def send():
            self.measure()
            names = list(ROBOT.joint_names)
            self.commands.publish(JointState(name=names, position=list(map(float, target)), **more))

        return send


@pytest.fixture
def started(graph):
    made = []

    def start(*parameters, name="forward_position_controller", joints=JOINTS, kind=Float64MultiArray):
        controller = Controller(graph, name, joints, kind)
        made.append(controller)
        graph.start("controller_bridge", "robot:=hrp2", f"controller:={name}", *FAST, *parameters)
        return controller, Robot(graph, controller)

    yield start
    for controller in made:
        controller.close()


def near(controller, target, tolerance=1e-3):
    rows = [ROBOT.index[j] for j in JOINTS]
    return bool(controller.got) and np.abs(controller.got[-1][1] - target[rows]).max() < tolerance


def test_commands_are_blended_to_in_the_controllers_order_and_held_when_they_cease(graph, started):
    controller, robot = started()
    goal = ROBOT.postures["neutral"] + 0.25 * np.where(ROBOT.postures["neutral"] > 0, -1, 1)
    goal = np.clip(goal, ROBOT.lower + 0.05, ROBOT.upper - 0.05)
    graph.until(lambda: near(controller, goal), "at the commands", meanwhile=robot.command(goal))
    sent = np.array([q for _, q in controller.got])
    assert np.abs(sent[0] - ROBOT.postures["neutral"][robot.rows]).max() < 0.02, "it begins where the robot is"
    period = 1 / 250
    limit = 0.5 * ROBOT.velocity[robot.rows]
    assert (np.abs(np.diff(sent, axis=0)) <= limit * period + 1e-9).all()
    said = graph.until_said("controller_bridge", "joint_commands silent for 0.6 s: at rest", robot.measure)
    assert said["following"] == "IDLE" and int(said["joints"]) == len(JOINTS)

    def quiet():
        count = len(controller.got)
        graph.spin(0.5)  # commands that were under way may come at first
        return len(controller.got) == count

    graph.until(quiet, "nothing to be sent while nothing is commanded")
    back = robot.command(ROBOT.postures["neutral"])
    graph.until(lambda: near(controller, ROBOT.postures["neutral"]), "commands are followed again", meanwhile=back)


def test_a_wild_command_stays_inside_the_limits_and_a_wrong_one_is_named(graph, started):
    controller, robot = started()
    wild = np.where(np.arange(ROBOT.n) % 2, 1e6, -1e6)
    wild[robot.rows[0]] = np.nan
    neutral = ROBOT.postures["neutral"]
    graph.until(lambda: len(controller.got) > 5, "commands", meanwhile=robot.command(neutral))
    graph.until(lambda: len(controller.got) > 150, "wild commands", meanwhile=robot.command(wild))
    sent = np.array([q for _, q in controller.got])
    assert np.isfinite(sent).all()
    assert (sent >= ROBOT.lower[robot.rows]).all() and (sent <= ROBOT.upper[robot.rows]).all()
    assert np.ptp(sent[:, 0]) < 0.02, "a joint whose command is not a number stays"

    def wrong():
        robot.commands.publish(JointState(name=["l_elbow_flexoin"], position=[0.0]))
        robot.measure()

    graph.until_said("controller_bridge", "unknown joint 'l_elbow_flexoin'", wrong)


def test_a_trajectory_controller_gets_points_two_periods_ahead(graph, started):
    controller, robot = started("output:=trajectory", name="joint_trajectory_controller", kind=JointTrajectory)
    goal = np.clip(ROBOT.postures["neutral"] + 0.2, ROBOT.lower + 0.05, ROBOT.upper - 0.05)
    graph.until(lambda: near(controller, goal), "at the commands", meanwhile=robot.command(goal))
    point = max(controller.points, key=lambda p: np.abs(p.velocities).max())
    assert len(point.velocities) == len(JOINTS) and np.abs(point.velocities).max() > 0.05
    assert point.time_from_start.sec == 0 and point.time_from_start.nanosec == 8_000_000
    at_rest = lambda: np.abs(controller.points[-1].velocities).max() < 1e-2  # noqa: E731
    graph.until(at_rest, "rest at a goal that stands still", meanwhile=robot.command(goal))


def test_a_controller_with_other_joints_is_refused_and_one_that_goes_away_is_waited_for(graph, started):
    controller, robot = started(joints=[*JOINTS[:2], "gripper"])
    neutral = robot.command(ROBOT.postures["neutral"])
    graph.until_said("controller_bridge", "unknown joint 'gripper'", neutral)
    assert not controller.got
    controller.close()
    graph.until_said("controller_bridge", "forward_position_controller/commands has no subscriber", neutral)
    controller.__init__(graph, "forward_position_controller", JOINTS, Float64MultiArray)
    graph.until(lambda: controller.got, "the right controller gets commands", meanwhile=neutral)
    assert len(controller.got[-1][1]) == len(JOINTS)
    controller.node.set_parameters([Parameter("joints", value=JOINTS)])
