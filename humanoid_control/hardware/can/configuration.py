"""SDO configuration of CiA 402 drives; every written value is read back."""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import can
import canopen
import numpy as np
from canopen.sdo.exceptions import SdoAbortedError, SdoError

from humanoid_control.errors import ConfigError
from humanoid_control.hardware.can import cia402
from humanoid_control.hardware.can.bus import BUS_KEYS, CanBus, message, one_line
from humanoid_control.hardware.transport import HardwareError, Silence

ROLL_CALL, AFTER = 0.5, 0.02  # [s] for the answers of all drives, and for a second answer of one
ANSWER = 1.0  # [s] for any other answer; some drives write to memory first
ANSWER_TIME = 0.3  # [s] for devices in a scan
HOMING_MODE = 6
DRIVE = 402  # profile: low half of object 0x1000
NOTIFIER = 0.02  # [s] for the receiving thread to end
NOT_VALID, NO_RTR = 1 << 31, 1 << 30  # bits of the identifier of a process data object
NOT_THERE = (0x06020000, 0x06090011)  # abort codes: no such object, no such subindex
OPTION_CODES = {0x605A: "quick stop", 0x605C: "disable operation", 0x605E: "fault reaction"}
ABORT_CONNECTION = {"quick_stop": 3, "disable_voltage": 2, "fault": 1, "nothing": 0}
"""Word in a hardware file -> value of object 0x6007: reaction of a drive to the loss of our heartbeat."""


class Identity(NamedTuple):
    """Object 0x1018; zero entries of an expected identity are not compared."""

    vendor: int = 0
    product: int = 0
    revision: int = 0
    serial: int = 0

    def agrees(self, found: Identity) -> bool:
        """Return True if `found` matches this expected identity."""
        return all(want in (0, have) for want, have in zip(self, found, strict=True))

    def short(self, expected: Identity) -> str:
        """Format the compared entries."""
        pairs = zip(self, (True, True, expected.revision, expected.serial), strict=True)
        return "/".join(f"0x{value:X}" for value, shown in pairs if shown)


@dataclass(frozen=True)
class DriveSetup:
    """Configuration of one drive.

    Attributes:
        range: [counts]; None: not set.
        rpm: largest speed [1/min]; 0: not set.
        window: following error [counts]; 0: not set.
        brake: the first digital output drives a brake.
    """

    name: str
    id: int
    mode: int
    expected: Identity
    range: tuple[int, int] | None = None
    rpm: int = 0
    window: int = 0
    brake: bool = False
    homing: HomingObjects | None = None


@dataclass(frozen=True)
class BusSetup:
    """Common configuration of all drives of a bus.

    Attributes:
        period: SYNC period [s].
        watchdog: permitted silence of our heartbeat [s]; 0: unlimited.
        when_silent: key of ABORT_CONNECTION.
        heartbeat: heartbeat period of the drives [s].
    """

    period: float
    own_id: int
    watchdog: float
    when_silent: str
    heartbeat: float
    measured_velocity: bool = False
    second: bool = False


class HomingObjects(NamedTuple):
    """Objects 0x6098, 0x6099: method, search and return speed [drive's unit]."""

    method: int
    speed: int
    slow: int


class Report(NamedTuple):
    """Properties reported by a drive.

    Attributes:
        rated_torque: [N m]; 0: not reported.
        options: option codes by object.
        most_torque: object 0x6072 of homing drives [per mille]; -1: not known.
    """

    identity: Identity
    rated_torque: float
    silence: Silence
    refused: str
    options: Mapping[int, int]
    most_torque: int = -1


def identity_of_eds(path: str, id: int, where: str) -> Identity:
    """Read the identity in an EDS.

    Raises:
        ConfigError: if the file is unreadable or lacks a needed object.
    """
    try:
        od = canopen.import_od(path, id)
    except Exception as e:  # the parser raises exceptions of any type
        raise ConfigError(f"{where}: {path} cannot be read: {one_line(e)}") from None
    missing = [f"0x{i:04X}" for i in (0x6040, 0x6041, 0x6060, 0x6064, 0x607A, 0x1600, 0x1A00) if i not in od]
    if missing:
        raise ConfigError(f"{where}: {path} is not a drive for cyclic positions: it lacks {', '.join(missing)}")
    info = od.device_information
    return Identity(info.vendor_number or 0, info.product_number or 0, info.revision_number or 0)


@contextmanager
def network_on(bus: CanBus, setup: BusSetup, beat: bool) -> Iterator[canopen.Network]:
    """Open canopen objects on a bus; `beat`: keep our heartbeat."""
    if bus.raw is None:
        raise HardwareError(f"bus {bus.name}: closed")
    network = canopen.Network(bus.raw)
    network.NOTIFIER_CYCLE = NOTIFIER
    beats = None
    try:
        network.connect()
        if setup.watchdog and beat:
            beats = bus.raw.send_periodic(message(0x700 + setup.own_id, b"\x05"), setup.watchdog / 3)
        yield network
    except (can.CanError, OSError) as e:
        raise HardwareError(f"bus {bus.name}: {bus.channel}: {one_line(e)}") from None
    finally:
        if beats is not None:
            beats.stop()
        if network.notifier is not None:
            network.notifier.stop(5.0)


def roll_call(bus: CanBus, network: canopen.Network, setups: Sequence[DriveSetup]) -> None:
    """Check that all drives answer.

    Raises:
        HardwareError: if a drive is silent, or two share an id.
    """
    answers = {s.id: 0 for s in setups}
    name = {s.id: s.name for s in setups}

    def answered(cob_id: int, data: bytearray, stamp: float) -> None:
        answers[cob_id - 0x580] += 1

    for i in answers:
        network.subscribe(0x580 + i, answered)
    try:
        for i in answers:
            network.send_message(0x600 + i, bytes((0x40, 0x00, 0x10, 0, 0, 0, 0, 0)))
        _wait(lambda: all(answers.values()), ROLL_CALL + 0.01 * len(answers))
        _wait(lambda: False, AFTER)
    finally:
        for i in answers:
            network.unsubscribe(0x580 + i, answered)
    if lost := [f"{name[i]} ({bus.name} {i})" for i, n in answers.items() if n == 0]:
        more = f" and {len(lost) - 4} more" if len(lost) > 4 else ""
        there = [str(i) for i, n in answers.items() if n]
        have = f"; found: {', '.join(there[:8])}" if there else ""
        raise HardwareError(f"no response from {', '.join(lost[:4])}{more}{have}; check power, wires and bitrate")
    if twice := [i for i, n in answers.items() if n > 1]:
        raise HardwareError(f"two devices respond as {name[twice[0]]} ({bus.name} {twice[0]}): change the id of one")


def _wait(done: Any, seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end and not done():
        time.sleep(0.002)


class Sdo:
    """SDO access to one drive; errors name it."""

    def __init__(self, network: canopen.Network, bus: str, setup: DriveSetup) -> None:
        node = network.add_node(setup.id, canopen.ObjectDictionary())
        node.sdo.RESPONSE_TIMEOUT = ANSWER
        self.node, self.who = node, f"{setup.name} ({bus} {setup.id})"

    def read(self, index: int, sub: int, kind: str, default: int | None = None) -> int:
        """Read a number; `default` if the object does not exist.

        Args:
            kind: format of `struct`.

        Raises:
            HardwareError: if there is no answer or the drive refuses.
        """
        try:
            data = self.node.sdo.upload(index, sub)
            size = struct.calcsize(kind)
            return struct.unpack("<" + kind, bytes(data[:size]).ljust(size, b"\0"))[0]
        except SdoAbortedError as e:
            if default is not None and e.code in NOT_THERE:
                return default
            raise self._error(index, sub, e) from None
        except SdoError as e:
            raise self._error(index, sub, e) from None

    def write(self, index: int, sub: int, kind: str, value: int, what: str = "") -> None:
        """Write a number and read it back.

        Args:
            kind: format of `struct`.

        Raises:
            HardwareError: if the drive does not answer, refuses or changes it.
        """
        try:
            self.node.sdo.download(index, sub, struct.pack("<" + kind, value))
        except SdoError as e:
            raise self._error(index, sub, e, what) from None
        if (found := self.read(index, sub, kind)) != value:
            raise HardwareError(f"{self.who}: {place(index, sub)} {what} is {found} after writing {value}")

    def offer(self, index: int, sub: int, kind: str, value: int) -> bool:
        """Write a number; False if the drive does not accept it."""
        try:
            self.write(index, sub, kind, value)
        except HardwareError:
            return False
        return True

    def _error(self, index: int, sub: int, error: Exception, what: str = "") -> HardwareError:
        return HardwareError(f"{self.who}: {place(index, sub)} {what + ' ' if what else ''}refused: {one_line(error)}")


def place(index: int, sub: int) -> str:
    """Return an object in usual notation."""
    return f"0x{index:04X}:{sub}" if sub else f"0x{index:04X}"


def configure(bus: CanBus, drives: Sequence[DriveSetup], setup: BusSetup, others: bool = False) -> list[Report]:
    """Identify all drives, then configure them; they end pre-operational, without power.

    Args:
        bus: open, without other readers.
        others: keep our heartbeat for other running drives; else it would keep drives of a dead program alive.

    Raises:
        HardwareError: at the first mismatch.
    """
    with network_on(bus, setup, beat=others) as network:
        roll_call(bus, network, drives)
        sdos = [Sdo(network, bus.name, d) for d in drives]
        found = [_identify(sdo, d) for sdo, d in zip(sdos, drives, strict=True)]
        return [_configure_one(sdo, d, setup, f) for sdo, d, f in zip(sdos, drives, found, strict=True)]


def _identify(sdo: Sdo, drive: DriveSetup) -> Identity:
    found = Identity(*(sdo.read(0x1018, sub, "I", 0) for sub in (1, 2, 3, 4)))
    if not drive.expected.agrees(found):
        want = drive.expected
        raise HardwareError(f"{sdo.who}: identity {found.short(want)}, expected {want.short(want)}")
    if cia402.state_of(sdo.read(0x6041, 0, "H")) is cia402.State.OPERATION_ENABLED:
        raise HardwareError(f"{sdo.who}: was powered by another program: switch it off first")
    return found


def _configure_one(sdo: Sdo, drive: DriveSetup, setup: BusSetup, found: Identity) -> Report:
    sdo.node.nmt.state = "PRE-OPERATIONAL"
    modes = sdo.read(0x6502, 0, "I", 0xFFFFFFFF)
    if not modes >> (drive.mode - 1) & 1:
        raise HardwareError(f"{sdo.who}: its drive does not support mode {drive.mode} (0x6502 is 0x{modes:X})")
    _write_limits(sdo, drive)
    sdo.write(0x6060, 0, "b", drive.mode, "mode")
    value, exponent = period_of(setup.period)
    timed = sdo.offer(0x60C2, 2, "b", exponent) and sdo.offer(0x60C2, 1, "B", value)
    if not timed and not sdo.offer(0x1006, 0, "I", round(setup.period * 1e6)):
        raise HardwareError(f"{sdo.who}: does not accept a period of {1000 * setup.period:g} ms (0x60C2, 0x1006)")
    if drive.brake:
        sdo.write(0x60FE, 2, "I", 1, "mask of the brake")
    sdo.write(0x1017, 0, "H", round(1000 * setup.heartbeat), "heartbeat")
    _write_pdos(sdo, drive, setup)
    silence, refused, options = _write_watchdog(sdo, setup)
    most = _write_homing(sdo, drive.homing, modes) if drive.homing is not None else -1
    return Report(found, sdo.read(0x6076, 0, "I", 0) / 1000, silence, refused, options, most)


def _write_homing(sdo: Sdo, homing: HomingObjects, modes: int) -> int:
    """Write homing objects; return the usual torque limit [per mille], or -1."""
    if not modes >> (HOMING_MODE - 1) & 1:
        raise HardwareError(f"{sdo.who}: its drive does not support homing (0x6502 is 0x{modes:X})")
    sdo.write(0x6098, 0, "b", homing.method, "homing method")
    sdo.write(0x6099, 1, "I", homing.speed, "homing speed")
    sdo.write(0x6099, 2, "I", homing.slow, "slow homing speed")
    # the sign of a home offset differs between drives, so this side applies the offset
    sdo.write(0x607C, 0, "i", 0, "home offset")
    return sdo.read(0x6072, 0, "H", -1)


def _write_limits(sdo: Sdo, drive: DriveSetup) -> None:
    if drive.range is not None:
        lower, upper = drive.range
        sdo.write(0x607D, 1, "i", lower, "lower limit")
        sdo.write(0x607D, 2, "i", upper, "upper limit")
    if drive.rpm:
        sdo.write(0x6080, 0, "I", drive.rpm, "speed limit")
    if drive.window:
        sdo.write(0x6065, 0, "I", drive.window, "following error window")


def period_of(seconds: float) -> tuple[int, int]:
    """Return object 0x60C2 of a period [s]: value and power of ten."""
    for exponent in (-3, -4, -5):
        value = seconds * 10.0**-exponent
        if round(value) <= 255 and abs(value - round(value)) < 1e-6 and round(value) > 0:
            return round(value), exponent
    exponent = next((e for e in (-5, -4) if seconds * 10.0**-e <= 255), -3)
    return int(np.clip(round(seconds * 10.0**-exponent), 1, 255)), exponent


def _write_pdos(sdo: Sdo, drive: DriveSetup, setup: BusSetup) -> None:
    """Synchronise process data with SYNC; disable unused ones."""
    used = {0x1400: cia402.RPDO1, 0x1800: cia402.TPDO1}
    if setup.second:
        used[0x1401] = cia402.RPDO2
    if setup.measured_velocity:
        used[0x1801] = cia402.TPDO2
    for first, base in ((0x1400, 0x200), (0x1800, 0x180)):
        for k in range(4):
            record, cob_id = first + k, base + 0x100 * k + drive.id
            if record in used:
                _write_pdo(sdo, record, cob_id, cia402.mapping(used[record]))
            elif (old := sdo.read(record, 1, "I", NOT_VALID)) & NOT_VALID == 0:
                sdo.write(record, 1, "I", old | NOT_VALID, "unused process data")


def _write_pdo(sdo: Sdo, record: int, cob_id: int, entries: Sequence[int]) -> None:
    table = record + 0x200
    # CiA 301: a PDO is remapped while its identifier is invalid and it has no entries
    cob_id |= sdo.read(record, 1, "I") & NO_RTR
    sdo.write(record, 1, "I", cob_id | NOT_VALID, "identifier")
    sdo.write(record, 2, "B", 1, "transmission type")
    sdo.write(table, 0, "B", 0, "number of entries")
    for k, entry in enumerate(entries, 1):
        sdo.write(table, k, "I", entry, "mapping")
    sdo.write(table, 0, "B", len(entries), "number of entries")
    sdo.write(record, 1, "I", cob_id, "identifier")
    found = [sdo.read(table, k, "I") for k in range(1, len(entries) + 1)]
    if found != list(entries):
        raise HardwareError(f"{sdo.who}: {place(table, 0)} maps {found} after writing {list(entries)}")


def _write_watchdog(sdo: Sdo, setup: BusSetup) -> tuple[Silence, str, dict[int, int]]:
    """Set the watchdog; return silence behaviour, reason against power, option codes."""
    options = {index: sdo.read(index, 0, "h", -1) for index in OPTION_CODES}
    if not setup.watchdog:
        return Silence.UNKNOWN, "", options
    wanted = ABORT_CONNECTION[setup.when_silent]
    entry = setup.own_id << 16 | round(1000 * setup.watchdog)
    if not sdo.offer(0x1016, 1, "I", entry):
        return Silence.UNKNOWN, f"{sdo.who} does not accept a heartbeat watchdog (0x1016)", options
    if not sdo.offer(0x6007, 0, "h", wanted):
        return Silence.UNKNOWN, f"{sdo.who} does not accept 0x6007 = {wanted} ({setup.when_silent})", options
    return silence_of(wanted, options), "", options


def silence_of(abort_connection: int, options: Mapping[int, int]) -> Silence:
    """Return the silence behaviour of option codes."""
    code = {3: options[0x605A], 2: 0, 1: options[0x605E]}.get(abort_connection, -1)
    if code < 0:
        return Silence.UNKNOWN
    return Silence.STOPS if code else Silence.LIMP


# -------- Scan


def answers(data: Any, request: bytes) -> bool:
    """Return True for an expedited, positive answer."""
    return len(data) == 8 and bytes(data[1:4]) == request[1:4] and data[0] & 0xE0 == 0x40


def scan(options: Mapping[str, Any]) -> list[str]:
    """Return a line for each CANopen device: id, profile, identity.

    Raises:
        HardwareError: if the bus cannot be opened.
    """
    bus = CanBus("scan", {k: v for k, v in options.items() if k in BUS_KEYS})
    bus.open()
    try:
        kinds = _ask(bus, range(1, 128), 0x1000, 0)
        identity = [_ask(bus, kinds, 0x1018, sub) for sub in (1, 2, 4)]
    finally:
        bus.close()
    lines = []
    for i, kind in sorted(kinds.items()):
        vendor, product, serial = (table.get(i, 0) for table in identity)
        what = "drive" if kind & 0xFFFF == DRIVE else f"profile {kind & 0xFFFF}"
        lines.append(f"id {i}: {what}, vendor 0x{vendor:X}, product 0x{product:X}, serial {serial}")
    return lines


def _ask(bus: CanBus, ids: Any, index: int, sub: int) -> dict[int, int]:
    request = struct.pack("<BHB4x", 0x40, index, sub)
    ids = list(ids)
    for i in ids:
        bus.send(message(0x600 + i, request))
    out: dict[int, int] = {}
    end = time.monotonic() + ANSWER_TIME
    while len(out) < len(ids) and time.monotonic() < end:
        for frame in bus.receive(end):
            i = frame.arbitration_id - 0x580
            if i in ids and answers(frame.data, request):
                out[i] = struct.unpack_from("<I", frame.data, 4)[0]
    return out
