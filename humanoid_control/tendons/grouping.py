"""Automatic grouping: joints that the same tendons move are put together, as long as a group stays small.

The source grouped by hand and names this as future work. The algorithm is this project's:

1. A tendon crosses a joint when its largest moment arm over sampled postures is above a threshold.
2. Every joint starts as a group of its own. A tendon belongs to the group on whose joints its arms are largest.
   A group borrows the other joints that its tendons cross.
3. The two groups whose joints are moved most alike, by the cosine between the summed arms of their tendons, are joined
   while both stay within the limit on joints. Groups that cannot tell their own joints apart from their tendons
   (the rank of the arms is too low) are joined first.
4. A group still beyond the limit borrows only the joints with the largest arms; what that neglects is reported.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from humanoid_control.errors import ConfigError
from humanoid_control.tendons.groups import JointGroup
from humanoid_control.tendons.mapping import Array


@dataclass(frozen=True)
class Grouping:
    """Groups found, and what they leave out.

    Attributes:
        groups: every joint is owned by one, every tendon belongs to one.
        neglected: (group, joint, largest length that this joint moves a tendon of the group by [m]).
        blind: groups whose tendons cannot tell all their own joints apart.
    """

    groups: tuple[JointGroup, ...]
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
    own: list[list[int]] = [[j] for j in range(len(joint_names))]
    while len(own) > 1:
        best, pair = 0.0, None
        for a in range(len(own)):
            for b in range(a):
                score = _likeness(arms, own[a], own[b])
                joined = [c for k, c in enumerate(own) if k not in (a, b)] + [sorted(own[a] + own[b])]
                if score > 0 and (_blind(jacobians, arms, own, a) or _blind(jacobians, arms, own, b)):
                    score += 1.0
                if score > best and _fits(arms, joined, max_joints, len(own[a]) + len(own[b])):
                    best, pair = score, (joined,)
        if pair is None:
            break
        own = pair[0]
    own.sort()
    return _named(jacobians, arms, own, joint_names, muscle_names, limits, max_joints)


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


def _fits(arms: Array, own: list[list[int]], most: int, joined: int) -> bool:
    """Whether the group joined last keeps within the limit, or would be beyond it however it were grouped."""
    return len(own[-1]) + len(_borrowed(arms, own, len(own) - 1)) <= most and joined <= most


def _blind(jacobians: Array, arms: Array, own: list[list[int]], k: int) -> bool:
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
        groups.append(JointGroup(name, mine, others, tuple(muscle_names[i] for i in muscles)))
    return Grouping(tuple(groups), tuple(neglected), tuple(blind))
