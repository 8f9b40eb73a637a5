"""Landmarks of MediaPipe's pose model: 33 points, y down, in metres about the hips.

World landmarks have no path: it is restored from standing feet, which must not slide.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePath

import numpy as np

from humanoid_control.errors import ClipError
from humanoid_control.mocap.clip import MarkerClip
from humanoid_control.mocap.formats.common import Size, body_extent, scale_of_markers

LANDMARKS = (
    "nose", "left_eye_inner", "left_eye", "left_eye_outer", "right_eye_inner", "right_eye", "right_eye_outer",
    "left_ear", "right_ear", "mouth_left", "mouth_right", "left_shoulder", "right_shoulder", "left_elbow",
    "right_elbow", "left_wrist", "right_wrist", "left_pinky", "right_pinky", "left_index", "right_index", "left_thumb",
    "right_thumb", "left_hip", "right_hip", "left_knee", "right_knee", "left_ankle", "right_ankle", "left_heel",
    "right_heel", "left_foot_index", "right_foot_index",
)  # fmt: skip
_ARRAYS = ("pose_world_landmarks", "world_landmarks", "landmarks_world", "landmarks", "keypoints", "pose_landmarks")
_SOLES = ("left_heel", "left_foot_index", "right_heel", "right_foot_index")
_CENTRED = 0.02  # [m] largest distance of mid-hip from the origin without a path
_OFF_CENTRE = 0.1  # larger, and ...
_IMAGE = 1.15  # ... not larger than this: shares of picture sides, not metres
_NEARLY, _CHANGE = 0.02, 0.5  # [m] above the lowest sole point and [m/s] of change of equal cost
_MEMORY = 0.1  # [s] time constant of the hip velocity
_NUMBERED = re.compile(r"^(?:landmark|lm|point|kp|joint|pose)?[_ ]?(\d{1,2})$", re.IGNORECASE)


def find_landmarks(arrays: Mapping[str, np.ndarray]) -> np.ndarray | None:
    """Return landmarks (T, 33, 3) among arrays (T, 33, 3 or more), (T, 99 or more), or None."""
    for name in _ARRAYS:
        if name not in arrays:
            continue
        table = np.asarray(arrays[name])
        if table.dtype.kind not in "fiu":
            continue
        if table.ndim == 2 and table.shape[1] in (99, 132, 165):  # x, y, z; with visibility; with presence
            table = table.reshape(len(table), len(LANDMARKS), -1)
        if table.ndim == 3 and table.shape[1] == len(LANDMARKS) and table.shape[2] >= 3:
            return table[:, :, :3].astype(float)
    return None


def landmark_clip(
    positions: np.ndarray, rate: float, source: str, size: Size, warnings: tuple[str, ...] = ()
) -> MarkerClip:
    """Return landmarks as a clip.

    Args:
        positions: (T, 33, 3) [file units].
        rate: [Hz].

    Raises:
        ClipError: if these are picture coordinates, or not a person.
    """
    positions = np.where((positions == 0).all(axis=2, keepdims=True), np.nan, positions)
    refuse_picture(LANDMARKS, positions, source)
    scale, notes = scale_of_markers(positions, "m", source, size)
    moved, path_notes = with_path(LANDMARKS, positions * scale, rate)
    name, told = PurePath(source).stem, (*warnings, *notes, *path_notes)
    return MarkerClip(name, LANDMARKS, rate, moved, source, told, up="-y" if path_notes else "")


def landmark_names(labels: Sequence[str]) -> tuple[str, ...] | None:
    """Return landmark names for labels numbered from 0 or 1, else None."""
    matches = [_NUMBERED.match(label) for label in labels]
    numbers = [int(m[1]) for m in matches if m]
    if len(labels) != len(LANDMARKS) or len(numbers) != len(labels):
        return None
    first = min(numbers)
    if first > 1 or sorted(numbers) != list(range(first, first + len(LANDMARKS))):
        return None
    return tuple(LANDMARKS[n - first] for n in numbers)


def refuse_picture(labels: Sequence[str], positions: np.ndarray, source: str) -> None:
    """Raise ClipError if landmark positions (T, M, 3) are shares of picture sides."""
    hips = _hips(labels, positions)
    if hips is None or not np.isfinite(hips).any():
        return
    off = np.nanmedian(np.linalg.norm(hips, axis=1))
    if off > _OFF_CENTRE and body_extent(positions) < _IMAGE and 0 < np.nanmedian(hips[:, :2]) < 1:
        raise ClipError(
            f"{source}: contains image coordinates (pose_landmarks), which have no depth in metres: "
            "export pose_world_landmarks"
        )


def with_path(labels: Sequence[str], positions: np.ndarray, rate: float) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return world landmarks with a path of the hips, and a note; others unchanged.

    The lowest sole point is on the floor, and the standing one does not slide.

    Args:
        positions: (T, M, 3) [m], y down; NaN: missing.
        rate: [Hz].
    """
    hips = _hips(labels, positions)
    if hips is None or not np.nanmedian(np.linalg.norm(hips, axis=1)) < _CENTRED:
        return positions, ()
    plain = [label.lower() for label in labels]
    soles = positions[:, [plain.index(name) for name in _SOLES]]
    lost = np.isnan(soles[..., 1])
    down = np.where(lost, -np.inf, soles[..., 1])  # y is down
    lowest = down.max(axis=1)
    seen = np.isfinite(lowest)
    path = np.zeros((len(positions), 3))
    path[seen, 1] = -lowest[seen]
    raised = np.where(lost | ~seen[:, None], np.inf, np.where(seen, lowest, 0.0)[:, None] - down)
    raised = np.maximum(raised[1:], raised[:-1])  # maximum of both frames of a step
    path[1:, [0, 2]] = (
        np.cumsum(_hip_velocity(raised, -np.diff(soles[..., [0, 2]], axis=0) * rate, rate), axis=0) / rate
    )
    note = (
        "landmarks have no root path: it is reconstructed from standing feet, which must not slide; jumps become "
        "crouches"
    )
    return positions + path[:, None], (note,)


def _hip_velocity(raised: np.ndarray, velocity: np.ndarray, rate: float) -> np.ndarray:
    """Return the hip velocity (T, 2) [m/s] at which a sole point stands still.

    A swinging foot may be as low as a standing one, but implies an abrupt change: the chosen point minimises both.

    Args:
        raised: (T, 4) above the lowest point [m].
        velocity: (T, 4, 2) of the hips if the point stood still [m/s].
        rate: [Hz].
    """
    found, now = np.zeros((len(raised), 2)), np.zeros(2)
    keep = np.exp(-1.0 / (_MEMORY * rate))
    for t, (height, options) in enumerate(zip(raised, velocity, strict=True)):
        cost = height / _NEARLY + np.linalg.norm(options - now, axis=1) / _CHANGE
        best = int(np.argmin(np.nan_to_num(cost, nan=np.inf)))
        if not np.isfinite(cost[best]):  # no point is visible
            continue
        found[t] = options[best]
        now = keep * now + (1 - keep) * found[t]
    return found


def _hips(labels: Sequence[str], positions: np.ndarray) -> np.ndarray | None:
    """Return mid-hip (T, 3), or None without landmarks."""
    plain = [label.lower() for label in labels]
    if not set(LANDMARKS) <= set(plain):
        return None
    return (positions[:, plain.index("left_hip")] + positions[:, plain.index("right_hip")]) / 2
