"""MIT protocol: words against exact fractions, ranges, and emulated motors on a virtual bus."""

import itertools
import threading
import time
from fractions import Fraction

import can
import numpy as np
import pytest

from humanoid_control.errors import ConfigError
from humanoid_control.hardware.can.mit import ENTER, EXIT, MODELS, ZERO, MitTransport, Ranges, pack_commands
from humanoid_control.hardware.transport import (
    ActuatorCommand,
    ActuatorSpec,
    ActuatorState,
    BusSpec,
    Flag,
    HardwareError,
    Mode,
    Silence,
)

pytestmark = pytest.mark.drives

rng = np.random.default_rng(7)
channels = itertools.count()
WIDTHS = (16, 12, 12, 12, 12)


def word(values, ranges):
    """The 64 bits of a command by exact fractions, most significant first."""
    p, v, kp, kd, t = ranges
    lows, highs = (-p, -v, 0, 0, -t), (p, v, kp, kd, t)
    bits = ""
    for value, low, high, width in zip(values, lows, highs, WIDTHS, strict=True):
        low, high, value = Fraction(float(low)), Fraction(float(high)), Fraction(float(value))
        share = min(max((value - low) / (high - low), 0), 1)
        bits += format(round(share * (2**width - 1)), f"0{width}b")
    return int(bits, 2)


def fields(number):
    """Whole numbers of the five fields."""
    out, rest = [], 64
    for width in WIDTHS:
        rest -= width
        out.append(number >> rest & 2**width - 1)
    return np.array(out)


@pytest.mark.parametrize("model", MODELS)
def test_commands_are_what_exact_fractions_make_of_them(model):
    n = 50
    ranges, command, out = Ranges(*np.array([MODELS[model]] * n).T), ActuatorCommand(n), np.zeros(n, ">u8")
    p, v, kp, kd, t = MODELS[model]
    command.q[:], command.v[:], command.tau[:] = (rng.uniform(-1.2 * m, 1.2 * m, n) for m in (p, v, t))
    command.kp[:], command.kd[:] = rng.uniform(-10, 1.2 * kp, n), rng.uniform(-1, 1.2 * kd, n)
    pack_commands(command, ranges, out)
    for k in range(n):
        values = (command.q[k], command.v[k], command.kp[k], command.kd[k], command.tau[k])
        ours, exact = fields(int(out[k])), fields(word(values, MODELS[model]))
        assert np.abs(ours - exact).max() <= 1 and (ours == exact).mean() >= 0.8, "rounding of a tie at the most"


def test_known_words():
    ranges, command, out = Ranges(*np.array([MODELS["mini_cheetah"]]).T), ActuatorCommand(1), np.zeros(1, ">u8")
    command.q[0], command.v[0], command.kp[0], command.kd[0], command.tau[0] = 12.5, -65.0, 500.0, 0.0, 18.0
    pack_commands(command, ranges, out)
    assert out.tobytes().hex() == "ffff000fff000fff"
    command.q[0], command.v[0], command.kp[0], command.kd[0], command.tau[0] = -12.5, 65.0, 0.0, 5.0, -18.0
    pack_commands(command, ranges, out)
    assert out.tobytes().hex() == "0000fff000fff000"
    assert (ENTER.hex(), EXIT.hex(), ZERO.hex()) == ("f" * 14 + "fc", "f" * 14 + "fd", "f" * 14 + "fe")


class Motors(threading.Thread):
    """Actuators that go where they are told at once, and answer each frame; on their own bus."""

    def __init__(self, channel, ids, ranges, size=8, answer=None):
        super().__init__(daemon=True)
        self.bus, self.ids, self.ranges = can.Bus(channel, "virtual"), ids, ranges
        self.size, self.answer = size, answer
        self.on, self.q, self.tau, self.kd = (dict.fromkeys(ids, 0) for _ in range(4))
        self.error, self.frames, self.mute, self.ended = dict.fromkeys(ids, 0), [], set(), False
        self.start()

    def run(self):
        while not self.ended:
            frame = self.bus.recv(0.01)
            if frame is None or frame.arbitration_id not in self.ids or frame.dlc != 8:
                continue
            i, data = frame.arbitration_id, bytes(frame.data)
            self.frames.append((i, data))
            if data == ENTER:
                self.on[i] = not self.error[i]
            elif data == EXIT:
                self.on[i], self.error[i] = False, 0 if self.error[i] < 5 else self.error[i]
            elif data == ZERO:
                self.q[i] = 0.0
            elif self.on[i]:
                self.command(i, fields(int.from_bytes(data, "big")))
            if i not in self.mute:
                self.reply(i)

    def command(self, i, numbers):
        p, v, kp, kd, t = self.ranges
        shares = numbers / [2**w - 1 for w in WIDTHS]
        q, _, stiffness, self.kd[i], torque = shares * [2 * p, 2 * v, kp, kd, 2 * t] - [p, v, 0, 0, t]
        self.tau[i] = torque
        if stiffness > 0:
            self.q[i] = q

    def reply(self, i):
        p, _, _, _, t = self.ranges
        position = round((self.q[i] + p) / (2 * p) * 65535)
        torque = round((self.tau[i] * self.on[i] + t) / (2 * t) * 4095)
        body = position << 24 | 2048 << 12 | torque
        data = bytes((i,)) + body.to_bytes(5, "big") + bytes((41, self.error[i]))
        self.bus.send(can.Message(arbitration_id=self.answer or 0, data=data[: self.size], is_extended_id=False))

    def end(self):
        self.ended = True
        self.join(5)
        self.bus.shutdown()


class Rig:
    def __init__(self, count=2, size=8, ranges=(12.5, 50.0, 500.0, 5.0, 18.0), **options):
        channel = f"mit {next(channels)}"
        self.ids = list(range(1, count + 1))
        self.motors = Motors(channel, self.ids, ranges, size, options.get("answer_id"))
        specs = tuple(
            ActuatorSpec(f"j{i}", i, Mode.IMPEDANCE, -2.0, 2.0, 10.0, 6.0, options={"ranges": list(ranges)})
            for i in self.ids
        )
        self.transport = MitTransport(
            BusSpec("arm", specs, 0.005, {"interface": "virtual", "channel": channel, **options})
        )
        self.state, self.command = ActuatorState(count), ActuatorCommand(count)
        self.command.mode[:] = Mode.IMPEDANCE

    def cycle(self, write=True):
        self.transport.read(self.state, time.monotonic() + 0.2)
        if write:
            self.transport.write(self.command)

    def enable(self):
        for _ in range(50):
            if self.transport.power(True):
                break
            self.cycle()
        self.cycle()
        assert self.state.have(Flag.ENABLED).all()
        return self


@pytest.fixture
def rig():
    made = []

    def make(*args, **options):
        made.append(Rig(*args, **options))
        made[-1].transport.open()
        return made[-1]

    yield make
    for one in made:
        one.transport.close()
        one.motors.end()


def test_without_power_actuators_are_measured_and_kept_off(rig):
    r = rig()
    r.motors.q.update({1: 1.0, 2: -0.5})
    for _ in range(3):
        r.cycle(write=False)
    np.testing.assert_allclose(r.state.q, [1.0, -0.5], atol=2e-4)
    assert r.state.have(Flag.FRESH).all() and not r.state.have(Flag.ENABLED).any()
    assert {data for _, data in r.motors.frames} == {EXIT} and r.state.temperature.tolist() == [41, 41]


def test_enter_command_stop_exit(rig):
    r = rig().enable()
    assert all(r.motors.on.values())
    r.command.q[:], r.command.kp[:], r.command.kd[:] = (0.8, -0.4), 100.0, 1.0
    r.command.tau[:] = 2.0, -3.0
    for _ in range(4):
        r.cycle()
    np.testing.assert_allclose(r.state.q, r.command.q, atol=4e-4)
    np.testing.assert_allclose(r.state.tau, r.command.tau, atol=0.01)
    r.transport.quick_stop()
    for _ in range(3):
        r.cycle(write=False)
    assert all(r.motors.on.values()) and abs(r.motors.tau[1]) < 0.01, "damped, not dropped"
    assert r.motors.kd[1] == pytest.approx(1.0, abs=0.01) and not r.state.have(Flag.ENABLED).any()
    assert r.transport.power(False)
    r.cycle(write=False)
    assert not any(r.motors.on.values())


def test_nothing_pushes_before_the_actuator_has_answered(rig):
    r = rig()
    r.command.kp[:], r.command.tau[:] = 100.0, 3.0
    r.motors.frames.clear()
    r.motors.mute.add(2)
    for _ in range(3):
        r.transport.power(True)
        r.cycle()
    gains = [fields(int.from_bytes(d, "big")) for i, d in r.motors.frames if i == 2 and d not in (ENTER, EXIT)]
    assert gains and all(g[2] == 0 and abs(g[4] - 2047.5) < 1 for g in gains)
    assert r.state.have(Flag.ENABLED).tolist() == [True, False]
    r.motors.mute.clear()
    r.enable()


def test_commands_stay_inside_limits_and_ranges(rig):
    r = rig().enable()
    r.motors.frames.clear()
    for bad in (99.0, -99.0, np.nan, np.inf):
        for name in ("q", "v", "tau", "kp", "kd"):
            getattr(r.command, name)[:] = bad
        r.cycle()
    r.cycle()
    for _, data in r.motors.frames:
        q, v, _, _, t = fields(int.from_bytes(data, "big")) / [2**w - 1 for w in WIDTHS]
        assert abs(25 * q - 12.5) <= 2.0002 and abs(100 * v - 50) <= 10.02 and abs(36 * t - 18) <= 6.005


def test_effort_has_no_gains(rig):
    r = rig(1).enable()
    r.command.mode[:], r.command.kp[:], r.command.kd[:], r.command.tau[:] = Mode.EFFORT, 100.0, 2.0, 1.5
    for _ in range(3):
        r.cycle()
    assert r.motors.kd[1] == 0 and r.motors.tau[1] == pytest.approx(1.5, abs=0.01) and r.motors.q[1] == 0


def test_errors_have_words_and_take_the_power_away(rig):
    r = rig().enable()
    r.motors.error[2] = 2
    r.cycle()
    r.cycle()
    assert r.state.have(Flag.FAULT).tolist() == [False, True] and r.state.have(Flag.ENABLED).tolist() == [True, False]
    assert r.transport.fault_text(int(r.state.code[1])) == "over-current (2)"
    r.transport.power(False)
    r.transport.clear_faults()
    for _ in range(3):
        r.cycle(write=False)
    assert not r.state.have(Flag.FAULT).any()


def test_one_that_falls_silent_is_not_fresh_and_the_others_are(rig):
    r = rig(3).enable()
    r.motors.mute.add(2)
    r.cycle()
    r.transport.read(r.state, time.monotonic() + 0.1)
    r.transport.write(r.command)
    r.transport.read(r.state, time.monotonic() + 0.1)
    assert r.state.have(Flag.FRESH).tolist() == [True, False, True]


def test_answers_of_six_bytes_and_under_another_id(rig):
    r = rig(size=6, answer_id=0x7F)
    r.cycle(write=False)
    assert r.state.have(Flag.FRESH).all() and np.isnan(r.state.temperature).all() and not r.state.code.any()


def test_a_bus_that_is_gone_raises_only_where_it_may(rig):
    r = rig(1).enable()
    r.transport.bus.raw.shutdown()
    for _ in range(12):
        r.transport.power(True)
        r.transport.quick_stop()
        r.transport.clear_faults()
    with pytest.raises(HardwareError, match="disappeared"):
        r.transport.read(r.state, time.monotonic())
    with pytest.raises(HardwareError, match="disappeared"):
        r.transport.write(r.command)


def test_zero_is_set_only_without_power(rig):
    r = rig()
    r.motors.q[1] = 1.0
    assert r.transport.set_zero(0)
    for _ in range(2):
        r.cycle(write=False)
    assert abs(r.state.q[0]) < 1e-3
    r.enable()
    assert not r.transport.set_zero(0)


def test_who_does_not_answer_is_named():
    motors = Motors("mit lost", [1], MODELS["AK80-9"])
    specs = tuple(ActuatorSpec(f"j{i}", i, options={"model": "AK80-9"}) for i in (1, 2))
    transport = MitTransport(BusSpec("arm", specs, 0.005, {"interface": "virtual", "channel": "mit lost"}))
    with pytest.raises(
        HardwareError, match=r"^no response from j2 \(arm 2\); check power, wires, bitrate and MIT mode$"
    ):
        transport.open()
    assert transport.bus.raw is None
    assert MitTransport.scan({"interface": "virtual", "channel": "mit lost"}) == [
        "id 1: responds as an actuator of this kind"
    ]
    motors.end()


def test_silence_is_not_known_unless_the_file_says():
    spec = (ActuatorSpec("a", 1, options={"model": "AK80-9"}),)
    options = {"interface": "virtual", "channel": "x"}
    assert MitTransport(BusSpec("arm", spec, 0.005, options)).silence is Silence.UNKNOWN
    assert MitTransport(BusSpec("arm", spec, 0.005, {**options, "silence": "DAMPS"})).silence is Silence.DAMPS
    with pytest.raises(ConfigError, match=r"^arm: silence must be one of STOPS, "):
        MitTransport(BusSpec("arm", spec, 0.005, {**options, "silence": "STOP"}))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "a needs a model or ranges"),
        ({"model": "AK80-90"}, "did you mean AK80-9"),
        ({"ranges": [1, 2, 3]}, r"ranges of a must be \[position, velocity, kp, kd, torque\], above 0"),
        ({"ranges": [1, 2, 3, 4, 0]}, "ranges of a must be"),
        ({"ranges": [1, 2, 3, 4, "x"]}, "ranges of a must be"),
    ],
)
def test_bad_rows_are_said_in_one_line(options, words):
    spec = ActuatorSpec("a", 1, options=options, where="my.hardware.yaml:5")
    with pytest.raises(ConfigError, match=rf"^my.hardware.yaml:5: [^\n]*{words}"):
        MitTransport(BusSpec("arm", (spec,), 0.005, {"interface": "virtual", "channel": "x"}))


@pytest.mark.parametrize("count", [10_000, pytest.param(100_000, marks=pytest.mark.thorough)])
def test_frames_of_any_kind_neither_raise_nor_leave_the_limits(rig, count):
    r = rig(2).enable()
    noise = can.Bus(r.transport.bus.channel, "virtual")
    for k in range(count):
        noise.send(
            can.Message(
                arbitration_id=int(rng.choice([0, 0, 0, 3, 0x7F, 0x80])),
                data=bytes((int(rng.integers(4)),)) + rng.bytes(int(rng.integers(8))) if k % 11 else b"",
                is_extended_id=k % 17 == 0,
                is_remote_frame=k % 19 == 0,
                is_error_frame=k % 23 == 0,
            )
        )
        if k % 200 == 0:
            r.command.q[:] = rng.normal(scale=100, size=2)
            r.transport.read(r.state, time.monotonic())
            r.transport.write(r.command)
            p = r.transport.ranges.position
            assert (np.abs(r.state.q) <= p).all() and np.isfinite(r.state.tau).all()
            assert (np.abs(r.transport._safe.q) <= 2.0).all()
    noise.shutdown()
