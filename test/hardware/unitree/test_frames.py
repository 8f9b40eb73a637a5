"""Frames of Unitree's robots, byte for byte as the DDS binding makes them from objects; their CRC; robots' tables."""

import os
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("cyclonedds", reason="needs cyclonedds, the DDS binding of Unitree's robots")

from humanoid_control.errors import UnknownNameError
from humanoid_control.hardware.transport import ActuatorCommand, ActuatorState, Flag, Mode
from humanoid_control.hardware.unitree.dds import message_type
from humanoid_control.hardware.unitree.frames import (
    CORRUPT,
    FRESH,
    FROZEN,
    CommandFrame,
    StateReader,
    crc32,
    fault_words,
)
from humanoid_control.hardware.unitree.layout import HEADER, Layout, Struct, family_of
from humanoid_control.hardware.unitree.models import G1, MODELS, misplaced, model_of
from test.hardware.unitree import messages

FAMILIES = ("hg", "go")
MESSAGES = 300
SDK = os.environ.get("HUMANOID_UNITREE_SDK", "")


def body_of(frame):
    return np.frombuffer(frame, np.uint32)[1:]


def random_command(rng, n):
    command = ActuatorCommand(n)
    for name in ("q", "v", "tau", "kp", "kd"):
        getattr(command, name)[:] = rng.standard_normal(n)
    command.mode[:] = rng.integers(0, 4, n)
    return command


def expected(family, command, motors, gains, machine):
    """The message of a command, made from objects."""
    message = messages.zero(messages.COMMANDS[family])
    if family == "hg":
        message.mode_pr, message.mode_machine = 1, machine
    else:
        message.head, message.level_flag = [0xFE, 0xEF], 0xFF
    for k, (place, on) in enumerate(motors):
        m = message.motor_cmd[place]
        q, v, tau, kp, kd = (float(getattr(command, x)[k]) for x in ("q", "v", "tau", "kp", "kd"))
        m.mode, m.q, m.dq, m.tau, m.kp, m.kd = {
            Mode.POSITION: (on, q, v, tau, *gains[k]),
            Mode.VELOCITY: (on, 0.0, v, tau, 0.0, gains[k, 1]),
            Mode.EFFORT: (on, 0.0, 0.0, tau, 0.0, 0.0),
            Mode.IMPEDANCE: (on, q, v, tau, kp, kd),
        }[Mode(command.mode[k])]
    return message


@pytest.mark.parametrize("family", FAMILIES)
def test_packed_commands_are_what_the_binding_serializes(family):
    rng = np.random.default_rng(31)
    places = family_of(family).motors
    for _ in range(MESSAGES // 100):  # frames, each packed a hundred times
        n, machine = int(rng.integers(1, places + 1)), int(rng.integers(0, 256))
        motors = [(int(p), int(rng.integers(1, 256))) for p in rng.permutation(places)[:n]]
        gains = rng.uniform(0, 100, (n, 2))
        frame = CommandFrame(family_of(family), motors, gains, mode_pr=1)
        frame.echo(machine)
        for _ in range(100):
            command = random_command(rng, n)
            packed = frame.pack(command)
            message = expected(family, command, motors, gains, machine)
            message.crc = int(body_of(packed)[-1])  # the CRC has a test of its own
            assert packed == message.serialize()


@pytest.mark.parametrize("kind", ["COMMANDS", "STATES"])
@pytest.mark.parametrize("family", FAMILIES)
def test_the_crc_is_that_of_the_c_structure(family, kind):
    rng = np.random.default_rng(32)
    layout = getattr(family_of(family), {"COMMANDS": "command", "STATES": "state"}[kind])
    for _ in range(20):
        message = messages.random_message(getattr(messages, kind)[family], rng)
        assert crc32(body_of(message.serialize()), layout.crc_words) == messages.crc_of(messages.c_words(message))


def test_the_crc_of_a_packed_command_is_right():
    rng = np.random.default_rng(33)
    motors = [(p, 1) for p in range(29)]
    frame = CommandFrame(family_of("hg"), motors, np.ones((29, 2)), mode_pr=1)
    for _ in range(5):
        command = random_command(rng, 29)
        words = messages.c_words(expected("hg", command, motors, np.ones((29, 2)), 0))
        assert int(body_of(frame.pack(command))[-1]) == messages.crc_of(words)


def test_bytes_between_fields_do_not_count():
    rng = np.random.default_rng(34)
    layout, message = family_of("hg").command, messages.random_message(messages.HgLowCmd, rng)
    raw = bytearray(message.serialize())
    before = crc32(body_of(bytes(raw)), layout.crc_words)
    raw[layout.offset("motor_cmd.7.mode") + 1] ^= 0xFF  # padding in front of q
    assert crc32(body_of(bytes(raw)), layout.crc_words) == before
    raw[layout.offset("motor_cmd.7.mode")] ^= 1
    assert crc32(body_of(bytes(raw)), layout.crc_words) != before


def signed(family, message):
    message.crc = messages.crc_of(messages.c_words(message))
    return message.serialize()


@pytest.mark.parametrize("family", FAMILIES)
def test_states_are_read_as_the_binding_writes_them(family):
    rng = np.random.default_rng(35)
    layout, n = family_of(family).state, family_of(family).motors
    places = rng.permutation(n).tolist()
    reader, state = StateReader(family_of(family), places), ActuatorState(n)
    for k in range(MESSAGES):
        message = messages.random_message(messages.STATES[family], rng)
        frame = bytearray(message.serialize())
        frame[-4:] = crc32(body_of(bytes(frame)), layout.crc_words).to_bytes(4, "little")
        assert reader.read(bytes(frame), state, 10.0 + k) == FRESH
        motors = [message.motor_state[p] for p in places]
        assert state.q.tolist() == [m.q for m in motors] and state.v.tolist() == [m.dq for m in motors]
        assert state.tau.tolist() == [m.tau_est for m in motors] and (state.stamp == 10.0 + k).all()
        assert state.have(Flag.ENABLED).tolist() == [m.mode > 0 for m in motors]
        assert state.have(Flag.FRESH).all() and reader.tick == message.tick
        hot = [max(m.temperature) if family == "hg" else m.temperature for m in motors]
        assert state.temperature.tolist() == hot
        assert state.voltage.tolist() == [m.vol if family == "hg" else message.power_v for m in motors]
        assert state.code.tolist() == [m.motorstate if family == "hg" else 0 for m in motors]
        assert reader.machine == (message.mode_machine if family == "hg" else 0)
        assert reader.buttons == message.wireless_remote[2] | message.wireless_remote[3] << 8
        if family == "go":
            supply = reader.battery()
            assert (supply.voltage, supply.current) == (message.power_v, -message.power_a)
            assert supply.charge == message.bms_state.soc / 100
        else:
            assert reader.battery() is None
        orientation, gyro, acceleration = reader.imu()
        w, x, y, z = message.imu_state.quaternion
        assert orientation.tolist() == [x, y, z, w] and gyro.tolist() == message.imu_state.gyroscope
        assert acceleration.tolist() == message.imu_state.accelerometer


def test_a_state_with_a_wrong_crc_changes_nothing():
    rng = np.random.default_rng(36)
    good = signed("hg", messages.random_message(messages.HgLowState, rng))
    for position in rng.integers(HEADER, len(good), 20).tolist():
        reader, state = StateReader(family_of("hg"), range(29)), ActuatorState(29)
        bad = bytearray(good)
        bad[position] ^= 0x10
        if body_of(bytes(bad)).tobytes() != body_of(good).tobytes() and position not in padding():
            assert reader.read(bytes(bad), state, 1.0) == CORRUPT
            assert np.isnan(state.q).all() and not state.flags.any() and reader.tick == -1 and reader.imu() is None
    reader, state = StateReader(family_of("hg"), range(29)), ActuatorState(29)
    assert reader.read(good[:-4], state, 1.0) == CORRUPT
    assert reader.read(b"\x00\x00" + good[2:], state, 1.0) == CORRUPT, "the other byte order"
    assert reader.read(good, state, 1.0) == FRESH


def padding():
    """Bytes of an hg state that belong to no field."""
    sizes = {"u1": 1, "i2": 2, "u4": 4, "f4": 4}
    fields = family_of("hg").state.fields.values()
    used = {HEADER + f.wire + b for f in fields for b in range(sizes[f.kind] * max(f.length, 1))}
    return set(range(HEADER, family_of("hg").state.size)) - used


def test_the_tick_must_advance():
    message = messages.zero(messages.HgLowState)
    reader, state = StateReader(family_of("hg"), range(3)), ActuatorState(3)
    message.tick, message.motor_state[1].q = 5, 0.5
    assert reader.read(signed("hg", message), state, 1.0) == FRESH
    message.motor_state[1].q = 0.6
    assert reader.read(signed("hg", message), state, 2.0) == FROZEN
    assert state.q[1] == 0.5 and state.stamp[1] == 1.0
    reader.reset()
    assert reader.read(signed("hg", message), state, 3.0) == FRESH


def test_a_sender_without_crc_and_tick_is_believed_only_where_that_is_said():
    frame = messages.zero(messages.HgLowState).serialize()
    state = ActuatorState(3)
    assert StateReader(family_of("hg"), range(3)).read(frame, state, 1.0) == CORRUPT
    lenient = StateReader(family_of("hg"), range(3), lenient=True)
    assert [lenient.read(frame, state, t) for t in (1.0, 2.0)] == [FRESH, FRESH]
    wrong = bytearray(frame)
    wrong[-4] = 1
    assert lenient.read(bytes(wrong), state, 3.0) == CORRUPT


def test_faults_and_warnings_of_motors():
    message = messages.zero(messages.HgLowState)
    message.tick = 1
    for k, code in enumerate((0, 0x20000, 0x200, 0x20200)):
        message.motor_state[k].motorstate = code
    state = ActuatorState(4)
    StateReader(family_of("hg"), range(4)).read(signed("hg", message), state, 1.0)
    assert state.have(Flag.FAULT).tolist() == [False, False, True, True]
    assert state.have(Flag.WARNING).tolist() == [False, True, False, False]
    assert fault_words(0x204) == "lasting over-voltage, winding too hot"
    assert fault_words(0x80100000) == "computer received nothing from the motor, fault 0x100000"


def test_no_number_that_is_none_leaves():
    frame = CommandFrame(family_of("hg"), [(0, 1), (1, 1), (2, 1)], np.array([[60.0, 2.0]] * 3))
    command = ActuatorCommand(3)
    command.q[:], command.tau[:], command.mode[:] = (0.1, np.nan, 0.2), (0.0, 1.0, np.inf), Mode.IMPEDANCE
    frame.pack(command)
    rows = frame.rows()
    assert rows[0]["q"] == np.float32(0.1)
    assert rows[1] == rows[2] == {"mode": 1, "q": 0.0, "dq": 0.0, "tau": 0.0, "kp": 0.0, "kd": 2.0}


def test_damping_and_off_frames_leave_nothing_of_a_command():
    frame = CommandFrame(family_of("go"), [(0, 10), (5, 1)], np.array([[200.0, 5.0], [60.0, 1.5]]))
    command = random_command(np.random.default_rng(37), 2)
    frame.pack(command)
    damping = frame.damp()
    assert [(r["mode"], r["kp"], r["kd"], r["tau"]) for r in frame.rows()] == [(10, 0, 5, 0), (1, 0, 1.5, 0)]
    off = frame.switch_off()
    assert all(set(r.values()) == {0} for r in frame.rows()) and off != damping
    for raw in (damping, off):
        assert int(body_of(raw)[-1]) == crc32(body_of(raw), family_of("go").command.crc_words)


def test_gains_grow_with_their_share_but_not_those_of_impedance():
    frame = CommandFrame(family_of("hg"), [(0, 1), (1, 1)], np.array([[60.0, 2.0]] * 2))
    command = ActuatorCommand(2)
    command.mode[1], command.kp[1], command.kd[1] = Mode.IMPEDANCE, 30.0, 1.0
    frame.pack(command, 0.5)
    assert [(r["kp"], r["kd"]) for r in frame.rows()] == [(30.0, 1.0), (30.0, 1.0)]
    frame.pack(command)
    assert [(r["kp"], r["kd"]) for r in frame.rows()] == [(60.0, 2.0), (30.0, 1.0)]


def test_a_layout_whose_words_are_torn_apart_is_refused():
    inner = Struct("inner", (("a", "u1", 0), ("b", "u2", 0), ("c", "u1", 0)))
    with pytest.raises(ValueError, match="does not lie in one word"):
        Layout(Struct("outer", (("x", "u1", 0), ("y", inner, 2), ("crc", "u4", 0))))
    with pytest.raises(UnknownNameError, match="hg"):
        family_of("gh")


@pytest.mark.parametrize("family", FAMILIES)
def test_types_are_announced_as_the_binding_knows_them(family):
    """Field for field the same as classes written by hand: other programs compare the types before they talk."""
    pairs = [
        (family_of(family).command.struct, messages.COMMANDS[family]),
        (family_of(family).state.struct, messages.STATES[family]),
    ]
    for struct, by_hand in pairs:
        ours, theirs = message_type(struct), by_hand
        ours.__idl__.populate(), theirs.__idl__.populate()
        ours.__idl__.fill_type_data(), theirs.__idl__.fill_type_data()
        assert ours.__idl__.idl_transformed_typename == theirs.__idl__.idl_transformed_typename
        assert ours.__idl__._xt_bytedata == theirs.__idl__._xt_bytedata


# -------- Robots


def test_places_of_motors():
    assert [len(m.motors) for m in MODELS.values()] == [29, 23, 19, 27]
    for model in MODELS.values():
        places = [m.id for m in model.motors]
        assert len(set(places)) == len(places) and max(places) < family_of(model.family).motors
        assert len({m.name for m in model.motors}) == len(places)
    assert G1.motor("left_knee_joint") == ("left_knee", 3, 100.0, 2.0, 1)
    assert model_of("g1_23").at(13) is None and model_of("g1_23").motor("right_elbow").id == 25
    assert model_of("h1").motor("left_hip_yaw_joint") == ("left_hip_yaw", 7, 200.0, 5.0, 10)
    assert model_of("h1_2").motor("torso_joint").id == 12
    with pytest.raises(UnknownNameError, match="g1"):
        model_of("g2")


def test_a_joint_at_another_ones_place_is_named():
    assert misplaced(G1, [("left_knee_joint", 3), ("my_elbow", 18)]) == ""
    assert misplaced(G1, [("left_knee_joint", 4)]) == "left_knee_joint is motor 3 of g1, not 4"
    assert misplaced(model_of("g1_23"), [("x", 13)]) == "g1_23 has no motor 13 (x)"


# -------- The vendor's own library, where it is on this machine


@pytest.fixture(scope="module")
def sdk():
    """The vendor's messages and CRC."""
    if not SDK:
        pytest.skip("needs HUMANOID_UNITREE_SDK, the folder of unitree_sdk2_python")
    assert (Path(SDK) / "unitree_sdk2py").is_dir(), f"HUMANOID_UNITREE_SDK={SDK} holds no unitree_sdk2py"
    sys.path.insert(0, SDK)
    try:
        import importlib

        yield {f: importlib.import_module(f"unitree_sdk2py.idl.unitree_{f}.msg.dds_") for f in FAMILIES} | {
            "crc": importlib.import_module("unitree_sdk2py.utils.crc").CRC()
        }
    finally:
        sys.path.remove(SDK)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_vendors_library_makes_the_same_bytes_and_crc(sdk, family):
    rng = np.random.default_rng(38)
    places = family_of(family).motors
    motors = [(p, 1) for p in range(places)]
    gains = rng.uniform(0, 100, (places, 2))
    frame = CommandFrame(family_of(family), motors, gains, mode_pr=1)
    frame.echo(5)
    state_type, state_layout = sdk[family].LowState_, family_of(family).state
    for _ in range(MESSAGES):
        command = random_command(rng, places)
        packed = frame.pack(command)
        theirs = sdk[family].LowCmd_.deserialize(packed)
        for k, m in enumerate(expected(family, command, motors, gains, 5).motor_cmd):
            assert theirs.motor_cmd[k].q == np.float32(m.q) and theirs.motor_cmd[k].kd == np.float32(m.kd)
        assert theirs.crc == sdk["crc"].Crc(theirs)
        assert theirs.serialize() == packed
    for _ in range(MESSAGES // 10):  # its CRC of a go state takes numbers for signed that are not
        message = messages.random_message(messages.STATES[family], rng, share=0.5)
        theirs = state_type.deserialize(message.serialize())
        assert sdk["crc"].Crc(theirs) == crc32(body_of(theirs.serialize()), state_layout.crc_words)
