"""The action follow_joint_trajectory of the driver, with a real client over DDS and real messages; loopback drives."""

import time

import pytest

pytest.importorskip("rclpy", reason="needs ROS 2")

from action_msgs.msg import GoalStatus
from rclpy.action import ActionClient
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint, MultiDOFJointTrajectoryPoint

from test.nodes.interfaces import CONTROL_MSGS, with_package
from test.nodes.test_robot_driver import Desk

pytestmark = [pytest.mark.ros, pytest.mark.patient]
ELBOW = "l_elbow_flexion"
SUCCEEDED, CANCELED, ABORTED = (
    GoalStatus.STATUS_SUCCEEDED, GoalStatus.STATUS_CANCELED, GoalStatus.STATUS_ABORTED,
)  # fmt: skip


class Planner:
    """A client of the action, as a motion planner is one."""

    def __init__(self, graph):
        from control_msgs.action import FollowJointTrajectory
        from control_msgs.msg import JointTolerance

        self.graph, self.action, self.tolerance = graph, FollowJointTrajectory, JointTolerance
        self.client = ActionClient(graph.node, FollowJointTrajectory, "follow_joint_trajectory")
        self.feedback = []
        graph.until(self.client.server_is_ready, "the action")

    def goal(self, *points, joint=ELBOW, path=None, end=None, time=0.0):
        """A goal of (time [s], angle [rad]); tolerances of positions."""
        g = self.action.Goal(trajectory=JointTrajectory(joint_names=[joint]))
        for at, angle in points:
            p = JointTrajectoryPoint(positions=[angle], velocities=[0.0])
            p.time_from_start.sec, p.time_from_start.nanosec = int(at), int(1e9 * (at % 1))
            g.trajectory.points.append(p)
        if path is not None:
            g.path_tolerance.append(self.tolerance(name=joint, position=path))
        if end is not None:
            g.goal_tolerance.append(self.tolerance(name=joint, position=end))
        g.goal_time_tolerance.sec, g.goal_time_tolerance.nanosec = int(time), int(1e9 * (time % 1))
        return g

    def send(self, goal):
        """Send a goal: its handle, and the future of its result."""
        self.feedback.clear()
        sent = self.client.send_goal_async(goal, feedback_callback=lambda m: self.feedback.append(m.feedback))
        self.graph.until(sent.done, "an answer to the goal")
        handle = sent.result()
        assert handle.accepted
        return handle, handle.get_result_async()

    def result(self, future, meanwhile=None):
        """Status, code and text of a result."""
        self.graph.until(future.done, "a result", meanwhile=meanwhile)
        r = future.result()
        return r.status, r.result.error_code, r.result.error_string

    def execute(self, goal):
        """Send a goal and wait for its end."""
        return self.result(self.send(goal)[1])


class Arm(Desk):
    """A driver in a process that finds control_msgs, of which one elbow is moved."""

    def __init__(self, graph, *parameters):
        super().__init__(graph, *parameters, fresh=True)

    def until_rest(self):
        """Wait until the elbow rests, in a state in which goals are taken."""
        k, taken = self.robot.index[ELBOW], ("HOLD", "RUN")
        self.graph.until(
            lambda: abs(self.states[-1].velocity[k]) < 1e-3 and self.said[-1].data.startswith(taken), "rest"
        )


@pytest.fixture
def planner_of(graph, monkeypatch):
    """A driver on loopback drives, and a planner."""
    with_package("control_msgs", CONTROL_MSGS, monkeypatch)

    def make(*parameters):
        return Arm(graph, *parameters), Planner(graph)

    return make


@pytest.mark.nightly
def test_goals_are_executed_watched_and_refused(graph, planner_of):
    desk, planner = planner_of("path_tolerance:=0.1")
    start = desk.q[ELBOW]
    status, code, text = planner.execute(planner.goal((1.0, start + 0.1)))
    assert (status, code) == (ABORTED, -1) and "state is MONITOR" in text

    assert desk.ask("enable", True)[0]
    desk.until("HOLD")
    assert planner.execute(planner.goal((0.6, start + 0.2))) == (SUCCEEDED, 0, "")
    assert abs(desk.q[ELBOW] - start - 0.2) < 0.021 and "RUN" in desk.said[-1].data
    f = planner.feedback[-1]
    assert len(planner.feedback) > 5 and f.joint_names == [ELBOW] and f.header.stamp.sec > 0
    assert f.error.positions[0] == pytest.approx(f.desired.positions[0] - f.actual.positions[0])
    assert max(abs(x.error.positions[0]) for x in planner.feedback) < 0.1
    times = [x.desired.time_from_start.sec + 1e-9 * x.desired.time_from_start.nanosec for x in planner.feedback]
    assert times == sorted(times) and 0.4 < times[-1] < 1.2

    bad = planner.goal((1.0, start), joint="l_elbw")
    assert planner.execute(bad)[:2] == (ABORTED, -2)
    assert "did you mean" in graph.until_said("robot_driver", "unknown joint")["message"]
    status, code, text = planner.execute(planner.goal((1.0, 9.0)))
    assert (status, code) == (ABORTED, -1) and "its range is" in text
    old = planner.goal((1.0, start))
    old.trajectory.header.stamp.sec = int(time.time()) - 60
    assert planner.execute(old)[:2] == (ABORTED, -3)
    many = planner.goal((1.0, start))
    many.multi_dof_trajectory.points.append(MultiDOFJointTrajectoryPoint())
    assert planner.execute(many)[:2] == (ABORTED, -1)

    # Farther than its speed allows in this time: behind on the way, or, where that may be, at the end.
    status, code, text = planner.execute(planner.goal((0.5, start + 1.2)))
    assert (status, code) == (ABORTED, -4) and f"{ELBOW} 0." in text and "(tolerance 0.1)" in text
    desk.until_rest()
    assert start + 0.2 < desk.q[ELBOW] < start + 1.0, "it stays where it stopped"
    status, code, text = planner.execute(planner.goal((0.1, start), path=-1.0, time=0.05))
    assert (status, code) == (ABORTED, -5) and "off the goal (tolerance 0.02)" in text
    desk.until_rest()
    assert planner.execute(planner.goal((0.1, start + 0.2), path=-1.0, end=0.1, time=30.0)) == (SUCCEEDED, 0, "")


def test_goals_are_cancelled_and_replaced(graph, planner_of):
    desk, planner = planner_of()
    start = desk.q[ELBOW]
    assert desk.ask("enable", True)[0]
    desk.until("HOLD")
    handle, result = planner.send(planner.goal((20.0, start + 1.0)))
    graph.until(lambda: desk.q[ELBOW] > start + 0.02, "motion")
    cancelled = handle.cancel_goal_async()
    graph.until(cancelled.done, "an answer")
    assert planner.result(result)[0] == CANCELED
    desk.until_rest()
    rest = desk.q[ELBOW]
    assert rest < start + 0.5
    n = len(desk.states)
    graph.until(lambda: len(desk.states) > n + 60, "more states")
    assert abs(desk.q[ELBOW] - rest) < 1e-3 and "RUN" in desk.said[-1].data

    _, first = planner.send(planner.goal((20.0, start + 1.0)))
    _, second = planner.send(planner.goal((20.0, start)))
    status, code, text = planner.result(first)
    assert (status, code) == (ABORTED, -1) and "another goal" in text
    assert not second.done()
    trajectory = graph.publisher(JointTrajectory, "joint_trajectory")
    other = planner.goal((20.0, start + 1.0)).trajectory
    status, code, text = planner.result(second, lambda: trajectory.publish(other))
    assert (status, code) == (ABORTED, -1) and "another source is commanding" in text


@pytest.mark.nightly
def test_what_was_stopped_is_not_gone_on_with(graph, planner_of):
    desk, planner = planner_of()
    start = desk.q[ELBOW]
    assert desk.ask("enable", True)[0]
    desk.until("HOLD")
    _, third = planner.send(planner.goal((20.0, start + 0.1)))
    graph.until(lambda: planner.feedback, "feedback")
    assert desk.ask("stop")[0]
    status, code, text = planner.result(third)
    assert (status, code) == (ABORTED, -1) and "stop" in text.lower()
    states = len(desk.states)
    graph.until(lambda: len(desk.states) > states + 60, "silence")
    assert desk.ask("enable", True)[0]
    graph.until(lambda: desk.said[-1].data == "HOLD", "a stop that is taken back")
    n, states = len(desk.said), len(desk.states)
    graph.until(lambda: len(desk.states) > states + 100, "more states")
    assert len(desk.said) == n, "what was stopped is not gone on with"
    assert graph.stop(desk.process)[0] == 0, "the action server is withdrawn and the node leaves"
