"""Frames of a Dynamixel cycle without the port: goals of many servos packed, their samples parsed; next to the SDK."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from evidence.benchmarks import Row, row_of
from humanoid_control.hardware.dynamixel.frames import LONGEST, SAMPLE, STATUS, packet
from humanoid_control.hardware.dynamixel.group import Group
from humanoid_control.hardware.dynamixel.models import MODELS
from humanoid_control.hardware.dynamixel.servo import Servo
from humanoid_control.hardware.transport import ActuatorSpec

BATCH = 50  # calls that are timed at once
MODEL = 1020
POSITION = (2048.0, 4096 / (2 * np.pi), 0.0, 4095.0)


def batches(call: Callable[[], Any], rounds: int) -> list[float]:
    """Time of a call [us], in each of so many batches."""
    call()
    out = []
    for _ in range(rounds):
        begin = time.perf_counter()
        for _ in range(BATCH):
            call()
        out.append(1e6 * (time.perf_counter() - begin) / BATCH)
    return out


def measure(servos: int = 30, rounds: int = 200) -> list[Row]:
    """Rows `dynamixel_write_N`, `dynamixel_parse_N` [us], and the SDK's where it is installed."""
    ids = list(range(1, servos + 1))
    none = (0.0, 0.0, 0.0, 0.0)
    made = [Servo(ActuatorSpec(f"j{k}", k), MODELS[MODEL], 45, "position", POSITION, none, none) for k in ids]
    group = Group(range(servos), made, fast=False)
    command = np.random.default_rng(0).uniform(-1, 1, (servos, 3))
    stream = b"".join(packet(k, STATUS, bytes([0]) + bytes([k] * SAMPLE)) for k in ids)
    buffer = np.zeros(LONGEST, np.uint8)
    buffer[: len(stream)] = np.frombuffer(stream, np.uint8)

    def write() -> None:
        for _ in group.goal_frames(command):
            pass

    def parse() -> None:
        group.samples.restart()
        group.samples.take(buffer, len(stream))
        group.decode()

    rows = [
        row_of(f"dynamixel_write_{servos}", "us", batches(write, rounds)),
        row_of(f"dynamixel_parse_{servos}", "us", batches(parse, rounds)),
    ]
    assert group.samples.received.all()
    peers = _of_the_sdk(ids, stream, command, rounds)
    for ours, theirs, aim in zip(rows, peers, ("<= 10 us", "<= 3 us"), strict=False):
        ours["aim"] = aim
        if theirs["n"]:
            ours["beside"] = f"SDK {theirs['median'] / ours['median']:.0f} times"
    return rows + peers


class _Wire:
    """A port for the SDK that takes packets and gives the replies at once."""

    def __init__(self, replies: bytes) -> None:
        self.replies, self.at, self.is_using = replies, 0, False

    def clearPort(self) -> None:
        self.at = 0

    def writePort(self, data: Any) -> int:
        return len(data)

    def readPort(self, length: int) -> bytes:
        self.at += length
        return self.replies[self.at - length : self.at]

    def setPacketTimeout(self, length: int) -> None:
        pass

    def isPacketTimeout(self) -> bool:
        return False


def _of_the_sdk(ids: list[int], stream: bytes, command: np.ndarray, rounds: int) -> list[Row]:
    try:
        from dynamixel_sdk import COMM_SUCCESS, GroupSyncRead, GroupSyncWrite, Protocol2PacketHandler
    except ModuleNotFoundError:
        return [{"name": "sdk", "unit": "not installed", "median": float("nan"), "p99": float("nan"), "n": 0}]
    wire, handler = _Wire(stream), Protocol2PacketHandler()
    write, read = GroupSyncWrite(wire, handler, 116, 4), GroupSyncRead(wire, handler, 126, SAMPLE)
    for k in ids:
        read.addParam(k)

    def send() -> None:
        write.clearParam()
        for k, q in zip(ids, command[:, 0].tolist(), strict=True):
            count = round(POSITION[0] + q * POSITION[1])
            write.addParam(k, list(count.to_bytes(4, "little")))
        write.txPacket()
        wire.is_using = False

    def take() -> None:
        result = read.txRxPacket()
        assert result == COMM_SUCCESS
        for k in ids:
            read.getData(k, 126, 2), read.getData(k, 128, 4), read.getData(k, 132, 4)

    few = max(rounds // 40, 3)
    return [
        row_of(f"sdk_write_{len(ids)}", "us", batches(send, few)),
        row_of(f"sdk_parse_{len(ids)}", "us", batches(take, few)),
    ]
