"""The last limits: identity inside them, bit for bit; never outside of any of them, whatever is commanded."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from humanoid_control.hardware.commands.limiter import (
    CommandLimits,
    Impedance,
    LimiterReference,
    limit_effort,
    limit_step,
)

DT = 0.002


def limits(n=1, lower=-1.0, upper=2.0, velocity=3.0, acceleration=20.0, effort=10.0):
    return CommandLimits(*(np.full(n, v) for v in (lower, upper, velocity, acceleration, effort)))


def run(targets, lim, q=0.0, v=0.0):
    """References (k, 2): position and velocity, and what was clipped."""
    ref, out, last = LimiterReference(np.array([q]), np.array([v]), np.zeros(1, dtype=bool)), [], np.nan
    for target in targets:
        speed = (target - last) / DT if np.isfinite([target, last]).all() else np.nan
        limit_step(np.array([target]), np.array([speed]), ref, lim, DT)
        out.append((ref.q[0], ref.v[0], ref.clipped[0]))
        last = target
    return np.array(out, dtype=float)


def test_a_command_inside_all_limits_passes_bit_for_bit():
    t = DT * np.arange(1, 2000)
    targets = 0.4 + 0.3 * np.sin(3 * t + 0.1) - 0.4 - 0.3 * np.sin(0.1)  # 0.9 rad/s, 2.7 rad/s^2
    out = run(targets, limits(), v=0.9)
    assert (out[:, 0] == targets).all() and not out[:, 2].any()


def test_a_step_is_followed_at_speed_and_acceleration_and_without_overshoot():
    lim = limits()
    out = run(np.full(1500, 1.5), lim)
    v = np.diff(np.concatenate([[0.0], out[:, 0]])) / DT
    assert v.max() == pytest.approx(3.0) and out[:, 0].max() <= 1.5 + 1e-12
    assert np.abs(np.diff(np.concatenate([[0.0], v]))).max() <= 20.0 * DT + 1e-9
    assert out[-1, 0] == 1.5 and out[0, 2] and not out[-1, 2]
    assert np.argmax(out[:, 0] == 1.5) * DT < 1.5 / 3.0 + 3.0 / 20.0 + 0.05, "as fast as the limits allow"


def test_a_target_that_ran_away_is_caught_up_with_while_it_moves():
    t = DT * np.arange(1, 2000)
    targets = np.clip(0.5 + 0.5 * t, None, 1.9)
    out = run(targets, limits(upper=5.0))
    caught = np.flatnonzero(out[:, 0] == targets)
    assert 0.2 < t[caught[0]] < 0.6
    assert (out[caught[0] : np.argmax(targets == 1.9), 0] == targets[caught[0] : np.argmax(targets == 1.9)]).all()
    assert (out[:, 0] <= targets + 0.5**2 / 40 + 1e-3).all() and out[-1, 0] == 1.9


@pytest.mark.parametrize(("far", "end"), [(-50.0, -1.0), (50.0, 2.0)])
def test_a_joint_brakes_before_the_end_of_its_range(far, end):
    out = run([far] * 2000, limits(), q=0.5)
    v = np.diff(np.concatenate([[0.5], out[:, 0]])) / DT
    assert np.abs(np.diff(np.concatenate([[0.0], v]))).max() <= 20.0 * DT + 1e-7
    assert out[-1, 0] == pytest.approx(end, abs=1e-3) and np.abs(v).max() > 2.5


@given(
    st.lists(st.one_of(st.floats(-50, 50), st.just(np.nan), st.just(np.inf)), min_size=1, max_size=120),
    st.floats(-1.0, 2.0),
    st.floats(0.5, 8.0),
    st.floats(1.0, 300.0),
)
def test_no_limit_is_ever_left(targets, q, velocity, acceleration):
    lim = limits(velocity=velocity, acceleration=acceleration)
    out = run(np.repeat(targets, 20), lim, q=q)
    p = np.concatenate([[q], out[:, 0]])
    v = np.concatenate([[0.0], np.diff(p) / DT])
    assert np.isfinite(out).all()
    assert (p >= -1.0).all() and (p <= 2.0).all()
    assert np.abs(v).max() <= velocity + 1e-9
    assert np.abs(np.diff(v)).max() <= acceleration * DT + 1e-7


def test_a_joint_that_begins_outside_its_range_only_moves_inwards():
    out = run([5.0] * 50 + [1.0] * 1000, limits(), q=2.3)
    assert (np.diff(out[:, 0]) <= 0).all()
    assert out[49, 0] == 2.3 and out[-1, 0] == 1.0


def test_a_joint_without_target_comes_to_rest_at_its_acceleration():
    out = run([np.nan] * 200, limits(), v=2.0)
    assert out[-1, 1] == 0.0 and not out[:, 2].any()
    assert out[-1, 0] == pytest.approx(2.0**2 / (2 * 20.0), abs=2.0 * DT)


def effort(q_ref, tau, q, v, kp, kd=0.0, most=10.0, v_ref=0.0):
    arrays = [np.array([float(x)]) for x in (q_ref, tau, q, v, v_ref, kp, kd)]
    q_ref_, tau_, q_, v_, v_ref_, kp_, kd_ = arrays
    out = np.zeros(1)
    limit_effort(q_ref_, tau_, (q_, v_), v_ref_, Impedance(kp_, kd_), limits(effort=most), out)
    return out[0], tau_[0], q_ref_[0]


def test_feed_forward_is_clipped_and_nonsense_is_none():
    assert effort(0.5, 99.0, 0.0, 0.0, 0.0)[:2] == (0.5, 10.0)
    assert effort(0.5, -99.0, 0.0, 0.0, 0.0)[1] == -10.0
    assert effort(0.5, np.nan, 0.0, 0.0, 0.0)[1] == 0.0
    assert effort(0.5, 3.0, 0.0, 0.0, 0.0)[:2] == (0.5, 3.0)


@given(*[st.floats(-3, 3)] * 4, st.floats(0.1, 500), st.floats(0, 5), st.floats(-2, 2))
def test_an_impedance_drive_is_never_asked_for_more_than_its_effort(q_ref, tau, q, v, kp, kd, v_ref):
    out, ff, kept = effort(q_ref, 5 * tau, q, v, kp, kd, v_ref=v_ref)
    spring = kp * abs(out - q)
    assert spring <= max(10.0 - abs(ff) - kd * abs(v_ref - v), 0.0) + 1e-9
    assert kept == q_ref, "the reference itself stays"
    if kp * abs(q_ref - q) + kd * abs(v_ref - v) + abs(ff) <= 10.0 - 1e-9:
        assert out == q_ref, "inside the limit nothing changes"
    assert min(q, q_ref) - 1e-12 <= out <= max(q, q_ref) + 1e-12


def test_many_joints_are_limited_each_by_its_own():
    lim = limits(2)
    lim.velocity[:] = 1.0, 2.0
    lim.acceleration[:] = 1e6, 1e6
    ref = LimiterReference(np.zeros(2), np.zeros(2), np.zeros(2, dtype=bool))
    limit_step(np.array([1.0, 0.001]), np.zeros(2), ref, lim, DT)
    assert ref.q.tolist() == [pytest.approx(1.0 * DT), 0.001] and ref.clipped.tolist() == [True, False]
