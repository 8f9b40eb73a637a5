"""Supervision of CANopen nodes: heartbeats, emergencies, restarts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

BOOT_UP, STOPPED, OPERATIONAL, PRE_OPERATIONAL = 0x00, 0x04, 0x05, 0x7F
STATES = {STOPPED: "stopped", OPERATIONAL: "operational", PRE_OPERATIONAL: "pre-operational"}
LOST = 3.0  # permitted missing heartbeats
PATIENCE = 0.3  # [s] after the start in which a heartbeat may still show the old state
ASK_AFTER = 3  # cycles in FAULT without an emergency before its code is requested
ERROR_CODE = b"\x3f\x60\x00"  # object 0x603F in an answer


class NodeWatch:
    """State of n nodes apart from process data.

    Attributes:
        codes: error code (n,) uint32; 0: none.
        failed: why reconfiguration failed; empty: it did not.
    """

    def __init__(self, names: Sequence[str], ids: Sequence[int], period: float) -> None:
        """Expect heartbeats every `period` [s]; 0: none."""
        n = len(ids)
        self._names, self._ids, self._period = tuple(names), tuple(ids), period
        self._row = {i: k for k, i in enumerate(ids)}
        self.codes, self.emergencies, self.failed = np.zeros(n, np.uint32), 0, ""
        self._received_at, self._started_at = np.full(n, np.inf), np.full(n, np.inf)
        self._now = 0.0
        self._fresh: set[int] = set()
        self._restarted: set[int] = set()
        self._left: dict[int, int] = {}
        self._silent: Any = None
        self._unknown_cycles = np.zeros(n, dtype=int)
        self._due = 0.0

    def begin(self, ids: Sequence[int], now: float) -> None:
        """Expect heartbeats of nodes that were just started."""
        for i in ids:
            k = self._row[i]
            self._received_at[k] = self._started_at[k] = now
            self._restarted.discard(k)
            self._left.pop(k, None)
        self._now = now
        self._fresh.clear()

    def reset(self) -> None:
        """Clear errors; persistent causes reappear."""
        self.codes[:], self._unknown_cycles[:], self.failed = 0, 0, ""

    def take(self, frame: Any) -> None:
        """Process any frame without process data."""
        service, data = frame.arbitration_id & 0x780, frame.data
        k = self._row.get(frame.arbitration_id & 0x7F)
        if k is None:
            return
        if service == 0x700 and len(data) == 1:
            self._heartbeat(k, data[0] & 0x7F)
        elif service == 0x080 and len(data) == 8:
            self.emergencies += 1
            self.codes[k] = data[0] | data[1] << 8
        elif service == 0x580 and len(data) == 8 and data[1:4] == ERROR_CODE and data[0] & 0xE0 == 0x40:
            self.codes[k] = data[4] | data[5] << 8

    def _heartbeat(self, k: int, state: int) -> None:
        self._fresh.add(k)
        if state == BOOT_UP:
            self._restarted.add(k)
        elif state == OPERATIONAL:
            self._left.pop(k, None)
        elif self._now - self._started_at[k] > PATIENCE:
            self._left[k] = state

    def update(self, failed: np.ndarray, now: float, changed: bool) -> Sequence[int]:
        """End a cycle; return drives to ask for their error code.

        Args:
            failed: drives in FAULT (n,).
            changed: a status word changed.
        """
        # after a pause of this program heartbeats may be queued or lost: count the pause as one heartbeat at most
        self._received_at += max(0.0, now - self._now - self._period)
        self._now = now
        # the heartbeat came between two cycles: dating it back would age it by a pause in between
        self._received_at[list(self._fresh)] = now
        self._fresh.clear()
        if self._period and now >= self._due:
            self._due = now + 0.2 * self._period
            silence = now - self._received_at
            worst = int(np.argmax(silence))
            self._silent = (worst, float(silence[worst])) if silence[worst] > LOST * self._period else None
        if not changed and not self._unknown_cycles.any():
            return ()
        unknown = failed & (self.codes == 0)
        self._unknown_cycles[~unknown] = 0
        self._unknown_cycles[unknown] += 1
        return np.flatnonzero(self._unknown_cycles == ASK_AFTER).tolist()

    def lost_configuration(self) -> list[int]:
        """Return rows of drives to be configured again."""
        return sorted(self._restarted | set(self._left))

    def trouble(self) -> str:
        """Return why nodes are unreliable; empty: none is."""
        if self.failed:
            return self.failed
        if self._restarted:
            return f"{self._label(min(self._restarted))} restarted unexpectedly"
        if self._left:
            k = min(self._left)
            state = STATES.get(self._left[k], f"in state 0x{self._left[k]:02X}")
            return f"{self._label(k)} left its state unexpectedly: it is {state}"
        if self._silent is not None:
            k, seconds = self._silent
            return f"{self._label(k)} lost: no heartbeat for {seconds:.2f} s"
        return ""

    def _label(self, k: int) -> str:
        return f"{self._names[k]} (id {self._ids[k]})"

    def figures(self) -> dict[str, Any]:
        """Return counters for diagnostics."""
        return {"emergencies": self.emergencies}
