"""Kernels of the robot driver compiled ahead, for short first cycles."""

from __future__ import annotations

from typing import Any

import numpy as np

from humanoid_control.hardware.can.cia402 import DriveUnits, ProcessData
from humanoid_control.hardware.can.cia402 import decode_samples as decode_drives
from humanoid_control.hardware.commands.command_stream import add_command, curve_at
from humanoid_control.hardware.commands.setpoint import advance_reference, fill_setpoint, follow_commands
from humanoid_control.hardware.driver import Driver
from humanoid_control.hardware.dynamixel.frames import (
    LONGEST,
    SAMPLE,
    Replies,
    build,
    decode_samples,
    encode_goals,
    sync_read_packet,
    take_replies,
)
from humanoid_control.hardware.hardware_file import without_file
from humanoid_control.hardware.loopback import step_drives
from humanoid_control.hardware.supervision import drop_jumps, judge, look_at_samples
from humanoid_control.hardware.transmission import command_gears, gain_gears, read_gears
from humanoid_control.hardware.transport import ActuatorCommand, ActuatorState
from humanoid_control.hardware.unitree.frames import LITTLE_ENDIAN, CommandFrame, StateReader, pack_command, read_state
from humanoid_control.hardware.unitree.layout import family_of
from humanoid_control.warm_up import compile_here
from humanoid_control.warm_up.kernel_files import are_compiled

ADVICE = "compiling the driver for this machine, only the first time: about half a minute"
KERNELS: tuple[Any, ...] = (
    curve_at,
    add_command,
    follow_commands,
    advance_reference,
    fill_setpoint,
    judge,
    drop_jumps,
    look_at_samples,
    read_gears,
    command_gears,
    gain_gears,
    step_drives,
    decode_drives,
    pack_command,
    read_state,
    build,
    encode_goals,
    take_replies,
    decode_samples,
)


def compiled() -> bool:
    """Return whether these kernels are compiled."""
    return are_compiled(KERNELS)


def compile_kernels() -> None:
    """Compile the calls of a cycle for every kind of bus, without opening one."""
    from humanoid_control.robots import load_robot

    driver = Driver(without_file(load_robot("hrp2", "fixed"), "loopback", {}, 500.0))
    driver.open()
    driver.cycle()
    driver.buses.write(early=False)
    driver.close()
    one, none = np.ones(1), np.zeros((0, 2))
    ProcessData([1], DriveUnits(*[one] * 7)).load_kernel()
    state, command = ActuatorState(0), ActuatorCommand(0)
    for name in ("hg", "go"):
        family = family_of(name)
        frame, reader = CommandFrame(family, (), none), StateReader(family, ())
        frame.pack(command)
        frame.damp()
        reader.read(bytes([0, LITTLE_ENDIAN[0]]).ljust(family.state.size, b"\0"), state, 0.0)
    replies = Replies(sync_read_packet([1], 0, SAMPLE), [1], SAMPLE)
    counts = np.zeros(1, np.int64)
    encode_goals(one, np.ones((1, 4)), counts, (116, 4), counts, np.zeros(LONGEST, np.uint8))
    decode_samples(replies.data, replies.received, np.ones((1, 4)), np.full((1, 3), np.nan))


if __name__ == "__main__":
    compile_here(compile_kernels)
