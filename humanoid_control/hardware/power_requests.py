"""Requests for power that every driver takes in the same way: enable, disable, stop, emergency stop."""

from __future__ import annotations

from collections.abc import Callable

from humanoid_control.hardware.power import Event, PowerMachine


class PowerRequests:
    """Base of the drivers.

    Attributes:
        machine: state of the power. clock: monotonic time [s].
        estop: sources of the emergency stop that call now, with the reason.
        stopped: somebody asked to stop: commands are not followed until somebody enables.
    """

    machine: PowerMachine
    clock: Callable[[], float]
    estop: dict[str, str]
    stopped: bool
    _switching_off: bool

    def refusals(self) -> list[str]:
        """Reasons why the drives must not get power now; empty: they may."""
        raise NotImplementedError

    def enable(self) -> str:
        """Ask for power, or, after `stop`, to follow commands again; the reason why not, empty: granted."""
        if self.machine.powered and self.stopped and not self._switching_off:
            self.stopped, self.machine.reason = False, ""  # what was asked for is taken back
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
        """Come to rest and hold; commands are not followed until `enable`."""
        if not self.machine.powered:
            return f"nothing to stop: {self.machine}"
        self.stopped = True
        self.machine.handle(Event.STOP, self.clock(), "stop was asked for; enable goes on")
        return ""

    def emergency_stop(self, source: str, on: bool, reason: str = "") -> None:
        """Let a source of the emergency stop call or release it; the state stays until `clear_faults`."""
        if on:
            self.estop[source] = reason or f"emergency stop by {source}"
            self.machine.handle(Event.ESTOP, self.clock(), self.estop[source])
        else:
            self.estop.pop(source, None)
