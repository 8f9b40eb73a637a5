"""Lateness of the loop of all nodes: what is counted, and what `humanoid doctor --realtime` tells of it."""

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs ROS 2")

from humanoid_control.cli.main import main
from humanoid_control.errors import ConfigError
from humanoid_control.session import loop_lateness
from humanoid_control.session.loop_lateness import Lateness, LatenessRecorder, measure_loop
from test.places import domain


class Loop:
    rate, late, scheduling = 100.0, 0.0, "normal"


def test_ticks_are_counted_after_a_second_and_the_deadlines_without_one_too(monkeypatch, capsys):
    ended = []
    monkeypatch.setattr(loop_lateness.os, "kill", lambda *_: ended.append(1))
    node, recorder = Loop(), LatenessRecorder()
    recorder.record(node, 0.5)
    for k in range(149):
        node.late = 1e-3 if k >= 100 else 1.0
        recorder.note(1 if k == 120 else 0)
    assert ended == [1]
    told = loop_lateness.json.loads(capsys.readouterr().out.removeprefix(loop_lateness.RESULT))
    assert told["late"] == [1e-3] * 49 and told["missed"] == 1 and told["period"] == 0.01


def test_figures_of_a_loop():
    loop = Lateness(np.linspace(0.0, 1e-3, 99), 1, 0.002, "normal")
    assert loop.missed_percent() == pytest.approx(1.0) and loop.percentile(50) == pytest.approx(5e-4)


@pytest.mark.ros
@pytest.mark.patient
def test_the_doctor_measures_the_loop(monkeypatch, capsys):
    monkeypatch.setenv("ROS_DOMAIN_ID", domain("commands"))
    assert main(["doctor", "--realtime", "--seconds", "1", "--rate", "50"]) == 0
    out = capsys.readouterr().out
    assert "preempt rt: " in out and "loop: " in out and "us late (p50 / p99 / p99.9 / max)" in out
    assert "cycles at 50 Hz" in out
    assert main(["doctor", "--seconds", "1"]) == 2


def test_a_loop_that_ends_early_is_told_in_one_line():
    with pytest.raises(ConfigError, match="without a result: no room"):
        measure_loop(50.0, 1.0, command=("-c", "import sys; sys.exit('no room')"))
