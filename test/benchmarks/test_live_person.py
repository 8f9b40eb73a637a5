"""`humanoid bench human_node`: the person at 240 Hz, as a user runs it."""

import json

import pytest

from humanoid_control.errors import EnvironmentProblem

pytest.importorskip("rclpy", reason="needs ROS 2")
pytestmark = [pytest.mark.ros, pytest.mark.stack, pytest.mark.slow]


@pytest.mark.nightly
def test_rows_of_a_person_at_240_hz(humanoid, model_file):
    folder = str(model_file("human_motion/rajagopal_walk/motion_capture_walk.trc").parents[2])
    done = humanoid("bench", "human_node", "--seconds", "5", "--json", HUMANOID_TEST_DATA=folder)
    assert done.returncode == 0, done.stderr
    rows = {r["name"]: r for r in json.loads(done.stdout)["rows"]}
    assert list(rows) == ["age", "latency", "frames_missed", "processor", "iterations", "residual"]
    assert 0 < rows["age"]["median"] <= rows["age"]["p99"] and rows["age"]["n"] == 1200
    assert rows["frames_missed"]["median"] < 50 and 1 < rows["processor"]["median"] < 100
    assert 10 < rows["residual"]["median"] < 40
    assert humanoid("bench", "human_node", "--seconds", "1", HUMANOID_TEST_DATA=folder).returncode == 2


def test_without_the_recording_it_says_so(monkeypatch):
    from evidence.benchmarks.motion.live_person import measure

    monkeypatch.delenv("HUMANOID_TEST_DATA", raising=False)
    with pytest.raises(EnvironmentProblem, match="HUMANOID_TEST_DATA"):
        measure()
