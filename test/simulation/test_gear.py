"""Gear friction and elastic gears: dissipation, slopes, energy, and the frequency of two inertias on a spring."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

from humanoid_control.errors import ConfigError
from humanoid_control.simulation.drives.motors_gears import ElasticGear, GearFriction, friction_torque, gear_torque

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
