"""Velocity bounds: never empty, never left, also by joints that are driven at random; all they allow is used."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from humanoid_control.kinematics.joint_limits import (
    JointLimits,
    StepRules,
    braking_speed,
    fill_velocity_bounds,
    keep_acceleration,
    velocity_bounds,
)


@given(st.floats(-4, 4), st.floats(-2, 0), st.floats(0.1, 2), st.floats(0.1, 10), st.floats(1e-4, 0.05))
def test_bounds_are_never_empty_and_never_overshoot(q, lower, upper, velocity, dt):
    limits = JointLimits(*(np.array([x]) for x in (lower, upper, velocity)))
    low, high = velocity_bounds(np.array([q]), limits, dt)
    assert low <= high
    assert abs(low) <= velocity and abs(high) <= velocity
    for v in (low, high):
        after = q + v * dt
        if lower <= q <= upper:
            assert lower - 1e-9 <= after <= upper + 1e-9
        else:  # outside: at least not farther out
            assert np.maximum(lower - after, after - upper) <= max(lower - q, q - upper) + 1e-9


@given(
    st.floats(0, 1),
    st.floats(0.05, 3),
    st.floats(0.1, 10),
    st.floats(1, 500),
    st.floats(1e-3, 0.02),
    st.integers(0, 99),
)
def test_a_joint_driven_at_random_keeps_its_acceleration_and_stops_before_its_limit(
    share, width, velocity, acceleration, dt, seed
):
    rng = np.random.default_rng(seed)
    limits = JointLimits(np.zeros(1), np.full(1, width), np.full(1, velocity))
    q, v = np.full(1, share * width), np.zeros(1)
    wish = rng.choice([-1, 0, 1]) * velocity
    for _ in range(300):
        low, high = velocity_bounds(q, limits, dt, previous=v, acceleration=acceleration)
        assert low <= high
        if rng.random() < 0.03:
            wish = rng.choice([-1, 0, 1]) * velocity
        before, v = v, np.clip(wish, low, high)
        q = q + v * dt
        assert np.abs(v - before) <= acceleration * dt * (1 + 1e-6) + 1e-9
        assert np.abs(v) <= velocity
        assert -1e-9 <= q <= width + 1e-9


@given(st.floats(0, 1), st.floats(0.05, 3), st.floats(0.1, 10), st.floats(1, 500), st.integers(0, 999))
def test_a_joint_in_ticks_of_any_length_keeps_acceleration_and_range(share, width, velocity, acceleration, seed):
    rng = np.random.default_rng(seed)
    limits = JointLimits(np.zeros(1), np.full(1, width), np.full(1, velocity))
    q, v, wish = np.full(1, share * width), np.zeros(1), velocity
    for _ in range(200):
        dt = 10 ** rng.uniform(-4, -1.7)
        low, high = velocity_bounds(q, limits, dt, 0.5, v, acceleration, next_dt=0.0)
        shifted = low.copy(), high.copy()
        keep_acceleration(*shifted, v, np.full(1, acceleration), dt)
        assert np.allclose(shifted, (low, high), atol=1e-9), "inside the range nothing has to give way"
        if rng.random() < 0.05:
            wish = -wish
        before, v = v, np.clip(wish, low, high)
        q = q + v * dt
        assert np.abs(v - before) <= acceleration * dt * (1 + 1e-6) + 1e-9
        assert -1e-9 <= q <= width + 1e-9


def stopping_distance(v, a, dt, h):
    """How far a joint goes that moves at v for dt and then brakes by a h in every step of h."""
    x = v * dt
    while (v := v - a * h) > 0.0:
        x += v * h
    return x


@given(st.floats(0.0, 0.5), st.floats(1.0, 200.0), st.floats(0.001, 0.02), st.sampled_from([1.0, 0.5, 0.02]))
def test_from_the_braking_speed_a_joint_stops_within_its_room_and_not_long_before(room, a, dt, share):
    h = share * dt
    v, rest = braking_speed(room, a, dt, h), a * h * h / 8
    assert v >= 0 and stopping_distance(v, a, dt, h) <= room + 1e-9
    assert stopping_distance(v, a, dt, h) >= room - 2 * rest - 1e-9
    sure = braking_speed(room, a, dt, 0.0)
    assert all(stopping_distance(sure, a, dt, x) <= room + 1e-9 for x in (dt, 0.3 * dt, h)), "for steps of any length"


@given(st.integers(0, 9999))
def test_each_joint_has_its_own_acceleration_and_its_own_deceleration_before_the_end_of_its_range(seed):
    """From wherever the bounds let it get, a joint that brakes by its own braking stops inside, by brute force."""
    rng, n = np.random.default_rng(seed), 4
    limits = JointLimits(np.zeros(n), rng.uniform(0.05, 3.0, n), rng.uniform(0.1, 3.0, n))
    acceleration = 10.0 ** rng.uniform(0.5, 2.5, n)
    braking, ease = acceleration * rng.uniform(0.3, 1.0, n), rng.choice([0.0, 0.001, 0.03, 0.5])
    q, v, wish = rng.uniform(0, 1, n) * limits.upper, np.zeros(n), limits.velocity.copy()
    low, high, most = np.empty(n), np.empty(n), np.zeros(n)
    for k in range(160):
        dt = 10 ** rng.uniform(-3, -1.7)
        fill_velocity_bounds(q, limits, StepRules(dt, 0.0, 0.5, acceleration, braking, ease), v, low, high)
        assert (low <= high).all()
        wish = np.where(rng.random(n) < 0.03, -wish, wish)
        before, v = v, np.clip(wish, low, high)
        q = q + v * dt
        change = np.abs(v - before)
        assert (change <= acceleration * dt * (1 + 1e-6) + 1e-9).all()
        most = np.maximum(most, change / (acceleration * dt))
        assert (q >= -1e-9).all() and (q <= limits.upper + 1e-9).all()
        if k % 40 == 20:
            at, u, h = q.copy(), v.copy(), 0.002
            while u.any():
                u = np.sign(u) * np.maximum(np.abs(u) - braking * h, 0.0)
                at = at + u * h
            assert (at >= -1e-9).all() and (at <= limits.upper + 1e-9).all()
    assert most.max() > 0.99, "and what it has is used"


@pytest.mark.parametrize("acceleration", [20.0, 100.0, np.inf])
def test_driven_against_both_ends_a_joint_keeps_range_speed_and_acceleration_and_uses_them(acceleration):
    limits = JointLimits(np.array([-0.4, -1.0]), np.array([0.9, 0.1]), np.array([3.0, 1.5]))
    q, v, dt = np.array([0.1, -0.2]), np.zeros(2), 0.01
    seen, fastest = [], np.zeros(2)
    for k in range(1500):
        low, high = velocity_bounds(q, limits, dt, 0.5, v, acceleration)
        assert (low <= high).all()
        new = high if k // 250 % 2 == 0 else low
        if np.isfinite(acceleration):
            assert (np.abs(new - v) <= acceleration * dt + 1e-9).all()
        v = new
        q = q + dt * v
        seen.append(q)
        fastest = np.maximum(fastest, np.abs(v))
        assert (q >= limits.lower - 1e-12).all() and (q <= limits.upper + 1e-12).all()
        assert (np.abs(v) <= limits.velocity).all()
    assert np.min(seen, axis=0) == pytest.approx(limits.lower, abs=1e-3), "all of the range can be used"
    assert np.max(seen, axis=0) == pytest.approx(limits.upper, abs=1e-3)
    if acceleration >= 100.0:
        assert fastest == pytest.approx(limits.velocity)


@pytest.mark.parametrize("side", [-1, 1])
def test_from_outside_a_joint_comes_back_at_the_recovery_speed_or_its_own(side):
    limits = JointLimits(np.array([-1.0, -1.0]), np.array([1.0, 1.0]), np.array([2.0, 0.2]))
    low, high = velocity_bounds(np.full(2, 1.5 * side), limits, 0.01, 0.5)
    inward, outward = (high, low) if side < 0 else (low, high)
    assert -side * outward == pytest.approx([0.5, 0.2]), "no slower"
    assert -side * inward == pytest.approx([2.0, 0.2]), "and no faster than it may"
