"""A small writer of C3D files (Intel, real numbers) after the user guide of c3d.org, for files of forces."""

from __future__ import annotations

import struct

import numpy as np


def c3d_file(analog, parameters, rate=100.0, per_frame=10, points=None, first=1):
    """Bytes of a C3D file.

    Args:
        analog: (T * per_frame, C) samples. parameters: by "GROUP:NAME" texts or arrays, written by columns.
        rate: frames a second. per_frame: samples of a channel in a frame. points: (T, M, 3). first: its number.
    """
    analog = np.asarray(analog, dtype=np.float32)
    n_frames, n_channels = len(analog) // per_frame, analog.shape[1]
    points = np.zeros((n_frames, 0, 3)) if points is None else np.asarray(points)
    stated = {
        "POINT:USED": np.array([points.shape[1]]),
        "POINT:RATE": np.array([rate]),
        "POINT:SCALE": np.array([-1.0]),
        "POINT:UNITS": ["mm"],
        "ANALOG:USED": np.array([n_channels]),
        **parameters,
    }
    body = bytearray(b"\x01\x50\x00\x54")
    groups = sorted({name.split(":")[0] for name in stated})
    for k, group in enumerate(groups, start=1):
        body += struct.pack("<bb", len(group), -k) + group.encode() + struct.pack("<hb", 3, 0)
    for name, value in stated.items():
        group, short = name.split(":")
        data = _data(value)
        body += struct.pack("<bb", len(short), groups.index(group) + 1) + short.encode()
        body += struct.pack("<h", 2 + len(data) + 1) + data + b"\x00"
    body += b"\x00" * (-len(body) % 512 + 512)
    blocks = len(body) // 512
    body[2] = blocks
    header = bytearray(512)
    struct.pack_into("<BBhhHHhfhhf", header, 0, 2, 0x50, points.shape[1], n_channels * per_frame, first,
                     first + n_frames - 1, 0, -1.0, 2 + blocks, per_frame, rate)  # fmt: skip
    frames = np.zeros((n_frames, points.shape[1], 4), dtype=np.float32)
    frames[..., :3] = points
    rows = np.concatenate([frames.reshape(n_frames, -1), analog.reshape(n_frames, -1)], axis=1)
    return bytes(header + body) + rows.astype("<f4").tobytes()


def _data(value):
    if isinstance(value, list):
        width = max((len(text) for text in value), default=1) or 1
        text = b"".join(text.ljust(width).encode() for text in value)
        return struct.pack("<bBBB", -1, 2, width, len(value)) + text
    value = np.asarray(value)
    kind = "<i2" if value.dtype.kind == "i" else "<f4"
    head = struct.pack("<bB", 2 if kind == "<i2" else 4, value.ndim) + bytes(value.shape)
    return head + value.astype(kind).tobytes(order="F")
