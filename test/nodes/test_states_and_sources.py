"""Power states times command sources, at the real driver over DDS: the robot moves only where the table allows it."""

import os
import signal
import time

import pytest

rclpy = pytest.importorskip("rclpy", reason="needs ROS 2")

from builtin_interfaces.msg import Time
from sensor_msgs.msg import JointState
from std_msgs.msg import Bool
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from test.nodes.interfaces import CONTROL_MSGS, with_package
from test.nodes.test_robot_driver import Desk
from test.nodes.test_trajectory_action import Planner

pytestmark = [pytest.mark.ros, pytest.mark.patient]
JOINT, WAY, STILL = "l_elbow_flexion", 0.2, 2e-3  # [rad]
HOUR = 3600  # [s]
ASKED = "stop was requested"
PATIENCE = 60.0  # multiple of usual lateness at which the driver faults, here 3 s: the machine may be busy


class Table(Desk):
    """A desk with every source of commands, and the way to every state."""

    def __init__(self, graph, fresh=False):
        super().__init__(graph, f"late_tolerance:={PATIENCE}", fresh=fresh)
        self.second = rclpy.create_node("second")
        self.others = self.second.create_publisher(JointState, "joint_commands", 5)
        self.gained = self.second.create_publisher(JointState, "joint_commands", 5)
        self.gains = self.second.create_publisher(JointState, "joint_gains", 5)
        self.plans = graph.publisher(JointTrajectory, "joint_trajectory")
        self.button = graph.publisher(Bool, "emergency_stop", 10)
        for p in (self.commands, self.others, self.gained, self.gains, self.plans, self.button):
            graph.until(lambda p=p: p.get_subscription_count() > 0, "the driver")
        self.start = self.q[JOINT]

    def stamp(self, age=0.0):
        ns = self.graph.node.get_clock().now().nanoseconds - int(1e9 * age)
        return Time(sec=ns // 10**9, nanosec=ns % 10**9)

    def single(self, publisher, stamp):
        goal = self.goal
        publisher.publish(JointState(header=_header(stamp), name=[JOINT], position=[goal]))

    def trajectory(self, age=0.0):
        m = JointTrajectory(header=_header(self.stamp(age) if age else Time()), joint_names=[JOINT])
        m.points.append(JointTrajectoryPoint(positions=[self.goal]))
        m.points[0].time_from_start.nanosec = 300_000_000
        self.plans.publish(m)

    def with_gains(self):
        stamp = self.stamp()
        self.gains.publish(JointState(header=_header(stamp), name=[JOINT], position=[50.0], velocity=[1.0]))
        self.single(self.gained, stamp)

    def action(self, age=0.0):
        """Send a goal of the action follow_joint_trajectory, and do not wait for its end."""
        if self.planner is None:
            self.planner = Planner(self.graph)
        goal = self.planner.goal((0.3, self.goal), joint=JOINT)
        goal.trajectory.header = _header(self.stamp(age) if age else Time())
        self.planner.send(goal)

    planner = None

    @property
    def at(self):
        self.graph.spin(0.05)
        return self.q[JOINT]

    def send(self, source, seconds=0.3):
        """Send a source far from where the robot is, as often as its kind is sent."""
        self.goal = self.start + (WAY if abs(self.at - self.start) < WAY / 2 else 0.0)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            SOURCES[source][0](self)
            self.graph.spin(0.02)
            if once(source):
                return

    def to_hold(self):
        """Power, and nothing commanded, from whatever state."""
        self.graph.spin(0.1)
        state = self.said[-1].data
        if state.startswith(("ESTOP", "FAULT")):
            self.button.publish(Bool(data=False))
            self.ask("emergency_stop", False)
            self.graph.until(lambda: self.ask("clear_faults")[0], "cleared faults")
            self.until("MONITOR")
        if (
            self.said[-1].data == "RUN"
        ):  # as after a trajectory, whose end is held, and for commands until they are missed
            self.graph.until(lambda: self.ask("stop")[0] or self.said[-1].data != "RUN", "a stop")
            self.until("HOLD")
        if self.said[-1].data.startswith("MONITOR") or ASKED in self.said[-1].data:
            self.graph.until(lambda: self.ask("enable", True)[0], "power")
        self.graph.until(lambda: self.said[-1].data.startswith("HOLD") and ASKED not in self.said[-1].data, "HOLD")

    def run_still(self):
        self.until("RUN", self.command(**{JOINT: self.at}))

    def stopped(self):
        self.run_still()
        assert self.ask("stop") == (True, "")
        self.until(ASKED)

    def estop(self):
        self.run_still()
        self.until("ESTOP", lambda: self.button.publish(Bool(data=True)))

    def fault(self):
        """A driver that stood still for longer than it may."""
        os.kill(self.process.pid, signal.SIGSTOP)
        time.sleep(0.05 * PATIENCE + 1.0)
        os.kill(self.process.pid, signal.SIGCONT)
        self.until("FAULT")

    def off(self):
        assert self.ask("enable", False)[0]
        self.until("MONITOR")


def _header(stamp):
    return JointState().header.__class__(stamp=stamp)


FORGOTTEN = 2.3  # [s] these drives follow a publisher of commands for two seconds after its last one


def once(source):
    """Whether a source is sent once, and not again and again."""
    return "trajectory" in source or "goal" in source


SOURCES = {  # how it is sent, and whether it may move a robot that follows commands
    "commands": (lambda t: t.single(t.commands, t.stamp()), True),
    "commands without a stamp": (lambda t: t.single(t.commands, Time()), True),
    "commands an hour old": (lambda t: t.single(t.commands, t.stamp(HOUR)), False),
    "commands of another node": (lambda t: t.single(t.others, t.stamp()), True),
    "a trajectory": (lambda t: t.trajectory(), True),
    "a trajectory that begins later": (lambda t: t.trajectory(-1.0), True),
    "a trajectory an hour old": (lambda t: t.trajectory(HOUR), False),
    "commands with gains, which these drives do not take": (lambda t: t.with_gains(), False),
    "a goal of the action": (lambda t: t.action(), True),
    "a goal of the action, an hour old": (lambda t: t.action(HOUR), False),
}
TOPICS = [name for name in SOURCES if "goal" not in name]
STATES = {  # how it is reached from HOLD, and whether the robot follows commands there
    "MONITOR": (Table.off, False),
    "HOLD": (lambda t: None, True),
    "RUN": (Table.run_still, True),
    "HOLD after a stop": (Table.stopped, False),
    "ESTOP": (Table.estop, False),
    "FAULT": (Table.fault, False),
}


@pytest.fixture
def table(graph):
    made = Table(graph)
    yield made
    made.second.destroy_node()


def check(table, state, sources):
    """Send sources in a state, then give power: the robot moves there and then, or never."""
    reach, follows = STATES[state]
    table.to_hold()
    reach(table)
    before = table.at
    for source in sources:
        table.send(source)
    where = f"{state}, {', '.join(sources)}"
    if follows and all(SOURCES[s][1] for s in sources):
        send = (lambda: None) if once(source) else lambda: SOURCES[source][0](table)
        table.graph.until(lambda: abs(table.q[JOINT] - table.goal) < 0.01, f"the goal: {where}", meanwhile=send)
        table.graph.spin(FORGOTTEN)
        return
    seen = len(table.states)
    table.graph.spin(0.3)
    table.to_hold()
    table.graph.spin(1.5)  # longer than any of them takes to begin and to end
    row = table.robot.index[JOINT]
    most = max(abs(m.position[row] - before) for m in table.states[seen:])
    assert most < STILL, f"moved by {most:.3f} rad: {where}"


def test_the_robot_moves_where_the_table_allows_it(table):
    """Sources that may not move it all together; one that may by itself."""
    check(table, "HOLD after a stop", TOPICS)
    check(table, "HOLD", ["commands"])


@pytest.mark.nightly
@pytest.mark.parametrize("state", STATES)
def test_every_source_in_every_state(table, state):
    for source in TOPICS:
        if not (state == "RUN" and once(source)):  # refused where commands are followed: another test
            check(table, state, [source])


@pytest.mark.nightly
def test_every_goal_of_the_action_in_every_state(graph, monkeypatch):
    """Its own driver, which finds control_msgs."""
    with_package("control_msgs", CONTROL_MSGS, monkeypatch)
    table = Table(graph, fresh=True)
    try:
        for state in STATES:
            for source in SOURCES:
                if "goal" in source and state != "RUN":
                    check(table, state, [source])
    finally:
        table.second.destroy_node()
