"""Sync writes and sync reads of servos of one family."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from humanoid_control.hardware.dynamixel.frames import (
    ALERT,
    LONGEST,
    SAMPLE,
    Replies,
    decode_samples,
    encode_goals,
    sync_read_packet,
    sync_write_packet,
)
from humanoid_control.hardware.dynamixel.models import ControlTable
from humanoid_control.hardware.dynamixel.servo import Servo

STATUS_BYTES, SUPPLY_BYTES = 7, 3  # Torque Enable .. Hardware Error Status; voltage and temperature
VOLT = 0.1  # [V] per count


class ServoGoal:
    """Sync write of one goal.

    Attributes:
        quantity: 'q', 'v' or 'tau'.
    """

    def __init__(self, quantity: str, rows: Sequence[int], servos: Sequence[Servo], address: int, width: int) -> None:
        self.quantity, self.rows = quantity, np.array(rows, int)
        key = {"q": "position", "v": "velocity", "tau": "current"}[quantity]
        self._conversion = np.array([getattr(servos[k], key) for k in rows], float).reshape(-1, 4)
        limited = np.array([quantity == "tau" and servos[k].operating == "current_position" for k in rows])
        self._limit = np.where(limited, [min(servos[k].spec.effort, 1e9) for k in rows], np.nan)
        self._ids = np.array([servos[k].spec.id for k in rows], np.int64)
        self._target, self.sent = (address, width), np.zeros(len(rows), np.int64)
        self._out = np.zeros(LONGEST, np.uint8)
        self._view = self._out.data
        self.frame(np.full(len(rows), np.nan))  # compiles before any motion

    def values(self, command: np.ndarray, hold: np.ndarray | None) -> np.ndarray:
        """Return values to send, in SI units (k,).

        Args:
            command: q, v, tau (k, 3).
            hold: positions to hold instead (k,).
        """
        if self.quantity == "q":
            return command[:, 0] if hold is None else hold
        free = command[:, 1 if self.quantity == "v" else 2] if hold is None else np.zeros(len(command))
        return free if self.quantity == "v" else np.where(np.isnan(self._limit), free, self._limit)

    def frame(self, values: np.ndarray) -> memoryview:
        """Return the packet of values (k,) in SI units; valid until the next call."""
        values = np.ascontiguousarray(values)  # one array type, one compilation
        size = encode_goals(values, self._conversion, self._ids, self._target, self.sent, self._out)
        return self._view[:size]


class Group:
    """Servos of one family.

    Attributes:
        values: q [rad], v [rad/s], tau [N m] of the last samples (k, 3).
    """

    def __init__(self, rows: Sequence[int], servos: Sequence[Servo], fast: bool) -> None:
        table: ControlTable = servos[0].model.table
        self.rows, self.servos, self.table = np.array(rows, int), tuple(servos), table
        self.ids = [s.spec.id for s in servos]
        self.goals = list(self._goals())
        self.values = np.full((len(servos), 3), np.nan)
        self._conversion = np.array([s.sample for s in servos])
        self.sample_requests = [
            Replies(sync_read_packet(self.ids, table.present, SAMPLE, kind), self.ids, SAMPLE, kind)
            for kind in ((True, False) if fast else (False,))
        ]
        self.status = self._request(table.torque, STATUS_BYTES)
        self.supply = self._request(table.supply, SUPPLY_BYTES)
        self.watchdog = self._request(table.watchdog, 1)
        self.decode()

    def _goals(self) -> list[ServoGoal]:
        t = self.table
        wanted = {
            "tau": ({"current", "current_position"}, t.current, 2),
            "v": ({"velocity"}, t.velocity, 4),
            "q": ({"position", "extended", "current_position"}, t.position, 4),
        }
        out = []
        for quantity, (modes, address, width) in wanted.items():
            rows = [k for k, s in enumerate(self.servos) if s.operating in modes]
            if rows:
                out.append(ServoGoal(quantity, rows, self.servos, address, width))
        return out

    def _request(self, address: int, length: int) -> Replies:
        return Replies(sync_read_packet(self.ids, address, length), self.ids, length)

    @property
    def samples(self) -> Replies:
        """Sample request in use."""
        return self.sample_requests[0]

    def without_fast_reads(self) -> bool:
        """Switch to a packet for each servo; False if already done."""
        fast = len(self.sample_requests) > 1
        del self.sample_requests[:-1]
        return fast

    def decode(self) -> None:
        """Convert received samples to SI units."""
        decode_samples(self.samples.data, self.samples.received, self._conversion, self.values)

    def alerts(self) -> np.ndarray:
        """Return servos with nonzero Hardware Error Status (k,)."""
        return self.samples.received & ((self.samples.errors & ALERT) != 0)

    def write_all(self, address: int, data: bytes) -> bytes:
        """Return a packet that writes the same bytes to all."""
        return sync_write_packet(self.ids, address, [data] * len(self.ids))

    def goal_frames(self, command: np.ndarray, hold: np.ndarray | None = None) -> Iterator[memoryview]:
        """Yield all goal packets; each is valid until rebuilt.

        Args:
            command: q, v, tau of the whole bus (n, 3).
            hold: positions to hold instead (n,).
        """
        for goal in self.goals:
            rows = self.rows[goal.rows]
            yield goal.frame(goal.values(command[rows], None if hold is None else hold[rows]))
