"""The tendon controller between joint commands and simulated winches: joints follow, faults, services (TC-08)."""

import numpy as np
import pytest

rclpy = pytest.importorskip("rclpy", reason="needs ROS 2")

from rcl_interfaces.msg import Parameter, ParameterType, ParameterValue
from rcl_interfaces.srv import SetParameters
from sensor_msgs.msg import JointState
from std_msgs.msg import Bool, Float64MultiArray
from std_srvs.srv import SetBool, Trigger

from humanoid_control.nodes.base.messages import LATCHED

pytestmark = [pytest.mark.ros, pytest.mark.patient]


def start(graph, *parameters):
    """Simulator on winches and controller on its true angles: newest joint and tendon states, and command messages."""
    graph.start("simulator", "robot:=kengoro_upper", "drives:=winches", "tendon_every:=1")
    graph.start("tendon_controller", "robot:=kengoro_upper", "rate:=100.0", "angles:=joint_states", *parameters)
    heard = [graph.listen(JointState, t) for t in ("joint_states", "tendon_states", "tendon_commands")]
    graph.until(lambda: all(heard), "states and commands of the winches")
    return heard


def angle(states, joint):
    return states[-1].position[list(states[-1].name).index(joint)]


def mover(graph, joint, value):
    """A function that commands one joint; called again and again."""
    commands = graph.publisher(JointState, "joint_commands")
    return lambda: commands.publish(JointState(name=[joint], position=[value]))


def test_a_joint_follows_its_commands_by_the_tendons_alone(graph):
    joints, _tendons, commands = start(graph)
    begin = dict(zip(joints[-1].name, joints[-1].position, strict=True))
    command = mover(graph, "l_elbow_pitch", -1.0)
    graph.until(lambda: abs(angle(joints, "l_elbow_pitch") + 1.0) < 0.02, "the elbow to bend", meanwhile=command)
    assert abs(begin["l_elbow_pitch"] + 1.0) > 0.3
    others = [n for n in begin if n != "l_elbow_pitch"]
    assert max(abs(angle(joints, n) - begin[n]) for n in others) < 0.03
    m = commands[-1]
    assert len(m.name) == len(m.velocity) == len(m.effort) == 46 and not len(m.position)
    assert np.isfinite(m.velocity).all() and np.isfinite(m.effort).all()
    values = graph.diagnostics("tendon_controller", meanwhile=command)
    assert values["law"] == "hybrid" and float(values["torque_missed_max"]) < 0.3


@pytest.mark.nightly
def test_a_torn_wire_is_found_by_itself_and_left_out(graph):
    joints, _tendons, commands = start(graph)
    before = angle(joints, "l_elbow_pitch")
    given = ParameterValue(type=ParameterType.PARAMETER_STRING, string_value="l_brachialis=snapped")
    request = SetParameters.Request(parameters=[Parameter(name="tendon_faults", value=given)])
    assert graph.call(SetParameters, "simulator/set_parameters", request).results[0].successful
    graph.until_said("tendon_controller", "snapped: l_brachialis")
    hybrid = [m for m in commands[-6:] if len(m.velocity)]
    assert "l_brachialis" not in hybrid[-1].name and len(hybrid[-1].name) == 45
    assert abs(angle(joints, "l_elbow_pitch") - before) < 0.05


def test_services_hold_relax_and_go_on(graph):
    joints, tendons, _commands = start(graph)
    assert graph.call(SetBool, "tendon_controller/hold", SetBool.Request(data=True)).success
    graph.until_said("tendon_controller", "winches are stopped: hold")
    command = mover(graph, "l_elbow_pitch", -1.0)
    before = angle(joints, "l_elbow_pitch")
    for _ in range(20):
        command()
        graph.spin(0.05)
    assert abs(angle(joints, "l_elbow_pitch") - before) < 0.02, "it holds"
    assert graph.call(SetBool, "tendon_controller/hold", SetBool.Request(data=False)).success
    graph.until(lambda: abs(angle(joints, "l_elbow_pitch") + 1.0) < 0.03, "it goes on", meanwhile=command)
    assert graph.call(Trigger, "tendon_controller/relax").success
    graph.until(lambda: np.mean(tendons[-1].effort) < 12.0, "the tensions to be paid out")
    assert graph.call(Trigger, "tendon_controller/tension_up").success
    graph.until(lambda: min(tendons[-1].effort) > 7.0, "the tensions to come back", timeout=120.0)


def test_an_emergency_stop_and_faulty_messages_change_nothing_but_reports(graph):
    _joints, _tendons, commands = start(graph)
    stop = graph.publisher(Bool, "emergency_stop")
    states = graph.publisher(JointState, "tendon_states")
    for name, wire, words in (("l_bicep", 0.3, "did you mean l_biceps"), ("l_biceps", 300.0, "lengths are in metres")):
        faulty = JointState(name=[name], position=[wire], effort=[10.0])
        graph.until_said("tendon_controller", words, meanwhile=lambda m=faulty: states.publish(m))
    graph.until_said("tendon_controller", "winches are stopped: hold", lambda: stop.publish(Bool(data=True)))
    stop.publish(Bool(data=False))
    commands.clear()
    graph.until(lambda: len(commands) > 5, "commands again")


@pytest.mark.nightly
def test_a_body_image_is_learnt_used_by_both_nodes_and_saved(graph):
    """Moment arms of the plant are 5 % wrong: what was learnt halves the error of the estimate (TC-24)."""
    file = graph.folder / "image.npz"
    graph.start("simulator", "robot:=kengoro_upper", "drives:=winches", "tendon_every:=1", "moment_arm_error:=0.05")
    settings = (
        "source:=tendons",
        "mode:=absolute",
        "tendon_stiffness:=5e4",
        "body_image:=live",
        "compare:=joint_states",
    )
    graph.start("state_estimator", "robot:=kengoro_upper", *settings)
    learns = ("angles:=joint_states", "learn_from:=joint_states", f"body_image:={file}")
    graph.start("tendon_controller", "robot:=kengoro_upper", "rate:=100.0", *learns)
    true, estimated = graph.listen(JointState, "joint_states"), graph.listen(JointState, "estimated_joint_states")
    graph.until(lambda: true and estimated, "true and estimated angles")
    joints = [f"{side}_{part}" for side in "lr" for part in ("elbow_pitch", "gh_pitch", "gh_roll")]
    commands = graph.publisher(JointState, "joint_commands")

    def errors():
        """Errors of the estimate of these joints in degrees, at rest."""
        return np.degrees([abs(angle(true, j) - angle(estimated, j)) for j in joints])

    def move(shares):
        goal = [begin[j] + share * 0.5 for j, share in zip(joints, shares, strict=True)]
        message = JointState(name=joints, position=goal)
        there = lambda: max(abs(angle(true, j) - g) for j, g in zip(joints, goal, strict=True)) < 0.05  # noqa: E731
        graph.until(there, "the posture", meanwhile=lambda: commands.publish(message))

    begin = {j: angle(true, j) for j in joints}
    move([-1, -1, 1, -1, -1, 1])
    before = errors().mean()
    assert graph.call(SetBool, "tendon_controller/learn", SetBool.Request(data=True)).success
    for shares in ([0, 0, 0, 0, 0, 0], [-1, 0, 1, 0, -1, 1], [0, -1, 1, -1, 0, 0], [-1, -1, 1, -1, -1, 1]):
        move(shares)
    answer = graph.call(SetBool, "tendon_controller/learn", SetBool.Request(data=False))
    assert answer.success and "tendons learned" in answer.message
    graph.until(lambda: errors().mean() < 0.5 * before, f"less than half of {before:.2f} deg")
    assert graph.call(Trigger, "tendon_controller/save").success and file.exists()
    foreign = Float64MultiArray(data=[1.0])
    images = graph.publisher(Float64MultiArray, "body_image", LATCHED)
    graph.until_said(
        "state_estimator", "body_image: is of another robot or routing; ignored", lambda: images.publish(foreign)
    )


@pytest.mark.nightly
def test_angles_that_may_drift_are_not_followed_unless_forced(graph):
    settings = ("source:=tendons", "mode:=r3", "tendon_stiffness:=5e4")
    graph.start("simulator", "robot:=kengoro_upper", "drives:=winches", "tendon_every:=1")
    graph.start("state_estimator", "robot:=kengoro_upper", *settings)
    commands = graph.listen(JointState, "tendon_commands")
    graph.start("tendon_controller", "robot:=kengoro_upper", "rate:=100.0")
    said = graph.until_said("tendon_controller", "state_estimator runs in mode r3, whose angles may drift")
    assert said["level"] == 2
    commands.clear()
    graph.spin(0.5)
    assert not commands
    given = ParameterValue(type=ParameterType.PARAMETER_STRING, string_value="stiffness")
    request = SetParameters.Request(parameters=[Parameter(name="law", value=given)])
    assert graph.call(SetParameters, "tendon_controller/set_parameters", request).results[0].successful
    graph.until(lambda: commands, "commands of a law that needs no angles")


def test_a_robot_without_tendons_is_refused_in_one_line(graph):
    process = graph.start("tendon_controller", "robot:=unicycle", wait=False)
    graph.until(lambda: process.poll() is not None or "unknown robot" in graph.output(process), "the refusal")
    process = graph.start("tendon_controller", "robot:=kengoro_upper", "law:=hybrd", wait=False)
    graph.until(lambda: "did you mean hybrid" in graph.output(process), "the nearest law")
