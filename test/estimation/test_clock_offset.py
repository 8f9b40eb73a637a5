"""Stamps by clocks that are apart, drift and are set: what is made of them is near the truth half a second later."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from humanoid_control.estimation import ClockOffset, ClockOffsets, ClockSteps

T0, PERIOD = 1.7e9, 0.01
HOUR = 3600.0


def seconds_in(text):
    return float(re.search(r"(\S+) s ", text)[1])


class Source:
    """Messages of a source whose clock is `ahead` of the true time, which this computer's clock shows."""

    def __init__(self, seed=0, ahead=0.0, period=PERIOD, delay=0.001, jitter=0.002):
        self.rng, self.ahead, self.period = np.random.default_rng(seed), ahead, period
        self.delay, self.jitter, self.t = delay, jitter, 0.0
        self.offset = ClockOffset()

    def send(self, spoil=lambda stamp: stamp):
        """One message: how old it is taken to be when it comes, and how old it is [s]."""
        self.t += self.period
        late = self.delay + self.rng.exponential(self.jitter)
        now = T0 + self.t + late
        time = self.offset.time(spoil(T0 + self.t + self.ahead), now, self.t + late)
        assert time <= now
        return now - time, late

    def play(self, seconds):
        return np.array([self.send() for _ in range(round(seconds / self.period))])


def test_clocks_that_are_right_change_nothing():
    source = Source()
    ages = source.play(5.0)
    assert ages[:, 0] == pytest.approx(ages[:, 1], abs=1e-6) and source.offset.problem == ""


@pytest.mark.parametrize("ahead", [-0.7, -0.4, -0.05, 0.05, 0.4, 0.7])
def test_clocks_that_are_apart_are_put_together_and_named(ahead):
    """What is left is at most the shortest time under way."""
    source = Source(ahead=ahead)
    ages = source.play(3.0)[30:]
    assert np.abs(ages[:, 0] - ages[:, 1]).max() < 0.003
    text = source.offset.problem
    assert seconds_in(text) == pytest.approx(abs(ahead), abs=0.003) and "chrony" in text
    assert ("ahead" if ahead > 0 else "behind") in text


@pytest.mark.parametrize("ahead", [-30.0, 30.0, -HOUR, HOUR, -T0 + 5])
def test_stamps_of_another_time_are_replaced_by_arrival(ahead):
    source = Source(ahead=ahead)
    assert (source.play(2.0)[:, 0] == 0).all()
    source.play(1.0)
    assert "not used" in source.offset.problem


@pytest.mark.parametrize("before", [0.0, -0.4, 30.0])
def test_no_stamps_are_arrival_without_a_word(before):
    source = Source(ahead=before)
    source.play(1.0)
    for _ in range(250):
        age, _ = source.send(lambda _: 0.0)
        assert age == 0.0
    assert source.offset.problem == ""


@pytest.mark.parametrize("off", [HOUR, -HOUR, 0.3, -0.3, 5.0, -5.0])
def test_one_bad_stamp_is_named_and_harms_no_other(off):
    source = Source()
    source.play(2.0)
    source.send(lambda stamp: stamp + off)
    if abs(off) > 1 or off > 0:
        assert seconds_in(source.offset.problem) == pytest.approx(abs(off), abs=0.03)
    ages = source.play(1.0)
    assert ages[:, 0] == pytest.approx(ages[:, 1], abs=1e-6)
    source.play(1.5)
    assert source.offset.problem == ""


@given(
    st.lists(st.tuples(st.sampled_from([-HOUR, -5.0, -0.7, -0.2, 0.1, 0.4, 0.9, 5.0, HOUR]), st.floats(0.6, 15)),
             min_size=1, max_size=6),
    st.floats(-2e-4, 2e-4),
    st.integers(0, 1000),
)  # fmt: skip
def test_half_a_second_after_any_jump_all_is_right_while_clocks_drift(jumps, drift, seed):
    source = Source(seed, period=0.02)
    source.play(1.0)
    for step, seconds in jumps:
        source.ahead += step
        for k in range(round(seconds / source.period)):
            source.ahead += drift * source.period
            age, late = source.send()
            if k * source.period > 0.5:
                assert age <= late + 1e-9 or age - late < 0.008, "no older, but for ten seconds of drift"
                assert late - age < 0.03 or abs(source.ahead) > 0.9


def test_a_jump_is_told_for_a_while():
    source = Source()
    source.play(1.0)
    source.ahead = -5.0
    source.play(0.5)
    assert seconds_in(source.offset.problem) == pytest.approx(5.0, abs=0.01) and "behind" in source.offset.problem
    source.ahead = 0.0
    source.play(0.5)
    assert source.offset.problem
    source.play(2.5)
    assert source.offset.problem == ""


def test_a_message_that_is_late_is_taken_for_late():
    """Else old positions would be taken for new ones."""
    source = Source()
    source.play(1.0)
    age = T0 + 3.0 - source.offset.time(T0 + 2.8, T0 + 3.0, 3.0)
    assert age == pytest.approx(0.2, abs=1e-6)


def test_a_slower_way_is_found_again_when_it_is_fast():
    """The least of ten seconds: an offset is not kept for longer than that, nor forgotten sooner."""
    source = Source(ahead=-0.4, jitter=0.0)
    source.play(3.0)
    least = source.offset.offset
    source.delay += 0.02
    source.play(8.0)
    assert source.offset.offset == pytest.approx(least, abs=1e-6)
    source.play(3.0)
    assert source.offset.offset == pytest.approx(least + 0.02, abs=1e-6)


def test_stamps_that_stand_still_are_the_same_time_and_named():
    offset = ClockOffset()
    times = [offset.time(T0, T0 + 0.005 + t, t) for t in np.arange(0, 3, 0.01)]
    assert set(times) == {T0} and "do not change" in offset.problem


def test_sources_of_one_topic_have_offsets_of_their_own():
    clocks = ClockOffsets()
    for t in np.arange(0, 2, 0.01):
        times = [clocks.time(name, T0 + t + ahead, T0 + t + 0.002, t) for name, ahead in (("a", 0.0), ("b", -0.4))]
    assert times == pytest.approx([T0 + t, T0 + t + 0.002], abs=1e-6) and "0.402 s behind" in clocks.problem
    for t in np.arange(2, 6, 0.01):  # b is heard no more, and what was wrong with it is of no concern
        clocks.time("a", T0 + t, T0 + t + 0.002, t)
        assert bool(clocks.problem) == (t < 3.99) or 3.98 < t < 4.0
    for k in range(1000):  # bounded
        clocks.time(k, T0 + 3, T0 + 3, 3.0)
    assert len(clocks._sources) <= 16


def test_a_clock_that_is_set_is_noticed_and_simulated_time_is_none():
    for rate in (0.1, 1.0, 10.0):
        steps, t = ClockSteps(), 0.99
        assert [steps.detect(T0 + rate * s, s) for s in np.arange(0, 1, 0.01)] == [0.0] * 100
        for step in (-5.0, HOUR):
            t = t + 0.01
            assert steps.detect(T0 + rate * t + step, t) == pytest.approx(step + (rate - 1) * 0.01, abs=1e-5)
            steps.detect(T0 + rate * t, t)


def test_the_time_of_a_stamp_goes_along_with_a_clock_that_is_set():
    source = Source()
    source.play(1.0)
    now, arrival = T0 + source.t + 0.01, source.t + 0.01
    stamp = T0 + source.t + 0.005
    before = source.offset.time(stamp, now, arrival)
    source.offset.shift(2.0)
    assert source.offset.time(stamp, now + 2.1, arrival + 0.1) == before + 2.0
    assert source.offset.time(stamp, now + 1.0, arrival + 0.2) == now + 1.0, "never later than now"
