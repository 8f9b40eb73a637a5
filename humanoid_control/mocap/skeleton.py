"""Forward kinematics of a skeleton over a recording, and the front of its head."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from humanoid_control.errors import ClipError
from humanoid_control.mocap.clip import MarkerClip

X, Y, Z = 0, 1, 2
BEFORE = 0.3  # distance of the head's front from its joint, in shoulder distances
_ALIKE = 0.5  # length of a mean unit vector below which there is no common direction


def rotation(axis: int, angle: np.ndarray) -> np.ndarray:
    """Return rotations (T, 3, 3) about axis X, Y or Z by angle (T,) [rad]."""
    R = np.zeros((len(angle), 3, 3))
    i, j = (axis + 1) % 3, (axis + 2) % 3
    R[:, axis, axis] = 1.0
    R[:, i, i] = R[:, j, j] = np.cos(angle)
    R[:, j, i] = np.sin(angle)
    R[:, i, j] = -R[:, j, i]
    return R


def moving_axes(turns: Sequence[tuple[int, np.ndarray]], n_frames: int) -> np.ndarray:
    """Return rotations (T, 3, 3) of turns (axis, angle (T,) [rad]) about moving axes."""
    R = np.broadcast_to(np.eye(3), (n_frames, 3, 3))
    for axis, angle in turns:
        R = R @ rotation(axis, angle)
    return R


def fixed_axes(turns: Sequence[tuple[int, np.ndarray]], n_frames: int) -> np.ndarray:
    """Return rotations (T, 3, 3) of turns about fixed axes: `moving_axes` in reverse."""
    return moving_axes(turns[::-1], n_frames)


def forward_kinematics(
    parents: Sequence[int], p_PB: Sequence[np.ndarray], R_PB: Sequence[np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Return positions (B, T, 3) and rotations (B, T, 3, 3) of a tree: p_WB = p_WP + R_WP p_PB, R_WB = R_WP R_PB.

    Args:
        parents: index of the parent P, before its child B; negative: world.
        p_PB: (3,) or (T, 3) in the parent.
        R_PB: (T, 3, 3) in the parent.
    """
    n_frames = len(R_PB[0])
    p_WB, R_WB = np.empty((len(parents), n_frames, 3)), np.empty((len(parents), n_frames, 3, 3))
    for body, parent in enumerate(parents):
        if parent < 0:
            p_WB[body], R_WB[body] = p_PB[body], R_PB[body]
        else:
            p_WB[body] = p_WB[parent] + turned(R_WB[parent], p_PB[body])
            R_WB[body] = R_WB[parent] @ R_PB[body]
    return p_WB, R_WB


def turned(R: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """Return vectors (3,) or (T, 3) rotated by R (T, 3, 3)."""
    return (R @ vectors[..., None])[..., 0]


# -------- front of the head


def head_joint(names: Sequence[str]) -> int:
    """Return the index of the head joint, or -1."""
    return next((k for k, name in enumerate(names) if name.rpartition(":")[2].lower().endswith("head")), -1)


def with_head_front(clip: MarkerClip, head: int, R: np.ndarray) -> MarkerClip:
    """Return the clip with "<head>_front", about 10 cm in front of the head joint.

    Files do not state joint axes. People look ahead on average: the head's front is its mean direction along the
    chest's. Clips without a fitting marker set stay.

    Args:
        clip: of joints.
        head: index.
        R: (T, 3, 3) of the head, clip axes.
    """
    from humanoid_control.mocap.marker_set_draft import sure_marker_set
    from humanoid_control.mocap.marker_sets import BodyLocator, match_sets

    try:
        p = BodyLocator(clip, None if match_sets(clip)[0].fits else sure_marker_set(clip)).locate()
    except ClipError:
        return clip
    left = p["l_shoulder"] - p["r_shoulder"]
    spine = p["l_shoulder"] + p["r_shoulder"] - p["l_hip"] - p["r_hip"]
    with np.errstate(invalid="ignore"):
        ahead = np.cross(left, spine)
        ahead /= np.linalg.norm(ahead, axis=1, keepdims=True)
        front = np.nanmean(np.einsum("tji,tj->ti", R, ahead), axis=0)
    length = float(np.linalg.norm(front))
    label = f"{clip.labels[head]}_front"
    if not length > _ALIKE or label in clip.labels:
        return clip
    width = float(np.nanmedian(np.linalg.norm(left, axis=1)))
    place = clip.positions[:, head] + BEFORE * width / length * turned(R, front)
    positions = np.concatenate([clip.positions, place[:, None]], axis=1)
    return replace(clip, labels=(*clip.labels, label), positions=positions)
