"""Serial port of a Dynamixel bus: requests, replies, servo discovery."""

from __future__ import annotations

import contextlib
import errno
import os
import select
import termios
import time
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np
import serial
from serial.tools import list_ports

from humanoid_control.errors import first_few
from humanoid_control.hardware.dynamixel.frames import (
    BROADCAST,
    ERRORS,
    GREATEST_ID,
    LONGEST,
    PING,
    Replies,
    packet,
    read_packet,
    write_packet,
)
from humanoid_control.hardware.dynamixel.models import BAUD_RATES, EEPROM, model_name
from humanoid_control.hardware.transport import HardwareError

PATIENCE = 0.03  # [s] for an answer outside the cycle, in addition to its transmission time
TRIES = 3  # attempts of an unanswered request
PING_SLOT = 0.003  # [s] for each id in a broadcast ping


class FoundServo(NamedTuple):
    """Servo that answered a ping: model number, firmware version."""

    model: int
    firmware: int


class SerialPort:
    """Serial port with servos.

    Attributes:
        baud: [bit/s].
    """

    def __init__(self, path: str, baud: int) -> None:
        """Open raw, exclusive, and with low latency if supported.

        Raises:
            HardwareError: if missing, not permitted, in use, or without this rate.
        """
        self.path, self.baud, self.sent, self.received = path, baud, 0, 0
        self.buffer = np.zeros(2 * LONGEST, np.uint8)
        self._view = self.buffer.data
        try:
            self._serial = serial.Serial(path, baud, timeout=0, exclusive=True)
        except (OSError, ValueError) as e:
            raise HardwareError(_why_not(path, baud, e)) from None
        self._fd = self._serial.fileno()
        with contextlib.suppress(OSError, ValueError, AttributeError):  # only UARTs have this mode
            self._serial.set_low_latency_mode(True)

    def close(self) -> None:
        """Close the port; never raises."""
        with contextlib.suppress(OSError):
            self._serial.close()

    def write(self, data: bytes | memoryview) -> None:
        """Send bytes.

        Raises:
            OSError: if the port is lost.
        """
        view = memoryview(data)
        while view:
            try:
                n = os.write(self._fd, view)
            except BlockingIOError:
                select.select([], [self._fd], [], PATIENCE)
                continue
            self.sent += n
            view = view[n:]

    def discard(self) -> None:
        """Discard received bytes.

        Raises:
            OSError: if the port is lost.
        """
        try:
            termios.tcflush(self._fd, termios.TCIFLUSH)
        except termios.error as e:
            raise OSError(*e.args) from None

    def collect(self, at: int, until: float) -> int:
        """Store bytes in `buffer` from `at`; return the end, `at` on timeout.

        Raises:
            OSError: if the port is lost.
        """
        left = until - time.monotonic()
        if left <= 0 or at >= len(self.buffer):
            return at
        ready, _, _ = select.select([self._fd], [], [], left)
        if not ready:
            return at
        try:
            n = os.readv(self._fd, [self._view[at:]])
        except BlockingIOError:
            return at
        if n == 0:
            raise OSError(errno.EIO, "port disappeared")
        self.received += n
        return at + n

    def ask(self, replies: Replies, patience: float) -> bool:
        """Send a request and collect replies; False if incomplete.

        Args:
            patience: beyond transmission time [s].

        Raises:
            OSError: if the port is lost.
        """
        replies.restart()
        self.discard()
        self.write(replies.request)
        until = time.monotonic() + patience + 10 * (len(replies.request) + replies.expected) / self.baud
        end = 0
        while (at := self.collect(end, until)) > end:
            end = at
            until = min(until, time.monotonic() + patience)
            if end >= replies.expected and replies.take(self.buffer, end):
                return True
        return replies.take(self.buffer, end)

    # -- one servo ---------------------------------------------------------------------------------------------------

    def ping(self, servo: int) -> FoundServo | None:
        """Identify a servo; None: no answer."""
        data = self._request(servo, packet(servo, PING), 3)
        return None if data is None else FoundServo(int(data[0]) + 256 * int(data[1]), int(data[2]))

    def eeprom(self, servo: int) -> np.ndarray | None:
        """Return the EEPROM of a servo (EEPROM,); None: no answer."""
        return self._request(servo, read_packet(servo, 0, EEPROM), EEPROM)

    def read(self, servo: int, address: int, width: int) -> int | None:
        """Return an unsigned number; None: no answer."""
        data = self._request(servo, read_packet(servo, address, width), width)
        return None if data is None else int.from_bytes(data.tobytes(), "little")

    def store(self, servo: int, address: int, value: int, width: int) -> str:
        """Write a number; return the reason of a failure, or ''."""
        request = write_packet(servo, address, value.to_bytes(width, "little"))
        replies = Replies(request, [servo], 0)
        for _ in range(TRIES):
            if self.ask(replies, PATIENCE):
                error = int(replies.errors[0]) & 0x7F
                return ERRORS.get(error, f"error {error}") if error else ""
        return "no answer"

    def _request(self, servo: int, request: bytes, length: int) -> np.ndarray | None:
        replies = Replies(request, [servo], length)
        for _ in range(TRIES):
            if self.ask(replies, PATIENCE):
                return replies.data[0].copy()
        return None

    def broadcast_ping(self) -> dict[int, FoundServo]:
        """Return all servos at this rate, by id."""
        ids = range(GREATEST_ID + 1)
        replies = Replies(packet(BROADCAST, PING), list(ids), 3)
        self.discard()
        self.write(replies.request)
        last, end = time.monotonic() + len(ids) * PING_SLOT, 0
        while time.monotonic() < last:
            end = self.collect(end, last)
        replies.take(self.buffer, end)
        model, firmware = replies.numbers(0, 2), replies.numbers(2, 1)
        return {int(k): FoundServo(int(model[k]), int(firmware[k])) for k in np.flatnonzero(replies.received)}

    def rate(self, baud: int) -> None:
        """Change the baud rate."""
        self._serial.baudrate = self.baud = baud


def servos_at_other_rates(port: SerialPort) -> dict[int, dict[int, FoundServo]]:
    """Return servos at other baud rates, by rate."""
    out, own = {}, port.baud
    for baud in BAUD_RATES:
        if baud == own:
            continue
        with contextlib.suppress(OSError, ValueError):  # unsupported rate
            port.rate(baud)
            if found := port.broadcast_ping():
                out[baud] = found
    port.rate(own)
    return out


def scan_lines(found: Mapping[int, FoundServo], baud: int) -> list[str]:
    """Return a line for each servo."""
    return [f"id {k}: {model_name(s.model)}, firmware {s.firmware}, {baud} baud" for k, s in found.items()]


def ids_text(ids: Iterable[int]) -> str:
    """Format ids."""
    return first_few([str(i) for i in ids], 8) or "none"


def _why_not(path: str, baud: int, error: Exception) -> str:
    number = getattr(error, "errno", None)
    if number == errno.ENOENT or not os.path.exists(path):
        have = [p.device for p in list_ports.comports()]
        return f"{path}: port not found; available: {', '.join(have) or 'none'}"
    if number == errno.EACCES:
        return f"{path}: not permitted; add yourself to group dialout"
    if number in (errno.EAGAIN, errno.EBUSY) or "lock" in str(error):
        return f"{path}: in use by another program"
    if isinstance(error, ValueError) or number == errno.EINVAL:
        return f"{path}: does not support {baud} baud"
    return f"{path}: {error}"
