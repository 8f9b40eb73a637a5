"""Motor currents against the analytic response, SciPy's integration and the balance of power."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad, solve_ivp

from humanoid_control.errors import ConfigError
from humanoid_control.simulation.drives.motors_gears import (
    MotorSettings,
    current_controlled_step,
    current_rate,
    deadbeat_voltage,
    motor_step,
)

MOTOR = MotorSettings(0.6, 0.3e-3, 0.05)  # L / R = 0.5 ms
M = MOTOR.array()


def test_a_step_is_the_analytic_response_and_its_mean_the_integral():
    u, speed, i0, h = 24.0, 120.0, -3.0, 1e-3
    settled = (u - 0.05 * speed) / 0.6

    def exact(t):
        return settled + (i0 - settled) * np.exp(-t / MOTOR.time_constant)

    after, mean, given = motor_step(i0, u, speed, h, M)
    assert (after, given) == pytest.approx((exact(h), u), rel=1e-12)
    assert mean == pytest.approx(quad(exact, 0, h)[0] / h, rel=1e-10)
    first = motor_step(i0, u, speed, 0.3 * h, M)[0]
    assert motor_step(first, u, speed, 0.7 * h, M)[0] == pytest.approx(after, rel=1e-12), "steps can be divided"
    solved = solve_ivp(lambda t, i: [current_rate(i[0], u, speed, M)], (0, h), [i0], rtol=1e-10, atol=1e-12)
    assert after == pytest.approx(solved.y[0, -1], rel=1e-8)


def test_a_step_much_longer_than_the_time_constant_stays_stable_where_euler_explodes():
    stiff = MotorSettings(1.0, 1e-4, 0.05).array()  # 0.1 ms
    exact, euler = 0.0, 0.0
    for _ in range(50):
        exact = motor_step(exact, 12.0, 40.0, 1e-3, stiff)[0]
        euler += 1e-3 * current_rate(euler, 12.0, 40.0, stiff)
    assert exact == pytest.approx(10.0) and abs(euler) > 1e6


@settings(max_examples=60)
@given(st.floats(-40, 40), st.floats(-50, 50), st.floats(-400, 400), st.floats(1e-5, 5e-3))
def test_power_in_is_heat_plus_field_plus_mechanical_power(i0, u, speed, h):
    """Integrated over a step: u i = R i^2 + d/dt (L i^2 / 2) + torque * speed; the heat is never negative."""
    after, mean, given = motor_step(i0, u, speed, h, M)
    heat, _ = quad(lambda t: 0.6 * motor_step(i0, u, speed, t, M)[0] ** 2 if t else 0.6 * i0**2, 0, h)
    field = 0.5 * 0.3e-3 * (after**2 - i0**2)
    size = heat + abs(given * mean * h) + abs(M[3] * mean * speed * h) + abs(field)
    assert heat >= 0
    assert given * mean * h == pytest.approx(heat + field + M[3] * mean * speed * h, abs=1e-7 * size + 1e-12)


def test_the_amplifier_keeps_voltage_and_current_within_its_limits():
    limited = MotorSettings(0.6, 0.3e-3, 0.05, current_limit=10.0, voltage_limit=24.0).array()
    rng, at_limit, i = np.random.default_rng(0), 0, 0.0
    for _ in range(500):
        i, _, u = motor_step(i, rng.uniform(-90, 90), rng.uniform(-200, 200), 1e-3, limited)
        assert abs(i) <= 10 + 1e-9 and abs(u) <= 24
        at_limit += abs(i) > 10 - 1e-9
    assert at_limit > 50
    beyond, _, u = motor_step(0.0, 24.0, -1e3, 0.01, limited)
    assert u == -24.0 and beyond > 10, "a back-EMF above the voltage cannot be held off, and is not said to be"
    assert current_rate(0.0, 99.0, 0.0, limited) == pytest.approx(24.0 / 0.3e-3)


def test_deadbeat_control_reaches_any_current_in_one_step():
    for i0, wanted, speed in np.random.default_rng(1).normal(size=(50, 3)) * [10, 10, 100]:
        u = deadbeat_voltage(i0, wanted, speed, 1e-3, M)
        assert motor_step(i0, u, speed, 1e-3, M)[0] == pytest.approx(wanted, abs=1e-9)


def test_all_drives_at_once_are_the_single_ones():
    rng, n = np.random.default_rng(2), 24
    motors = np.array([MotorSettings(*row, voltage_limit=400.0).array() for row in rng.uniform(0.1, 1.0, (n, 3))])
    current, wanted, speed, torque = rng.normal(size=n), rng.normal(size=n), rng.normal(size=n), np.zeros(n)
    single = [
        motor_step(i, deadbeat_voltage(i, goal, w, 1e-3, m), w, 1e-3, m)
        for i, goal, w, m in zip(current, wanted, speed, motors, strict=True)
    ]
    current_controlled_step(current, wanted, speed, 1e-3, motors, torque)
    assert current == pytest.approx([a for a, _, _ in single])
    assert torque == pytest.approx([m[3] * mean for (_, mean, _), m in zip(single, motors, strict=True)])
    in_reach = np.abs([u for _, _, u in single]) < 400.0
    assert 3 < in_reach.sum() < n - 3
    assert current[in_reach] == pytest.approx(wanted[in_reach])


@pytest.mark.parametrize(
    "wrong, says",
    [
        ({"resistance": 0.0}, "resistance must be positive"),
        ({"inductance": float("nan")}, "inductance must be positive"),
        ({"back_emf": -0.1}, "back_emf must be a finite number"),
        ({"current_limit": 0.0}, "current_limit must be positive"),
    ],
)
def test_motors_that_make_no_sense_are_refused_in_one_line(wrong, says):
    with pytest.raises(ConfigError, match=says):
        MotorSettings(**{"resistance": 1.0, "inductance": 1e-3, "back_emf": 0.1} | wrong)
