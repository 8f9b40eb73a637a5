"""Tendon lengths that are wrong, late or not calibrated, over real DDS: said in one line, held, and recovered from."""

import numpy as np
import pytest

rclpy = pytest.importorskip("rclpy", reason="needs ROS 2")

from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from std_srvs.srv import Trigger

from humanoid_control.robots import load_robot
from test.nodes.tendon_talker import Tendons, compile_tendons

pytestmark = [pytest.mark.ros, pytest.mark.patient]


@pytest.fixture(scope="module")
def robot():
    robot = load_robot("kengoro_upper", "fixed")
    compile_tendons(robot)
    return robot


def test_bad_samples_are_named_and_held_through(graph, robot):
    graph.start("state_estimator", "robot:=kengoro_upper", "source:=tendons", "mode:=absolute")
    estimates = graph.listen(JointState, "estimated_joint_states")
    covariances = graph.listen(Float64MultiArray, "state_estimator/covariance")
    posture = np.clip(0.2 * np.sin(np.arange(robot.n)), robot.lower + 0.05, robot.upper - 0.05)
    tendons = Tendons(graph, robot, posture)
    m, z, names = len(tendons.names), tendons.lengths, tendons.names

    def error():
        return np.abs(np.array(estimates[-1].position) - posture).max() if estimates else np.inf

    def uncertainty():
        return np.array(covariances[-1].data).reshape(robot.n, robot.n).trace() if covariances else np.inf

    graph.until(lambda: error() < 0.005, "the posture", meanwhile=tendons.send)
    graph.until(lambda: covariances, "a covariance", meanwhile=tendons.send)
    counts = graph.until_said("state_estimator", "ok", tendons.send)
    assert counts["samples_refused"] == counts["samples_duplicated"] == counts["samples_reordered"] == "0"

    # amid good samples, those of the same time and those from before do nothing at all
    def disorderly():
        now = tendons.now()
        for stamp in (now, now, tendons.now(-0.5)):
            tendons.send(stamp=stamp, lengths=z if stamp is now else z + 0.05)

    disorderly()
    graph.until(lambda: error() < 0.005, "nothing to change", meanwhile=disorderly)

    def counted():
        counts = graph.until_said("state_estimator", "ok", disorderly)
        return int(counts["samples_duplicated"]) > 10 and int(counts["samples_reordered"]) > 10

    graph.until(counted, "both to be counted")

    last, sure = tendons.now(), uncertainty()
    tendons.send(stamp=last)
    bad = {
        "46 names, 45 lengths": {"lengths": z[:-1]},
        "path lengths are positive": {"lengths": np.where(np.arange(m) == 3, -z, z)},
        "millimetres": {"lengths": 1e3 * z},
        "l_biceps": {"names": ["l_bicep", *names[1:]]},
        "missing": {"lengths": np.full(m, np.nan)},
        "slack: tension 0.2 N": {"tensions": np.full(m, 0.2)},
        "stamp each when it is measured": {"stamp": last},
    }
    for words, message in bad.items():
        if "stamp" in message:
            message["stamp"] = tendons.now()
        said = graph.until_said("state_estimator", words, tendons.sending(**message))["message"]
        if "the estimate is held" not in said:
            said = graph.until_said("state_estimator", "the estimate is held", tendons.sending(**message))["message"]
        assert words in said and "\n" not in said and len(said) < 400, said
        assert error() < 0.005 and np.abs(estimates[-1].velocity).max() < 0.05, f"held: {words}"
        graph.until(
            lambda: uncertainty() > 3 * sure, f"less to be known: {words}", meanwhile=tendons.sending(**message)
        )
        good = tendons.sending(tensions=np.full(m, 20.0))
        graph.until(lambda: uncertainty() < 1.5 * sure, f"to be sure again after {words}", meanwhile=good)
        assert error() < 0.005
    graph.until_said("state_estimator", "ok", good)


@pytest.mark.nightly
def test_counted_lengths_ask_to_be_calibrated_and_the_difference_of_both_filters_shows_it(graph, robot):
    """TE-14, TE-15: at rest the relative estimate stays at its start; the absolute one is wrong until `~/zero`."""
    own = ("source:=tendons", "mode:=absolute", "lengths:=counted", "side_by_side:=true", "gate:=0.0")
    graph.start("state_estimator", "robot:=kengoro_upper", *own)
    errors, neutral = graph.listen(JointState, "state_estimator/jae_error"), robot.postures["neutral"]
    graph.until_said("state_estimator", "put the robot into 'neutral' (zero_posture) and call /state_estimator/zero")
    tendons = Tendons(graph, robot, neutral)
    start = tendons.lengths.copy()
    counted = tendons.sending(lengths=tendons.lengths - start)
    elbow = robot.index["l_elbow_pitch"]

    def elbow_error():
        return errors[-1].position[errors[-1].name.index("l_elbow_pitch")] if errors else 0.0

    # what is counted from neutral looks absolutely like zero: relative minus absolute is neutral
    graph.until(lambda: abs(elbow_error() - neutral[elbow]) < 0.01, "the difference", meanwhile=counted)
    said = graph.until_said("state_estimator", "zero", counted)
    assert said["level"] == 1 and float(said["jae_error_max_deg"]) == pytest.approx(30.0, abs=0.6)
    assert said["jae_error_max_joint"] in ("l_elbow_pitch", "r_elbow_pitch")
    response = graph.call(Trigger, "state_estimator/zero")
    assert response.success and "46 tendons calibrated at 'neutral'" in response.message
    graph.until(lambda: np.abs(errors[-1].position).max() < 0.01, "both alike", meanwhile=counted)
    said = graph.until_said("state_estimator", "ok", counted)
    assert float(said["jae_error_mean_deg"]) < 0.5
