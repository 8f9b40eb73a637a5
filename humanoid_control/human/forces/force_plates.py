"""Force plates of types 1 to 4 in a C3D file: force and moment on the person in world axes.

Corners 1 to 4 lie at (+, +), (-, +), (-, -), (+, -) of the plate axes; z normally points down. The origin of the
surface is their mean. Force and moment about it, in plate axes (C3D user guide):

    type 1: Fx Fy Fz Px Py Tz       M = (Px, Py, 0) x F + (0, 0, Tz)
    type 2: Fx Fy Fz Mx My Mz       M += F x o, where o = ORIGIN goes from the sensor to the surface
    type 3: fx12 fx34 fy14 fy23 fz1 fz2 fz3 fz4, where (a, b, az) = ORIGIN
            F = (fx12 + fx34, fy14 + fy23, sum of fz)
            M = (b (fz1 + fz2 - fz3 - fz4) + Fy az, a (-fz1 + fz2 + fz3 - fz4) - Fx az,
                 b (-fx12 + fx34) + a (fy14 - fy23))
    type 4: six raw channels v      (F, M) = CAL_MATRIX v, then as type 2
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import numpy as np

from humanoid_control.errors import ClipError, first_few
from humanoid_control.human.forces.wrenches import MeasuredWrench, saturated_intervals, upright_force
from humanoid_control.mocap.formats.c3d import AnalogChannels, C3dContent, decode_c3d
from humanoid_control.mocap.formats.common import UNITS, known_unit

TYPES = {1: 6, 2: 6, 3: 8, 4: 6}  # type -> number of channels
_LARGEST = 1e9  # N, N mm or volts: larger numbers are corrupt
_SIDES = (0.1, 10.0)  # [m] sides of a plate
_FORCE_UNITS = {"n": 1.0, "newton": 1.0, "newtons": 1.0, "kn": 1e3, "lbf": 4.4482216152605, "lb": 4.4482216152605}


class Plate(NamedTuple):
    """Force plate in the laboratory.

    Attributes:
        number: from 1.
        kind: type.
        corners: (4, 3) [m], world.
        centre: (3,) of the surface [m].
        R: (3, 3) axes as columns, world.
        origin: (3,) ORIGIN [m].
        calibration: (6, 6), identity except for type 4.
        channels: analog indices.
    """

    number: int
    kind: int
    corners: np.ndarray
    centre: np.ndarray
    R: np.ndarray
    origin: np.ndarray
    calibration: np.ndarray
    channels: np.ndarray


def read_force_plates(path: str | Path) -> tuple[MeasuredWrench, ...]:
    """Return `force_plates` of a C3D file, or raise ClipError."""
    try:
        data = Path(path).expanduser().read_bytes()
    except OSError as error:
        raise ClipError(f"{path}: cannot be read: {error.strerror or error}") from None
    return force_plates(decode_c3d(data, str(path)), str(path))


def force_plates(content: C3dContent, source: str) -> tuple[MeasuredWrench, ...]:
    """Return the wrenches of the plates as recorded, neither zeroed nor filtered.

    The person is on the side of the markers, else of the positive axis; other forces are reversed. Unsupported plates
    are omitted. Both cause a warning.

    Raises:
        ClipError: if there are no usable plates, or parameters are inconsistent.
    """
    plates, skipped = _plates(content, source)
    analog = content.analog()
    times = analog.start + np.arange(len(analog.values)) / analog.rate
    out = []
    for plate in plates:
        raw = analog.values[:, plate.channels]
        broken = ~(np.abs(raw) < _LARGEST).all(axis=1)
        raw[broken] = np.nan
        F, M = _in_plate(plate, raw, _scales(plate, analog, _length_unit(content)))
        normal = plate.R[:, 2] * _side(plate, content)
        force, moment = F @ plate.R.T, M @ plate.R.T
        name = f"force plate {plate.number}"
        flat = saturated_intervals(times, np.nan_to_num(raw))
        said = [*skipped]
        if broken.any():
            said.append(f"{name} is non-numeric in {int(broken.sum())} of {len(broken)} samples")
        if flat:
            said.append(f"{name} is at its limit {first_few(f'from {a:.3f} to {b:.3f} s' for a, b in flat)}")
        wrench = MeasuredWrench(
            name, times, force, moment + np.cross(plate.centre, force), normal, plate.centre, "", plate.corners, flat,
            tuple(said), _zero_interval(content),
        )  # fmt: skip
        out.append(upright_force(wrench))
    return tuple(out)


def has_force_plates(content: C3dContent) -> bool:
    """Return True if a file declares force plates."""
    used = content.numbers("FORCE_PLATFORM:USED")
    return bool(used.size and used[0] > 0)


# -------- parameters


def _zero_interval(content: C3dContent) -> tuple[float, float] | None:
    """Return the unloaded times [s] of FORCE_PLATFORM:ZERO (frames from 1), or None."""
    frames = content.numbers("FORCE_PLATFORM:ZERO")
    if frames.size < 2 or not np.isfinite(frames[:2]).all():
        return None
    first, last = int(frames[0]), int(frames[1])
    if not 1 <= first < last <= len(content.points) or not content.rate > 0:
        return None
    return content.start + (first - 1) / content.rate, content.start + (last - 1) / content.rate


def _plates(content: C3dContent, source: str) -> tuple[list[Plate], tuple[str, ...]]:
    """Return usable plates, and notes on others."""
    if not has_force_plates(content):
        raise ClipError(f"{source}: contains no force plates (FORCE_PLATFORM:USED): give the forces in another file")
    n, n_channels = int(content.numbers("FORCE_PLATFORM:USED")[0]), content.samples.shape[1]
    unit = _length_unit(content)
    table = {name: _rows(content, name, n, source) for name in ("TYPE", "CORNERS", "ORIGIN", "CHANNEL")}
    plates, skipped = [], []
    for k in range(n):
        kind = int(table["TYPE"][k, 0])
        if kind not in TYPES:
            skipped.append(f"force plate {k + 1} is of type {kind}: only types 1 to 4 are supported, it is ignored")
            continue
        corners = table["CORNERS"][k, :12].reshape(4, 3) * unit
        R = _axes(corners)
        if R is None:
            skipped.append(f"the corners of force plate {k + 1} are invalid: it is ignored")
            continue
        channels = table["CHANNEL"][k, : TYPES[kind]].astype(int) - 1
        if len(channels) < TYPES[kind] or channels.min() < 0 or channels.max() >= n_channels:
            raise ClipError(
                f"{source}: force plate {k + 1} names analog channels {(channels + 1).tolist()} of {n_channels}: "
                "correct FORCE_PLATFORM:CHANNEL"
            )
        calibration = _calibration(content, k, n, source) if kind == 4 else np.eye(6)
        origin = table["ORIGIN"][k, :3] * unit
        plates.append(Plate(k + 1, kind, corners, corners.mean(axis=0), R, origin, calibration, channels))
    if not plates:
        raise ClipError(f"{source}: no force plate can be used: {first_few(skipped, separator='; ')}")
    return plates, tuple(skipped)


def _rows(content: C3dContent, name: str, n: int, source: str) -> np.ndarray:
    """Return the numbers (n, ...) of each plate."""
    least = {"TYPE": 1, "CORNERS": 12, "ORIGIN": 3, "CHANNEL": 6}[name]
    flat = content.numbers(f"FORCE_PLATFORM:{name}").astype(float)
    width = flat.size // n
    if width < least or not np.isfinite(flat[: n * width]).all():
        raise ClipError(f"{source}: FORCE_PLATFORM:{name} holds {flat.size} numbers for {n} plate(s): export it again")
    return flat[: n * width].reshape(n, width)


def _calibration(content: C3dContent, k: int, n: int, source: str) -> np.ndarray:
    """Return the calibration matrix; rows Fx to Mz."""
    flat = content.numbers("FORCE_PLATFORM:CAL_MATRIX").astype(float)
    if flat.size < 36 * n or not np.isfinite(flat[36 * k : 36 * k + 36]).all() or not flat[36 * k : 36 * k + 36].any():
        raise ClipError(f"{source}: force plate {k + 1} is of type 4 without a CAL_MATRIX: export it again")
    matrix = flat[36 * k : 36 * k + 36].reshape(6, 6)
    by_row = "BYROW" in (text.upper() for text in content.texts("FORCE_PLATFORM:MATRIX_STORE"))
    return matrix if by_row else matrix.T


def _axes(corners: np.ndarray) -> np.ndarray | None:
    """Return axes (3, 3) as columns, or None."""
    x, y = corners[0] - corners[1], corners[0] - corners[3]
    with np.errstate(over="ignore", invalid="ignore"):
        sides, z = np.linalg.norm([x, y], axis=1), np.cross(x, y)
        height = np.linalg.norm(z)
        # Corners far from a parallelogram, or almost parallel sides, are corrupt.
        skew = np.linalg.norm(corners[0] - corners[1] + corners[2] - corners[3])
        if not (_SIDES[0] <= sides.min() <= sides.max() <= _SIDES[1] and height > 0.5 * sides.prod()):
            return None
        if not skew < 0.2 * sides.min():
            return None
    y = np.cross(z, x)
    return np.stack([v / np.linalg.norm(v) for v in (x, y, z)], axis=1)


def _side(plate: Plate, content: C3dContent) -> float:
    """Return +1 if the person is toward z, else -1."""
    z = plate.R[:, 2]
    seen = content.points[~content.missing]
    seen = seen[(seen != 0).any(axis=1) & np.isfinite(seen).all(axis=1)]
    if len(seen):
        height = (np.median(seen, axis=0) * _length_unit(content) - plate.centre) @ z
        if abs(height) > 0.05:
            return 1.0 if height > 0 else -1.0
    return 1.0 if z[np.argmax(np.abs(z))] > 0 else -1.0


# -------- channels


def _length_unit(content: C3dContent) -> float:
    """Return the file's unit [m]; default: millimetres."""
    stated = content.texts("POINT:UNITS")
    return UNITS[known_unit(stated[0]) or "mm"] if stated else UNITS["mm"]


def _scales(plate: Plate, analog: AnalogChannels, unit: float) -> np.ndarray:
    """Return factors (C,) to N, N m, m; default: N and the file's length."""
    force = [_FORCE_UNITS.get(text.strip().lower(), 1.0) for text in np.array(analog.units)[plate.channels]]
    if plate.kind == 3:
        return np.array(force)
    units = np.array(analog.units)[plate.channels]
    moment = [_moment_unit(text, unit) for text in units]
    if plate.kind == 1:
        lengths = [UNITS[known_unit(text)] if known_unit(text) else unit for text in units[3:5]]
        return np.array([*force[:3], *lengths, moment[5]])
    return np.array([*force[:3], *moment[3:]])


def _moment_unit(text: str, unit: float) -> float:
    """Return the factor of Nmm, N*mm, N.m to N m."""
    parts = re.fullmatch(r"(k?n|lbf?)[ .*·-]?(m|cm|mm|in)", text.strip().lower())
    return _FORCE_UNITS[parts[1]] * UNITS[known_unit(parts[2])] if parts else unit


def _in_plate(plate: Plate, raw: np.ndarray, scales: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return force (n, 3) [N] and moment (n, 3) [N m] about the centre, plate axes."""
    v = raw @ plate.calibration.T * scales if plate.kind == 4 else raw * scales
    if plate.kind == 1:
        F, arm = v[:, :3], np.column_stack([v[:, 3:5], np.zeros(len(v))])
        return F, np.cross(arm, F) + v[:, 5:6] * [0.0, 0.0, 1.0]
    if plate.kind == 3:
        x12, x34, y14, y23, z1, z2, z3, z4 = v.T
        F = np.stack([x12 + x34, y14 + y23, z1 + z2 + z3 + z4], axis=1)
        a, b, az = plate.origin
        Mx = b * (z1 + z2 - z3 - z4) + F[:, 1] * az
        My = a * (-z1 + z2 + z3 - z4) - F[:, 0] * az
        return F, np.stack([Mx, My, b * (x34 - x12) + a * (y14 - y23)], axis=1)
    # The surface is above the sensor and z points down, so a positive origin has the opposite sign convention.
    o = -plate.origin if plate.origin[2] > 0 else plate.origin
    return v[:, :3], v[:, 3:] + np.cross(v[:, :3], o)
