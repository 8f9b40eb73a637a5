"""Integrators by their measured order, the energy of what swings, stiff gears, and agreement with each other."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from humanoid_control.errors import ConfigError, SimulationError, UnknownNameError
from humanoid_control.simulation.drives.motors_gears import ElasticGear, MotorSettings, current_rate, gear_torque
from humanoid_control.simulation.state_space.integrators import INTEGRATORS, IntegratorSettings, integrate
from humanoid_control.simulation.state_space.model import StateLayout
from test.simulation.box import Box

OSCILLATOR = StateLayout(2, velocities=[0])


def pendulum(t, z, u):
    """Two coupled pendulums, driven: z = speeds, angles."""
    a = -9.81 * np.sin(z[2:]) - u * (z[2:] - z[:1:-1]) + 0.5 * np.sin(3 * t)
    return np.concatenate([a, z[:2]])


def swing(t, z, u):
    return np.array([-(u**2) * z[1], z[0]])


@pytest.mark.parametrize(
    "method, order",
    [("euler", 1), ("semi_implicit", 1), ("rk4", 4), ("multirate", 2), ("mixed", 2)],
    ids=lambda x: str(x),
)
def test_the_error_falls_with_the_order_of_the_method(method, order):
    z0, u, steps = np.array([0.3, -0.2, 0.8, 0.1]), 4.0, np.array([0.02, 0.01, 0.005, 0.0025])
    exact = solve_ivp(pendulum, (0.5, 1.5), z0, "DOP853", args=(u,), rtol=1e-12, atol=1e-13).y[:, -1]
    layout = StateLayout(4, velocities=[0, 1], fast=[0, 2])
    wrong = [
        np.linalg.norm(integrate(pendulum, z0, 1.0, u, 0.5, IntegratorSettings(method, h, substeps=5), layout) - exact)
        for h in steps
    ]
    slope = np.polyfit(np.log(steps), np.log(wrong), 1)[0]
    assert slope == pytest.approx(order, abs=0.15)


@pytest.mark.parametrize("method", [k for k, (_, adaptive) in INTEGRATORS.items() if adaptive])
def test_adaptive_methods_keep_their_tolerance(method):
    z0, u, wrong = np.array([0.3, -0.2, 0.8, 0.1]), 4.0, []
    exact = solve_ivp(pendulum, (0, 2), z0, "DOP853", args=(u,), rtol=1e-12, atol=1e-13).y[:, -1]
    for tolerance in (1e-4, 1e-6, 1e-8):
        z = integrate(pendulum, z0, 2.0, u, 0.0, IntegratorSettings(method, rtol=tolerance, atol=tolerance))
        wrong.append(np.abs(z - exact).max())
    assert wrong[0] < 1e-2 and wrong[2] < 1e-6
    assert wrong[2] < 0.05 * wrong[0]


def test_semi_implicit_euler_keeps_the_energy_of_an_oscillator_bounded_and_explicit_euler_does_not():
    """The growth of explicit Euler is known: (1 + (h w)^2) a step."""
    w, h, energy = 10.0, 0.01, {}
    for method in ("euler", "semi_implicit", "rk4"):
        z, energy[method] = np.array([0.0, 1.0]), []
        for _ in range(100):
            z = integrate(swing, z, 10 * h, w, 0.0, IntegratorSettings(method, h), OSCILLATOR)
            energy[method].append(0.5 * (z[0] ** 2 + (w * z[1]) ** 2))
    e0 = 0.5 * w**2
    assert energy["euler"][-1] == pytest.approx(e0 * (1 + (h * w) ** 2) ** 1000, rel=1e-6)
    assert np.abs(np.array(energy["semi_implicit"]) / e0 - 1).max() < 0.6 * h * w
    assert energy["rk4"][-1] == pytest.approx(e0, rel=1e-4) and energy["rk4"][-1] < e0


def _geared_link(rotor=5e-7, inductance=0.06e-3):
    """A link under gravity behind an elastic gear with a motor: z = link speed, angle | rotor speed, angle, current."""
    gear, motor = ElasticGear(100.0, 2.0e4, 2.0).array(), MotorSettings(0.6, inductance, 0.05).array()
    inertia = 2.0

    def f(t, z, u):
        on_link, on_rotor = gear_torque(z[3], z[2], z[1], z[0], gear)
        return np.array(
            [
                (on_link - 15.0 * np.sin(z[1])) / inertia,
                z[0],
                (motor[3] * z[4] + on_rotor - 2e-5 * z[2]) / rotor,
                z[2],
                current_rate(z[4], u, z[2], motor),
            ]
        )

    names = ("link speed", "link angle", "rotor speed", "rotor angle", "current")
    return f, StateLayout(5, velocities=[0, 2], fast=[2, 3, 4], names=names)


def test_several_rates_are_stable_where_one_explodes_and_right_as_well():
    """Gear at 2000 rad/s, current at 0.1 ms, link at 100 rad/s: 1.6 ms steps with 32 sub-steps."""
    f, layout = _geared_link()
    z0, u = np.array([0.0, 0.2, 0.0, 20.0, 0.0]), 6.0
    with pytest.raises(SimulationError, match=r"diverged at t = 0\.\d+ s: state '(rotor speed|current|link speed)'"):
        integrate(f, z0, 0.4, u, 0.0, IntegratorSettings("rk4", 1.6e-3), layout)
    exact = integrate(f, z0, 0.4, u, 0.0, IntegratorSettings("radau", rtol=1e-7, atol=1e-8))
    size = np.abs(exact) + [0.1, 0.01, 10.0, 1.0, 1.0]
    wrong = {}
    for extrapolate, h in ((True, 1.6e-3), (False, 4e-4), (False, 2e-4)):
        s = IntegratorSettings("multirate", h, substeps=round(h / 5e-5), extrapolate=extrapolate)
        wrong[extrapolate, h] = (np.abs(integrate(f, z0, 0.4, u, 0.0, s, layout) - exact) / size).max()
    assert wrong[True, 1.6e-3] < 1e-3
    assert 0.02 < wrong[False, 2e-4] < 0.7 * wrong[False, 4e-4], (
        "a slow part that stands still: first order, false damping"
    )


def test_the_mixed_mode_takes_fast_parts_of_any_stiffness_in_one_step():
    """Rotor at 2e4 or 2e5 rad/s, current at 1 or 0.01 us; the step is 0.8 ms."""
    for rotor, inductance in ((5e-9, 6e-7), (5e-11, 6e-9)):
        f, layout = _geared_link(rotor, inductance)
        z0 = np.array([0.0, 0.2, 0.0, 20.0, 0.0])
        exact = integrate(f, z0, 0.4, 6.0, 0.0, IntegratorSettings("radau", rtol=1e-6, atol=1e-8))
        z = integrate(f, z0, 0.4, 6.0, 0.0, IntegratorSettings("mixed", 8e-4), layout)
        assert z == pytest.approx(exact, rel=1e-3, abs=1e-3)
        with pytest.raises(SimulationError):
            integrate(f, z0, 0.4, 6.0, 0.0, IntegratorSettings("multirate", 8e-4, substeps=4), layout)


def test_implicit_methods_need_few_evaluations_for_a_stiff_gear():
    f, layout = _geared_link()
    z0, calls = np.array([0.0, 0.2, 0.0, 20.0, 0.0]), {}
    for method in ("radau", "rk45"):
        calls[method] = 0

        def counted(t, z, u, method=method):
            calls[method] += 1
            return f(t, z, u)

        integrate(counted, z0, 0.4, 6.0, 0.0, IntegratorSettings(method, rtol=1e-4, atol=1e-5), layout)
    assert calls["radau"] < 0.6 * calls["rk45"]


def test_quaternions_stay_unit_and_turn_as_they_should():
    """A free body with three different inertias: angular momentum in the world is kept."""
    inertia = np.array([0.2, 0.5, 0.9])

    def spin(t, z, u):
        w, (x, y, zz, s) = z[:3], z[3:]
        a = (np.cross(inertia * w, w)) / inertia
        qdot = 0.5 * np.array(
            [s * w[0] + y * w[2] - zz * w[1], s * w[1] + zz * w[0] - x * w[2], s * w[2] + x * w[1] - y * w[0],
             -x * w[0] - y * w[1] - zz * w[2]]
        )  # fmt: skip
        return np.concatenate([a, qdot])

    def momentum(z):
        import pinocchio as pin

        return pin.Quaternion(z[3:]).toRotationMatrix() @ (inertia * z[:3])

    z = np.array([1.0, 4.0, 0.2, 0, 0, 0, 1.0])
    layout = StateLayout(7, velocities=[0, 1, 2], quaternions=[3])
    for method, wrong in (("rk4", 1e-6), ("euler", 0.1), ("rk45", 1e-3)):
        after = integrate(spin, z, 2.0, None, 0.0, IntegratorSettings(method, 5e-3), layout)
        assert np.linalg.norm(after[3:]) == pytest.approx(1, abs=1e-14)
        assert momentum(after) == pytest.approx(momentum(z), rel=wrong, abs=2 * wrong)


def test_a_body_with_contact_layers_as_states_integrates_by_any_method():
    """A tilted box falls on the ground: 18 states of the body, 24 of its contact layers (eq. (2.2))."""
    ends = {}
    for method, step in (
        ("rk4", 1e-3),
        ("semi_implicit", 2.5e-4),
        ("rk45", 1e-3),
        ("multirate", 2e-3),
        ("mixed", 5e-4),
    ):
        box = Box()
        box.r[0] = [0, 0, 0.055]
        box.V[0] = [0.5, 0.3, 0.1, 0.4, 0.0, 0.0]
        z = np.concatenate([box.R.ravel(), box.r.ravel(), box.V.ravel(), box.s.ravel()])
        layout = StateLayout(42, velocities=range(12, 18), fast=range(12, 42))
        settings = IntegratorSettings(method, step, 1e-6, 1e-8, substeps=4)
        ends[method] = integrate(lambda t, z, u, box=box: box.rates(t, z), z, 0.15, None, 0.0, settings, layout)
    for method, wrong in (("rk4", 1e-4), ("semi_implicit", 1e-3), ("multirate", 1e-3)):
        assert ends[method][9:12] == pytest.approx(ends["rk45"][9:12], abs=wrong)


def test_steps_divide_the_duration_and_the_state_given_is_left_alone():
    times = []

    def f(t, z, u):
        times.append(t)
        return np.full(1, u)

    z0 = np.zeros(1)
    assert integrate(f, z0, 0.0105, 2.0, 1.0, IntegratorSettings("euler", 1e-3)) == pytest.approx([0.021])
    assert len(times) == 11 and np.diff(times) == pytest.approx([0.0105 / 11] * 10)
    assert z0[0] == 0 and integrate(f, z0, 0.0, 2.0, 0.0, IntegratorSettings("rk45")) == pytest.approx([0.0])


def test_what_diverges_or_gives_up_is_said_in_one_line_with_time_and_name():
    names = StateLayout(2, velocities=[0], fast=[0], names=("speed", "angle"))
    for method in INTEGRATORS:
        with pytest.raises(SimulationError, match=r"t = [0-9.]+ s") as e:  # explodes at t = 1
            integrate(lambda t, z, u: np.array([z[0] ** 2, 1.0]), [1.0, 0.0], 2.0, None, 0.0,
                      IntegratorSettings(method, 1e-2), names)  # fmt: skip
        assert "\n" not in str(e.value)
    with pytest.raises(SimulationError, match=r"the rate of 'angle' is nan"):
        integrate(
            lambda t, z, u: np.array([0.0, np.nan]), [1.0, 0.0], 1.0, None, 0.0, IntegratorSettings("radau"), names
        )
    with pytest.raises(SimulationError, match=r"at t = 3 s: state 'speed' is nan"):
        integrate(swing, [np.nan, 0.0], 1.0, 1.0, 3.0, IntegratorSettings(), names)
    with pytest.raises(SimulationError, match="after 50 evaluations"):
        integrate(swing, [0.0, 1.0], 100.0, 50.0, 0.0, IntegratorSettings("rk45", most_calls=50), names)


@pytest.mark.parametrize(
    "make, error, says",
    [
        (lambda: IntegratorSettings("rk5"), UnknownNameError, "did you mean rk45 or rk4"),
        (lambda: IntegratorSettings(step=0.0), ConfigError, "step must be a positive number, got 0"),
        (lambda: IntegratorSettings(step=float("nan")), ConfigError, "step must be a positive number"),
        (lambda: IntegratorSettings(substeps=0), ConfigError, "substeps"),
        (lambda: integrate(swing, [0, 1], -1.0, 1.0), ConfigError, "duration must be 0 or more"),
        (lambda: integrate(swing, [0, 1], 1.0, 1.0), ConfigError, "needs a state layout with velocities"),
        (lambda: integrate(swing, [0, 1], 1.0, 1.0, layout=StateLayout(3)), ConfigError, "2 entries, its layout 3"),
        (lambda: StateLayout(3, fast=[3]), ConfigError, "from 0 to 2"),
        (lambda: StateLayout(3, velocities=[1, 1]), ConfigError, "twice"),
        (lambda: StateLayout(3, names=("a",)), ConfigError, "3 names"),
    ],
)
def test_settings_that_make_no_sense_are_refused_in_one_line(make, error, says):
    with pytest.raises(error, match=says) as e:
        make()
    assert "\n" not in str(e.value)
