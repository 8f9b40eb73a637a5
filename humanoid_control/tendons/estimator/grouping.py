"""Automatic grouping: joints that the same tendons move are put together, as long as a group stays small.

Kawaharazuka 2018 grouped by hand and names this as future work. The algorithm is this project's:

1. A tendon crosses a joint when its largest moment arm over sampled postures is above a threshold.
2. Every joint starts as a cluster of its own. The two clusters whose joints are moved most alike, by the cosine between
   the arms of all tendons on either, are joined, again and again, while they own no more than h joints together.
   Clusters that their own tendons cannot tell apart (the rank of the arms is too low) are joined first.
3. A tendon belongs to the cluster on whose joints its arms are largest; a group borrows the other joints that its
   tendons cross, those with the largest arms first, up to the limit on joints. What that neglects is reported.
4. Of all h from half the limit to the limit the one that neglects the least length is taken, then the one with the
   fewest blind groups, then the one with the fewest groups.
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
    """Groups found, and the lengths that they neglect.

    Attributes:
        groups: every joint is owned by one, every tendon belongs to one.
        neglected: (group, joint, largest length that this joint moves a tendon of the group by [m]).
        blind: groups whose tendons cannot tell all their own joints apart.
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
    """Groups from the muscle Jacobian's structure.

    Args:
        jacobians: (S, M, D) at postures over the range [m/rad]. limits: (D, 2) [rad].
        max_joints: own and borrowed joints of a group at most. least_arm: below it a tendon does not cross a joint [m].

    Raises:
        ConfigError: a joint that no tendon moves.
    """
    arms = np.abs(jacobians).max(axis=0)
    arms = np.where(arms >= least_arm, arms, 0.0)
    idle = np.flatnonzero(~arms.any(axis=0))
    if len(idle):
        raise ConfigError(f"grouping: no tendon moves joint '{joint_names[idle[0]]}'; leave it out of the model")
    found = []
    for h in range(max(max_joints // 2, 1), max_joints + 1):
        own = _clusters(jacobians, arms, h)
        found.append(_named(jacobians, arms, own, joint_names, muscle_names, limits, max_joints))
    return min(found, key=lambda g: (round(sum(n[2] for n in g.neglected), 6), len(g.blind), len(g.groups)))


def _clusters(jacobians: Array, arms: Array, most: int) -> list[list[int]]:
    """Joints put together by likeness, at most so many to a cluster, in the order of the joints."""
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
    """Cosine between the tendons' arms on both sets of joints, 0..1."""
    x, y = np.sqrt((arms[:, a] ** 2).sum(axis=1)), np.sqrt((arms[:, b] ** 2).sum(axis=1))
    return float(x @ y / (np.linalg.norm(x) * np.linalg.norm(y)))


def _homes(arms: Array, own: list[list[int]]) -> Array:
    """(M,) the group on whose joints each tendon's arms are largest."""
    return np.argmax([(arms[:, joints] ** 2).sum(axis=1) for joints in own], axis=0)


def _borrowed(arms: Array, own: list[list[int]], k: int) -> list[int]:
    """Joints that tendons of group k cross and it does not own, largest arm first."""
    largest = arms[_homes(arms, own) == k].max(axis=0, initial=0.0)
    return [int(j) for j in np.argsort(-largest, kind="stable") if largest[j] > 0 and j not in own[k]]


def _blind(jacobians: Array, arms: Array, own: list[list[int]], k: int) -> bool:
    """True where the group's tendons leave a direction of its own joints unseen, in the median posture."""
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
