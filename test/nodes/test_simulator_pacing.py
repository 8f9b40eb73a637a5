"""Simulated time keeps pace with a clock that the test turns by hand."""

import pytest

from humanoid_control.nodes.simulator import Pacer


def play(pacer, ticks, cost=0.0):
    """Ticks at given times, each taking `cost` for a period simulated; how many were done at each."""
    out, now = [], 0.0
    for t in ticks:
        now = max(now, t)
        n = pacer.due(now)
        now += n * cost
        pacer.record(n, now)
        out.append(n)
    return out


def test_ticks_in_time_do_one_period_each_however_late_they_are_within_it():
    jitter = [0.0, 0.9, 0.3, 0.0, 0.6, 0.94] * 50
    done = play(Pacer(0.002, 1.0), [0.002 * (k + j) for k, j in enumerate(jitter)])
    assert set(done) == {1}


@pytest.mark.parametrize("factor", [0.25, 1.0, 3.0])
def test_the_factor_is_kept(factor):
    pacer = Pacer(0.002, factor)
    done = play(pacer, [0.002 * k for k in range(2000)])
    assert sum(done) * 0.002 == pytest.approx(4.0 * factor, abs=0.01)
    assert pacer.achieved == pytest.approx(factor, rel=0.02) and not pacer.slow


def test_a_short_stall_is_made_up_for_and_a_long_one_given_up():
    pacer = Pacer(0.002, 1.0, limit=0.1)
    assert play(pacer, [0.0, 0.052, 0.054]) == [1, 26, 1]
    assert max(play(Pacer(0.002, 1.0, limit=0.1), [0.0, 5.0, 5.002])) <= 51


def test_a_machine_too_slow_falls_behind_and_says_so_but_piles_nothing_up():
    pacer = Pacer(0.002, 1.0, limit=0.02)
    done = play(pacer, [0.002 * k for k in range(2000)], cost=0.004)
    assert max(done) <= 11 and pacer.slow
    assert pacer.achieved == pytest.approx(0.5, rel=0.05)
    assert pacer.lost > 1.0


def test_zero_is_as_fast_as_possible():
    pacer = Pacer(0.002, 0.0)
    assert pacer.due(0.0) > 1000
    pacer.record(2000, 1.0)
    assert pacer.achieved == pytest.approx(4.0) and not pacer.slow
