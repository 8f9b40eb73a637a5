"""The simulated twin: the engine behind the transport, driven through everything that drives a real robot."""

import numpy as np
import pytest

from humanoid_control.hardware.commands.command_stream import JointCommand
from humanoid_control.hardware.driver import Driver
from humanoid_control.hardware.hardware_file import without_file
from humanoid_control.hardware.power import PowerState
from humanoid_control.hardware.simulator import SimulatorTransport
from humanoid_control.hardware.transport import (
    ActuatorCommand,
    ActuatorSpec,
    ActuatorState,
    BusSpec,
    Flag,
    HardwareError,
    Mode,
)
from humanoid_control.robots import load_robot

JOINTS = ("l_elbow_flexion", "r_elbow_flexion")


def transport(clock, **options):
    t = SimulatorTransport(BusSpec("twin", tuple(ActuatorSpec(n, k) for k, n in enumerate(JOINTS)), 0.002,
                                   {"robot": "hrp2", **options}))  # fmt: skip
    t.clock = clock
    t.open()
    return t


def cycle(t, clock, command, state, seconds):
    for _ in range(round(seconds / 0.002)):
        clock.now += 0.002
        t.write(command)
        t.read(state, clock.now)


def test_without_power_the_joints_stay_and_with_power_they_follow(clock):
    t = transport(clock)
    state, command = ActuatorState(2), ActuatorCommand(2)
    command.q[:] = 1.0, 0.8
    t.read(state, clock.now)
    start = state.q.copy()
    cycle(t, clock, command, state, 0.2)
    assert np.abs(state.q - start).max() < 0.01 and not state.have(Flag.ENABLED).any()
    assert state.have(Flag.FRESH).all() and clock.now - state.stamp.max() < 0.0021
    while not t.power(True):
        cycle(t, clock, command, state, 0.002)
    command.q[:] = start + 0.2
    cycle(t, clock, command, state, 1.0)
    assert np.abs(state.q - command.q).max() < 0.05 and state.have(Flag.ENABLED).all()
    command.mode[:], command.v[:] = Mode.VELOCITY, -0.3
    cycle(t, clock, command, state, 0.5)
    assert np.abs(state.v + 0.3).max() < 0.1
    t.quick_stop()
    cycle(t, clock, command, state, 0.5)
    assert np.abs(state.v).max() < 0.02 and not state.have(Flag.ENABLED).any()


def test_a_limp_robot_falls_without_power(clock):
    t = transport(clock, limp=True)
    state, command = ActuatorState(2), ActuatorCommand(2)
    t.engine.set_state(joints=t.engine.robot.from_mapping(dict.fromkeys(JOINTS, 1.5)))
    t._release()
    cycle(t, clock, command, state, 0.4)
    assert (np.abs(state.q - 1.5) > 0.1).all()


def test_a_pause_of_this_computer_is_not_made_up_for(clock):
    t = transport(clock)
    state, command = ActuatorState(2), ActuatorCommand(2)
    before = t.engine.time
    clock.now += 30.0
    t.read(state, clock.now)
    assert t.engine.time - before <= 0.051
    cycle(t, clock, command, state, 0.1)
    assert t.engine.time - before == pytest.approx(0.15, abs=0.003)


def test_a_robot_that_does_not_exist_is_named_with_its_bus(clock):
    t = SimulatorTransport(BusSpec("twin", (), 0.002, {"robot": "hpr2"}))
    with pytest.raises(HardwareError, match="bus twin: unknown robot 'hpr2'"):
        t.open()


def test_the_driver_moves_the_twin(clock):
    """Blend and limits seen on a body: no joint of the engine exceeds its speed limit when commands begin far away."""
    robot = load_robot("hrp2", "fixed")
    hardware = without_file(robot, "simulator", {"robot": "hrp2"})
    driver = Driver(hardware, clock=clock)
    (twin,) = driver.buses.transports.values()
    twin.clock = clock
    driver.open()
    neutral = robot.postures["neutral"][[robot.index[n] for n in hardware.names]]
    goal = np.clip(neutral + 0.4, driver.limits.lower, driver.limits.upper)
    nothing, fastest = np.full(len(goal), np.nan), 0.0

    def run(seconds, q=None, until=None):
        nonlocal fastest
        for k in range(round(seconds / 0.002)):
            clock.now += 0.002
            if q is not None and k % 2:
                driver.command(JointCommand(q, nothing, nothing), clock.now, clock.now)
            driver.cycle()
            fastest = max(fastest, np.abs(driver.joints.v / driver.limits.velocity).max())
            if driver.machine.state is until:
                return
        assert until is None, driver.machine

    run(0.1)
    assert driver.enable() == ""
    run(1.0, until=PowerState.HOLD)
    run(4.0, goal, until=PowerState.RUN)
    run(0.5, goal)
    assert driver.machine.state is PowerState.RUN, driver.machine
    assert fastest < 1.05 and np.median(np.abs(driver.joints.q - goal)) < 0.02
    driver.disable()
    run(1.0, goal, until=PowerState.MONITOR)


def test_motors_warm_with_their_torque_and_the_supply_gives_their_power(clock):
    t = transport(clock, heating=50.0)
    state, command = ActuatorState(2), ActuatorCommand(2)
    assert t.battery(state).voltage == 48.0 and t.battery(state).current == 0.0
    t.read(state, clock.now)
    start = state.q.copy()
    while not t.power(True):
        cycle(t, clock, command, state, 0.002)
    power, last = 0.0, t.traffic().sent
    for k in range(100):
        command.q[:] = start + [0.003 * k, 0.0]  # 1.5 rad/s with the left one
        cycle(t, clock, command, state, 0.002)
        power = max(power, float(np.maximum(state.tau * state.v, 0.0).sum()))
        assert t.battery(state).current == pytest.approx(-np.maximum(state.tau * state.v, 0.0).sum() / 48.0)
    assert power > 0.0 and t.traffic() == (last + 100, t.traffic().received, 0)
    assert state.temperature[0] > state.temperature[1] >= 25.0 - 1e-9
    hot = state.temperature.copy()
    t.quick_stop()
    cycle(t, clock, command, state, 1.0)
    assert (state.temperature < hot).all() and (state.voltage == 48.0).all(), "it cools without power"
