"""Transport `canopen`: CiA 402 drives in cyclic synchronous modes.

A cycle sends commands and SYNC, and receives the samples of that SYNC.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from humanoid_control.errors import ConfigError
from humanoid_control.hardware.can import cia402
from humanoid_control.hardware.can.bus import BUS_KEYS, CanBus, CanFrame, candump, frame_bits, message
from humanoid_control.hardware.can.cia402 import DriveUnits, ProcessData, State, Wish
from humanoid_control.hardware.can.configuration import (
    ABORT_CONNECTION,
    BusSetup,
    DriveSetup,
    HomingObjects,
    Identity,
    Report,
    configure,
    identity_of_eds,
    scan,
)
from humanoid_control.hardware.can.homing import START as HOMING_START
from humanoid_control.hardware.can.homing import DriveHoming
from humanoid_control.hardware.can.node_watch import NodeWatch
from humanoid_control.hardware.transport import (
    ActuatorCommand,
    ActuatorSpec,
    ActuatorState,
    BusSpec,
    BusTraffic,
    GuardSpec,
    HardwareError,
    HomingProgress,
    Mode,
    Silence,
    Transport,
)

START, PRE_OPERATIONAL = 0x01, 0x80  # NMT commands
FIRST_SAMPLES = 1.0  # [s] for process data after the start
STOP_TIME = 0.25  # [s] for moving drives to stop in `close`
AT_REST = 0.02  # [rad/s]
STALL = 0.6  # share of the watchdog after which drives may count this computer as lost
COPIES = 10  # surplus samples that prove two devices with one id
WINDOW_TIME = 0.1  # [s] at full speed: following error at which the drive itself faults
SAFEST = (Silence.STOPS, Silence.HOLDS, Silence.DAMPS, Silence.LIMP, Silence.LAST_COMMAND, Silence.UNKNOWN)


class CanopenTransport(Transport):
    """CiA 402 drives on one CAN bus.

    Attributes:
        watch: node states, heartbeats, emergencies.
    """

    bus_keys: ClassVar[Mapping[str, Any]] = {
        **BUS_KEYS,
        "sync": True,
        "own_id": 127,
        "heartbeat": 0.01,
        "when_silent": "quick_stop",
        "watchdog": True,
        "drive_heartbeat": 0.1,
        "measured_velocity": False,
    }
    actuator_keys: ClassVar[Mapping[str, Any]] = {
        "counts": int,
        "rated_torque": 0.0,
        "speed_unit": "counts",
        "window": 0.0,
        "drive_limits": True,
        "eds": "",
        "vendor": 0,
        "product": 0,
        "revision": 0,
        "serial": 0,
        "brake": False,
        "absolute": True,
    }

    homes = True

    def __init__(self, bus: BusSpec) -> None:
        """Check the bus row and read EDS files.

        Raises:
            ConfigError: if a value is invalid.
        """
        given = {**self.bus_keys, **bus.options}
        self.names = tuple(a.name for a in bus.actuators)
        self.modes = frozenset(cia402.OPERATION_MODE)
        self._spec, self._rows = bus, [{**self.actuator_keys, **a.options} for a in bus.actuators]
        self.bus = CanBus(bus.name, {k: v for k, v in given.items() if k in BUS_KEYS}, bus.where)
        self._check(given)
        second = any(a.mode is not Mode.POSITION for a in bus.actuators)
        beat = max(1, round(float(given["heartbeat"]) / bus.period))
        watchdog = 3 * beat * bus.period if given["watchdog"] else 0.0
        self._setup = BusSetup(
            bus.period, int(given["own_id"]), max(watchdog, 0.003 if watchdog else 0.0), str(given["when_silent"]),
            float(given["drive_heartbeat"]), bool(given["measured_velocity"]), second,
        )  # fmt: skip
        self._sync, self._beat_every = bool(given["sync"]), beat
        self.silence = Silence.STOPS if given["when_silent"] in ("quick_stop", "fault") else Silence.LIMP
        if not watchdog or given["when_silent"] == "nothing":
            self.silence = Silence.UNKNOWN
        self._drives = [_setup_of(a, r) for a, r in zip(bus.actuators, self._rows, strict=True)]
        self._ids = [a.id for a in bus.actuators]
        self.reports: list[Report] = []
        self._restart_data([float(r["rated_torque"]) for r in self._rows])

    def _check(self, given: Mapping[str, Any]) -> None:
        where = self._spec.where or self._spec.name
        if given["when_silent"] not in ABORT_CONNECTION:
            raise ConfigError(f"{where}: when_silent must be one of {', '.join(ABORT_CONNECTION)}")
        if not 1 <= given["own_id"] <= 127 or given["own_id"] in [a.id for a in self._spec.actuators]:
            raise ConfigError(f"{where}: own_id must be in 1 .. 127 and not the id of a drive, got {given['own_id']}")
        for a, row in zip(self._spec.actuators, self._rows, strict=True):
            if not 1 <= a.id <= 127:
                raise ConfigError(f"{a.where or a.name}: id of {a.name} must be in 1 .. 127, got {a.id}")
            if not isinstance(row["counts"], int) or row["counts"] <= 0:
                raise ConfigError(f"{a.where or a.name}: {a.name} needs counts, the encoder counts per turn")
            if row["speed_unit"] not in ("counts", "rpm"):
                raise ConfigError(f"{a.where or a.name}: speed_unit must be counts (per second) or rpm")

    def _restart_data(self, rated: list[float]) -> None:
        """Reset arrays and frames; `rated` torques [N m], 0: unknown."""
        self.data = ProcessData(
            self._ids, units_of(self._spec.actuators, self._rows, rated), self._setup.measured_velocity
        )
        self.watch = NodeWatch(self.names, self._ids, self._setup.heartbeat)
        first = self.data.rpdo1.view(np.uint8).data
        second = self.data.rpdo2.view(np.uint8).data
        self._first = [CanFrame(0x200 + i, first[6 * k : 6 * k + 6]) for k, i in enumerate(self._ids)]
        self._second = [
            CanFrame(0x300 + i, second[6 * k : 6 * k + 6]) for k, i in enumerate(self._ids) if self._setup.second
        ]
        self._sync_frame, self._beat_frame = message(0x80), message(0x700 + self._setup.own_id, b"\x05")
        self._pending, self._beat, self._cycled = False, 0, np.inf
        self._resets: dict[int, int] = {}
        self._homings: dict[int, DriveHoming] = {}
        self._ranges = self.data.units.lower.copy(), self.data.units.upper.copy()
        for k, row in enumerate(self._rows):
            self._set_homed(k, bool(row["absolute"]))
        self._braked: dict[int, bool] = {}
        self._stopping = message_bytes([(0x200 + i, b"\x02" + bytes(5)) for i in self._ids] + [(0x80, b"")])

    # -- the interface ------------------------------------------------------------------------------------------------

    def open(self) -> None:
        self.data.load_kernel()
        self.bus.open()
        try:
            self.reports = configure(self.bus, self._drives, self._setup)
            self.silence = max((r.silence for r in self.reports), key=SAFEST.index)
            rated = [
                float(row["rated_torque"]) or report.rated_torque
                for row, report in zip(self._rows, self.reports, strict=True)
            ]
            self._restart_data(rated)
            self._start(self._ids)
        except HardwareError:
            self.bus.close()
            raise

    def _start(self, ids: list[int]) -> None:
        for i in ids:
            self.bus.send(message(0, bytes((START, i))))
        # a drive may hold the last command of a dead program until SYNC: our own must come first
        self._pending = True
        now = time.monotonic()
        self.watch.begin(ids, now)
        state, end = ActuatorState(len(self.names)), now + FIRST_SAMPLES
        while not self.data.seen.all() and time.monotonic() < end:
            begin = time.monotonic()
            self.read(state, begin + max(0.002, 0.4 * self._spec.period))
            time.sleep(max(0.0, begin + self._spec.period - time.monotonic()))
        if not self.data.seen.all():
            k = int(np.argmin(self.data.seen))
            raise HardwareError(f"{self._label(k)} sends no process data: no SYNC, or it did not start")

    def read(self, state: ActuatorState, until: float) -> None:
        data, bus = self.data, self.bus
        self._take(bus.receive(0.0))  # late frames belong to the previous cycle
        if self._pending:
            self._send_commands()
        self._pending = False
        self._beat -= 1
        if self._beat <= 0 and self._setup.watchdog:
            bus.send(self._beat_frame)
            self._beat = self._beat_every
        now = self._cycled = time.monotonic()
        if self._sync:
            bus.send(self._sync_frame)
        data.begin(now, state)
        while not data.complete and (frames := bus.receive(until)):
            self._take(frames)
        data.decode(state)
        self._check_nodes(state, now)

    def write(self, command: ActuatorCommand) -> None:
        if time.monotonic() - self._cycled > STALL * self._setup.watchdog > 0 and self.data.wish is Wish.ON:
            # after a long pause drives may have stopped by themselves: "enable operation" would restart them
            self.data.steer(Wish.STOP)
        self.data.pack(command)
        if self._second:
            self.data.pack_second(command)
        self._send_commands()
        self._pending = False

    def power(self, on: bool) -> bool:
        wish = Wish.ON if on else Wish.OFF
        self.data.steer(wish)
        self.data.hold()
        self._pending = True
        if on:
            return bool((self.data.state == State.OPERATION_ENABLED).all())
        s = self.data.state
        return bool(((s <= State.SWITCH_ON_DISABLED) | (s >= State.FAULT_REACTION_ACTIVE)).all())

    def quick_stop(self) -> None:
        self.data.steer(Wish.STOP)
        try:
            self._send_commands()
        except HardwareError:  # lost bus: `read` reports it, and the drives stop by themselves
            return

    def clear_faults(self) -> None:
        self._resets = {int(k): 0 for k in np.flatnonzero(self.data.state == State.FAULT)}
        self._pending = True
        lost = self.watch.lost_configuration()
        self.watch.reset()
        self.data.copies[:] = 0
        if lost:
            self._configure_again(lost)

    def _configure_again(self, rows: list[int]) -> None:
        """Reconfigure drives; blocks the cycle."""
        try:
            reports = configure(self.bus, [self._drives[k] for k in rows], self._setup, others=True)
            for k, report in zip(rows, reports, strict=True):
                self.reports[k] = report
            for k in rows:
                self.data.expect(k)
                self._set_homed(k, bool(self._rows[k]["absolute"]))
            self._start([self._ids[k] for k in rows])
        except HardwareError as e:
            self.watch.failed = str(e)

    def close(self) -> None:
        if self.bus.raw is None:
            return
        try:
            if (self.data.state == State.OPERATION_ENABLED).any():
                self._come_to_rest()
            self.data.control[:] = cia402.DISABLE_VOLTAGE
            self._send_commands()
            self.bus.send(self._sync_frame)
            for i in self._ids:
                self.bus.send(message(0, bytes((PRE_OPERATIONAL, i))))
        except HardwareError:  # lost bus
            self.bus.errors += 1
        self.bus.close()

    def _come_to_rest(self) -> None:
        state, end = ActuatorState(len(self.names)), time.monotonic() + STOP_TIME
        for cycle in range(int(STOP_TIME / self._spec.period) + 1):
            self.quick_stop()
            begin = time.monotonic()
            self.read(state, begin + 0.4 * self._spec.period)
            if begin > end or (cycle > 3 and not (np.abs(state.v) > AT_REST).any()):
                return
            time.sleep(max(0.0, begin + self._spec.period - time.monotonic()))

    def trouble(self) -> str:
        if text := self.bus.health():
            return text
        if (self.data.copies > COPIES).any():
            k = int(np.argmax(self.data.copies))
            return f"two devices respond as {self.names[k]} (id {self._ids[k]}): change the id of one"
        return self.watch.trouble() or next((r.refused for r in self.reports if r.refused), "")

    def fault_text(self, code: int) -> str:
        return cia402.fault_text(code)

    def serials(self) -> tuple[str, ...]:
        if not self.reports:
            return ("",) * len(self.names)
        return tuple(str(r.identity.serial) if r.identity.serial else "" for r in self.reports)

    def figures(self) -> dict[str, Any]:
        return {**self.bus.figures(), **self.watch.figures()}

    def traffic(self) -> BusTraffic:
        return BusTraffic(self.bus.sent, self.bus.received, self.bus.errors)

    def brake(self, actuator: int, release: bool) -> bool:
        if not self._rows[actuator]["brake"]:
            return False
        if self._braked.get(actuator) is not (not release):
            self._braked[actuator] = not release
            value = b"\x00" if release else b"\x01"
            self._try_to_send(message(0x600 + self._ids[actuator], b"\x23\xfe\x60\x01" + value + bytes(3)))
        return True

    def home(self, actuator: int, on: bool) -> HomingProgress:
        run = self._homings.get(actuator)
        if not on:
            if run is not None:
                run.abort()
            return HomingProgress.FAILED
        if run is None:
            spec = self._spec.actuators[actuator].homing
            if spec is None or self.data.state[actuator] != State.OPERATION_ENABLED:
                return HomingProgress.FAILED
            self._set_homed(actuator, False)
            run = self._homings[actuator] = DriveHoming(
                self._ids[actuator], self._drives[actuator].mode, *self._torques(actuator, spec.effort)
            )
        if run.over:
            del self._homings[actuator]
        return run.progress if run.over else HomingProgress.RUNNING

    def _torques(self, k: int, effort: float) -> tuple[int, int]:
        """Return torque limits in and after homing [per mille]; -1: unchanged."""
        per_mille, usual = effort * float(self.data.units.torque[k]), self.reports[k].most_torque
        return (round(min(per_mille, usual)), usual) if usual >= 0 and np.isfinite(per_mille) else (-1, -1)

    def _set_homed(self, k: int, homed: bool) -> None:
        """Bound targets unless a homing drive does not know its zero."""
        free = not homed and self._spec.actuators[k].homing is not None
        for bounds, own, most in zip(self.data.units[3:5], self._ranges, (-cia402.INT32, cia402.INT32), strict=True):
            bounds[k] = most if free else own[k]
        self.data.set_homed(k, homed)

    def guard(self) -> GuardSpec | None:
        if self.bus.interface == "virtual":
            return None
        off = message_bytes([(0x200 + i, bytes(6)) for i in self._ids] + [(0x80, b"")])
        arguments = (self.bus.interface, self.bus.channel, self.bus.bitrate, self.bus.port, off.hex())
        return GuardSpec("humanoid_control.hardware.can.guard:CanGuard", arguments, size=len(self._stopping))

    def damping_frame(self, state: ActuatorState) -> bytes:
        return self._stopping

    def frames(self, command: ActuatorCommand) -> list[str]:
        self.data.pack(command)
        if self._second:
            self.data.pack_second(command)
        return [candump(f) for f in (*self._first, *self._second, self._sync_frame)]

    @classmethod
    def bus_load(cls, bus: BusSpec) -> float:
        given = {**cls.bus_keys, **bus.options}
        bits = frame_bits(6) + frame_bits(8) + (frame_bits(4) if given["measured_velocity"] else 0)
        if any(a.mode is not Mode.POSITION for a in bus.actuators):
            bits += frame_bits(6)
        beats = len(bus.actuators) / given["drive_heartbeat"] + 1.0 / max(given["heartbeat"], bus.period)
        per_second = (bits * len(bus.actuators) + frame_bits(0)) / bus.period + beats * frame_bits(1)
        return per_second / given["bitrate"]

    @classmethod
    def scan(cls, options: Mapping[str, Any]) -> list[str]:
        return scan({**cls.bus_keys, **options})

    # -- parts of a cycle ---------------------------------------------------------------------------------------------

    def _label(self, k: int) -> str:
        return f"{self.names[k]} ({self._spec.name} {self._ids[k]})"

    def _try_to_send(self, frame: Any) -> None:
        try:
            self.bus.send(frame)
        except HardwareError:  # lost bus: `read` reports it
            return

    def _send_commands(self) -> None:
        for k, step in list(self._resets.items()):
            self.data.control[k] = cia402.RESET_EDGE[step]
            if step + 1 < len(cia402.RESET_EDGE):
                self._resets[k] = step + 1
            else:
                del self._resets[k]
        for k, run in self._homings.items():
            self.data.target[k] = self.data.position[k]  # no motion when the mode returns
            if run.start and self.data.control[k] == cia402.ENABLE_OPERATION:
                self.data.control[k] |= HOMING_START
            elif not run.start and self.data.control[k] == cia402.ENABLE_OPERATION | HOMING_START:
                self.data.control[k] = cia402.ENABLE_OPERATION
        send = self.bus.send
        for frame in self._first:
            send(frame)
        for frame in self._second:
            send(frame)

    def _take(self, frames: list[Any]) -> None:
        if frames:
            for frame in self.data.take(frames):
                self.watch.take(frame)
                if frame.arbitration_id & 0x780 == 0x580 and self._homings:
                    self._answer_homing(frame)

    def _answer_homing(self, frame: Any) -> None:
        for run in self._homings.values():
            if run.id == frame.arbitration_id & 0x7F:
                run.take(frame.data)

    def _go_on_homing(self, now: float) -> None:
        for k, run in self._homings.items():
            for frame in run.step(int(self.data.status[k]), now):
                self._try_to_send(frame)
            if run.over and run.found:
                self._set_homed(k, True)
            self._pending = True
        for k in [k for k, run in self._homings.items() if run.over and run.aborted]:
            del self._homings[k]

    def _check_nodes(self, state: ActuatorState, now: float) -> None:
        if self._resets:
            self._pending = True
        failed = self.data.state >= State.FAULT_REACTION_ACTIVE
        ask = self.watch.update(failed, now, self.data.changed)
        for k in ask:
            self.bus.send(message(0x600 + self._ids[k], b"\x40\x3f\x60\x00" + bytes(4)))
        state.code[:] = self.watch.codes
        if self._homings:
            self._go_on_homing(now)


def _setup_of(spec: ActuatorSpec, row: Mapping[str, Any]) -> DriveSetup:
    expected = Identity(row["vendor"], row["product"], row["revision"], row["serial"])
    if row["eds"]:
        from_eds = identity_of_eds(row["eds"], spec.id, spec.where or spec.name)
        expected = Identity(*(a or b for a, b in zip(expected, from_eds, strict=True)))
    per_rad = row["counts"] / (2 * np.pi)
    limits, rpm, window = None, 0, 0
    if row["drive_limits"]:
        if np.isfinite([spec.lower, spec.upper]).all():
            limits = (_int32(np.ceil(spec.lower * per_rad)), _int32(np.floor(spec.upper * per_rad)))
        if np.isfinite(spec.velocity):
            rpm = max(1, int(np.ceil(spec.velocity * 60 / (2 * np.pi))))
            window = int(np.ceil((row["window"] or WINDOW_TIME * spec.velocity) * per_rad))
        elif row["window"]:
            window = int(np.ceil(row["window"] * per_rad))
    homing = None
    if spec.homing is not None:
        unit = per_rad if row["speed_unit"] == "counts" else 30 / np.pi
        speeds = (max(1, round(v * unit)) for v in (spec.homing.speed, spec.homing.slow))
        homing = HomingObjects(spec.homing.method, *speeds)
    mode = cia402.OPERATION_MODE.get(spec.mode, 8)
    return DriveSetup(spec.name, spec.id, mode, expected, limits, rpm, window, bool(row["brake"]), homing)


def _int32(value: float) -> int:
    return int(min(max(value, -cia402.INT32), cia402.INT32))


def units_of(specs: tuple[ActuatorSpec, ...], rows: list[dict[str, Any]], rated: list[float]) -> DriveUnits:
    """Return drive units; unknown rated torque: NaN."""
    counts = np.array([r["counts"] / (2 * np.pi) for r in rows])
    speed = np.array([r["counts"] / (2 * np.pi) if r["speed_unit"] == "counts" else 30 / np.pi for r in rows])
    with np.errstate(divide="ignore"):
        torque = np.array([1000.0 / r if r > 0 else np.nan for r in rated])
    most, top = float(cia402.INT32), float(cia402.INT16)
    lower = np.clip(np.ceil([a.lower * c for a, c in zip(specs, counts, strict=True)]), -most, most)
    upper = np.clip(np.floor([a.upper * c for a, c in zip(specs, counts, strict=True)]), -most, most)
    most_speed = np.clip([a.velocity * s for a, s in zip(specs, speed, strict=True)], 0, most)
    efforts = np.array([a.effort * t if t == t else 0.0 for a, t in zip(specs, torque, strict=True)])
    return DriveUnits(counts, speed, torque, lower, upper, np.floor(most_speed), np.floor(np.clip(efforts, 0, top)))


def message_bytes(frames: list[tuple[int, bytes]]) -> bytes:
    """Pack frames for the guardian, 16 bytes each."""
    from humanoid_control.hardware.can.guard import FRAME

    return b"".join(FRAME.pack(i, len(data), data) for i, data in frames)
