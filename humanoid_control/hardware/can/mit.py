"""Transport `mit_can`: actuators with the MIT mini-cheetah protocol, e.g. CubeMars AK.

A command has 8 bytes, each value a share of its range:

    position 16 bits | velocity 12 | kp 12 | kd 12 | torque 12,

an answer: id 8 | position 16 | velocity 12 | torque 12 [| temperature 8 | error 8]. Firmware defines the ranges.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np

from humanoid_control.errors import ConfigError, offer_names
from humanoid_control.hardware.can.bus import BUS_KEYS, CanBus, CanFrame, candump, frame_bits, message
from humanoid_control.hardware.can.guard import FRAME
from humanoid_control.hardware.transport import (
    ActuatorCommand,
    ActuatorState,
    BusSpec,
    BusTraffic,
    Flag,
    GuardSpec,
    HardwareError,
    Mode,
    Silence,
    Transport,
)

ENTER, EXIT, ZERO = (b"\xff" * 7 + bytes((last,)) for last in (0xFC, 0xFD, 0xFE))
"""Frames that enable an actuator, disable it, and set its present position as zero."""

MODELS = {
    "mini_cheetah": (12.5, 65.0, 500.0, 5.0, 18.0),
    "AK10-9": (12.5, 50.0, 500.0, 5.0, 65.0),
    "AK60-6": (12.5, 45.0, 500.0, 5.0, 15.0),
    "AK70-10": (12.5, 50.0, 500.0, 5.0, 25.0),
    "AK80-6": (12.5, 76.0, 500.0, 5.0, 12.0),
    "AK80-8": (12.5, 37.5, 500.0, 5.0, 32.0),
    "AK80-9": (12.5, 50.0, 500.0, 5.0, 18.0),
    "AK80-64": (12.5, 8.0, 500.0, 5.0, 144.0),
}
"""Model -> |position| [rad], |velocity| [rad/s], kp [N m/rad], kd [N m s/rad], |torque| [N m]. Firmware versions
differ: check the actuator's manual, and set `ranges` in the hardware file."""

ERRORS = {
    1: "motor too hot", 2: "over-current", 3: "over-voltage", 4: "under-voltage", 5: "encoder",
    6: "power stage too hot", 7: "motor blocked",
}  # fmt: skip
ANSWER_CYCLES = 3  # cycles without an answer before ENTER is repeated
DAMPING = 0.2  # share of the largest kd that damps an actuator


class Ranges(NamedTuple):
    """Ranges of n actuators, (n,) each, as in MODELS."""

    position: np.ndarray
    velocity: np.ndarray
    kp: np.ndarray
    kd: np.ndarray
    torque: np.ndarray


def share(value: np.ndarray, low: np.ndarray, high: np.ndarray, bits: int) -> np.ndarray:
    """Quantise to 2^bits numbers in [low, high], clipped."""
    top = (1 << bits) - 1
    return np.rint(np.clip((value - low) / (high - low), 0.0, 1.0) * top).astype(np.uint64)


def pack_commands(command: ActuatorCommand, ranges: Ranges, out: np.ndarray) -> None:
    """Pack finite commands (n,) into big-endian words `out` (n,) of 8 bytes."""
    r, zero = ranges, np.zeros_like(ranges.kp)
    out[:] = (
        share(command.q, -r.position, r.position, 16) << np.uint64(48)
        | share(command.v, -r.velocity, r.velocity, 12) << np.uint64(36)
        | share(command.kp, zero, r.kp, 12) << np.uint64(24)
        | share(command.kd, zero, r.kd, 12) << np.uint64(12)
        | share(command.tau, -r.torque, r.torque, 12)
    )


class MitTransport(Transport):
    """MIT actuators on one CAN bus.

    Each command is answered. Without power the actuators are polled by EXIT, which keeps them off.
    """

    bus_keys: ClassVar[Mapping[str, Any]] = {**BUS_KEYS, "answer_id": 0, "silence": "UNKNOWN"}
    actuator_keys: ClassVar[Mapping[str, Any]] = {"model": "", "ranges": []}
    early: bool = True

    def __init__(self, bus: BusSpec) -> None:
        """Check the bus row.

        Raises:
            ConfigError: if a value is invalid.
        """
        given = {**self.bus_keys, **bus.options}
        where = bus.where or bus.name
        if given["silence"] not in Silence.__members__:
            raise ConfigError(f"{where}: silence must be one of {', '.join(Silence.__members__)}")
        self.names, self._ids = tuple(a.name for a in bus.actuators), [a.id for a in bus.actuators]
        self.silence, self.modes = Silence[given["silence"]], frozenset((Mode.IMPEDANCE, Mode.EFFORT))
        self.bus = CanBus(bus.name, {k: v for k, v in given.items() if k in BUS_KEYS}, bus.where)
        self.ranges = Ranges(*np.array([_ranges_of(a) for a in bus.actuators]).T.copy())
        self._spec, self._answer_id = bus, int(given["answer_id"])
        r = self.ranges
        self._lower = np.maximum([a.lower for a in bus.actuators], -r.position)
        self._upper = np.minimum([a.upper for a in bus.actuators], r.position)
        self._speed = np.minimum([a.velocity for a in bus.actuators], r.velocity)
        self._torque = np.minimum([a.effort for a in bus.actuators], r.torque)
        n = len(self._ids)
        self._row = {i: k for k, i in enumerate(self._ids)}
        self._words = np.zeros(n, ">u8")
        view = self._words.view(np.uint8).data
        self._frames = [CanFrame(i, view[8 * k : 8 * k + 8]) for k, i in enumerate(self._ids)]
        self._safe = ActuatorCommand(n)
        self._on = self._stopping = False
        self._entered = np.zeros(n, dtype=bool)  # answered since ENTER
        self._cycles_since_enter = np.zeros(n, dtype=int)  # cycles since ENTER
        self._sent_at = np.nan
        self._measured = np.full(n, np.nan)

    def open(self) -> None:
        self.bus.open()
        self._on = self._stopping = False
        self._entered[:] = False
        state, end = ActuatorState(len(self.names)), time.monotonic() + 0.5
        while time.monotonic() < end and np.isnan(state.q).any():
            try:
                self.read(state, time.monotonic() + 0.02)
            except HardwareError:
                self.bus.close()
                raise
        if np.isnan(state.q).any():
            lost = [f"{self.names[k]} ({self._spec.name} {self._ids[k]})" for k in np.flatnonzero(np.isnan(state.q))]
            self.bus.close()
            raise HardwareError(f"no response from {', '.join(lost[:4])}; check power, wires, bitrate and MIT mode")

    def read(self, state: ActuatorState, until: float) -> None:
        state.flags &= np.uint8(Flag.FAULT)
        if not self._on or self._stopping:
            if self._stopping:
                self._damp()
            else:
                for i in self._ids:
                    self.bus.send(message(i, EXIT))
            self._sent_at = time.monotonic()
        state.flags[self._take(state, self.bus.receive(0.0))] |= np.uint8(Flag.FRESH)
        while not state.have(Flag.FRESH).all() and (frames := self.bus.receive(until)):
            state.flags[self._take(state, frames)] |= np.uint8(Flag.FRESH)
        if self._on and not self._stopping:
            state.flags[self._entered & ~state.have(Flag.FAULT)] |= np.uint8(Flag.ENABLED)
        self._cycles_since_enter += self._cycles_since_enter > 0
        self._measured[:] = state.q

    def _take(self, state: ActuatorState, frames: list[Any]) -> list[int]:
        """Store answers; return actuators that answered."""
        out = []
        for f in frames:
            data = f.data
            if not 6 <= len(data) <= 8:
                continue
            k = self._row.get(data[0])
            if k is None or f.arbitration_id != (self._answer_id if self._answer_id >= 0 else data[0]):
                continue
            word, r = int.from_bytes(data[1:6], "big"), self.ranges
            state.q[k] = ((word >> 24) / 32767.5 - 1.0) * r.position[k]
            state.v[k] = ((word >> 12 & 0xFFF) / 2047.5 - 1.0) * r.velocity[k]
            state.tau[k] = ((word & 0xFFF) / 2047.5 - 1.0) * r.torque[k]
            state.temperature[k] = data[6] if len(data) > 6 else np.nan
            state.code[k] = data[7] if len(data) > 7 else 0
            state.stamp[k] = self._sent_at
            if state.code[k]:
                state.flags[k] |= np.uint8(Flag.FAULT)
            else:
                state.flags[k] &= ~np.uint8(Flag.FAULT)
            if self._cycles_since_enter[k]:
                self._entered[k], self._cycles_since_enter[k] = True, 0
            out.append(k)
        return out

    def _limit(self, command: ActuatorCommand) -> None:
        s = self._safe
        np.copyto(s.q, command.q, where=np.isfinite(command.q))
        np.clip(s.q, self._lower, self._upper, out=s.q)
        impedance = (command.mode != Mode.EFFORT) & self._entered
        for own, given, most in ((s.v, command.v, self._speed), (s.tau, command.tau, self._torque)):
            own[:] = np.clip(np.nan_to_num(given, nan=0.0), -most, most)
        s.tau[~self._entered] = 0.0
        for own, given in ((s.kp, command.kp), (s.kd, command.kd)):
            own[:] = np.where(impedance, np.nan_to_num(given, nan=0.0), 0.0)

    def write(self, command: ActuatorCommand) -> None:
        self._limit(command)
        pack_commands(self._safe, self.ranges, self._words)
        self._send()

    def _send(self) -> None:
        for frame in self._frames:
            self.bus.send(frame)
        self._sent_at = time.monotonic()

    def _damp(self) -> None:
        s = self._safe
        s.q[:] = np.where(np.isfinite(self._measured), np.clip(self._measured, self._lower, self._upper), s.q)
        s.v[:], s.kp[:], s.tau[:], s.kd[:] = 0.0, 0.0, 0.0, DAMPING * self.ranges.kd
        pack_commands(s, self.ranges, self._words)
        self._send()

    def _try_to_send(self, identifier: int, data: bytes) -> None:
        try:
            self.bus.send(message(identifier, data))
        except HardwareError:  # lost bus: `read` reports it
            return

    def power(self, on: bool) -> bool:
        if not on:
            self._on = self._stopping = False
            self._entered[:], self._cycles_since_enter[:] = False, 0
            for i in self._ids:
                self._try_to_send(i, EXIT)
            return True
        if self._stopping or not self._on:
            self._on, self._stopping = True, False
        for k in np.flatnonzero(
            ~self._entered & ((self._cycles_since_enter == 0) | (self._cycles_since_enter > ANSWER_CYCLES))
        ):
            self._cycles_since_enter[k] = 1
            self._try_to_send(self._ids[k], ENTER)
        return bool(self._entered.all())

    def quick_stop(self) -> None:
        if not self._on:
            return
        self._stopping = True
        try:
            self._damp()
        except HardwareError:  # lost bus: `read` reports it
            return

    def clear_faults(self) -> None:
        for i in self._ids:
            self._try_to_send(i, EXIT)

    def close(self) -> None:
        if self.bus.raw is None:
            return
        self.power(False)
        self.bus.close()

    def set_zero(self, actuator: int) -> bool:
        """Make the present position the zero; False with power."""
        if self._on:
            return False
        self.bus.send(message(self._ids[actuator], ZERO))
        return True

    def trouble(self) -> str:
        return self.bus.health()

    def fault_text(self, code: int) -> str:
        return f"{ERRORS.get(code, 'fault')} ({code})"

    def figures(self) -> dict[str, Any]:
        return self.bus.figures()

    def traffic(self) -> BusTraffic:
        return BusTraffic(self.bus.sent, self.bus.received, self.bus.errors)

    def guard(self) -> GuardSpec | None:
        if self.bus.interface == "virtual":
            return None
        off = b"".join(FRAME.pack(i, 8, EXIT) for i in self._ids)
        arguments = (self.bus.interface, self.bus.channel, self.bus.bitrate, self.bus.port, off.hex())
        return GuardSpec("humanoid_control.hardware.can.guard:CanGuard", arguments, size=16 * len(self._ids))

    def damping_frame(self, state: ActuatorState) -> bytes:
        words, command = np.zeros(len(self._ids), ">u8"), ActuatorCommand(len(self._ids))
        command.q[:] = np.clip(np.nan_to_num(state.q, nan=0.0), self._lower, self._upper)
        command.kd[:] = DAMPING * self.ranges.kd
        pack_commands(command, self.ranges, words)
        raw = words.tobytes()
        return b"".join(FRAME.pack(i, 8, raw[8 * k : 8 * k + 8]) for k, i in enumerate(self._ids))

    def frames(self, command: ActuatorCommand) -> list[str]:
        self._limit(command)
        pack_commands(self._safe, self.ranges, self._words)
        return [candump(f) for f in self._frames]

    @classmethod
    def bus_load(cls, bus: BusSpec) -> float:
        bits = 2 * frame_bits(8) * len(bus.actuators)
        return bits / bus.period / {**cls.bus_keys, **bus.options}["bitrate"]

    @classmethod
    def scan(cls, options: Mapping[str, Any]) -> list[str]:
        bus = CanBus("scan", {k: v for k, v in options.items() if k in BUS_KEYS})
        bus.open()
        found: set[int] = set()
        try:
            for i in range(1, 33):
                bus.send(message(i, EXIT))
            end = time.monotonic() + 0.3
            while frames := bus.receive(end):
                found |= {f.data[0] for f in frames if f.arbitration_id == options.get("answer_id", 0) and f.data}
        finally:
            bus.close()
        return [f"id {i}: responds as an actuator of this kind" for i in sorted(found)]


def _ranges_of(actuator: Any) -> tuple[float, ...]:
    where, options = actuator.where or actuator.name, actuator.options
    ranges, model = options.get("ranges", []), options.get("model", "")
    if ranges:
        numbers = all(isinstance(x, (int, float)) and not isinstance(x, bool) and 0 < x < np.inf for x in ranges)
        if len(ranges) != 5 or not numbers:
            raise ConfigError(
                f"{where}: ranges of {actuator.name} must be [position, velocity, kp, kd, torque], above 0"
            )
        return tuple(float(x) for x in ranges)
    if model not in MODELS:
        near = offer_names(model, MODELS) if model else f"known: {', '.join(MODELS)}"
        raise ConfigError(f"{where}: {actuator.name} needs a model or ranges; unknown model '{model}': {near}")
    return MODELS[model]
