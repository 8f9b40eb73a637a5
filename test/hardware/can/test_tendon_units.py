"""Muscle units on emulated buses: CANopen, MIT; torques are those of the simulator's drive (TC-25)."""

import numpy as np
import pytest

from humanoid_control.errors import ConfigError, SizeError
from humanoid_control.hardware.muscle_units.units import MuscleUnits, UnitRow, travel_of
from humanoid_control.hardware.transport import ActuatorState, Mode
from humanoid_control.tendons.control.commands import HOLD, HYBRID, LENGTH, OFF, TENSION, WinchCommand, WinchStates
from humanoid_control.tendons.control.winch_loop import WinchLoop
from humanoid_control.tendons.unit import MuscleUnit
from test.hardware.can.test_mit import Rig as MitRig

RATIO = 2.76e-4  # [m/rad] of a drum of 8 mm behind a gear of 29
STIFF = 2e4  # [N/m] of a wire to a wall
LEAST, MOST = 10.0, 300.0


def units(mode, count=2, period=0.005, ratio=RATIO, **row):
    rows = [UnitRow(f"t{k}", ratio * (-1) ** k, 0.3, **{"tension": MOST, **row}) for k in range(count)]
    return MuscleUnits(mode, rows, [MuscleUnit()] * count, np.full(count, LEAST), period)


def commands(kind, tension=0.0, speed=0.0, length=0.0, count=2):
    return WinchCommand(np.full(count, kind), *(np.full(count, x) for x in (speed, tension, length)))


def test_canopen_drives_in_velocity_mode_bring_wires_to_their_tension(rig):
    """The drives of the emulated bus turn; the tension of a wire to a wall is what their own position makes of it."""
    r = rig(2, actuator={"mode": Mode.VELOCITY, "velocity": 2000.0, "lower": -1e4, "upper": 1e4}).open().enable()
    wires = units(Mode.VELOCITY)
    wires.take(commands(HYBRID, tension=60.0))
    seen = []

    def tick():
        states = wires.states(r.state)
        tension = np.maximum(0.0, STIFF * (0.3 - states.wire))
        given = wires.act(wires.states(r.state, tension))
        r.command.v[:], r.command.tau[:] = given.v, given.tau
        seen.append(tension)

    r.until(lambda: len(seen) > 20 and np.abs(seen[-1] - 60.0).max() < 2.0, write=True, each=tick, seconds=20.0)
    assert np.max(seen) < 90.0
    assert r.state.q[0] > 0 > r.state.q[1], "the second one winds the other way"
    wires.take(commands(HOLD))
    held = r.state.q.copy()
    for _ in range(20):
        tick()
        r.cycle()
    assert RATIO * np.abs(r.state.q - held).max() < 5e-4


def test_mit_frames_carry_damping_speed_and_tension():
    r = MitRig(2, ranges=(12.5, 50.0, 500.0, 5.0, 18.0))
    try:
        r.transport.open()
        r.enable()
        drum = 0.02  # [m] on the actuator's own shaft
        wires = units(Mode.IMPEDANCE, ratio=drum)
        wires.take(commands(HYBRID, tension=80.0, speed=0.05))
        states = wires.states(r.state, np.full(2, 80.0))
        given = wires.act(states)
        assert given.kd == pytest.approx(3000.0 * drum**2) and given.tau == pytest.approx([80 * drum, -80 * drum])
        assert given.v == pytest.approx([0.05 / drum, -0.05 / drum]) and not given.kp.any()
        for name in ("v", "tau", "kp", "kd"):
            getattr(r.command, name)[:] = getattr(given, name)
        r.cycle()
        r.cycle()
        kd, tau = ([r.motors.__dict__[name][i] for i in r.ids] for name in ("kd", "tau"))
        assert kd == pytest.approx([1.2, 1.2], abs=2e-3) and tau == pytest.approx([1.6, -1.6], abs=0.01)
        wires.take(commands(OFF))
        given = wires.act(states)
        assert not (given.v.any() or given.tau.any() or given.kd.any())
    finally:
        r.transport.close()
        r.motors.end()


def test_torques_are_those_of_the_simulators_drive():
    wires, rng = units(Mode.EFFORT, period=1e-3), np.random.default_rng(0)
    loop = WinchLoop(("t0", "t1"), [MuscleUnit()] * 2, np.full(2, LEAST), np.full(2, MOST))
    for kind in (HYBRID, TENSION, LENGTH, HOLD):
        given = commands(kind, tension=50.0, speed=0.02, length=0.29)
        wires.take(given)
        loop.command(given)
        for _ in range(20):
            states = WinchStates(
                0.3 + 1e-3 * rng.standard_normal(2), 0.05 * rng.standard_normal(2), rng.uniform(0, 90, 2)
            )
            expected = loop.run(states, 1e-3).copy()
            assert wires.act(states).tau == pytest.approx(expected * [RATIO, -RATIO], rel=1e-12)


def test_position_drives_servo_lengths_and_give_way():
    wires = units(Mode.POSITION)
    wires.take(commands(LENGTH, length=0.28))
    calm = WinchStates(np.full(2, 0.3), np.zeros(2), np.full(2, 50.0))
    assert wires.act(calm).q == pytest.approx([0.02 / RATIO, -0.02 / RATIO])
    overloaded = calm._replace(tension=np.full(2, 1.5 * MOST))
    out = -wires.act(overloaded).q * [RATIO, -RATIO]
    assert out == pytest.approx(0.005 * 0.405), "nine tenths of the unloaded speed, whatever the length commanded"


def test_a_tension_without_a_sensor_is_that_of_the_current_within_friction():
    wires, state = units(Mode.VELOCITY, sensor=False), ActuatorState(2)
    assert wires.loop.record.admittance == pytest.approx(1e-4)
    wires.take(commands(HYBRID, tension=60.0))
    state.q[:], state.tau[:] = 0.0, np.array([70.0, -70.0]) * RATIO
    state.v[:] = 0.0
    assert wires.states(state).tension == pytest.approx(60.0), "at rest friction hides 10 N"
    state.v[:] = np.array([0.05, -0.05]) / RATIO
    assert wires.states(state).tension == pytest.approx(70 - 60 * 0.05 - 15)


def test_wires_stay_within_travel_and_speed():
    wires = units(Mode.VELOCITY, shortest=0.25, longest=0.35, speed=0.1)
    wires.take(commands(HYBRID, tension=50.0, speed=5.0))
    middle = WinchStates(np.full(2, 0.3), np.zeros(2), np.full(2, 50.0))
    assert np.abs(wires.act(middle).v * RATIO) == pytest.approx(0.1)
    assert not wires.act(middle._replace(wire=np.full(2, 0.249))).v.any()
    wires.take(commands(HYBRID, tension=50.0, speed=-5.0))
    assert not wires.act(middle._replace(wire=np.full(2, 0.351))).v.any()
    low, high = travel_of(np.array([[0.3, 0.4], [0.32, 0.35]]))
    assert low == pytest.approx([0.28, 0.33]) and high == pytest.approx([0.34, 0.42])


def test_what_cannot_be_is_said():
    with pytest.raises(ConfigError, match=r"got 5 ms.*mode velocity"):
        units(Mode.EFFORT)
    with pytest.raises(ConfigError, match="tendon 't0': drives in mode velocity take no command of kind 'tension'"):
        units(Mode.VELOCITY).take(commands(TENSION, tension=50.0))
    with pytest.raises(ConfigError, match="mode position take no command of kind 'hybrid'"):
        units(Mode.POSITION).take(commands(HYBRID))
    with pytest.raises(ConfigError, match="ratio is 8 m/rad"):
        UnitRow("a", 8.0, 0.3)
    with pytest.raises(ConfigError, match="shortest wire below the longest"):
        UnitRow("a", 0.01, 0.3, 0.4, 0.2)
    with pytest.raises(ConfigError, match="limits of tension and speed"):
        UnitRow("a", 0.01, 0.3, tension=-5.0)
    with pytest.raises(SizeError, match="expected 2 tensions"):
        units(Mode.VELOCITY).states(ActuatorState(2), np.zeros(3))
