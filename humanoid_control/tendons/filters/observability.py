"""What the tendons can tell: the weakest direction of the joints, by name, absolutely and from changes alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from humanoid_control.tendons.mappings.mapping import Array, JointMuscleMapping


@dataclass(frozen=True)
class Observability:
    """How well lengths determine angles.

    Attributes:
        smallest, largest: singular values of the observation matrix.
        direction: (D,) unit vector of angles that the lengths say least about.
        joints: those that make up this direction, largest share first.
        rank: number of singular values above the cut-off.
    """

    smallest: float
    largest: float
    direction: Array
    joints: tuple[str, ...]
    rank: int

    @property
    def observable(self) -> bool:
        """Whether every direction is seen."""
        return self.rank == len(self.direction)

    def __str__(self) -> str:
        """One line for a log or a diagnostic."""
        state = "observable" if self.observable else f"unobservable along {', '.join(self.joints)}"
        return f"{state}: smallest singular value {self.smallest:.3g}, largest {self.largest:.3g}"


def observability(matrix: Array, joint_names: Sequence[str], cutoff: float = 1e-3) -> Observability:
    """Of the angles (D,) that a matrix (K, D) maps to lengths; the muscle Jacobian or a stack of them.

    Args:
        cutoff: share of the largest singular value below which a direction counts as not seen.
    """
    d = len(joint_names)
    rows = matrix if len(matrix) >= d else np.vstack([matrix, np.zeros((d - len(matrix), d))])
    _, s, vt = np.linalg.svd(rows, full_matrices=False)
    direction = vt[-1]
    order = np.argsort(-np.abs(direction))
    joints = tuple(joint_names[j] for j in order if abs(direction[j]) > 0.3)
    rank = int((s > cutoff * s[0]).sum()) if s[0] > 0 else 0
    return Observability(float(s[-1]), float(s[0]), direction, joints, rank)


def relative_observability(
    mapping: JointMuscleMapping, path: Array, cutoff: float = 1e-3, own: int | None = None
) -> Observability:
    """What changes of length along a path say about the posture itself: the differentiated mapping, stacked.

    A constant error e of the angles changes the increment along dtheta by d(G dtheta)/dtheta e. It shows only where
    moment arms change with the posture, and only as far as the angles cannot be moved to explain it: increments that
    another motion would also make are taken out.

    Args:
        path: (K, D) angles passed through [rad], K >= 2.
        own: only the first so many joints are unknown; default all.
    """
    rows = []
    for theta, step in zip(path[:-1], np.diff(path, axis=0), strict=True):
        G = mapping.jacobian(theta)[:, :own]
        change = mapping.jacobian_directional(theta, step)[:, :own]
        rows.append(change - G @ np.linalg.lstsq(G, change, rcond=cutoff)[0])
    return observability(np.vstack(rows), mapping.joint_names[:own], cutoff)
