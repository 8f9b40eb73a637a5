"""Transports: the actuators of one bus behind one interface, as arrays that are allocated once.

A transport speaks the protocol of its drives and nothing more: limits, interpolation and the state machine are above
it and the same for all. It is a class that inherits from `Transport` and is named in `TRANSPORTS`.

```python
state, command = ActuatorState(len(transport.names)), ActuatorCommand(len(transport.names))
transport.open()  # raises HardwareError; no power
while not transport.power(True):  # one step of the drives' own enable sequence per cycle
    transport.read(state, until=time.monotonic() + 0.001)
    transport.write(command)
```
"""

from __future__ import annotations

import enum
import importlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from humanoid_control.errors import HumanoidError, UnknownNameError, missing_package
from humanoid_control.kinematics.joint_state import ImuReading


class HardwareError(HumanoidError):
    """A bus or a device that cannot be used: names the bus, the device, what was expected and what was found."""


class Silence(enum.Enum):
    """Behaviour of drives that receive no more frames, as their documents say or the configuration written sets it."""

    STOPS = "stop by themselves and hold, or brake"
    HOLDS = "hold the last position"
    DAMPS = "go passive with damping"
    LIMP = "switch off: the joint falls"
    LAST_COMMAND = "go on with the last command, also a torque"
    UNKNOWN = "not known"


class Mode(enum.IntEnum):
    """Quantity that an actuator controls; IMPEDANCE: tau + kp (q - q_measured) + kd (v - v_measured)."""

    POSITION = 0
    VELOCITY = 1
    EFFORT = 2
    IMPEDANCE = 3


class Flag(enum.IntFlag):
    """Flags of one actuator in `ActuatorState.flags`.

    FRESH: a sample came in the last `read`. ENABLED: the drive has power on its motor. FAULT: the drive reports a
    fault, see `code`. WARNING: it reports a warning. LIMIT: it clips the command, or a limit switch is pressed.
    HOMED: its encoder knows the zero.
    """

    FRESH = 1
    ENABLED = 2
    FAULT = 4
    WARNING = 8
    LIMIT = 16
    HOMED = 32


class ActuatorState:
    """Measured state of n actuators, at the actuator side of gears; NaN: not measured.

    Attributes:
        q: (n,) [rad]. v: (n,) [rad/s]. tau: (n,) [N m].
        temperature: (n,) [deg C]. voltage: (n,) of the supply [V].
        stamp: (n,) monotonic time at which the sample was taken [s].
        code: (n,) uint32, the drive's own fault code; 0: none.
        flags: (n,) uint8, see `Flag`.
    """

    FIELDS = ("q", "v", "tau", "temperature", "voltage", "stamp", "code", "flags")
    __slots__ = FIELDS

    def __init__(self, n: int) -> None:
        self.q, self.v, self.tau, self.temperature, self.voltage, self.stamp = np.full((6, n), np.nan)
        self.code, self.flags = np.zeros(n, np.uint32), np.zeros(n, np.uint8)

    def part(self, rows: slice) -> ActuatorState:
        """The actuators of one bus: views of the same memory."""
        view = object.__new__(ActuatorState)
        for name in self.FIELDS:
            setattr(view, name, getattr(self, name)[rows])
        return view

    def have(self, flag: Flag) -> np.ndarray:
        """(n,) True where a flag is set."""
        return (self.flags & int(flag)) != 0


class ActuatorCommand:
    """Command for n actuators, at the actuator side of gears; always finite.

    Attributes:
        q: (n,) [rad]. v: (n,) [rad/s]. tau: (n,) [N m], feed-forward, or the torque itself in EFFORT.
        kp: (n,) [N m/rad]. kd: (n,) [N m s/rad]; both for IMPEDANCE only.
        mode: (n,) int8, see `Mode`.
    """

    FIELDS = ("q", "v", "tau", "kp", "kd", "mode")
    __slots__ = FIELDS

    def __init__(self, n: int) -> None:
        self.q, self.v, self.tau, self.kp, self.kd = np.zeros((5, n))
        self.mode = np.zeros(n, np.int8)

    def part(self, rows: slice) -> ActuatorCommand:
        """The actuators of one bus: views of the same memory."""
        view = object.__new__(ActuatorCommand)
        for name in self.FIELDS:
            setattr(view, name, getattr(self, name)[rows])
        return view


# -------- What a transport is made of


@dataclass(frozen=True)
class HomingSpec:
    """Way in which a drive looks for its zero, at the actuator side of the gear; there its encoder reads 0 then.

    Attributes:
        method: number of CiA 402 (object 0x6098): 17, 18 lower and upper limit switch; 35, 37 here; below zero the
            maker's own, often hard stops.
        speed, slow: to look with, and to come back with [rad/s].
        effort: torque at which a hard stop is felt, and that is not exceeded meanwhile [N m]; infinite: the drive's.
    """

    method: int
    speed: float
    slow: float
    effort: float = np.inf


@dataclass(frozen=True)
class ActuatorSpec:
    """One actuator as the hardware file gives it, in SI units at its own side of the gear.

    Attributes:
        name: of the joint that it moves, or of the motor of a mechanism that moves several.
        id: its address on the bus.
        mode: it is commanded in.
        lower, upper: range [rad]. velocity: limit [rad/s]. effort: limit [N m].
        kp, kd: gains for IMPEDANCE [N m/rad], [N m s/rad].
        options: further keys of its row, those of `Transport.actuator_keys`.
        where: file and line, for messages.
        homing: of its drive; None: it needs none, or cannot.
    """

    name: str
    id: int
    mode: Mode = Mode.POSITION
    lower: float = -np.inf
    upper: float = np.inf
    velocity: float = np.inf
    effort: float = np.inf
    kp: float = 0.0
    kd: float = 0.0
    options: Mapping[str, Any] = field(default_factory=dict)
    where: str = ""
    homing: HomingSpec | None = None


@dataclass(frozen=True)
class BusSpec:
    """One bus as the hardware file gives it.

    Attributes:
        name: of the bus. actuators: on it, in the order of all arrays.
        period: of the driver's cycle [s].
        options: further keys of its row, those of `Transport.bus_keys`.
        where: file and line, for messages.
    """

    name: str
    actuators: tuple[ActuatorSpec, ...]
    period: float = 0.002
    options: Mapping[str, Any] = field(default_factory=dict)
    where: str = ""


class BatteryReading(NamedTuple):
    """Supply of the drives on a bus; NaN: not measured.

    Attributes:
        voltage: [V]. current: below zero while the battery is discharged [A]. charge: share of its capacity, 0 .. 1.
        temperature: [deg C].
    """

    voltage: float
    current: float = np.nan
    charge: float = np.nan
    temperature: float = np.nan


class BusTraffic(NamedTuple):
    """Traffic of a bus since it was opened.

    Attributes:
        sent, received: frames or messages; of a serial port: bytes. errors: those that were lost or damaged, and of
            the bus itself.
    """

    sent: int = 0
    received: int = 0
    errors: int = 0


class GuardSpec(NamedTuple):
    """Recipe by which the guardian process damps the drives when the driver is gone.

    The guardian imports `factory` ("module:name"), which must not need more than the standard library and the
    transport's own encoder, and calls it with `arguments`. The object that it gets has `damp(frame: bytes)`, called at
    100 Hz with the last bytes of `Transport.damping_frame`, `off()` at the end, and `close()`.

    Attributes:
        factory: as above. arguments: strings and numbers, or lists of them (they travel as JSON).
        descriptors: open files that the guardian inherits; the factory gets them under the same numbers.
        size: largest size of a damping frame [bytes].
    """

    factory: str
    arguments: tuple[Any, ...] = ()
    descriptors: tuple[int, ...] = ()
    size: int = 2048


class HomingProgress(enum.Enum):
    """What has become of a drive that looks for its zero."""

    RUNNING = "it moves, or is about to"
    DONE = "it knows its zero, and follows commands again"
    FAILED = "it did not find it, or cannot look for it"


class Transport(Protocol):
    """Actuators of one bus. Neither `read` nor `write` allocates more than its frames, or waits for anything else.

    A class is made from a `BusSpec` alone and opens nothing before `open`.

    Attributes:
        bus_keys, actuator_keys: further keys that rows of the hardware file may have, with their defaults; a default
            that is a type is a key that must be given.
        names: of the actuators, in the order of all arrays.
        silence: behaviour of the drives when frames cease.
        modes: that the drives offer.
        homes: drives can look for their zeros by themselves.
        early: the command is written at the end of the cycle that made it, not at the begin of the next one.
    """

    bus_keys: ClassVar[Mapping[str, Any]] = {}
    actuator_keys: ClassVar[Mapping[str, Any]] = {}
    homes: ClassVar[bool] = False
    names: tuple[str, ...]
    silence: Silence
    modes: frozenset[Mode]
    early: bool = False

    def open(self) -> None:
        """Open the bus, identify each device, read its limits back; no power.

        Raises:
            HardwareError: naming bus, device, what was expected and what was found.
        """

    def read(self, state: ActuatorState, until: float) -> None:
        """Take what has come and clear FRESH of the others; silence is no error.

        Args:
            state: of this bus, changed in place.
            until: monotonic time until which to wait for samples of this cycle [s].

        Raises:
            HardwareError: the bus itself is gone.
        """

    def write(self, command: ActuatorCommand) -> None:
        """Send one set of frames; returns at once.

        Raises:
            HardwareError: the bus itself is gone.
        """

    def power(self, on: bool) -> bool:
        """Make one step of the drives' own enable or disable sequence, called every cycle; True when all are there."""

    def quick_stop(self) -> None:
        """Stop the drives by their own means. Idempotent, allowed in any state, and never raises."""

    def clear_faults(self) -> None:
        """Ask the drives to forget faults whose cause is gone; it shows in the states that follow."""

    def close(self) -> None:
        """Switch the drives off and close the bus. Idempotent, and never raises."""

    # -- what a transport may have besides ------------------------------------------------------------------------

    def trouble(self) -> str:
        """Reason why this bus must not move the robot now, other than faults of single drives; empty: none.

        Another program that commands the drives, a bus that is off, a node that left its state by itself.
        """
        return ""

    def fault_text(self, code: int) -> str:
        """The drives' fault code in words."""
        return f"fault 0x{code:X}"

    def serials(self) -> tuple[str, ...]:
        """Serial number of each device, to compare with the calibration; empty where it has none."""
        return ("",) * len(self.names)

    def figures(self) -> dict[str, Any]:
        """Figures of this kind of bus for diagnostics, beside those of `traffic`."""
        return {}

    def traffic(self) -> BusTraffic:
        """What has passed the bus since it was opened."""
        return BusTraffic()

    def battery(self, state: ActuatorState) -> BatteryReading | None:
        """Supply of the drives, None where nothing of it is measured; here the median of what the drives measure.

        Args:
            state: of this bus, as read last.
        """
        known = state.voltage[np.isfinite(state.voltage)]
        return BatteryReading(float(np.median(known))) if known.size else None

    def imu(self) -> tuple[float, ImuReading] | None:
        """Monotonic time and reading of the inertial measurement unit on this bus; None where there is none."""
        return None

    def brake(self, actuator: int, release: bool) -> bool:
        """Release or engage the brake of one actuator; False where it has none."""
        return False

    def home(self, actuator: int, on: bool) -> HomingProgress:
        """Let a drive with power look for its zero, called every cycle; False: let it end that, and follow again."""
        return HomingProgress.FAILED

    def guard(self) -> GuardSpec | None:
        """How to damp the drives without the driver, asked after `open`; None: cannot be done."""
        return None

    def damping_frame(self, state: ActuatorState) -> bytes:
        """Frame that damps the drives where they are now, for the guardian; asked every cycle in powered states."""
        return b""

    def frames(self, command: ActuatorCommand) -> list[str]:
        """Text of the frames that `write` would send, for a dry run."""
        rows = {name: getattr(command, name).tolist() for name in ActuatorCommand.FIELDS}
        return [json.dumps({"names": list(self.names), **rows})]

    @classmethod
    def bus_load(cls, bus: BusSpec) -> float:
        """Share of the bus that the cycle takes, 1 is full; 0 where it does not matter."""
        return 0.0

    @classmethod
    def scan(cls, options: Mapping[str, Any]) -> list[str]:
        """One line for each device that answers on a bus with these options; never powers anything.

        Raises:
            HardwareError: the bus cannot be opened, or this kind of bus cannot be scanned.
        """
        raise HardwareError("this kind of bus cannot be scanned")


TRANSPORTS: dict[str, str] = {
    "canopen": "humanoid_control.hardware.can.drives:CanopenTransport",
    "loopback": "humanoid_control.hardware.loopback:LoopbackTransport",
    "mit_can": "humanoid_control.hardware.can.mit:MitTransport",
    "simulator": "humanoid_control.hardware.simulator:SimulatorTransport",
    "unitree": "humanoid_control.hardware.unitree.link:UnitreeTransport",
    "dynamixel": "humanoid_control.hardware.dynamixel.transport:DynamixelTransport",
}
"""Transports by the name in a hardware file, as 'module:class'."""


def transport_class(name: str) -> type[Transport]:
    """Class of a transport by its name in a hardware file; its module is imported only now.

    Raises:
        UnknownNameError: with the nearest names. EnvironmentProblem: its optional package is not installed.
    """
    if name not in TRANSPORTS:
        raise UnknownNameError("transport", name, TRANSPORTS)
    module, _, cls = TRANSPORTS[name].partition(":")
    try:
        return getattr(importlib.import_module(module), cls)
    except ModuleNotFoundError as e:
        raise missing_package(e) or e from None
