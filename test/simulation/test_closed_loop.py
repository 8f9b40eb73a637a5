"""Control loops: against sampled systems and a cascade written out by hand; cycles, exit conditions, sensors."""

import itertools

import numpy as np
import pinocchio as pin
import pytest
from scipy.linalg import expm

from humanoid_control.errors import ConfigError, SimulationError
from humanoid_control.robots import load_robot
from humanoid_control.simulation import make_engine
from humanoid_control.simulation.drives.motors_gears import MotorSettings, current_rate, deadbeat_voltage
from humanoid_control.simulation.sensors.sensor_model import Imperfection
from humanoid_control.simulation.state_space.closed_loop import ControlLevel, DriveInputs, run_loop, run_robot
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


ROBOT = load_robot("wabian2", "fixed")
GOAL = ROBOT.from_mapping({"l_elbow_flexion": 0.9, "r_shoulder_flexion": 0.3})
# A position loop at 100 Hz gives a speed to a speed loop at 500 Hz, which gives torques: the inner one is much faster.
SLOW, FAST, KP = 0.01, 0.002, 4.0


def speed_gain(world):
    return 0.02 * world.gains.kd


def cascade(world, log):
    def outer(t, reading, above):
        assert above is None and t == reading.joints.stamp
        log.append(("outer", reading.joints.stamp))
        return KP * (GOAL - reading.joints.q)

    def inner(t, reading, speed):
        log.append(("inner", reading.joints.stamp))
        return DriveInputs(efforts=gravity(world, reading.joints.q) + speed_gain(world) * (speed - reading.joints.v))

    return [ControlLevel(SLOW, outer), ControlLevel(FAST, inner)]


def gravity(world, joints):
    return pin.computeGeneralizedGravity(world.model, world.model.createData(), joints)


def test_a_cascade_does_what_the_same_written_out_does():
    """Two nested loops, sampled and held, over pinocchio's ABA with rotors, semi-implicit Euler."""
    world, log = make_engine(ROBOT), []
    world.set_state(ROBOT.postures["neutral"] * 0.9 + 0.1 * GOAL)
    q, v, h = world.joints.copy(), np.zeros(ROBOT.n), world.settings.step
    assert run_robot(world, cascade(world, log), 0.4) == "time"

    model, limit = world.model.copy(), world.gains.effort
    model.armature, data, gain = world.gains.rotor, model.createData(), speed_gain(world)
    for k in range(400):
        if k % 10 == 0:
            speed = KP * (GOAL - q)
        if k % 2 == 0:
            tau = np.clip(gravity(world, q) + gain * (speed - v), -limit, limit)
        v = v + h * pin.aba(model, data, q, v, tau)
        q = q + h * v
    assert np.abs(q - world.joints).max() < 1e-6
    assert np.abs(q - GOAL).max() < 0.5 * np.abs(ROBOT.postures["neutral"] - GOAL).max(), "it went somewhere"
    inner = [t for name, t in log if name == "inner"]
    outer = [t for name, t in log if name == "outer"]
    assert len(inner) == 200 and outer == pytest.approx(inner[::5])
    assert log[0][0] == "outer" and log[1] == ("inner", log[0][1]), "from above to below in the same cycle"


def test_it_ends_when_the_condition_holds_or_the_world_diverges():
    world = make_engine(ROBOT)
    raise_it = ControlLevel(0.005, lambda t, reading, _: DriveInputs(positions=GOAL))
    elbow = ROBOT.joint_index("l_elbow_flexion")
    assert run_robot(world, [raise_it], 5.0, lambda w: w.joints[elbow] > 0.5) == "until"
    assert 0.5 < world.joints[elbow] < 0.8 and world.time < 2.0
    world.push("l_hand", np.array([1e13, 0, 0, 0, 0, 0]), 1.0)
    assert run_robot(world, [raise_it], 5.0) == "diverged"
    assert np.isfinite(world.q).all()


def test_the_controller_sees_the_sensors_not_the_truth():
    world, seen = make_engine(load_robot("suralp", "floating")), []
    model = Imperfection.from_texts(noise="position=0.01", delay="imu=0.01", dropout="wrench=0.5")
    neutral = world.robot.postures["neutral"]

    def watch(t, reading, _):
        seen.append((reading, world.joints.copy(), world.imu()))
        return DriveInputs(positions=neutral)

    run_robot(world, [ControlLevel(0.005, watch)], 0.5, imperfection=model)
    errors = np.array([r.joints.q - truth for r, truth, _ in seen])
    assert errors.std() == pytest.approx(0.01, rel=0.1)
    for late, early in zip(seen[2:], seen[:-2], strict=True):
        assert np.array_equal(late[0].imu.linear_acceleration, early[2].linear_acceleration), "two cycles old"
    loads = [r.foot_wrenches["l_foot"][2] for r, _, _ in seen]
    repeated = sum(a == b for a, b in itertools.pairwise(loads))
    assert 30 < repeated < 70 and loads[-1] > 100, "lost samples leave the one before"


@pytest.mark.parametrize("periods", [[], [0.0015], [0.01, 0.003], [0.001, 0.002], [np.nan]])
def test_periods_that_do_not_fit_are_refused(periods):
    with pytest.raises(ConfigError, match=r"whole multiple|at least one level|positive number"):
        run_robot(make_engine(ROBOT), [ControlLevel(p, lambda t, r, a: DriveInputs()) for p in periods], 0.1)
