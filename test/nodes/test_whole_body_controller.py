"""The node `whole_body_controller`: a robot in the simulator performs by torques over DDS, is stopped, and refuses."""

import numpy as np
import pytest

rclpy = pytest.importorskip("rclpy", reason="needs ROS 2")

from nav_msgs.msg import Odometry
from sensor_msgs.msg import JointState
from std_msgs.msg import Bool, String
from std_srvs.srv import Trigger
from visualization_msgs.msg import MarkerArray

from humanoid_control.nodes.base.messages import LATCHED
from humanoid_control.robots import load_robot
from test.nodes.performing.motions import one_step
from test.robots_under_test import nightly

pytestmark = [pytest.mark.ros, pytest.mark.patient]

SIMULATOR = (
    "robot:=hrp2", "base:=floating", "rate:=250.0", "sensor_every:=1", "publish_tf:=false", "stamp:=sim",
    "real_time_factor:=0.4", "dropout:=0.02",
)  # fmt: skip
# A busy machine stops a process for some time now and then: what that does to the robot is not asked here.
PATIENT = ("robot:=hrp2", "rate:=250.0", "sensor_late:=0.3", "sensor_lost:=0.9", "sensor_off:=4.0")
NODE = "whole_body_controller"
LONG = 150.0  # [s] of a machine that has other things to do


@pytest.fixture(scope="module")
def robot():
    return load_robot("hrp2", "floating")


@pytest.fixture(scope="module")
def motion(robot, tmp_path_factory):
    path = tmp_path_factory.mktemp("motion") / "motion.npz"
    one_step(robot).write(path)
    return path


def states_of(messages):
    return [m.data for m in messages]


@pytest.mark.stack
@pytest.mark.parametrize("stops", [False, nightly(True)], ids=["performs", "stops"])
def test_it_performs_a_file_by_its_sensors_alone(graph, robot, motion, stops):
    states, truth = graph.listen(String, "performing/state", LATCHED), graph.listen(Odometry, "ground_truth/odometry")
    commands, odom = graph.listen(JointState, "joint_commands"), graph.listen(Odometry, "odom")
    plans, feet = graph.listen(MarkerArray, "footsteps/planned"), graph.listen(Bool, "contact/l_foot")
    references = graph.listen(JointState, "reference_joint_states")
    graph.start("simulator", *SIMULATOR)
    graph.start(NODE, *PATIENT, f"motion:={motion}", "begin:=false")
    graph.until(lambda: states and states[-1].data == "STAND" and odom, "the robot to stand", LONG)
    graph.spin(0.5)
    assert states_of(states)[-2:] == ["WAITING", "STAND"], "it waits for ~/start"
    first = odom[-1].pose.pose.position.z
    assert graph.call(Trigger, f"{NODE}/start").success
    graph.until(lambda: states[-1].data == "PERFORM", "the performance")
    graph.until(lambda: not all(m.data for m in feet), "a step", LONG)
    if stops:
        assert graph.call(Trigger, f"{NODE}/stop").success
        graph.until(lambda: states[-1].data == "STAND", "the robot to rest", LONG)
        graph.spin(1.0)
        assert "stop was called" in graph.diagnostics(NODE)["stopped"] and "FALLEN" not in states_of(states)
        assert states_of(states)[-3:] == ["PERFORM", "STOP", "STAND"]
        assert graph.call(Trigger, f"{NODE}/start").success
        graph.until(lambda: states[-1].data == "PERFORM", "it performs again, from where it stands", LONG)
    graph.until(lambda: states[-1].data == "STAND", "the end", LONG)
    said = graph.diagnostics(NODE)
    assert said["performed"] == "1" and float(said["dcm_error_rms_mm"]) < 30
    efforts = np.array([m.effort for m in commands])
    assert np.isfinite(efforts).all() and (np.abs(efforts) <= robot.effort * (1 + 1e-9)).all()
    assert not any(len(m.position) or len(m.velocity) for m in commands)
    assert abs(truth[-1].pose.pose.position.z - first) < 0.1
    shown = {m.ns for p in plans for m in p.markers}
    assert {"l_foot", "l_force", "r_force", "zmp", "zmp_planned", "dcm", "com", "support"} <= shown
    assert len(references[-1].position) == robot.n and np.isfinite(references[-1].effort).all()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (("robot:=hrp2", "motion:=/nowhere/motion.npz"), "/nowhere/motion.npz"),
        (("robot:=lola", "motion:=MOTION"), "is a motion of hrp2, not of lola"),
        (("robot:=armar3",), "armar3 has no feet"),
        (("robot:=hrp2", "clip:=/nowhere/clip.bvh"), "/nowhere/clip.bvh"),
        (("robot:=hrp2", "rate:=0.0"), "rate"),
    ],
    ids=["no file", "other robot", "no legs", "no clip", "no rate"],
)
def test_what_cannot_be_performed_is_refused_before_anything_is_commanded(graph, motion, parameters, message):
    given = [p.replace("MOTION", str(motion)) for p in parameters]
    process = graph.start(NODE, *given, wait=False)
    graph.until(lambda: message in graph.output(process), f"'{message}'", LONG)
    assert "Traceback" not in graph.output(process)
