"""Dynamixel protocol 2.0 frames: byte stuffing, CRC-16, reply parsing.

Packet: FF FF FD 00, id, length (2), instruction, parameters, CRC (2). After FF FF FD in instruction and parameters FD
is doubled, except in replies to a fast sync read.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from humanoid_control.compiled.jit import kernel

PING, READ, WRITE, REBOOT, STATUS = 0x01, 0x02, 0x03, 0x08, 0x55
SYNC_READ, SYNC_WRITE, FAST_SYNC_READ = 0x82, 0x83, 0x8A
BROADCAST, GREATEST_ID = 0xFE, 252
ALERT = 0x80  # error bit of a reply: Hardware Error Status is set
HEADER, INSTRUCTION = 4, 7  # bytes before the id, and before the instruction
SHORTEST = 10  # bytes of the shortest packet
OVERHEAD = 11  # bytes of a reply without its data
LONGEST = 4096  # bytes of the longest packet built or accepted
SAMPLE = 10  # sample [bytes]: current (2), velocity (4), position (4)
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
    """Return the CRC of each byte followed by 0 .. 3 zero bytes (4, 256)."""
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
    """Continue a CRC (polynomial 0x8005, most significant bit first) over bytes [begin, end)."""
    # the CRC is linear: four bytes are the sum of each with zeros behind it, without serial dependence
    k = begin
    while k + 4 <= end:
        crc = (
            CRC_TABLES[3, (crc >> 8) ^ data[k]]
            ^ CRC_TABLES[2, (crc & 0xFF) ^ data[k + 1]]
            ^ CRC_TABLES[1, data[k + 2]]
            ^ CRC_TABLES[0, data[k + 3]]
        )
        k += 4
    # at most three remaining bytes
    for i in range(k, end):
        crc = ((crc << 8) & 0xFFFF) ^ CRC_TABLES[0, (crc >> 8) ^ data[i]]
    return crc


@kernel
def put(out: np.ndarray, at: int, byte: int) -> int:
    """Write a stuffed byte; return the next place."""
    out[at] = byte
    # a header pattern FF FF FD in the data is broken by a second FD
    if byte == 0xFD and out[at - 1] == 0xFF and out[at - 2] == 0xFF:
        out[at + 1] = 0xFD
        return at + 2
    return at + 1


@kernel
def close_packet(out: np.ndarray, to: int, end: int) -> int:
    """Complete a packet with header, id, length, CRC; return its size.

    Args:
        end: place behind the parameters.
    """
    out[0], out[1], out[2], out[3], out[4] = 0xFF, 0xFF, 0xFD, 0x00, to
    # the length counts instruction, parameters and CRC
    length = end - INSTRUCTION + 2
    out[5], out[6] = length & 0xFF, length >> 8
    crc = crc16(out, 0, end, 0)
    out[end], out[end + 1] = crc & 0xFF, crc >> 8
    return end + 2


@kernel
def build(out: np.ndarray, to: int, instruction: int, parameters: np.ndarray) -> int:
    """Build a packet; return its size."""
    out[INSTRUCTION - 2 : INSTRUCTION] = 0  # old bytes must not look like FF FF before an FD
    at = put(out, INSTRUCTION, instruction)
    for byte in parameters:
        at = put(out, at, byte)
    return close_packet(out, to, at)


def packet(to: int, instruction: int, parameters: bytes = b"") -> bytes:
    """Return a packet.

    Args:
        to: id or BROADCAST.
        parameters: not stuffed.
    """
    out = np.zeros(INSTRUCTION + 3 + 2 * len(parameters) + 2, np.uint8)
    size = build(out, to, instruction, np.frombuffer(parameters, np.uint8))
    return out[:size].tobytes()


def read_packet(to: int, address: int, length: int) -> bytes:
    """Return a request for `length` bytes of one servo."""
    return packet(to, READ, _words(address, length))


def write_packet(to: int, address: int, data: bytes) -> bytes:
    """Return a packet that writes to one servo."""
    return packet(to, WRITE, _words(address) + data)


def sync_read_packet(ids: Sequence[int], address: int, length: int, fast: bool = False) -> bytes:
    """Return a request to many servos; `fast`: answered in one packet."""
    return packet(BROADCAST, FAST_SYNC_READ if fast else SYNC_READ, _words(address, length) + bytes(ids))


def sync_write_packet(ids: Sequence[int], address: int, data: Sequence[bytes]) -> bytes:
    """Return a packet that writes individual bytes to many servos."""
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
    """Build the sync write of one goal of k servos; return its size.

    count = zero + value * scale, rounded, clipped to [low, high]. Non-finite values repeat the last count.

    Args:
        conversion: zero, scale, low, high [counts] (k, 4).
        target: address, bytes of a count.
        sent: counts, changed in place (k,) int64.
    """
    address, width = target
    # sync write header: address and width, both little-endian
    out[INSTRUCTION] = SYNC_WRITE
    out[8], out[9], out[10], out[11] = address & 0xFF, address >> 8, width, 0
    at = INSTRUCTION + 5
    for i in range(values.shape[0]):
        # otherwise the last count is repeated
        if np.isfinite(values[i]):
            count = conversion[i, 0] + values[i] * conversion[i, 1]
            sent[i] = np.int64(np.rint(min(max(count, conversion[i, 2]), conversion[i, 3])))
        at = put(out, at, ids[i])
        # little-endian; `put` stuffs each byte
        for k in range(width):
            at = put(out, at, (sent[i] >> (8 * k)) & 0xFF)
    return close_packet(out, BROADCAST, at)


# -------- Replies


@kernel
def take_replies(
    buffer: np.ndarray, end: int, row_of: np.ndarray, data: np.ndarray, errors: np.ndarray, came: np.ndarray
) -> int:
    """Find replies in a byte stream; return their number.

    After a damaged packet the search advances one byte, so a lost byte costs one reply.

    Args:
        buffer: valid up to `end`.
        row_of: row by id, -1: not requested (256,).
        data: not stuffed (k, length).
        errors: (k,).
        came: (k,).
    """
    length, at = data.shape[1], 0
    while at + SHORTEST <= end:
        if buffer[at] != 0xFF or buffer[at + 1] != 0xFF or buffer[at + 2] != 0xFD or buffer[at + 3] != 0:
            at += 1
            continue
        size = INSTRUCTION + np.int64(buffer[at + 5]) + 256 * np.int64(buffer[at + 6])
        stop = at + size - 2
        # a header inside data, or a damaged length
        if buffer[at + INSTRUCTION] != STATUS or size < OVERHEAD or size > LONGEST:
            at += 1
            continue
        # verify the CRC only if the whole packet has arrived
        whole = stop + 2 <= end and crc16(buffer, at, stop, 0) == buffer[stop] + 256 * np.int64(buffer[stop + 1])
        # a fast sync read is answered by one broadcast packet with all servos
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
    """Copy parameters without stuffing; return their number."""
    n, k = 0, begin
    while k < stop:
        if n < out.shape[0]:
            out[n] = buffer[k]
        n += 1
        # an FD after FF FF FD is stuffing
        stuffed = buffer[k] == 0xFD and buffer[k - 1] == 0xFF and buffer[k - 2] == 0xFF
        k += 2 if stuffed and k + 1 < stop and buffer[k + 1] == 0xFD else 1
    return n


@kernel(allocates=True)
def _take_chain(
    buffer: np.ndarray, at: int, ends: tuple[int, int], whole: bool, row_of: np.ndarray, data: np.ndarray,
    errors: np.ndarray, came: np.ndarray,
) -> int:  # fmt: skip
    """Parse a fast sync read (error, id, data, CRC of each servo); return bytes consumed.

    Each CRC covers all bytes from the header: replies before a missing one are valid.
    """
    end, stop = ends
    length = data.shape[1]
    begin, crc, done = at + INSTRUCTION + 1, crc16(buffer, at, at + INSTRUCTION + 1, 0), 0
    last = min(end, stop)
    while begin + length + 4 <= last:
        tail = begin + 2 + length
        crc = crc16(buffer, begin, tail, crc)
        # in a complete packet the final CRC has proved all data
        if not whole and crc != buffer[tail] + 256 * np.int64(buffer[tail + 1]):
            break
        row = row_of[buffer[begin + 1]]
        if row >= 0:
            errors[row], came[row] = buffer[begin], True
            data[row] = buffer[begin + 2 : tail]
        # the next CRC also covers this CRC
        crc = crc16(buffer, tail, tail + 2, crc)
        begin = tail + 2
        done = begin - at
    return done


@kernel
def decode_samples(data: np.ndarray, came: np.ndarray, conversion: np.ndarray, out: np.ndarray) -> None:
    """Convert received samples to SI units.

    Args:
        data: (k, SAMPLE) bytes.
        conversion: zero [counts]; [rad], [rad/s], [N m] per count (k, 4).
        out: q [rad], v [rad/s], tau [N m] (k, 3).
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
    # two's complement
    half = 1 << (8 * width - 1)
    return value - 2 * half if value >= half else value


class Replies:
    """Replies of k servos to one request.

    Attributes:
        expected: bytes of all replies, without stuffing.
        data: (k, length) uint8.
    """

    def __init__(self, request: bytes, ids: Sequence[int], length: int, fast: bool = False) -> None:
        k = len(ids)
        self.request, self.expected = request, reply_size(k, length, fast)
        self.data, self.errors, self.received = (
            np.zeros((k, length), np.uint8),
            np.zeros(k, np.uint8),
            np.zeros(k, bool),
        )
        self._row_of = np.full(256, -1, np.int64)
        self._row_of[list(ids)] = np.arange(k)
        self.take(np.zeros(1, np.uint8), 0)  # compiles before any motion

    def restart(self) -> None:
        """Discard received replies."""
        self.received[:] = False

    def take(self, buffer: np.ndarray, end: int) -> bool:
        """Parse the first `end` bytes; True once complete."""
        return take_replies(buffer, end, self._row_of, self.data, self.errors, self.received) == len(self.received)

    def numbers(self, begin: int, width: int) -> np.ndarray:
        """Return unsigned numbers at a place of the data (k,)."""
        weights = 256 ** np.arange(width)
        return self.data[:, begin : begin + width].astype(np.int64) @ weights


def reply_size(k: int, length: int, fast: bool) -> int:
    """Return the reply bytes of k servos."""
    return 8 + k * (length + 4) if fast else k * (OVERHEAD + length)


def cycle_bytes(k: int, fast: bool) -> int:
    """Return the bytes of a cycle: a 4-byte goal and a sample of k servos."""
    return (14 + 5 * k) + (14 + k) + reply_size(k, SAMPLE, fast)
