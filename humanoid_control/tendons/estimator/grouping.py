"""Automatic grouping of joints moved by the same tendons, for small groups.

Joints are clustered by likeness of their moment arms. A tendon belongs to the cluster with its largest arms; its group
borrows other crossed joints, up to a limit, and reports neglected lengths.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from humanoid_control.errors import ConfigError
from humanoid_control.tendons.mappings.mapping import Array
from humanoid_control.tendons.tendon import TendonGroup


@dataclass(frozen=True)
class Grouping:
    """Groups and the lengths that they neglect.

    Attributes:
        groups: each joint and each tendon belongs to one.
        neglected: (group, joint, largest neglected length [m]).
        blind: groups with unobservable own joints.
    """

    groups: tuple[TendonGroup, ...]
    neglected: tuple[tuple[str, str, float], ...]
    blind: tuple[str, ...]


def find_groups(
    jacobians: Array,
    joint_names: Sequence[str],
    muscle_names: Sequence[str],
    limits: Array,
    max_joints: int = 8,
    least_arm: float = 3e-3,
) -> Grouping:
    """Return groups from the structure of the muscle Jacobian.

    Args:
        jacobians: (S, M, D) at sampled postures [m/rad].
        joint_names: (D,).
        muscle_names: (M,).
        limits: (D, 2) [rad].
        max_joints: maximum of own and borrowed joints.
        least_arm: minimum moment arm of a crossing [m].

    Raises:
        ConfigError: if no tendon moves a joint.
    """
    # A tendon crosses a joint if its largest moment arm over the postures exceeds the threshold.
    arms = np.abs(jacobians).max(axis=0)
    arms = np.where(arms >= least_arm, arms, 0.0)
    idle = np.flatnonzero(~arms.any(axis=0))
    if len(idle):
        raise ConfigError(f"grouping: no tendon moves joint '{joint_names[idle[0]]}'; leave it out of the model")
    found = []
    for h in range(max(max_joints // 2, 1), max_joints + 1):
        own = _clusters(jacobians, arms, h)
        found.append(_named(jacobians, arms, own, joint_names, muscle_names, limits, max_joints))
    # Choice of h: least neglected length, then fewest blind groups, then fewest groups.
    return min(found, key=lambda g: (round(sum(n[2] for n in g.neglected), 6), len(g.blind), len(g.groups)))


def _clusters(jacobians: Array, arms: Array, most: int) -> list[list[int]]:
    """Return clusters of at most `most` joints, in joint order."""
    # Agglomerative clustering by the cosine between arms; clusters with rank-deficient arms merge first.
    own = [[j] for j in range(arms.shape[1])]
    while True:
        blind = [_blind(jacobians, arms, own, k) for k in range(len(own))]
        best, pair = 0.0, (0, 0)
        for a in range(len(own)):
            for b in range(a):
                score = _likeness(arms, own[a], own[b])
                if score > 0 and (blind[a] or blind[b]):
                    score += 1.0
                if score > best and len(own[a]) + len(own[b]) <= most:
                    best, pair = score, (a, b)
        if best == 0.0:
            return sorted(own)
        a, b = pair
        own[b] = sorted(own[b] + own[a])
        del own[a]


def _likeness(arms: Array, a: list[int], b: list[int]) -> float:
    x, y = np.sqrt((arms[:, a] ** 2).sum(axis=1)), np.sqrt((arms[:, b] ** 2).sum(axis=1))
    return float(x @ y / (np.linalg.norm(x) * np.linalg.norm(y)))


def _homes(arms: Array, own: list[list[int]]) -> Array:
    return np.argmax([(arms[:, joints] ** 2).sum(axis=1) for joints in own], axis=0)


def _borrowed(arms: Array, own: list[list[int]], k: int) -> list[int]:
    largest = arms[_homes(arms, own) == k].max(axis=0, initial=0.0)
    return [int(j) for j in np.argsort(-largest, kind="stable") if largest[j] > 0 and j not in own[k]]


def _blind(jacobians: Array, arms: Array, own: list[list[int]], k: int) -> bool:
    """Return True if own joints are unobservable at the median posture."""
    rows = jacobians[:, _homes(arms, own) == k][:, :, own[k]]
    if rows.shape[1] < len(own[k]):
        return True
    values = np.linalg.svd(rows[:: max(len(rows) // 20, 1)], compute_uv=False)
    return bool(np.median(values[:, -1] / np.maximum(values[:, 0], 1e-12)) < 1e-2)


def _named(
    jacobians: Array,
    arms: Array,
    own: list[list[int]],
    joint_names: Sequence[str],
    muscle_names: Sequence[str],
    limits: Array,
    most: int,
) -> Grouping:
    homes, groups, neglected, blind = _homes(arms, own), [], [], []
    for k, joints in enumerate(own):
        muscles = [int(i) for i in np.flatnonzero(homes == k)]
        borrow = _borrowed(arms, own, k)
        keep = max(most - len(joints), 0)
        name = (
            "_".join([joint_names[joints[0]], "to", joint_names[joints[-1]]]) if joints[1:] else joint_names[joints[0]]
        )
        for j in borrow[keep:]:
            half = (limits[j, 1] - limits[j, 0]) / 2
            neglected.append((name, joint_names[j], float(arms[muscles, j].max() * half)))
        if _blind(jacobians, arms, own, k):
            blind.append(name)
        mine, others = (tuple(joint_names[j] for j in part) for part in (joints, sorted(borrow[:keep])))
        groups.append(TendonGroup(name, mine, others, tuple(muscle_names[i] for i in muscles)))
    return Grouping(tuple(groups), tuple(neglected), tuple(blind))
