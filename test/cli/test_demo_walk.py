"""`humanoid demo walk` as a user runs it, on a short course: Lola walks, is pushed and stops; a report tells of it."""

import json

import pytest

pytest.importorskip("rclpy", reason="needs ROS 2")

from humanoid_control.cli.main import main
from humanoid_control.session import walk_course
from humanoid_control.session.walk_course import Leg, print_walk
from test.places import domain

pytestmark = [pytest.mark.ros, pytest.mark.stack, pytest.mark.slow, pytest.mark.patient]


@pytest.mark.nightly
def test_lola_walks_a_short_course_and_a_report_follows(capfd, monkeypatch, tmp_path):
    """Some 20 s: five simulated ones at half of real time, starting and stopping."""
    monkeypatch.setenv("ROS_DOMAIN_ID", domain("commands"))
    monkeypatch.setenv("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
    monkeypatch.setenv("HUMANOID_HOME", str(tmp_path))
    course = [Leg("forward", (0.3, 0.0, 0.0), 3.4, push=(0.0, 8.0, 0.0))]
    monkeypatch.setattr(walk_course, "course_for", lambda robot, ground: course)
    patient = [f"walker.{n}={s}" for n, s in (("sensor_late", 0.3), ("sensor_lost", 0.8), ("sensor_off", 2.0))]
    patient += ["walker.priority=0", "simulator.priority=0"]
    code = main(["demo", "walk", "--no-viewer", "--json", *(a for p in patient for a in ("--set", p))])
    report = json.loads(capfd.readouterr().out)
    assert code == 0 and report["good"] and report["finished"] and report["state"] == "STAND" and report["falls"] == 0
    forward = report["legs"][0]
    assert forward["leg"] == "forward" and forward["forward_m"] > 0.5 and abs(forward["left_m"]) < 0.1
    assert report["steps"] >= 5 and report["way_m"] > 0.5 and 0.75 < report["tilt_deg"] < 4.0  # 0.5 unpushed
    assert report["odometry_error_percent"] < 10.0 and report["commands_limited"] == 0
    print_walk(report)
    said = capfd.readouterr().out
    assert "walked the course without a fall" in said and "odometry error" in said
