"""The streamer with a clip: play, pause, seek, speed, loop; bad input; joint positions solved by itself."""

import numpy as np
import pytest

rclpy = pytest.importorskip("rclpy", reason="needs ROS 2")

from rcl_interfaces.msg import Parameter, ParameterType, ParameterValue
from rcl_interfaces.srv import SetParameters
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64
from std_srvs.srv import Trigger
from visualization_msgs.msg import MarkerArray

from humanoid_control.mocap import load_body_points
from humanoid_control.nodes.base.messages import LATCHED
from humanoid_control.retargeting import POINTS, scale_to_robot
from humanoid_control.robots import load_robot

pytestmark = [pytest.mark.ros, pytest.mark.patient]
NODE = "trajectory_streamer"


def positions(message):
    """(7, 3) of a MarkerArray of targets."""
    assert tuple(m.ns for m in message.markers) == POINTS
    return np.array([[m.pose.position.x, m.pose.position.y, m.pose.position.z] for m in message.markers])


def stamp(message):
    s = (message.markers[0] if hasattr(message, "markers") else message).header.stamp
    return s.sec + 1e-9 * s.nanosec


def set_parameter(graph, name, value):
    request, p = SetParameters.Request(), ParameterValue()
    if isinstance(value, bool):
        p.type, p.bool_value = ParameterType.PARAMETER_BOOL, value
    else:
        p.type, p.double_value = ParameterType.PARAMETER_DOUBLE, value
    request.parameters = [Parameter(name=name, value=p)]
    return graph.call(SetParameters, f"{NODE}/set_parameters", request).results[0].successful


def seek(graph, time):
    graph.publisher(Float64, "clip/seek").publish(Float64(data=time))


@pytest.mark.nightly
@pytest.mark.timed
def test_a_clip_is_played_paused_sought_sped_up_and_looped(graph):
    graph.start(NODE, "lead_in:=0.2")
    targets, clip_time = graph.listen(MarkerArray, "targets"), graph.listen(Float64, "clip/time")
    duration = graph.listen(Float64, "clip/duration", LATCHED)
    figure = graph.listen(MarkerArray, "dancer")
    graph.until(lambda: clip_time and clip_time[-1].data > 0.5 and duration and figure, "the clip plays")
    assert duration[0].data == pytest.approx(24.0) and len(figure[-1].markers[0].points) > 20

    assert graph.call(Trigger, f"{NODE}/pause").success
    graph.spin(0.3)
    targets.clear()
    graph.spin(0.5)
    assert len(targets) > 10 and np.ptp([positions(m) for m in targets], axis=0).max() == 0, "published, but still"

    wanted = scale_to_robot(load_body_points("dance"), load_robot("hrp2", "fixed")).positions[500]
    seek(graph, 10.0)
    graph.until(lambda: positions(targets[-1]) == pytest.approx(wanted, abs=1e-6), "the posture at 10 s")
    graph.spin(0.3)
    assert positions(targets[-1]) == pytest.approx(wanted, abs=1e-6), "and it stays there"
    assert clip_time[-1].data == pytest.approx(10.0)

    assert graph.call(Trigger, f"{NODE}/play").success
    for factor in (1.0, 3.0):
        assert set_parameter(graph, "speed", factor)
        graph.spin(0.2)
        clip_time.clear()
        targets.clear()
        graph.spin(2.5)
        stamps = [stamp(m) for m in targets]
        ran, took = clip_time[-1].data - clip_time[0].data, stamps[-1] - stamps[0]
        assert ran / took == pytest.approx(factor, rel=0.25)

    seek(graph, 23.7)
    graph.until(lambda: clip_time[-1].data < 5.0, "it begins again")
    assert set_parameter(graph, "loop", False) and set_parameter(graph, "speed", 1.0)
    seek(graph, 23.7)
    graph.until(lambda: clip_time[-1].data == pytest.approx(24.0), "its end")
    graph.spin(0.5)
    assert clip_time[-1].data == pytest.approx(24.0), "and it stays there"
    assert graph.call(Trigger, f"{NODE}/restart").success
    graph.until(lambda: 0.1 < clip_time[-1].data < 5.0, "again from the beginning")
    refused = graph.call(Trigger, f"{NODE}/calibrate")
    assert not refused.success and "only live markers" in refused.message
    steps = np.linalg.norm(np.diff([positions(m) for m in targets], axis=0), axis=2).max(axis=1)
    assert steps.max() < 0.5, "nothing jumped on the way"


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        (["clip_rate:=60.0"], None),
        (["source:=life"], "did you mean live"),
        (["source:=live", "live_up:=up"], "live_up"),
        (["source:=live", "live_labels:=a, b, a"], "'a' twice"),
        (["source:=live", "marker_set:=plug_in_gate"], "did you mean plug_in_gait"),
        (["speed:=9.0"], "0.05 .. 4"),
    ],
)
def test_parameters_are_checked(graph, parameters, words):
    """A rate for the built-in dance hurts nobody."""
    process = graph.start(NODE, *parameters, wait=words is None)
    if words is None:
        assert process.poll() is None
        return
    assert process.wait(60) == 2
    assert words in graph.output(process) and "Traceback" not in graph.output(process)


@pytest.mark.nightly
def test_what_was_guessed_about_a_clip_is_logged_and_cleaning_can_be_left_out(graph, mocap):
    clip = mocap("cmu_asf/11_01.amc")
    graph.start(NODE, f"clip:={clip}", "clean:=false")
    process = graph.start(NODE, f"clip:={clip}", "clip_rate:=60.0", args=("-r", "__ns:=/other"))
    first, second = (graph.output(p) for p in graph.processes.values())
    assert "120 Hz" in first and "120 Hz" not in second
    # Its first diagnostics may come before its first full second of targets, and a busy machine delays some of them.
    graph.until(
        lambda: float(graph.diagnostics("/other/trajectory_streamer")["rate_hz"]) == pytest.approx(60, rel=0.3),
        "the rate of the clip to be the one that was given",
    )
    assert process.poll() is None


# -- solved by the streamer itself -------------------------------------------------------------------------------------


def check_reference(messages, robot, rate):
    """Every command keeps range and speed, by its own stamps."""
    p, v = np.array([m.position for m in messages]), np.array([m.velocity for m in messages])
    t = np.array([m.header.stamp.sec * 10**9 + m.header.stamp.nanosec for m in messages])
    dt = 1e-9 * np.diff(t)
    assert np.isfinite(p).all() and np.isfinite(v).all()
    assert (p >= robot.lower - 1e-9).all() and (p <= robot.upper + 1e-9).all()
    assert (np.abs(v) <= robot.velocity + 1e-6).all()
    assert dt.min() >= 1 / rate - 1e-8, "never closer than a period"
    assert (np.abs(np.diff(p, axis=0)) <= robot.velocity * dt[:, None] + 1e-9).all()
    return p


def test_it_solves_for_joints_itself_and_keeps_range_and_speed(graph):
    robot = load_robot("wabian2", "fixed")
    graph.start(NODE, "robot:=wabian2", "solve:=true", "start_blind:=true", "lead_in:=0.3", "speed:=2.0", wait=False)
    reference = graph.listen(JointState, "reference_joint_states")
    graph.until(lambda: len(reference) > 200, "reference joint states", timeout=120)
    p = check_reference(reference, robot, 50.0)
    assert list(reference[0].name) == list(robot.joint_names)
    assert np.ptp(p, axis=0).max() > 0.5, "it dances"
    values = graph.diagnostics(NODE)
    assert float(values["reference_error_mm"]) < 200
    assert values["reference_clearance_m"] == "far" or float(values["reference_clearance_m"]) > -1e-9
    assert 0 < float(values["reference_step_p50_ms"]) < float(values["reference_step_p99_ms"]) + 1e-9


def test_it_begins_where_the_robot_is_and_not_before_that_is_known(graph):
    robot = load_robot("hrp2", "fixed")
    graph.start(NODE, "solve:=true", wait=False)
    reference, targets = graph.listen(JointState, "reference_joint_states"), graph.listen(MarkerArray, "targets")
    states = graph.publisher(JointState, "estimated_joint_states")
    graph.until_said(NODE, "no joint states yet")
    assert not reference and not targets
    posture = robot.from_mapping({"l_elbow_flexion": 1.5, "r_shoulder_abduction": 0.8})
    message = JointState(name=list(robot.joint_names), position=posture.tolist())
    graph.until(lambda: reference and targets, "the first command", meanwhile=lambda: states.publish(message))
    assert np.abs(np.array(reference[0].position) - posture).max() < 0.05
    start = robot.point_positions(robot.q(posture), POINTS)
    assert positions(targets[0]) == pytest.approx(start, abs=1e-3), "the lead-in begins there too"

    def follow():
        message.position = reference[-1].position
        states.publish(message)

    graph.until(lambda: len(reference) > 100, "it goes on", meanwhile=follow)
    check_reference(reference, robot, 50.0)
    graph.until_said(NODE, "ok", follow)
