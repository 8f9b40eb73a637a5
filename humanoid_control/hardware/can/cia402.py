"""Drive profile CiA 402: states, transitions, fault texts, process data as arrays."""

from __future__ import annotations

import enum
import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from humanoid_control.compiled.jit import kernel
from humanoid_control.hardware.transport import ActuatorCommand, ActuatorState, Flag, Mode

INT16, INT32 = 2**15 - 1, 2**31 - 1


class State(enum.IntEnum):
    """Drive states; OPERATION_ENABLED and QUICK_STOP_ACTIVE have motor power."""

    NOT_READY_TO_SWITCH_ON = 0
    SWITCH_ON_DISABLED = 1
    READY_TO_SWITCH_ON = 2
    SWITCHED_ON = 3
    OPERATION_ENABLED = 4
    QUICK_STOP_ACTIVE = 5
    FAULT_REACTION_ACTIVE = 6
    FAULT = 7


_S = State
STATUS_BITS: dict[State, tuple[int, int]] = {
    _S.NOT_READY_TO_SWITCH_ON: (0x4F, 0x00),
    _S.SWITCH_ON_DISABLED: (0x4F, 0x40),
    _S.READY_TO_SWITCH_ON: (0x6F, 0x21),
    _S.SWITCHED_ON: (0x6F, 0x23),
    _S.OPERATION_ENABLED: (0x6F, 0x27),
    _S.QUICK_STOP_ACTIVE: (0x6F, 0x07),
    _S.FAULT_REACTION_ACTIVE: (0x4F, 0x0F),
    _S.FAULT: (0x4F, 0x08),
}
"""State -> mask of the status word, and expected bits."""


def state_of(status: int) -> State:
    """Decode a status word; undefined bits mean not ready."""
    for state, (mask, bits) in STATUS_BITS.items():
        if status & mask == bits:
            return state
    return State.NOT_READY_TO_SWITCH_ON


STATE_TABLE = np.array([state_of(k) for k in range(0x70)], np.uint8)
"""State by status word & 0x6F."""

DISABLE_VOLTAGE, QUICK_STOP, SHUTDOWN, SWITCH_ON, ENABLE_OPERATION, FAULT_RESET = 0x00, 0x02, 0x06, 0x07, 0x0F, 0x80

TRANSITIONS: dict[tuple[State, State], int] = {
    (_S.SWITCH_ON_DISABLED, _S.READY_TO_SWITCH_ON): SHUTDOWN,
    (_S.READY_TO_SWITCH_ON, _S.SWITCHED_ON): SWITCH_ON,
    (_S.SWITCHED_ON, _S.OPERATION_ENABLED): ENABLE_OPERATION,
    (_S.OPERATION_ENABLED, _S.SWITCHED_ON): SWITCH_ON,
    (_S.OPERATION_ENABLED, _S.READY_TO_SWITCH_ON): SHUTDOWN,
    (_S.OPERATION_ENABLED, _S.SWITCH_ON_DISABLED): DISABLE_VOLTAGE,
    (_S.OPERATION_ENABLED, _S.QUICK_STOP_ACTIVE): QUICK_STOP,
    (_S.SWITCHED_ON, _S.READY_TO_SWITCH_ON): SHUTDOWN,
    (_S.SWITCHED_ON, _S.SWITCH_ON_DISABLED): DISABLE_VOLTAGE,
    (_S.READY_TO_SWITCH_ON, _S.SWITCH_ON_DISABLED): DISABLE_VOLTAGE,
    (_S.QUICK_STOP_ACTIVE, _S.OPERATION_ENABLED): ENABLE_OPERATION,
    (_S.QUICK_STOP_ACTIVE, _S.SWITCH_ON_DISABLED): DISABLE_VOLTAGE,
    (_S.FAULT, _S.SWITCH_ON_DISABLED): FAULT_RESET,
}
"""Control word of each transition that a controller can request; automatic transitions of the drive are omitted."""


class Wish(enum.IntEnum):
    """Goal of all drives: no power, power, or a stop by their own ramp."""

    OFF = 0
    ON = 1
    STOP = 2


def _row(default: int, **words: int) -> list[int]:
    return [words.get(s.name, default) for s in State]


CONTROL_WORDS = np.array(
    [
        _row(DISABLE_VOLTAGE, SWITCHED_ON=SHUTDOWN, OPERATION_ENABLED=SWITCH_ON),
        _row(
            DISABLE_VOLTAGE, SWITCH_ON_DISABLED=SHUTDOWN, READY_TO_SWITCH_ON=SWITCH_ON, SWITCHED_ON=ENABLE_OPERATION,
            OPERATION_ENABLED=ENABLE_OPERATION,
        ),
        _row(QUICK_STOP, FAULT=DISABLE_VOLTAGE, FAULT_REACTION_ACTIVE=DISABLE_VOLTAGE),
    ],
    np.uint16,
)  # fmt: skip
"""Next control word by request and state. Only `FAULT_RESET` leaves a fault."""

RESET_EDGE = (DISABLE_VOLTAGE, FAULT_RESET, DISABLE_VOLTAGE)
"""Sequence of control words that resets a fault: the rising edge of bit 7 counts."""

OPERATION_MODE = {Mode.POSITION: 8, Mode.VELOCITY: 9, Mode.EFFORT: 10}
"""Cyclic synchronous modes of object 0x6060."""

LATE_SAMPLES = 100  # bound of missing samples that may still arrive at once after a pause
FLAGS = np.zeros(len(State), np.uint8)
FLAGS[State.OPERATION_ENABLED] = Flag.ENABLED
FLAGS[[State.FAULT, State.FAULT_REACTION_ACTIVE]] = Flag.FAULT
WARNING_BIT, LIMIT_BIT = 0x0080, 0x0800

FAULTS = {
    0x1000: "generic error", 0x2110: "short circuit to earth at the input", 0x2120: "earth leakage at the input",
    0x2200: "internal current", 0x2211: "internal over-current", 0x2220: "continuous over-current in the drive",
    0x2230: "short circuit in the drive", 0x2300: "current at the output", 0x2310: "continuous over-current",
    0x2320: "short circuit of the motor", 0x2330: "earth leakage of the motor", 0x2340: "short circuit of the motor",
    0x2350: "motor overloaded (i2t)", 0x3100: "mains voltage", 0x3110: "mains over-voltage",
    0x3120: "mains under-voltage", 0x3130: "a phase is missing", 0x3210: "DC link over-voltage",
    0x3220: "DC link under-voltage", 0x3230: "load error", 0x3310: "output over-voltage", 0x4110: "ambient too hot",
    0x4120: "ambient too cold", 0x4210: "drive too hot", 0x4220: "drive too cold", 0x4310: "drive too hot",
    0x4320: "drive too cold", 0x4410: "motor too hot", 0x5112: "24 V supply", 0x5113: "5 V supply",
    0x5114: "15 V supply", 0x5210: "measuring circuit", 0x5300: "operating unit", 0x5441: "contactor",
    0x5530: "memory of the drive", 0x6010: "software reset by its watchdog", 0x6100: "internal software",
    0x6200: "user software", 0x6310: "loss of parameters", 0x6320: "parameter error", 0x7110: "brake chopper",
    0x7121: "motor blocked", 0x7122: "motor error or wrong commutation", 0x7300: "sensor", 0x7303: "resolver 1 fault",
    0x7304: "resolver 2 fault", 0x7305: "incremental encoder 1 fault", 0x7306: "incremental encoder 2 fault",
    0x7310: "speed too high", 0x7320: "position sensor", 0x7500: "communication inside the drive",
    0x8110: "CAN overrun: frames lost", 0x8120: "CAN error passive", 0x8130: "heartbeat of the controller is missing",
    0x8140: "recovered from bus off", 0x8150: "collision of identifiers", 0x8210: "process data of a wrong length",
    0x8220: "process data too long", 0x8240: "SYNC of a wrong length", 0x8250: "process data are missing",
    0x8311: "torque too high", 0x8331: "torque fault", 0x8400: "velocity control", 0x8480: "velocity error too high",
    0x8500: "position control", 0x8600: "positioning", 0x8611: "following error", 0x8612: "beyond its position limit",
    0x8700: "SYNC", 0x9000: "external error", 0xF001: "deceleration", 0xFF00: "manufacturer-specific fault",
}  # fmt: skip
"""Error codes of objects 0x603F and of emergency messages (CiA 301, CiA 402)."""


def fault_text(code: int) -> str:
    """Return the text of an error code, or else of its class."""
    code &= 0xFFFF
    for known in (code, code & 0xFFF0, code & 0xFF00, code & 0xF000):
        if known in FAULTS:
            return f"{FAULTS[known]} (0x{code:04X})"
    classes = {2: "current", 3: "voltage", 4: "temperature", 5: "hardware", 6: "software", 7: "module", 8: "monitoring"}
    return f"{classes.get(code >> 12, 'fault')} (0x{code:04X})"


# -------- Process data

RPDO1 = np.dtype([("control", "<u2"), ("target", "<i4")])
RPDO2 = np.dtype([("velocity", "<i4"), ("torque", "<i2")])
TPDO1 = np.dtype([("status", "<u2"), ("position", "<i4"), ("torque", "<i2")])
TPDO2 = np.dtype([("velocity", "<i4")])
MAPPED = {
    "control": (0x6040, 0, 16), "target": (0x607A, 0, 32), "status": (0x6041, 0, 16), "position": (0x6064, 0, 32),
}  # fmt: skip


def mapping(pdo: np.dtype) -> list[int]:
    """Return PDO mapping entries: index << 16 | subindex << 8 | bits."""
    receive = pdo is RPDO1 or pdo is RPDO2
    more = {"velocity": (0x60FF if receive else 0x606C, 0, 32), "torque": (0x6071 if receive else 0x6077, 0, 16)}
    rows = [{**MAPPED, **more}[name] for name in pdo.names or ()]
    return [index << 16 | sub << 8 | bits for index, sub, bits in rows]


class DriveUnits(NamedTuple):
    """Units of n drives, arrays (n,).

    Attributes:
        counts: encoder counts per rad.
        speed: drive's velocity unit per rad/s.
        torque: per mille of rated torque per N m.
        lower: [counts].
        upper: [counts].
    """

    counts: np.ndarray
    speed: np.ndarray
    torque: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    most_speed: np.ndarray
    most_torque: np.ndarray


@kernel
def decode_samples(
    raw: np.ndarray,
    words: np.ndarray,
    units: np.ndarray,
    last: np.ndarray,
    rate: float,
    q: np.ndarray,
    v: np.ndarray,
    tau: np.ndarray,
) -> bool:
    """Decode simultaneous samples of n drives into q [rad], v [rad/s] (backward difference), tau [N m].

    Args:
        raw: bytes of TPDO1 (8 n,).
        words: status words, changed in place (n,) uint16.
        units: rad per count, N m per per mille (2, n).
        last: previous positions, changed in place (n,) [rad].
        rate: sample rate [1/s].

    Returns:
        True if a status word changed.
    """
    changed = False
    for i in range(len(q)):
        # TPDO1, little-endian: status u16, position i32, torque i16
        o = 8 * i
        word = np.uint16(raw[o]) | np.uint16(raw[o + 1]) << 8
        # status words rarely change: only then states are decoded
        if word != words[i]:
            words[i] = word
            changed = True
        # joined as unsigned halves, then read as a signed 32-bit position
        low, high = (
            np.uint32(raw[o + 2]) | np.uint32(raw[o + 3]) << 8,
            np.uint32(raw[o + 4]) | np.uint32(raw[o + 5]) << 8,
        )
        x = np.int32(low | high << 16) * units[0, i]
        # backward difference over one cycle: the drives send no velocity in TPDO1
        v[i] = (x - last[i]) * rate
        q[i] = last[i] = x
        tau[i] = np.int16(np.uint16(raw[o + 6]) | np.uint16(raw[o + 7]) << 8) * units[1, i]
    return changed


class ProcessData:
    """Cyclic data of n drives, packed into and from frames; never raises.

    Attributes:
        position: measured (n,) [counts].
        seen: any sample has come (n,).
        complete: all samples of this cycle have come.
        copies: surplus of samples (n,); large: two devices share an id; negative: samples are missing.
        changed: a status word changed in this cycle.
        unpowered: rows without power, target = position; None: none.
    """

    def __init__(self, ids: Sequence[int], units: DriveUnits, measured_velocity: bool = False) -> None:
        n = len(ids)
        self.units, self._n = units, n
        self.rpdo1, self.rpdo2 = np.zeros(n, RPDO1), np.zeros(n, RPDO2)
        self.control, self.target = self.rpdo1["control"], self.rpdo1["target"]
        self._samples, self._speeds = np.zeros(n, TPDO1), np.zeros(n, TPDO2)
        self._raw = self._samples.view(np.uint8)
        self._bytes = self._raw.data
        self.status, self.position = self._samples["status"], self._samples["position"]
        self._torque, self._speed = self._samples["torque"], self._speeds["velocity"]
        self.state, self.flags, self._fresh_flags, self.always = np.zeros((4, n), np.uint8)
        self.seen, self._fresh, self._decoded = np.zeros((3, n), dtype=bool)
        self.copies, self._duplicated = np.zeros(n, dtype=int), False
        self.changed, self.complete = True, False
        self.unpowered: Any = slice(None)
        self._velocity = measured_velocity
        self._rows = {0x180 + i: k for k, i in enumerate(ids)}
        self._speed_rows = {0x280 + i: k for k, i in enumerate(ids)} if measured_velocity else {}
        self._order: list[int] = []  # identifiers in the order of a complete cycle
        self._sort: Any = None
        self._steady = self._decoded_all = False
        self._nothing, self._late = True, np.zeros(0, dtype=int)
        self._finite = np.ones(n, dtype=bool)
        self._work, self._last, self._words = np.zeros(n), np.full(n, np.nan), np.zeros(n, np.uint16)
        self._per = np.array([1.0 / units.counts, 1.0 / units.torque])
        self._sampled = self._sampled_before = np.nan
        self.steer(Wish.STOP)

    def load_kernel(self) -> None:
        """Compile or load the kernel before the first cycle."""
        zeros = np.zeros((4, self._n))
        decode_samples(self._raw.copy(), self._words.copy(), self._per, zeros[0], 1.0, *zeros[1:])

    # -- commands -----------------------------------------------------------------------------------------------------

    def pack(self, command: ActuatorCommand) -> None:
        """Pack clipped targets; non-finite values keep the old target.

        Unpowered drives get their measured position: no jump at power-on.
        """
        u, q = self.units, self._work
        np.multiply(command.q, u.counts, out=q)
        if not np.isfinite(q, self._finite).all():
            np.copyto(q, self.target, where=~self._finite)
        np.rint(q, out=q)
        np.maximum(q, u.lower, out=q)
        np.minimum(q, u.upper, out=q)
        self.target[:] = q
        if self.unpowered is not None:
            self.hold()

    def pack_second(self, command: ActuatorCommand) -> None:
        """Pack clipped velocities and torques; non-finite values become zero."""
        u = self.units
        v, tau = np.nan_to_num(command.v, nan=0.0) * u.speed, np.nan_to_num(command.tau, nan=0.0) * u.torque
        self.rpdo2["velocity"] = np.rint(np.clip(v, -u.most_speed, u.most_speed))
        self.rpdo2["torque"] = np.rint(np.clip(np.nan_to_num(tau, nan=0.0), -u.most_torque, u.most_torque))
        if self.unpowered is not None:
            self.rpdo2[self.unpowered] = 0

    def hold(self) -> None:
        """Set targets of unpowered drives to their clipped positions."""
        u, rows = self.units, self.unpowered
        if rows is not None:
            self.target[rows] = np.clip(self.position[rows], u.lower[rows], u.upper[rows])

    def steer(self, wish: Wish) -> None:
        """Set control words for the next transition."""
        self.wish = wish
        self.control[:] = CONTROL_WORDS[wish][self.state]

    def set_homed(self, row: int, homed: bool) -> None:
        """Set whether a drive knows its zero."""
        bit = np.uint8(Flag.HOMED)
        self.always[row] = self.always[row] | bit if homed else self.always[row] & ~bit
        self._read_status()

    # -- samples ------------------------------------------------------------------------------------------------------

    def expect(self, row: int) -> None:
        """Reset a drive to "nothing received"."""
        self.seen[row], self.state[row] = False, State.NOT_READY_TO_SWITCH_ON
        self._order, self._words[row], self.copies[row] = [], 0xFFFF, 0

    def begin(self, now: float, state: ActuatorState) -> None:
        """Begin a cycle with sample time `now` [s], monotonic.

        Samples received since `decode` belong to the previous cycle.
        """
        if not self._steady or self._duplicated or self._late.size or not self._decoded_all:
            self._end_cycle(state)
        self._steady, self.complete, self._nothing = self._decoded_all, False, True
        self._sampled_before, self._sampled = self._sampled, now

    def _end_cycle(self, state: ActuatorState) -> None:
        """Account for missing, late or surplus samples."""
        if self.complete:
            self._fresh[:] = True
        late = self._fresh & ~self._decoded & (not self._decoded_all) & (self._sampled == self._sampled)
        self._late = np.flatnonzero(late)
        if self._late.size:
            self._decode_some(state, self._late)
        # a late sample is missing in one cycle and surplus in the next: pauses of this program cancel out
        self.copies = np.maximum(self.copies - (self.seen & ~self._fresh), -LATE_SAMPLES)
        self._duplicated = bool((self.copies > 0).any())
        self._fresh[:], self._decoded[:] = False, False

    def take(self, frames: Sequence[Any]) -> Sequence[Any]:
        """Store samples; return all other frames."""
        ids = [f.arbitration_id for f in frames]
        if ids == self._order and self._nothing:  # fast path: all drives in the usual order
            raw = b"".join([f.data for f in frames] if self._sort is None else self._sort([f.data for f in frames]))
            if len(raw) == 8 * self._n:  # a frame has at most 8 bytes
                self._bytes[:] = raw
                self.complete, self._nothing = True, False
                return ()
        return self._take_one_by_one(frames, ids)

    def _take_one_by_one(self, frames: Sequence[Any], ids: list[int]) -> list[Any]:
        others, order = [], []
        if self._nothing or self.complete:
            self._fresh[:] = self.complete
        self._nothing = False
        for f in frames:
            k, size = self._rows.get(f.arbitration_id), len(f.data)
            if k is not None and size == 8:
                self._bytes[8 * k : 8 * k + 8] = bytes(f.data)
                if self._fresh[k]:
                    self.copies[k] += 1
                    self._duplicated = True
                self._fresh[k] = self.seen[k] = True
                order.append(k)
            elif size == 4 and (k := self._speed_rows.get(f.arbitration_id)) is not None:
                self._speeds[k] = np.frombuffer(bytes(f.data), TPDO2)[0]
            else:
                others.append(f)
        self.complete = bool(self._fresh.all())
        # remember the order: later cycles copy all samples at once
        if not self._velocity and len(frames) == self._n and sorted(order) == list(range(self._n)):
            self._order = ids
            self._sort = operator.itemgetter(*np.argsort(order).tolist()) if order != sorted(order) else None
        return others

    def decode(self, state: ActuatorState) -> None:
        """Decode stored samples into arrays; sets `changed`."""
        dt = self._sampled - self._sampled_before
        # fast path: all drives were sampled in two successive cycles, so one dt serves all
        if self.complete and self._steady and dt > 0:
            self.changed = decode_samples(
                self._raw, self._words, self._per, self._last, 1.0 / dt, state.q, state.v, state.tau
            )
            state.stamp.fill(self._sampled)
        else:
            self._decode_cycle(state)
        self._decoded_all = self.complete
        if self._velocity:
            np.divide(self._speed, self.units.speed, out=state.v)
        if self.changed:
            self._read_status()
        if self.complete and not self._late.size:
            state.flags[:] = self._fresh_flags
        else:
            state.flags[:] = self.flags
            state.flags[self._fresh | self.complete] |= np.uint8(Flag.FRESH)
            state.flags[self._late] |= np.uint8(Flag.FRESH)

    def _decode_cycle(self, state: ActuatorState) -> None:
        if self._nothing or self.complete:
            self._fresh[:] = self.complete
        self._decode_some(state, np.flatnonzero(self._fresh))
        self._decoded[:] = self._fresh
        self.changed = not np.array_equal(self._words, self.status)
        self._words[:] = self.status

    def _decode_some(self, state: ActuatorState, rows: np.ndarray) -> None:
        q = self.position[rows] * self._per[0, rows]
        dt = self._sampled - state.stamp[rows]
        with np.errstate(divide="ignore", invalid="ignore"):
            state.v[rows] = np.where(dt > 0, (q - self._last[rows]) / dt, state.v[rows])
        state.q[rows] = self._last[rows] = q
        state.tau[rows] = self._torque[rows] * self._per[1, rows]
        state.stamp[rows] = self._sampled

    def _read_status(self) -> None:
        # 0x6F selects the bits that encode the state
        self.state[:] = STATE_TABLE[self.status & 0x6F]
        self.state[~self.seen] = State.NOT_READY_TO_SWITCH_ON
        self.flags[:] = FLAGS[self.state] | self.always
        self.flags[(self.status & WARNING_BIT) != 0] |= np.uint8(Flag.WARNING)
        self.flags[(self.status & LIMIT_BIT) != 0] |= np.uint8(Flag.LIMIT)
        self._fresh_flags[:] = self.flags | np.uint8(Flag.FRESH)
        off = self.state != State.OPERATION_ENABLED
        self.unpowered = np.flatnonzero(off) if off.any() else None
        self.control[:] = CONTROL_WORDS[self.wish][self.state]
