"""The figures of a run's report, on runs made up so that the answers are known."""

from pathlib import Path

import numpy as np
import pytest

from humanoid_control.errors import ConfigError
from humanoid_control.evaluation import recorded_run
from humanoid_control.evaluation.bag import BagReader
from humanoid_control.evaluation.recorded_run import (
    RecordedRun,
    Signal,
    limits_kept,
    link_error_statistics,
    run_report,
    self_collisions,
    smoothness,
)
from humanoid_control.retargeting import POINTS
from humanoid_control.robots import load_robot


@pytest.fixture(scope="module")
def robot():
    return load_robot("hrp2", "fixed")


def still(robot, T=200, rate=100.0):
    t = np.arange(T) / rate
    return Signal(t, np.tile(robot.postures["neutral"], (T, 1)), np.zeros((T, robot.n)))


def test_a_rate_counts_the_intervals_between_the_first_message_and_the_last():
    bag, second = BagReader.__new__(BagReader), 10**9
    stamps = {"/a": [5 * second + k * second // 50 for k in range(101)], "/b": [0, 4 * second], "/once": [7]}
    bag.raw = lambda: ((topic, t, b"") for topic, times in stamps.items() for t in times)
    assert bag.rates() == pytest.approx({"/a": 50.0, "/b": 0.25, "/once": 0.0})


def test_errors_are_the_distances_to_the_targets(robot):
    reached = robot.point_positions(robot.q("neutral"), POINTS)
    targets = np.tile(reached, (50, 1, 1))
    targets[:, 5, 0] += 0.03  # left wrist: 3 cm; right wrist: 4 cm
    targets[:, 6, 1] -= 0.04
    errors = link_error_statistics(robot, still(robot), np.linspace(0.1, 1.5, 50), targets)
    assert errors["lower arms"] == pytest.approx({"mean": 0.035, "std": 0.005, "max": 0.04})
    assert errors["spine"]["max"] == pytest.approx(0, abs=1e-12)
    assert errors["mean"]["mean"] == pytest.approx(0.07 / 7)


def test_targets_outside_the_recording_do_not_count(robot):
    targets = np.tile(robot.point_positions(robot.q("neutral"), POINTS), (3, 1, 1))
    targets[0] += 9.0
    assert link_error_statistics(robot, still(robot), np.array([-5.0, 0.5, 1.0]), targets)["mean"]["max"] < 1e-9


def test_targets_of_another_time_than_all_postures_are_one_line(robot, monkeypatch):
    s = still(robot)
    targets = np.tile(robot.point_positions(robot.q("neutral"), POINTS), (3, 1, 1))
    run = RecordedRun(s, s, "joint_commands", np.array([7.0, 8.0, 9.0]), targets, {}, {}, 9.0)
    monkeypatch.setattr(recorded_run, "read_run", lambda path, robot: run)
    with pytest.raises(ConfigError, match=r"run\.bag: none of its targets falls within the time of its joint states"):
        run_report(Path("run.bag"), robot)


def test_a_quiet_run_keeps_the_limits(robot):
    report = limits_kept(robot, still(robot))
    assert report["kept"] and report["commands"] == 200
    assert report["speed_share_of_limit"] == 0 and report["at_speed_limit_percent"] == 0


@pytest.mark.parametrize("fault", ["position", "velocity", "between", "nan"])
def test_each_broken_limit_is_seen(robot, fault):
    s = still(robot)
    if fault == "position":
        s.position[50, 3] = robot.upper[3] + 0.01
        s.velocity[:] = 0
    elif fault == "velocity":
        s.velocity[50, 3] = 1.01 * robot.velocity[3]
    elif fault == "between":  # the published velocity says nothing, but the positions jump
        s.position[100:, 3] += 1.5 * robot.velocity[3] * 0.01
    else:
        s.position[50, 3] = np.nan
    report = limits_kept(robot, s)
    assert not report["kept"]
    if fault == "between":
        assert report["speed_share_of_limit"] == pytest.approx(1.5)


def test_self_collision_is_found_with_its_pair(robot):
    s = still(robot, 300)
    s.position[100:200, robot.joint_index("l_shoulder_abduction")] = -0.5
    report = self_collisions(robot, s)
    assert report["frames"] == 150
    assert 45 <= report["frames_in_collision"] <= 52
    assert report["closest_m"] < -0.01 and "l_" in report["closest_pair"][0] + report["closest_pair"][1]
    assert self_collisions(robot, still(robot))["frames_in_collision"] == 0


def test_smoothness_of_a_sine(robot):
    s = still(robot, 1000)
    w, a = 2 * np.pi * 0.5, 0.2
    s.position[:] += (a * np.sin(w * s.time))[:, None]
    report = smoothness(s)
    assert report["speed_p99_rad_s"] == pytest.approx(a * w, rel=0.02)
    assert report["acceleration_p99_rad_s2"] == pytest.approx(a * w**2, rel=0.02)


def test_postures_that_were_measured_may_press_into_a_stop_and_have_other_times(robot):
    s = still(robot)
    s.position[50, 3] = robot.upper[3] + np.radians(0.9)
    assert limits_kept(robot, s, measured=True)["kept"] and not limits_kept(robot, s)["kept"]
    s.position[50, 3] = robot.upper[3] + np.radians(1.1)
    assert not limits_kept(robot, s, measured=True)["kept"]
    s.position[50, 3], s.velocity[50, 3] = robot.postures["neutral"][3], 1.1 * robot.velocity[3]
    assert not limits_kept(robot, s, measured=True)["kept"], "the speed was commanded"
