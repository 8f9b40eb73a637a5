"""Packets against the protocol's own examples and the maker's code; replies found in noise; fuzz."""

import numpy as np
import pytest

pytest.importorskip("dynamixel_sdk", reason="needs dynamixel-sdk")

from hypothesis import given
from hypothesis import strategies as st

from humanoid_control.hardware.dynamixel import frames as f
from test.hardware.dynamixel.servos import VENDOR, crc, status

# Examples of the protocol's page.
GOLDEN = [
    (f.packet(1, f.PING), "FF FF FD 00 01 03 00 01 19 4E"),
    (f.packet(f.BROADCAST, f.PING), "FF FF FD 00 FE 03 00 01 31 42"),
    (f.read_packet(1, 132, 4), "FF FF FD 00 01 07 00 02 84 00 04 00 1D 15"),
    (f.write_packet(1, 116, bytes([0, 2, 0, 0])), "FF FF FD 00 01 09 00 03 74 00 00 02 00 00 CA 89"),
    (f.packet(1, f.REBOOT), "FF FF FD 00 01 03 00 08 2F 4E"),
    (f.sync_read_packet([1, 2], 132, 4), "FF FF FD 00 FE 09 00 82 84 00 04 00 01 02 CE FA"),
    (
        f.sync_write_packet([1, 2], 116, [bytes([0x96, 0, 0, 0]), bytes([0xAA, 0, 0, 0])]),
        "FF FF FD 00 FE 11 00 83 74 00 04 00 01 96 00 00 00 02 AA 00 00 00 82 87",
    ),
]
REPLIES = "FF FF FD 00 01 08 00 55 00 A6 00 00 00 8C C0 FF FF FD 00 02 08 00 55 00 1F 08 00 00 BA BE"


@pytest.mark.parametrize(("made", "printed"), GOLDEN, ids=lambda v: "")
def test_packets_are_those_of_the_protocols_page(made, printed):
    assert made == bytes.fromhex(printed)


def taken(data, ids, length, fast=False):
    replies = f.Replies(b"", ids, length, fast)
    buffer = np.zeros(f.LONGEST, np.uint8)
    buffer[: len(data)] = np.frombuffer(data, np.uint8)
    whole = replies.take(buffer, len(data))
    return replies, whole


def test_replies_are_those_of_the_protocols_page():
    replies, whole = taken(bytes.fromhex(REPLIES), [2, 1], 4)
    assert whole and replies.numbers(0, 4).tolist() == [2079, 166]
    replies, _ = taken(bytes.fromhex("FF FF FD 00 01 07 00 55 00 06 04 26 65 5D"), [1], 3)
    assert replies.numbers(0, 2).tolist() == [1030] and replies.data[0, 2] == 38


@given(st.binary(max_size=60))
def test_crc_and_stuffing_are_the_makers(parameters):
    tricky = parameters.replace(b"\x00", b"\xff\xff\xfd").replace(b"\x01", b"\xfd")
    body = [0xFF, 0xFF, 0xFD, 0, 7, *(len(tricky) + 3).to_bytes(2, "little"), 3, *tricky, 0, 0]
    stuffed = bytes(VENDOR.addStuffing(body))[:-2]
    assert f.packet(7, 3, tricky) == stuffed + crc(stuffed)
    replies, whole = taken(status(9, tricky, error=0x80), [9], len(tricky))
    assert whole and replies.data[0].tobytes() == tricky and replies.errors[0] == 0x80


def test_goals_are_the_sync_write_that_plain_packets_make():
    ids = [1, 5, 253 - 1]
    conversion = np.array([[2048, 4096 / (2 * np.pi), 1000, 3000]] * 3, float)
    out, sent = np.zeros(f.LONGEST, np.uint8), np.zeros(3, np.int64)
    values = np.array([0.5, 9.0, -9.0])
    size = f.encode_goals(values, conversion, np.array(ids), (116, 4), sent, out)
    counts = [2374, 3000, 1000]
    assert sent.tolist() == counts
    made = f.sync_write_packet(ids, 116, [c.to_bytes(4, "little") for c in counts])
    assert out[:size].tobytes() == made
    values[:] = np.nan, np.inf, 0.0
    f.encode_goals(values, conversion, np.array(ids), (116, 4), sent, out)
    assert sent.tolist() == [2374, 3000, 2048], "what is no number repeats the last count"


def test_goals_whose_bytes_look_like_a_header_are_stuffed():
    conversion = np.array([[0.0, 1.0, -(2.0**31), 2.0**31 - 1]])
    out, sent = np.zeros(f.LONGEST, np.uint8), np.zeros(1, np.int64)
    for count in (0x00FDFFFF, -1, -12345, 0x7FFDFFFF):
        size = f.encode_goals(np.array([float(count)]), conversion, np.array([3]), (564, 4), sent, out)
        assert out[:size].tobytes() == f.sync_write_packet([3], 564, [count.to_bytes(4, "little", signed=True)])


def test_samples_have_their_signs():
    data = np.frombuffer(np.array([-3], "<i2").tobytes() + np.array([-40, -123456], "<i4").tobytes(), np.uint8)
    out = np.full((2, 3), np.nan)
    conversion = np.array([[100.0, 0.5, 2.0, 10.0]] * 2)
    f.decode_samples(np.stack([data, data]), np.array([True, False]), conversion, out)
    assert out[0].tolist() == [(-123456 - 100) * 0.5, -80.0, -30.0] and np.isnan(out[1]).all()


SAMPLES = [bytes([k] * 10) for k in range(1, 6)]
STREAM = [status(k, s) for k, s in enumerate(SAMPLES, 1)]


def chain(ids, length=10):
    out = bytes([0xFF, 0xFF, 0xFD, 0, 0xFE]) + (1 + len(ids) * (length + 4)).to_bytes(2, "little") + b"\x55"
    for k in ids:
        out += bytes([0, k]) + SAMPLES[k - 1]
        out += crc(out)
    return out


@pytest.mark.parametrize(
    ("stream", "came"),
    [
        (b"".join(STREAM), "11111"),
        (b"\xff\xff\xff\xfd" + STREAM[0] + b"\x00\xff" + b"".join(STREAM[1:]) + b"\xff\xff\xfd", "11111"),
        (STREAM[0] + STREAM[2] + STREAM[4], "10101"),
        (STREAM[0][:-1] + b"".join(STREAM[1:]), "01111"),
        (STREAM[0] + STREAM[1][:9] + b"".join(STREAM[2:]), "10111"),
        (STREAM[0] + STREAM[1].replace(b"\x02\x02", b"\x02\x03", 1) + b"".join(STREAM[2:]), "10111"),
        (STREAM[0] + STREAM[1][:5] + b"\xff\x7f" + STREAM[1][7:] + b"".join(STREAM[2:]), "10111"),
        (f.packet(0xFE, 0x82, bytes(6)) + b"".join(STREAM), "11111"),
        (status(77, SAMPLES[0]) + b"".join(STREAM), "11111"),
        (b"".join(STREAM[:4]) + STREAM[4][:-3], "11110"),
        (status(2, b"", error=7) + STREAM[0], "10000"),
        (chain([1, 2, 3, 4, 5]), "11111"),
        (chain([1, 2, 3, 4, 5])[:-1], "11110"),
        (chain([1, 2, 3, 4, 5])[:40], "11000"),
        (b"\xff\xff" + chain([3, 1]) + STREAM[4], "10101"),
    ],
)
def test_the_others_replies_are_found_whatever_is_wrong_with_one(stream, came):
    replies, whole = taken(stream, [1, 2, 3, 4, 5], 10)
    assert "".join(str(int(c)) for c in replies.received) == came and whole == (came == "11111")
    for k in np.flatnonzero(replies.received):
        assert replies.data[k].tobytes() == SAMPLES[k]


def test_ten_thousand_strings_of_bytes_make_no_error_and_no_wrong_sample():
    """Random bytes, and good streams with bytes changed, lost, doubled: what comes out is what was sent, or nothing."""
    random = np.random.default_rng(5)
    good = [np.frombuffer(b"".join(STREAM), np.uint8), np.frombuffer(chain([1, 2, 3, 4, 5]), np.uint8)]
    replies = f.Replies(b"", [1, 2, 3, 4, 5], 10)
    buffer, found = np.zeros(f.LONGEST, np.uint8), 0
    for k in range(10_000):
        data = good[k % 2].copy() if k % 4 else random.integers(0, 256, random.integers(0, 200), np.uint8)
        for _ in range(random.integers(1, 4)):
            if len(data) < 5:
                break
            at, kind = random.integers(len(data) - 1), random.integers(4)
            if kind == 0:
                data[at] ^= 1 << random.integers(8)
            elif kind == 1:
                data = np.delete(data, slice(at, at + random.integers(1, 9)))
            elif kind == 2:
                data = np.insert(data, at, random.choice([0xFF, 0xFD, 0, 0x55, 1], 3))
            else:
                data = data[: max(at, 2)]
        buffer[: len(data)] = data
        replies.restart()
        replies.take(buffer, len(data))
        found += int(replies.received.sum())
        for row in np.flatnonzero(replies.received):
            assert replies.data[row].tobytes() == SAMPLES[row]
    assert found > 10_000


def test_a_cycle_takes_the_time_of_its_bytes():
    """20 servos at 4 Mbaud 1.42 ms, 1.09 with fast reads; 30: 2.10 and 1.59; 30 at 1 Mbaud 8.4 ms."""
    ms = {(n, fast): 10 * f.cycle_bytes(n, fast) / 4000 for n in (20, 30) for fast in (False, True)}
    assert ms[20, False] == pytest.approx(1.42, abs=0.005) and ms[20, True] == pytest.approx(1.09, abs=0.005)
    assert ms[30, False] == pytest.approx(2.10, abs=0.02) and ms[30, True] == pytest.approx(1.59, abs=0.01)
    assert 10 * f.cycle_bytes(30, False) / 1000 == pytest.approx(8.4, abs=0.1)
