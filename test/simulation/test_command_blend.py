"""Blend of commands that come back: speed limits, continuity, arrival."""

import numpy as np
import pytest

from humanoid_control.simulation.drives.command_blend import CommandBlend

SPEED, DT = np.array([3.0, 1.0, 8.0]), 0.002


def blend(hold, command, seconds=4.0):
    """References (k, n) from the one that is held, until the blend ends; `command` is a function of time."""
    b = CommandBlend(SPEED)
    b.begin(np.array(hold, dtype=float), command(0.0))
    rows, k = [b.reference], 0
    while b.active:
        k += 1
        assert k * DT < seconds, "it ends"
        rows.append(b.step(command(k * DT), DT).copy())
    return np.array(rows)


def test_a_posture_is_reached_at_the_speed_limit_without_a_jerk():
    goal = np.array([1.5, 0.2, -1.0])
    q = blend([0.0, 0.0, 0.0], lambda t: goal)
    v = np.diff(q, axis=0) / DT
    assert (np.abs(v) <= SPEED + 1e-9).all()
    assert np.abs(v[:, 0]).max() == pytest.approx(3.0, rel=1e-3), "the joint with the longest way is as fast as it may"
    assert len(v) * DT == pytest.approx(1.875 * 1.5 / 3.0, abs=2 * DT)
    assert np.abs(np.diff(v, axis=0)).max() / DT < 1.01 * 10 / np.sqrt(3) * 1.5 / (1.875 * 0.5) ** 2
    assert q[-1] == pytest.approx(goal, abs=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_commands_that_move_at_full_speed_are_caught_without_a_faster_step(seed):
    rng = np.random.default_rng(seed)
    w, phase = rng.uniform(1.0, 4.0, 3), rng.uniform(0.0, 6.0, 3)
    moving = lambda t: 0.95 * SPEED / w * np.sin(w * t + phase)  # noqa: E731
    q = blend(rng.uniform(-1.0, 1.0, 3), moving, 20.0)
    assert (np.abs(np.diff(q, axis=0)) <= SPEED * DT + 1e-12).all()
    assert q[-1] == pytest.approx(moving((len(q) - 1) * DT), abs=1e-9)


def test_joints_without_a_command_stay_and_no_way_is_no_blend():
    q = blend([0.3, 0.1, 0.2], lambda t: np.array([0.5, np.nan, 0.2]))
    assert (q[:, 1] == 0.1).all() and q[-1, 0] == pytest.approx(0.5)
    assert len(blend([0.3, 0.1, 0.2], lambda t: np.array([0.3, np.nan, 0.2]))) == 1


def test_an_end_leaves_the_references_where_they_are():
    b = CommandBlend(SPEED)
    b.begin(np.zeros(3), np.ones(3))
    at = b.step(np.ones(3), DT).copy()
    b.end()
    assert not b.active and (b.reference == at).all()


def test_joints_that_come_back_alone_do_not_slow_those_that_were_commanded_all_along():
    b, goal = CommandBlend(SPEED), np.array([0.5, 0.4, 0.0])
    b.begin(np.zeros(3), goal, np.array([False, True, False]))
    first = b.step(goal, DT)
    assert first[0] == pytest.approx(SPEED[0] * DT) and 0 < first[1] < 1e-6
    b.begin(first.copy(), goal, np.array([False, False, True]))
    assert 0 < b.step(goal, DT)[1] - first[1] < 1e-6, "one that was on its way still is"
    while b.active:
        b.step(goal, DT)
    assert b.reference == pytest.approx(goal, abs=1e-9)
