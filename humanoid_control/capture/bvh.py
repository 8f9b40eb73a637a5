"""BVH: a skeleton of joints with offsets, moved by its channels frame by frame."""

from __future__ import annotations

import math
import re
from pathlib import PurePath

import numpy as np

from humanoid_control.capture.bvh_format import Joint, parse_hierarchy, parse_motion
from humanoid_control.capture.clip import MarkerClip, distinct_labels
from humanoid_control.capture.rotations import rotation
from humanoid_control.capture.units import scale_of_skeleton
from humanoid_control.errors import ClipError

_REST_POSE_JUMP = 20.0  # times the usual step from frame to frame: no motion begins like that


def parse_bvh(data: bytes, source: str) -> MarkerClip:
    """Read a BVH file as a clip whose markers are the joints and end sites of its skeleton.

    BVH states no unit: it is found from the length of the bones between ankle and head. A first frame far from the
    second, the rest pose many converters put there, is dropped with a warning.

    Args:
        data: the bytes of the file.
        source: its path, for messages and the clip's name.

    Raises:
        ClipError: not a BVH file, cut off, or not a person's size in any unit.
    """
    text = data.decode("utf-8-sig", errors="replace")
    if not text.lstrip().startswith("HIERARCHY"):
        raise ClipError(f"{source}: not a BVH file: it must begin with HIERARCHY")
    hierarchy, *motion = re.split(r"^\s*MOTION\s*$", text, maxsplit=1, flags=re.MULTILINE)
    if not motion:
        raise ClipError(f"{source}: ends before MOTION: copy or export it again")
    joints = parse_hierarchy(hierarchy, source)
    rate, values = parse_motion(motion[0], sum(len(joint.channels) for joint in joints), source)
    positions = forward_kinematics(joints, values)
    labels, warnings = distinct_labels([joint.name for joint in joints])
    if _starts_in_rest_pose(positions):
        positions = positions[1:]
        warnings += ("frame 0 is a rest pose far from frame 1: dropped",)
    scale, unit_note = scale_of_skeleton(_ankle_to_head(joints, positions), source)
    return MarkerClip(PurePath(source).stem, labels, rate, positions * scale, source, warnings + unit_note)


def forward_kinematics(joints: list[Joint], values: np.ndarray) -> np.ndarray:
    """Where every joint is in every frame: down the tree, all frames at once.

    p_WJ = p_WP + R_WP t,  R_WJ = R_WP R_1 R_2 R_3 with the rotations in the order of the channels. t is the offset;
    a position channel replaces its coordinate.

    Args:
        joints: the hierarchy, parents first.
        values: (T, C) channel values in the order of the joints: file units and degrees.

    Returns:
        (T, J, 3) positions in the axes and units of the file.
    """
    n_frames = len(values)
    positions = np.zeros((n_frames, len(joints), 3))
    R_W = np.zeros((len(joints), n_frames, 3, 3))
    column = 0
    for index, joint in enumerate(joints):
        t = np.tile(joint.offset, (n_frames, 1))
        R_local = np.broadcast_to(np.eye(3), (n_frames, 3, 3))
        for channel in joint.channels:
            axis = "XYZ".index(channel[0])
            if channel.endswith("position"):
                t[:, axis] = values[:, column]
            else:
                R_local = R_local @ rotation(axis, np.radians(values[:, column]))
            column += 1
        if joint.parent < 0:
            positions[:, index], R_W[index] = t, R_local
        else:
            R_P = R_W[joint.parent]
            positions[:, index] = positions[:, joint.parent] + np.einsum("tij,tj->ti", R_P, t)
            R_W[index] = R_P @ R_local
    return positions


def _starts_in_rest_pose(positions: np.ndarray) -> bool:
    """Whether the step from frame 0 to frame 1 is one no body makes, the later steps being ordinary."""
    if len(positions) < 4:
        return False
    steps = np.linalg.norm(np.diff(positions, axis=0), axis=2).max(axis=1)
    return bool(steps[0] > _REST_POSE_JUMP * np.median(steps[1:]) and steps[0] > 3 * steps[1:].max())


def _ankle_to_head(joints: list[Joint], positions: np.ndarray) -> float:
    """Length of the bones from an ankle over the hip to the head [file units].

    Bone lengths do not depend on the pose. Joints are known by "foot" or "ankle" and "head" in their names; without
    them the longest side of the box round the skeleton stands in.
    """
    bone = [
        float(np.median(np.linalg.norm(positions[:, i] - positions[:, j.parent], axis=1))) if j.parent >= 0 else 0.0
        for i, j in enumerate(joints)
    ]
    ankle = _first_named(joints, ("foot", "ankle"))
    head = _first_named(joints, ("head",))
    if ankle < 0 or head < 0:
        return float(np.median(np.ptp(positions, axis=1).max(axis=1)))
    apart = set(_to_root(joints, ankle)) ^ set(_to_root(joints, head))
    return math.fsum(bone[i] for i in apart)


def _first_named(joints: list[Joint], words: tuple[str, ...]) -> int:
    """Index of the first joint whose name contains one of the words; -1 when there is none."""
    return next((i for i, joint in enumerate(joints) if any(word in joint.name.lower() for word in words)), -1)


def _to_root(joints: list[Joint], index: int) -> list[int]:
    """A joint and its ancestors."""
    chain = []
    while index >= 0:
        chain.append(index)
        index = joints[index].parent
    return chain
