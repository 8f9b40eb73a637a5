"""Unitree frames as bytes: packing with CRC, checking, reading.

The vendor's CRC: polynomial 0x04C11DB7, start 0xFFFFFFFF, not reflected, over the little-endian words of the C
structure without its last word, highest byte of each word first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, NamedTuple

import numpy as np

from humanoid_control.compiled.array_types import F1, F2, I1, I2
from humanoid_control.compiled.jit import inlined, kernel
from humanoid_control.compiled.packed import BoundRecord, Packed, Table, unpack
from humanoid_control.hardware.transport import ActuatorCommand, ActuatorState, BatteryReading, Flag, Mode
from humanoid_control.hardware.unitree.layout import HEADER, Family

Words = Annotated[np.ndarray, np.uint32, 1]
WordRows = Annotated[np.ndarray, np.uint32, 2]
Bytes = Annotated[np.ndarray, np.uint8, 1]
Modes = Annotated[np.ndarray, np.int8, 1]

LITTLE_ENDIAN = (1, 7)  # second byte of the header: CDR version 1 and 2, with the same layout here
CALIBRATION = 0x20000  # the only fault code that is a warning
POSITION, VELOCITY, EFFORT = int(Mode.POSITION), int(Mode.VELOCITY), int(Mode.EFFORT)
SAMPLE, POWERED, FAULT, WARNING = (int(f) for f in (Flag.FRESH | Flag.HOMED, Flag.ENABLED, Flag.FAULT, Flag.WARNING))
FRESH, CORRUPT, FROZEN = 0, 1, 2  # results of checking a state


def _crc_tables() -> np.ndarray:
    """Return tables: entry 256 k + b is the CRC of byte b followed by k zero bytes."""
    out = np.zeros((16, 256), np.uint32)
    for b in range(256):
        c = b << 24
        for _ in range(8):
            c = ((c << 1) ^ 0x04C11DB7 if c & 0x80000000 else c << 1) & 0xFFFFFFFF
        out[0, b] = c
    for k in range(1, 16):
        out[k] = (out[k - 1] << np.uint32(8)) ^ out[0][out[k - 1] >> np.uint32(24)]
    return out.ravel()


CRC_TABLES = _crc_tables()


@inlined
def _after(k: int, word: int) -> int:
    """Return the CRC of a word followed by k zero bytes."""
    # byte i of the word, counted from the lowest, is followed by k + i zero bytes
    t = 256 * k
    high = np.int64(CRC_TABLES[t + 768 + (word >> 24)]) ^ np.int64(CRC_TABLES[t + 512 + ((word >> 16) & 255)])
    return high ^ np.int64(CRC_TABLES[t + 256 + ((word >> 8) & 255)]) ^ np.int64(CRC_TABLES[t + (word & 255)])


@inlined
def _word(body: np.ndarray, source: np.ndarray, i: int) -> int:
    """Return word i of the C structure."""
    return np.int64((body[source[i, 0]] >> source[i, 1]) & source[i, 2])


@kernel
def crc32(body: np.ndarray, source: np.ndarray) -> int:
    """Return the CRC of a message.

    Args:
        body: frame without header (m,) uint32.
    """
    crc, n, i = np.int64(0xFFFFFFFF), len(source), 0
    while i + 3 < n:  # four words at once, as the CRC is linear
        # only the first word depends on the previous CRC, so the other table look-ups run in parallel
        a = _after(12, crc ^ _word(body, source, i)) ^ _after(8, _word(body, source, i + 1))
        crc = a ^ _after(4, _word(body, source, i + 2)) ^ _after(0, _word(body, source, i + 3))
        i += 4
    # at most three remaining words
    while i < n:
        crc = _after(0, crc ^ _word(body, source, i))
        i += 1
    return crc


# -------- Commands


class MotorTargets(NamedTuple):
    """Arrays of an `ActuatorCommand`."""

    q: F1
    v: F1
    tau: F1
    kp: F1
    kd: F1
    mode: Modes


class Packing(NamedTuple):
    """Arguments of `pack_command`.

    Attributes:
        body: frame without header, changed in place (m,) uint32.
        motors: word and shift of the mode byte, word of q, mode byte (n, 4).
    """

    body: Words
    motors: I2
    gains: F2
    targets: MotorTargets
    source: WordRows


@kernel
def pack_command(table: Table[Packing], share: float) -> int:
    """Write targets and CRC into a frame; non-finite targets become damping.

    Returns:
        Number of non-finite targets.
    """
    p = unpack(table, Packing)
    body, motors, targets, gains = p.body, p.motors, p.targets, p.gains
    number, bad = body.view(np.float32), 0
    for k in range(len(motors)):
        word, shift, j = motors[k, 0], motors[k, 1], motors[k, 2]
        # replace only the mode byte: other fields may share its word
        body[word] = (body[word] & ~np.uint32(255 << shift)) | np.uint32(motors[k, 3] << shift)
        q, v, tau, kp, kd = targets.q[k], targets.v[k], targets.tau[k], targets.kp[k], targets.kd[k]
        mode = targets.mode[k]
        # the motors close kp (q - q_m) + kd (v - v_m) + tau; other modes are special gains of it
        if mode == POSITION:
            kp, kd = share * gains[k, 0], share * gains[k, 1]
        elif mode == VELOCITY:
            q, kp, kd = 0.0, 0.0, share * gains[k, 1]
        elif mode == EFFORT:
            q, v, kp, kd = 0.0, 0.0, 0.0, 0.0
        # a sum is finite only if all terms are
        if not np.isfinite(q + v + tau + kp + kd):
            q, v, tau, kp, kd = 0.0, 0.0, 0.0, 0.0, share * gains[k, 1]
            bad += 1
        # wire order of the fields: q, dq, tau, kp, kd
        number[j], number[j + 1], number[j + 2], number[j + 3], number[j + 4] = q, v, tau, kp, kd
    body[-1] = crc32(body, p.source)
    return bad


class CommandFrame:
    """Frame of `rt/lowcmd` for some motors; all others stay off.

    Attributes:
        damping: IMPEDANCE targets that damp.
    """

    def __init__(self, family: Family, motors: Sequence[tuple[int, int]], gains: np.ndarray, mode_pr: int = 0) -> None:
        """Create the frame.

        Args:
            motors: place and mode byte of each actuator.
            gains: kp, kd (n, 2).
            mode_pr: ankles by 0: pitch and roll; 1: motors A and B.
        """
        layout = self._layout = family.command
        self.buffer = np.zeros(layout.size, np.uint8)
        self.buffer[1] = LITTLE_ENDIAN[0]
        self._body = self.buffer[HEADER:].view(np.uint32)
        self._source, self._gains = layout.crc_words, gains
        paths = [f"motor_cmd.{place}." for place, _ in motors]
        places = [(layout.word(p + "mode"), layout.shift(p + "mode"), layout.word(p + "q")) for p in paths]
        self._on = np.array([[*p, on] for p, (_, on) in zip(places, motors, strict=True)], np.int64).reshape(-1, 4)
        self._off = self._on.copy()
        self._off[:, 3] = 0
        n = len(motors)
        zero = np.zeros(n)
        self.damping = MotorTargets(zero, zero, zero, zero, gains[:, 1].copy(), np.full(n, Mode.IMPEDANCE, np.int8))
        self._none = MotorTargets(zero, zero, zero, zero, zero, self.damping.mode)
        self._packing = BoundRecord(self._packing_of)
        self._damped, self._dark = Packed(self._with(self._on, self.damping)), Packed(self._with(self._off, self._none))
        if family.humanoid:
            self.buffer[layout.offset("mode_pr")] = mode_pr
        else:  # low-level mark of the vendor's examples
            self.buffer[HEADER : HEADER + 3] = 0xFE, 0xEF, 0xFF

    def echo(self, machine: int) -> None:
        """Copy the robot's `mode_machine`."""
        if "mode_machine" in self._layout.fields:
            self.buffer[self._layout.offset("mode_machine")] = machine

    def pack(self, command: ActuatorCommand, share: float = 1.0) -> bytes:
        """Return the frame of a command; `share`: of the gains outside IMPEDANCE."""
        pack_command(self._packing.table(command), share)
        return self.buffer.tobytes()

    def _packing_of(self, command: ActuatorCommand) -> Packing:
        return self._with(self._on, MotorTargets(*(getattr(command, f) for f in MotorTargets._fields)))

    def _with(self, motors: np.ndarray, targets: MotorTargets) -> Packing:
        return Packing(self._body, motors, self._gains, targets, self._source)

    def damp(self) -> bytes:
        """Return a frame that damps every motor."""
        pack_command(self._damped.table, 1.0)
        return self.buffer.tobytes()

    def switch_off(self) -> bytes:
        """Return a frame that removes the power."""
        pack_command(self._dark.table, 1.0)
        return self.buffer.tobytes()

    def rows(self) -> list[dict[str, float]]:
        """Return the motors of the last frame as text rows."""
        number, out = self._body.view(np.float32), []
        for word, shift, j, _ in self._on.tolist():
            values = number[j : j + 5].tolist()
            mode = (int(self._body[word]) >> shift) & 255
            out.append({"mode": mode, **dict(zip(("q", "dq", "tau", "kp", "kd"), values, strict=True))})
        return out


# -------- States


class MotorSamples(NamedTuple):
    """Arrays of an `ActuatorState`."""

    q: F1
    v: F1
    tau: F1
    temperature: F1
    voltage: F1
    stamp: F1
    code: Words
    flags: Bytes


class Reading(NamedTuple):
    """Arguments of `read_state`.

    Attributes:
        motors: word and shift of the mode byte, words of q, temperature, voltage, fault code (-1: none) (n, 6).
        head: word of the tick; 1: two temperatures a motor (case, winding); 1: zero CRC or tick means none; last tick,
            changed in place (4,).
    """

    motors: I2
    source: WordRows
    head: I1
    out: MotorSamples


@kernel(allocates=True)
def read_state(frame: bytes, table: Table[Reading], stamp: float) -> int:
    """Check a state and copy it.

    Args:
        stamp: time of the state [s].

    Returns:
        FRESH, CORRUPT (wrong CRC) or FROZEN (tick unchanged).
    """
    r = unpack(table, Reading)
    motors, source, head, out = r.motors, r.source, r.head, r.out
    # the header is one word
    body = np.frombuffer(frame, np.uint32)[1:]
    number = body.view(np.float32)
    crc, tick = np.int64(body[-1]), np.int64(body[head[0]])
    # a lenient reader (head[2]) accepts a zero CRC, as the vendor's simulator sends none
    if not (head[2] == 1 and crc == 0) and crc != crc32(body, source):
        return CORRUPT
    # an unchanged tick means that the sender repeats an old state
    if tick == head[3] and not (head[2] == 1 and tick == 0):
        return FROZEN
    head[3] = tick
    for k in range(len(motors)):
        j, warm = motors[k, 2], body[motors[k, 3]]
        # wire order of the fields: q, dq, ddq, tau
        out.q[k], out.v[k], out.tau[k] = number[j], number[j + 1], number[j + 3]
        # two int16 in one word: the hotter of case and winding counts
        if head[1] == 1:
            out.temperature[k] = max(np.int16(warm & 0xFFFF), np.int16(warm >> 16))
        else:
            out.temperature[k] = warm & 0xFF
        out.voltage[k], out.stamp[k] = number[motors[k, 4]], stamp
        code = body[motors[k, 5]] if motors[k, 5] >= 0 else np.uint32(0)
        out.code[k] = code
        flags = SAMPLE
        # a mode byte other than zero: the motor is on
        if (body[motors[k, 0]] >> motors[k, 1]) & 255:
            flags |= POWERED
        # calibration mode alone is a warning
        if code & ~np.uint32(CALIBRATION):
            flags |= FAULT
        elif code:
            flags |= WARNING
        out.flags[k] = flags
    return FRESH


class StateReader:
    """Reader of `rt/lowstate` for some motors.

    Attributes:
        tick: tick of the last good state; -1: none.
        machine: its `mode_machine`.
    """

    def __init__(self, family: Family, places: Sequence[int], lenient: bool = False) -> None:
        """Set up.

        Args:
            lenient: accept zero CRC and tick.
        """
        layout = self._layout = family.state
        self._source, self._humanoid = layout.crc_words, family.humanoid

        def row(place: int) -> list[int]:
            path = f"motor_state.{place}."
            voltage, code = ("vol", layout.word(path + "motorstate")) if family.humanoid else ("", -1)
            return [
                layout.word(path + "mode"),
                layout.shift(path + "mode"),
                layout.word(path + "q"),
                layout.word(path + "temperature"),
                layout.word(path + voltage if voltage else "power_v"),
                code,
            ]

        self._motors = np.array([row(p) for p in places], np.int64).reshape(-1, 6)
        self._head = np.array([layout.word("tick"), family.humanoid, lenient, -1], np.int64)
        self._state: ActuatorState | None = None
        self._frame, self._size = b"", layout.size

    def read(self, frame: bytes, state: ActuatorState, stamp: float) -> int:
        """Check and copy a frame, see `read_state`; another kind is CORRUPT."""
        if len(frame) != self._size or frame[1] not in LITTLE_ENDIAN:
            return CORRUPT
        if state is not self._state:
            samples = MotorSamples(*(getattr(state, f) for f in MotorSamples._fields))
            self._state, self._reading = state, Packed(Reading(self._motors, self._source, self._head, samples))
        verdict = read_state(frame, self._reading.table, stamp)
        if verdict == FRESH:
            self._frame = frame
        return verdict

    def reset(self) -> None:
        """Accept any tick again, after a restart."""
        self._head[3], self._frame = -1, b""

    @property
    def tick(self) -> int:
        return int(self._head[3])

    @property
    def machine(self) -> int:
        if not self._frame or not self._humanoid:
            return 0
        return self._frame[self._layout.offset("mode_machine")]

    @property
    def buttons(self) -> int:
        """Button bits of the remote control, see `BUTTONS`."""
        if not self._frame:
            return 0
        k = self._layout.offset("wireless_remote") + 2
        return self._frame[k] | self._frame[k + 1] << 8

    def imu(self) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
        """Return orientation (4,) x y z w, angular velocity (3,) [rad/s], acceleration (3,) [m/s^2]."""
        if not self._frame:
            return None
        values = np.frombuffer(self._frame, "<f4", 10, self._layout.offset("imu_state.quaternion")).astype(float)
        return values[[1, 2, 3, 0]], values[4:7], values[7:]

    def battery(self) -> BatteryReading | None:
        """Return the battery of the family `go`; None for others."""
        if not self._frame or self._humanoid:
            return None
        voltage, current = np.frombuffer(self._frame, "<f4", 2, self._layout.offset("power_v")).tolist()
        return BatteryReading(voltage, -current, self._frame[self._layout.offset("bms_state.soc")] / 100)


BUTTONS = {
    name: 1 << k
    for k, name in enumerate(
        ("R1", "L1", "start", "select", "R2", "L2", "F1", "F3", "A", "B", "X", "Y", "up", "right", "down", "left")
    )
}
"""Buttons of the remote control by bit."""
FAULTS = {
    0x1: "over current",
    0x2: "short over-voltage",
    0x4: "lasting over-voltage",
    0x8: "short under-voltage",
    0x10: "chip too hot",
    0x20: "power stage too hot or too cold",
    0x40: "temperature sensor of the power stage",
    0x80: "case too hot or too cold",
    0x100: "temperature sensor of the case",
    0x200: "winding too hot",
    0x400: "rotor encoder 1",
    0x800: "rotor encoder 2",
    0x1000: "output encoder",
    0x2000: "calibration or boot data",
    0x4000: "unexpected reset",
    0x8000: "locked: not authenticated",
    0x10000: "chip verification",
    CALIBRATION: "calibration mode",
    0x40000: "communication check",
    0x80000: "firmware too old",
    0x40000000: "motor received nothing from the computer",
    0x80000000: "computer received nothing from the motor",
}
"""Bits of a motor's fault code, from the vendor's list of error codes."""


def fault_words(code: int) -> str:
    """Return a fault code in words."""
    names = [text for bit, text in FAULTS.items() if code & bit]
    rest = code & ~sum(FAULTS)
    return ", ".join([*names, *([f"fault 0x{rest:X}"] if rest else [])])
