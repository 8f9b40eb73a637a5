"""Frames of the Dynamixel protocol 2.0: packets with byte stuffing and CRC-16, replies found in a stream of bytes.

A packet is FF FF FD 00, id, length (2), instruction, parameters, CRC (2). In instruction and parameters FF FF FD is
followed by one more FD, so that a header is nowhere else; only the replies to a fast sync read are not stuffed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from humanoid_control.jit import kernel

PING, READ, WRITE, REBOOT, STATUS = 0x01, 0x02, 0x03, 0x08, 0x55
SYNC_READ, SYNC_WRITE, FAST_SYNC_READ = 0x82, 0x83, 0x8A
BROADCAST, GREATEST_ID = 0xFE, 252
ALERT = 0x80  # bit of a reply's error: Hardware Error Status says more
HEADER, INSTRUCTION = 4, 7  # bytes before the id, and before the instruction
SHORTEST = 10  # bytes of the shortest packet
OVERHEAD = 11  # bytes of a reply without its data
LONGEST = 4096  # bytes of a packet that is built or believed
SAMPLE = 10  # bytes of a sample: current (2), velocity (4), position (4)
ERRORS = {
    1: "result fail",
    2: "instruction error",
    3: "CRC error",
    4: "data range error",
    5: "data length error",
    6: "data limit error",
    7: "access error",
}


def _crc_tables() -> np.ndarray:
    """(4, 256) CRC of each byte with 0 .. 3 bytes of zero behind it."""
    tables = np.zeros((4, 256), np.int64)
    for k in range(256):
        r = k << 8
        for z in range(4):
            for _ in range(8):
                r = ((r << 1) ^ 0x8005 if r & 0x8000 else r << 1) & 0xFFFF
            tables[z, k] = r
    return tables


CRC_TABLES = _crc_tables()


@kernel
def crc16(data: np.ndarray, begin: int, end: int, crc: int) -> int:
    """CRC of bytes begin .. end, polynomial 0x8005, most significant bit first; `crc` is that of the bytes before.

    A CRC is linear: that of four bytes is the sum of those of each with zeros behind it, which need not be waited for.
    """
    k = begin
    while k + 4 <= end:
        crc = (
            CRC_TABLES[3, (crc >> 8) ^ data[k]]
            ^ CRC_TABLES[2, (crc & 0xFF) ^ data[k + 1]]
            ^ CRC_TABLES[1, data[k + 2]]
            ^ CRC_TABLES[0, data[k + 3]]
        )
        k += 4
    for i in range(k, end):
        crc = ((crc << 8) & 0xFFFF) ^ CRC_TABLES[0, (crc >> 8) ^ data[i]]
    return crc


@kernel
def put(out: np.ndarray, at: int, byte: int) -> int:
    """Write a byte of instruction or parameters, stuffed; the place behind it."""
    out[at] = byte
    if byte == 0xFD and out[at - 1] == 0xFF and out[at - 2] == 0xFF:
        out[at + 1] = 0xFD
        return at + 2
    return at + 1


@kernel
def close_packet(out: np.ndarray, to: int, end: int) -> int:
    """Write header, id, length and CRC around instruction and parameters; the size of the packet [bytes].

    Args:
        out: bytes with instruction and parameters in place. to: id. end: place behind the parameters.
    """
    out[0], out[1], out[2], out[3], out[4] = 0xFF, 0xFF, 0xFD, 0x00, to
    length = end - INSTRUCTION + 2
    out[5], out[6] = length & 0xFF, length >> 8
    crc = crc16(out, 0, end, 0)
    out[end], out[end + 1] = crc & 0xFF, crc >> 8
    return end + 2


@kernel
def build(out: np.ndarray, to: int, instruction: int, parameters: np.ndarray) -> int:
    """Build a packet; its size [bytes]."""
    out[INSTRUCTION - 2 : INSTRUCTION] = 0  # what was there must not look like FF FF before an FD
    at = put(out, INSTRUCTION, instruction)
    for byte in parameters:
        at = put(out, at, byte)
    return close_packet(out, to, at)


def packet(to: int, instruction: int, parameters: bytes = b"") -> bytes:
    """A packet.

    Args:
        to: id of a servo, or BROADCAST. instruction: as above. parameters: not stuffed.
    """
    out = np.zeros(INSTRUCTION + 3 + 2 * len(parameters) + 2, np.uint8)
    size = build(out, to, instruction, np.frombuffer(parameters, np.uint8))
    return out[:size].tobytes()


def read_packet(to: int, address: int, length: int) -> bytes:
    """Packet that asks one servo for `length` bytes from an address."""
    return packet(to, READ, _words(address, length))


def write_packet(to: int, address: int, data: bytes) -> bytes:
    """Packet that writes bytes to an address of one servo."""
    return packet(to, WRITE, _words(address) + data)


def sync_read_packet(ids: Sequence[int], address: int, length: int, fast: bool = False) -> bytes:
    """Packet that asks many servos for the same bytes; they answer in this order, `fast` in one packet."""
    return packet(BROADCAST, FAST_SYNC_READ if fast else SYNC_READ, _words(address, length) + bytes(ids))


def sync_write_packet(ids: Sequence[int], address: int, data: Sequence[bytes]) -> bytes:
    """Packet that writes to the same address of many servos, each its own bytes; nobody answers."""
    rows = b"".join(bytes([i]) + d for i, d in zip(ids, data, strict=True))
    return packet(BROADCAST, SYNC_WRITE, _words(address, len(data[0])) + rows)


def _words(*numbers: int) -> bytes:
    return b"".join(n.to_bytes(2, "little") for n in numbers)


# -------- Goals


@kernel
def encode_goals(
    values: np.ndarray,
    conversion: np.ndarray,
    ids: np.ndarray,
    target: tuple[int, int],
    sent: np.ndarray,
    out: np.ndarray,
) -> int:
    """Build the sync write of one goal of k servos; its size [bytes].

    count = zero + value * scale, rounded, inside low .. high. A value that is not a number repeats the last count.

    Args:
        values: (k,) in SI units. conversion: (k, 4) zero, scale, low, high, in counts.
        ids: (k,) int64. target: address, and bytes of a count.
        sent: (k,) int64 counts, changed in place.
        out: bytes of the packet.
    """
    address, width = target
    out[INSTRUCTION] = SYNC_WRITE
    out[8], out[9], out[10], out[11] = address & 0xFF, address >> 8, width, 0
    at = INSTRUCTION + 5
    for i in range(values.shape[0]):
        if np.isfinite(values[i]):
            count = conversion[i, 0] + values[i] * conversion[i, 1]
            sent[i] = np.int64(np.rint(min(max(count, conversion[i, 2]), conversion[i, 3])))
        at = put(out, at, ids[i])
        for k in range(width):
            at = put(out, at, (sent[i] >> (8 * k)) & 0xFF)
    return close_packet(out, BROADCAST, at)


# -------- Replies


@kernel
def take_replies(
    buffer: np.ndarray, end: int, row_of: np.ndarray, data: np.ndarray, errors: np.ndarray, came: np.ndarray
) -> int:
    """Find the replies of servos in a stream of bytes, whatever else is in it; number of those that came.

    A header whose packet is not whole, or whose CRC is wrong, is passed over by one byte: the next header is looked
    for inside of it, so that one lost byte costs one reply.

    Args:
        buffer: bytes; 0 .. end are valid. row_of: (256,) row of each id, -1: not asked.
        data: (k, length) of the replies, not stuffed. errors: (k,) error byte. came: (k,) a whole reply is there.
    """
    length, at = data.shape[1], 0
    while at + SHORTEST <= end:
        if buffer[at] != 0xFF or buffer[at + 1] != 0xFF or buffer[at + 2] != 0xFD or buffer[at + 3] != 0:
            at += 1
            continue
        size = INSTRUCTION + np.int64(buffer[at + 5]) + 256 * np.int64(buffer[at + 6])
        stop = at + size - 2
        if buffer[at + INSTRUCTION] != STATUS or size < OVERHEAD or size > LONGEST:
            at += 1
            continue
        whole = stop + 2 <= end and crc16(buffer, at, stop, 0) == buffer[stop] + 256 * np.int64(buffer[stop + 1])
        if buffer[at + HEADER] == BROADCAST:
            at += max(_take_chain(buffer, at, (end, stop + 2), whole, row_of, data, errors, came), 1)
        elif whole:
            row = row_of[buffer[at + HEADER]]
            if row >= 0:
                errors[row] = buffer[at + 8]
                came[row] = _take_data(buffer, at + 9, stop, data[row]) == length
            at += size
        else:
            at += 1
    count = 0
    for k in range(came.shape[0]):
        count += came[k]
    return count


@kernel
def _take_data(buffer: np.ndarray, begin: int, stop: int, out: np.ndarray) -> int:
    """Copy the parameters of a reply without its stuffing; their number, also where `out` is shorter."""
    n, k = 0, begin
    while k < stop:
        if n < out.shape[0]:
            out[n] = buffer[k]
        n += 1
        stuffed = buffer[k] == 0xFD and buffer[k - 1] == 0xFF and buffer[k - 2] == 0xFF
        k += 2 if stuffed and k + 1 < stop and buffer[k + 1] == 0xFD else 1
    return n


@kernel
def _take_chain(
    buffer: np.ndarray, at: int, ends: tuple[int, int], whole: bool, row_of: np.ndarray, data: np.ndarray,
    errors: np.ndarray, came: np.ndarray,
) -> int:  # fmt: skip
    """Replies to a fast sync read: error, id, data, CRC of each servo in one packet; bytes that were understood.

    Each CRC is that of all bytes from the header on, so that the replies before a missing one are still good.
    """
    end, stop = ends
    length = data.shape[1]
    begin, crc, done = at + INSTRUCTION + 1, crc16(buffer, at, at + INSTRUCTION + 1, 0), 0
    last = min(end, stop)
    while begin + length + 4 <= last:
        tail = begin + 2 + length
        crc = crc16(buffer, begin, tail, crc)
        if not whole and crc != buffer[tail] + 256 * np.int64(buffer[tail + 1]):
            break
        row = row_of[buffer[begin + 1]]
        if row >= 0:
            errors[row], came[row] = buffer[begin], True
            data[row] = buffer[begin + 2 : tail]
        crc = crc16(buffer, tail, tail + 2, crc)
        begin = tail + 2
        done = begin - at
    return done


@kernel
def decode_samples(data: np.ndarray, came: np.ndarray, conversion: np.ndarray, out: np.ndarray) -> None:
    """Samples of servos in SI units, of those that came.

    Args:
        data: (k, SAMPLE) bytes. came: (k,) bool.
        conversion: (k, 4) position that is zero [counts], [rad], [rad/s], [N m] of a count.
        out: (k, 3) q [rad], v [rad/s], tau [N m].
    """
    for i in range(data.shape[0]):
        if came[i]:
            d = data[i]
            current, velocity, position = _signed(d, 0, 2), _signed(d, 2, 4), _signed(d, 6, 4)
            out[i, 0] = (position - conversion[i, 0]) * conversion[i, 1]
            out[i, 1] = velocity * conversion[i, 2]
            out[i, 2] = current * conversion[i, 3]


@kernel
def _signed(d: np.ndarray, at: int, width: int) -> int:
    value = np.int64(0)
    for k in range(width):
        value |= np.int64(d[at + k]) << (8 * k)
    half = 1 << (8 * width - 1)
    return value - 2 * half if value >= half else value


class Replies:
    """Replies of k servos to one request, found in what has arrived since.

    Attributes:
        request: packet. expected: bytes of all replies, without stuffing.
        data: (k, length) uint8. errors: (k,) uint8. came: (k,) bool.
    """

    def __init__(self, request: bytes, ids: Sequence[int], length: int, fast: bool = False) -> None:
        k = len(ids)
        self.request, self.expected = request, reply_size(k, length, fast)
        self.data, self.errors, self.came = np.zeros((k, length), np.uint8), np.zeros(k, np.uint8), np.zeros(k, bool)
        self._row_of = np.full(256, -1, np.int64)
        self._row_of[list(ids)] = np.arange(k)
        self.take(np.zeros(1, np.uint8), 0)  # compiled now, not in the middle of a motion

    def restart(self) -> None:
        """Forget what came."""
        self.came[:] = False

    def take(self, buffer: np.ndarray, end: int) -> bool:
        """Look through the first `end` bytes that arrived; True when all replies are there."""
        return take_replies(buffer, end, self._row_of, self.data, self.errors, self.came) == len(self.came)

    def numbers(self, begin: int, width: int) -> np.ndarray:
        """(k,) unsigned numbers at a place of the data."""
        weights = 256 ** np.arange(width)
        return self.data[:, begin : begin + width].astype(np.int64) @ weights


def reply_size(k: int, length: int, fast: bool) -> int:
    """Bytes of the replies of k servos with `length` bytes of data each."""
    return 8 + k * (length + 4) if fast else k * (OVERHEAD + length)


def cycle_bytes(k: int, fast: bool) -> int:
    """Bytes on the wire of a cycle: one goal of 4 bytes to each of k servos, a sample of each."""
    return (14 + 5 * k) + (14 + k) + reply_size(k, SAMPLE, fast)
