"""Frames of thirty CiA 402 drives: packed and unpacked next to canopen's objects, and a cycle with another process."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import can
import canopen
import numpy as np
from canopen.objectdictionary import ODArray, ODRecord, ODVariable

from evidence.benchmarks import Row, row_of
from evidence.benchmarks.drivers.scheduling import scheduled
from humanoid_control.hardware import ActuatorCommand, ActuatorSpec, ActuatorState
from humanoid_control.hardware.can.bus import CanBus, CanFrame, message
from humanoid_control.hardware.can.cia402 import RPDO1, TPDO1, ProcessData, Wish, mapping
from humanoid_control.hardware.can.drives import units_of

ENABLED = 0x0237  # status word
REPEATS, BLOCK, WARM = 2000, 100, 20
CHANNEL, PORT = "239.74.163.4", 43114
UNSIGNED8, UNSIGNED16, UNSIGNED32, INTEGER16, INTEGER32 = 5, 6, 7, 3, 4
TYPES = {0x6040: UNSIGNED16, 0x607A: INTEGER32, 0x6041: UNSIGNED16, 0x6064: INTEGER32, 0x6077: INTEGER16}


def frame_times(n: int = 30, repeats: int = REPEATS) -> list[Row]:
    """Rows canopen_write and canopen_read [us], ours and those of canopen's objects, in one run.

    Write: positions of n drives into the frames, without sending them. Send: the same, and every frame handed to a bus
    of python-can that does nothing. Read: n frames that have come into positions, velocities, torques and flags.
    canopen's objects send to the same bus.
    """
    data, state, command = _process_data(n)
    batches = [_samples(n, 10 * k) for k in range(4)]
    nothing = CanBus("none", {"interface": "virtual", "channel": "none"})
    nothing.raw = _NoBus()
    view = data.rpdo1.view(np.uint8).data
    frames = [CanFrame(0x201 + k, view[6 * k : 6 * k + 6]) for k in range(n)]
    nodes, network = _canopen_nodes(n)
    now = 0.0

    def read(k: int) -> None:
        nonlocal now
        now += 0.002
        data.begin(now, state)
        data.take(batches[k & 3])
        data.decode(state)

    def send(k: int) -> None:
        data.pack(command)
        for frame in frames:
            nothing.send(frame)

    def objects_write(k: int) -> None:
        for pdo, q in zip((node.rpdo[1] for node in nodes), command.q, strict=True):
            pdo[0].raw = 0x0F
            pdo[1].raw = int(q * 652.0)
            pdo.transmit()

    def objects_read(k: int) -> None:
        for frame in batches[k & 3]:
            network.notify(frame.arbitration_id, frame.data, 0.0)
        for i, pdo in enumerate(node.tpdo[1] for node in nodes):
            _ = pdo[0].raw
            state.q[i] = pdo[1].raw / 652.0
            state.tau[i] = pdo[2].raw * 0.002

    data.load_kernel()
    times = _times(
        {
            "write": lambda k: data.pack(command), "send": send, "read": read, "write, canopen": objects_write,
            "read, canopen": objects_read,
        },
        repeats,
    )  # fmt: skip
    rows = [row_of(f"canopen_{name}_{n}", "us", values) for name, values in times.items()]
    for kind in ("write", "read"):
        ours, theirs = (float(np.median(times[name])) for name in (kind, f"{kind}, canopen"))
        rows.append(row_of(f"canopen_{kind}_{n}, times faster", "1", [theirs / ours], aim=">= 20"))
    for r in rows[:3:2]:
        r["aim"] = "<= 5 us" if "write" in r["name"] else "<= 4 us"
    return rows


def pdo_loop(seconds: float = 10.0, n: int = 30, rate: float = 500.0, port: int = PORT) -> list[Row]:
    """Rows of a cycle with n drives in another process, over multicast on this computer.

    pdo_loop_n: sending commands and SYNC, and receiving all samples [us]; the samples of a cycle that have not come
    after 0.4 periods, and cycles that began more than a period late, count as missed; the latter also as late [%].
    """
    options = {"interface": "udp_multicast", "channel": CHANNEL, "port": port}
    bus = CanBus("loop", options)
    data, state, command = _process_data(n)
    data.load_kernel()
    view = data.rpdo1.view(np.uint8).data
    frames = [*(CanFrame(0x201 + k, view[6 * k : 6 * k + 6]) for k in range(n)), message(0x80)]
    code = f"from evidence.benchmarks.drivers.can_frames import respond; respond({options!r}, {n})"
    drives = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert drives.stdin is not None and drives.stdout is not None
    try:
        drives.stdout.readline()
        bus.open()
        period, cycles = 1.0 / rate, round(seconds * rate)
        sent, received = np.zeros((2, cycles))
        incomplete, delayed = np.zeros((2, cycles), dtype=bool)
        with scheduled():
            due = time.monotonic() + period
            for k in range(-WARM, cycles):
                time.sleep(max(0.0, due - time.monotonic()))
                begin = time.monotonic()
                late = begin - due > period
                due = due + period if not late else begin + period
                command.q[:] = np.sin(0.01 * k)
                data.pack(command)
                for frame in frames:
                    bus.send(frame)
                middle = time.monotonic()
                data.begin(middle, state)
                while not data.complete and (came := bus.receive(begin + 0.4 * period)):
                    data.take(came)
                data.decode(state)
                if k >= 0:
                    sent[k], received[k] = middle - begin, time.monotonic() - middle
                    incomplete[k], delayed[k] = not data.complete, late
    finally:
        bus.close()
        drives.stdin.close()
        drives.wait(10)
    return [
        row_of(f"pdo_loop_{n} send", "us", 1e6 * sent),
        row_of(f"pdo_loop_{n} receive", "us", 1e6 * received),
        row_of(f"pdo_loop_{n} missed", "%", [100.0 * float((incomplete | delayed).mean())], aim="<= 0.1 %"),
        row_of(f"pdo_loop_{n} late", "%", [100.0 * float(delayed.mean())]),
    ]


def respond(options: dict[str, Any], n: int) -> None:
    """Be n drives until standard input closes: at each SYNC answer with a sample of each, where it was told to be."""
    import threading

    bus = CanBus("drives", options)
    bus.open()
    buffer = bytearray(np.full(n, ENABLED, np.uint64).tobytes())
    view = memoryview(buffer)
    samples = [CanFrame(0x181 + k, view[8 * k : 8 * k + 8]) for k in range(n)]
    ended = threading.Event()

    def wait_for_the_end() -> None:
        sys.stdin.read()
        ended.set()

    threading.Thread(target=wait_for_the_end, daemon=True).start()
    print("READY", flush=True)
    with scheduled():
        while not ended.is_set():
            for frame in bus.receive(time.monotonic() + 0.1):
                k = frame.arbitration_id - 0x201
                if 0 <= k < n:
                    buffer[8 * k + 2 : 8 * k + 6] = frame.data[2:6]
                elif frame.arbitration_id == 0x80:
                    for sample in samples:
                        bus.send(sample)
    bus.close()


class _NoBus:
    """A bus of python-can that takes frames and does nothing."""

    channel_info = "none"

    def send(self, frame: Any, timeout: float | None = None) -> None:
        pass


def _process_data(n: int) -> tuple[ProcessData, ActuatorState, ActuatorCommand]:
    specs = tuple(ActuatorSpec(f"j{i}", i, lower=-3, upper=3, velocity=10, effort=1) for i in range(1, n + 1))
    data = ProcessData(range(1, n + 1), units_of(specs, [{"counts": 4096, "speed_unit": "counts"}] * n, [2.0] * n))
    state, command = ActuatorState(n), ActuatorCommand(n)
    command.q[:] = np.linspace(-1, 1, n)
    for k in range(3):
        data.begin(0.002 * k - 1.0, state)
        data.take(_samples(n, 0))
        data.decode(state)
    data.steer(Wish.ON)
    return data, state, command


def _samples(n: int, shift: int) -> list[can.Message]:
    samples = np.zeros(n, TPDO1)
    samples["status"], samples["position"] = ENABLED, 100 * np.arange(n) + shift
    return [message(0x181 + k, samples[k].tobytes()) for k in range(n)]


def _canopen_nodes(n: int) -> tuple[list[canopen.RemoteNode], canopen.Network]:
    """canopen's objects with the same process data mapped."""
    network = canopen.Network(_NoBus())  # type: ignore[arg-type]
    nodes = []
    for i in range(1, n + 1):
        node = canopen.RemoteNode(i, _dictionary())
        network.add_node(node)
        for pdo, record, cob_id in ((node.rpdo[1], RPDO1, 0x200 + i), (node.tpdo[1], TPDO1, 0x180 + i)):
            pdo.cob_id, pdo.enabled = cob_id, True
            for entry in mapping(record):
                pdo.add_variable(entry >> 16, 0)
            pdo.subscribe()
        nodes.append(node)
    return nodes, network


def _dictionary() -> canopen.ObjectDictionary:
    od = canopen.ObjectDictionary()
    for index, kind in TYPES.items():
        variable = ODVariable(f"{index:04X}", index)
        variable.data_type = kind
        od.add_object(variable)
    for base in (0x1400, 0x1800):
        record, table = ODRecord(f"{base:04X}", base), ODArray(f"{base + 0x200:04X}", base + 0x200)
        for sub, kind in ((0, UNSIGNED8), (1, UNSIGNED32), (2, UNSIGNED8)):
            record.add_member(_member(base, sub, kind))
        for sub in range(4):
            table.add_member(_member(base + 0x200, sub, UNSIGNED32 if sub else UNSIGNED8))
        od.add_object(record)
        od.add_object(table)
    return od


def _member(index: int, sub: int, kind: int) -> ODVariable:
    variable = ODVariable(f"{index:04X}:{sub}", index, sub)
    variable.data_type = kind
    return variable


def _times(functions: dict[str, Callable[[int], None]], repeats: int) -> dict[str, list[float]]:
    """Times [us] of functions that are called in turns, block by block: the first calls of a block do not count."""
    out: dict[str, list[float]] = {name: [] for name in functions}
    with scheduled():
        for _ in range(max(1, repeats // BLOCK)):
            for name, function in functions.items():
                for k in range(-WARM, BLOCK):
                    begin = time.perf_counter_ns()
                    function(k)
                    if k >= 0:
                        out[name].append(1e-3 * (time.perf_counter_ns() - begin))
    return out
