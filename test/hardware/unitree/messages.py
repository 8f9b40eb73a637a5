"""Messages of Unitree's robots as classes of the DDS binding, written down a second time, and random ones of them."""

import ctypes
import struct
from dataclasses import dataclass
from functools import cache

import cyclonedds.idl.annotations as annotate
from cyclonedds.idl import IdlStruct
from cyclonedds.idl.types import array, float32, int16, int32, uint8, uint16, uint32


@dataclass
@annotate.final
@annotate.autoid("sequential")
class HgMotorCmd(IdlStruct, typename="unitree_hg.msg.dds_.MotorCmd_"):
    mode: uint8
    q: float32
    dq: float32
    tau: float32
    kp: float32
    kd: float32
    reserve: uint32


@dataclass
@annotate.final
@annotate.autoid("sequential")
class HgLowCmd(IdlStruct, typename="unitree_hg.msg.dds_.LowCmd_"):
    mode_pr: uint8
    mode_machine: uint8
    motor_cmd: array[HgMotorCmd, 35]
    reserve: array[uint32, 4]
    crc: uint32


@dataclass
@annotate.final
@annotate.autoid("sequential")
class HgImu(IdlStruct, typename="unitree_hg.msg.dds_.IMUState_"):
    quaternion: array[float32, 4]
    gyroscope: array[float32, 3]
    accelerometer: array[float32, 3]
    rpy: array[float32, 3]
    temperature: int16


@dataclass
@annotate.final
@annotate.autoid("sequential")
class HgMotorState(IdlStruct, typename="unitree_hg.msg.dds_.MotorState_"):
    mode: uint8
    q: float32
    dq: float32
    ddq: float32
    tau_est: float32
    temperature: array[int16, 2]
    vol: float32
    sensor: array[uint32, 2]
    motorstate: uint32
    reserve: array[uint32, 4]


@dataclass
@annotate.final
@annotate.autoid("sequential")
class HgLowState(IdlStruct, typename="unitree_hg.msg.dds_.LowState_"):
    version: array[uint32, 2]
    mode_pr: uint8
    mode_machine: uint8
    tick: uint32
    imu_state: HgImu
    motor_state: array[HgMotorState, 35]
    wireless_remote: array[uint8, 40]
    reserve: array[uint32, 4]
    crc: uint32


@dataclass
@annotate.final
@annotate.autoid("sequential")
class GoMotorCmd(IdlStruct, typename="unitree_go.msg.dds_.MotorCmd_"):
    mode: uint8
    q: float32
    dq: float32
    tau: float32
    kp: float32
    kd: float32
    reserve: array[uint32, 3]


@dataclass
@annotate.final
@annotate.autoid("sequential")
class GoBmsCmd(IdlStruct, typename="unitree_go.msg.dds_.BmsCmd_"):
    off: uint8
    reserve: array[uint8, 3]


@dataclass
@annotate.final
@annotate.autoid("sequential")
class GoLowCmd(IdlStruct, typename="unitree_go.msg.dds_.LowCmd_"):
    head: array[uint8, 2]
    level_flag: uint8
    frame_reserve: uint8
    sn: array[uint32, 2]
    version: array[uint32, 2]
    bandwidth: uint16
    motor_cmd: array[GoMotorCmd, 20]
    bms_cmd: GoBmsCmd
    wireless_remote: array[uint8, 40]
    led: array[uint8, 12]
    fan: array[uint8, 2]
    gpio: uint8
    reserve: uint32
    crc: uint32


@dataclass
@annotate.final
@annotate.autoid("sequential")
class GoImu(IdlStruct, typename="unitree_go.msg.dds_.IMUState_"):
    quaternion: array[float32, 4]
    gyroscope: array[float32, 3]
    accelerometer: array[float32, 3]
    rpy: array[float32, 3]
    temperature: uint8


@dataclass
@annotate.final
@annotate.autoid("sequential")
class GoMotorState(IdlStruct, typename="unitree_go.msg.dds_.MotorState_"):
    mode: uint8
    q: float32
    dq: float32
    ddq: float32
    tau_est: float32
    q_raw: float32
    dq_raw: float32
    ddq_raw: float32
    temperature: uint8
    lost: uint32
    reserve: array[uint32, 2]


@dataclass
@annotate.final
@annotate.autoid("sequential")
class GoBmsState(IdlStruct, typename="unitree_go.msg.dds_.BmsState_"):
    version_high: uint8
    version_low: uint8
    status: uint8
    soc: uint8
    current: int32
    cycle: uint16
    bq_ntc: array[uint8, 2]
    mcu_ntc: array[uint8, 2]
    cell_vol: array[uint16, 15]


@dataclass
@annotate.final
@annotate.autoid("sequential")
class GoLowState(IdlStruct, typename="unitree_go.msg.dds_.LowState_"):
    head: array[uint8, 2]
    level_flag: uint8
    frame_reserve: uint8
    sn: array[uint32, 2]
    version: array[uint32, 2]
    bandwidth: uint16
    imu_state: GoImu
    motor_state: array[GoMotorState, 20]
    bms_state: GoBmsState
    foot_force: array[int16, 4]
    foot_force_est: array[int16, 4]
    tick: uint32
    wireless_remote: array[uint8, 40]
    bit_flag: uint8
    adc_reel: float32
    temperature_ntc1: uint8
    temperature_ntc2: uint8
    power_v: float32
    power_a: float32
    fan_frequency: array[uint16, 4]
    reserve: uint32
    crc: uint32


COMMANDS, STATES = {"hg": HgLowCmd, "go": GoLowCmd}, {"hg": HgLowState, "go": GoLowState}
INTEGERS = {
    uint8: (ctypes.c_uint8, 0, 2**8),
    int16: (ctypes.c_int16, -(2**15), 2**15),
    uint16: (ctypes.c_uint16, 0, 2**16),
    int32: (ctypes.c_int32, -(2**31), 2**31),
    uint32: (ctypes.c_uint32, 0, 2**32),
}


def members(kind):
    """Fields of a class: name, type, length (None: no array)."""
    for name, k in kind.__annotations__.items():
        many = k.__metadata__[0] if isinstance(getattr(k, "__metadata__", [None])[0], array) else None
        yield (name, many.subtype, many.length) if many else (name, k, None)


def made(kind, value):
    """A message of a class with numbers from `value(type)`."""
    if kind is float32 or kind in INTEGERS:
        return value(kind)
    return kind(**{m: made(k, value) if n is None else [made(k, value) for _ in range(n)] for m, k, n in members(kind)})


def zero(kind):
    """A message of a class with nothing in it."""
    return made(kind, lambda k: 0.0 if k is float32 else 0)


def random_message(kind, rng, share=1.0):
    """A message of a class with a random number in every field, from a share of what its type can hold."""

    def value(k):
        if k is float32:
            return float(rng.standard_normal(dtype="f4"))
        return int(share * rng.integers(*INTEGERS[k][1:]))

    return made(kind, value)


@cache
def structure(kind):
    """A class as a C structure, aligned by ctypes."""
    if kind is float32:
        return ctypes.c_float
    if kind in INTEGERS:
        return INTEGERS[kind][0]
    fields = [(m, structure(k) if n is None else structure(k) * n) for m, k, n in members(kind)]
    return type(kind.__name__, (ctypes.Structure,), {"_fields_": fields})


def c_words(message):
    """Words of the C structure of a message, all but the last."""

    def in_c(value):
        if not isinstance(value, IdlStruct):
            return value
        out = structure(type(value))()
        for m, _, n in members(type(value)):
            field = getattr(value, m)
            setattr(out, m, in_c(field) if n is None else type(getattr(out, m))(*map(in_c, field)))
        return out

    return struct.unpack(f"<{ctypes.sizeof(structure(type(message))) // 4}I", bytes(in_c(message)))[:-1]


def crc_of(words):
    """CRC of words as the remainder of one long division: 32 ones added at the front, 32 zeros at the end."""
    value, n = 0, 32 * len(words)
    for w in words:
        value = value << 32 | w
    value = (value ^ (0xFFFFFFFF << (n - 32))) << 32
    for k in range(n + 31, 31, -1):
        if value >> k & 1:
            value ^= 0x104C11DB7 << (k - 32)
    return value
