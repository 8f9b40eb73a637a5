"""All buses of a robot as one: opened, read, written, switched; one that is gone is opened again every second."""

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

RETRY = 1.0  # [s] between attempts to open a bus that is gone
RECENT = 1.0  # [s] over which lost samples are counted

STILL_TIME = 0.5  # [s] for which a joint must have been at rest whose zero is set

Record = Callable[[str], None]


class BusFile(Protocol):
    """What `Buses` needs of a hardware file: the buses, the names of all their actuators, the rate [Hz]."""

    @property
    def buses(self) -> tuple[Bus, ...]: ...

    @property
    def actuators(self) -> tuple[str, ...]: ...

    @property
    def rate(self) -> float: ...


class BusReport(NamedTuple):
    """One bus for diagnostics.

    Attributes:
        name: of the bus. problem: why it must not move the robot; empty: nothing. load: share of it that a cycle takes.
        lost: samples that did not come since the start. missed: share of them lately.
        traffic: since it was opened. battery: supply of its drives; None: not measured.
    """

    name: str
    problem: str
    load: float
    lost: int
    missed: float
    traffic: BusTraffic
    battery: BatteryReading | None


class Buses:
    """The transports of a robot and the arrays of all its actuators.

    Attributes:
        names: of the m actuators. state, command: of all of them; transports work on views of these.
        transports: by bus name. lost: reason by bus that is gone; empty: all are there.
        missed: (m,) share of the samples that did not come lately. lost_samples: (m,) how many, since the start.
        sent: frames that a dry run did not send. held: buses to which no commands go.
    """

    def __init__(self, hardware: BusFile, dry_run: bool = False, record: Record | None = None) -> None:
        """Make the transports; nothing is opened.

        Args:
            hardware: of the robot. dry_run: read, but neither write nor power; `record` takes the text of the frames.

        Raises:
            HumanoidError: a bus row that its transport refuses, an optional package that is missing.
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
                raise HardwareError(f"{spec.where or spec.name}: its drives have no mode {missing.pop().name}")

    def open(self) -> None:
        """Open all; none stays open where one cannot.

        Raises:
            HardwareError: as the transport says.
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
        """Take the samples of all buses; a bus that is gone is `lost`, and its actuators are not fresh."""
        for name, transport, state, _ in self._views:
            if name in self.lost:
                state.flags &= ~np.uint8(Flag.FRESH)
                continue
            try:
                transport.read(state, until)
            except HardwareError as e:
                self._lose(name, state, e)
        lost = ~self.state.have(Flag.FRESH)
        self.missed += self._share * (lost - self.missed)
        self.lost_samples += lost

    def write(self, early: bool) -> None:
        """Send the command to the buses that want it at this end of the cycle."""
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
        """Try to open what is gone, once a second; never gives power."""
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
        """One step of the drives' enable or disable sequence on each bus; True when all are there."""
        if self._dry:
            return True
        answers = [t.power(on) for name, t in self.transports.items() if name not in self.lost]
        return all(answers) and not self.lost

    def quick_stop(self) -> None:
        """Stop all drives by their own means."""
        if not self._dry:
            for transport in self.transports.values():
                transport.quick_stop()

    def switch_off(self, name: str) -> None:
        """Brakes, and one step of the drives' disable sequence, on one bus."""
        transport = self.transports[name]
        for k in range(len(transport.names)):
            transport.brake(k, False)
        transport.power(False)

    def clear_faults(self) -> None:
        """Ask all drives to forget their faults."""
        for transport in self.transports.values():
            transport.clear_faults()

    def brakes(self, release: bool) -> bool:
        """Release or engage all brakes; False where the robot has none."""
        if self._dry:
            return False
        answers = [t.brake(k, release) for t in self.transports.values() for k in range(len(t.names))]
        return any(answers)

    def brake(self, actuator: int, release: bool) -> bool:
        """Release or engage the brake of one actuator; False where it has none."""
        for rows, transport in zip(self._rows(), self.transports.values(), strict=True):
            if rows.start <= actuator < rows.stop:
                return not self._dry and transport.brake(actuator - rows.start, release)
        raise IndexError(actuator)

    def home(self, actuator: int, on: bool) -> HomingProgress:
        """Let the drive of an actuator look for its zero, or end that; see `Transport.home`."""
        for rows, transport in zip(self._rows(), self.transports.values(), strict=True):
            if rows.start <= actuator < rows.stop:
                return HomingProgress.FAILED if self._dry else transport.home(actuator - rows.start, on)
        raise IndexError(actuator)

    def trouble(self) -> str:
        """Reason why a bus must not move the robot now; empty: none."""
        asked = {name: t for name, t in self.transports.items() if name not in self.held}
        texts = [f"bus {name}: {text}" for name, t in asked.items() if (text := t.trouble())]
        return "; ".join([*self.lost.values(), *texts])

    def fault_text(self, actuator: int) -> str:
        """The fault of an actuator in the words of its drive."""
        for rows, transport in zip(self._rows(), self.transports.values(), strict=True):
            if rows.start <= actuator < rows.stop:
                return transport.fault_text(int(self.state.code[actuator]))
        raise IndexError(actuator)

    def serials(self) -> dict[str, str]:
        """Serial number of each actuator's drive."""
        found: list[str] = []
        for transport in self.transports.values():
            found += transport.serials()
        return dict(zip(self.names, found, strict=True))

    def guarded(self) -> list[str]:
        """Buses whose drives do not stop by themselves when frames cease."""
        return [name for name, t in self.transports.items() if t.silence is not Silence.STOPS]

    def guards(self) -> list[GuardedBus]:
        """What a guardian needs to damp each bus without the driver, of those where that can be done."""
        specs = [(name, t.guard()) for name, t in self.transports.items()]
        return [GuardedBus(name, *spec) for name, spec in specs if spec is not None]

    def damping_frames(self, names: Sequence[str]) -> list[bytes]:
        """Frames that damp the drives of these buses where they are now."""
        views = {name: (transport, state) for name, transport, state, _ in self._views}
        return [views[name][0].damping_frame(views[name][1]) for name in names]

    def figures(self) -> dict[str, Any]:
        """Counters of all buses for diagnostics."""
        own = {f"{name} {key}": value for name, t in self.transports.items() for key, value in t.figures().items()}
        missed = {
            f"{name} missed_percent": round(100 * float(self.missed[k].max()), 2)
            for name, k in zip(self.transports, self._rows(), strict=True)
        }
        return {**missed, **own, **({"dry_run_frames": self.sent} if self._dry else {})}

    def reports(self) -> list[BusReport]:
        """Each bus as it is now."""
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
    """Zeros of the actuators of joints that are at these angles now [rad], in a jig.

    Args:
        hardware, transmission, buses: of the robot. angles: by joint. still: (n,) at rest for STILL_TIME, and measured.

    Raises:
        ConfigError: a joint moves or is not measured.
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
