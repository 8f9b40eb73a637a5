"""Frames of Unitree's robots: a command packed and a state read, next to the objects of the DDS binding.

The vendor's own objects and CRC are measured in the same run where `unitree_sdk2py` can be imported.
"""

from __future__ import annotations

import importlib
import importlib.util
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from evidence.benchmarks import Row, row_of
from humanoid_control.hardware.transport import ActuatorCommand, ActuatorState
from humanoid_control.hardware.unitree.dds import message_type
from humanoid_control.hardware.unitree.frames import CommandFrame, StateReader, crc32
from humanoid_control.hardware.unitree.layout import HEADER, Family, family_of
from humanoid_control.hardware.unitree.models import G1

CALLS, SLOW_CALLS = 3000, 200
VENDOR = "unitree_sdk2py"


def measure() -> list[Row]:
    """Rows [us] of a G1's 29 motors: `unitree_*` ours, `objects_*` the binding's, `vendor_*` with the vendor's CRC."""
    family = family_of("hg")
    command = ActuatorCommand(len(G1.motors))
    command.q[:] = np.linspace(-1, 1, len(command.q))
    frame = CommandFrame(family, [(m.id, m.on) for m in G1.motors], np.array([[m.kp, m.kd] for m in G1.motors]))
    states = _states(family, CALLS)
    reader, state = StateReader(family, [m.id for m in G1.motors]), ActuatorState(len(G1.motors))
    waiting = iter(states)
    rows = [
        _row("unitree_write_29", lambda: frame.pack(command), CALLS),
        _row("unitree_read_29", lambda: reader.read(next(waiting), state, 0.0), CALLS - 1),
    ]
    message = message_type(family.command.struct).deserialize(frame.pack(command))
    command_type, state_type = type(message), message_type(family.state.struct)
    rows += _objects("objects", command_type, state_type, (command, states[0]), None)
    if importlib.util.find_spec(VENDOR) is None:
        rows.append({"name": "vendor_29", "unit": "not installed", "median": float("nan"), "p99": float("nan"), "n": 0})
    else:
        module = importlib.import_module(f"{VENDOR}.idl.unitree_hg.msg.dds_")
        crc = importlib.import_module(f"{VENDOR}.utils.crc").CRC().Crc
        rows += _objects("vendor", module.LowCmd_, module.LowState_, (command, states[0]), crc)
    return _beside(rows)


def _beside(rows: list[Row]) -> list[Row]:
    """The rows, with how many times as long others take."""
    times = {r["name"]: r["median"] for r in rows}
    for kind, aim in (("write", "<= 15 us"), ("read", "<= 2 us")):
        ours = next(r for r in rows if r["name"] == f"unitree_{kind}_29")
        peers = {who: times.get(f"{who}_{kind}_29") for who in ("objects", "vendor")}
        ours["aim"] = aim
        ours["beside"] = ", ".join(f"{who} {t / ours['median']:.0f} times" for who, t in peers.items() if t is not None)
    return rows


def _states(family: Family, n: int) -> list[bytes]:
    """Frames of states with rising ticks."""
    layout, out = family.state, []
    raw = np.zeros(layout.size, np.uint8)
    raw[1] = 1
    body = raw[HEADER:].view(np.uint32)
    for tick in range(n):
        body[layout.word("tick")] = tick
        body[-1] = crc32(body, layout.crc_words)
        out.append(raw.tobytes())
    return out


def _objects(
    name: str, command_type: Any, state_type: Any, data: tuple[ActuatorCommand, bytes], crc: Callable[[Any], int] | None
) -> list[Row]:
    """The same with objects: filled, signed, serialized; deserialized and read."""
    command, frame = data
    message = command_type.deserialize(CommandFrame(family_of("hg"), (), np.zeros((0, 2))).buffer.tobytes())

    def write() -> bytes:
        for k, motor in enumerate(G1.motors):
            m = message.motor_cmd[motor.id]
            m.mode, m.q, m.dq, m.tau = 1, float(command.q[k]), float(command.v[k]), float(command.tau[k])
            m.kp, m.kd = motor.kp, motor.kd
        if crc is not None:
            message.crc = crc(message)
        return bytes(message.serialize())

    def read() -> float:
        s = state_type.deserialize(frame)
        return float(sum(m.q + m.dq + m.tau_est for m in s.motor_state))

    return [_row(f"{name}_write_29", write, SLOW_CALLS), _row(f"{name}_read_29", read, SLOW_CALLS)]


def _row(name: str, call: Callable[[], object], calls: int) -> Row:
    """Times of a call [us]; the first call compiles."""
    call()
    times = []
    for _ in range(calls - 1):
        begin = time.perf_counter_ns()
        call()
        times.append(1e-3 * (time.perf_counter_ns() - begin))
    return row_of(name, "us", times, best=round(min(times), 2))
