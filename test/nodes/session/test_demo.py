"""Reports of demonstrations: warnings that random goals provoke are left out, and what was not recorded has none."""

from types import SimpleNamespace

import pytest

pytest.importorskip("rclpy", reason="needs ROS 2")

from humanoid_control.errors import ConfigError
from humanoid_control.robots import load_robot
from humanoid_control.session import Session
from humanoid_control.session.demo import (
    WatchedRun,
    dance_report,
    provoked_by_goals,
    reaching_report,
    size_in_words,
)


@pytest.mark.parametrize(
    ("text", "provoked"),
    [
        ("r_wrist jumped: held", True),
        ("r_wrist is not a number: held; l_wrist jumped: held", True),
        ("r_wrist jumped: held; no joint states for 2 s", False),
        ("killed by signal 9", False),
    ],
)
def test_only_what_the_goals_do_on_purpose_is_left_out(text, provoked):
    assert provoked_by_goals(text) is provoked


def test_a_session_that_was_not_recorded_has_no_report(monkeypatch, tmp_path):
    monkeypatch.setenv("HUMANOID_HOME", str(tmp_path))
    session, run = Session("targets", "hrp2"), WatchedRun(1.0, 0.5, [])
    robot = load_robot("hrp2", "fixed")
    for report in (lambda: dance_report(session, run, robot), lambda: reaching_report(session, run, robot, 200.0)):
        with pytest.raises(ConfigError, match="record=True"):
            report()


def test_times_of_a_run_are_told_in_hundredths_of_a_second():
    assert WatchedRun(7.33333, 0.50666, []).to_json() == {"start_s": 7.33, "stop_s": 0.51}


@pytest.mark.parametrize(
    ("times", "words"),
    [
        (10.0, ""),
        (400.0, "the recording will take about 1.2 GB; 2.0 GB are free"),
        (
            900.0,
            "the recording will take about 2.7 GB; 2.0 GB are free: the recording will end early, "
            "the robot keeps running",
        ),
    ],
)
def test_a_recording_that_will_be_large_is_told_before_it_is(times, words, monkeypatch, tmp_path):
    (tmp_path / "recording").mkdir()
    with (tmp_path / "recording" / "recording_0.mcap").open("wb") as file:
        file.truncate(3_000_000)
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=2_000_000_000))
    assert size_in_words(tmp_path, times) == words
