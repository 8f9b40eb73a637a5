"""Drives of durand on a virtual bus: identified, configured, enabled, moved, stopped."""

import struct

import numpy as np
import pytest
from durand.services.nmt import StateEnum

from humanoid_control.errors import ConfigError
from humanoid_control.hardware.can.configuration import Identity, period_of
from humanoid_control.hardware.can.drives import CanopenTransport
from humanoid_control.hardware.transport import ActuatorSpec, BusSpec, Flag, HardwareError, Mode, Silence
from test.hardware.can.durand_drives import COUNTS, PRODUCT, RATED, REVISION, VENDOR

pytestmark = pytest.mark.drives

PER_RAD = COUNTS / (2 * np.pi)


def test_process_data_limits_and_watchdog_are_written_and_read_back(rig):
    r = rig(2, heartbeat=0.01, drive_heartbeat=0.1).open()
    for drive in r.drives:
        read = drive.od.read
        assert [read(0x1600, k) for k in (0, 1, 2)] == [2, 0x60400010, 0x607A0020]
        assert [read(0x1A00, k) for k in (0, 1, 2, 3)] == [3, 0x60410010, 0x60640020, 0x60770010]
        assert read(0x1400, 1) == 0x200 + drive.id and read(0x1800, 1) & 0xBFFFFFFF == 0x180 + drive.id
        assert read(0x1400, 2) == read(0x1800, 2) == 1, "in step with SYNC"
        unused = [read(base + k, 1) >> 31 for base in (0x1400, 0x1800) for k in (1, 2, 3)]
        assert unused == [1] * 6, "process data that nobody wants are off"
        assert (read(0x60C2, 1), read(0x60C2, 2)) == (5, -3), "the period"
        assert (read(0x607D, 1), read(0x607D, 2)) == (np.ceil(-2 * PER_RAD), np.floor(2 * PER_RAD))
        assert read(0x6080, 0) == np.ceil(20 * 60 / (2 * np.pi)) and read(0x6065, 0) == np.ceil(2.0 * PER_RAD)
        assert read(0x6060, 0) == 8 and read(0x1017, 0) == 100
        assert read(0x1016, 1) == 127 << 16 | 30 and read(0x6007, 0) == 3
        assert drive.node.nmt.state == StateEnum.OPERATIONAL
        assert drive.machine.state == "SWITCH ON DISABLED", "no power by opening"
    assert r.transport.silence is Silence.STOPS and r.transport.trouble() == ""
    assert r.transport.serials() == ("1001", "1002")
    assert r.transport.reports[0].identity == Identity(VENDOR, PRODUCT, REVISION, 1001)
    assert r.transport.reports[0].rated_torque == RATED / 1000


def test_positions_are_followed_after_one_transition_a_cycle(rig):
    r = rig(3).open().enable()
    assert r.drives[0].machine.history == ["READY TO SWITCH ON", "SWITCHED ON", "OPERATION ENABLED"]
    r.until(lambda: r.state.have(Flag.ENABLED | Flag.FRESH).all(), write=True)
    for k in range(60):
        r.command.q[:] = (1 - np.cos(0.1 * k)) * np.array([0.5, -0.4, 0.9])
        r.cycle()
    r.until(lambda: np.allclose(r.state.q, r.command.q, atol=1 / PER_RAD), write=True)
    r.cycle()
    r.cycle()
    assert np.allclose(r.state.tau, 0.1 * RATED / 1000) and r.transport.trouble() == ""
    assert np.abs(r.state.v).max() < 1e-9 and not r.state.code.any()


def test_power_comes_without_a_jump_and_goes_by_the_drives_own_sequence(rig):
    r = rig(2, drive={"start": 700}).open()
    r.enable()
    for drive in r.drives:
        assert drive.machine.position == 700, "the command was 0, but nobody commanded yet"
        drive.machine.history.clear()
    r.until(lambda: r.transport.power(False))
    assert r.drives[0].machine.history == ["SWITCHED ON", "READY TO SWITCH ON", "SWITCH ON DISABLED"]
    assert not r.state.have(Flag.ENABLED).any()


def test_the_bus_never_carries_a_target_beyond_the_limits(rig):
    r = rig(2).open().enable()
    r.heard()
    for q in (50.0, -50.0, np.nan, np.inf):
        r.command.q[:] = q
        for _ in range(3):
            r.cycle()
    targets = [struct.unpack("<Hi", f.data) for f in r.heard() if f.arbitration_id & 0x780 == 0x200]
    assert targets and all(abs(t) <= 2.0 * PER_RAD for _, t in targets)
    assert {t for _, t in targets} == {1303, -1303}


def test_velocities_and_torques_in_their_own_modes(rig):
    r = rig(2, actuator={"mode": Mode.VELOCITY}).open().enable()
    assert r.drives[0].od.read(0x6060, 0) == 9
    assert [r.drives[0].od.read(0x1601, k) for k in (0, 1, 2)] == [2, 0x60FF0020, 0x60710010]
    r.until(lambda: r.state.have(Flag.ENABLED).all(), write=True)
    r.command.v[:] = 3.0, -1.0
    r.until(lambda: np.allclose(r.drives[0].od.read(0x60FF, 0), round(3 * PER_RAD)), write=True)
    r.until(lambda: r.state.q[0] > 0.1 and r.state.q[1] < -0.03, write=True)
    t = rig(1, actuator={"mode": Mode.EFFORT}).open().enable()
    t.command.tau[:] = 0.5
    t.until(lambda: t.state.tau[0] == pytest.approx(0.5), write=True)
    t.command.tau[:] = 99.0
    t.until(lambda: t.state.tau[0] == pytest.approx(1.5), write=True)


def test_measured_velocity_is_mapped_where_it_is_asked_for(rig):
    r = rig(2, measured_velocity=True).open()
    assert [r.drives[0].od.read(0x1A01, k) for k in (0, 1)] == [1, 0x606C0020]
    r.enable()
    r.command.q[:] = 0.5
    seen = []
    while r.state.q[0] < 0.4 or len(seen) < 20:
        r.cycle()
        seen.append(r.state.v[0])
    assert max(seen) == pytest.approx(0.5 / 0.005, rel=0.01), "one step of 0.5 rad in 5 ms, as the drive says"


def test_quick_stop_is_the_drives_own_and_stays(rig):
    r = rig(2).open().enable()
    r.transport.quick_stop()
    r.transport.quick_stop()
    r.until(lambda: all(d.machine.state == "QUICK STOP ACTIVE" for d in r.drives))
    for _ in range(5):
        r.cycle(write=False)
    assert not r.state.have(Flag.ENABLED).any()
    assert all(d.machine.state == "QUICK STOP ACTIVE" for d in r.drives)
    r.until(lambda: r.transport.power(False))
    assert all(d.machine.state == "SWITCH ON DISABLED" for d in r.drives)


def test_close_leaves_drives_without_power_and_may_be_called_twice(rig):
    r = rig(2).open().enable()
    r.transport.close()
    r.transport.close()
    r.wait(lambda: all(d.node.nmt.state == StateEnum.PRE_OPERATIONAL for d in r.drives))
    assert all(d.machine.state == "SWITCH ON DISABLED" for d in r.drives)
    assert "QUICK STOP ACTIVE" in r.drives[0].machine.history, "by the drives' own ramp first"
    r.open().enable()


def test_thirty_drives(rig):
    r = rig(30, period=0.02).open().enable()
    r.command.q[:] = np.linspace(-1, 1, 30)
    r.until(lambda: np.allclose(r.state.q, r.command.q, atol=1 / PER_RAD), write=True)
    assert r.transport.trouble() == "" and len(set(r.transport.serials())) == 30


def test_a_brake_is_the_drives_first_output_and_told_only_once(rig):
    r = rig(2, actuator={"options": {"brake": True}}).open()
    od = r.drives[1].od
    assert od.read(0x60FE, 2) == 1 and od.read(0x60FE, 1) == 1
    r.heard()
    for release, value in ((True, 0), (False, 1)):
        for _ in range(3):
            assert r.transport.brake(1, release)
        r.until(lambda v=value: od.read(0x60FE, 1) == v)
    assert len([f for f in r.heard() if f.arbitration_id == 0x602]) == 2
    assert r.drives[0].od.read(0x60FE, 1) == 1, "the other one's stays"
    assert not rig(1).open().transport.brake(0, True), "it has none"


@pytest.mark.parametrize("absolute", [True, False])
def test_an_encoder_that_knows_its_zero_is_homed(rig, absolute):
    r = rig(1, actuator={"options": {"absolute": absolute}}).open()
    r.until(lambda: r.state.have(Flag.FRESH).all())
    assert r.state.have(Flag.HOMED)[0] == absolute


# -------- What is said, and nothing opened


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"product": 0x30925}, r"j1 \(leg 1\): identity 0x9A/0x30924, expected 0x9A/0x30925"),
        ({"serial": 7}, r"j1 \(leg 1\): identity 0x9A/0x30924/0x3E9, expected 0x9A/0x30924/0x7"),
    ],
)
def test_another_device_than_the_file_says_is_refused(rig, options, words):
    r = rig(1, actuator={"options": {"vendor": VENDOR, "product": PRODUCT, **options}})
    with pytest.raises(HardwareError, match=f"^{words}$"):
        r.open()
    assert r.transport.bus.raw is None and r.drives[0].od.read(0x6060, 0) == 0, "nothing was written"


def test_drives_that_do_not_answer_are_named(rig):
    r = rig(3)
    r.drives[1].die()
    with pytest.raises(
        HardwareError, match=r"^no response from j2 \(leg 2\); found: 1, 3; check power, wires and bitrate$"
    ):
        r.open()


def test_a_drive_that_somebody_else_gave_power_is_left_alone(rig):
    r = rig(1)
    r.drives[0].machine.enter("OPERATION ENABLED")
    with pytest.raises(HardwareError, match=r"j1 \(leg 1\): was powered by another program"):
        r.open()
    assert r.drives[0].machine.state == "OPERATION ENABLED"


@pytest.mark.parametrize(
    ("without", "words"),
    [
        (0x607D, r"^j1 \(leg 1\): 0x607D:1 lower limit refused: "),
        (0x6080, r"^j1 \(leg 1\): 0x6080 speed limit refused: "),
        (0x60C2, r"^j1 \(leg 1\): does not accept a period of 5 ms \(0x60C2, 0x1006\)$"),
    ],
)
def test_a_drive_that_takes_no_limits_or_period_is_refused(rig, without, words):
    with pytest.raises(HardwareError, match=words):
        rig(1, drive={"without": (without,)}).open()


def test_a_value_that_is_read_back_as_another_is_refused(rig):
    r = rig(1)
    r.drives[0].od.set_read_callback(0x6065, 0, lambda: 12)
    with pytest.raises(HardwareError, match=r"^j1 \(leg 1\): 0x6065 following error window is 12 after writing \d+$"):
        r.open()


def test_limits_may_be_left_to_the_drive(rig):
    r = rig(1, drive={"without": (0x607D, 0x6080, 0x6065)}, actuator={"options": {"drive_limits": False}})
    assert r.open().transport.trouble() == ""


@pytest.mark.parametrize("without", [0x1016, 0x6007])
def test_a_drive_without_watchdog_gets_no_power(rig, without):
    r = rig(1, drive={"without": (without,)}).open()
    assert f"0x{without:X}" in r.transport.trouble() and r.transport.silence is Silence.UNKNOWN
    assert "j1 (leg 1)" in r.transport.trouble()
    trusting = rig(1, drive={"without": (without,)}, watchdog=False).open()
    assert trusting.transport.trouble() == "" and trusting.transport.silence is Silence.UNKNOWN, "a guardian must do it"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"interface": "soketcan"}, "unknown interface 'soketcan': did you mean socketcan"),
        ({"when_silent": "wait"}, "when_silent must be one of quick_stop, disable_voltage, fault, nothing"),
        ({"own_id": 1}, "own_id must be in 1 .. 127 and not the id of a drive, got 1"),
        ({"bitrate": 5}, "bitrate must be in 10000 .. 1000000, got 5"),
    ],
)
def test_bad_rows_of_a_bus_are_said_in_one_line(options, words):
    spec = BusSpec("leg", (ActuatorSpec("a", 1, options={"counts": 4096}),), 0.002,
                   {"interface": "virtual", "channel": "x", **options}, "my.hardware.yaml:7")  # fmt: skip
    with pytest.raises(ConfigError, match=f"^my.hardware.yaml:7: {words}"):
        CanopenTransport(spec)


@pytest.mark.parametrize(
    ("id", "options", "words"),
    [
        (0, {"counts": 4096}, "id of a must be in 1 .. 127, got 0"),
        (1, {}, "a needs counts"),
        (1, {"counts": 4096, "speed_unit": "deg"}, "speed_unit must be counts"),
        (1, {"counts": 4096, "eds": "nowhere.eds"}, "nowhere.eds cannot be read"),
    ],
)
def test_bad_rows_of_a_joint_are_said_in_one_line(id, options, words):
    spec = BusSpec("leg", (ActuatorSpec("a", id, options=options, where="my.hardware.yaml:9"),), 0.002,
                   {"interface": "virtual", "channel": "x"})  # fmt: skip
    with pytest.raises(ConfigError, match=rf"^my.hardware.yaml:9: {words}[^\n]*$"):
        CanopenTransport(spec)


def test_a_scan_lists_what_answers_and_changes_nothing(rig):
    r = rig(2, ids=[3, 90])
    lines = CanopenTransport.scan({"interface": "virtual", "channel": r.channel})
    assert lines == [f"id {i}: drive, vendor 0x9A, product 0x30924, serial {1000 + i}" for i in (3, 90)]
    assert r.drives[0].node.nmt.state == StateEnum.PRE_OPERATIONAL


def test_a_dry_run_shows_frames_as_candump_does(rig):
    r = rig(2).open().enable()
    r.command.q[:] = 1.0, -1.0
    assert r.transport.frames(r.command) == [
        f"{0x200 + i:X}#0F00{struct.pack('<i', round(q * PER_RAD)).hex().upper()}" for i, q in ((1, 1.0), (2, -1.0))
    ] + ["080#"]


def test_periods_are_values_and_powers_of_ten():
    assert period_of(0.002) == (2, -3) and period_of(0.0025) == (25, -4) and period_of(0.001) == (1, -3)
    for rate in range(50, 1001):
        value, exponent = period_of(1 / rate)
        assert 1 <= value <= 255 and value * 10.0**exponent == pytest.approx(1 / rate, rel=0.02)
