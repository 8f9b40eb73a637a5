"""The table of power states: no way to power but by `enable`, whatever comes in whatever order."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from humanoid_control.hardware.power import MOVING, POWERED, TRANSITIONS, Event, PowerMachine, PowerState


@given(st.lists(st.sampled_from(Event), max_size=200))
def test_power_comes_only_by_enable_in_monitor(events):
    seen = []
    machine = PowerMachine(lambda before, after: seen.append((before, after)))
    for k, event in enumerate(events):
        before = machine.state
        moved = machine.handle(event, float(k), event.name)
        assert moved == ((before, event) in TRANSITIONS)
        if not moved:
            assert machine.state is before
        if machine.state in POWERED and before not in POWERED:
            assert event is Event.ENABLE and before is PowerState.MONITOR
        if before in (PowerState.FAULT, PowerState.ESTOP) and machine.state is not before:
            assert event in (Event.CLEAR, Event.CLOSE, Event.ESTOP)
        if machine.state in MOVING and before not in MOVING:
            assert before is PowerState.HOLD and event is Event.COMMANDED
        assert machine.powered == (machine.state in POWERED)
        assert not moved or (machine.since == k and machine.reason == event.name)
    assert all(a is not None for a, _ in seen)


def test_the_table_has_one_way_to_power():
    ways = [(s, e) for (s, e), after in TRANSITIONS.items() if after in POWERED and s not in POWERED]
    assert ways == [(PowerState.MONITOR, Event.ENABLE)]


@given(st.lists(st.integers(0, 11), min_size=20, max_size=60))
def test_walks_along_the_table_come_everywhere_and_to_power_by_enable_alone(choices):
    """Only events that the state knows: such a walk comes to faults and back many times."""
    machine = PowerMachine()
    for k, choice in enumerate(choices):
        known = [e for s, e in TRANSITIONS if s is machine.state]
        before, event = machine.state, known[choice % len(known)]
        assert machine.handle(event, float(k))
        if machine.powered and before not in POWERED:
            assert (before, event) == (PowerState.MONITOR, Event.ENABLE)


@pytest.mark.parametrize("state", sorted(POWERED, key=lambda s: s.name), ids=lambda s: s.name)
def test_every_powered_state_ends_by_fault_and_by_emergency_stop(state):
    for event, end in ((Event.FAIL, PowerState.FAULT), (Event.ESTOP, PowerState.ESTOP)):
        assert TRANSITIONS[state, event] is end


def test_an_emergency_stop_is_stronger_than_a_fault():
    assert TRANSITIONS[PowerState.FAULT, Event.ESTOP] is PowerState.ESTOP
    assert (PowerState.ESTOP, Event.FAIL) not in TRANSITIONS


def test_every_state_can_be_reached_and_left():
    reached = {PowerState.OFFLINE}
    while more := {e for (s, _), e in TRANSITIONS.items() if s in reached} - reached:
        reached |= more
    assert reached == set(PowerState)
    assert {s for s, _ in TRANSITIONS} == set(PowerState)


def test_the_way_of_a_working_day():
    machine, way = PowerMachine(), []
    for event in (
        Event.CONFIGURE, Event.ENABLE, Event.ENABLED, Event.COMMANDED, Event.BLENDED, Event.STEPPED, Event.BLENDED,
        Event.STOP, Event.RESTED, Event.STOP, Event.UNPOWERED, Event.CLOSE,
    ):  # fmt: skip
        assert machine.handle(event, 0.0)
        way.append(machine.state.name)
    before_rest = ["MONITOR", "ENABLING", "HOLD", "BLEND", "RUN", "BLEND", "RUN", "STOPPING"]
    assert way == [*before_rest, "HOLD", "STOPPING", "MONITOR", "OFFLINE"]
    machine.reason = "why"
    assert str(machine) == "OFFLINE: why"
