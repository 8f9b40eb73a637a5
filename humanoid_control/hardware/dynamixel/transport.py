"""Transport `dynamixel`: servos on a serial port, served by one thread."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import numpy as np

from humanoid_control.errors import ConfigError, first_few
from humanoid_control.hardware.dynamixel import models
from humanoid_control.hardware.dynamixel.frames import REBOOT, cycle_bytes, packet, reply_size
from humanoid_control.hardware.dynamixel.group import STATUS_BYTES, VOLT, Group
from humanoid_control.hardware.dynamixel.port import SerialPort, scan_lines, servos_at_other_rates
from humanoid_control.hardware.dynamixel.servo import MODE_OF, Servo, identify, operating_of
from humanoid_control.hardware.transport import (
    ActuatorCommand,
    ActuatorState,
    BusSpec,
    BusTraffic,
    Flag,
    HardwareError,
    Mode,
    Silence,
    Transport,
)

PATIENCE = 0.004  # [s] for samples, in addition to transmission time
SLOW = 25  # cycles between the slow reads of status, supply and watchdog in turn
LOST_FAST = 3  # incomplete fast sync reads in a row before plain ones are used
WATCHDOG_TRIES = 3  # attempts before a watchdog counts as not accepted
STOP_TIME = 1.0  # [s] for the thread to end
GREATEST_ID = 252


class DynamixelTransport(Transport):
    """Servos on one serial port.

    Operating modes, set by the file as EEPROM changes need torque off: position (one turn), extended (multi-turn),
    current_position (with torque limit `limits: effort`), velocity, current.
    """

    bus_keys: ClassVar[Mapping[str, Any]] = {
        "port": str,
        "baud": 1_000_000,
        "fast_sync_read": True,
        "watchdog": 0.06,
        "profile": False,
    }
    actuator_keys: ClassVar[Mapping[str, Any]] = {"model": 0, "operating": ""}

    def __init__(self, bus: BusSpec) -> None:
        """Check the bus rows.

        Raises:
            ConfigError: if id, baud rate, watchdog or operating mode is invalid.
        """
        given = {**self.bus_keys, **bus.options}
        self.names = tuple(a.name for a in bus.actuators)
        self.modes = frozenset({Mode.POSITION, Mode.VELOCITY, Mode.EFFORT})
        self._bus, self._path, self._baud = bus, str(given["port"]), int(given["baud"])
        self._fast, self._profile = bool(given["fast_sync_read"]), bool(given["profile"])
        self._ticks = round(float(given["watchdog"]) / models.WATCHDOG_UNIT)
        where = bus.where or bus.name
        if not 0 <= self._ticks <= models.MOST_WATCHDOG or (given["watchdog"] and not self._ticks):
            most = models.MOST_WATCHDOG * models.WATCHDOG_UNIT
            raise ConfigError(f"{where}: watchdog must be 0.02 .. {most:g} s, or 0 for none, got {given['watchdog']:g}")
        if 0 < self._ticks * models.WATCHDOG_UNIT < 2 * bus.period:
            raise ConfigError(f"{where}: watchdog {given['watchdog']:g} s is shorter than two cycles of the driver")
        if self._baud <= 0:
            raise ConfigError(f"{where}: baud must be above zero, got {self._baud}")
        for spec in bus.actuators:
            _check_actuator(spec)
        free = any(operating_of(a) in ("velocity", "current") for a in bus.actuators)
        unwatched = Silence.LAST_COMMAND if free else Silence.HOLDS
        self.silence = Silence.STOPS if self._ticks else unwatched
        # without power multi-turn positions are lost
        self._homed = np.array([operating_of(a) == "position" for a in bus.actuators], dtype=bool)
        self._turn = threading.Condition()
        self._thread: threading.Thread | None = None
        self._port: SerialPort | None = None
        self._reset(len(bus.actuators))

    def _reset(self, n: int) -> None:
        """Reset measurements, commands and errors."""
        self._groups: list[Group] = []
        self._pending, self._command = np.full((2, n, 3), np.nan)
        self._new = self._requested = self._closing = False
        self._published, self._received = ActuatorState(n), np.zeros(n, bool)
        self._alert = np.zeros(n, bool)
        self._hold: np.ndarray | None = None
        self._wanted: bool | None = None
        self._sequence: Iterator[None] = iter(())
        self._on = self._gave_power = False
        self._reboot: list[int] = []
        self._trouble = self._gone = ""
        self._cycles = self._lost = self._lost_fast = 0

    # -- the interface ------------------------------------------------------------------------------------------------

    def open(self) -> None:
        self.close()
        self._reset(len(self.names))
        port = SerialPort(self._path, self._baud)
        try:
            servos = identify(port, self._bus, self._ticks > 0, self._profile)
        except OSError as e:
            port.close()
            raise HardwareError(f"{self._path}: disappeared ({e})") from None
        except HardwareError:
            port.close()
            raise
        self._port, self._groups = port, _groups(servos, self._fast)
        self._thread = threading.Thread(target=self._run, name=f"dynamixel {self._bus.name}", daemon=True)
        self._thread.start()

    def read(self, state: ActuatorState, until: float) -> None:
        with self._turn:
            if not self._new:
                self._requested = True
                self._turn.notify_all()
            self._new = False
            while not self._received.any() and not self._gone and (left := until - time.monotonic()) > 0:
                self._turn.wait(left)
            if self._gone:
                raise HardwareError(self._gone)
            state.flags &= ~np.uint8(Flag.FRESH)
            came = self._received
            for name in ActuatorState.FIELDS:
                getattr(state, name)[came] = getattr(self._published, name)[came]
            state.flags[came] |= np.uint8(Flag.FRESH)
            came[:] = False

    def write(self, command: ActuatorCommand) -> None:
        with self._turn:
            if self._gone:
                raise HardwareError(self._gone)
            self._pending[:, 0], self._pending[:, 1], self._pending[:, 2] = command.q, command.v, command.tau
            self._new = self._requested = True
            self._turn.notify_all()

    def power(self, on: bool) -> bool:
        with self._turn:
            if self._wanted is not on:
                self._wanted, self._on = on, False
                self._sequence = self._switch_on() if on else self._switch_off()
                if on:
                    self._hold, self._pending[:] = None, np.nan
            return self._on

    def quick_stop(self) -> None:
        with self._turn:
            if self._hold is None:
                self._hold = self._published.q.copy()
            self._wanted, self._on, self._sequence = None, False, iter(())
            self._requested = True
            self._turn.notify_all()

    def clear_faults(self) -> None:
        with self._turn:
            self._trouble = ""
            failed = np.flatnonzero(self._published.code & 0xFF)
            self._reboot = [self._bus.actuators[k].id for k in failed]

    def close(self) -> None:
        with self._turn:
            self._closing = True
            self._turn.notify_all()
        if self._thread is not None:
            self._thread.join(STOP_TIME)
        self._thread = None
        if self._port is not None:
            self._port.close()
        self._port = None

    def trouble(self) -> str:
        return self._trouble

    def fault_text(self, code: int) -> str:
        return models.fault_text(code)

    def figures(self) -> dict[str, Any]:
        port = self._port
        return {
            "cycles": self._cycles,
            "lost": self._lost,
            "bytes_sent": port.sent if port else 0,
            "bytes_received": port.received if port else 0,
            "fast_sync_read": all(len(g.sample_requests) > 1 for g in self._groups) if self._groups else self._fast,
        }

    def traffic(self) -> BusTraffic:
        port = self._port
        return BusTraffic(port.sent if port else 0, port.received if port else 0, self._lost)

    def frames(self, command: ActuatorCommand) -> list[str]:
        values = np.stack([command.q, command.v, command.tau], axis=1)
        return [bytes(frame).hex(" ") for group in self._groups for frame in group.goal_frames(values)]

    @classmethod
    def bus_load(cls, bus: BusSpec) -> float:
        given = {**cls.bus_keys, **bus.options}
        n = len(bus.actuators)
        slow = (14 + n + reply_size(n, STATUS_BYTES, False)) / SLOW
        return 10 * (cycle_bytes(n, given["fast_sync_read"]) + slow) / given["baud"] / bus.period

    @classmethod
    def scan(cls, options: Mapping[str, Any]) -> list[str]:
        given = {**cls.bus_keys, **options}
        port = SerialPort(str(given["port"]), int(given["baud"]))
        try:
            lines = scan_lines(port.broadcast_ping(), port.baud)
            if not lines:
                for baud, found in servos_at_other_rates(port).items():
                    lines += scan_lines(found, baud)
        except OSError as e:
            raise HardwareError(f"{port.path}: disappeared ({e})") from None
        finally:
            port.close()
        return lines or [f"no response from any servo at {given['port']}"]

    # -- the thread ---------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while self._wait():
                self._cycle()
            if self._gave_power:
                for group in self._groups:
                    for _ in range(2):  # repeated, as a frame without answer may be lost
                        self._write(group.write_all(group.table.torque, b"\x00"))
                    self._write(group.write_all(group.table.watchdog, b"\x00"))
        except Exception as e:  # the driver must learn of any failure
            reason = e if isinstance(e, OSError) else f"{type(e).__name__}: {e}"
            with self._turn:
                self._gone = f"bus {self._bus.name}: {self._path} disappeared ({reason})"
                self._turn.notify_all()

    def _wait(self) -> bool:
        with self._turn:
            while not self._requested and not self._closing:
                self._turn.wait()
            self._requested = False
            self._command[:] = self._pending
            return not self._closing

    def _write(self, data: bytes | memoryview) -> None:
        assert self._port is not None
        self._port.write(data)

    def _cycle(self) -> None:
        """Run goals, samples, one slow read, one step of the power sequence."""
        assert self._port is not None
        self._send_goals()
        for group in self._groups:
            stamp = time.monotonic()
            if self._port.ask(group.samples, PATIENCE):
                self._lost_fast = 0
            elif len(group.sample_requests) > 1:
                self._lost_fast += 1
            group.decode()
            new = group.alerts() & ~self._alert[group.rows]
            self._alert[group.rows] |= group.alerts()
            if new.any():
                self._read_status(group)  # first, so that the driver gets the cause with the fault
            self._publish(group, stamp)
            if self._lost_fast >= LOST_FAST and group.without_fast_reads():
                self._lost_fast = 0
        self._read_slowly()
        self._reboot_failed()
        with self._turn:
            sequence = self._sequence
        next(sequence, None)
        self._cycles += 1

    def _send_goals(self) -> None:
        with self._turn:
            hold, on = self._hold, self._on
        if not on and (hold is None or not self._gave_power):
            return
        for group in self._groups:
            for frame in group.goal_frames(self._command, hold):
                self._write(frame)

    def _publish(self, group: Group, stamp: float) -> None:
        came = group.samples.received
        rows, p = group.rows[came], self._published
        self._lost += int((~came).sum())
        with self._turn:
            p.q[rows], p.v[rows], p.tau[rows] = group.values[came].T
            p.stamp[rows] = stamp
            code = p.code[rows] & ~np.uint32(models.UNREAD_CODE)
            unread = self._alert[rows] & (code & 0xFF == 0)
            p.code[rows] = np.where(unread, code | np.uint32(models.UNREAD_CODE), code)
            self._flag(group.rows)
            self._received[rows] = True
            self._turn.notify_all()

    def _flag(self, rows: np.ndarray) -> None:
        p = self._published
        flags = p.flags[rows] & np.uint8(Flag.ENABLED)
        flags |= np.where(self._homed[rows], np.uint8(Flag.HOMED), np.uint8(0))
        p.flags[rows] = flags | np.where(p.code[rows] != 0, np.uint8(Flag.FAULT), np.uint8(0))

    # -- slow reads ---------------------------------------------------------------------------------------------------

    def _read_slowly(self) -> None:
        at = self._cycles % (3 * SLOW)
        for group in self._groups if at % SLOW == 0 else ():
            (self._read_status, self._read_supply, self._read_watchdog)[at // SLOW](group)

    def _read_status(self, group: Group) -> bool:
        """Read torque and errors; True if all servos have torque."""
        assert self._port is not None
        whole = self._port.ask(group.status, PATIENCE)
        came, p = group.status.received, self._published
        rows = group.rows[came]
        on, errors = group.status.numbers(0, 1)[came], group.status.numbers(6, 1)[came]
        with self._turn:
            p.flags[rows] = (p.flags[rows] & ~np.uint8(Flag.ENABLED)) | np.where(on == 1, np.uint8(Flag.ENABLED), 0)
            kept = p.code[rows] & np.uint32(models.WATCHDOG_CODE)
            p.code[rows] = kept | errors.astype(np.uint32)
            self._alert[rows] &= errors != 0
            self._flag(rows)
        return whole and bool((on == 1).all())

    def _read_supply(self, group: Group) -> None:
        assert self._port is not None
        self._port.ask(group.supply, PATIENCE)
        came, p = group.supply.received, self._published
        rows = group.rows[came]
        with self._turn:
            p.voltage[rows] = VOLT * group.supply.numbers(0, 2)[came]
            p.temperature[rows] = group.supply.numbers(2, 1)[came]

    def _read_watchdog(self, group: Group) -> None:
        assert self._port is not None
        self._port.ask(group.watchdog, PATIENCE)
        came, p = group.watchdog.received, self._published
        rows = group.rows[came]
        tripped = group.watchdog.numbers(0, 1)[came] == models.WATCHDOG_TRIPPED
        with self._turn:
            code = p.code[rows] & ~np.uint32(models.WATCHDOG_CODE)
            p.code[rows] = np.where(tripped, code | np.uint32(models.WATCHDOG_CODE), code)
            self._flag(rows)

    # -- power --------------------------------------------------------------------------------------------------------

    def _switch_on(self) -> Iterator[None]:
        """Step through watchdog, goals, torque; ends if a watchdog is rejected."""
        for group in self._groups:
            self._write(group.write_all(group.table.watchdog, b"\x00"))  # clears a tripped watchdog
        yield
        tries = 0
        while True:  # a frame or its answer may be lost
            for group in self._groups:
                self._write(group.write_all(group.table.profile, self._profile_bytes(group)))
                self._write(group.write_all(group.table.watchdog, bytes([self._ticks])))
            yield
            answered = [self._port.ask(g.watchdog, PATIENCE) for g in self._groups if self._port]
            if all(answered):
                tries += 1
                if not (refused := self._without_watchdog()):
                    break
                if tries == WATCHDOG_TRIES:
                    self._trouble = f"bus watchdog not accepted by {first_few(refused)}"
                    return
        while not np.isfinite(here := self._published.q).all():
            yield
        for group in self._groups:
            for frame in group.goal_frames(self._command, here):
                self._write(frame)
        yield
        self._gave_power = True
        for group in self._groups:
            self._write(group.write_all(group.table.torque, b"\x01"))
        yield
        while True:
            have_torque = [self._read_status(group) for group in self._groups]
            if all(have_torque):
                break
            yield
        with self._turn:
            self._on = self._wanted is True

    def _without_watchdog(self) -> list[str]:
        out = []
        for group in self._groups:
            for row, value in zip(group.rows, group.watchdog.numbers(0, 1), strict=True):
                if value != self._ticks:
                    out.append(f"{self.names[row]} (reads {value}, written {self._ticks})")
        return out

    def _profile_bytes(self, group: Group) -> bytes:
        if not self._profile:
            return bytes(8)
        speed = min(s.velocity[3] for s in group.servos)
        return bytes(4) + int(min(max(speed, 1), 32767)).to_bytes(4, "little")

    def _switch_off(self) -> Iterator[None]:
        while True:
            for group in self._groups:
                self._write(group.write_all(group.table.torque, b"\x00"))
                self._write(group.write_all(group.table.watchdog, b"\x00"))
            yield
            off = True
            for group in self._groups:
                self._read_status(group)
                off &= bool((group.status.received & (group.status.numbers(0, 1) == 0)).all())
            if off:
                break
            yield
        with self._turn:
            self._on = self._wanted is False
            self._hold, self._gave_power = None, False

    def _reboot_failed(self) -> None:
        """Reboot failed servos, the only way to clear hardware errors."""
        with self._turn:
            ids, self._reboot = self._reboot, []
        for servo in ids:
            self._write(packet(servo, REBOOT))


def _groups(servos: list[Servo], fast: bool) -> list[Group]:
    out = []
    for table in (models.X, models.P):
        rows = [k for k, s in enumerate(servos) if s.model.table is table]
        if rows:
            out.append(Group(rows, [servos[k] for k in rows], fast))
    return out


def _check_actuator(spec: Any) -> None:
    where, operating = spec.where or spec.name, operating_of(spec)
    if not 0 <= spec.id <= GREATEST_ID:
        raise ConfigError(f"{where}: id must be 0 .. {GREATEST_ID}, got {spec.id}")
    if operating not in MODE_OF:
        raise ConfigError(f"{where}: operating must be one of {', '.join(MODE_OF)}, got '{operating}'")
    if MODE_OF[operating] is not spec.mode:
        raise ConfigError(f"{where}: operating {operating} does not match mode {spec.mode.name}")
