"""Self-collisions of a motion, counted as the source's Table 6.6 does."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from humanoid_control.collision.pair_distances import pair_distances
from humanoid_control.collision.shape_arrays import shape_poses
from humanoid_control.robots import Robot
from humanoid_control.robots.geometry import shape_arrays

ARM_PARTS = ("lower arm", "upper arm")
TORSO_PARTS = ("upper torso", "lower torso")
TABLE = tuple(f"{arm} - {torso}" for arm in ARM_PARTS for torso in TORSO_PARTS)
"""Columns of Table 6.6."""


@dataclass(frozen=True)
class PairDistances:
    """Distances of the watched pairs of shapes over a motion.

    Attributes:
        pairs: P pairs of shape names.
        distance: (T, P) signed distance [m], negative inside, infinite beyond what was looked for.
    """

    pairs: tuple[tuple[str, str], ...]
    distance: np.ndarray

    def arm_torso(self) -> PairDistances:
        """Only the pairs of Table 6.6: upper and lower arms against upper and lower torso."""
        keep = [k for k, pair in enumerate(self.pairs) if pair_class(*pair) in TABLE]
        return PairDistances(tuple(self.pairs[k] for k in keep), self.distance[:, keep])

    def penetration(self) -> np.ndarray:
        """Deepest penetration (T,) in each frame [m], 0 where nothing touches."""
        return np.maximum(0.0, -self.distance.min(axis=1, initial=np.inf))


@dataclass(frozen=True)
class CollisionCount:
    """Frames in self-collision.

    Attributes:
        frames: N, how many were looked at.
        arm_torso: column of Table 6.6 -> collisions: frames counted once for each arm, left and right added up.
        per_arm: the same for "l" and "r" alone.
        total: sum of `arm_torso`.
        frames_arm_torso: frames in which at least one arm touches the torso.
        others: "shape - shape" -> frames, of all other pairs that ever touch: hands, arm against arm, head, legs.
        worst: deepest penetration of an arm-torso pair [m], worst_other: of any other pair.
    """

    frames: int
    arm_torso: dict[str, int]
    per_arm: dict[str, dict[str, int]]
    total: int
    frames_arm_torso: int
    others: dict[str, int]
    worst: float
    worst_other: float


def self_penetration(robot: Robot, joints: np.ndarray, within: float = 0.05) -> PairDistances:
    """Exact signed distances of all watched pairs of a robot's collision shapes at joint angles (T, n).

    Args:
        robot: any.
        joints: (T, n) [rad].
        within: distance up to which pairs are measured [m].
    """
    shapes, pairs = shape_arrays(robot.model, robot.shapes), np.ascontiguousarray(robot.pairs, dtype=np.int64)
    data, (S, P) = robot.model.createData(), (len(shapes), len(pairs))
    R, p = np.empty((S, 3, 3)), np.empty((S, 3))
    pair, near, vectors = np.empty(P, dtype=np.int64), np.empty(P), np.empty((3, P, 3))
    out = np.full((len(joints), P), np.inf)
    for k, row in enumerate(joints):
        pin.forwardKinematics(robot.model, data, robot.q(row))
        joint_R, joint_p = np.array([X.rotation for X in data.oMi]), np.array([X.translation for X in data.oMi])
        shape_poses(joint_R, joint_p, shapes.joint, shapes.R, shapes.p, R, p)
        found = pair_distances(
            *(shapes.kinds, shapes.sizes, R, p, p, shapes.radii, pairs, within),
            *(pair, near, *vectors),
        )
        out[k, pair[:found]] = near[:found]
    names = [s.name for s in robot.shapes]
    return PairDistances(tuple((names[i], names[j]) for i, j in pairs), out)


def count_collisions(distances: PairDistances) -> CollisionCount:
    """Count the frames in which pairs penetrate each other.

    The source does not say whether it adds up the arms; here a frame counts once for each arm that collides, however
    many of that arm's shapes do.
    """
    hit = distances.distance < 0
    T = len(hit)
    per_arm = {side: dict.fromkeys(TABLE, 0) for side in "lr"}
    others: dict[str, int] = {}
    for side in "lr":
        for column in TABLE:
            mine = [k for k, pair in enumerate(distances.pairs) if pair_class(*pair) == column and _side(pair) == side]
            per_arm[side][column] = int(hit[:, mine].any(axis=1).sum())
    watched = np.array([pair_class(*pair) in TABLE for pair in distances.pairs], dtype=bool)
    for k in np.flatnonzero(~watched & hit.any(axis=0)):
        others[" - ".join(distances.pairs[k])] = int(hit[:, k].sum())
    arm_torso = {column: per_arm["l"][column] + per_arm["r"][column] for column in TABLE}
    depth = np.maximum(0.0, -distances.distance)
    return CollisionCount(
        frames=T,
        arm_torso=arm_torso,
        per_arm=per_arm,
        total=sum(arm_torso.values()),
        frames_arm_torso=int(hit[:, watched].any(axis=1).sum()),
        others=dict(sorted(others.items(), key=lambda row: -row[1])),
        worst=float(depth[:, watched].max(initial=0.0)),
        worst_other=float(depth[:, ~watched].max(initial=0.0)),
    )


def pair_class(a: str, b: str) -> str:
    """The column of Table 6.6 a pair of shapes belongs to; "" for other pairs.

    Shapes are told by their names: `l_upper_arm`, `r_lower_arm`, `upper_torso`, `lower_torso`, with any ending.
    """
    if _part(a, TORSO_PARTS):
        a, b = b, a
    arm, torso = _part(a, ARM_PARTS), _part(b, TORSO_PARTS)
    return f"{arm} - {torso}" if arm and torso else ""


def _part(shape: str, parts: tuple[str, ...]) -> str:
    return next((part for part in parts if part.replace(" ", "_") in shape), "")


def _side(pair: tuple[str, str]) -> str:
    arm = pair[0] if _part(pair[0], ARM_PARTS) else pair[1]
    return arm[:1]
