"""Velocity bounds: never empty, never left, also by joints that are driven at random."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from humanoid_control.kinematics.joint_limits import JointLimits, keep_acceleration, velocity_bounds


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
        keep_acceleration(*shifted, v, acceleration * dt)
        assert np.allclose(shifted, (low, high), atol=1e-9), "inside the range nothing has to give way"
        if rng.random() < 0.05:
            wish = -wish
        before, v = v, np.clip(wish, low, high)
        q = q + v * dt
        assert np.abs(v - before) <= acceleration * dt * (1 + 1e-6) + 1e-9
        assert -1e-9 <= q <= width + 1e-9
