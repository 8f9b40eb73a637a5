"""Distance of the shoulders from their singularity (Dube 2012, sections 3.1.1 and 6.1).

A glenohumeral joint with axes of flexion, abduction and rotation is singular when the upper arm is along the flexion
axis: at 90 deg abduction plus the mounting angle of the flexion axis.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from humanoid_control.errors import RobotError
from humanoid_control.evaluation.tracking_error import unbroken_runs
from humanoid_control.robots.description.tree_changes import serial_chain
from humanoid_control.robots.description.urdf import link_of, parse_urdf
from humanoid_control.robots.robot import Robot

HORIZONTAL_FLEXION = "shoulder_horizontal_flexion"
SIDES = ("l", "r")
NEAR = 0.2  # of the distance from singularity: 12 degrees
GH_MOTIONS = ("shoulder_flexion", "shoulder_abduction", "shoulder_rotation")


def gh_axes(robot: Robot, joints: np.ndarray) -> np.ndarray:
    """Return the shoulder axes: orientation Jacobian of the upper arm for its three joints.

    Args:
        robot: joints `l_shoulder_flexion` and so on, by name or meaning, must be consecutive in each arm.

    Returns:
        Unit axes as columns (..., 2, 3, 3), left and right, in the order flexion, abduction, rotation, in the frame of
            the link that carries the shoulder; with a preceding fourth axis (..., 2, 3, 4).

    Raises:
        RobotError: if the robot lacks these joints.
    """
    joints = np.asarray(joints, dtype=float)
    shoulders = [_shoulder(robot, side) for side in SIDES]
    out = np.empty((*joints.shape[:-1], 2, 3, len(shoulders[0][0])))
    for side, (index, X, axes) in enumerate(shoulders):
        R = np.broadcast_to(np.eye(3), (*joints.shape[:-1], 3, 3))
        for k in range(len(index)):
            R = R @ X[k]
            out[..., side, :, k] = R @ axes[k]
            R = R @ _rotations(axes[k], joints[..., index[k]])
    return out


def gh_singularity(robot: Robot, joints: np.ndarray) -> np.ndarray:
    """Return the distance (..., 2) of left and right shoulder from singularity: 0 singular, 1 for perpendicular axes.

    |det| of the three unit axes A, the volume that they span; for four, sqrt(det(A A^T)), at most 1.
    """
    A = gh_axes(robot, joints)
    if A.shape[-1] == 3:
        return np.minimum(np.abs(np.linalg.det(A)), 1.0)
    return np.sqrt(np.clip(np.linalg.det(A @ np.swapaxes(A, -1, -2)), 0.0, 1.0))


def gh_smallest_singular_value(robot: Robot, joints: np.ndarray) -> np.ndarray:
    """Return the smallest singular value (..., 2) of each shoulder's orientation Jacobian, in [0, 1]."""
    return np.linalg.svd(gh_axes(robot, joints), compute_uv=False)[..., -1]


@dataclass(frozen=True)
class SingularStretch:
    """Frames first .. last (inclusive) with a shoulder near singularity, and the least distance."""

    side: str
    first: int
    last: int
    smallest: float


def singular_stretches(values: np.ndarray, below: float = NEAR) -> list[SingularStretch]:
    """Return the stretches of a trajectory near a shoulder singularity."""
    out = [
        SingularStretch(name, a, b - 1, float(values[a:b, side].min()))
        for side, name in enumerate(SIDES)
        for a, b in unbroken_runs(values[:, side] < below)
    ]
    return sorted(out, key=lambda s: (s.first, s.side))


def _shoulder(robot: Robot, side: str) -> tuple[list[int], list[np.ndarray], list[np.ndarray]]:
    """Return joint indices, constant rotations before each joint, and axes of a shoulder."""
    fourth = robot.joint_for(f"{side}_{HORIZONTAL_FLEXION}")
    names = [robot.joint_for(f"{side}_{motion}") for motion in GH_MOTIONS]
    if None in names:
        missing = ", ".join(f"{side}_{m}" for m, n in zip(GH_MOTIONS, names, strict=True) if n is None)
        raise RobotError(f"{robot.name} has no {missing}: name its shoulder joints under 'meanings' in its robot file")
    names = [fourth, *names] if fourth else names
    tree = parse_urdf(robot.urdf, robot.name)
    elements = {j.get("name"): j for j in tree.joints}
    chain = serial_chain(tree, link_of(elements[names[0]], "parent"), link_of(elements[names[-1]], "child"))
    found = [j.name for j in chain.joints]
    if found != names or any(j.kind != "revolute" for j in chain.joints):
        raise RobotError(f"{robot.name}: {', '.join(str(n) for n in names)} do not form a chain: found {found}")
    X = [j.X[:3, :3] for j in chain.joints]
    X[0] = np.eye(3)  # the mounting of the shoulder is irrelevant
    return [robot.joint_index(n) for n in found], X, [j.axis for j in chain.joints]


def _rotations(axis: np.ndarray, angles: np.ndarray) -> np.ndarray:
    """Return rotation matrices (..., 3, 3) about a unit axis (Rodrigues)."""
    x, y, z = axis
    K = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    s, c = np.sin(angles)[..., None, None], np.cos(angles)[..., None, None]
    return np.eye(3) + s * K + (1 - c) * (K @ K)


# -------- Summary of a motion


@dataclass(frozen=True)
class ShoulderSingularity:
    """Summary of shoulder singularity over a motion.

    Attributes:
        smallest: least distance, 0 singular, 1 far away; NaN without such a shoulder.
        share_near: share of frames with a shoulder below 0.2 (12 degrees).
        stretches: runs of such frames.
    """

    smallest: float
    share_near: float
    stretches: tuple[SingularStretch, ...]


def singularity_distance(robot: Robot, joints: np.ndarray) -> np.ndarray:
    """Return the distance (T, 2) of both shoulders from singularity at joint angles (T, n).

    NaN if the robot lacks consecutive flexion, abduction and rotation joints.
    """
    try:
        return gh_singularity(robot, joints)
    except RobotError:
        return np.full((len(joints), 2), np.nan)


def summarize_singularity(values: np.ndarray) -> ShoulderSingularity:
    """Return the summary of distances (T, 2)."""
    near = values < NEAR  # False for NaN
    smallest = float(values.min())
    return ShoulderSingularity(smallest, float(near.any(axis=1).mean()), tuple(singular_stretches(values)))
