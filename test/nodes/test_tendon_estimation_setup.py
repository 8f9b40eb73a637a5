"""Tendon estimators as the state estimator's parameters ask for them: where they start, alone and side by side."""

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs ROS 2")

from humanoid_control.nodes.estimating.tendon_estimation import PairedEstimation, estimator_of, start
from humanoid_control.nodes.state_estimator_parameters import StateEstimatorParameters
from humanoid_control.robots import load_robot

ELBOW = "l_elbow_pitch"


class SilentNode:
    """A node whose topics nobody hears."""

    def create_publisher(self, *_):
        return None


@pytest.fixture(scope="module")
def robot():
    return load_robot("kengoro_upper", "fixed")


def angles(estimator):
    return dict(zip(estimator.joint_names, estimator.theta.tolist(), strict=True))


def test_an_estimate_starts_anew_at_the_start_posture_and_keeps_its_calibration(robot):
    """The posture asked for, not the neutral one; also where the pair of estimators is put back."""
    p = StateEstimatorParameters(source="tendons", mode="absolute", start_posture=f"{ELBOW}=-1.0")
    estimator = estimator_of(robot, p)
    pair = PairedEstimation(SilentNode(), robot, estimator, p)
    offsets = [f.offset.copy() for f in estimator.filters]
    assert any(o.any() for o in offsets)
    for e in (estimator, pair.partner):
        assert angles(e)[ELBOW] == -1.0, "from the beginning"
        e.reset(dict.fromkeys(e.joint_names, -0.1))
        assert angles(e)[ELBOW] == -0.1
    pair.error[:] = 1.0
    start(estimator, robot, p)
    pair.reset()
    neutral = robot.postures["neutral"]
    for e in (estimator, pair.partner):
        for joint, angle in angles(e).items():
            assert angle == (-1.0 if joint == ELBOW else neutral[robot.joint_index(joint)]), joint
    assert not pair.error.any()
    assert all(np.array_equal(f.offset, o) for f, o in zip(estimator.filters, offsets, strict=True))
