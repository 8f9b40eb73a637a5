"""State estimation from tendons over real DDS: angles, bad input, services, and the loop closed on estimates alone."""

import numpy as np
import pytest

rclpy = pytest.importorskip("rclpy", reason="needs ROS 2")

from geometry_msgs.msg import WrenchStamped
from rcl_interfaces.srv import SetParameters
from rclpy.parameter import Parameter
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from std_srvs.srv import SetBool, Trigger
from visualization_msgs.msg import MarkerArray

from humanoid_control.nodes.base.messages import fill_joint_state, joint_state, target_markers
from humanoid_control.nodes.state_estimator_parameters import GROUPS, MODES
from humanoid_control.robots import load_robot
from humanoid_control.robots.tendons import GROUPINGS, tendon_geometry, tendon_groups, tendon_mappings
from humanoid_control.simulation.drives.tendon_plant import TendonPlant
from humanoid_control.tendons.estimator.settings import OBSERVATIONS
from humanoid_control.tendons.mappings.fitting import save_mapping
from humanoid_control.tendons.mappings.neural import NeuralMapping, Weights
from humanoid_control.tendons.mappings.postures import random_postures
from test.nodes.tendon_talker import Tendons, compile_tendons

pytestmark = [pytest.mark.ros, pytest.mark.patient]


@pytest.fixture(scope="module", autouse=True)
def compiled_tendons():
    compile_tendons(load_robot("kengoro_upper", "fixed"))


def test_parameters_offer_what_the_library_has():
    assert tuple(MODES) == tuple(sorted(OBSERVATIONS, key=MODES.index)) and set(GROUPS) == set(GROUPINGS)


def test_angles_from_lengths_and_how_sure_they_are(graph):
    robot = load_robot("kengoro_upper", "fixed")
    own = ("source:=tendons", "mode:=absolute", "compare:=true_joint_states")
    graph.start("state_estimator", "robot:=kengoro_upper", *own)
    estimates, truths = (
        graph.listen(JointState, "estimated_joint_states"),
        graph.publisher(JointState, "true_joint_states"),
    )
    covariances = graph.listen(Float64MultiArray, "state_estimator/covariance")
    markers = graph.listen(MarkerArray, "tendon_markers")
    assert not graph.call(Trigger, "state_estimator/zero").success, "nothing measured yet"
    posture = robot.postures["neutral"] + 0.12 * np.cos(np.arange(robot.n))
    posture = np.clip(posture, robot.lower + 0.02, robot.upper - 0.02)
    tendons = Tendons(graph, robot, posture)

    def error():
        by_name = dict(zip(estimates[-1].name, estimates[-1].position, strict=True))
        return max(abs(by_name[n] - a) for n, a in zip(robot.joint_names, posture, strict=True))

    graph.until(lambda: estimates and error() < 0.01, "the posture", meanwhile=tendons.send)
    said = graph.until_said("state_estimator", "ok", tendons.send)
    assert (said["mode"], said["tendons"], said["joints_estimated"]) == ("absolute", "46", "20")
    graph.until(lambda: covariances and markers, "covariance and markers", meanwhile=tendons.send)
    dims = covariances[-1].layout.dim
    assert set(dims[0].label.split(",")) == set(robot.joint_names) and dims[0].size == dims[1].size == robot.n
    known = np.array(covariances[-1].data).reshape(robot.n, robot.n)
    assert np.linalg.eigvalsh(known).min() > 0
    ends = np.array([(p.x, p.y, p.z) for p in markers[-1].markers[0].points])
    origin = tendons.geometry.paths(posture)[0][0]
    assert np.linalg.norm(ends - origin, axis=1).min() < 2e-3, "in the world, where the first tendon begins"

    # what a simulator knows to be true, and one joint of it half a degree off
    def compared():
        stamp = tendons.now()
        true = posture + np.deg2rad(0.5) * (np.array(robot.joint_names) == "l_elbow_pitch")
        truths.publish(fill_joint_state(joint_state(robot.joint_names), stamp, true))
        tendons.send(stamp=stamp)

    graph.until_said("state_estimator", "ok", compared)
    said = graph.until_said("state_estimator", "ok", compared)
    assert said["error_max_joint"] == "l_elbow_pitch" and float(said["error_max_deg"]) == pytest.approx(0.5, abs=0.1)
    assert float(said["error_mean_deg"]) < 0.1 and 0 < float(said["nees_per_degree"]) < 20

    missing = np.where(np.arange(46) == 5, np.nan, tendons.lengths)
    graph.until_said("state_estimator", f"ignored: {tendons.names[5]} missing", tendons.sending(lengths=missing))
    assert error() < 0.01
    graph.until_said("state_estimator", "ok", tendons.send)

    # calibrate here: from now on these lengths are the neutral posture
    response = graph.call(Trigger, "state_estimator/zero")
    tendons.send()
    response = graph.call(Trigger, "state_estimator/zero")
    assert response.success and "46 tendons calibrated at 'neutral'" in response.message
    posture = robot.postures["neutral"]
    graph.until(lambda: error() < 0.01, "neutral to be believed", meanwhile=tendons.send)
    response = graph.call(SetBool, "state_estimator/learn", SetBool.Request(data=True))
    assert not response.success and "neural" in response.message
    assert graph.call(Trigger, "state_estimator/reset").success


@pytest.mark.nightly
def test_the_hand_follows_its_target_on_estimated_angles_alone(graph):
    """Simulator with stretching, noisy tendons -> estimator -> inverse kinematics under feedback -> simulator."""
    robot = load_robot("kengoro_upper", "fixed")
    wires = ("rate:=250.0", "tendons:=true", "tendon_every:=1", "tendon_stiffness:=200000.0")
    nodes = (
        graph.start("simulator", "robot:=kengoro_upper", *wires, "noise:='length=0.0001,position=0.25'", wait=False),
        graph.start("state_estimator", "robot:=kengoro_upper", "source:=tendons", "mode:=absolute", wait=False),
        graph.start("whole_body_ik", "robot:=kengoro_upper", "feedback:=5.0", wait=False),
    )
    graph.until(lambda: all("READY" in graph.output(n) for n in nodes), "the nodes")
    estimates, states = graph.listen(JointState, "estimated_joint_states"), graph.listen(JointState, "joint_states")
    publisher = graph.publisher(MarkerArray, "targets")
    hands = ("l_wrist",)
    start = robot.point_positions(robot.q("neutral"), hands)[0]
    goal = start + (0.12, 0.05, 0.1)
    message = target_markers(hands)

    def reach():
        p = message.markers[0].pose.position
        p.x, p.y, p.z = goal.tolist()
        message.markers[0].header.stamp = graph.node.get_clock().now().to_msg()
        publisher.publish(message)
        graph.spin(0.015)

    def gap(row):
        joints = robot.postures["neutral"].copy()
        theirs, ours = robot.order_of(row.name)
        joints[ours] = np.asarray(row.position)[theirs]
        return float(np.linalg.norm(robot.point_positions(robot.q(joints), hands)[0] - goal))

    graph.until(lambda: estimates and states, "estimates")

    # the encoders of the joints are useless: 0.25 rad of noise; their mean is the truth
    def true_gap():
        if len(states) < 200:
            return 1.0
        rows = states[-200:]
        mean = JointState(name=rows[-1].name, position=np.mean([r.position for r in rows], axis=0).tolist())
        return gap(mean)

    graph.until(lambda: gap(estimates[-1]) < 0.01, "the estimated hand at its target", meanwhile=reach)
    states.clear()
    graph.until(lambda: true_gap() < 0.03, "the hand at its target", meanwhile=reach)

    # tendons fail while it works: they are named, left out, and taken back
    fault(graph, "l_biceps=slack,r_rhomboid=missing")
    said = graph.until_said("state_estimator", "l_biceps slack: tension 0.0 N", reach)
    assert "r_rhomboid missing" in said["message"]
    assert gap(estimates[-1]) < 0.01
    fault(graph, "l_bicep=slack")
    graph.until_said("simulator", "l_biceps", reach)
    fault(graph, "")
    graph.until_said("state_estimator", "ok", reach)
    states.clear()
    graph.until(lambda: true_gap() < 0.03, "the hand still at its target", meanwhile=reach)


def test_tendons_at_constant_tensions_give_way_to_a_push(graph):
    """No command moves the arm; a push does, and its tendons tell how far (TE-19)."""
    robot = load_robot("kengoro_upper", "fixed")
    graph.start("simulator", "robot:=kengoro_upper", "drives:=tendons", "tendons:=true", "moment_arm_error:=0.1")
    states, tendons = graph.listen(JointState, "joint_states"), graph.listen(JointState, "tendon_states")
    graph.until(lambda: states and tendons, "states")
    tensions, elbow = np.array(tendons[-1].effort), states[-1].name.index("l_elbow_pitch")
    assert tensions.min() > 9.9 and tensions.max() > 50, "those that hold the posture"
    commands, pushes = graph.publisher(JointState, "joint_commands"), graph.publisher(WrenchStamped, "simulator/push")
    command = JointState(name=list(robot.joint_names), position=robot.upper.tolist())
    said = graph.until_said("simulator", "tendons at constant tensions", lambda: commands.publish(command))
    assert "commands for them are ignored" in said["message"]
    before = states[-1].position[elbow]
    push = WrenchStamped()
    push.header.frame_id, push.wrench.torque.y = "l_forearm", -3.0
    graph.until(
        lambda: states[-1].position[elbow] < before - 0.5, "the elbow to bend", meanwhile=lambda: pushes.publish(push)
    )
    assert np.array(tendons[-1].effort) == pytest.approx(tensions, abs=1e-9), "constant"
    by_stamp = {(m.header.stamp.sec, m.header.stamp.nanosec): m for m in states}
    pairs = [(by_stamp.get((m.header.stamp.sec, m.header.stamp.nanosec)), m) for m in tendons]
    state, tendon = [pair for pair in pairs if pair[0]][-1]
    plant = TendonPlant(robot, 0.1, 0)
    assert np.array(tendon.position) == pytest.approx(plant.measure(np.array(state.position))[0], abs=1e-9)


def fault(graph, text):
    request = SetParameters.Request(parameters=[Parameter("tendon_faults", value=text).to_parameter_msg()])
    assert graph.call(SetParameters, "simulator/set_parameters", request).results[0].successful


def random_features(geometry, hash_, units=80):
    """A neural mapping with random hidden layers and the output weights that fit the geometry best."""
    rng, d, m = np.random.default_rng(0), len(geometry.joint_names), len(geometry.tendon_names)
    layers = (rng.normal(0, 0.5, (units, d)), rng.normal(0, 0.5, units), rng.normal(0, 0.15, (units, units)))
    weights = Weights(*layers, rng.normal(0, 0.3, units), np.zeros((m, units)))
    mapping = NeuralMapping(weights, geometry.joint_names, geometry.tendon_names, geometry.limits, hash_)
    rows = random_postures(geometry.limits, 3000)
    mapping.set_last_layer(np.linalg.lstsq(mapping.features(rows), geometry.lengths_of(rows), rcond=None)[0].T)
    return mapping


def test_a_fitted_mapping_learns_and_that_of_another_robot_is_refused(graph, tmp_path):
    robot, file = load_robot("kengoro_upper", "fixed"), tmp_path / "l_shoulder.npz"
    geometry = tendon_geometry(robot, "l_shoulder")
    hash_ = tendon_mappings(robot, tendon_groups(robot, "file"))["l_shoulder"].model_hash
    save_mapping(file, random_features(geometry, hash_))
    own = ("source:=tendons", "mode:=absolute", "groups:=file", f"mapping:={file}")
    other = graph.start("state_estimator", "robot:=hrp2", *own, wait=False)
    assert other.wait(60) == 2
    assert "belongs to another robot" in graph.output(other) and "Traceback" not in graph.output(other)
    graph.start("state_estimator", "robot:=kengoro_upper", *own)
    tendons = Tendons(graph, robot, robot.postures["neutral"])
    response = graph.call(SetBool, "state_estimator/learn", SetBool.Request(data=True))
    assert response.success and response.message == "learning"
    send = tendons.sending(tensions=np.full(46, 20.0))
    graph.until(lambda: not graph.diagnostics("state_estimator", send)["learning"].startswith("on, 0"), "an update")
    response = graph.call(SetBool, "state_estimator/learn", SetBool.Request(data=False))
    assert response.success and graph.diagnostics("state_estimator", send)["learning"].startswith("off, ")
