"""Filtering and differentiating joint positions."""

import numpy as np
import pytest

from humanoid_control.errors import ConfigError
from humanoid_control.estimation import JointFilter


def feed(path, rate=500.0, seconds=2.0, noise=0.0, bandwidth=30.0):
    f, rng, out = JointFilter(("a",), bandwidth), np.random.default_rng(0), []
    for k in range(int(seconds * rate)):
        t = k / rate
        f.update(t, np.array([path(t) + noise * rng.normal()]))
        out.append((t, f.position[0], f.velocity[0]))
    return np.array(out)


def test_constant_velocity_is_followed_without_lag():
    t, q, v = feed(lambda t: 0.7 * t - 1.0).T
    late = t > 0.5
    assert np.allclose(q[late], 0.7 * t[late] - 1.0, atol=1e-6)
    assert np.allclose(v[late], 0.7, atol=1e-5)


@pytest.mark.parametrize(("rate", "bandwidth"), [(100.0, 5.0), (500.0, 5.0), (500.0, None)])
def test_both_its_poles_are_at_the_bandwidth(rate, bandwidth):
    """After a step the error obeys e(k+2) - 2 r e(k+1) + r^2 e(k) = 0 with r = exp(-omega dt): critically damped."""
    f, error = JointFilter(("a",), bandwidth) if bandwidth else JointFilter(("a",)), []
    f.update(0.0, np.array([0.0]))
    for k in range(1, 60):
        f.update(k / rate, np.array([1.0]))
        error.append(1.0 - f.position[0])
    e, r = np.array(error), np.exp(-2 * np.pi * (bandwidth or 30.0) / rate)
    assert e[2:] - 2 * r * e[1:-1] + r**2 * e[:-2] == pytest.approx(np.zeros(len(e) - 2), abs=1e-12)
    assert e[0] == pytest.approx(r**2), "of the first sample 1 - r^2 counts"


def test_velocity_of_a_sine_and_its_noise():
    w = 2 * np.pi * 1.0
    t, _, v = feed(lambda t: 0.5 * np.sin(w * t)).T
    late = t > 0.5
    assert np.abs(v[late] - 0.5 * w * np.cos(w * t[late])).max() < 0.08 * 0.5 * w  # a lag of 2 / omega = 11 ms
    raw = np.diff(np.random.default_rng(0).normal(size=1000) * 1e-3) * 500
    _, _, v = feed(lambda t: 0.0, noise=1e-3).T
    assert v[200:].std() < 0.2 * raw.std(), "quieter than plain differences"


def test_a_clock_that_was_set_back_is_followed_and_a_late_sample_is_passed_over():
    """As after a reset of the simulator, whose stamps begin at zero again."""
    f = JointFilter(("a",), 30.0)
    for k in range(1000):
        f.update(10.0 + 0.01 * k, np.array([0.5 * k]))
    at, speed = f.position[0], f.velocity[0]
    f.update(19.5, np.array([-1.0]))
    assert (f.position[0], f.velocity[0]) == (at, speed), "half a second late"
    f.update(0.0, np.array([-1.0]))
    assert f.position[0] == -1.0 and f.velocity[0] == 0.0
    for k in range(1, 200):
        f.update(0.01 * k, np.array([-1.0 + 0.001 * k]))
    assert f.velocity[0] == pytest.approx(0.1, abs=1e-6)


def test_uneven_samples_and_repeats():
    f, rng, t = JointFilter(("a",), 30.0), np.random.default_rng(1), 0.0
    for _ in range(1000):
        t += rng.uniform(0.0005, 0.006)
        f.update(t, np.array([0.3 * t]))
        f.update(t, np.array([99.0]))  # the same time again: ignored
        f.update(t - 0.1, np.array([99.0]))  # older: ignored
    assert f.position[0] == pytest.approx(0.3 * t, abs=1e-3)
    assert f.velocity[0] == pytest.approx(0.3, abs=1e-2)


def test_a_joint_that_is_not_measured_keeps_its_estimate():
    f = JointFilter(("a", "b"))
    for k in range(100):
        f.update(k * 0.002, np.array([0.1 + 0.6 * k * 0.002, np.nan if k > 50 else 0.2]))
    assert f.position == pytest.approx([0.1 + 0.6 * 99 * 0.002, 0.2], abs=1e-6), "and the others go on"
    assert f.velocity == pytest.approx([0.6, 0.0], abs=1e-5)
    assert f.age(99 * 0.002)[1] == pytest.approx(49 * 0.002)


def test_unknown_until_measured_and_after_reset():
    f = JointFilter(("a", "b"))
    assert np.isnan(f.position).all()
    f.update(0.0, np.array([1.0, np.nan]))
    assert f.position[0] == 1.0 and np.isnan(f.position[1])
    f.update(0.1, np.array([2.0, np.nan]))
    assert f.velocity[0] > 0
    f.reset()
    assert np.isnan(f.position).all() and (f.velocity == 0).all() and np.isnan(f.age(1.0)).all()


def test_prediction_reaches_only_a_little_ahead():
    f = JointFilter(("a",))
    for k in range(500):
        f.update(k * 0.002, np.array([0.5 * k * 0.002]))
    state = f.at(499 * 0.002 + 10.0, horizon=0.02)
    assert state.names == ("a",) and state.stamp == 499 * 0.002 + 10.0 and np.isnan(state.effort).all()
    assert state.q[0] == pytest.approx(0.5 * (499 * 0.002 + 0.02), abs=1e-3)


def test_bandwidth_must_be_positive():
    with pytest.raises(ConfigError, match="bandwidth"):
        JointFilter(("a", "b", "c"), 0.0)


def test_a_joint_that_runs_into_its_stop_is_not_followed_through_it():
    limits, overshot = (np.array([-1.0]), np.array([0.5])), False
    ended, free = JointFilter(("a",), 30.0, limits), JointFilter(("a",), 30.0)
    for k in range(600):
        t = 0.002 * k
        at = np.array([min(3.0 * t - 0.5, 0.503)])  # the stop gives way by 3 mrad
        for f in (ended, free):
            f.update(t, at)
        assert ended.at(t + 0.01).q[0] <= max(0.5, at[0]) and ended.position[0] <= max(0.5, at[0])
        if at[0] < 0.5:
            assert ended.position[0] == free.position[0] and ended.velocity[0] == free.velocity[0], "as ever inside"
        elif free.position[0] > 0.506:
            overshot = True
    assert overshot, "the stop would have been run through"
    assert ended.position[0] == pytest.approx(0.503, abs=1e-6) and abs(ended.velocity[0]) < 1e-3
    for k in range(600, 700):
        ended.update(0.002 * k, np.array([0.7]))
    assert ended.position[0] == pytest.approx(0.7, abs=1e-3), "one that was bent beyond is where it is"
    assert ended.at(1.5).q[0] <= 0.7 + 1e-9


@pytest.mark.parametrize("end", [np.inf, 1000.0])
@pytest.mark.parametrize("speed", [1.0, -9.0])
def test_an_encoder_of_one_turn_does_not_move_a_joint_without_ends(end, speed):
    f, out = JointFilter(("table",), 30.0, (np.array([-end]), np.array([end]))), []
    for k in range(800):
        f.update(0.01 * k, np.array([(speed * 0.01 * k + np.pi) % (2 * np.pi) - np.pi]))
        out.append((f.position[0], f.velocity[0]))
    q, v = np.array(out[100:]).T
    assert np.abs(v - speed).max() < 1e-3, "it turns at the same speed all the time"
    assert np.abs(q - speed * 0.01 * np.arange(100, 800)).max() < 1e-3
    f.update(8.0, np.array([f.position[0] + 4.0]))
    assert abs(f.velocity[0]) > 10, "a jump that is no whole turn is a jump"


def test_a_joint_with_ends_is_not_unwrapped():
    f = JointFilter(("a",), 30.0, (np.array([-5.0]), np.array([5.0])))
    f.update(0.0, np.array([3.1]))
    f.update(0.01, np.array([-3.1]))
    assert f.position[0] < -2.0


@pytest.mark.parametrize("time", [np.nan, np.inf, -np.inf])
def test_a_sample_of_no_time_is_passed_over(time):
    f = JointFilter(("a",))
    f.update(time, np.array([0.5]))
    for k in range(100):
        f.update(0.01 * k, np.array([0.01 * k]))
        f.update(time, np.array([3.0]))
    assert f.position[0] == pytest.approx(0.99, abs=1e-3) and f.velocity[0] == pytest.approx(1.0, abs=1e-3)
