"""`humanoid bench policy`: which command answers which observation, and the bench as a user runs it."""

import json

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs ROS 2")
pytest.importorskip("onnxruntime", reason="needs the extra 'policy': pip install 'humanoid_control[policy]'")

from evidence.benchmarks.nodes.policy import TOTAL, answered

MS = 1_000_000
PERIOD = 20 * MS


def instants(n):
    return 1_000 * MS + 4 * MS * np.arange(n, dtype=np.int64)


def test_each_command_belongs_to_the_instant_that_the_policy_used():
    sent, rng = instants(5_000), np.random.default_rng(0)
    took = rng.integers(300_000, 2 * MS, 1_000)
    took[[7, 300]] = 6 * MS, 17 * MS  # behind one and four newer instants
    found, silent = answered(sent, np.sort(sent[2::5] + took), PERIOD, 5)
    assert (found[0] == sent[2::5]).all() and (found[1] - found[0] == took).all() and not len(silent)


def test_observations_without_a_command_are_counted_and_not_given_to_others():
    sent = instants(5_000)
    arrivals = np.delete(sent[1::5] + MS, [100, 101, 640])
    found, silent = answered(sent, arrivals, PERIOD, 5)
    assert silent.tolist() == sent[1::5][[100, 101, 640]].tolist() and (found[1] - found[0] == MS).all()


def test_commands_later_than_a_period_leave_no_observation_without_one():
    sent, took = instants(5_000), np.full(1_000, MS)
    took[[50, 300, 301, 302]] = [22 * MS, 27 * MS, 25 * MS, 23 * MS]
    took[[51, 303]] = 4 * MS
    found, silent = answered(sent, sent[2::5] + took, PERIOD, 5)
    assert (found[0] == sent[2::5]).all() and (found[1] - found[0] == took).all() and not len(silent)


def test_a_policy_that_begins_anew_uses_other_instants():
    sent = instants(5_000)
    arrivals = np.concatenate([sent[1:2500:5], sent[2503::5]]) + MS
    found, _ = answered(sent, arrivals, PERIOD, 5)
    late = found[1] - found[0]
    assert (late == MS).mean() > 0.998 and late.min() == MS


def commands_of(sent, took):
    """Instants that a policy uses by its rule, and arrivals of its commands."""
    used, due = [], sent[0]
    for instant in sent:
        if instant >= due - MS:
            used.append(instant)
            due = due + PERIOD if instant - due < PERIOD // 2 else instant + PERIOD
    return np.array(used), np.array(used) + took


def test_sensors_that_pause_and_catch_up_leave_no_observation_without_a_command():
    """What the sensors could not send in time is not held against the policy."""
    sent, rng = instants(20_000), np.random.default_rng(1)
    sent += rng.integers(0, 100_000, len(sent))
    for begin in range(500, 19_500, 333):  # pauses of 6 to 70 ms, after which the instants follow at once
        pause = int(rng.integers(6 * MS, 70 * MS))
        late = (sent >= sent[begin]) & (sent < sent[begin] + pause)
        sent[late] = sent[begin] + pause + 20_000 * np.arange(late.sum())
    used, arrivals = commands_of(np.sort(sent), 2 * MS)
    found, silent = answered(np.sort(sent), arrivals, PERIOD, 5)
    assert len(silent) <= 0.002 * len(used), len(silent)
    assert (found[1] - found[0] < 3 * MS).mean() > 0.99 and len(found[0]) >= 0.99 * len(used)


def test_nothing_heard_is_nothing():
    found, silent = answered(instants(10), np.zeros(0, dtype=np.int64), PERIOD, 5)
    assert found.shape == (2, 0) and not len(silent)


@pytest.mark.ros
@pytest.mark.stack
@pytest.mark.slow
@pytest.mark.nightly
def test_rows_of_a_policy_that_runs(humanoid, model_file):
    folder = str(model_file("policies/holosoma/ppo_g1_29dof.onnx").parents[2])
    done = humanoid("bench", "policy", "--seconds", "10", "--json", HUMANOID_TEST_DATA=folder)
    assert done.returncode == 0, done.stderr
    rows = {r["name"]: r for r in json.loads(done.stdout)["rows"]}
    assert list(rows) == [TOTAL, "step, by the node", "without a command", "processor"]
    way = rows[TOTAL]
    assert 0.9 * 500 <= way["n"] + rows["without a command"]["median"] <= 1.1 * 500
    assert 100 < way["median"] < 20_000 and way["p99.9"] == "" and 0.5 < rows["processor"]["median"] < 100
    assert 10 < rows["step, by the node"]["median"] < way["median"]
