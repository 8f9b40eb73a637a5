"""What the study of faults makes of what was heard, and how it goes on: steps, gaps, contests, rests, kept cases."""

import contextlib
import math

import numpy as np
import pytest

from evidence.studies.faults.dance import holds
from evidence.studies.faults.figures import (
    FaultRow,
    Joints,
    MeasuredFault,
    Plan,
    contest,
    longest_gap,
    moves_from,
    over_speed,
    rest,
    spread,
)
from evidence.studies.faults.study import outcomes, run_study
from evidence.studies.report import KeptOutcomes, silent
from humanoid_control.errors import ConfigError, UnknownNameError

VELOCITY = np.array([2.0, 4.0])
PERIOD = 0.004


def commands(q, t=None, sender=None):
    """Commands of two joints at 250 Hz; positions of the first."""
    t = PERIOD * np.arange(len(q)) if t is None else t
    q = np.column_stack([q, np.zeros(len(q))])
    return Joints(t, t.copy(), q, np.zeros_like(q), np.zeros(len(t)) if sender is None else np.array(sender))


def moving(seconds=2.0, share=0.9):
    """A joint that goes to and fro at a share of its limit."""
    t = PERIOD * np.arange(round(seconds / PERIOD))
    return t, share * VELOCITY[0] * np.abs((t + 0.3) % 1.0 - 0.5)


def test_a_step_at_the_limit_is_none_beyond_it_and_a_longer_or_an_unknown_one_is():
    t, q = moving(share=1.0)
    assert over_speed(commands(q), VELOCITY)[0] == 0
    q[100:] += 0.02
    count, worst = over_speed(commands(q), VELOCITY)
    assert count == 1 and worst == pytest.approx(0.02, abs=0.017)
    q[300] = np.nan
    assert over_speed(commands(q), VELOCITY)[0] == 3, "to what is no number, and from it"
    pause = t.copy()
    pause[100:] += 0.1
    t, q = moving(share=1.0)
    q[100:] += 0.02
    assert over_speed(commands(q, pause), VELOCITY)[0] == 0, "after a gap a joint may be elsewhere"


def test_two_who_take_turns_are_a_contest_and_one_after_the_other_is_none():
    t = PERIOD * np.arange(500)
    assert contest(commands(np.zeros(500), t, np.arange(500) > 250)) == 0.0
    both = np.where((t > 0.4) & (t < 0.64), np.arange(500) % 2, 0)
    assert contest(commands(np.zeros(500), t, both)) == pytest.approx(0.24, abs=2 * PERIOD)
    late = t + 0.3 * (np.arange(500) > 250)
    assert contest(commands(np.zeros(500), late, np.arange(500) > 250)) == 0.0


def test_a_gap_counts_also_where_nothing_ends_it():
    t = np.array([0.1, 0.2, 0.9])
    assert longest_gap(t, 0.0, 1.0) == (pytest.approx(0.7), 2)
    assert longest_gap(t, 0.0, 3.0) == (pytest.approx(2.1), 3)


def test_braking_is_told_from_what_was_before_and_a_robot_that_goes_on_never_rests():
    t, q = moving()
    assert rest(commands(q), VELOCITY, 0.5, 1.5) == (math.inf, math.inf)
    speed = np.gradient(q, t)
    k = round(1.0 / PERIOD)
    braked = speed.copy()
    braked[k:] = np.sign(speed[k]) * np.maximum(abs(speed[k]) - 20.0 * (t[k:] - t[k]), 0.0)
    slowed = np.cumsum(braked) * PERIOD
    began, rests = rest(commands(slowed), VELOCITY, 0.8, 1.8)
    assert began == pytest.approx(1.0, abs=3 * PERIOD)
    assert rests - began == pytest.approx(abs(speed[k]) / 20.0, abs=3 * PERIOD)
    assert rest(commands(slowed), VELOCITY, 0.2, 0.9) == (math.inf, math.inf), "later does not count"
    slowly = np.maximum(0.1 - 0.1 * np.maximum(t - 0.5, 0.0), 0.0)  # of itself, within a second
    began, rests = rest(commands(np.cumsum(slowly) * PERIOD), VELOCITY, 0.2, 1.9)
    assert rests == pytest.approx(1.5, abs=0.05) and rests - began < 0.05
    assert moves_from(commands(slowed), VELOCITY, 0.5) == pytest.approx(0.5, abs=0.1)
    assert moves_from(commands(slowed), VELOCITY, 1.2) == math.inf


def test_rest_is_a_false_stop_only_while_targets_move():
    t, q = moving(4.0)
    stopped = np.where(t > 2.0, q[round(2.0 / PERIOD)], q)
    targets = np.column_stack([t, t, 0.2 * np.sin(3 * t), np.zeros((len(t), 2))])
    still = np.column_stack([t, t, np.zeros((len(t), 3))])
    assert holds(commands(q), targets, VELOCITY) == 0
    assert holds(commands(stopped), targets, VELOCITY) >= 3
    assert holds(commands(stopped), still, VELOCITY) == 0


def test_verdicts_and_percentiles():
    assert [MeasuredFault("x", v, 1.0).verdict for v in (1.0, 1.1, math.nan)] == ["kept", "broken", "broken"]
    assert MeasuredFault("x", 9.0).verdict == ""
    p50, most = spread("x", [0.1, math.inf, 0.2], {"p50": None, "max": 1.0})
    assert (p50.value, most.value, most.verdict) == (0.2, math.inf, "broken")


def row(log, fails):
    """A row whose cases are written down; `fails`: what some of them raise."""

    @contextlib.contextmanager
    def start(plan):
        log.append("start")

        def do(job):
            if (error := fails.pop(job[0], None)) is not None:
                raise error
            log.append(job[0])
            return {"value": math.inf}

        yield do

    return FaultRow("some", "", lambda plan: [[k] for k in range(plan.states)], start, lambda found: [])


def test_an_interrupted_row_goes_on_and_a_stack_that_fails_is_started_anew(tmp_path):
    pytest.importorskip("rclpy", reason="needs ROS 2")
    from humanoid_control.session import StackFailure

    file, log, plan = tmp_path / "kept.jsonl", [], Plan(states=4)
    some = row(log, {1: StackFailure("dead"), 2: KeyboardInterrupt()})
    with pytest.raises(KeyboardInterrupt):
        list(outcomes(some, plan, KeptOutcomes(file, "faults"), silent, 0.0, 1.0))
    assert log == ["start", 0, "start", 1]
    found = list(outcomes(some, plan, KeptOutcomes(file, "faults"), silent, 0.0, 1.0))
    assert log == ["start", 0, "start", 1, "start", 2, 3]
    assert [o["case"] for o in found] == [[0], [1], [2], [3]] and found[0]["value"] is None
    other = Plan(states=4, settings={"whole_body_ik": {"following_error": 0.0}})
    list(outcomes(some, other, KeptOutcomes(file, "faults"), silent, 0.0, 1.0))
    assert log[7:] == ["start", 0, 1, 2, 3], "what was tried with other parameters is another case"


def test_what_cannot_be_tried_is_refused_before_anything_runs():
    pytest.importorskip("rclpy", reason="needs ROS 2")
    with pytest.raises(UnknownNameError, match="kills"):
        run_study(only=["kils"])
    with pytest.raises(ConfigError, match="states must be"):
        run_study(states=0)
    with pytest.raises(UnknownNameError, match="following_error"):
        run_study(settings=["whole_body_ik.following_eror=0"])
