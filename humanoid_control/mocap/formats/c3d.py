"""Reader of C3D, the binary marker format of most laboratories.

It reports damaged files and reads big-endian ones. Layout (C3D user guide, c3d.org): blocks of 512 bytes; block 1 is
the header; the parameter section names the processor of the number formats; frames have four words a point (x, y, z,
residual) and analog samples.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import PurePath
from typing import NamedTuple

import numpy as np

from humanoid_control.errors import ClipError
from humanoid_control.mocap.clip import MarkerClip, distinct_labels
from humanoid_control.mocap.formats.common import AS_STATED, Size, scale_of_markers

# Biomechanics software stores results as points, listed in these parameters of the POINT group ...
_OUTPUT_GROUPS = ("ANGLES", "FORCES", "MOMENTS", "POWERS", "SCALARS", "MODELED_MARKERS", "REACTIONS")
# ... or only recognisable by such names.
_OUTPUT_ENDINGS = ("angle", "angles", "force", "moment", "power", "grf")


def parse_c3d(data: bytes, source: str, size: Size = AS_STATED) -> MarkerClip:
    """Return the markers of a C3D file, without computed results stored as points.

    A marker is missing if its residual is negative, or exactly in the origin.

    Raises:
        ClipError: if the file is invalid, has no marker, or no unit gives a person.
    """
    content = decode_c3d(data, source)
    n_points = content.points.shape[1]
    if n_points == 0:
        raise ClipError(f"{source}: contains no points, only analog channels: use it as the forces of a clip")
    labels, warnings = distinct_labels((content.all_texts("POINT:LABELS") + [""] * n_points)[:n_points])
    outputs = {label for group in _OUTPUT_GROUPS for label in content.texts(f"POINT:{group}")}
    keep = [i for i, label in enumerate(labels) if label not in outputs and not label.lower().endswith(_OUTPUT_ENDINGS)]
    if not keep:
        raise ClipError(f"{source}: all {len(labels)} points are model outputs: export the marker trajectories")
    positions = content.points[:, keep]
    positions[content.missing[:, keep] | (positions == 0).all(axis=2)] = np.nan
    units = content.texts("POINT:UNITS")
    scale, unit_warnings = scale_of_markers(positions, units[0] if units else "", source, size)
    return MarkerClip(
        name=PurePath(source).stem,
        labels=tuple(labels[i] for i in keep),
        rate=content.rate,
        positions=positions * scale,
        source=source,
        warnings=content.warnings + warnings + unit_warnings,
        start=content.start,
    )


# -------- container

_BLOCK = 512
_MAGIC = 0x50
_INTEL, _DEC, _SGI = 84, 85, 86


class AnalogChannels(NamedTuple):
    """Scaled analog channels of a C3D file.

    Attributes:
        values: (n, C) in `units`.
        labels: of channels, or "".
        units: of channels, or "".
        rate: [Hz].
        start: on the recording's clock [s].
    """

    values: np.ndarray
    labels: tuple[str, ...]
    units: tuple[str, ...]
    rate: float
    start: float


@dataclass(frozen=True, eq=False)
class C3dContent:
    """Points, analog samples and parameters of a C3D file.

    Attributes:
        points: (T, M, 3) [file units]; undefined where `missing`.
        missing: (T, M) negative residual.
        rate: [Hz].
        start: on the recording's clock [s]; frame 1 is time 0.
        samples: (T * S, C) analog samples as stored, S a frame.
        parameters: "GROUP:NAME" -> strings or numbers.
        warnings: contradictions.
    """

    points: np.ndarray
    missing: np.ndarray
    rate: float
    start: float
    samples: np.ndarray
    parameters: dict[str, list[str] | np.ndarray]
    warnings: tuple[str, ...]

    def texts(self, name: str) -> list[str]:
        """Return the strings of a parameter, or []."""
        value = self.parameters.get(name, [])
        return value if isinstance(value, list) else []

    def all_texts(self, name: str) -> list[str]:
        """Return the strings of NAME, NAME2, NAME3, ... (255 each)."""
        return [text for part in self._parts(name) for text in self.texts(part)]

    def numbers(self, name: str) -> np.ndarray:
        """Return a parameter's numbers, flat, first index fastest; else empty."""
        value = self.parameters.get(name)
        return value if isinstance(value, np.ndarray) else np.empty(0)

    def _parts(self, name: str) -> list[str]:
        parts = [name]
        while f"{name}{len(parts) + 1}" in self.parameters:
            parts.append(f"{name}{len(parts) + 1}")
        return parts

    def analog(self) -> AnalogChannels:
        """Return the analog channels in their units: (stored - OFFSET) SCALE GEN_SCALE."""
        n, count = self.samples.shape
        unsigned = "UNSIGNED" in (text.upper() for text in self.texts("ANALOG:FORMAT"))
        offset = self._channels("ANALOG:OFFSET", 0.0)
        with np.errstate(invalid="ignore"):  # signalling NaN in a damaged file
            stored = self.samples.astype(float)
        if unsigned and self.samples.dtype.kind == "i":
            stored, offset = stored % 65536, offset % 65536
        general = self.numbers("ANALOG:GEN_SCALE")
        scale = self._channels("ANALOG:SCALE", 1.0) * (float(general[0]) if general.size else 1.0)
        names = [(self.all_texts(f"ANALOG:{what}") + [""] * count)[:count] for what in ("LABELS", "UNITS")]
        rate = self.rate * n / max(len(self.points), 1)
        with np.errstate(over="ignore", invalid="ignore"):
            values = (stored - offset) * scale
        return AnalogChannels(values, tuple(names[0]), tuple(names[1]), rate, self.start)

    def _channels(self, name: str, default: float) -> np.ndarray:
        """Return a finite number (C,) a channel, else `default`."""
        out = np.full(self.samples.shape[1], default)
        stated = np.concatenate([self.numbers(part) for part in self._parts(name)])[: len(out)].astype(float)
        out[: len(stated)] = np.where(np.isfinite(stated), stated, default)
        return out


class _C3dNumbers:
    """Number formats of a processor type."""

    def __init__(self, processor: int) -> None:
        self.order = ">" if processor == _SGI else "<"
        self.dec = processor == _DEC

    def integers(self, raw: bytes) -> np.ndarray:
        """Return 16-bit signed integers."""
        return np.frombuffer(raw, dtype=f"{self.order}i2")

    def floats(self, raw: bytes) -> np.ndarray:
        """Return 32-bit reals; DEC swaps halves and raises the exponent by two."""
        if not self.dec:
            return np.frombuffer(raw, dtype=f"{self.order}f4")
        halves = np.frombuffer(raw, dtype="<u2").reshape(-1, 2).astype(np.uint32)
        with np.errstate(invalid="ignore"):
            return (halves[:, 0] << 16 | halves[:, 1]).view(np.float32) / np.float32(4)


def decode_c3d(data: bytes, source: str) -> C3dContent:
    """Return the content of a C3D file (Intel, DEC, SGI; integer, real).

    Raises:
        ClipError: if the file is invalid, cut off or inconsistent.
    """
    if len(data) < 2 * _BLOCK or data[1] != _MAGIC:
        raise ClipError(f"{source}: not a C3D file, or cut off within its header: copy or export it again")
    start = (data[0] - 1) * _BLOCK
    section = data[start:] if start > 0 else b""
    if len(section) < _BLOCK or section[3] not in (_INTEL, _DEC, _SGI):
        raise ClipError(f"{source}: the C3D header points to no parameter section: the file is damaged")
    numbers = _C3dNumbers(section[3])
    n_points, n_analog, first, last = (int(v) & 0xFFFF for v in numbers.integers(data[2:10]))
    per_frame = max(int(numbers.integers(data[18:20])[0]) & 0xFFFF, 1)
    scale, rate = (float(numbers.floats(data[at : at + 4])[0]) for at in (12, 20))
    data_start = int(numbers.integers(data[16:18])[0]) & 0xFFFF
    # Some writers state too few parameter blocks: the section ends where the frames begin.
    blocks = max(section[2], data_start - data[0])
    parameters = _parameters(section[: blocks * _BLOCK], numbers, source)

    warnings: list[str] = []
    rate = _preferred(parameters, "POINT:RATE", rate, warnings)
    scale = _preferred(parameters, "POINT:SCALE", scale, warnings)
    integer = scale > 0
    frame_bytes = (4 * n_points + n_analog) * (2 if integer else 4)
    raw = data[max(data_start - 1, 0) * _BLOCK :]
    n_frames = _frame_count(parameters, first, last, warnings, len(raw) // frame_bytes if frame_bytes else 0)
    # A file of forces has no points: its parameters agree and it has analog channels.
    empty = n_points == 0 and (n_analog == 0 or np.any(parameters.get("POINT:USED", 0) != np.int16(0)))
    if data_start < 2 or empty or n_frames < 1 or not math.isfinite(scale) or scale == 0:
        raise ClipError(f"{source}: the C3D header is damaged ({n_points} points, {n_frames} frames, scale {scale:g})")
    if len(raw) < frame_bytes * n_frames:
        raise ClipError(f"{source}: ends after {len(raw) // frame_bytes} of {n_frames} frames: copy or export it again")
    words = (numbers.integers if integer else numbers.floats)(raw[: frame_bytes * n_frames])
    with np.errstate(invalid="ignore"):  # signalling NaN in a damaged file
        rows = words.reshape(n_frames, -1)
        frames = rows[:, : 4 * n_points].reshape(n_frames, n_points, 4).astype(float)
    points = frames[..., :3] * (scale if integer else 1.0)
    if n_analog % per_frame:
        warnings.append(f"{n_analog} analog samples per frame are not {per_frame} of each channel: they are ignored")
        n_analog = 0
    samples = rows[:, 4 * n_points : 4 * n_points + n_analog].reshape(n_frames * per_frame, n_analog // per_frame)
    begin = max(_first_frame(parameters, first) - 1, 0) / rate if rate > 0 else 0.0
    # The sign of the fourth word is the visibility; NaN counts as invisible.
    return C3dContent(points, ~(frames[..., 3] > -1.0), rate, begin, samples, parameters, tuple(warnings))


def _parameters(section: bytes, numbers: _C3dNumbers, source: str) -> dict[str, list[str] | np.ndarray]:
    """Read the chain of parameters; a link outside the section means damage."""
    groups: dict[int, str] = {}
    found: list[tuple[int, str, list[str] | np.ndarray]] = []
    at = 4
    try:
        while at + 2 <= len(section) and section[at] != 0:
            name_length = abs(int.from_bytes(section[at : at + 1], "little", signed=True))
            group = int.from_bytes(section[at + 1 : at + 2], "little", signed=True)
            name = section[at + 2 : at + 2 + name_length].decode("latin-1").strip().upper()
            link = at + 2 + name_length
            offset = int(numbers.integers(section[link : link + 2])[0]) & 0xFFFF
            if group < 0:
                groups[-group] = name
            else:
                found.append((group, name, _value(section[link + 2 :], numbers)))
            if offset == 0:
                break
            at = link + offset
    except (IndexError, ValueError):
        raise ClipError(f"{source}: the C3D parameters are damaged near byte {at} of their section") from None
    return {f"{groups.get(group, group)}:{name}": value for group, name, value in found}


def _value(raw: bytes, numbers: _C3dNumbers) -> list[str] | np.ndarray:
    """Return a parameter's data as flat texts or numbers."""
    kind = int.from_bytes(raw[:1], "little", signed=True)
    n_dimensions = raw[1]
    dimensions = list(raw[2 : 2 + n_dimensions])
    count = math.prod(dimensions)
    body = raw[2 + n_dimensions : 2 + n_dimensions + count * abs(kind)]
    if kind not in (-1, 1, 2, 4) or len(body) < count * abs(kind):
        raise ValueError("parameter data")
    if kind == -1:
        width = dimensions[0] if dimensions else 1
        text = body.decode("latin-1")
        return [text[i : i + width].strip(" \0") for i in range(0, count, width)] if width else []
    if kind == 1:
        return np.frombuffer(body, dtype=np.uint8)
    return numbers.integers(body) if kind == 2 else numbers.floats(body)


def _preferred(parameters: dict, name: str, header: float, warnings: list[str]) -> float:
    """Return the parameter, with a warning if it differs, else the header's number."""
    value = parameters.get(name)
    if not isinstance(value, np.ndarray) or value.size == 0 or not np.isfinite(value[0]) or value[0] == 0:
        return header
    number = float(value[0])
    if math.isfinite(header) and header != 0 and abs(number / header - 1) > 1e-3:
        warnings.append(f"{name} is {number:g}, in the header {header:g}: {name} is used")
    return number


def _first_frame(parameters: dict, first: int) -> int:
    """Return the first frame number, from TRIAL:ACTUAL_START_FIELD beyond 16 bits."""
    actual = _field(parameters, "TRIAL:ACTUAL_START_FIELD")
    return actual if first in (actual & 0xFFFF, min(actual, 0xFFFF)) and actual else first


def _field(parameters: dict, name: str) -> int:
    """Return a 32-bit number of two words, lower first; 0 if absent."""
    value = parameters.get(name)
    if isinstance(value, np.ndarray) and value.dtype.kind == "i" and value.size == 2:
        return (int(value[0]) & 0xFFFF) | (int(value[1]) & 0xFFFF) << 16
    return 0


def _frame_count(parameters: dict, first: int, last: int, warnings: list[str], held: int = 0) -> int:
    """Return the number of frames: the header's, or the largest in the file if its 16 bits are full.

    Vicon writes the last frame to TRIAL:ACTUAL_END_FIELD, others the count to POINT:FRAMES, possibly full.
    """
    end = _field(parameters, "TRIAL:ACTUAL_END_FIELD")
    if last == 0xFFFF and end > last:
        count = end - _first_frame(parameters, first) + 1
        if count <= held or not held:
            return count
    from_header = last - first + 1
    value = parameters.get("POINT:FRAMES")
    if not isinstance(value, np.ndarray) or value.size == 0 or not np.isfinite(value[0]):
        value = np.array([float(from_header)])
    stated = int(value[0]) & 0xFFFF if value.dtype.kind == "i" else int(value[0])
    if last == 0xFFFF:
        if stated in (from_header, 0xFFFF) and held > stated:
            warnings.append(f"the frame counters overflow at {stated}: the file contains {held} frames, all are used")
            return held
        return stated
    if stated != from_header:
        warnings.append(f"POINT:FRAMES is {stated}, in the header {from_header}: the header is used")
    return from_header
