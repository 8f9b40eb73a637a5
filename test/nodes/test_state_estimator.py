"""The state estimator node, fed by the test."""

from types import SimpleNamespace

import numpy as np
import pytest

rclpy = pytest.importorskip("rclpy", reason="needs ROS 2")

from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger

from humanoid_control.estimation import JointFilter
from humanoid_control.nodes.base.health import Health
from humanoid_control.nodes.base.messages import stamp_of
from humanoid_control.nodes.state_estimator import JointInput
from humanoid_control.robots import load_robot

pytestmark = [pytest.mark.ros, pytest.mark.patient]


def test_estimates_position_and_velocity_and_survives_nan_and_silence(graph):
    robot = load_robot("hrp2")
    graph.start("state_estimator", "robot:=hrp2", "missed_warn:=100.0")  # a busy machine is no matter here
    estimates = graph.listen(JointState, "estimated_joint_states")
    publisher = graph.publisher(JointState, "joint_states")
    begin = graph.node.get_clock().now().nanoseconds

    def send(bad=False, position=None, twice=None):
        now = graph.node.get_clock().now()
        t = 1e-9 * (now.nanoseconds - begin)
        q = 0.2 * min(t, 3.0) * np.ones(robot.n)  # all joints can be there, or nearly
        if bad:
            q[4] = np.nan
        if position is not None:
            q[robot.index["l_elbow_flexion"]] = position
        m = JointState(name=list(robot.joint_names)[::-1], position=q[::-1].tolist())
        if twice is not None:
            m.name.append("l_elbow_flexion")
            m.position.append(twice)
        m.header.stamp = now.to_msg()
        publisher.publish(m)
        graph.spin(0.004)
        return t

    while send() < 1.5:
        pass
    assert estimates[-1].name == list(robot.joint_names)
    assert np.array(estimates[-1].velocity) == pytest.approx(0.2, abs=0.03)
    graph.until_said("state_estimator", f"not a number: {robot.joint_names[4]}", lambda: send(bad=True))
    assert all(np.isfinite(e.position).all() and np.isfinite(e.velocity).all() for e in estimates)
    graph.until_said("state_estimator", "ok", send)
    elbow = robot.index["l_elbow_flexion"]
    while send() < 3.5:  # at rest
        pass
    known = estimates[-1].position[elbow]
    for change, words in (
        ({"position": 1e308}, "l_elbow_flexion at 1e+308 rad (its range is"),
        ({"twice": known + 0.01}, "joint states name 'l_elbow_flexion' twice: ignored"),
    ):
        for _ in range(3):  # one among good ones, each at its own time
            send(**change)
            for _ in range(3):
                send()
        assert abs(estimates[-1].position[elbow] - known) < 0.02 and np.isfinite(estimates[-1].velocity).all()
        graph.until_said("state_estimator", words, lambda c=change: (send(**c), send()))
    q_moved = known + 1.0
    graph.until(lambda: abs(estimates[-1].position[elbow] - q_moved) < 0.01, "three agree", 2.0,
                lambda: send(position=q_moved))  # fmt: skip
    graph.until_said("state_estimator", "accepted, 3 in a row agree", lambda: send(position=q_moved))
    graph.spin(0.5)
    count = len(estimates)
    graph.spin(0.5)
    assert len(estimates) <= count + 5, "without joint states nothing is claimed"
    graph.until_said("state_estimator", "no joint states")
    assert graph.call(Trigger, "state_estimator/reset").success


@pytest.mark.nightly
def test_a_joint_whose_encoder_gives_nothing_any_more_is_left_out_until_it_does(graph):
    """Its last position would be taken for that of a joint at rest, whatever happens to it."""
    robot = load_robot("hrp2")
    graph.start("state_estimator", "robot:=hrp2", "missed_warn:=100.0")
    estimates = graph.listen(JointState, "estimated_joint_states")
    publisher = graph.publisher(JointState, "joint_states")
    blind, others = robot.joint_names[4], [*robot.joint_names[:4], *robot.joint_names[5:]]

    def send(q=0.1):
        m = JointState(name=list(robot.joint_names), position=[0.1] * robot.n)
        m.position[4] = q
        m.header.stamp = graph.node.get_clock().now().to_msg()
        publisher.publish(m)

    for q in (np.nan, 1e308):
        graph.until(lambda: estimates and blind in estimates[-1].name, "all joints", meanwhile=send)
        begin = len(estimates)
        graph.until(lambda: blind not in estimates[-1].name, "it to be left out", 5.0, lambda q=q: send(q))
        assert estimates[-1].name == others and len(estimates[-1].position) == len(others)
        assert len(estimates) - begin > 10, "one sample that is lost is none that counts"
        graph.until_said("state_estimator", blind, lambda q=q: send(q))


def test_two_drivers_that_each_measure_some_joints_do_not_disturb_each_other():
    """Legs 1 ms after arms: a joint keeps its speed, and nothing is claimed of it at the other driver's time."""
    robot, health = load_robot("hrp2"), Health(lambda level, text: None)
    joints = JointFilter(robot.joint_names, 30.0)
    node = SimpleNamespace(health=health, listen=lambda *args: None, clock=lambda: t)
    entry = JointInput(node, robot, joints, np.ones(robot.n, dtype=bool))
    halves = np.array_split(np.arange(robot.n), 2)
    for k in range(500):
        for i, own in enumerate(halves):
            t = 0.004 * k + 0.001 * i
            m = JointState(name=[robot.joint_names[j] for j in own], position=[0.2 * t] * len(own))
            m.header.stamp = stamp_of(round(1e9 * t))
            entry.on_joint_states(m)
            assert "missing" not in health.open
    assert joints.velocity == pytest.approx(0.2, abs=1e-6)

    for k in range(300):
        m, t = (
            JointState(name=[robot.joint_names[j] for j in halves[0]], position=[0.0] * len(halves[0])),
            2 + 0.004 * k,
        )
        m.header.stamp = stamp_of(round(1e9 * t))
        entry.on_joint_states(m)
    assert robot.joint_names[halves[1][0]] in health.open["missing"][1], "the second driver is silent"
