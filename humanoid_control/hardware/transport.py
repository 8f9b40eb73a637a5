"""Transports: the actuators of one bus behind one interface, as preallocated arrays.

A transport speaks the protocol of its drives; limits, interpolation and power states are above it. A new one inherits
from `Transport` and has a row in `TRANSPORTS` of this file, name: "module:class". The bus rows of a hardware file name
it.

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
    """Unusable bus or device; names bus, device, expected and found values."""


class Silence(enum.Enum):
    """Behaviour of drives without frames, as documented or configured."""

    STOPS = "stop by themselves and hold, or brake"
    HOLDS = "hold the last position"
    DAMPS = "go passive with damping"
    LIMP = "switch off: the joint falls"
    LAST_COMMAND = "continue the last command, even a torque"
    UNKNOWN = "unknown"


class Mode(enum.IntEnum):
    """Controlled quantity; IMPEDANCE: tau + kp (q - q_measured) + kd (v - v_measured)."""

    POSITION = 0
    VELOCITY = 1
    EFFORT = 2
    IMPEDANCE = 3


class Flag(enum.IntFlag):
    """Flags of one actuator.

    FRESH: sampled in the last `read`. ENABLED: the motor has power. FAULT: see `code`. WARNING: the drive reports a
    warning. LIMIT: the drive clips, or a limit switch is pressed. HOMED: the encoder knows its zero.
    """

    FRESH = 1
    ENABLED = 2
    FAULT = 4
    WARNING = 8
    LIMIT = 16
    HOMED = 32


class ActuatorState:
    """Measured state of n actuators, actuator side; NaN: not measured.

    Arrays (n,): q [rad], v [rad/s], tau [N m], temperature [deg C], voltage of the supply [V].

    Attributes:
        stamp: monotonic sample time (n,) [s].
        code: the drive's fault code (n,) uint32; 0: none.
        flags: see `Flag` (n,) uint8.
    """

    FIELDS = ("q", "v", "tau", "temperature", "voltage", "stamp", "code", "flags")
    __slots__ = FIELDS

    def __init__(self, n: int) -> None:
        self.q, self.v, self.tau, self.temperature, self.voltage, self.stamp = np.full((6, n), np.nan)
        self.code, self.flags = np.zeros(n, np.uint32), np.zeros(n, np.uint8)

    def part(self, rows: slice) -> ActuatorState:
        """Return views of the rows of one bus."""
        view = object.__new__(ActuatorState)
        for name in self.FIELDS:
            setattr(view, name, getattr(self, name)[rows])
        return view

    def have(self, flag: Flag) -> np.ndarray:
        """Return True where the flag is set (n,)."""
        return (self.flags & int(flag)) != 0


class ActuatorCommand:
    """Command for n actuators, actuator side; always finite.

    Arrays (n,): q [rad], v [rad/s], and for IMPEDANCE kp [N m/rad], kd [N m s/rad].

    Attributes:
        tau: feed-forward, or the torque in EFFORT (n,) [N m].
        mode: see `Mode` (n,) int8.
    """

    FIELDS = ("q", "v", "tau", "kp", "kd", "mode")
    __slots__ = FIELDS

    def __init__(self, n: int) -> None:
        self.q, self.v, self.tau, self.kp, self.kd = np.zeros((5, n))
        self.mode = np.zeros(n, np.int8)

    def part(self, rows: slice) -> ActuatorCommand:
        """Return views of the rows of one bus."""
        view = object.__new__(ActuatorCommand)
        for name in self.FIELDS:
            setattr(view, name, getattr(self, name)[rows])
        return view


# -------- What a transport is made of


@dataclass(frozen=True)
class HomingSpec:
    """Homing of a drive, actuator side; the encoder reads 0 at home.

    Attributes:
        method: of CiA 402 (object 0x6098); 17, 18: lower, upper limit switch; 35, 37: present position; below zero:
            vendor's own, often hard stops.
        speed: search speed [rad/s].
        slow: speed of the return [rad/s].
        effort: limit, and threshold of a hard stop [N m]; infinite: the drive's.
    """

    method: int
    speed: float
    slow: float
    effort: float = np.inf


@dataclass(frozen=True)
class ActuatorSpec:
    """Actuator in a hardware file, actuator side: lower, upper [rad], velocity [rad/s], effort [N m], kp [N m/rad], kd
    [N m s/rad].

    Attributes:
        name: joint, or motor of a mechanism with several joints.
        id: bus address.
        options: keys of `Transport.actuator_keys`.
        homing: None: not needed or not supported.
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
    """Bus in a hardware file.

    Attributes:
        period: cycle time of the driver [s].
        options: keys of `Transport.bus_keys`.
    """

    name: str
    actuators: tuple[ActuatorSpec, ...]
    period: float = 0.002
    options: Mapping[str, Any] = field(default_factory=dict)
    where: str = ""


class BatteryReading(NamedTuple):
    """Supply of the drives on a bus; NaN: not measured.

    Attributes:
        voltage: [V].
        current: negative while discharging [A].
        charge: share of the capacity, 0 .. 1.
    """

    voltage: float
    current: float = np.nan
    charge: float = np.nan
    temperature: float = np.nan


class BusTraffic(NamedTuple):
    """Traffic since the bus was opened, in frames or messages (serial port: bytes).

    Attributes:
        errors: lost or damaged, and errors of the bus.
    """

    sent: int = 0
    received: int = 0
    errors: int = 0


class GuardSpec(NamedTuple):
    """Recipe by which the guardian process damps the drives without the driver.

    The guardian imports `factory` ("module:name"; only the standard library and the transport's encoder) and calls it
    with `arguments`. The result has `damp(frame: bytes)`, called at 100 Hz with the last `Transport.damping_frame`,
    `off()` for the end, and `close()`.

    Attributes:
        arguments: JSON values.
        descriptors: files that the guardian inherits under the same numbers.
        size: largest damping frame [bytes].
    """

    factory: str
    arguments: tuple[Any, ...] = ()
    descriptors: tuple[int, ...] = ()
    size: int = 2048


class HomingProgress(enum.Enum):
    """Progress of homing."""

    RUNNING = "moving, or about to move"
    DONE = "zero known; commands are followed again"
    FAILED = "zero not found, or homing not possible"


class Transport(Protocol):
    """Actuators of one bus, created from a `BusSpec` without opening it.

    `read` and `write` allocate only their frames, and wait for nothing else. Required: `open`, `read`, `write`,
    `power`, `quick_stop`, `clear_faults`, `close`, `names`, `silence` and `modes`; everything else has a default.

    Attributes:
        names: actuators, in the order of all arrays.
        silence: behaviour of the drives without frames.
        modes: supported command modes.
        homes: True: can find the zero of its drives.
        bus_keys: keys of a bus row with defaults; a default that is a type: required.
        actuator_keys: keys of an actuator row, likewise.
        early: write at the end of a cycle, not at the start of the next.
    """

    bus_keys: ClassVar[Mapping[str, Any]] = {}
    actuator_keys: ClassVar[Mapping[str, Any]] = {}
    homes: ClassVar[bool] = False
    names: tuple[str, ...]
    silence: Silence
    modes: frozenset[Mode]
    early: bool = False

    def open(self) -> None:
        """Open the bus, identify each device, read back its limits; no power.

        Raises:
            HardwareError: if a device is missing or differs.
        """

    def read(self, state: ActuatorState, until: float) -> None:
        """Update from received samples; clears FRESH of others. Silence is not an error.

        Args:
            until: monotonic deadline for samples of this cycle [s].

        Raises:
            HardwareError: if the bus is lost.
        """

    def write(self, command: ActuatorCommand) -> None:
        """Send one set of frames without waiting.

        Raises:
            HardwareError: if the bus is lost.
        """

    def power(self, on: bool) -> bool:
        """Step the enable or disable sequence, every cycle; True when all are done."""

    def quick_stop(self) -> None:
        """Stop the drives by their own means; idempotent, valid in any state, never raises."""

    def clear_faults(self) -> None:
        """Request the drives to reset faults; later states show the result."""

    def close(self) -> None:
        """Switch the drives off and close the bus; idempotent, never raises."""

    # -- optional parts of a transport ------------------------------------------------------------------------------

    def trouble(self) -> str:
        """Return why this bus must not move the robot, apart from drive faults; empty: none."""
        return ""

    def fault_text(self, code: int) -> str:
        """Return a fault code in words."""
        return f"fault 0x{code:X}"

    def serials(self) -> tuple[str, ...]:
        """Return serial numbers for comparison with the calibration; empty: none."""
        return ("",) * len(self.names)

    def figures(self) -> dict[str, Any]:
        """Return diagnostics of this kind of bus, in addition to `traffic`."""
        return {}

    def traffic(self) -> BusTraffic:
        """Return the traffic since `open`."""
        return BusTraffic()

    def battery(self, state: ActuatorState) -> BatteryReading | None:
        """Return the supply (default: median drive voltage); None: not measured."""
        known = state.voltage[np.isfinite(state.voltage)]
        return BatteryReading(float(np.median(known))) if known.size else None

    def imu(self) -> tuple[float, ImuReading] | None:
        """Return monotonic time [s] and reading of an IMU on this bus; None: no IMU."""
        return None

    def brake(self, actuator: int, release: bool) -> bool:
        """Release or engage one brake; False without brake."""
        return False

    def home(self, actuator: int, on: bool) -> HomingProgress:
        """Home a powered drive, every cycle; `on` False: end."""
        return HomingProgress.FAILED

    def guard(self) -> GuardSpec | None:
        """Return how to damp the drives without the driver; None: not possible."""
        return None

    def damping_frame(self, state: ActuatorState) -> bytes:
        """Return the damping frame at the present positions."""
        return b""

    def frames(self, command: ActuatorCommand) -> list[str]:
        """Return the text of the frames that `write` would send."""
        rows = {name: getattr(command, name).tolist() for name in ActuatorCommand.FIELDS}
        return [json.dumps({"names": list(self.names), **rows})]

    @classmethod
    def bus_load(cls, bus: BusSpec) -> float:
        """Return the share of the bus that the cycle takes (1: full); 0: irrelevant."""
        return 0.0

    @classmethod
    def scan(cls, options: Mapping[str, Any]) -> list[str]:
        """Return a line for each device that answers, without powering it.

        Raises:
            HardwareError: if the bus cannot be opened or scanned.
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
"""Transport name in a hardware file -> 'module:class'."""


def transport_class(name: str) -> type[Transport]:
    """Return a transport class by name, importing its module.

    Raises:
        UnknownNameError: if the name is unknown.
        EnvironmentProblem: if its package is not installed.
    """
    if name not in TRANSPORTS:
        raise UnknownNameError("transport", name, TRANSPORTS)
    module, _, cls = TRANSPORTS[name].partition(":")
    try:
        return getattr(importlib.import_module(module), cls)
    except ModuleNotFoundError as e:
        raise missing_package(e) or e from None
