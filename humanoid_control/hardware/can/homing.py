"""Homing of CiA 402 drives (mode 6) without blocking the cycle."""

from __future__ import annotations

import struct
from collections.abc import Generator
from typing import Any

from humanoid_control.hardware.can.bus import message
from humanoid_control.hardware.can.cia402 import STATUS_BITS, State
from humanoid_control.hardware.can.configuration import HOMING_MODE
from humanoid_control.hardware.transport import HomingProgress

MODE, MODE_SHOWN, MOST_TORQUE = 0x6060, 0x6061, 0x6072
START = 0x10  # bit of the control word
REACHED, ATTAINED, ERROR = 0x0400, 0x1000, 0x2000  # bits of the status word
SETTLING = 10  # cycles after the start in which the status word may belong to an earlier homing
ANSWER, ATTEMPTS = 0.3, 3  # [s] for an SDO answer; number of requests
SIZES = {"b": 0x2F, "H": 0x2B}  # first byte of a download of one or two bytes


class DriveHoming:
    """Homing of one drive, including the return to its mode.

    Attributes:
        progress: DONE or FAILED only after the return.
        start: request bit 4 of the control word.
    """

    def __init__(self, id: int, mode: int, torque: int = -1, usual_torque: int = -1) -> None:
        """Set up.

        Args:
            mode: to return to (object 0x6060).
            torque: limit during homing [per mille]; -1: unchanged.
            usual_torque: limit afterwards [per mille]; -1: unchanged.
        """
        self.progress, self.start, self.over, self.found = HomingProgress.RUNNING, False, False, False
        self.id, self.aborted = id, False
        self._mode, self._torques = mode, (torque, usual_torque)
        self._outgoing: list[Any] = []
        self._answer: bytes | None = None
        self._now, self._status = 0.0, 0
        self._course = self._find()

    def abort(self) -> None:
        """End homing: the drive stops by its own ramp and returns to its mode."""
        if not self.over and self.progress is HomingProgress.RUNNING:
            self._course, self.aborted, self.found = self._return(), True, False

    def take(self, data: bytes) -> None:
        """Store an SDO answer."""
        if len(data) == 8:
            self._answer = bytes(data)

    def step(self, status: int, now: float) -> list[Any]:
        """Advance by one cycle; return frames to send.

        Args:
            status: latest status word.
        """
        self._status, self._now = status, now
        if not self.over and next(self._course, True):
            self.over = True
            self.progress = HomingProgress.DONE if self.found else HomingProgress.FAILED
        out, self._outgoing = self._outgoing, []
        return out

    # -- sequence; each `yield` ends a cycle --------------------------------------------------------------------------

    def _find(self) -> Generator[bool, None, None]:
        ready = True
        if min(self._torques) >= 0:
            ready = yield from self._write(MOST_TORQUE, "H", self._torques[0])
        ready = ready and (yield from self._change_mode(HOMING_MODE))
        if ready:
            self.start = True
            for _ in range(SETTLING):
                yield False
            mask, enabled = STATUS_BITS[State.OPERATION_ENABLED]
            while self._status & mask == enabled and not self._status & ERROR:
                if self._status & ATTAINED and self._status & REACHED:
                    self.found = True
                    break
                yield False
        yield from self._return()

    def _return(self) -> Generator[bool, None, None]:
        self.start = False
        yield False
        if min(self._torques) >= 0:
            yield from self._write(MOST_TORQUE, "H", self._torques[1])
        back = yield from self._change_mode(self._mode)
        self.found = self.found and back

    def _change_mode(self, mode: int) -> Generator[bool, None, bool]:
        if not (yield from self._write(MODE, "b", mode)):
            return False
        end = self._now + ANSWER * ATTEMPTS
        while self._now < end:
            shown = yield from self._ask(b"\x40" + struct.pack("<H", MODE_SHOWN) + bytes(5))
            if shown is not None and shown[0] & 0xE0 == 0x40 and struct.unpack_from("b", shown, 4)[0] == mode:
                return True
        return False

    def _write(self, index: int, kind: str, value: int) -> Generator[bool, None, bool]:
        data = struct.pack("<BHB" + kind, SIZES[kind], index, 0, value).ljust(8, b"\0")
        answer = yield from self._ask(data)
        return answer is not None and answer[0] == 0x60

    def _ask(self, request: bytes) -> Generator[bool, None, bytes | None]:
        """Repeat a request until answered; None: no answer."""
        for _ in range(ATTEMPTS):
            self._answer, end = None, self._now + ANSWER
            self._outgoing.append(message(0x600 + self.id, request))
            while self._now < end:
                yield False
                if self._answer is not None and self._answer[1:4] == request[1:4]:
                    return self._answer
        return None
