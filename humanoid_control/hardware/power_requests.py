"""Power requests common to all drivers."""

from __future__ import annotations

from collections.abc import Callable

from humanoid_control.hardware.power import Event, PowerMachine


class PowerRequests:
    """Base of the drivers.

    Attributes:
        estop: reason by active source of the emergency stop.
        stopped: after a stop request: commands are ignored until `enable`.
    """

    machine: PowerMachine
    clock: Callable[[], float]
    estop: dict[str, str]
    stopped: bool
    _switching_off: bool

    def refusals(self) -> list[str]:
        """Return reasons against power; empty: the drives may get it."""
        raise NotImplementedError

    def enable(self) -> str:
        """Request power, or resume after `stop`; return a refusal, or ''."""
        if self.machine.powered and self.stopped and not self._switching_off:
            self.stopped, self.machine.reason = False, ""  # the pending stop request is withdrawn
            return ""
        if reasons := self.refusals():
            return "; ".join(reasons)
        self.stopped = False
        self.machine.handle(Event.ENABLE, self.clock())
        return ""

    def disable(self) -> str:
        """Come to rest, then switch the drives off."""
        if self.machine.powered:
            self._switching_off = True
            self.machine.handle(Event.STOP, self.clock(), "switching off")
        return ""

    def stop(self) -> str:
        """Come to rest and hold; commands are ignored until `enable`."""
        if not self.machine.powered:
            return f"nothing to stop: {self.machine}"
        self.stopped = True
        self.machine.handle(Event.STOP, self.clock(), "stop was requested; enable resumes")
        return ""

    def emergency_stop(self, source: str, on: bool, reason: str = "") -> None:
        """Activate or release a source of the emergency stop; only `clear_faults` ends ESTOP."""
        if on:
            self.estop[source] = reason or f"emergency stop by {source}"
            self.machine.handle(Event.ESTOP, self.clock(), self.estop[source])
        else:
            self.estop.pop(source, None)
