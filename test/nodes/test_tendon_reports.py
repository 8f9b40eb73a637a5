"""What is said and drawn of an estimate from tendons, without any node."""

from types import SimpleNamespace

import numpy as np
import pytest

rclpy = pytest.importorskip("rclpy", reason="needs ROS 2")

from humanoid_control.nodes.base.health import Health
from humanoid_control.nodes.estimating.tendon_estimation import estimator_of
from humanoid_control.nodes.estimating.tendon_reports import EXCLUDED, GREEN, RED, YELLOW, TendonMarkers, TendonReport
from humanoid_control.nodes.state_estimator_parameters import StateEstimatorParameters
from humanoid_control.robots import load_robot
from humanoid_control.robots.tendons import tendon_geometry


def test_diagnostics_count_recoveries_and_name_the_groups_that_are_doubted():
    robot = load_robot("kengoro_upper", "fixed")
    estimator = estimator_of(robot, StateEstimatorParameters(robot.name, source="tendons", mode="absolute"))
    report = TendonReport(SimpleNamespace(health=None), estimator)
    assert (report.values()["recoveries"], report.values()["groups_doubted"]) == (0, "")
    estimator.filters[0].honest, estimator.filters[0].recoveries = False, 2
    assert report.values()["recoveries"] == 2
    assert report.values()["groups_doubted"] == estimator.groups[0].name


def test_markers_follow_every_way_and_show_what_is_left_out():
    robot = load_robot("kengoro_upper", "fixed")
    estimator = estimator_of(robot, StateEstimatorParameters(robot.name, source="tendons", mode="absolute"))
    node = SimpleNamespace(create_publisher=lambda *_: None)
    markers = TendonMarkers(node, robot, estimator)
    estimator.faults.excluded[estimator.muscle_names.index("l_biceps")] = True
    ends, colors = markers.lines()
    pieces = np.linalg.norm(ends[1::2] - ends[::2], axis=1)
    geometry = tendon_geometry(robot, joints=robot.joint_names)
    lengths = geometry.raw(robot.postures["neutral"][None])[0][0]  # estimates begin in the neutral posture
    assert pieces.sum() == pytest.approx(lengths.sum(), rel=1e-3), "all ways, each once, curves in small steps"
    violet = (colors == EXCLUDED).all(axis=1)
    way = lengths[geometry.tendon_names.index("l_biceps")]
    assert pieces[violet[::2]].sum() == pytest.approx(way, rel=5e-3)


def test_a_tendon_is_green_then_yellow_at_half_the_gate_and_red_from_the_gate_on():
    robot = load_robot("kengoro_upper", "fixed")
    estimator = estimator_of(robot, StateEstimatorParameters(robot.name, source="tendons", mode="absolute"))
    markers = TendonMarkers(SimpleNamespace(create_publisher=lambda *_: None), robot, estimator)
    assert all(((c >= 0) & (c <= 1)).all() for c in (GREEN, YELLOW, RED, EXCLUDED)), "colours are shares of light"
    for share in (0.0, 0.1, 0.25, 0.4, 0.5, 0.7, 0.95, 1.0, 5.0):
        for k, f in enumerate(estimator.filters):
            f.score = np.full(len(f.score), (-1) ** k * share * estimator.settings.gate)
        wanted = [np.interp(share, [0, 0.5, 1], c) for c in np.transpose([GREEN, YELLOW, RED])]
        assert markers.colors() == pytest.approx(np.tile(wanted, (len(estimator.muscle_names), 1)))


def test_a_relative_estimate_is_warned_of_where_axes_fall_together():
    """At 90 deg of abduction flexion and rotation of WE-4RII's shoulder are one axis; elsewhere nothing is said."""
    robot = load_robot("we4rii", "fixed")
    said = {}
    for mode, abduction in (("r2", 10.0), ("r2", 99.0), ("absolute", 99.0)):
        estimator = estimator_of(robot, StateEstimatorParameters(robot.name, source="tendons", mode=mode))
        angles = {"flexion": 120.0, "abduction": abduction, "rotation": 20.0}
        estimator.reset({f"r_shoulder_{name}": np.radians(angle) for name, angle in angles.items()})
        health = Health(lambda *_: None)
        report = TendonReport(SimpleNamespace(health=health), estimator)
        for _ in estimator.groups:
            report._observed = 0.0
            report.slack_time(1.0)
        said[mode, abduction] = health.open.get("mixed", (None, ""))[1]
        values = report.values()
        if abduction == 99.0:
            assert values["step_uncertain_deg"] > 15.0
            assert {"r_shoulder_flexion", "r_shoulder_rotation"} <= set(values["step_uncertain_joints"].split(", "))
    assert said["r2", 10.0] == "" and said["absolute", 99.0] == ""
    assert "r_shoulder_flexion" in said["r2", 99.0] and "distinguish these joints here" in said["r2", 99.0]
