"""All buses of a robot behind one interface."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np

from humanoid_control.errors import ConfigError
from humanoid_control.hardware.calibration import Zero
from humanoid_control.hardware.guardian import GuardedBus
from humanoid_control.hardware.hardware_file import Bus, Hardware
from humanoid_control.hardware.transmission import Transmission
from humanoid_control.hardware.transport import (
    ActuatorCommand,
    ActuatorState,
    BatteryReading,
    BusTraffic,
    Flag,
    HardwareError,
    HomingProgress,
    Silence,
    Transport,
    transport_class,
)

RETRY = 1.0  # [s] between attempts to reopen a lost bus
RECENT = 1.0  # [s] time constant of the share of lost samples

STILL_TIME = 0.5  # [s] a joint must have been at rest before its zero is set

Record = Callable[[str], None]


class BusFile(Protocol):
    """Hardware file as `Buses` reads it; `rate` [Hz]."""

    @property
    def buses(self) -> tuple[Bus, ...]: ...

    @property
    def actuators(self) -> tuple[str, ...]: ...

    @property
    def rate(self) -> float: ...


class BusReport(NamedTuple):
    """State of one bus for diagnostics.

    Attributes:
        problem: reason why the bus must not move the robot; empty: none.
        lost: missing samples since the start.
        missed: recent share of missing samples.
        battery: None: not measured.
    """

    name: str
    problem: str
    load: float
    lost: int
    missed: float
    traffic: BusTraffic
    battery: BatteryReading | None


class Buses:
    """Transports of a robot and the arrays of all its m actuators.

    Attributes:
        lost: reason by lost bus.
        missed: recent share of missing samples (m,).
        lost_samples: missing samples since the start (m,).
        held: buses that receive no commands.
    """

    def __init__(self, hardware: BusFile, dry_run: bool = False, record: Record | None = None) -> None:
        """Create the transports without opening them.

        Args:
            dry_run: read, but neither write nor power.
            record: called with each frame of a dry run as text.

        Raises:
            HumanoidError: if a transport rejects its row or lacks a package.
        """
        self.names = hardware.actuators
        self.state, self.command = ActuatorState(len(self.names)), ActuatorCommand(len(self.names))
        self.transports: dict[str, Transport] = {}
        self.lost: dict[str, str] = {}
        self.held: set[str] = set()
        self.missed, self.lost_samples = np.zeros(len(self.names)), np.zeros(len(self.names), dtype=int)
        self._loads = [transport_class(bus.transport).bus_load(bus.spec) for bus in hardware.buses]
        self.sent, self._dry, self._record = 0, dry_run, record
        self._views: list[tuple[str, Transport, ActuatorState, ActuatorCommand]] = []
        self._share = 1.0 / (hardware.rate * RECENT)
        self._retried = -np.inf
        first = 0
        for bus in hardware.buses:
            spec = bus.spec
            rows = slice(first, first + len(spec.actuators))
            first = rows.stop
            made: Transport = transport_class(bus.transport)(spec)  # type: ignore[call-arg]
            self.transports[spec.name] = made
            self.command.mode[rows] = [a.mode for a in spec.actuators]
            self._views.append((spec.name, made, self.state.part(rows), self.command.part(rows)))
            missing = {a.mode for a in spec.actuators} - set(made.modes)
            if missing:
                raise HardwareError(f"{spec.where or spec.name}: its drives do not support mode {missing.pop().name}")

    def open(self) -> None:
        """Open all buses, or none.

        Raises:
            HardwareError: if a bus cannot be opened.
        """
        try:
            for transport in self.transports.values():
                transport.open()
        except HardwareError:
            self.close()
            raise
        self.lost.clear()
        self.missed[:] = 0.0

    def close(self) -> None:
        """Switch all drives off and close all buses."""
        for transport in self.transports.values():
            transport.close()

    def read(self, until: float) -> None:
        """Read all buses; actuators of a lost bus are not fresh."""
        for name, transport, state, _ in self._views:
            if name in self.lost:
                state.flags &= ~np.uint8(Flag.FRESH)
                continue
            try:
                transport.read(state, until)
            except HardwareError as e:
                self._lose(name, state, e)
        lost = ~self.state.have(Flag.FRESH)
        # first-order filter of the share of lost samples, time constant RECENT
        self.missed += self._share * (lost - self.missed)
        self.lost_samples += lost

    def write(self, early: bool) -> None:
        """Send the command to buses that write at this end of the cycle (`Transport.early`)."""
        for name, transport, state, command in self._views:
            if transport.early != early or name in self.lost or name in self.held:
                continue
            if self._dry:
                lines = transport.frames(command)
                self.sent += len(lines)
                for line in lines if self._record is not None else ():
                    assert self._record is not None
                    self._record(f"{name} {line}")
                continue
            try:
                transport.write(command)
            except HardwareError as e:
                self._lose(name, state, e)

    def _lose(self, name: str, state: ActuatorState, error: HardwareError) -> None:
        self.lost[name] = str(error)
        state.flags &= ~np.uint8(Flag.FRESH)

    def reopen(self, now: float) -> None:
        """Try to reopen lost buses once a second, without power."""
        if not self.lost or now - self._retried < RETRY:
            return
        self._retried = now
        for name in list(self.lost):
            transport = self.transports[name]
            transport.close()
            try:
                transport.open()
            except HardwareError as e:
                self.lost[name] = str(e)
            else:
                del self.lost[name]

    def power(self, on: bool) -> bool:
        """Step the enable or disable sequence; True when all drives are done."""
        if self._dry:
            return True
        answers = [t.power(on) for name, t in self.transports.items() if name not in self.lost]
        return all(answers) and not self.lost

    def quick_stop(self) -> None:
        """Stop all drives by their own quick stop."""
        if not self._dry:
            for transport in self.transports.values():
                transport.quick_stop()

    def switch_off(self, name: str) -> None:
        """Engage the brakes of one bus and step its disable sequence."""
        transport = self.transports[name]
        for k in range(len(transport.names)):
            transport.brake(k, False)
        transport.power(False)

    def clear_faults(self) -> None:
        """Request all drives to reset their faults."""
        for transport in self.transports.values():
            transport.clear_faults()

    def brakes(self, release: bool) -> bool:
        """Release or engage all brakes; False without brakes."""
        if self._dry:
            return False
        answers = [t.brake(k, release) for t in self.transports.values() for k in range(len(t.names))]
        return any(answers)

    def brake(self, actuator: int, release: bool) -> bool:
        """Release or engage one brake; False without brake."""
        for rows, transport in zip(self._rows(), self.transports.values(), strict=True):
            if rows.start <= actuator < rows.stop:
                return not self._dry and transport.brake(actuator - rows.start, release)
        raise IndexError(actuator)

    def home(self, actuator: int, on: bool) -> HomingProgress:
        """Home one actuator or end its homing, see `Transport.home`."""
        for rows, transport in zip(self._rows(), self.transports.values(), strict=True):
            if rows.start <= actuator < rows.stop:
                return HomingProgress.FAILED if self._dry else transport.home(actuator - rows.start, on)
        raise IndexError(actuator)

    def trouble(self) -> str:
        """Return why a bus must not move the robot; empty: none."""
        asked = {name: t for name, t in self.transports.items() if name not in self.held}
        texts = [f"bus {name}: {text}" for name, t in asked.items() if (text := t.trouble())]
        return "; ".join([*self.lost.values(), *texts])

    def fault_text(self, actuator: int) -> str:
        """Return the fault of an actuator in words."""
        for rows, transport in zip(self._rows(), self.transports.values(), strict=True):
            if rows.start <= actuator < rows.stop:
                return transport.fault_text(int(self.state.code[actuator]))
        raise IndexError(actuator)

    def serials(self) -> dict[str, str]:
        """Return the drives' serial numbers by actuator."""
        found: list[str] = []
        for transport in self.transports.values():
            found += transport.serials()
        return dict(zip(self.names, found, strict=True))

    def guarded(self) -> list[str]:
        """Return buses that do not stop when frames cease."""
        return [name for name, t in self.transports.items() if t.silence is not Silence.STOPS]

    def guards(self) -> list[GuardedBus]:
        """Return guardian recipes of buses that have one."""
        specs = [(name, t.guard()) for name, t in self.transports.items()]
        return [GuardedBus(name, *spec) for name, spec in specs if spec is not None]

    def damping_frames(self, names: Sequence[str]) -> list[bytes]:
        """Return damping frames at the present positions."""
        views = {name: (transport, state) for name, transport, state, _ in self._views}
        return [views[name][0].damping_frame(views[name][1]) for name in names]

    def figures(self) -> dict[str, Any]:
        """Return counters for diagnostics."""
        own = {f"{name} {key}": value for name, t in self.transports.items() for key, value in t.figures().items()}
        missed = {
            f"{name} missed_percent": round(100 * float(self.missed[k].max()), 2)
            for name, k in zip(self.transports, self._rows(), strict=True)
        }
        return {**missed, **own, **({"dry_run_frames": self.sent} if self._dry else {})}

    def reports(self) -> list[BusReport]:
        """Return the state of each bus."""
        out = []
        for (name, transport, state, _), rows, load in zip(self._views, self._rows(), self._loads, strict=True):
            problem = self.lost.get(name) or transport.trouble()
            lost, missed = int(self.lost_samples[rows].sum()), float(self.missed[rows].max(initial=0.0))
            battery = None if name in self.lost else transport.battery(state)
            out.append(BusReport(name, problem, load, lost, missed, transport.traffic(), battery))
        return out

    def _rows(self) -> list[slice]:
        ends = np.cumsum([0, *(len(t.names) for t in self.transports.values())]).tolist()
        return [slice(a, b) for a, b in pairwise(ends)]


def new_zeros(
    hardware: Hardware, transmission: Transmission, buses: Buses, angles: Mapping[str, float], still: np.ndarray
) -> dict[str, Zero]:
    """Return actuator zeros of joints held in a jig.

    Args:
        angles: present angle by joint [rad].
        still: measured, and at rest for STILL_TIME (n,).

    Raises:
        ConfigError: if a joint moves or is not measured.
    """
    names = list(hardware.names)
    q = np.full(len(names), np.nan)
    for name, angle in angles.items():
        if not still[names.index(name)]:
            raise ConfigError(f"{name} is not measured, or has not been at rest for {STILL_TIME:g} s")
        q[names.index(name)] = angle
    offsets: dict[int, float] = transmission.linkage_offsets(q, buses.state)
    for name in angles:
        if name in hardware.gears:
            offsets |= transmission.zero_offsets(names.index(name), q[names.index(name)], buses.state)
    serials, today = buses.serials(), datetime.now(timezone.utc).isoformat(timespec="seconds")
    return {buses.names[k]: Zero(z, "jig", today, 0.0, serials[buses.names[k]]) for k, z in offsets.items()}
