"""Arrays of actuators: views of one bus, flags; transports by name."""

import subprocess
import sys

import numpy as np
import pytest

from humanoid_control.errors import EnvironmentProblem, UnknownNameError
from humanoid_control.hardware import transport
from humanoid_control.hardware.transport import (
    TRANSPORTS,
    ActuatorCommand,
    ActuatorState,
    BusSpec,
    Flag,
    HardwareError,
    Transport,
    transport_class,
)


def test_a_bus_writes_into_the_state_of_the_whole_robot():
    state = ActuatorState(5)
    assert all(np.isnan(getattr(state, k)).all() for k in ("q", "v", "tau", "temperature", "voltage", "stamp"))
    part = state.part(slice(1, 3))
    part.q[:] = 1.0, 2.0
    part.code[1] = 7
    part.flags[0] |= Flag.FRESH | Flag.ENABLED
    assert state.q[1:3].tolist() == [1.0, 2.0] and np.isnan(state.q[[0, 3, 4]]).all()
    assert state.code.tolist() == [0, 0, 7, 0, 0]
    assert state.have(Flag.ENABLED).tolist() == [False, True, False, False, False]
    assert not state.have(Flag.FAULT).any()


def test_a_bus_reads_from_the_command_of_the_whole_robot():
    command = ActuatorCommand(3)
    part = command.part(slice(2, 3))
    command.q[:], command.mode[:] = (1.0, 2.0, 3.0), (0, 1, 2)
    assert part.q.tolist() == [3.0] and part.mode.tolist() == [2]
    for name in ActuatorCommand.FIELDS:
        assert np.shares_memory(getattr(part, name), getattr(command, name))


@pytest.mark.parametrize("name", TRANSPORTS)
def test_every_transport_that_is_named_is_there(name):
    cls = transport_class(name)
    assert Transport in cls.__mro__ and isinstance(cls.bus_keys, dict) and isinstance(cls.actuator_keys, dict)


def test_an_unknown_transport_is_answered_with_the_nearest():
    with pytest.raises(UnknownNameError, match="loopback"):
        transport_class("loopbak")


def test_a_transport_whose_package_is_missing_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(TRANSPORTS, "strange", "mujoco_missing:Nothing")
    with pytest.raises(ModuleNotFoundError):
        transport_class("strange")
    monkeypatch.setitem(sys.modules, "mujoco", None)
    monkeypatch.setitem(TRANSPORTS, "strange", "mujoco:Nothing")
    with pytest.raises(EnvironmentProblem, match="pip install"):
        transport_class("strange")


def test_defaults_of_a_transport_are_those_of_drives_without_extras():
    class Bare(Transport):
        names = ("a", "b")

    bare = Bare()
    assert bare.trouble() == "" and bare.serials() == ("", "") and bare.guard() is None and bare.imu() is None
    assert bare.fault_text(0x8611) == "fault 0x8611" and not bare.brake(0, True)
    command = ActuatorCommand(2)
    command.q[:] = 0.5, -0.5
    (line,) = bare.frames(command)
    assert '"q": [0.5, -0.5]' in line and '"names": ["a", "b"]' in line
    assert Bare.bus_load(BusSpec("bus", ())) == 0.0
    with pytest.raises(HardwareError):
        Bare.scan({})


def test_the_interface_needs_no_compiler_and_no_robot():
    code = f"import sys, {transport.__name__}; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not set(run.stdout.split()) & {"numba", "pinocchio", "scipy"}
