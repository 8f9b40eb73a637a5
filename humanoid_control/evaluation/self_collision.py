"""Self-collisions of a motion by pairs of body segments (Dube 2012, Tables 4.3 and 6.6)."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from humanoid_control.collision.coal_backend import shape_arrays
from humanoid_control.collision.pair_distance import CollisionPairs
from humanoid_control.robots.robot import Robot

LIKELY, UNLIKELY = "likely", "unlikely"

# Rows and columns as printed: L likely, u unlikely, blank not tested. UA, LA upper and lower arm, B body, HN head and
# neck, T thigh, L leg; _l left, _r right.
_COLUMNS = ("UA_r", "LA_r", "UA_l", "LA_l", "B", "HN", "T_r", "L_r")
_ROWS = {
    "UA_l": "LL      ",
    "LA_l": "LL      ",
    "B": "LLLL    ",
    "HN": "LLLL    ",
    "T_r": "LLLLuu  ",
    "L_r": "uLuLuu  ",
    "T_l": "LLLLuuLL",
    "L_l": "uLuLuuLL",
}
PAIR_TABLE: dict[frozenset[str], str] = {
    frozenset((row, column)): LIKELY if mark == "L" else UNLIKELY
    for row, marks in _ROWS.items()
    for column, mark in zip(_COLUMNS, marks, strict=True)
    if mark != " "
}

# Hands move with the lower arm, feet and toes with the leg. Table 4.3 has no clavicle or girdle.
_SEGMENTS = {
    "upper_arm": "UA",
    "lower_arm": "LA",
    "forearm": "LA",
    "hand": "LA",
    "thigh": "T",
    "shank": "L",
    "leg": "L",
    "foot": "L",
    "toe": "L",
}
_MIDDLE = {"upper_torso": "B", "lower_torso": "B", "torso": "B", "head": "HN", "neck": "HN"}
_SIDED = re.compile(r"(?:([lr])_|(left)_|(right)_)(\w+)")

ARM_TORSO_COLUMNS = (
    "lower arm - upper torso",
    "lower arm - lower torso",
    "upper arm - upper torso",
    "upper arm - lower torso",
)
"""Columns of Table 6.6: arms against torso."""


def segment_of(shape: str) -> str | None:
    """Return the row or column of Table 4.3 of a shape, e.g. `l_hand` -> `LA_l`, `upper_torso` -> `B`.

    None for shapes that are not in the table: clavicles, girdles, platform, pedestal, column, unknown names.
    """
    if shape in _MIDDLE:
        return _MIDDLE[shape]
    match = _SIDED.fullmatch(shape)
    if not match or match[4] not in _SEGMENTS:
        return None
    return f"{_SEGMENTS[match[4]]}_{(match[1] or match[2] or match[3])[0]}"


def likelihood(shape_1: str, shape_2: str) -> str | None:
    """Return LIKELY, UNLIKELY, or None without an entry in Table 4.3; the order does not matter."""
    segments = segment_of(shape_1), segment_of(shape_2)
    if None in segments:
        return None
    return PAIR_TABLE.get(frozenset(str(s) for s in segments))


def arm_torso_column(shape_1: str, shape_2: str) -> str | None:
    """Return the column of Table 6.6 for two shapes, or None; hands count as lower arms."""
    torso, arm = (shape_1, shape_2) if shape_1 in ("upper_torso", "lower_torso") else (shape_2, shape_1)
    segment = segment_of(arm)
    if torso not in ("upper_torso", "lower_torso") or segment is None or segment[:2] not in ("UA", "LA"):
        return None
    return f"{'upper' if segment[:2] == 'UA' else 'lower'} arm - {torso.replace('_', ' ')}"


# -------- Collisions counted as in Table 6.6


@dataclass(frozen=True)
class PairDistances:
    """Distances (T, P) of P shape pairs over a motion: signed, negative in penetration [m]."""

    pairs: tuple[tuple[str, str], ...]
    distance: np.ndarray

    def arm_torso(self) -> PairDistances:
        """Return the pairs of Table 6.6: upper and lower arms with hands, against upper and lower torso."""
        keep = [k for k, pair in enumerate(self.pairs) if arm_torso_column(*pair)]
        return PairDistances(tuple(self.pairs[k] for k in keep), self.distance[:, keep])

    def penetration(self) -> np.ndarray:
        """Return the deepest penetration (T,), else 0 [m]."""
        return np.maximum(0.0, -self.distance.min(axis=1, initial=np.inf))


@dataclass(frozen=True)
class CollisionCount:
    """Frames in self-collision.

    Attributes:
        arm_torso: column of Table 6.6 -> frames, counted once per arm, both arms added.
        frames_arm_torso: frames with any arm-torso contact.
        others: "shape - shape" -> frames, of other pairs.
        worst: deepest arm-torso penetration [m].
        worst_other: deepest penetration of other pairs [m].
    """

    frames: int
    arm_torso: dict[str, int]
    per_arm: dict[str, dict[str, int]]
    total: int
    frames_arm_torso: int
    others: dict[str, int]
    worst: float
    worst_other: float


def self_penetration(robot: Robot, joints: np.ndarray) -> PairDistances:
    """Return exact signed distances of all pairs of a robot's shapes at joint angles (T, n)."""
    shapes, data = shape_arrays(robot.model, robot.shapes), robot.model.createData()
    measure = CollisionPairs(shapes, robot.pairs, robot.ancestor_mask)
    out = np.empty((len(joints), len(robot.pairs)))
    for k, row in enumerate(joints):
        pin.forwardKinematics(robot.model, data, robot.q(row))
        measure.place(np.array([X.rotation for X in data.oMi]), np.array([X.translation for X in data.oMi]))
        out[k] = measure.all_distances()
    names = [s.name for s in robot.shapes]
    return PairDistances(tuple((names[i], names[j]) for i, j in robot.pairs), out)


def count_collisions(distances: PairDistances) -> CollisionCount:
    """Count frames in penetration.

    A frame counts once per colliding arm, and hands belong to the lower arm.
    """
    hit = distances.distance < 0
    columns = [(arm_torso_column(*pair), _side(pair)) for pair in distances.pairs]
    per_arm = {side: dict.fromkeys(ARM_TORSO_COLUMNS, 0) for side in "lr"}
    for side in "lr":
        for column in ARM_TORSO_COLUMNS:
            mine = [k for k, found in enumerate(columns) if found == (column, side)]
            per_arm[side][column] = int(hit[:, mine].any(axis=1).sum())
    watched = np.array([column is not None for column, _ in columns], dtype=bool)
    others = {}
    for k in np.flatnonzero(~watched & hit.any(axis=0)):
        others[" - ".join(distances.pairs[k])] = int(hit[:, k].sum())
    arm_torso = {column: per_arm["l"][column] + per_arm["r"][column] for column in ARM_TORSO_COLUMNS}
    depth = np.maximum(0.0, -distances.distance)
    return CollisionCount(
        frames=len(hit),
        arm_torso=arm_torso,
        per_arm=per_arm,
        total=sum(arm_torso.values()),
        frames_arm_torso=int(hit[:, watched].any(axis=1).sum()),
        others=dict(sorted(others.items(), key=lambda row: -row[1])),
        worst=float(depth[:, watched].max(initial=0.0)),
        worst_other=float(depth[:, ~watched].max(initial=0.0)),
    )


def _side(pair: tuple[str, str]) -> str:
    """Return "l" or "r", the arm of a pair of Table 6.6."""
    segments = [segment for segment in map(segment_of, pair) if segment and segment[:2] in ("UA", "LA")]
    return segments[0][-1] if segments else ""
