"""Simulated drives: they follow, and every fault that safety is tested with is one."""

import numpy as np
import pytest

from humanoid_control.errors import ConfigError
from humanoid_control.hardware.loopback import DriveState, LoopbackTransport
from humanoid_control.hardware.transport import ActuatorSpec, BusSpec, Flag, HardwareError, Mode


def test_a_drive_goes_through_its_states_one_a_cycle_and_back(bench):
    b = bench()
    seen = [int(b.bus.drive[0])]
    while not b.bus.power(True):
        seen.append(int(b.bus.drive[0]))
    seen.append(int(b.bus.drive[0]))
    assert seen == [0, 1, 2, 3] and DriveState(3) is DriveState.OPERATION_ENABLED
    for _ in range(3):
        assert b.bus.power(False) == (int(b.bus.drive[0]) == 0)
    assert (b.bus.drive == DriveState.SWITCH_ON_DISABLED).all()


def test_a_position_drive_follows_a_ramp_and_holds_its_load(bench):
    b = bench(ActuatorSpec("a", 1, effort=20.0, options={"load": -3.0, "bandwidth": 20.0})).enable()
    b.command.v[:] = 1.0

    def ramp():
        b.command.q[:] += b.period

    b.cycle(0.5, each=ramp)
    assert abs(b.bus.q[0] - b.command.q[0]) < 0.01 and abs(b.bus.v[0] - 1.0) < 0.02
    b.command.v[:] = 0.0
    b.cycle(0.5)
    assert abs(b.bus.q[0] - b.command.q[0]) < 1e-4 and abs(b.state.tau[0] - 3.0) < 0.01


def test_each_mode_controls_its_quantity(bench):
    b = bench().enable()
    b.command.mode[:] = Mode.VELOCITY, Mode.EFFORT
    b.command.v[:], b.command.tau[:] = (0.5, 0.0), (0.0, 0.1)
    b.cycle(0.5)
    assert abs(b.bus.v[0] - 0.5) < 0.01 and 0.3 < b.bus.v[1] < 0.55  # 0.1 N m on 0.1 kg m^2, less viscous friction
    assert abs(b.state.tau[1] - 0.1) < 1e-12
    b.command.mode[:], b.command.kp[:], b.command.kd[:] = Mode.IMPEDANCE, 10.0, 2.0
    b.command.q[:], b.command.v[:], b.command.tau[:] = 1.0, 0.0, 2.0
    b.cycle(6.0)
    assert np.abs(b.bus.q - 1.2).max() < 1e-3  # a spring of 10 N m/rad gives way to 2 N m by 0.2 rad


def test_torque_ends_at_the_effort_limit(bench):
    b = bench(ActuatorSpec("a", 1, effort=1.0)).enable()
    b.command.q[:] = 1.0
    b.cycle(0.05)
    assert b.state.tau[0] == 1.0


def test_samples_and_commands_are_late_by_the_delay(bench):
    b = bench(delay=0.01).enable()
    b.cycle(0.02, write=False)
    assert b.clock.now - b.state.stamp[0] == pytest.approx(0.01, abs=0.0021)
    b.command.q[:] = 0.3
    b.bus.write(b.command)
    b.cycle(0.008, write=False)
    assert (b.bus.q == 0).all()
    b.cycle(0.01, write=False)
    assert (b.bus.q > 0).all()


def test_lost_samples_keep_the_old_ones_and_are_not_fresh(bench):
    b = bench(loss=0.3, seed=4).enable()
    fresh = []
    b.cycle(2.0, each=lambda: fresh.append(b.state.have(Flag.FRESH).copy()))
    assert 0.6 < np.mean(fresh) < 0.8
    assert 0.6 < b.bus.commands / b.bus.written < 0.8
    b.bus.mute[0] = True
    stamp = b.state.stamp.copy()
    b.cycle(0.1)
    assert b.state.stamp[0] == stamp[0] and b.state.stamp[1] > stamp[1]


@pytest.mark.parametrize(
    ("silence", "moves", "powered"),
    [("STOPS", False, False), ("HOLDS", False, True), ("DAMPS", False, True), ("LAST_COMMAND", True, True)],
)
def test_silence_of_the_computer(bench, silence, moves, powered):
    b = bench(silence=silence, watchdog=0.05).enable()
    b.command.mode[:], b.command.v[:] = (Mode.VELOCITY, Mode.EFFORT), 1.0
    b.command.tau[:] = 1.0
    b.cycle(0.1)
    b.cycle(1.0, write=False)
    at = b.bus.q.copy()
    b.cycle(0.5, write=False)
    if silence == "HOLDS":
        assert abs(b.bus.q[0] - at[0]) < 1e-3
    else:
        assert (np.abs(b.bus.q - at) > 0.1).all() == moves
    assert b.state.have(Flag.ENABLED).all() == powered
    if silence == "STOPS":
        assert b.bus.fault_text(int(b.state.code[0])) == "heartbeat of the controller is missing"


def test_a_limp_joint_falls_and_a_braked_one_does_not(bench):
    rows = [ActuatorSpec(n, k, effort=9.0, options={"load": 2.0, "brake": k == 1}) for k, n in enumerate("ab")]
    b = bench(*rows, silence="LIMP")
    b.cycle(0.5)
    assert b.bus.q[0] > 0.1 and b.bus.q[1] == 0.0
    assert b.bus.brake(1, release=True) and not b.bus.brake(0, release=True)
    b.cycle(0.5)
    assert b.bus.q[1] > 0.1


def test_a_fault_is_latched_until_its_cause_is_gone_and_somebody_clears_it(bench):
    b = bench().enable()
    b.bus.fail("a", 0x4310, stays=True)
    b.cycle(0.01)
    assert b.state.have(Flag.FAULT).tolist() == [True, False] and b.state.code[0] == 0x4310
    b.bus.clear_faults()
    b.cycle(0.01)
    assert b.state.have(Flag.FAULT)[0], "the cause is still there"
    b.bus.clear_fault("a")
    b.cycle(0.01)
    assert b.state.have(Flag.FAULT)[0], "nobody cleared it"
    b.bus.clear_faults()
    b.cycle(0.01)
    assert not b.state.have(Flag.FAULT).any() and b.state.code[0] == 0
    assert not b.state.have(Flag.ENABLED)[0], "power does not come back by itself"


def test_a_quick_stop_brings_a_moving_joint_to_rest(bench):
    b = bench().enable()
    b.command.mode[:], b.command.v[:] = Mode.VELOCITY, 2.0
    b.cycle(0.3)
    assert (b.bus.v > 1.9).all()
    b.bus.quick_stop()
    b.bus.quick_stop()
    b.cycle(0.3)
    assert (np.abs(b.bus.v) < 0.01).all() and not b.state.have(Flag.ENABLED).any()
    b.bus.power(False)
    b.cycle(0.01)
    assert b.bus.power(False)


def test_temperature_rises_with_the_square_of_torque_and_falls_again(bench):
    b = bench(ActuatorSpec("a", 1, effort=4.0, options={"heating": 10.0, "cooling": 2.0, "load": -2.0})).enable()
    b.cycle(4.0)
    assert b.bus.temperature[0] == pytest.approx(25 + 10 * 0.25 * 2 * (1 - np.exp(-2)), rel=0.02)
    b.bus.load[:] = 0.0
    b.cycle(8.0)
    assert b.bus.temperature[0] < 25.2


def test_encoder_faults_and_a_stuck_joint_show(bench):
    b = bench().enable()
    b.bus.encoder[0] = 0.05
    b.cycle(0.01)
    assert b.state.q[0] == pytest.approx(0.05, abs=1e-3)
    b.bus.frozen[1] = True
    b.bus.stuck[0] = True
    b.command.q[:] = 0.4
    b.cycle(0.3)
    assert b.state.q[1] == 0.0 and b.bus.q[1] > 0.3 and abs(b.bus.q[0]) < 1e-3


def test_a_cut_bus_is_silent_and_a_bus_that_is_gone_is_an_error(bench):
    b = bench().enable()
    b.bus.cut = True
    b.cycle(0.05)
    assert not b.state.have(Flag.FRESH).any() and not b.bus.power(True)
    b.bus.gone = True
    with pytest.raises(HardwareError, match="bench"):
        b.bus.read(b.state, 0.0)
    with pytest.raises(HardwareError):
        b.bus.write(b.command)
    b.bus.close()


def test_the_same_seed_gives_the_same_run(bench):
    ends = []
    for _ in range(2):
        b = bench(loss=0.2, delay=0.003, seed=7).enable()
        b.command.q[:] = 0.5
        b.cycle(0.2)
        ends.append((b.bus.q.copy(), b.bus.commands))
    assert (ends[0][0] == ends[1][0]).all() and ends[0][1] == ends[1][1]


def test_an_unknown_kind_of_silence_is_refused():
    with pytest.raises(ConfigError, match="LAST_COMMAND"):
        LoopbackTransport(BusSpec("x", (), options={"silence": "sleeps"}))


def test_traffic_and_supply(bench):
    """Frames out and in, those that are lost; the current is that of the mechanical power."""
    b = bench(loss=0.25, seed=3, voltage=40.0).enable()
    sent, arrived, errors = b.bus.traffic()
    b.command.v[:], b.command.mode[:] = 1.0, Mode.VELOCITY
    b.bus.load[:] = -4.0, 0.0
    b.cycle(1.0)
    now = b.bus.traffic()
    assert now.sent - sent == 500 and 650 < now.received - arrived < 850, "of 1000 samples a quarter is lost"
    lost_samples = 1000 - (now.received - arrived)
    assert 80 < now.errors - errors - lost_samples < 170, "and of 500 commands"
    supply = b.bus.battery(b.state)
    assert supply.voltage == 40.0 and supply.current == pytest.approx(-4.0 * b.bus.v[0] / 40.0, rel=0.1)
    b.bus.load[0] = 4.0  # it pulls along: the brake gives nothing back
    b.cycle(0.5)
    assert b.bus.battery(b.state).current > -0.05
    assert bench(voltage=0.0).bus.battery(b.state) is None
