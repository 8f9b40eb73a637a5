"""Simulated time keeps pace with a clock that the test turns by hand."""

from types import SimpleNamespace

import numpy as np
import pytest

from humanoid_control.nodes import simulator
from humanoid_control.nodes.base.messages import RisingStamps
from humanoid_control.nodes.simulating.outputs import SimulatorOutputs
from humanoid_control.nodes.simulator import Pacer, Simulator


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


class Recorder(SimulatorOutputs):
    """Outputs that only keep their stamps [ns], and when each state was due by the number of its period."""

    def __init__(self, clock, pacer):
        self.clock, self.pacer, self.simulated_stamps = clock, pacer, False
        self._now, self._stamps = lambda: SimpleNamespace(nanoseconds=clock.ros()), RisingStamps()
        self.sent = []

    def publish(self, before=0.0):
        stamp = self._stamp(before)
        self.sent.append(stamp.sec * 10**9 + stamp.nanosec)


class LoadedClock:
    """A computer whose time is taken by steps, and whose ROS time may be set back."""

    def __init__(self, seed):
        self.rng, self.time, self.offset = np.random.default_rng(seed), 100.0, 10**15

    def monotonic(self):
        self.time += 1e-6
        return self.time

    def ros(self):
        return self.offset + round(1e9 * self.monotonic())

    def spend(self, _steps):
        self.time += self.rng.choice([2e-4, 2e-4, 2e-4, 1.5e-3, 0.03], p=[0.4, 0.3, 0.2, 0.08, 0.02])


def loaded_simulator(clock, monkeypatch):
    """The node's own tick and pace, with an engine that takes a while and outputs that keep their stamps."""
    monkeypatch.setattr(simulator, "time", clock)
    node = Simulator.__new__(Simulator)
    node.params, node.paused, node.rate, node.steps = (
        SimpleNamespace(command_timeout=1.0, tension=0.0, step=0.001),
        False,
        500.0,
        2,
    )
    node.engine = SimpleNamespace(diverged=False, failure="", step=clock.spend)
    node.incoming = SimpleNamespace(
        hold_when_silent=lambda _: None,
        pull=lambda _: None,
        lead=lambda _: None,
        note_errors=lambda: None,
        arbiter=SimpleNamespace(report=lambda _: None),
        gained=SimpleNamespace(step=lambda n: node.engine.step(n)),
    )
    node.health = SimpleNamespace(check=lambda *_: False)
    node.winches = SimpleNamespace(watch=lambda: None, restart=lambda: None)
    node.pacer, node._pace_checked, node._active_since = Pacer(0.002, 1.0), 1e9, 0.0
    node.pacer.restart(clock.time)
    node.outgoing = Recorder(clock, node.pacer)
    return node


@pytest.mark.parametrize("seed", range(5))
def test_stamps_grow_under_load_and_stay_with_the_time_at_which_a_state_was_due(seed, monkeypatch):
    clock = LoadedClock(seed)
    node, start, most = loaded_simulator(clock, monkeypatch), clock.time, 0
    for k in range(2000):
        clock.time = max(clock.time, start + 0.002 * k)  # the loop skips the ticks that were missed
        before = len(node.outgoing.sent)
        node.tick(clock.monotonic())
        most = max(most, len(node.outgoing.sent) - before)
    stamps = np.array(node.outgoing.sent)
    assert most > 3 and len(stamps) > 1000, "it had to catch up"
    assert (np.diff(stamps) > 0).all()
    if node.pacer.lost == 0.0:
        due = clock.offset + 1e9 * (start + 0.002 * np.arange(len(stamps)))
        assert (stamps - due > -2e5).all() and (stamps <= due).all()
        assert np.abs(np.diff(stamps) - 2e6).max() < 2e4, "speeds by differences are those of the joints"


def test_stamps_grow_where_the_clock_goes_back(monkeypatch):
    clock = LoadedClock(7)
    node, start = loaded_simulator(clock, monkeypatch), clock.time
    for k in range(1000):
        clock.time = max(clock.time, start + 0.002 * k)
        if k % 100 == 50:
            clock.offset -= 23_000_000
        node.tick(clock.monotonic())
    assert (np.diff(node.outgoing.sent) > 0).all()
