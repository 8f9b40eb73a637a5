"""The loop of state, sensors, cascaded controllers and integration, against sampled systems solved by hand."""

import numpy as np
import pytest
from scipy.linalg import expm

from humanoid_control.errors import ConfigError, SimulationError
from humanoid_control.simulation.drives.motors_gears import MotorSettings, current_rate, deadbeat_voltage
from humanoid_control.simulation.state_space.closed_loop import ControlLevel, run_loop
from humanoid_control.simulation.state_space.integrators import IntegratorSettings

RK4 = IntegratorSettings("rk4", 5e-4)


def cart(t, z, u):
    return np.array([u, z[0]])


def test_a_sampled_controller_acts_as_the_discrete_system_does():
    """Zero-order hold: z[k+1] = Phi z[k] + Gamma u[k], u[k] = -K z[k], by the matrix exponential."""
    period, K = 0.02, np.array([3.0, 9.0])
    M = expm(np.array([[0, 0, 1.0], [1, 0, 0], [0, 0, 0]]) * period)
    expected, rows = np.array([0.0, 1.0]), []
    for t, z, u in run_loop(cart, [0, 1], [ControlLevel(period, lambda t, z, _: -K @ z)], 1.0, settings=RK4):
        assert z == pytest.approx(expected, abs=1e-10)
        expected = M[:2, :2] @ expected - M[:2, 2] * (K @ expected)
        rows.append((t, u))
    assert len(rows) == 51 and rows[-1][0] == pytest.approx(1.0)


def test_a_position_loop_around_a_current_loop_runs_each_at_its_own_period():
    """Joint control inside trajectory control inside the integration: what the inner level is told changes rarely."""
    motor, inertia = MotorSettings(0.6, 0.3e-3, 0.05).array(), 1e-4
    calls = {"target": [], "position": [], "current": []}

    def drive(t, z, u):
        return np.array([motor[3] * z[2] / inertia, z[0], current_rate(z[2], u, z[0], motor)])

    def target(t, s, above):
        calls["target"].append(t)
        return 1.0 if t < 0.2 else 2.0

    def position(t, s, above):
        calls["position"].append((t, above))
        return (0.04 * (above - s[1]) - 0.003 * s[0]) / motor[3]

    def current(t, s, above):
        calls["current"].append(t)
        return deadbeat_voltage(s[2], above, s[0], 1e-3, motor)

    levels = [ControlLevel(0.1, target), ControlLevel(4e-3, position), ControlLevel(1e-3, current)]
    states = [(t, z) for t, z, _ in run_loop(drive, np.zeros(3), levels, 0.6, settings=IntegratorSettings("rk4", 1e-4))]
    assert [len(calls[k]) for k in calls] == [6, 150, 600]
    assert {above for t, above in calls["position"] if t >= 0.2} == {2.0}
    at = {round(t, 6): z[1] for t, z in states}
    assert at[0.2] == pytest.approx(1.0, abs=0.05) and at[0.6] == pytest.approx(2.0, abs=0.05)


def test_sensors_come_between_state_and_controller_and_a_condition_ends_the_run():
    seen = []
    levels = [ControlLevel(0.01, lambda t, s, _: seen.append(s) or 1.0)]
    run = list(
        run_loop(cart, [0, 0], levels, sense=lambda t, z: round(z[1], 2), stop=lambda t, z: z[1] >= 0.5, settings=RK4)
    )
    assert run[-1][0] == pytest.approx(1.0, abs=0.011) and run[-2][1][1] < 0.5 <= run[-1][1][1]
    assert len(seen) == len(run) - 1 and set(seen) <= {k / 100 for k in range(51)}


def test_divergence_and_levels_that_do_not_fit_are_said_in_one_line():
    keep = ControlLevel(0.01, lambda t, s, _: 0.0)
    with pytest.raises(SimulationError, match="diverged at t = "):
        list(run_loop(lambda t, z, u: z * z, [1.0], [keep], 5.0, settings=IntegratorSettings("euler")))
    for levels, says in (
        ([], "at least one level"),
        ([ControlLevel(0.0, keep.act)], "must be a positive number"),
        ([ControlLevel(0.025, keep.act), keep], "not a whole multiple"),
        ([ControlLevel(0.001, keep.act), keep], "not a whole multiple"),
    ):
        with pytest.raises(ConfigError, match=says):
            next(run_loop(cart, [0, 0], levels))
