"""Supervision of tendons: every reaction of the specification by hand-made states, heat, power-on, stop."""

import numpy as np
import pytest

from humanoid_control.errors import ConfigError, SizeError, UnknownNameError
from humanoid_control.tendons.control.commands import (
    HOLD,
    HYBRID,
    OFF,
    PAY_OUT,
    TENSION,
    WinchCommand,
    WinchStates,
    no_command,
)
from humanoid_control.tendons.control.supervision import WARM, Heat, PowerOn, TendonSupervisor
from humanoid_control.tendons.unit import MuscleUnit

NAMES = ("a", "b", "c", "d")
GROUPS = {"left": ("a", "b"), "right": ("c",)}
DT = 0.004


@pytest.fixture
def supervisor():
    return TendonSupervisor(NAMES, GROUPS, np.full(4, 10.0), np.full(4, 300.0), [MuscleUnit()] * 4)


def states(tension=30.0, wire=0.3):
    return WinchStates(np.full(4, wire), np.zeros(4), np.full(4, float(tension)))


def moving():
    command = no_command(4)
    command.kind[:], command.speed[:], command.tension[:] = HYBRID, 0.1, 20.0
    return command


def run(supervisor, rows, path=0.3):
    """Step through states and paths; all events."""
    out = []
    for row, length in zip(rows, np.broadcast_to(path, len(rows)), strict=True):
        out += supervisor.step(row, np.full(4, length), DT)
    return out


def with_tendon(k, tension, wire, base=None):
    s = base or states()
    s.tension[k], s.wire[k] = tension, wire
    return s


def test_a_slack_tendon_is_told_after_a_while_and_when_it_is_taut_again(supervisor):
    events = run(supervisor, [states()] + [with_tendon(1, 4.0, 0.3) for _ in range(70)])
    assert not events and not supervisor.slack.any()
    events = run(supervisor, [with_tendon(1, 4.0, 0.3) for _ in range(10)])
    assert [e.kind for e in events] == ["slack"] and supervisor.slack.tolist() == [False, True, False, False]
    assert not supervisor.unreadable.any()
    run(supervisor, [with_tendon(1, 4.0, 0.275)])
    assert supervisor.unreadable.tolist() == [False, True, False, False], "25 mm were taken up"
    assert [e.kind for e in run(supervisor, [states()])] == ["taut"] and not supervisor.unreadable.any()


def test_a_tendon_that_winds_without_becoming_taut_has_snapped_and_stays_so(supervisor):
    rows = [with_tendon(0, 0.5, 0.3 - 0.001 * k) for k in range(50)]
    events = run(supervisor, [states(), *rows])
    assert [e.kind for e in events if e.kind == "snapped"] == ["snapped"] and "a snapped: 41 mm" in events[-1].text
    run(supervisor, [states()])
    assert supervisor.snapped.tolist() == [True, False, False, False], "latched"
    command = supervisor.override(moving(), states(), 2e4)
    assert command.kind.tolist() == [OFF, HYBRID, HYBRID, HYBRID] and command.tension[0] == 0.0
    supervisor.clear_snapped("a")
    assert not supervisor.snapped.any()


@pytest.mark.parametrize("slip", (0.0, 0.02, 0.035))
def test_a_slip_or_a_path_that_gets_shorter_is_not_a_torn_wire(supervisor, slip):
    """The wire follows a path that shortens by 100 mm, and takes up a slip beside."""
    path = 0.3 - np.linspace(0, 0.1, 200)
    rows = [with_tendon(2, 0.5, x - min(slip, 0.0005 * k)) for k, x in enumerate(path)]
    events = []
    for row, length in zip([states(), *rows], [0.3, *path], strict=True):
        events += supervisor.step(row, np.full(4, length), DT)
    assert "snapped" not in {e.kind for e in events}


def test_a_robot_that_sinks_or_an_estimate_that_is_lost_tears_no_wire(supervisor):
    """Tendon a loses its tension and winds 80 mm: its path does so by the estimate, or by the reference, alone."""
    for moved in (0, 1):
        for k in range(100):
            x = 0.3 - 8e-4 * k
            paths = [np.full(4, 0.3), np.full(4, 0.3)]
            paths[moved][0] = x
            supervisor.step(with_tendon(0, 0.5, x), paths[0], DT, paths[1])
        assert not supervisor.snapped.any()
        supervisor.step(states(), np.full(4, 0.3), DT)


def test_no_healthy_tendon_is_called_snapped_in_random_motion():
    """Two minutes at 50 Hz: paths that wander, tensions below the least, noise of 0.1 mm and 1 N, spikes."""
    s = TendonSupervisor(NAMES, GROUPS, np.full(4, 10.0), np.full(4, 300.0), [MuscleUnit()] * 4)
    rng, events = np.random.default_rng(2), []
    n = 6_000
    path = 0.3 + 0.1 * np.cumsum(rng.standard_normal((n, 4)), axis=0) * 0.002
    path = 0.3 + 0.1 * np.sin(path * 40)
    tension = np.maximum(0, 15 + 15 * np.sin(np.cumsum(rng.standard_normal((n, 4)) * 0.05, axis=0)))
    for k in range(n):
        T = np.maximum(0, tension[k] + rng.standard_normal(4) - 30 * (rng.uniform(size=4) < 0.002))
        wire = path[k] - tension[k] / 5e4 + 1e-4 * rng.standard_normal(4)
        events += s.step(WinchStates(wire, np.zeros(4), T), path[k], 0.02)
    assert not s.snapped.any() and "slack" in {e.kind for e in events}


def test_an_overloaded_tendon_has_its_group_paid_out_until_released(supervisor):
    assert not run(supervisor, [with_tendon(0, 400.0, 0.3) for _ in range(4)])
    (event,) = run(supervisor, [with_tendon(0, 400.0, 0.3) for _ in range(4)])
    assert event.kind == "over" and "left is released" in event.text
    command = supervisor.override(moving(), states(), 2e4)
    assert command.kind.tolist() == [PAY_OUT, PAY_OUT, HYBRID, HYBRID]
    assert command.tension[0] == 5.0 and command.speed[0] == 0.0
    supervisor.release()
    assert supervisor.override(moving(), states(), 2e4).kind.tolist() == [HYBRID] * 4


def test_a_doubted_group_keeps_its_lengths_springily_until_half_a_second_of_calm(supervisor):
    here = states(40.0)
    run(supervisor, [here])
    supervisor.hold_group("left", here)
    command = supervisor.override(moving(), with_tendon(0, 40.0, 0.301, states(40.0)), 2e4)
    assert command.kind.tolist() == [TENSION, TENSION, HYBRID, HYBRID]
    assert command.tension[0] == pytest.approx(60.0) and command.tension[1] == pytest.approx(40.0)
    run(supervisor, [here] * 100)
    assert "left" in supervisor.held_groups
    run(supervisor, [here] * 30)
    assert not supervisor.held_groups and supervisor.override(moving(), here, 2e4).kind[0] == HYBRID


@pytest.mark.parametrize("how,kind", [("hold", HOLD), ("pay_out", PAY_OUT), ("off", OFF)])
def test_a_stop_overrides_everything_until_it_is_released(supervisor, how, kind):
    supervisor.stop(how)
    supervisor.cut("d")
    command = supervisor.override(moving(), states(), 2e4)
    assert command.kind.tolist() == [kind, kind, kind, OFF]
    supervisor.release()
    assert supervisor.override(moving(), states(), 2e4).kind.tolist() == [HYBRID, HYBRID, HYBRID, OFF]


def test_bad_names_and_sizes_are_one_line(supervisor):
    with pytest.raises(UnknownNameError, match="unknown way to stop 'hodl'"):
        supervisor.stop("hodl")
    with pytest.raises(UnknownNameError, match="unknown group of tendons"):
        supervisor.hold_group("middle", states())
    with pytest.raises(UnknownNameError, match="unknown tendon 'z'"):
        TendonSupervisor(NAMES, {"g": ("z",)}, np.zeros(4), np.ones(4), [MuscleUnit()] * 4)
    with pytest.raises(SizeError, match="expected 4 units, got 1"):
        TendonSupervisor(NAMES, {}, np.zeros(4), np.ones(4), [MuscleUnit()])
    with pytest.raises(ConfigError, match="got 200"):
        Heat([MuscleUnit()], 200.0)


# -------- heat


def test_a_winding_warms_up_to_what_its_resistances_say():
    unit = MuscleUnit()
    R1, R2, _, _ = unit.thermal
    heat, T = Heat([unit]), 150.0
    for _ in range(500):
        heat.step(np.array([T]), 20.0)
    power = unit.resistance * (T / unit.force_per_current) ** 2
    assert heat.core[0] == pytest.approx(25 + power * (R1 + R2), rel=1e-3)
    assert heat.case[0] == pytest.approx(25 + power * R2, rel=1e-3)
    assert heat.warmth[0] == pytest.approx((heat.core[0] - 25) / 85, rel=1e-6)


def test_the_tension_that_can_be_held_for_ever_ends_at_the_warm_limit():
    heat = Heat([MuscleUnit()])
    for _ in range(500):
        heat.step(heat.for_ever, 20.0)
    assert heat.core[0] == pytest.approx(WARM, abs=0.1) and heat.most[0] > heat.for_ever[0]
    for _ in range(1500):
        heat.step(np.minimum(2 * heat.for_ever, heat.most), 2.0)
    assert heat.core[0] < WARM + 5.5, "limited where it would burn"


# -------- power-on


def drive(k, s, command):
    """A winch that takes up as its admittance asks: 1 mm/s per N, and is taut at 0.29 m."""
    if command.kind[k] == HYBRID:
        s.wire[k] -= DT * 1e-3 * (command.tension[k] - s.tension[k])
        s.tension[k] = max(0.0, (0.29 - s.wire[k]) * 5e4)


def test_power_on_takes_up_one_winch_after_another_in_each_group(supervisor):
    s = states(0.0)
    power, together = PowerOn(supervisor, s), set()
    for _ in range(3000):
        command = power.step(s, no_command(4), DT)
        together.add(tuple(np.flatnonzero(command.kind == HYBRID)))
        assert (command.tension <= 30.0).all()
        for k in range(4):
            drive(k, s, command)
        if power.done:
            break
    assert power.done and not power.refused and (s.tension >= 8.5).all()
    assert all(not {0, 1} <= set(row) for row in together), "a and b are one group"


def test_power_on_is_refused_where_a_wire_is_not_on_its_drum(supervisor):
    s = states(0.0)
    power = PowerOn(supervisor, s)
    for _ in range(3000):
        command = power.step(s, no_command(4), DT)
        s.wire[command.kind == HYBRID] -= 2e-5
        s.tension[2:] = 10.0
    assert power.refused.startswith("a did not become taut (50 mm wound)") or "4 s" in power.refused
    assert (power.step(s, no_command(4), DT).kind == HOLD).all() and not power.done


def test_a_command_that_supervision_does_not_touch_stays_as_it_is(supervisor):
    command, before = moving(), WinchCommand(*(row.copy() for row in moving()))
    run(supervisor, [states()])
    supervisor.override(command, states(), 2e4)
    for a, b in zip(command, before, strict=True):
        assert (a == b).all()
