"""What goes wrong on a CANopen bus: each has a name, in one line, and is mended by `clear_faults` where it can be."""

import contextlib
import time

import can
import numpy as np
import pytest

from humanoid_control.hardware.can.bus import message
from humanoid_control.hardware.can.drives import CanopenTransport
from humanoid_control.hardware.transport import Flag, HardwareError, Silence
from test.hardware.can.durand_drives import Drive

pytestmark = pytest.mark.drives

RATE = {"drive_heartbeat": 0.05}  # where drives are to be lost: on a busy machine all of them are now and then


def failed(r, k=0):
    return bool(r.state.flags[k] & Flag.FAULT) and r.state.code[k] != 0


def test_an_emergency_is_a_fault_of_its_drive_with_words(rig):
    r = rig(2).open().enable()
    r.drives[1].fail(0x8611)
    r.until(lambda: failed(r, 1), write=True)
    assert r.transport.fault_text(int(r.state.code[1])) == "following error (0x8611)"
    assert not r.state.have(Flag.FAULT)[0] and r.state.code[0] == 0
    assert r.transport.trouble() == "", "one drive's fault is no trouble of the bus"
    assert not r.transport.power(True), "power does not come back by itself"


def test_a_following_error_is_found_by_the_drive_itself(rig):
    r = rig(1, actuator={"velocity": 1.0}).open().enable()
    r.drives[0].machine.stuck = True
    r.command.q[:] = 0.5
    r.until(lambda: failed(r), write=True)
    assert r.state.code[0] == 0x8611


def test_a_drive_that_fails_without_a_word_is_asked(rig):
    r = rig(2).open().enable()
    r.drives[0].fail(0x2310, silent=True)
    r.until(lambda: failed(r), write=True)
    assert r.transport.fault_text(int(r.state.code[0])) == "continuous over-current (0x2310)"
    assert r.transport.figures()["emergencies"] == 0


def test_a_fault_is_reset_by_an_edge_and_only_when_its_cause_is_gone(rig):
    r = rig(2).open().enable()
    r.drives[0].fail(0x4310, stays=True)
    r.until(lambda: failed(r), write=True)
    r.transport.clear_faults()
    for _ in range(8):
        r.cycle(write=False)
    assert r.state.have(Flag.FAULT)[0], "it is still hot"
    r.drives[0].machine.cause = 0
    for _ in range(8):
        r.cycle(write=False)
    assert r.state.have(Flag.FAULT)[0], "nobody asked"
    r.transport.clear_faults()
    r.until(lambda: not r.state.have(Flag.FAULT)[0] and r.state.code[0] == 0)
    assert r.drives[0].machine.state == "SWITCH ON DISABLED", "without power"
    r.enable()


def test_a_warning_is_one(rig):
    r = rig(1).open()
    r.drives[0].machine.put(0x6041, 0x0240 | 0x80 | 0x800)
    r.until(lambda: r.state.have(Flag.WARNING)[0] and r.state.have(Flag.LIMIT)[0])
    assert not r.state.have(Flag.FAULT)[0]


def test_a_heartbeat_that_ceases_is_named_though_samples_come(rig):
    r = rig(2, **RATE).open()
    r.until(lambda: True)
    r.drives[1].silence_heartbeat()
    begin = time.monotonic()
    r.until(lambda: r.transport.trouble().startswith("j2 (id 2) lost: no heartbeat for "))
    assert time.monotonic() - begin > 0.1
    r.until(lambda: r.state.have(Flag.FRESH).all())


def test_a_drive_whose_cable_breaks_is_not_fresh_and_lost_and_may_come_back(rig):
    r = rig(2, **RATE).open()
    r.drives[0].network.alive = False
    r.until(lambda: "j1 (id 1) lost" in r.transport.trouble() and r.state.have(Flag.FRESH).tolist() == [False, True])
    r.drives[0].network.alive = True
    r.until(lambda: not r.transport.trouble() and r.state.have(Flag.FRESH).all())


def test_a_node_that_restarts_is_named_and_configured_again_when_faults_are_cleared(rig):
    r = rig(3).open().enable()
    r.drives[1].restart()
    r.until(lambda: r.transport.trouble())
    assert r.transport.trouble() == "j2 (id 2) restarted unexpectedly"
    r.until(lambda: r.state.have(Flag.FRESH).tolist() == [True, False, True])
    for _ in range(30):
        r.cycle(write=False)
    assert r.transport.trouble() == "j2 (id 2) restarted unexpectedly", "latched"
    assert r.drives[1].od.read(0x1600, 0) == 0
    r.transport.quick_stop()
    r.transport.clear_faults()
    r.until(lambda: not r.transport.trouble() and r.state.have(Flag.FRESH).all())
    assert r.drives[1].od.read(0x1600, 0) == 2 and r.drives[1].machine.state == "SWITCH ON DISABLED"
    r.until(lambda: r.transport.power(False))
    r.enable()


def test_a_node_that_leaves_operational_by_itself_is_named_and_started_again(rig):
    r = rig(2).open()
    for _ in range(80):
        r.cycle(write=False)
    r.drives[0].leave_operational()
    r.until(lambda: r.transport.trouble())
    assert r.transport.trouble() == "j1 (id 1) left its state unexpectedly: it is pre-operational"
    r.transport.clear_faults()
    r.until(lambda: not r.transport.trouble() and r.state.have(Flag.FRESH).all())


def test_a_node_that_cannot_be_configured_again_says_why(rig):
    r = rig(2).open()
    r.drives[1].identity = (1, 2, 3, 4)
    r.drives[1].without = (0x607D,)
    r.drives[1].restart()
    r.until(lambda: r.transport.trouble())
    r.transport.clear_faults()
    r.cycle(write=False)
    assert r.transport.trouble().startswith("j2 (leg 2): 0x607D:1 lower limit refused")


def test_two_devices_of_one_id_are_refused_at_open_and_named_later(rig):
    r = rig(2)
    r.drives.append(Drive(r.hub, 2))
    with pytest.raises(HardwareError, match=r"^two devices respond as j2 \(leg 2\): change the id of one$"):
        r.open()
    later = rig(2).open()
    copy = can.Bus(later.channel, "virtual")
    own = message(0x182, bytes(8))
    later.until(lambda: later.transport.trouble(), each=lambda: copy.send(own))
    copy.shutdown()
    assert later.transport.trouble() == "two devices respond as j2 (id 2): change the id of one"


def error_frame(kind, status=0):
    return can.Message(
        arbitration_id=kind, is_error_frame=True, is_extended_id=False, data=[0, status, 0, 0, 0, 0, 0, 0]
    )


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        (error_frame(0x040), "bus off: wires, terminators and bitrate"),
        (error_frame(0x004, 0x10), "error passive"),
        (error_frame(0x004, 0x20), "error passive"),
        (error_frame(0x020), "no device acknowledges frames"),
    ],
)
def test_what_the_controller_reports_is_named(rig, frame, words):
    r = rig(1).open()
    controller = can.Bus(r.channel, "virtual")
    controller.send(frame)
    # a heartbeat of the drive may come first
    r.wait(lambda: (r.transport.bus.receive(time.monotonic() + 0.1), r.transport.trouble())[1])
    assert r.transport.trouble().startswith(words) and "\n" not in r.transport.trouble()
    controller.send(error_frame(0x104, 0x40))  # restarted, and active again
    r.until(lambda: not r.transport.trouble())
    controller.shutdown()


def test_a_counter_of_warnings_is_no_trouble(rig):
    r = rig(1).open()
    r.transport.bus._error_frame(error_frame(0x004, 0x08))
    assert r.transport.trouble() == "" and r.transport.figures()["errors"] == 1


def test_a_bus_that_is_gone_raises_and_opens_again_without_power(rig):
    r = rig(1).open().enable()
    r.transport.bus.raw.shutdown()
    with pytest.raises(HardwareError, match=rf"^bus leg: {r.channel} disappeared: Cannot operate on a closed bus$"):
        for _ in range(30):
            r.cycle()
    r.transport.quick_stop()
    r.transport.brake(0, True)
    r.transport.clear_faults()
    r.transport.power(True)
    r.transport.close()
    r.wait(lambda: r.drives[0].machine.state == "QUICK STOP ACTIVE")
    r.open()
    r.until(lambda: r.state.have(Flag.FRESH)[0])
    assert not r.state.have(Flag.ENABLED)[0] and r.drives[0].machine.state != "OPERATION ENABLED"


@pytest.mark.parametrize(
    ("when_silent", "state", "silence"),
    [
        ("quick_stop", "QUICK STOP ACTIVE", Silence.STOPS),
        ("disable_voltage", "SWITCH ON DISABLED", Silence.LIMP),
        ("fault", "FAULT", Silence.STOPS),
        ("nothing", "OPERATION ENABLED", Silence.UNKNOWN),
    ],
)
def test_in_silence_drives_do_what_was_configured(rig, when_silent, state, silence):
    r = rig(2, when_silent=when_silent).open().enable()
    assert r.transport.silence is silence
    for drive in r.drives:  # from now on, 30 ms: while it is enabled, a busy machine may pause the test for longer
        drive.od.write(0x1016, 1, 127 << 16 | 30)
    if state == "OPERATION ENABLED":
        r.wait(lambda: all(d.machine.heard is None for d in r.drives))
    r.wait(lambda: all(d.machine.state == state for d in r.drives))
    r.hub.drives.clear()  # what follows is not looked at


def test_a_quick_stop_that_lets_the_joint_fall_is_no_stop(rig):
    r = rig(1)
    r.drives[0].od.write(0x605A, 0, 0)
    r.open()
    assert r.transport.silence is Silence.LIMP, "0x605A = 0: the drive switches off"


@pytest.mark.parametrize("count", [10_000, pytest.param(100_000, marks=pytest.mark.thorough)])
def test_frames_of_any_kind_do_not_raise(rig, count):
    r = rig(2).open()
    r.until(lambda: r.state.have(Flag.FRESH).all())
    noise = can.Bus(r.channel, "virtual")
    rng = np.random.default_rng(1)
    identifiers = [0x80, 0x81, 0x82, 0x181, 0x182, 0x281, 0x581, 0x582, 0x701, 0x702, 0x77F]
    for k in range(count):
        noise.send(
            can.Message(
                arbitration_id=int(rng.choice(identifiers)) if k % 3 else int(rng.integers(0x800)),
                data=rng.bytes(int(rng.integers(9))),
                is_extended_id=k % 17 == 0,
                is_remote_frame=k % 19 == 0,
                is_error_frame=k % 23 == 0,
            )
        )
        if k % 100 == 0:
            r.transport.read(r.state, time.monotonic())
            r.transport.write(r.command)
            assert "\n" not in r.transport.trouble()
            assert np.isnan(r.state.tau).sum() == 0 and np.isnan(r.state.q).sum() == 0
    noise.shutdown()
    assert (abs(r.transport.data.target) <= r.transport.data.units.upper).all()


def test_a_command_that_a_dead_program_left_in_the_drive_does_not_come_true(rig):
    r = rig(1).open().enable()
    r.transport.data.pack(r.command)
    r.transport._send_commands()  # enabled, and killed before SYNC
    r.transport.bus.close()
    r.wait(lambda: r.drives[0].machine.state == "QUICK STOP ACTIVE")
    r.open()
    for _ in range(5):
        r.cycle(write=False)
    assert r.drives[0].machine.history.count("OPERATION ENABLED") == 1, "before"
    assert r.drives[0].machine.state == "QUICK STOP ACTIVE" and not r.state.have(Flag.ENABLED)[0]


def test_drives_that_stopped_while_we_were_away_do_not_go_on_when_we_come_back(rig):
    r = rig(2).open().enable()
    r.until(lambda: r.state.have(Flag.ENABLED).all(), write=True)
    r.wait(lambda: all(d.machine.state == "QUICK STOP ACTIVE" for d in r.drives))
    for _ in range(6):
        r.cycle()
    assert all(d.machine.history.count("OPERATION ENABLED") == 1 for d in r.drives), "before"
    assert all(d.machine.state == "QUICK STOP ACTIVE" for d in r.drives)
    assert not r.state.have(Flag.ENABLED).any(), "which the driver sees as lost power"
    r.enable()


def test_opening_does_not_keep_drives_alive_that_a_dead_program_left_with_power(rig):
    r = rig(1).open().enable()
    r.transport.bus.close()
    successor = CanopenTransport(r.spec)
    end = time.monotonic() + 8.0
    while r.drives[0].machine.state == "OPERATION ENABLED":
        assert time.monotonic() < end, "its watchdog heard us"
        with contextlib.suppress(HardwareError):
            successor.open()
    successor.close()
