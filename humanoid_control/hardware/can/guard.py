"""CAN access of the guardian process."""

from __future__ import annotations

import socket
import struct
from typing import Any

FRAME = struct.Struct("=IB3x8s")
"""Linux CAN frame: identifier, length, data."""


def frames_of(data: bytes) -> list[tuple[int, bytes]]:
    """Split packed frames into (identifier, data)."""
    whole = len(data) // FRAME.size * FRAME.size
    return [(identifier, body[: min(size, 8)]) for identifier, size, body in FRAME.iter_unpack(data[:whole])]


class CanGuard:
    """Independent CAN handle; never raises after creation."""

    def __init__(self, interface: str, channel: str, bitrate: int, port: int, off: str) -> None:
        """Open the bus: SocketCAN directly, others by python-can.

        Args:
            off: power-off frames in hex.
        """
        self._off = bytes.fromhex(off)
        self._raw: Any = None
        self._bus: Any = None
        if interface == "socketcan":
            self._raw = socket.socket(socket.AF_CAN, socket.SOCK_RAW, socket.CAN_RAW)
            self._raw.bind((channel,))
            return
        import can

        more: dict[str, Any] = {"udp_multicast": {"port": port, "hop_limit": 0, "fd": False}}.get(
            interface, {"bitrate": bitrate}
        )
        self._message = can.Message
        self._bus = can.Bus(channel=channel, interface=interface, ignore_config=True, **more)

    def damp(self, frame: bytes) -> None:
        """Send damping frames."""
        if self._raw is not None:
            for k in range(0, len(frame) - FRAME.size + 1, FRAME.size):
                try:
                    self._raw.send(frame[k : k + FRAME.size])
                except OSError:  # full queue: the next frames come in 10 ms
                    continue
        elif self._bus is not None:
            for identifier, data in frames_of(frame):
                try:
                    self._bus.send(self._message(arbitration_id=identifier, is_extended_id=False, data=data))
                except Exception:  # python-can raises any exception of its drivers
                    continue

    def off(self) -> None:
        """Switch the drives off."""
        self.damp(self._off)

    def close(self) -> None:
        """Close the bus."""
        if self._raw is not None:
            self._raw.close()
        if self._bus is not None:
            self._bus.shutdown()
