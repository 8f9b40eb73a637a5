"""CAN bus: open, send, receive without waiting, health."""

from __future__ import annotations

import errno
import logging
import socket
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import can

from humanoid_control.errors import ConfigError, offer_names
from humanoid_control.hardware.transport import HardwareError

INTERFACES = ("socketcan", "slcan", "pcan", "udp_multicast", "virtual")
BUS_KEYS: dict[str, Any] = {"interface": "socketcan", "channel": str, "bitrate": 1_000_000, "port": 43113}
"""Keys of a CAN bus in a hardware file; `port` is for udp_multicast, limited to this computer."""

MOST = 4096  # frames taken at once: a babbling device must not block the cycle
FAILURES = 10  # consecutive failures after which the bus counts as lost
GONE = {errno.ENETDOWN, errno.ENODEV, errno.ENXIO, errno.EBADF, errno.EIO}
PASSIVE_TIME = 1.0  # [s] validity of the last report of a passive controller

# Classes of error frames as Linux defines them (linux/can/error.h).
CONTROLLER, NO_ACK, BUS_OFF, RESTARTED = 0x004, 0x020, 0x040, 0x100
RX_PASSIVE, TX_PASSIVE, ACTIVE = 0x10, 0x20, 0x40

for _library in ("can", "canopen"):  # these libraries also raise everything that they log: avoid duplicate output
    logging.getLogger(_library).addHandler(logging.NullHandler())


def frame_bits(size: int) -> int:
    """Return worst-case bits of a standard data frame, stuffing included."""
    return 47 + 8 * size + (34 + 8 * size - 1) // 4


def candump(message: can.Message) -> str:
    """Return a frame in candump notation."""
    return f"{message.arbitration_id:03X}#{bytes(message.data).hex().upper()}"


class CanFrame(can.Message):
    """Standard data frame on a view of a shared buffer."""

    def __init__(self, identifier: int, view: memoryview) -> None:
        super().__init__(arbitration_id=identifier, is_extended_id=False, dlc=len(view), is_rx=False)
        self.data = view  # type: ignore[assignment]  # every interface only reads it

    def __deepcopy__(self, memo: dict[int, Any] | None) -> can.Message:
        return message(self.arbitration_id, bytes(self.data))


def message(identifier: int, data: bytes = b"") -> can.Message:
    """Return a standard data frame with its own data."""
    return can.Message(arbitration_id=identifier, is_extended_id=False, data=bytearray(data), is_rx=False)


class CanBus:
    """CAN bus of a hardware file.

    Attributes:
        errors: error frames and failures.
    """

    def __init__(self, name: str, options: Mapping[str, Any], where: str = "") -> None:
        """Check the options.

        Raises:
            ConfigError: if interface, channel or bitrate is invalid.
        """
        given = {**BUS_KEYS, **options}
        self.name, self.interface, self.channel = name, str(given["interface"]), given["channel"]
        self.bitrate, self.port = int(given["bitrate"]), int(given["port"])
        if self.interface not in INTERFACES:
            raise ConfigError(
                f"{where or name}: unknown interface '{self.interface}': {offer_names(self.interface, INTERFACES)}"
            )
        if not isinstance(self.channel, str) or not self.channel:
            raise ConfigError(f"{where or name}: bus {name} lacks the key 'channel'")
        if not 10_000 <= self.bitrate <= 1_000_000:
            raise ConfigError(f"{where or name}: bitrate must be in 10000 .. 1000000, got {self.bitrate}")
        self.raw: Any = None
        self.sent = self.received = self.errors = 0
        self._failures = 0
        self._bus_off = False
        self._passive_at, self._no_ack_at = -float("inf"), -float("inf")

    def open(self) -> None:
        """Open the bus.

        Raises:
            HardwareError: if not possible.
        """
        more: dict[str, Any] = {}
        if self.interface == "socketcan":
            check_socketcan(self.channel, self.bitrate)
        elif self.interface == "udp_multicast":
            more = {"port": self.port, "hop_limit": 0, "fd": False}
        elif self.interface in ("slcan", "pcan"):
            more = {"bitrate": self.bitrate}
        try:
            self.raw = can.Bus(channel=self.channel, interface=self.interface, ignore_config=True, **more)
        except Exception as e:  # drivers also raise exceptions other than CanError
            raise HardwareError(f"bus {self.name}: {self.channel} cannot be opened: {one_line(e)}") from None
        self._failures, self._bus_off, self._passive_at, self._no_ack_at = 0, False, -float("inf"), -float("inf")

    def close(self) -> None:
        """Close the bus; idempotent, never raises."""
        raw, self.raw = self.raw, None
        if raw is not None:
            try:
                raw.shutdown()
            except Exception:  # an unplugged device cannot be closed
                self.errors += 1

    def send(self, frame: can.Message) -> None:
        """Send one frame; lost and counted if the queue is full.

        Raises:
            HardwareError: if the bus is lost.
        """
        if self.raw is None:
            raise HardwareError(f"bus {self.name}: closed")
        try:
            self.raw.send(frame)
        except (can.CanError, OSError, ValueError) as e:
            self._fail(e)
        else:
            self.sent += 1
            self._failures = 0

    def receive(self, until: float) -> list[can.Message]:
        """Return received data frames; wait for the first until a monotonic time [s].

        Raises:
            HardwareError: if the bus is lost.
        """
        out: list[can.Message] = []
        if self.raw is None:
            raise HardwareError(f"bus {self.name}: closed")
        recv, wait = self.raw.recv, max(0.0, until - time.monotonic())
        for _ in range(MOST):
            try:
                found = recv(wait)
            except (can.CanError, OSError, ValueError) as e:
                self._fail(e)
                return out
            if found is None:
                break
            wait = 0.0
            if found.is_error_frame:
                self._error_frame(found)
            elif not (found.is_extended_id or found.is_remote_frame or found.is_fd):
                out.append(found)
        if out:
            self.received += len(out)
            self._failures, self._bus_off = 0, False
        return out

    def health(self) -> str:
        """Return why the whole bus fails; empty: it works."""
        now = time.monotonic()
        if self._bus_off:
            return f"bus off: wires, terminators and bitrate ({self.bitrate}) of {self.channel}?"
        if now - self._passive_at < PASSIVE_TIME:
            return f"error passive: many damaged frames on {self.channel}; wires, terminators, bitrate?"
        if now - self._no_ack_at < PASSIVE_TIME:
            return f"no device acknowledges frames on {self.channel}: are the drives switched on?"
        return ""

    def _error_frame(self, frame: can.Message) -> None:
        kind, data = frame.arbitration_id, frame.data
        self.errors += 1
        if kind & BUS_OFF:
            self._bus_off = True
        if kind & RESTARTED:
            self._bus_off = False
        if kind & NO_ACK:
            self._no_ack_at = time.monotonic()
        if kind & CONTROLLER and len(data) > 1:
            if data[1] & (RX_PASSIVE | TX_PASSIVE):
                self._passive_at = time.monotonic()
            elif data[1] & ACTIVE:
                self._passive_at = -float("inf")

    def _fail(self, error: Exception) -> None:
        self.errors += 1
        self._failures += 1
        number = getattr(error, "error_code", None) or getattr(error, "errno", None)
        if number in GONE or self._failures > FAILURES:
            raise HardwareError(f"bus {self.name}: {self.channel} disappeared: {one_line(error)}") from None

    def figures(self) -> dict[str, Any]:
        """Return counters for diagnostics."""
        return {"sent": self.sent, "received": self.received, "errors": self.errors}


def one_line(error: Exception) -> str:
    """Return the first line of an error, or its type."""
    text = str(error).strip().splitlines()
    return text[0] if text else type(error).__name__


def socketcan_problem() -> str:
    """Return why SocketCAN is missing; empty: it exists."""
    if not hasattr(socket, "AF_CAN"):
        return "this Python has no SocketCAN"
    try:
        socket.socket(socket.AF_CAN, socket.SOCK_RAW, socket.CAN_RAW).close()
    except OSError as e:
        return f"this kernel has no SocketCAN ({e.strerror})"
    return ""


def check_socketcan(channel: str, bitrate: int, devices: Path = Path("/sys/class/net")) -> None:
    """Check that a CAN interface exists and is up.

    Raises:
        HardwareError: with the remedy, if not.
    """
    remedy = f"ip link set {channel} up type can bitrate {bitrate}"
    have = sorted(d.name for d in devices.glob("*") if _text(d / "type") == "280")
    if channel not in have:
        others = f" (have: {', '.join(have)})" if have else ""
        raise HardwareError(f"{channel}: interface not found{others}; {socketcan_problem() or remedy}")
    if _text(devices / channel / "operstate") == "down":
        raise HardwareError(f"{channel}: down; {remedy}")


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
