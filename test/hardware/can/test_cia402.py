"""CiA 402 against the tables of the library canopen; process data against struct, and whatever comes on the bus."""

import itertools
import struct

import can
import numpy as np
import pytest
from canopen.profiles.p402 import OperationMode, State402

from humanoid_control.hardware.can import cia402
from humanoid_control.hardware.can.cia402 import (
    CONTROL_WORDS,
    TRANSITIONS,
    ProcessData,
    State,
    Wish,
    fault_text,
    state_of,
)
from humanoid_control.hardware.can.drives import units_of
from humanoid_control.hardware.transport import ActuatorCommand, ActuatorSpec, ActuatorState, Flag, Mode
from test.hardware.can.durand_drives import Machine

NAMES = {s: s.name.replace("_", " ") for s in State}
rng = np.random.default_rng(5)


def test_states_are_those_of_the_table_for_every_status_word():
    assert {NAMES[s]: v for s, v in cia402.STATUS_BITS.items()} == State402.SW_MASK
    for word in range(0x10000):
        theirs = [name for name, (mask, bits) in State402.SW_MASK.items() if word & mask == bits]
        assert NAMES[state_of(word)] == (theirs[0] if theirs else "NOT READY TO SWITCH ON")
        assert cia402.STATE_TABLE[word & 0x6F] == state_of(word)


@pytest.mark.parametrize("pair", itertools.permutations(State, 2), ids=lambda p: f"{p[0].name}-{p[1].name}")
def test_every_transition_is_that_of_the_table(pair):
    theirs = State402.TRANSITIONTABLE.get((NAMES[pair[0]], NAMES[pair[1]]))
    made_by_itself = pair[0] in (State.NOT_READY_TO_SWITCH_ON, State.FAULT_REACTION_ACTIVE)
    assert TRANSITIONS.get(pair) == (None if made_by_itself else theirs)


def machine(state):
    store = {0x6041: 0, 0x603F: 0, 0x6007: 3}
    m = Machine(store.__getitem__, store.__setitem__, lambda code: None)
    m.state = NAMES[state]
    m.show()
    return m, store


@pytest.mark.parametrize("start", State)
@pytest.mark.parametrize("wish", Wish)
def test_every_wish_comes_true_by_one_transition_after_the_other(start, wish):
    m, store = machine(start)
    for _ in range(8):
        before = state_of(store[0x6041])
        m.control(int(CONTROL_WORDS[wish][before]))
        after = state_of(store[0x6041])
        assert before == after or (before, after) in TRANSITIONS
    if start in (State.FAULT, State.FAULT_REACTION_ACTIVE, State.NOT_READY_TO_SWITCH_ON):
        assert after is start, "a fault is never left by a wish for power"
    elif wish is Wish.ON:
        assert after is State.OPERATION_ENABLED
    elif wish is Wish.OFF:
        assert after is State.SWITCH_ON_DISABLED
    elif start in (State.OPERATION_ENABLED, State.QUICK_STOP_ACTIVE):
        assert after is State.QUICK_STOP_ACTIVE
    else:
        assert after is State.SWITCH_ON_DISABLED


def test_off_does_not_drop_a_joint_at_once():
    assert CONTROL_WORDS[Wish.OFF][State.OPERATION_ENABLED] == TRANSITIONS[State.OPERATION_ENABLED, State.SWITCHED_ON]


def test_a_fault_is_reset_by_a_rising_edge():
    m, store = machine(State.FAULT)
    m.word = 0x80  # bit 7 is set already: only a new edge counts
    words = []
    for word in cia402.RESET_EDGE:
        m.control(word)
        words.append(state_of(store[0x6041]))
    assert words == [State.FAULT, State.SWITCH_ON_DISABLED, State.SWITCH_ON_DISABLED]


def test_modes_are_the_cyclic_synchronous_ones():
    names = {Mode.POSITION: "POSITION", Mode.VELOCITY: "VELOCITY", Mode.EFFORT: "TORQUE"}
    for mode, number in cia402.OPERATION_MODE.items():
        assert OperationMode.CODE2NAME[number] == f"CYCLIC SYNCHRONOUS {names[mode]}"


def test_every_code_has_words():
    assert fault_text(0x8611) == "following error (0x8611)"
    assert fault_text(0x2312) == "continuous over-current (0x2312)", "an unlisted one by its neighbour"
    assert "temperature" in fault_text(0x4999) and "0xABCD" in fault_text(0xABCD)
    for code in range(0x10000):
        text = fault_text(code)
        assert len(text) < 70 and f"0x{code:04X}" in text


# -------- Process data


def process_data(n=3, ids=None, velocity=False, **limits):
    given = {"lower": -2.0, "upper": 3.0, "velocity": 5.0, "effort": 1.5, **limits}
    specs = tuple(ActuatorSpec(f"j{i}", i, **given) for i in ids or range(1, n + 1))
    rows = [{"counts": 1000 * (k + 1), "speed_unit": "counts" if k else "rpm"} for k in range(len(specs))]
    data = ProcessData([s.id for s in specs], units_of(specs, rows, [2.0] * len(specs)), velocity)
    return data, ActuatorState(len(specs)), ActuatorCommand(len(specs))


def sample(id, status=0x0237, position=0, torque=0):
    return can.Message(
        arbitration_id=0x180 + id, data=struct.pack("<Hih", status, position, torque), is_extended_id=False
    )


def cycle(data, state, now, *frames):
    data.begin(now, state)
    others = data.take(frames) if frames else ()
    data.decode(state)
    return others


def test_commands_are_what_struct_makes_of_them():
    data, state, command = process_data()
    cycle(data, state, 1.0, *(sample(i, 0x0237, 7 * i) for i in (1, 2, 3)))
    data.steer(Wish.ON)
    command.q[:] = 1.0, -0.5, 2.5
    data.pack(command)
    counts = [round(q * c / (2 * np.pi)) for q, c in zip(command.q, (1000, 2000, 3000), strict=True)]
    assert data.rpdo1.tobytes() == b"".join(struct.pack("<Hi", 0x0F, c) for c in counts)
    command.v[:], command.tau[:] = (1.0, -1.0, 9.0), (0.5, -1.0, 3.0)
    data.pack_second(command)
    speeds = (round(30 / np.pi), round(-2000 / (2 * np.pi)), int(5 * 3000 / (2 * np.pi)))
    torques = (250, -500, 750)  # per mille of 2 N m, at most 1.5 N m
    rows = zip(speeds, torques, strict=True)
    assert data.rpdo2.tobytes() == b"".join(struct.pack("<ih", *row) for row in rows)


def test_targets_stay_inside_the_limits_and_nothing_else_gets_through():
    data, state, command = process_data()
    cycle(data, state, 1.0, *(sample(i) for i in (1, 2, 3)))
    per = data.units.counts
    command.q[:] = 9.0, -9.0, 1.0
    data.pack(command)
    assert data.target[0] <= 3.0 * per[0] < data.target[0] + 1 and data.target[1] - 1 < -2.0 * per[1] <= data.target[1]
    before = data.target.copy()
    for bad in (np.nan, np.inf, -np.inf):
        command.q[:] = bad, bad, 1.0
        data.pack(command)
        assert data.target.tolist() == before.tolist(), "what is no number leaves the target"
    command.q[:] = 1e300, -1e300, 1.0
    data.pack(command)
    assert data.target.tolist() == before.tolist()


def test_a_drive_without_power_is_told_to_stay_where_it_is():
    data, state, command = process_data()
    cycle(data, state, 1.0, sample(1, 0x0237), sample(2, 0x0233, 55), sample(3, 0x0233, 10**8))
    command.q[:] = 1.0
    data.pack(command)
    assert data.target[1] == 55 and data.target[2] == data.units.upper[2]
    command.v[:] = command.tau[:] = 1.0
    data.pack_second(command)
    assert data.rpdo2[1].item() == data.rpdo2[2].item() == (0, 0) and data.rpdo2[0].item() != (0, 0)


@pytest.mark.parametrize("ids", [(1, 2, 3), (7, 2, 100)])
@pytest.mark.parametrize("order", itertools.permutations(range(3)))
def test_samples_are_what_struct_reads_in_whatever_order_they_come(ids, order):
    data, state, _ = process_data(ids=ids)
    for k in range(4):
        positions, torques = rng.integers(-(10**6), 10**6, 3), rng.integers(-1000, 1000, 3)
        before = state.q.copy()
        frames = [sample(ids[j], 0x0237, int(positions[j]), int(torques[j])) for j in order]
        assert not len(cycle(data, state, 1.0 + 0.002 * k, *frames))
        np.testing.assert_allclose(state.q, positions / data.units.counts, rtol=1e-12)
        np.testing.assert_allclose(state.tau, torques * 0.002, rtol=1e-12)
        assert (state.stamp == 1.0 + 0.002 * k).all() and state.have(Flag.FRESH | Flag.ENABLED).all()
        if k:
            np.testing.assert_allclose(state.v, (state.q - before) / 0.002, rtol=1e-6)


def test_a_missing_sample_is_not_fresh_and_speeds_stay_right():
    data, state, _ = process_data()
    for k in range(12):
        p = 10 * k
        frames = [sample(i, 0x0237, p) for i in (1, 2, 3) if not (k in (5, 6) and i == 2)]
        cycle(data, state, 0.002 * k, *frames)
        assert state.have(Flag.FRESH).tolist() == [True, k not in (5, 6), True]
        assert state.stamp[1] == pytest.approx(0.002 * (k if k not in (5, 6) else 4))
        if k:
            np.testing.assert_allclose(state.v, 5000 / data.units.counts, rtol=1e-6)
    cycle(data, state, 1.0)
    assert not state.have(Flag.FRESH).any()


def test_a_sample_that_comes_late_counts_for_the_cycle_before():
    data, state, _ = process_data()
    for k in range(3):
        cycle(data, state, 0.002 * k, *(sample(i, 0x0237, 10 * k) for i in (1, 2, 3)))
    cycle(data, state, 0.006, sample(1, 0x0237, 30), sample(3, 0x0237, 30))
    assert not state.have(Flag.FRESH)[1]
    data.take([sample(2, 0x0237, 30)])
    cycle(data, state, 0.008, sample(1, 0x0237, 40), sample(3, 0x0237, 40))
    assert state.have(Flag.FRESH).all() and state.stamp.tolist() == pytest.approx([0.008, 0.006, 0.008])
    assert state.q[1] == pytest.approx(30 / data.units.counts[1])
    assert not data.copies.any(), "late is not twice"


def test_two_devices_of_one_id_are_counted():
    data, state, _ = process_data()
    for k in range(20):
        cycle(data, state, 0.002 * k, *(sample(i) for i in (1, 2, 2, 3)))
    assert data.copies[1] > 10 and not data.copies[[0, 2]].any()


def test_samples_that_come_a_cycle_too_late_are_not_two_devices():
    data, state, _ = process_data()
    for k in range(60):
        frames = [sample(i) for i in ((1, 3) if k % 2 else (1, 2, 2, 3))]
        cycle(data, state, 0.002 * k, *frames)
    assert data.copies.max() <= 1


def test_samples_that_come_all_at_once_after_a_pause_are_not_two_devices():
    data, state, _ = process_data()
    for begin in (0, 100):
        for k in range(40):
            cycle(data, state, 0.002 * (begin + k), *(sample(i) for i in ((1, 3) if k else (1, 2, 3))))
        cycle(data, state, 0.002 * (begin + 40), *(sample(i) for i in (1, 3, *[2] * 40)))
        cycle(data, state, 0.002 * (begin + 41), *(sample(i) for i in (1, 2, 3)))
        assert data.copies.max() <= 1
    for k in range(200, 330):
        cycle(data, state, 0.002 * k, *(sample(i) for i in (1, 2, 2, 3)))
    assert data.copies[1] > 10


def test_measured_velocities_come_by_the_second_object():
    data, state, _ = process_data(velocity=True)
    speed = can.Message(arbitration_id=0x281, data=struct.pack("<i", 60), is_extended_id=False)
    cycle(data, state, 1.0, speed, *(sample(i) for i in (1, 2, 3)))
    assert state.v[0] == pytest.approx(2 * np.pi) and state.v[1] == 0.0, "rpm"


@pytest.mark.parametrize("count", [10_000, pytest.param(100_000, marks=pytest.mark.thorough)])
def test_frames_of_any_kind_neither_raise_nor_leave_the_limits(count):
    data, state, command = process_data(n=4)
    for k in range(count // 4):
        frames = [
            can.Message(arbitration_id=int(rng.choice([0x181, 0x182, 0x184, 0x281, 0x80, 0x701])) if rng.random() < 0.8
                        else int(rng.integers(0x800)), data=rng.bytes(int(rng.integers(9))), is_extended_id=False)
            for _ in range(4)
        ]  # fmt: skip
        cycle(data, state, 0.002 * k, *frames)
        command.q[:] = rng.normal(scale=10.0 ** float(rng.integers(-2, 12)), size=4)
        command.v[:], command.tau[:] = command.q, -command.q
        command.q[rng.random(4) < 0.1] = rng.choice([np.nan, np.inf, -np.inf])
        command.tau[rng.random(4) < 0.1] = np.nan
        data.pack(command)
        data.pack_second(command)
        u = data.units
        assert (data.target >= u.lower).all() and (data.target <= u.upper).all()
        assert (np.abs(data.rpdo2["velocity"]) <= u.most_speed).all()
        assert (np.abs(data.rpdo2["torque"]) <= u.most_torque).all()
