"""The node `policy` over DDS: a G1 walks in the simulator, its node is killed or stopped, and it dances live."""

import shutil
import signal

import numpy as np
import pytest

rclpy = pytest.importorskip("rclpy", reason="needs ROS 2")
pytest.importorskip("onnxruntime", reason="needs the extra 'policy': pip install 'humanoid_control[policy]'")

from geometry_msgs.msg import Twist
from nav_msgs.msg import Odometry
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, String
from std_srvs.srv import Trigger

from humanoid_control.nodes.base.messages import LATCHED

pytestmark = pytest.mark.ros

# A busy machine stops a process for some time now and then: what that does to the robot is not asked here.
LEGS = ("hip", "knee", "ankle")
PATIENT = ("late:=20.0", "sensor_lost:=2.0", "standing:=true", "start:=true")


def simulator(urdf, *more):
    return (
        f"robot:={urdf}", "base:=floating", "rate:=250.0", "sensor_every:=1", "publish_tf:=false", "stamp:=sim",
        "real_time_factor:=0.3", "rotors:=quasi_direct", "gains_timeout:=0.3", *more,
    )  # fmt: skip


def twist(x):
    m = Twist()
    m.linear.x = x
    return m


def place(m):
    p = m.pose.pose.position
    return np.array([p.x, p.y, p.z])


def test_walks_by_cmd_vel_and_is_let_down_when_its_node_is_killed(graph, g1_urdf, policy_file):
    truth, states = graph.listen(Odometry, "ground_truth/odometry"), graph.listen(String, "policy/state", LATCHED)
    commands, gains = graph.listen(JointState, "joint_commands"), graph.listen(JointState, "joint_gains")
    terms = graph.listen(Float64MultiArray, "policy/terms")
    graph.start("simulator", *simulator(g1_urdf))
    node = graph.start("policy", f"robot:={g1_urdf}", f"policy:={policy_file('holosoma')}", *PATIENT)
    graph.until(lambda: states and states[-1].data == "RUN", "the policy to run")
    publisher, begin = graph.publisher(Twist, "cmd_vel"), place(truth[-1])

    def walk():
        publisher.publish(twist(0.5))

    graph.until(lambda: place(truth[-1])[0] - begin[0] > 1.0, "a metre", meanwhile=walk)
    assert place(truth[-1])[2] > 0.7 and {m.data for m in states} <= {"WAITING", "STAND_IN", "RUN"}
    by_stamp = {(m.header.stamp.sec, m.header.stamp.nanosec): m for m in gains}
    found = [by_stamp.get((m.header.stamp.sec, m.header.stamp.nanosec)) for m in commands]
    assert sum(g is not None for g in found) > 0.9 * len(commands) > 50
    numbers = np.array([[*m.position, *m.velocity, *m.effort] for m in commands])
    assert np.isfinite(numbers).all()
    size = {d.label: d.size for d in terms[-1].layout.dim}
    assert {"projected_gravity", "dof_pos"} <= size.keys() and len(terms[-1].data) == sum(size.values())
    said = graph.diagnostics("policy", meanwhile=walk)
    assert said["policy_state"] == "run" and float(said["step_p50_ms"]) < 20.0
    assert float(graph.diagnostics("simulator", meanwhile=walk)["joints_with_gains"]) == 29

    graph.stop(node, signal.SIGKILL)
    graph.until_said("simulator", "are lowered")
    graph.until(lambda: place(truth[-1])[2] < 0.45, "the robot to come down")
    applied = graph.listen(JointState, "applied_commands")
    legs = lambda m: [e for n, e in zip(m.name, m.effort, strict=True) if any(w in n for w in LEGS)]  # noqa: E731
    # An arm on which the robot lies may still be kept off the body by the gate.
    rests = lambda: applied and np.abs(legs(applied[-1])).max() < 3.0  # noqa: E731
    graph.until(rests, "damping alone, not a posture that is held")


@pytest.mark.nightly
def test_a_node_that_is_stopped_for_a_moment_lets_the_robot_down_and_says_why(graph, g1_urdf, policy_file):
    states = graph.listen(String, "policy/state", LATCHED)
    graph.start("simulator", *simulator(g1_urdf))
    own = ("late:=20.0", "sensor_lost:=2.0", "standing:=true")
    node = graph.start("policy", f"robot:={g1_urdf}", f"policy:={policy_file('holosoma')}", *own)
    assert not graph.call(Trigger, "policy/switch").success
    assert graph.call(Trigger, "policy/start").success
    graph.until(lambda: states and states[-1].data == "RUN", "the policy to run")
    publisher = graph.publisher(Twist, "cmd_vel")
    graph.until(lambda: len(states) > 2, "a while", meanwhile=lambda: publisher.publish(twist(0.4)))
    node.send_signal(signal.SIGSTOP)
    graph.spin(3.0)  # 0.9 s of the robot's time
    node.send_signal(signal.SIGCONT)
    graph.until(lambda: states[-1].data in ("SIT", "DAMP"), "the node to let the robot down")
    said = graph.diagnostics("policy")
    assert "lowered" in said["message"] and ("late" in said["reason"] or "tilt" in said["reason"]), said


@pytest.mark.nightly
def test_live_imitation_a_tracker_follows_the_streamer_on_its_feet(graph, g1_urdf, policy_file, tmp_path):
    network = policy_file("twist2")
    shutil.copyfile("config/policies/twist2.yaml", tmp_path / "twist2.yaml")
    truth, states = graph.listen(Odometry, "ground_truth/odometry"), graph.listen(String, "policy/state", LATCHED)
    measured = graph.listen(JointState, "joint_states")
    reference = graph.listen(JointState, "reference_joint_states")
    graph.start("simulator", *simulator(g1_urdf, "engine:=mujoco"))
    own = (f"policy:={tmp_path}/twist2.yaml", f"network:={network}")
    graph.start("policy", f"robot:={g1_urdf}", *own, *PATIENT)
    graph.until(lambda: states and states[-1].data == "RUN", "the policy to run")
    graph.start("whole_body_streamer", f"robot:={g1_urdf}", "clip:=gentle_dance", "speed:=0.3", "rate:=30.0")
    graph.until(lambda: len(reference) > 300, "the dance")
    assert states[-1].data == "RUN" and place(truth[-1])[2] > 0.65
    arms = [k for k, n in enumerate(measured[-1].name) if "shoulder" in n or "elbow" in n]
    moved = np.ptp(np.array([m.position for m in measured[-2000:]])[:, arms], axis=0)
    assert moved.max() > 0.3, "its arms dance"
    assert int(graph.diagnostics("policy")["reference_frames"]) > 100


def test_bad_input_ends_with_a_line_and_exit_code_2(graph, g1_urdf, policy_file, tmp_path):
    (tmp_path / "policy.onnx").write_bytes(b"no network")
    rows = (
        ((), "policy.policy must be"),
        ((f"policy:={tmp_path}/absent.onnx",), "absent.onnx"),
        ((f"policy:={tmp_path}/policy.onnx",), "policy.onnx"),
        ((f"policy:={policy_file('holosoma')}", "catch:=second"), "policy.second must be"),
        ((f"policy:={policy_file('holosoma')}", f"robot:={'lola'}"), "lola"),
    )
    for k, (parameters, words) in enumerate(rows):
        robot = () if any(p.startswith("robot:=") for p in parameters) else (f"robot:={g1_urdf}",)
        process = graph.start("policy", *robot, *parameters)
        assert process.wait(60) == 2
        last = [line for line in graph.output(process).splitlines() if line.startswith("policy:")]
        assert len(last) == 1 and words in last[0], (k, graph.output(process)[-500:])
