"""The transport against emulated servos: power and watchdog, modes, faults by name, what is wrong on the wire."""

import os
import time

import numpy as np
import pytest

pytest.importorskip("dynamixel_sdk", reason="needs dynamixel-sdk")

from humanoid_control.errors import ConfigError
from humanoid_control.hardware.dynamixel import transport
from humanoid_control.hardware.dynamixel.frames import encode_goals, take_replies
from humanoid_control.hardware.dynamixel.models import MODELS
from humanoid_control.hardware.dynamixel.transport import DynamixelTransport
from humanoid_control.hardware.transport import (
    ActuatorCommand,
    ActuatorSpec,
    BusSpec,
    Flag,
    HardwareError,
    Mode,
    Silence,
    transport_class,
)
from test.hardware.dynamixel.servos import Bus, P, Servo

pytestmark = pytest.mark.drives


@pytest.fixture
def three():
    with Bus([Servo(k) for k in (1, 2, 3)]) as bus:
        yield bus


def spec(k, mode=Mode.POSITION, **more):
    options = {key: more.pop(key) for key in ("model", "operating") if key in more}
    return ActuatorSpec(f"j{k}", k, mode, options=options, **more)


# -------- Power


def test_power_comes_after_the_watchdog_and_a_goal_where_the_servo_is(three, driver):
    three[2].put(132, 1234, 4)
    with driver(three, [1, 2, 3], watchdog=0.5) as d:
        d.enable()
        assert d.transport.silence is Silence.STOPS
        for k in (1, 2, 3):
            order = [a for a, data in three[k].written if a in (98, 116, 64)]
            assert order[:4] == [98, 98, 116, 64], "cleared, armed, goal, torque"
            assert three[k].get(98, 1) == 25
            assert dict(three[k].written[:5])[116] == three[k].position.to_bytes(4, "little")
            assert (108, bytes(8)) in three[k].written, "no profile: the goals are interpolated here"
        assert three[2].position == 1234, "nothing moved"


def test_power_is_refused_where_the_watchdog_is_not_accepted(three, driver):
    three[2].refuses_watchdog = True
    with driver(three, [1, 2, 3]) as d:
        d.cycle()
        d.until(lambda: d.transport.power(True) or d.transport.trouble(), "an answer")
        assert d.transport.trouble() == "bus watchdog not accepted by j2 (reads 0, written 125)"
        d.cycle(5)
        assert not d.transport.power(True) and not any(s.on for s in three.servos.values())
        three[2].refuses_watchdog = False
        d.transport.clear_faults()
        assert not d.transport.trouble()
        d.until(lambda: d.transport.power(False), "off")
        d.enable()


def test_no_torque_before_every_servo_was_measured(three, driver, monkeypatch):
    monkeypatch.setattr(transport, "PATIENCE", 0.05)
    with driver(three, [1, 2, 3]) as d:
        three[3].unmeasured = True  # it answers everything else
        for _ in range(12):
            d.cycle()
            assert not d.transport.power(True)
        assert not any(s.on for s in three.servos.values())
        assert not any(address == 116 for address, _ in three[3].written), "where it is nobody knows"
        three[3].unmeasured = False
        d.until(lambda: d.transport.power(True), "power")


def test_servos_stop_when_the_computer_falls_silent_and_it_shows(three, driver):
    with driver(three, [1, 2, 3], watchdog=0.06) as d:
        d.cycle()
        d.until(lambda: d.transport.power(True) or (three[1].get(98, 1) == 255), "power", write=True)
        time.sleep(0.2)  # silence is what is tested
        d.cycle()
        assert all(three[k].get(98, 1) == 255 for k in (1, 2, 3))
        d.until(lambda: d.state.have(Flag.FAULT).all(), "fault")
        assert d.transport.fault_text(int(d.state.code[0])) == "bus watchdog: no frames received"
        d.until(lambda: d.transport.power(False), "off")
        d.until(lambda: not d.state.have(Flag.FAULT).any(), "watchdog cleared")


def test_a_quick_stop_holds_where_the_servos_are_until_power_is_asked_for_again(three, driver):
    with driver(three, [1, 2, 3]) as d:
        d.enable()
        for s in three.servos.values():
            s.stuck = True
        d.command.q[:] = 1.0
        d.cycle(3, write=True)
        here = three[1].position
        d.transport.quick_stop()
        d.transport.quick_stop()
        for s in three.servos.values():
            s.stuck = False
        d.cycle(5, write=True)
        assert all(s.get(116, 4) == here == s.position for s in three.servos.values())
        d.until(lambda: d.transport.power(False), "off")
        d.enable()
        d.command.q[:] = 0.2
        d.until(lambda: np.abs(d.state.q - 0.2).max() < 1e-3, "commands are followed again", write=True)


def test_a_close_switches_off_what_was_switched_on_here_and_nothing_else(three, driver):
    with driver(three, [1, 2, 3]) as d:
        d.enable()
    end = time.monotonic() + 10
    while any(s.written[-1] != (98, b"\0") for s in three.servos.values()):
        assert time.monotonic() < end
    assert not any(s.on for s in three.servos.values())
    for s in three.servos.values():
        s.put(64, 1, 1)
        s.written.clear()
    with driver(three, [1, 2, 3]) as d:
        d.until(lambda: d.state.have(Flag.ENABLED).all(), "seen to have power")
        d.transport.close()
        d.transport.close()
    with driver(three, [1, 2, 3]):  # whatever was sent has arrived
        assert all(s.on and not s.written for s in three.servos.values()), "somebody else's power"


# -------- Identity


def refused(bus, actuators, **options):
    options = {"port": bus if isinstance(bus, str) else bus.path, **options}
    t = DynamixelTransport(BusSpec("arms", tuple(actuators), 0.005, options))
    with pytest.raises(HardwareError) as e:
        t.open()
    return str(e.value)


def test_a_servo_that_is_not_what_the_file_says_is_named(three):
    text = refused(three, [spec(1), spec(2, model=1060)])
    assert text == "j2 (arms 2): it is XM430-W350 (1020), expected XL430-W250 (1060)"
    assert refused(three, [spec(1), spec(9)]).startswith(
        "j9 (arms 9): no response at 1000000 baud (ids that respond: 1, 2"
    )
    three[1].put(0, 777, 2)
    assert "j1 (arms 1): unknown model 777; known: XH430-W350" in refused(three, [spec(1)])
    three[2].put(6, 37, 1)
    assert "firmware 37 has no bus watchdog, expected 38" in refused(three, [spec(2)])


@pytest.mark.nightly
def test_servos_at_another_rate_are_found_there():
    with Bus([Servo(k) for k in (1, 2, 3)], baud=57600) as bus:
        text = refused(bus, [spec(k) for k in (1, 2, 3)])
        assert text == "j1 (arms 1) and 2 more: no response at 1000000 baud, but ids at 57600 baud: 1, 2, 3"
        lines = DynamixelTransport.scan({"port": bus.path})
        assert lines[1] == "id 2: XM430-W350 (1020), firmware 45, 57600 baud" and len(lines) == 3
        d = DynamixelTransport(BusSpec("arms", (spec(1),), 0.005, {"port": bus.path, "baud": 57600}))
        d.open()
        d.close()


def test_settings_of_a_servo_are_set_or_said(three):
    three[1].put(11, 1, 1)
    three[2].put(11, 1, 1)
    three[2].put(64, 1, 1)
    text = refused(three, [spec(1), spec(2)])
    assert three[1].get(11, 1) == 3 and three[1].get(9, 1) == 0
    assert "j2 (arms 2): " in text and "its torque is on: switch it off first" in text
    three[3].put(48, 3000, 4)
    text = refused(three, [spec(3, lower=-1.0, upper=2.0)])
    assert "its position limits are -3.142 .. 1.460 rad, the file's range goes to 2.000" in text
    three[3].put(0, 1060, 2)
    assert "XL430-W250 has no current control" in refused(three, [spec(3, Mode.EFFORT)])


def test_a_port_that_cannot_be_used_says_why(three, driver, tmp_path):
    assert "port not found; available: " in refused("/dev/ttyUSB77", [spec(1)])
    with driver(three, [1, 2, 3]):
        assert refused(three, [spec(1)]) == f"{three.path}: in use by another program"
    if os.geteuid():
        closed = tmp_path / "tty"
        closed.touch(mode=0)
        assert "add yourself to group dialout" in refused(str(closed), [spec(1)])


@pytest.mark.parametrize(
    ("actuator", "options", "words"),
    [
        (spec(253), {}, "id must be 0 .. 252"),
        (spec(1, operating="pwm"), {}, "operating must be one of position, extended"),
        (spec(1, operating="velocity"), {}, "operating velocity does not match mode POSITION"),
        (spec(1), {"watchdog": 3.0}, "watchdog must be 0.02 .. 2.54"),
        (spec(1), {"watchdog": 0.001}, "watchdog must be 0.02"),
        (spec(1), {"watchdog": 0.02}, "shorter than two cycles"),
        (spec(1), {"baud": 0}, "baud must be above zero"),
    ],
)
def test_rows_that_cannot_be_are_refused_before_anything_opens(actuator, options, words):
    with pytest.raises(ConfigError, match=words):
        DynamixelTransport(BusSpec("arms", (actuator,), 0.02, {"port": "/dev/null", **options}))


def test_what_drives_do_in_silence_without_a_watchdog():
    def silence(*actuators):
        return DynamixelTransport(BusSpec("arms", actuators, 0.002, {"port": "x", "watchdog": 0.0})).silence

    assert silence(spec(1)) is Silence.HOLDS and silence(spec(1), spec(2, Mode.EFFORT)) is Silence.LAST_COMMAND


# -------- The wire


@pytest.mark.parametrize("fast", [True, False])
def test_a_missing_servo_leaves_the_others_their_samples(driver, monkeypatch, fast):
    monkeypatch.setattr(transport, "PATIENCE", 0.05)
    with (
        Bus([Servo(k) for k in range(1, 21)]) as bus,
        driver(bus, range(1, 21), fast_sync_read=fast, watchdog=0.0) as d,
    ):
        d.enable()
        bus[7].silent = True
        d.until(lambda: not d.state.have(Flag.FRESH)[6] and d.state.have(Flag.FRESH).sum() == 19, "19 left")
        stamp, d.command.q[:] = d.state.stamp[6], 0.3
        d.cycle(3, write=True)
        d.until(lambda: np.abs(np.delete(d.state.q, 6) - 0.3).max() < 1e-3, "the others move", write=True)
        assert d.state.stamp[6] == stamp and abs(d.state.q[6]) < 1e-9 and d.transport.figures()["lost"] > 0
        bus[7].silent = False
        d.until(lambda: d.state.have(Flag.FRESH).all() and abs(d.state.q[6] - 0.3) < 1e-3, "back again", write=True)


def test_noise_half_frames_and_echoes_do_not_stop_the_bus(driver, monkeypatch):
    with Bus([Servo(k) for k in range(1, 6)]) as bus, driver(bus, range(1, 6)) as d:
        d.enable()
        bus.noise = b"\xff\xff\xfd\x00\x01\xff\xff\xff\x00\xff"
        d.cycle()  # what was under way
        for _ in range(10):
            d.cycle(write=True)
            assert d.state.have(Flag.FRESH).all()
        bus.noise, bus.echo = b"", True
        d.cycle(10, write=True)
        assert d.state.have(Flag.FRESH).all()
        monkeypatch.setattr(transport, "PATIENCE", 0.05)
        bus.echo, bus.torn = False, 4
        d.until(lambda: d.state.have(Flag.FRESH).sum() == 4, "the last one is torn", write=True)
        bus.torn = 0
        d.until(lambda: d.state.have(Flag.FRESH).all(), "whole again", write=True)


def test_a_port_that_is_gone_is_an_error_and_opens_again(driver):
    with Bus([Servo(1)]) as bus:
        d = driver(bus, [1])
        d.transport.open()
        d.cycle()
        bus._end = True
        bus._thread.join()
        bus.hang_up()
        with pytest.raises(HardwareError, match="disappeared"):
            d.cycle(50, wait=0.1)
        with pytest.raises(HardwareError, match="disappeared"):
            d.transport.write(d.command)
        d.transport.quick_stop()
        d.transport.close()
    with Bus([Servo(1)]) as bus:
        d = driver(bus, [1])
        with d:
            d.cycle()
            assert d.state.have(Flag.FRESH).all()


def test_read_waits_no_longer_than_it_may(three, driver, monkeypatch):
    monkeypatch.setattr(transport, "PATIENCE", 2.0)
    with driver(three, [1, 2, 3]) as d:
        d.cycle()
        for s in three.servos.values():
            s.silent = True
        d.cycle(wait=0.0)
        took = []
        for _ in range(5):  # a busy machine may pause some of them
            begin = time.monotonic()
            d.cycle(wait=0.02)
            took.append(time.monotonic() - begin)
        assert 0.02 <= min(took) < 0.5 and not d.state.have(Flag.FRESH).any()


# -------- Faults


def test_hardware_errors_are_said_by_name_and_cleared_by_a_reboot(three, driver):
    with driver(three, [1, 2, 3]) as d:
        d.enable()
        three[2].put(70, 0x24, 1)
        three[2].put(64, 0, 1)  # as its Shutdown is set
        d.until(lambda: d.state.code[1] == 0x24, "read")
        assert d.state.have(Flag.FAULT).tolist() == [False, True, False]
        assert d.transport.fault_text(0x24) == "overheating, overload"
        assert not d.state.have(Flag.ENABLED)[1]
        d.transport.clear_faults()
        d.until(lambda: not d.state.have(Flag.FAULT).any(), "cleared")
        assert three[2].reboots == 1 and three[1].reboots == 0 and not three[2].on


# -------- Modes and units


def test_each_mode_sends_its_goal_inside_its_limits(driver):
    rows = [
        spec(1, lower=-0.5, upper=0.5),
        spec(2, operating="extended", lower=-50.0, upper=50.0),
        spec(3, operating="current_position", effort=1.0),
        spec(4, Mode.VELOCITY, velocity=2.0),
        spec(5, Mode.EFFORT, effort=0.5),
    ]
    kt = MODELS[1020].torque_constant * 2.69e-3  # [N m] of a count
    with Bus([Servo(k) for k in range(1, 6)]) as bus, driver(bus, rows) as d:
        assert [bus[k].get(11, 1) for k in range(1, 6)] == [3, 4, 5, 1, 0]
        d.cycle()
        d.until(lambda: d.transport.power(True), "power", write=False)
        d.command.q[:], d.command.v[:], d.command.tau[:] = 9.0, 9.0, 9.0
        d.cycle(3, write=True)
        d.until(lambda: bus[5].get(102, 2), "goals", write=True)
        assert bus[1].get(116, 4, True) == int(2048 + 0.5 * 4096 / (2 * np.pi))
        assert bus[2].get(116, 4, True) == round(2048 + 9.0 * 4096 / (2 * np.pi)) > 4095
        assert bus[3].get(116, 4, True) == bus[2].get(116, 4, True) and bus[3].get(102, 2) == int(1.0 / kt)
        assert bus[4].get(104, 4, True) == int(2.0 / MODELS[1020].velocity)
        assert bus[5].get(102, 2, True) == int(0.5 / kt)
        d.command.v[:], d.command.tau[:] = -9.0, -0.2
        d.until(lambda: bus[5].get(102, 2, True) == round(-0.2 / kt), "torque", write=True)
        assert bus[4].get(104, 4, True) == -int(2.0 / MODELS[1020].velocity)
        d.cycle(2, write=True)
        assert bus[3].get(102, 2) == int(1.0 / kt), "a limit, whatever torque is commanded"
        assert abs(d.state.tau[4] + 0.2) < kt and abs(d.state.v[3] + 2.0) < 0.025
        d.transport.quick_stop()
        d.until(lambda: bus[5].get(102, 2, True) == 0, "a quick stop takes velocity and torque away")
        assert bus[4].get(104, 4, True) == 0


def test_families_share_a_bus_and_a_model_without_current_measures_no_torque(driver):
    servos = [
        Servo(1, 1060),
        Servo(2, 2020, 20, P, current_limit=22740, velocity_limit=2900),
        Servo(3),
    ]
    with Bus(servos) as bus, driver(bus, [1, 2, 3]) as d:
        d.enable()
        d.command.q[:] = 0.25
        d.until(lambda: np.abs(d.state.q - 0.25).max() < 1e-3, "both families move", write=True)
        assert bus[2].position == round(0.25 * 1003846 / (2 * np.pi)) and bus[2].on
        assert np.isnan(d.state.tau).tolist() == [True, False, False]
        frames = d.transport.frames(d.command)
        assert len(frames) == 2 and all(line.startswith("ff ff fd 00 fe") for line in frames)


def test_no_command_whatever_leaves_the_limits(three, driver):
    rows = [spec(1, lower=-0.3, upper=0.4), spec(2, Mode.VELOCITY, velocity=1.0), spec(3, Mode.EFFORT, effort=0.3)]
    random = np.random.default_rng(2)
    kt, rpm = MODELS[1020].torque_constant * 2.69e-3, MODELS[1020].velocity
    with driver(three, rows) as d:
        d.cycle()
        d.until(lambda: d.transport.power(True), "power")
        for s in three.servos.values():
            s.written.clear()
        for _ in range(150):
            wild = 10.0 ** random.uniform(-3, 30, 3) * random.choice([-1, 1], 3)
            for values in (d.command.q, d.command.v, d.command.tau):
                values[:] = random.choice([*wild, np.nan, np.inf, -np.inf, 0.0], 3)
            d.cycle(write=True)
    sent = [
        [int.from_bytes(v, "little", signed=True) for a, v in three[k].written if a == address]
        for k, address in ((1, 116), (2, 104), (3, 102))
    ]
    assert min(len(s) for s in sent) > 50
    angles = (np.array(sent[0]) - 2048) * 2 * np.pi / 4096
    assert angles.min() >= -0.3 and angles.max() <= 0.4 and len(set(sent[0])) > 2
    assert np.abs(sent[1]).max() * rpm <= 1.0 and np.abs(sent[2]).max() * kt <= 0.3


def test_everything_is_compiled_before_power_comes(three, driver):
    with driver(three, [1, 2, 3]) as d:
        before = [len(k.signatures) for k in (encode_goals, take_replies)]
        d.enable()
        d.cycle(5, write=True)
        d.transport.quick_stop()
        d.cycle(3)
        assert [len(k.signatures) for k in (encode_goals, take_replies)] == before


def test_the_load_of_a_bus_is_that_of_its_bytes():
    cls = transport_class("dynamixel")
    bus = BusSpec("arms", tuple(spec(k) for k in range(20)), 0.002, {"port": "x", "baud": 4_000_000})
    assert cls.bus_load(bus) == pytest.approx(1.09 / 2, abs=0.02)
    plain = BusSpec("arms", bus.actuators, 0.002, {**bus.options, "fast_sync_read": False})
    assert cls.bus_load(plain) == pytest.approx(1.42 / 2, abs=0.02)


def test_a_command_for_no_open_bus_is_no_error():
    t = DynamixelTransport(BusSpec("arms", (spec(1),), 0.005, {"port": "x"}))
    t.write(ActuatorCommand(1))
    t.quick_stop()
    t.close()
    assert t.figures()["cycles"] == 0 and not t.power(True)
