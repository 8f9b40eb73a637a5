"""Targets as they arrive: smoothed, never believed when they jump, held when they are not numbers."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from humanoid_control.ik import SampleVerdict, TargetFilter, TargetFilterSettings

DT, RATE = 0.004, 60.0


class One(TargetFilter):
    """A filter with a single target."""

    def __init__(self, position, settings=None):
        super().__init__(settings)
        self.add(np.asarray(position, float))

    def sample(self, position, time):
        return SampleVerdict(self.update(np.array([0]), np.asarray(position, float)[None], time)[0])

    def advance(self, now, dt):
        x, v = self.step(now, dt)
        return x[0], v[0]


def play(path, seconds=3.0, settings=None):
    """Feed a path sampled at 60 Hz, step at 250 Hz; times, references, velocities."""
    f = One(path(0.0), settings)
    times, xs, vs, next_sample = [], [], [], 0.0
    for k in range(int(seconds / DT)):
        t = k * DT
        while next_sample <= t:
            f.sample(path(next_sample), next_sample)
            next_sample += 1 / RATE
        x, v = f.advance(t, DT)
        times.append(t), xs.append(x), vs.append(v)
    return np.array(times), np.array(xs), np.array(vs)


def test_a_target_at_constant_velocity_is_followed_without_lag():
    t, x, v = play(lambda t: np.array([0.5 * t, 0.0, -0.2 * t]))
    late = t > 1
    assert np.allclose(x[late], np.outer(t[late], [0.5, 0, -0.2]), atol=2e-3)
    assert np.allclose(v[late], [0.5, 0, -0.2], atol=0.02)


def test_the_reference_is_smooth_between_samples():
    """60 Hz steps must not come through: velocity changes little from tick to tick."""
    _, x, v = play(lambda t: np.array([0.3 * np.sin(2 * np.pi * 0.8 * t), 0, 0]))
    acceleration = np.diff(v[100:, 0]) / DT
    assert np.abs(acceleration).max() < 4 * 0.3 * (2 * np.pi * 0.8) ** 2
    assert np.abs(np.diff(x[:, 0]) / DT - v[1:, 0])[100:].max() < 0.1


def test_a_step_is_reached_without_overshoot():
    _, x, _ = play(lambda t: np.array([0.0 if t < 1 else 0.2, 0, 0]))
    assert x[-1, 0] == pytest.approx(0.2, abs=1e-3)
    assert x[:, 0].max() < 0.2 + 0.05


def test_jump_is_held_then_believed():
    s = TargetFilterSettings(max_jump=0.4, jump_hold=0.5)
    f = One(np.zeros(3), s)
    assert f.sample(np.zeros(3), 0.0) is SampleVerdict.ACCEPTED
    far = np.array([1.0, 0, 0])
    verdicts = [(t, f.sample(far, t)) for t in np.arange(0.02, 0.9, 0.02)]
    assert all(v is SampleVerdict.JUMP for t, v in verdicts if t < 0.5)
    assert verdicts[-1][1] is SampleVerdict.ACCEPTED
    t = 0.9
    speeds = []
    for _ in range(500):
        t += DT
        x, v = f.advance(t, DT)
        f.sample(far, t)
        speeds.append(np.linalg.norm(v))
    assert max(speeds) <= s.max_speed + 1e-9
    assert x == pytest.approx(far, abs=1e-3)


def test_a_single_wrong_sample_changes_nothing():
    f, g = One(np.zeros(3)), One(np.zeros(3))
    for k in range(200):
        t = k / RATE
        p = np.array([0.1 * np.sin(t), 0, 0])
        g.sample(p, t)
        f.sample(np.array([5.0, 5, 5]) if k == 100 else p, t)
        a, b = f.advance(t, 1 / RATE)[0], g.advance(t, 1 / RATE)[0]
        assert np.abs(np.subtract(a, b)).max() < 0.02


@pytest.mark.parametrize("axis", range(3))
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 2e4, -2e4])
def test_not_a_number_is_held(bad, axis):
    f = One(np.array([0.1, 0.2, 0.3]))
    f.sample(np.array([0.1, 0.2, 0.3]), 0.0)
    sample = np.array([0.1, 0.2, 0.3])
    sample[axis] = bad
    assert f.sample(sample, 0.02) is SampleVerdict.NOT_A_NUMBER
    for k in range(100):
        x, v = f.advance(0.02 + k * DT, DT)
    assert np.isfinite(x).all() and np.isfinite(v).all()
    assert x == pytest.approx([0.1, 0.2, 0.3], abs=1e-6)


def test_silence_brings_the_reference_to_rest():
    f = One(np.zeros(3))
    for k in range(60):
        f.sample(np.array([k / RATE, 0, 0]), k / RATE)
        f.advance(k / RATE, 1 / RATE)
    t = 59 / RATE
    for _ in range(500):
        t += DT
        x, v = f.advance(t, DT)
    assert np.linalg.norm(v) < 1e-6
    assert x[0] == pytest.approx(59 / RATE, abs=0.01)


@given(
    st.lists(st.tuples(st.floats(0, 0.2), st.floats(allow_nan=True, allow_infinity=True)), max_size=60),
    st.floats(1e-4, 0.05),
)
@example([(0.0, 0.0), (0.0, 0.0)], 0.048828125)
def test_whatever_comes_the_reference_is_a_number_and_not_too_fast(samples, dt):
    f, t = One(np.zeros(3)), 0.0
    for gap, value in samples:
        t += gap
        f.sample(np.array([value, -value, 0.5]), t)
        before = f.x[0]
        x, v = f.advance(t, dt)
        assert np.isfinite(x).all() and np.isfinite(v).all()
        assert np.linalg.norm(v) <= f.settings.max_speed + 1e-9
        assert np.linalg.norm(x - before) <= f.settings.max_speed * dt * (1 + 1e-9) + 1e-9
