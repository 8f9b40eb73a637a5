"""Points that never jump, whatever they are told."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from humanoid_control.retargeting.live import CHAIN, SegmentGuard, SteadyPoints

DT = 0.01
coordinate = st.one_of(st.floats(-5, 5), st.floats(allow_nan=True, allow_infinity=True))


@pytest.mark.nightly
@settings(max_examples=200)
@given(st.lists(st.tuples(st.lists(coordinate, min_size=6, max_size=6), st.floats(-1, 1), st.booleans()), max_size=30))
def test_no_point_is_ever_faster_than_allowed(steps):
    points = SteadyPoints(np.zeros((2, 3)), max_speed=2.0, return_speed=0.7)
    for values, dt, begin in steps:
        before = points.shown
        if begin:
            points.begin(0.5)
        with np.errstate(all="ignore"):
            shown = points.follow(np.array(values).reshape(2, 3), dt)
        assert np.isfinite(shown).all()
        assert (np.linalg.norm(shown - before, axis=1) <= 2.0 * min(max(dt, 0.0), 0.1) * (1 + 1e-9) + 1e-12).all()


def test_slow_points_are_followed_exactly():
    points = SteadyPoints(np.zeros((1, 3)), 2.0, 1.0)
    for k in range(200):
        wanted = np.array([[0.015 * k, 0.0, 0.0]])
        assert points.follow(wanted, DT) == pytest.approx(wanted, abs=1e-12)


def test_a_jump_is_worn_off_at_the_return_speed_while_the_motion_goes_on():
    points = SteadyPoints(np.zeros((1, 3)), max_speed=5.0, return_speed=0.5)
    lag = []
    for k in range(300):
        wanted = np.array([[0.01 * k + (0.6 if k >= 50 else 0.0), 0.0, 0.0]])
        lag.append((wanted - points.follow(wanted, DT))[0, 0])
    assert lag[49] == pytest.approx(0, abs=1e-12)
    assert np.diff(lag[50:160]) == pytest.approx(-0.5 * DT, abs=1e-9), "the offset shrinks by 0.5 m/s"
    assert lag[-1] == pytest.approx(0, abs=1e-12)


def test_lead_in_begins_and_ends_at_rest():
    points = SteadyPoints(np.zeros((1, 3)), 5.0, 1.0)
    points.begin(1.0)
    x = np.array([points.follow(np.array([[0.5, 0, 0]]), DT)[0, 0] for _ in range(120)])
    v = np.diff(x, prepend=0.0) / DT
    assert v[0] < 0.05 and v.max() == pytest.approx(1.875 * 0.5, rel=0.01) and x[-1] == 0.5


@pytest.mark.parametrize("dt", [DT, 0.0])
def test_a_lead_in_of_no_time_is_over_at_once(dt):
    points = SteadyPoints(np.zeros((1, 3)), 5.0, 1.0)
    points.begin(0.0)
    wanted = np.array([[0.5 * 5.0 * dt, 0.0, 0.0]])
    assert points.follow(wanted, dt) == pytest.approx(wanted, abs=1e-12)
    wanted = wanted + [[0.01, 0.0, 0.0]]
    assert points.follow(wanted, DT) == pytest.approx(wanted, abs=1e-12), "and stays over"


def test_not_a_number_keeps_what_was_wanted():
    points = SteadyPoints(np.zeros((2, 3)), 5.0, 1.0)
    wanted = np.array([[0.01, 0, 0], [0, 0.01, 0]])
    points.follow(wanted, DT)
    half = np.array([[np.nan, 0, 0], [0, 0.02, 0]])
    assert points.follow(half, DT) == pytest.approx(np.array([[0.01, 0, 0], [0, 0.02, 0]]))


# -- segments of impossible length -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def body():
    from humanoid_control.mocap import find_body_points, synthetic_dance

    return find_body_points(synthetic_dance(duration=12, rate=10))


def test_possible_bodies_pass_unchanged(body):
    guard = SegmentGuard(body)
    for p in body.in_pelvis():
        np.testing.assert_array_equal(guard.check(p), p)
        assert not guard.problems


@pytest.mark.parametrize("segment", CHAIN, ids=lambda s: s[0])
def test_a_segment_of_impossible_length_keeps_its_direction_and_carries_the_rest(body, segment):
    name, a, b = segment
    guard = SegmentGuard(body)
    p = body.in_pelvis()[40]
    guard.check(p)
    k = body.names.index(b)
    bad = p.copy()
    bad[k] += [0.0, 0.0, 1.5]
    after = [n for n in ("l", "r") if b == f"{n}_shoulder"]
    if after:  # the arm moves with its shoulder, so that only the clavicle is wrong
        for n in ("elbow", "wrist"):
            bad[body.names.index(f"{after[0]}_{n}")] += [0.0, 0.0, 1.5]
    checked = guard.check(bad)
    start = np.zeros(3) if a == "mid_hip" else checked[body.names.index(a)]
    good = p[k] - (np.zeros(3) if a == "mid_hip" else p[body.names.index(a)])
    assert checked[k] - start == pytest.approx(good)
    assert any(name in text for text in guard.problems)


def test_impossible_hips_hold_everything(body):
    guard = SegmentGuard(body)
    p = body.in_pelvis()[30]
    guard.check(p)
    bad = p + 0.1
    bad[body.names.index("l_hip"), 1] += 0.5
    assert guard.check(bad) == pytest.approx(p)
    assert "hips" in guard.problems[0]
    assert guard.check(np.full_like(p, np.nan)) == pytest.approx(p)
