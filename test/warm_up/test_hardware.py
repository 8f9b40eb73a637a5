"""Kernels of the driver: all of the room are compiled ahead, and a day's work on any bus compiles nothing more."""

import importlib
import pkgutil

import numpy as np
from numba.core.registry import CPUDispatcher

import humanoid_control.hardware
from humanoid_control.hardware import Driver, PowerState, without_file
from humanoid_control.hardware.commands.command_stream import JointCommand
from humanoid_control.hardware.unitree.frames import CommandFrame, StateReader
from humanoid_control.hardware.unitree.layout import family_of
from humanoid_control.robots import load_robot
from humanoid_control.session.stacks import find_stack
from humanoid_control.warm_up import GROUPS
from humanoid_control.warm_up.hardware import KERNELS, compile_kernels, compiled


def kernels_of_the_room():
    """Compiled functions by name."""
    found, room = {}, humanoid_control.hardware
    for module in pkgutil.walk_packages(room.__path__, f"{room.__name__}."):
        for value in vars(importlib.import_module(module.name)).values():
            if isinstance(value, CPUDispatcher) and value.py_func.__module__ == module.name:
                found[f"{module.name}.{value.py_func.__name__}"] = value
    return found


def test_no_kernel_of_the_room_is_forgotten():
    """What only other kernels call is compiled into these."""
    kernels = kernels_of_the_room()
    called = {name for k in kernels.values() for name in k.py_func.__code__.co_names}
    forgotten = [name for name, k in kernels.items() if k not in KERNELS and k.py_func.__name__ not in called]
    assert len(kernels) > 20 and not forgotten


def test_a_cycle_compiles_nothing_more():
    compile_kernels()
    assert compiled() and all(k.signatures for k in KERNELS)
    before = {k.py_func.__name__: len(k.signatures) for k in KERNELS}
    now = [0.0]
    driver = Driver(without_file(load_robot("hrp2", "fixed"), "loopback", {}, 500.0), clock=lambda: now[0])
    for bus in driver.buses.transports.values():
        bus.clock = driver.clock
    driver.open()
    for k in range(1500):
        now[0] += 0.002
        if k == 50:
            assert driver.enable() == ""
        if k > 100 and k % 2:
            q = driver.reference.q + 1e-3
            driver.command(JointCommand(q, np.zeros(len(q)), np.full(len(q), np.nan)), now[0], now[0])
        driver.cycle()
    assert driver.machine.state is PowerState.RUN
    driver.close()
    for name in ("hg", "go"):
        frame = CommandFrame(family_of(name), [(0, 1), (1, 1)], np.ones((2, 2)))
        state, command = driver.buses.state.part(slice(0, 2)), driver.buses.command.part(slice(0, 2))
        frame.pack(command)
        message = bytes([0, 1]).ljust(family_of(name).state.size, b"\0")
        StateReader(family_of(name), (0, 1)).read(message, state, 0.0)
    assert before == {k.py_func.__name__: len(k.signatures) for k in KERNELS}


def test_who_starts_a_driver_compiles_first():
    assert "hardware" in GROUPS and "hardware" in find_stack("hardware").kernel_groups({})
    assert "hardware" not in find_stack("imitation").kernel_groups({})
