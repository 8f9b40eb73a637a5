"""Frames of Unitree's robots as bytes: commands packed with their CRC, states checked and read, without objects.

The CRC is the vendor's: polynomial 0x04C11DB7, start 0xFFFFFFFF, not reflected, over the little-endian words of the C
structure without its last word, the highest byte of each word first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, NamedTuple

import numpy as np

from humanoid_control.hardware.transport import ActuatorCommand, ActuatorState, BatteryReading, Flag, Mode
from humanoid_control.hardware.unitree.layout import HEADER, Family
from humanoid_control.jit import inlined, kernel
from humanoid_control.numerics.array_types import F1, F2, I1, I2
from humanoid_control.numerics.packed import BoundRecord, Packed, Table, unpack

Words = Annotated[np.ndarray, np.uint32, 1]
WordRows = Annotated[np.ndarray, np.uint32, 2]
Bytes = Annotated[np.ndarray, np.uint8, 1]
Modes = Annotated[np.ndarray, np.int8, 1]

LITTLE_ENDIAN = (1, 7)  # second byte of the header: CDR of version 1, of version 2; the same layout for these fields
CALIBRATION = 0x20000  # the one fault code of a motor that is a warning
POSITION, VELOCITY, EFFORT = int(Mode.POSITION), int(Mode.VELOCITY), int(Mode.EFFORT)
SAMPLE, POWERED, FAULT, WARNING = (int(f) for f in (Flag.FRESH | Flag.HOMED, Flag.ENABLED, Flag.FAULT, Flag.WARNING))
FRESH, CORRUPT, FROZEN = 0, 1, 2  # verdicts on a state


def _crc_tables() -> np.ndarray:
    """Tables (16 * 256,): entry 256 k + b is the CRC of the byte b that k zero bytes follow."""
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
    """CRC of a word that k zero bytes follow."""
    t = 256 * k
    high = np.int64(CRC_TABLES[t + 768 + (word >> 24)]) ^ np.int64(CRC_TABLES[t + 512 + ((word >> 16) & 255)])
    return high ^ np.int64(CRC_TABLES[t + 256 + ((word >> 8) & 255)]) ^ np.int64(CRC_TABLES[t + (word & 255)])


@inlined
def _word(body: np.ndarray, source: np.ndarray, i: int) -> int:
    """Word i of the C structure."""
    return np.int64((body[source[i, 0]] >> source[i, 1]) & source[i, 2])


@kernel
def crc32(body: np.ndarray, source: np.ndarray) -> int:
    """CRC of a message.

    Args:
        body: (m,) uint32, the frame without its header. source: `Layout.crc_words`.
    """
    crc, n, i = np.int64(0xFFFFFFFF), len(source), 0
    while i + 3 < n:  # four words at once: the CRC is linear, and only the first word waits for the last result
        a = _after(12, crc ^ _word(body, source, i)) ^ _after(8, _word(body, source, i + 1))
        crc = a ^ _after(4, _word(body, source, i + 2)) ^ _after(0, _word(body, source, i + 3))
        i += 4
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
    """Everything of a frame that is packed.

    Attributes:
        body: (m,) uint32, the frame without its header; changed in place.
        motors: (n, 4) word and shift of the mode byte, word of q, mode byte.
        gains: (n, 2) kp and kd for actuators that are not commanded by impedance. targets: of n actuators.
        source: `Layout.crc_words`; behind its last word comes the CRC.
    """

    body: Words
    motors: I2
    gains: F2
    targets: MotorTargets
    source: WordRows


@kernel
def pack_command(table: Table[Packing], share: float) -> int:
    """Write targets and CRC into a frame; what is not a number becomes damping.

    Args:
        table: of a `Packing`. share: of its gains.

    Returns:
        Actuators whose targets were no numbers.
    """
    p = unpack(table, Packing)
    body, motors, targets, gains = p.body, p.motors, p.targets, p.gains
    number, bad = body.view(np.float32), 0
    for k in range(len(motors)):
        word, shift, j = motors[k, 0], motors[k, 1], motors[k, 2]
        body[word] = (body[word] & ~np.uint32(255 << shift)) | np.uint32(motors[k, 3] << shift)
        q, v, tau, kp, kd = targets.q[k], targets.v[k], targets.tau[k], targets.kp[k], targets.kd[k]
        mode = targets.mode[k]
        if mode == POSITION:
            kp, kd = share * gains[k, 0], share * gains[k, 1]
        elif mode == VELOCITY:
            q, kp, kd = 0.0, 0.0, share * gains[k, 1]
        elif mode == EFFORT:
            q, v, kp, kd = 0.0, 0.0, 0.0, 0.0
        if not np.isfinite(q + v + tau + kp + kd):
            q, v, tau, kp, kd = 0.0, 0.0, 0.0, 0.0, share * gains[k, 1]
            bad += 1
        number[j], number[j + 1], number[j + 2], number[j + 3], number[j + 4] = q, v, tau, kp, kd
    body[-1] = crc32(body, p.source)
    return bad


class CommandFrame:
    """The frame of `rt/lowcmd` for some motors of a robot; the other motors stay off.

    Attributes:
        buffer: (size,) uint8, header and fields. damping: targets that damp, IMPEDANCE.
    """

    def __init__(self, family: Family, motors: Sequence[tuple[int, int]], gains: np.ndarray, mode_pr: int = 0) -> None:
        """Make the frame.

        Args:
            family: of messages. motors: place and mode byte of each actuator. gains: (n, 2) kp and kd.
            mode_pr: 0: ankles by pitch and roll; 1: by their motors A and B.
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
        else:  # as the vendor's examples mark a low level frame
            self.buffer[HEADER : HEADER + 3] = 0xFE, 0xEF, 0xFF

    def echo(self, machine: int) -> None:
        """Set `mode_machine` to what the robot reports."""
        if "mode_machine" in self._layout.fields:
            self.buffer[self._layout.offset("mode_machine")] = machine

    def pack(self, command: ActuatorCommand, share: float = 1.0) -> bytes:
        """The frame of a command.

        Args:
            command: of all actuators. share: of the gains of those that are not commanded by impedance.
        """
        pack_command(self._packing.table(command), share)
        return self.buffer.tobytes()

    def _packing_of(self, command: ActuatorCommand) -> Packing:
        return self._with(self._on, MotorTargets(*(getattr(command, f) for f in MotorTargets._fields)))

    def _with(self, motors: np.ndarray, targets: MotorTargets) -> Packing:
        return Packing(self._body, motors, self._gains, targets, self._source)

    def damp(self) -> bytes:
        """The frame that damps every motor where it is."""
        pack_command(self._damped.table, 1.0)
        return self.buffer.tobytes()

    def switch_off(self) -> bytes:
        """The frame that takes the power away."""
        pack_command(self._dark.table, 1.0)
        return self.buffer.tobytes()

    def rows(self) -> list[dict[str, float]]:
        """Motors of the frame that was packed last, for people."""
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
    """Everything of a state that is read.

    Attributes:
        motors: (n, 6) word and shift of the mode byte, words of q, temperature, voltage, fault code (-1: none).
        source: `Layout.crc_words`.
        head: (4,) word of the tick; 1 where a motor has two temperatures, of its case and its winding; 1 where a CRC
            or a tick of zero says that the sender makes none; the last tick, changed in place.
        out: of n actuators, changed in place only where the state is good.
    """

    motors: I2
    source: WordRows
    head: I1
    out: MotorSamples


@kernel
def read_state(frame: bytes, table: Table[Reading], stamp: float) -> int:
    """Check a state and take it over.

    Args:
        frame: with its header. table: of a `Reading`. stamp: time of the state [s].

    Returns:
        FRESH, CORRUPT (the CRC is wrong) or FROZEN (the tick has not advanced).
    """
    r = unpack(table, Reading)
    motors, source, head, out = r.motors, r.source, r.head, r.out
    body = np.frombuffer(frame, np.uint32)[1:]
    number = body.view(np.float32)
    crc, tick = np.int64(body[-1]), np.int64(body[head[0]])
    if not (head[2] == 1 and crc == 0) and crc != crc32(body, source):
        return CORRUPT
    if tick == head[3] and not (head[2] == 1 and tick == 0):
        return FROZEN
    head[3] = tick
    for k in range(len(motors)):
        j, warm = motors[k, 2], body[motors[k, 3]]
        out.q[k], out.v[k], out.tau[k] = number[j], number[j + 1], number[j + 3]
        if head[1] == 1:
            out.temperature[k] = max(np.int16(warm & 0xFFFF), np.int16(warm >> 16))
        else:
            out.temperature[k] = warm & 0xFF
        out.voltage[k], out.stamp[k] = number[motors[k, 4]], stamp
        code = body[motors[k, 5]] if motors[k, 5] >= 0 else np.uint32(0)
        out.code[k] = code
        flags = SAMPLE
        if (body[motors[k, 0]] >> motors[k, 1]) & 255:
            flags |= POWERED
        if code & ~np.uint32(CALIBRATION):
            flags |= FAULT
        elif code:
            flags |= WARNING
        out.flags[k] = flags
    return FRESH


class StateReader:
    """Reader of `rt/lowstate` for some motors of a robot.

    Attributes:
        tick: of the last good state; -1: none yet. machine: its `mode_machine`. buttons: pressed on the remote control.
    """

    def __init__(self, family: Family, places: Sequence[int], lenient: bool = False) -> None:
        """Prepare.

        Args:
            family: of messages. places: of the actuators in the frame.
            lenient: a CRC or a tick of zero is none, and believed.
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
        """Check a frame and take it over; see `read_state`. A frame of another kind is CORRUPT."""
        if len(frame) != self._size or frame[1] not in LITTLE_ENDIAN:
            return CORRUPT
        if state is not self._state:
            samples = MotorSamples(*(getattr(state, f) for f in MotorSamples._fields))
            self._state, self._reading = state, Packed(Reading(self._motors, self._source, self._head, samples))
        verdict = read_state(frame, self._reading.table, stamp)
        if verdict == FRESH:
            self._frame = frame
        return verdict

    def forget(self) -> None:
        """Believe any tick again: the robot or the bus was started anew."""
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
        """16 bits of the buttons of the remote control, see `BUTTONS`."""
        if not self._frame:
            return 0
        k = self._layout.offset("wireless_remote") + 2
        return self._frame[k] | self._frame[k + 1] << 8

    def imu(self) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
        """Orientation (4,) x y z w, angular velocity (3,) [rad/s], acceleration (3,) [m/s^2] of the last state."""
        if not self._frame:
            return None
        values = np.frombuffer(self._frame, "<f4", 10, self._layout.offset("imu_state.quaternion")).astype(float)
        return values[[1, 2, 3, 0]], values[4:7], values[7:]

    def battery(self) -> BatteryReading | None:
        """Battery as the last state of the family `go` has it; None for the others, whose states are without."""
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
"""Buttons of the remote control by their bit."""
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
    0x40000000: "motor heard nothing from the computer",
    0x80000000: "computer heard nothing from the motor",
}
"""Bits of a motor's fault code, from the vendor's page of error codes."""


def fault_words(code: int) -> str:
    """A motor's fault code in words."""
    names = [text for bit, text in FAULTS.items() if code & bit]
    rest = code & ~sum(FAULTS)
    return ", ".join([*names, *([f"fault 0x{rest:X}"] if rest else [])])
