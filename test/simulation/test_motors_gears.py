"""Motors and gears: analytic responses, the balance of power, dissipation, and energy on a spring."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad, solve_ivp

from humanoid_control.errors import ConfigError
from humanoid_control.simulation.drives.motors_gears import (
    ElasticGear,
    GearFriction,
    MotorSettings,
    current_controlled_step,
    current_rate,
    deadbeat_voltage,
    decays,
    friction_torque,
    gear_torque,
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
    current_controlled_step(current, wanted, speed, decays(motors, 1e-3), motors, torque)
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


HD = GearFriction.harmonic_drive(2.0, 0.5, stiction=3.0, stribeck_speed=0.2)
SCREW = GearFriction.roller_screw(0.5, 0.1, load_share=0.15)


@settings(max_examples=100)
@given(st.floats(-50, 50), st.floats(-100, 100))
def test_friction_only_ever_dissipates_and_is_odd(speed, load):
    for f in (HD.array(), SCREW.array()):
        torque, _ = friction_torque(speed, load, f)
        assert torque * speed >= 0
        assert friction_torque(-speed, -load, f)[0] == -torque


def test_friction_of_a_harmonic_drive_peaks_falls_and_rises():
    """Stiction about standstill, Coulomb plus viscous torque at speed, whatever the load."""
    f = HD.array()
    speeds = np.linspace(1e-4, 2.0, 4000)
    torque = np.array([friction_torque(v, 0.0, f)[0] for v in speeds])
    top = torque[:400].argmax()
    assert torque[top] == pytest.approx(3.0, rel=0.03) and 0.01 < speeds[top] < 0.1
    assert torque[top:].min() < 2.4
    assert torque[-1] == pytest.approx(2.0 + 0.5 * 2.0, rel=1e-6)
    assert friction_torque(1.0, 80.0, f) == friction_torque(1.0, 0.0, f)


def test_friction_of_a_roller_screw_grows_with_the_load():
    f = SCREW.array()
    assert friction_torque(1.0, 0.0, f)[0] == pytest.approx(0.5 + 0.1)
    for load in (-40.0, 40.0):
        assert friction_torque(1.0, load, f)[0] == pytest.approx(0.5 + 0.1 + 0.15 * 40)


def test_the_slope_is_the_derivative():
    e = 1e-7
    for f in (HD.array(), SCREW.array()):
        for v in np.linspace(-0.7, 0.7, 57):
            rise = (friction_torque(v + e, 5.0, f)[0] - friction_torque(v - e, 5.0, f)[0]) / (2 * e)
            assert friction_torque(v, 5.0, f)[1] == pytest.approx(rise, rel=1e-5, abs=1e-4)


def _two_inertias(gear, J, inertia):
    """Rotor and link on an elastic gear, free: rates of (rotor, link, their speeds) and the whole energy."""
    g = gear.array()

    def rates(t, z):
        on_link, on_rotor = gear_torque(z[0], z[2], z[1], z[3], g)
        return [z[2], z[3], on_rotor / J, on_link / inertia]

    def energy(z):
        return 0.5 * J * z[2] ** 2 + 0.5 * inertia * z[3] ** 2 + 0.5 * gear.stiffness * (z[0] / gear.ratio - z[1]) ** 2

    return rates, energy


def test_an_elastic_gear_keeps_energy_and_swings_at_the_frequency_of_two_inertias():
    J, inertia, gear = 1e-4, 0.8, ElasticGear(-100.0, 2.0e4)
    rates, energy = _two_inertias(gear, J, inertia)
    w = np.sqrt(gear.stiffness * (1 / inertia + 1 / (gear.ratio**2 * J)))
    z0 = np.array([0.3, 0.002, 1.0, 0.05])
    t = np.linspace(0, 6 * np.pi / w, 200)
    y = solve_ivp(rates, (0, t[-1]), z0, "DOP853", t, rtol=1e-11, atol=1e-13).y
    assert [energy(z) for z in y.T] == pytest.approx([energy(z0)] * len(t), rel=1e-7)
    twist = y[0] / gear.ratio - y[1]
    rate = z0[2] / gear.ratio - z0[3]
    assert twist == pytest.approx(twist[0] * np.cos(w * t) + rate / w * np.sin(w * t), abs=1e-6 * np.abs(twist).max())
    total = J * gear.ratio * y[2] + inertia * y[3]  # the gear exchanges momentum in the ratio of the speeds
    assert total == pytest.approx([total[0]] * len(t), rel=1e-8)


def test_a_damped_gear_loses_energy_all_the_time():
    gear = ElasticGear(80.0, 1.0e4, 20.0)
    rates, energy = _two_inertias(gear, 1e-4, 0.5)
    y = solve_ivp(rates, (0, 0.1), [0.4, 0.0, 0.0, 0.3], "DOP853", np.linspace(0, 0.1, 100), rtol=1e-10).y
    assert (np.diff([energy(z) for z in y.T]) < 1e-12).all()
    assert y[0, -1] / gear.ratio == pytest.approx(y[1, -1], abs=2e-4)


@pytest.mark.parametrize(
    "make, says",
    [
        (lambda: GearFriction(coulomb=-1), "coulomb must be 0 or more"),
        (lambda: GearFriction(smoothing_speed=0), "smoothing_speed must be positive"),
        (lambda: GearFriction(coulomb=2, stiction=1), "stiction 1 must not be less"),
        (lambda: GearFriction(load_share=1.2), "load_share must be less than 1"),
        (lambda: ElasticGear(0, 1e4), "ratio"),
        (lambda: ElasticGear(100, -1), "stiffness must be positive"),
        (lambda: ElasticGear(100, 1, float("nan")), "damping must be 0 or more"),
    ],
)
def test_gears_that_make_no_sense_are_refused_in_one_line(make, says):
    with pytest.raises(ConfigError, match=says):
        make()
