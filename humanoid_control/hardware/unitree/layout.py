"""Layout of Unitree messages on the wire (CDR) and in the C structure of the CRC.

On the wire (XCDR version 1) fields are aligned to their size, structures not at all. In C a structure is aligned to its
widest field.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

from humanoid_control.errors import UnknownNameError

HEADER = 4  # bytes on the wire before the fields: encoding and options
SIZES = {"u1": 1, "i2": 2, "u2": 2, "i4": 4, "u4": 4, "f4": 4}


class Struct(NamedTuple):
    """Structure: wire name, and fields with type and count (0: no array)."""

    name: str
    fields: tuple[tuple[str, Struct | str, int], ...]


HG_MOTOR_CMD = Struct(
    "unitree_hg.msg.dds_.MotorCmd_",
    (
        ("mode", "u1", 0),
        ("q", "f4", 0),
        ("dq", "f4", 0),
        ("tau", "f4", 0),
        ("kp", "f4", 0),
        ("kd", "f4", 0),
        ("reserve", "u4", 0),
    ),
)
HG_LOW_CMD = Struct(
    "unitree_hg.msg.dds_.LowCmd_",
    (
        ("mode_pr", "u1", 0),
        ("mode_machine", "u1", 0),
        ("motor_cmd", HG_MOTOR_CMD, 35),
        ("reserve", "u4", 4),
        ("crc", "u4", 0),
    ),
)


def _imu(family: str, temperature: str) -> Struct:
    vectors = (("quaternion", "f4", 4), ("gyroscope", "f4", 3), ("accelerometer", "f4", 3), ("rpy", "f4", 3))
    return Struct(f"unitree_{family}.msg.dds_.IMUState_", (*vectors, ("temperature", temperature, 0)))


HG_MOTOR_STATE = Struct(
    "unitree_hg.msg.dds_.MotorState_",
    (
        ("mode", "u1", 0),
        ("q", "f4", 0),
        ("dq", "f4", 0),
        ("ddq", "f4", 0),
        ("tau_est", "f4", 0),
        ("temperature", "i2", 2),
        ("vol", "f4", 0),
        ("sensor", "u4", 2),
        ("motorstate", "u4", 0),
        ("reserve", "u4", 4),
    ),
)
HG_LOW_STATE = Struct(
    "unitree_hg.msg.dds_.LowState_",
    (
        ("version", "u4", 2),
        ("mode_pr", "u1", 0),
        ("mode_machine", "u1", 0),
        ("tick", "u4", 0),
        ("imu_state", _imu("hg", "i2"), 0),
        ("motor_state", HG_MOTOR_STATE, 35),
        ("wireless_remote", "u1", 40),
        ("reserve", "u4", 4),
        ("crc", "u4", 0),
    ),
)
GO_HEAD: tuple[tuple[str, Struct | str, int], ...] = (
    ("head", "u1", 2),
    ("level_flag", "u1", 0),
    ("frame_reserve", "u1", 0),
    ("sn", "u4", 2),
    ("version", "u4", 2),
    ("bandwidth", "u2", 0),
)
GO_MOTOR_CMD = Struct(HG_MOTOR_CMD.name.replace("_hg", "_go"), (*HG_MOTOR_CMD.fields[:-1], ("reserve", "u4", 3)))
GO_LOW_CMD = Struct(
    "unitree_go.msg.dds_.LowCmd_",
    (
        *GO_HEAD,
        ("motor_cmd", GO_MOTOR_CMD, 20),
        ("bms_cmd", Struct("unitree_go.msg.dds_.BmsCmd_", (("off", "u1", 0), ("reserve", "u1", 3))), 0),
        ("wireless_remote", "u1", 40),
        ("led", "u1", 12),
        ("fan", "u1", 2),
        ("gpio", "u1", 0),
        ("reserve", "u4", 0),
        ("crc", "u4", 0),
    ),
)
GO_MOTOR_STATE = Struct(
    "unitree_go.msg.dds_.MotorState_",
    (
        ("mode", "u1", 0),
        ("q", "f4", 0),
        ("dq", "f4", 0),
        ("ddq", "f4", 0),
        ("tau_est", "f4", 0),
        ("q_raw", "f4", 0),
        ("dq_raw", "f4", 0),
        ("ddq_raw", "f4", 0),
        ("temperature", "u1", 0),
        ("lost", "u4", 0),
        ("reserve", "u4", 2),
    ),
)
GO_BMS_STATE = Struct(
    "unitree_go.msg.dds_.BmsState_",
    (
        ("version_high", "u1", 0),
        ("version_low", "u1", 0),
        ("status", "u1", 0),
        ("soc", "u1", 0),
        ("current", "i4", 0),
        ("cycle", "u2", 0),
        ("bq_ntc", "u1", 2),
        ("mcu_ntc", "u1", 2),
        ("cell_vol", "u2", 15),
    ),
)
GO_LOW_STATE = Struct(
    "unitree_go.msg.dds_.LowState_",
    (
        *GO_HEAD,
        ("imu_state", _imu("go", "u1"), 0),
        ("motor_state", GO_MOTOR_STATE, 20),
        ("bms_state", GO_BMS_STATE, 0),
        ("foot_force", "i2", 4),
        ("foot_force_est", "i2", 4),
        ("tick", "u4", 0),
        ("wireless_remote", "u1", 40),
        ("bit_flag", "u1", 0),
        ("adc_reel", "f4", 0),
        ("temperature_ntc1", "u1", 0),
        ("temperature_ntc2", "u1", 0),
        ("power_v", "f4", 0),
        ("power_a", "f4", 0),
        ("fan_frequency", "u2", 4),
        ("reserve", "u4", 0),
        ("crc", "u4", 0),
    ),
)


class Field(NamedTuple):
    """Field: type, length (0: no array), offset behind the wire header, offset in C."""

    kind: str
    length: int
    wire: int
    c: int


class Layout:
    """Offsets of all fields of a message.

    Attributes:
        size: wire bytes with header, a multiple of 4.
        fields: fields by their path, e.g. 'tick', 'motor_cmd.3.q'.
        crc_words: source of each C word of the CRC: word behind the header, right shift, mask (m, 3) uint32.
    """

    def __init__(self, struct: Struct) -> None:
        self.struct = struct
        self.fields: dict[str, Field] = {}
        end, c_end = self._walk(struct, "", 0, 0)
        self.size = HEADER + -(-end // 4) * 4
        self.c_size = -(-c_end // _alignment(struct)) * _alignment(struct)
        self.crc_words = self._crc_words()

    def _walk(self, struct: Struct, path: str, wire: int, c: int) -> tuple[int, int]:
        for name, kind, count in struct.fields:
            if isinstance(kind, Struct):
                step = _alignment(kind)
                for k in range(max(count, 1)):
                    c = -(-c // step) * step
                    below = f"{path}{name}.{k}." if count else f"{path}{name}."
                    wire, c = self._walk(kind, below, wire, c)
                    c = -(-c // step) * step
                continue
            size = SIZES[kind]
            wire, c = -(-wire // size) * size, -(-c // size) * size
            self.fields[path + name] = Field(kind, count, wire, c)
            wire, c = wire + size * max(count, 1), c + size * max(count, 1)
        return wire, c

    def _crc_words(self) -> np.ndarray:
        source = np.full(self.c_size, -1)
        for f in self.fields.values():
            n = SIZES[f.kind] * max(f.length, 1)
            source[f.c : f.c + n] = np.arange(f.wire, f.wire + n)
        words = np.zeros((self.c_size // 4 - 1, 3), np.uint32)
        for k, bytes_ in enumerate(source.reshape(-1, 4)[:-1].tolist()):
            n = sum(b >= 0 for b in bytes_)
            first = bytes_[0]
            if bytes_ != [first + i if i < n else -1 for i in range(4)] or first // 4 != (first + n - 1) // 4:
                raise ValueError(f"word {k} of {self.struct.name} does not lie in one word of the wire")
            words[k] = first // 4, 8 * (first % 4), (1 << 8 * n) - 1
        return words

    def offset(self, path: str) -> int:
        """Return the first byte of a field in the frame, with header."""
        return HEADER + self.fields[path].wire

    def word(self, path: str) -> int:
        """Return the 4-byte word behind the header with a field."""
        return self.fields[path].wire // 4

    def shift(self, path: str) -> int:
        """Return the shift of a field in its word [bits]."""
        return 8 * (self.fields[path].wire % 4)


def _alignment(struct: Struct) -> int:
    return max(_alignment(kind) if isinstance(kind, Struct) else SIZES[kind] for _, kind, _ in struct.fields)


class Family(NamedTuple):
    """Messages of one robot family.

    Attributes:
        motors: places in both messages.
    """

    name: str
    command: Layout
    state: Layout
    motors: int

    @property
    def humanoid(self) -> bool:
        """True for frames with mode_pr and mode_machine, and motors with fault code and two temperatures."""
        return "mode_machine" in self.command.fields


@cache
def family_of(name: str) -> Family:
    """Return a family: 'hg' (G1, H1-2, H2) or 'go' (H1, Go2).

    Raises:
        UnknownNameError: if unknown.
    """
    messages = {"hg": (HG_LOW_CMD, HG_LOW_STATE, 35), "go": (GO_LOW_CMD, GO_LOW_STATE, 20)}
    if name not in messages:
        raise UnknownNameError("family of Unitree messages", name, messages)
    command, state, motors = messages[name]
    return Family(name, Layout(command), Layout(state), motors)
