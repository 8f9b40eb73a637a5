"""Joints and actuators: gears against their formula, Lola's ankles through the loopback drives and back."""

import numpy as np
import pytest

from humanoid_control.errors import RobotError
from humanoid_control.hardware.hardware_file import read_hardware_file
from humanoid_control.hardware.loopback import LoopbackTransport
from humanoid_control.hardware.transmission import Gear, JointReading, Transmission
from humanoid_control.hardware.transport import ActuatorCommand, ActuatorState, Flag
from humanoid_control.robots import load_robot

rng = np.random.default_rng(3)


@pytest.fixture
def gears():
    """Three joints on actuators in another order."""
    return Transmission(
        3, [Gear(0, 2, 100.0, -1.0, 0.3), Gear(1, 0), Gear(2, 1, 2.0, 1.0, -0.1)], []
    )  # fmt: skip


def echo(command: ActuatorCommand) -> ActuatorState:
    """Drives that are where they are told to be."""
    state = ActuatorState(len(command.q))
    state.q[:], state.v[:], state.tau[:] = command.q, command.v, command.tau
    return state


def test_gears_there_and_back(gears):
    q, v, tau = rng.normal(size=(3, 3))
    command, joints = ActuatorCommand(3), JointReading(3)
    gears.command(q, v, tau, command)
    assert command.q[2] == pytest.approx(-100.0 * (q[0] - 0.3)) and command.v[2] == pytest.approx(-100 * v[0])
    assert command.tau[2] == pytest.approx(-tau[0] / 100) and command.q[0] == pytest.approx(q[1])
    gears.read(echo(command), joints)
    np.testing.assert_allclose([joints.q, joints.v, joints.tau], [q, v, tau], atol=1e-12)
    assert command.v @ command.tau == pytest.approx(v @ tau), "no power is made or lost"


def test_gains_are_seen_through_the_gear(gears):
    command = ActuatorCommand(3)
    gears.gains(np.array([100.0, 1.0, 4.0]), np.array([10.0, 1.0, 4.0]), command)
    assert command.kp.tolist() == [1.0, 1.0, 0.01] and command.kd.tolist() == [1.0, 1.0, 0.001]


def test_flags_and_figures_follow_their_joint(gears):
    state, joints = ActuatorState(3), JointReading(3)
    state.flags[:] = Flag.FRESH | Flag.ENABLED, Flag.ENABLED, Flag.FRESH | Flag.FAULT
    state.code[2], state.temperature[:], state.stamp[:] = 7, (1.0, 2.0, 3.0), (10.0, 20.0, 30.0)
    gears.read(state, joints)
    assert joints.fresh.tolist() == [True, True, False]
    assert joints.enabled.tolist() == [False, True, True] and joints.failed.tolist() == [True, False, False]
    assert joints.code.tolist() == [7, 0, 0] and joints.temperature.tolist() == [3.0, 1.0, 2.0]
    assert joints.stamp.tolist() == [30.0, 10.0, 20.0]


def test_a_zero_puts_the_joint_where_it_is_said_to_be(gears):
    state, joints = ActuatorState(3), JointReading(3)
    state.q[:] = 0.2, 0.4, 50.0
    offsets = gears.zero_offsets(0, 1.0, state)
    again = Transmission(3, [Gear(0, 2, 100.0, -1.0, offsets[2]), Gear(1, 0), Gear(2, 1)], [])
    again.read(state, joints)
    assert joints.q[0] == pytest.approx(1.0)


def test_a_joint_without_or_with_two_drives_is_refused():
    for gears in ([Gear(0, 0)], [Gear(0, 0), Gear(0, 1), Gear(1, 2)]):
        with pytest.raises(RobotError):
            Transmission(2, gears, [])


# -- Lola's ankles: two screws, two joints


@pytest.fixture(scope="module")
def lola(tmp_path_factory):
    """Lola with its ankles and knees on mechanisms, the other joints fixed."""
    robot = load_robot("lola", "fixed")
    folder = tmp_path_factory.mktemp("lola")
    from humanoid_control.robots.drives import drives_of

    linked = [d for d in drives_of(robot).drives if d.kind in ("ankle_screws", "knee_screw")]
    moved = {j for d in linked for j in d.joints}
    text = "schema: humanoid_hardware/1\nrobot: lola\nbuses: {legs: {transport: loopback}}\njoints:\n"
    q = robot.postures["neutral"]
    text += "".join(f"  {n}: {{fixed: {q[k]:.9f}}}\n" for k, n in enumerate(robot.joint_names) if n not in moved)
    text += "drives:\n"
    for k, d in enumerate(linked):
        n = len(d.joints)
        text += (
            f"  {d.name}: {{bus: legs, ids: {[10 * k + i for i in range(n)]}, signs: {[(-1) ** i for i in range(n)]}"
        )
        text += f", offsets: {[0.1 * i for i in range(n)]}}}\n"
    path = folder / "lola.hardware.yaml"
    path.write_text(text)
    hardware = read_hardware_file(path, robot)
    return hardware, hardware.transmission({})


def posture(hardware):
    lower, upper = hardware.column("lower"), hardware.column("upper")
    return lower + (0.1 + 0.8 * rng.random(len(lower))) * (upper - lower)


def test_ankles_return_the_commanded_angles_through_the_drives(lola):
    hardware, transmission = lola
    (bus,) = hardware.buses
    m = len(hardware.actuators)
    assert m == len(hardware.names) and any(name.endswith(".2") for name in hardware.actuators)
    drives, state, joints = LoopbackTransport(bus.spec), ActuatorState(m), JointReading(len(hardware.names))
    now = [0.0]
    drives.clock = lambda: now[0]
    command = ActuatorCommand(m)
    for _ in range(20):
        q = posture(hardware)
        transmission.command(q, np.zeros_like(q), np.zeros_like(q), command)
        drives.q[:], drives.v[:] = command.q, 0.0
        drives.open()
        drives.read(state, now[0])
        transmission.read(state, joints)
        assert np.abs(joints.q - q).max() < 1e-9
        now[0] += 0.01


def test_torques_and_velocities_of_ankles_keep_the_power(lola):
    """J^T tau of the motors is the torque of the joints, against finite differences of the mechanism."""
    hardware, transmission = lola
    n = len(hardware.names)
    command, ahead, joints = ActuatorCommand(n), ActuatorCommand(n), JointReading(n)
    for _ in range(20):
        q, v, tau = posture(hardware), rng.normal(size=n), rng.normal(size=n)
        transmission.command(q, v, tau, command)
        transmission.read(echo(command), joints)
        assert np.abs(joints.v - v).max() < 1e-9 and np.abs(joints.tau - tau).max() < 1e-9
        assert command.tau @ command.v == pytest.approx(tau @ v, abs=1e-9)
        h = 1e-6
        transmission.command(q + h * v, v, tau, ahead)
        difference = ahead.q - command.q
        transmission.command(q - h * v, v, tau, ahead)
        moved = (difference + command.q - ahead.q) / (2 * h)
        np.testing.assert_allclose(moved, command.v, rtol=1e-5, atol=1e-5)


def test_motor_angles_that_close_no_loop_are_not_measured(lola):
    hardware, transmission = lola
    n = len(hardware.names)
    command, joints = ActuatorCommand(n), JointReading(n)
    q = posture(hardware)
    transmission.command(q, np.zeros(n), np.zeros(n), command)
    state = echo(command)
    screws = hardware.linkages[0].actuators
    state.q[hardware.actuators.index(screws[0])] += 1e4
    transmission.read(state, joints)
    lost = ~np.isfinite(joints.q)
    assert lost.sum() == len(screws) and (np.isfinite(joints.v) == ~lost).all()
    np.testing.assert_allclose(joints.q[~lost], q[~lost], atol=1e-9)


def test_linkages_are_calibrated_with_all_their_joints(lola):
    hardware, transmission = lola
    q, n = posture(hardware), len(hardware.names)
    command = ActuatorCommand(n)
    transmission.command(q, np.zeros(n), np.zeros(n), command)
    offsets = transmission.linkage_offsets(q, echo(command))
    given = {a: o for row in hardware.linkages for a, o in zip(row.actuators, row.offsets, strict=True)}
    for k, name in enumerate(hardware.actuators):
        assert offsets[k] == pytest.approx(given[name], abs=1e-9)
    with pytest.raises(RobotError):
        transmission.zero_offsets(0, 0.0, echo(command))


def test_of_the_actuators_of_a_linkage_the_worst_counts(lola):
    hardware, transmission = lola
    n = len(hardware.names)
    command, joints = ActuatorCommand(n), JointReading(n)
    transmission.command(posture(hardware), np.zeros(n), np.zeros(n), command)
    row = next(r for r in hardware.linkages if len(r.actuators) == 2)
    first, second = (hardware.actuators.index(a) for a in row.actuators)
    state = echo(command)
    state.stamp[:], state.temperature[:], state.voltage[:] = 10.0, 30.0, 48.0
    state.flags[:] = Flag.FRESH | Flag.ENABLED
    state.stamp[second], state.temperature[first], state.voltage[second] = 9.0, 70.0, 40.0
    state.flags[second], state.code[first] = Flag.ENABLED | Flag.FAULT, 5
    transmission.read(state, joints)
    bad = joints.stamp == 9.0
    assert bad.sum() == 2 and (joints.temperature[bad] == 70.0).all() and (joints.voltage[bad] == 40.0).all()
    assert not joints.fresh[bad].any() and joints.fresh[~bad].all() and joints.enabled.all()
    assert joints.failed[bad].all() and not joints.failed[~bad].any() and (joints.code[bad] == 5).all()
