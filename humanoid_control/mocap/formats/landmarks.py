"""Landmarks of a person in a video, as MediaPipe's pose model gives them: 33 points, y down, in metres about the hips.

World landmarks have no path: the middle of the hips is the origin in every frame. The path is put back by the feet that
stand, which must not slide.
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
_CENTRED = 0.02  # [m] from the origin to the middle of the hips, where a file has no path
_OFF_CENTRE = 0.1  # from there, and ...
_IMAGE = 1.15  # ... not larger than this: shares of a picture's sides, not metres
_NEARLY, _CHANGE = 0.02, 0.5  # [m] above the lowest point of the soles, [m/s] of change: as bad as each other
_MEMORY = 0.1  # [s] of the velocity of the hips
_NUMBERED = re.compile(r"^(?:landmark|lm|point|kp|joint|pose)?[_ ]?(\d{1,2})$", re.IGNORECASE)


def find_landmarks(arrays: Mapping[str, np.ndarray]) -> np.ndarray | None:
    """Landmarks (T, 33, 3) among named arrays (T, 33, 3 and more) or (T, 99 and more); None where there are none."""
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
    """Landmarks as a clip.

    Args:
        positions: (T, 33, 3) in the file's unit. rate: [Hz]. source: path, for messages and the clip's name.
        size: what the user tells about units. warnings: of the reader.

    Raises:
        ClipError: these are places in a picture, or no person.
    """
    positions = np.where((positions == 0).all(axis=2, keepdims=True), np.nan, positions)
    refuse_picture(LANDMARKS, positions, source)
    scale, notes = scale_of_markers(positions, "m", source, size)
    moved, path_notes = with_path(LANDMARKS, positions * scale, rate)
    name, told = PurePath(source).stem, (*warnings, *notes, *path_notes)
    return MarkerClip(name, LANDMARKS, rate, moved, source, told, up="-y" if path_notes else "")


def landmark_names(labels: Sequence[str]) -> tuple[str, ...] | None:
    """Names of the landmarks where a table's labels only count them, from 0 or from 1; None where they are others."""
    matches = [_NUMBERED.match(label) for label in labels]
    numbers = [int(m[1]) for m in matches if m]
    if len(labels) != len(LANDMARKS) or len(numbers) != len(labels):
        return None
    first = min(numbers)
    if first > 1 or sorted(numbers) != list(range(first, first + len(LANDMARKS))):
        return None
    return tuple(LANDMARKS[n - first] for n in numbers)


def refuse_picture(labels: Sequence[str], positions: np.ndarray, source: str) -> None:
    """Refuse landmarks that are shares of a picture's sides.

    Args:
        labels: of the points. positions: (T, M, 3) as the file has them.

    Raises:
        ClipError: they are.
    """
    hips = _hips(labels, positions)
    if hips is None or not np.isfinite(hips).any():
        return
    off = np.nanmedian(np.linalg.norm(hips, axis=1))
    if off > _OFF_CENTRE and body_extent(positions) < _IMAGE and 0 < np.nanmedian(hips[:, :2]) < 1:
        raise ClipError(
            f"{source}: holds places in the picture (pose_landmarks), which have no depth in metres: "
            "export pose_world_landmarks"
        )


def with_path(labels: Sequence[str], positions: np.ndarray, rate: float) -> tuple[np.ndarray, tuple[str, ...]]:
    """World landmarks with a path of the hips, and the note that says so; others as they are.

    The lowest point of the soles is on the floor, and the one that stands does not slide.

    Args:
        labels: of the points. positions: (T, M, 3) [m], y down; NaN = missing. rate: [Hz].
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
    raised = np.maximum(raised[1:], raised[:-1])  # before and after
    path[1:, [0, 2]] = (
        np.cumsum(_hip_velocity(raised, -np.diff(soles[..., [0, 2]], axis=0) * rate, rate), axis=0) / rate
    )
    note = "landmarks have no path: it is put back by the feet that stand, which must not slide; jumps become crouches"
    return positions + path[:, None], (note,)


def _hip_velocity(raised: np.ndarray, velocity: np.ndarray, rate: float) -> np.ndarray:
    """(T, 2) velocity of the hips over the floor [m/s]: that with which a point of the soles would stand still.

    A swinging foot passes as low as one that stands, but with it the hips would go another way all at once: of the four
    points that one counts which is low and makes the least change.

    Args:
        raised: (T, 4) above the lowest [m]. velocity: (T, 4, 2) of the hips, were the point still [m/s]. rate: [Hz].
    """
    found, now = np.zeros((len(raised), 2)), np.zeros(2)
    keep = np.exp(-1.0 / (_MEMORY * rate))
    for t, (height, options) in enumerate(zip(raised, velocity, strict=True)):
        cost = height / _NEARLY + np.linalg.norm(options - now, axis=1) / _CHANGE
        best = int(np.argmin(np.nan_to_num(cost, nan=np.inf)))
        if not np.isfinite(cost[best]):  # nobody is seen
            continue
        found[t] = options[best]
        now = keep * now + (1 - keep) * found[t]
    return found


def _hips(labels: Sequence[str], positions: np.ndarray) -> np.ndarray | None:
    """(T, 3) middle of the hips; None where the points are no landmarks."""
    plain = [label.lower() for label in labels]
    if not set(LANDMARKS) <= set(plain):
        return None
    return (positions[:, plain.index("left_hip")] + positions[:, plain.index("right_hip")]) / 2
