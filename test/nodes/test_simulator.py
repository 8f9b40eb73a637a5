"""The simulator node: what it publishes, how it answers commands, good and bad."""

import os
import signal
import time

import numpy as np
import pytest
import yaml

rclpy = pytest.importorskip("rclpy", reason="needs ROS 2")

from geometry_msgs.msg import PoseStamped, WrenchStamped
from nav_msgs.msg import Odometry
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import String
from std_srvs.srv import SetBool, Trigger

from humanoid_control.nodes.base.command_owner import Claim
from humanoid_control.nodes.base.messages import GROUND_TRUTH, LATCHED, seconds
from humanoid_control.robots import load_robot
from humanoid_control.session.supervisor import Supervisor, node_command

pytestmark = [pytest.mark.ros, pytest.mark.patient]


def command(robot, position, velocity=None, names=None):
    m = JointState(name=list(names or robot.joint_names), position=list(map(float, position)))
    m.velocity = [0.0] * len(m.name) if velocity is None else list(map(float, velocity))
    return m


def test_publishes_the_robot_and_obeys_commands(graph):
    robot = load_robot("wabian2", "fixed")
    graph.start("simulator", "robot:=wabian2", "stamp:=sim")
    states, imu = graph.listen(JointState, "joint_states"), graph.listen(Imu, "imu")
    odometry, clock = graph.listen(Odometry, GROUND_TRUTH), graph.listen(Clock, "/clock")
    description = graph.listen(String, "robot_description", LATCHED)
    graph.until(lambda: states and imu and odometry and clock and description, "all topics")
    assert 'name="wabian2"' in description[0].data
    assert set(states[-1].name) == set(robot.joint_names)
    assert len(states[-1].position) == len(states[-1].velocity) == len(states[-1].effort) == robot.n
    a = imu[-1].linear_acceleration
    assert (a.x, a.y, a.z) == pytest.approx((0, 0, 9.81), abs=0.2)
    assert odometry[-1].pose.pose.position.z == pytest.approx(robot.X_world_root.translation[2], abs=1e-3)

    publisher = graph.publisher(JointState, "joint_commands")
    k = robot.joint_index("l_elbow_flexion")
    goal = robot.postures["neutral"].copy()
    goal[k] = 1.2
    order = list(states[-1].name)

    def elbow():
        publisher.publish(command(robot, goal))
        return states and abs(states[-1].position[order.index("l_elbow_flexion")] - 1.2) < 0.03

    graph.until(elbow, "the elbow to bend")
    response = graph.call(Trigger, "simulator/reset")
    assert response.success
    graph.until(
        lambda: abs(states[-1].position[order.index("l_elbow_flexion")] - robot.postures["neutral"][k]) < 0.05, "reset"
    )


@pytest.mark.timed
def test_rate_is_kept_and_said(graph):
    graph.start("simulator", "robot:=hrp2", "rate:=200.0")
    graph.listen(JointState, "joint_states")
    graph.spin(1.5)
    values = graph.diagnostics("simulator")
    assert float(values["rate_hz"]) == pytest.approx(200, rel=0.3), "500 is the default"
    assert values["state"] == "active"
    assert 0 < float(values["execution_p50_ms"]) < 20


@pytest.mark.nightly
def test_stamps_of_every_stream_grow_when_the_simulator_is_stalled(graph):
    """Stopped again and again for longer than many periods, it catches up: no message is older than the one before."""
    process = graph.start("simulator", "robot:=hrp2", "rate:=500.0", "slow_every:=2")
    streams = {name: graph.listen(m, name) for name, m in (("joint_states", JointState), ("imu", Imu))}
    streams["odometry"] = graph.listen(Odometry, GROUND_TRUTH)
    graph.until(lambda: all(streams.values()), "all streams")
    for _ in range(25):
        os.kill(process.pid, signal.SIGSTOP)
        graph.spin(0.03)
        os.kill(process.pid, signal.SIGCONT)
        graph.spin(0.05)
    for name, heard in streams.items():
        stamps = [m.header.stamp.sec * 10**9 + m.header.stamp.nanosec for m in heard]
        assert len(stamps) > 50 and (np.diff(stamps) > 0).all(), name


def test_wrong_commands_are_held_and_reported(graph):
    robot = load_robot("hrp2", "fixed")
    graph.start("simulator", "robot:=hrp2", "rate:=200.0", "command_timeout:=1.0")
    states = graph.listen(JointState, "joint_states")
    publisher = graph.publisher(JointState, "joint_commands")
    short = JointState(name=list(robot.joint_names), position=[0.1])
    unknown = command(robot, np.zeros(1), names=["l_elbow_flexon"])
    endless = JointState(name=["l_elbow_flexion"], effort=[np.inf])
    for message, words in (
        (endless, "effort of l_elbow_flexion is inf, the maximum is"),
        (short, "without a position"),
        (unknown, "l_elbow_flexon (did you mean l_elbow_flexion?)"),
        (
            JointState(name=["l_elbow_flexion"], position=[1e308], velocity=[1.0]),
            "l_elbow_flexion at 1e+308 rad (its r",
        ),
        (
            JointState(name=["l_elbow_flexion"], velocity=[-1e308]),
            "velocity of l_elbow_flexion is -1e+308, the maximum is",
        ),
        (JointState(name=["l_elbow_flexion"] * 2, position=[0.1, 0.9]), "names joint 'l_elbow_flexion' twice"),
    ):
        graph.until_said("simulator", words, lambda m=message: publisher.publish(m))
        assert all(np.isfinite(s.position).all() for s in states)
    moved = np.ptp([dict(zip(s.name, s.position, strict=True))["l_elbow_flexion"] for s in states])
    assert moved < 0.1, "nothing of a refused command is followed, not its velocity either"
    graph.until_said("simulator", "ok", lambda: publisher.publish(command(robot, robot.postures["neutral"])))
    far = command(robot, np.full(robot.n, 50.0))
    for _ in range(50):
        publisher.publish(far)
        graph.spin(0.02)
    order = [list(states[-1].name).index(n) for n in robot.joint_names]
    assert (np.array(states[-1].position)[order] <= robot.upper + 0.05).all(), (
        "a command far beyond the range moves nothing"
    )


@pytest.mark.nightly
def test_a_joint_whose_number_is_none_is_not_commanded_and_the_others_are(graph):
    """NaN stands for "not commanded" where ros2_control commands; a message of nothing else is no command."""
    robot = load_robot("hrp2", "fixed")
    graph.start("simulator", "robot:=hrp2", "rate:=200.0", "missed_warn:=100.0")
    states = graph.listen(JointState, "joint_states")
    publisher = graph.publisher(JointState, "joint_commands")
    left, right = robot.joint_index("l_elbow_flexion"), robot.joint_index("r_elbow_flexion")
    neutral, none = robot.postures["neutral"], np.full(robot.n, np.nan)

    def send(velocity=None, **angles):
        q = neutral.copy()
        for name, angle in angles.items():
            q[robot.joint_index(f"{name}_elbow_flexion")] = angle
        return lambda: publisher.publish(command(robot, q, velocity))

    def at(k):
        return states[-1].position[list(states[-1].name).index(robot.joint_names[k])]

    graph.until(lambda: states and abs(at(left) - 1.2) < 0.03, "the left", meanwhile=send(l=1.2, r=np.nan))
    assert (
        abs(at(right) - neutral[right]) < 0.05 and graph.diagnostics("simulator", send(l=1.2, r=np.nan))["level"] == 0
    )
    heard, again = len(states), send(l=np.nan, r=1.3)
    graph.until(lambda: abs(at(right) - 1.3) < 0.03, "the right", meanwhile=again)
    assert abs(at(left) - 1.2) < 0.05, "a joint that is not commanded any more stays"
    k = list(states[-1].name).index(robot.joint_names[right])
    speeds = [abs(s.velocity[k]) for s in states[heard:]]
    assert max(speeds) < 1.05 * robot.velocity[right], "a joint that is commanded anew is led to its command"

    turn, wheel = none.copy(), JointState(name=list(robot.joint_names), velocity=none.tolist())
    turn[left] = -0.4
    wheel.velocity = turn.tolist()
    graph.until(lambda: at(left) < 1.0, "it to turn", meanwhile=lambda: publisher.publish(wheel))
    others = none.copy()
    others[right] = 1.3
    graph.spin(0.1)
    graph.until(
        lambda: abs(states[-1].velocity[list(states[-1].name).index("l_elbow_flexion")]) < 0.01,
        "it to be held, though other joints are commanded",
        meanwhile=lambda: publisher.publish(command(robot, others)),
    )
    said = graph.until_said("simulator", "no commands", lambda: publisher.publish(command(robot, none)))
    assert said["level"] == 1, "nothing but NaN is silence"


@pytest.mark.nightly
def test_stands_on_the_ground_with_a_floating_base(graph):
    graph.start("simulator", "robot:=suralp", "base:=floating", "rate:=100.0", "step:=0.002")
    odometry = graph.listen(Odometry, GROUND_TRUTH)
    graph.until(lambda: len(odometry) > 40, "odometry")
    heights = [o.pose.pose.position.z for o in odometry]
    assert min(heights) > 0.6 and max(heights) - min(heights) < 0.03


def test_paused_it_steps_on_request_and_the_same_seed_gives_the_same_bytes(graph):
    """Two simulators, the same commands at the same simulated times, bad sensors: the same messages, byte by byte."""
    robot = load_robot("wabian2", "fixed")
    own = ("slow_every:=2", "command_timeout:=0.02", "real_time_factor:=0.1")  # once it runs, messages come slowly
    settings = ("robot:=wabian2", "rate:=500.0", "paused:=true", "stamp:=sim", "seed:=3", *own)
    bad_sensors = ("noise:=position=0.001,velocity=0.01,gyro=0.1", "delay:=joint_states=0.004", "dropout:=imu=0.3")
    goal = command(robot, robot.from_mapping({"l_elbow_flexion": 1.0}))
    spin = JointState(name=["r_elbow_flexion"], velocity=[0.5])
    heard = {}
    for name in ("left", "right"):
        process = graph.start("simulator", *settings, *bad_sensors, args=("-r", f"__ns:=/{name}"))
        states, imu = graph.listen(JointState, f"/{name}/joint_states"), graph.listen(Imu, f"/{name}/imu")
        clock = graph.listen(Clock, "/clock")
        publisher = graph.publisher(JointState, f"/{name}/joint_commands")
        step = graph.node.create_client(Trigger, f"/{name}/simulator/step")
        graph.until(step.service_is_ready, "the step service")
        for k in range(24):
            if k in (2, 10):
                for _ in range(10):  # time stands still: hearing it twice changes nothing
                    publisher.publish(goal if k == 2 else spin)
                    graph.spin(0.02)
            answer = step.call_async(Trigger.Request())
            # an answer is lost where the client was found late: the clock says that the step was made
            graph.until(lambda k=k, c=clock: c and seconds(c[-1].clock) >= 0.002 * (k + 1) - 1e-9, "a step")
            assert not answer.done() or answer.result().success
        graph.spin(0.2)
        found = {round(1e6 * seconds(m.header.stamp)): m for m in states}
        assert max(found) == 48000 and 0 not in found, "with a delay there is nothing to read at first"
        assert len(found) >= 20, "stamps are simulated time, one message a step"
        fields = {t: (m.position.tobytes(), m.velocity.tobytes(), m.effort.tobytes()) for t, m in found.items()}
        elbow = robot.joint_index("r_elbow_flexion")
        speed = {t: m.velocity[elbow] for t, m in found.items()}
        assert max(speed.values()) > 0.15 and speed[48000] < 0.5 * max(speed.values()), "held once commands cease"
        turns = {seconds(m.header.stamp): (m.angular_velocity.x, m.angular_velocity.y) for m in imu}
        assert len(turns) < 12, "some are lost"
        assert graph.call(SetBool, f"/{name}/simulator/pause", SetBool.Request(data=False)).message == "running"
        assert not graph.call(Trigger, f"/{name}/simulator/step").success
        heard[name] = (fields, turns)
        graph.stop(process)
    for left, right in zip(*heard.values(), strict=True):
        common = left.keys() & right.keys()
        assert len(common) > 4 and all(left[t] == right[t] for t in common)


def test_pushes_states_from_outside_and_foot_wrenches_in_mujoco(graph):
    pytest.importorskip("mujoco")
    robot = load_robot("suralp", "floating")
    graph.start("simulator", "robot:=suralp", "base:=floating", "engine:=mujoco", "rate:=100.0", "step:=0.002")
    odometry, states = graph.listen(Odometry, GROUND_TRUTH), graph.listen(JointState, "joint_states")
    feet = [graph.listen(WrenchStamped, f"wrench/{foot}") for foot in ("l_foot", "r_foot")]
    graph.until(lambda: all(len(f) > 20 for f in feet), "wrenches")
    assert feet[0][-1].header.frame_id == "l_foot_sole"
    assert sum(f[-1].wrench.force.z for f in feet) == pytest.approx(9.81 * robot.mass, rel=0.03)

    push = graph.publisher(WrenchStamped, "simulator/push")
    wrench = WrenchStamped()
    wrench.header.frame_id = "base_linc"
    graph.until_said("simulator", "unknown link 'base_linc': did you mean base_link", lambda: push.publish(wrench))
    wrench.header.frame_id, wrench.wrench.force.y = "base_link", 150.0
    push.publish(wrench)
    graph.until(lambda: abs(odometry[-1].twist.twist.linear.y) > 0.02, "the push")

    base, state = graph.publisher(PoseStamped, "simulator/set_base"), graph.publisher(JointState, "simulator/set_state")
    up = PoseStamped()
    up.pose.position.z, up.pose.orientation.w = 3.0, 1.0
    lift = lambda: base.publish(up)  # noqa: E731
    graph.until(lambda: odometry[-1].pose.pose.position.z > 1.5, "the robot in the air", meanwhile=lift)
    bent, k = JointState(name=["l_elbow_flexion"], position=[1.1]), robot.joint_index("l_elbow_flexion")
    graph.until(lambda: abs(states[-1].position[k] - 1.1) < 0.05, "it bent", meanwhile=lambda: state.publish(bent))
    assert graph.call(Trigger, "simulator/reset").success
    graph.until(lambda: abs(odometry[-1].pose.pose.position.z - robot.X_world_root.translation[2]) < 0.02, "reset")


def test_a_diverged_world_stops_says_so_and_recovers(graph):
    graph.start("simulator", "robot:=armar3", "rate:=200.0", "stamp:=sim")
    states, clock = graph.listen(JointState, "joint_states"), graph.listen(Clock, "/clock")
    push = graph.publisher(WrenchStamped, "simulator/push")
    wrench = WrenchStamped()
    wrench.header.frame_id, wrench.wrench.force.x = "l_hand", 1e14
    graph.until(lambda: states and clock, "time")
    graph.until_said("simulator", "the simulation diverged at", lambda: push.publish(wrench))
    at = seconds(clock[-1].clock)
    graph.spin(0.5)
    assert seconds(clock[-1].clock) == at and np.isfinite(states[-1].position).all()
    assert graph.call(Trigger, "simulator/reset").success
    assert "diverged" not in graph.diagnostics("simulator")["message"]
    graph.until(lambda: 0.2 < seconds(clock[-1].clock) < at + 60, "time to pass")


@pytest.mark.nightly
def test_faster_than_it_can_it_says_how_fast_it_is_and_still_listens(graph):
    graph.start("simulator", "robot:=armar3", "real_time_factor:=100.0", "stamp:=sim")
    clock = graph.listen(Clock, "/clock")
    said = graph.until_said("simulator", "simulation too slow")
    assert "requested 100" in said["message"] and 0.2 < float(said["real_time_factor"]) < 100, "also on a busy machine"
    assert graph.call(SetBool, "simulator/pause", SetBool.Request(data=True)).success
    graph.spin(0.3)
    at = seconds(clock[-1].clock)
    graph.spin(0.5)
    assert seconds(clock[-1].clock) == at > 0.5


@pytest.mark.nightly
def test_one_simulator_of_a_domain_has_the_clock_and_the_next_takes_over(graph):
    """The second says who is first. With time of the computer in the headers there is no clock at all."""
    clock = graph.listen(Clock, "/clock")
    own = ("robot:=hrp2", "rate:=50.0", "stamp:=sim")
    wall = graph.start("simulator", "robot:=hrp2", "rate:=50.0", args=("-r", "__ns:=/wall"))
    graph.until(lambda: graph.diagnostics("/wall/simulator")["state"] == "active", "a running simulator")
    assert graph.node.count_publishers("/clock") == 0 and not clock
    graph.stop(wall)
    first = graph.start("simulator", *own, "real_time_factor:=0.5", args=("-r", "__ns:=/left"))
    graph.until(lambda: clock, "the clock")
    graph.start("simulator", *own, args=("-r", "__ns:=/right"))
    said = graph.until_said("/right/simulator", "/clock is published by /left/simulator")
    assert said["level"] == 2
    graph.until(lambda: graph.node.count_publishers("/clock") == 1, "the second to give its clock up")
    times = np.array([seconds(m.clock) for m in clock])
    assert (np.diff(times) >= 0).all() and len(times) > 10, "it never jumps back"
    graph.stop(first)
    names = graph.node.get_publishers_info_by_topic
    graph.until(lambda: [i.node_namespace for i in names("/clock")] == ["/right"], "the second to take over")
    graph.until(lambda: "/clock" not in graph.diagnostics("/right/simulator")["message"], "no more complaint")


@pytest.mark.nightly
def test_many_steps_at_once_are_not_taken_for_a_hang(graph, tmp_path):
    said = []
    supervisor = Supervisor(tmp_path / "run", lambda name, text: said.append(text))
    own = {"robot": "hrp2", "rate": 30.0, "priority": 0, "paused": True, "step_periods": 10000, "base": "floating"}
    file = tmp_path / "parameters.yaml"
    file.write_text(yaml.safe_dump({"simulator": {"ros__parameters": own}}))
    try:
        supervisor.start("simulator", node_command("humanoid_control.nodes.simulator", file))
        supervisor.wait_ready()
        step = graph.node.create_client(Trigger, "simulator/step")
        graph.until(step.service_is_ready, "the step service", meanwhile=supervisor.watch)
        answer, begin = step.call_async(Trigger.Request()), time.monotonic()
        graph.until(answer.done, "all steps", meanwhile=supervisor.watch)
        assert answer.result().success and time.monotonic() - begin > 1.5, "long enough to be a hang"
        assert not [text for text in said if "stood still" in text]
    finally:
        supervisor.stop()


def test_a_clock_that_the_graph_does_not_show_yet_is_none_to_publish_beside(graph):
    """On a busy machine the graph shows another simulator after seconds; its claim is there at once."""
    clock, claim = graph.listen(Clock, "/clock"), Claim("/clock", graph.node.context.get_domain_id())
    assert claim.take()
    graph.start("simulator", "robot:=hrp2", "rate:=50.0", "stamp:=sim")
    said = graph.until_said("simulator", "/clock is published by a node of this machine that is not on the graph yet")
    assert said["level"] == 2 and not clock and graph.node.count_publishers("/clock") == 0
    claim.release()
    graph.until(lambda: len(clock) > 3, "it to take over")
    assert not claim.take(), "now it is the simulator's"
