"""Screw drives as parts of closed chains: the joints of a tree, and those of the loops beside it.

A knee's screw unit turns on its hinge in both directions and carries a helical joint whose nut meets the shank. An
ankle's screw is a helical joint on the shank; a coupler on two joints of the foot meets it. Each loop thus adds three
joints and three equations, neither too many nor too few.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin

HELPER = 1e-9  # [kg m^2] inertia about the couplers' joints, without which pinocchio cannot factor its matrix


@dataclass(frozen=True)
class Shaft:
    """What spins with a screw: inertia about the screw and across it [kg m^2]; no mass."""

    along: float
    across: float

    def about(self, axis: np.ndarray) -> np.ndarray:
        """(3, 3) inertia of a shaft along a unit vector."""
        return self.across * np.eye(3) + (self.along - self.across) * np.outer(axis, axis)


@dataclass
class Part:
    """A joint with what it moves."""

    name: str
    parent: str
    joint: pin.JointModel
    place: pin.SE3
    inertia: pin.Inertia
    armature: np.ndarray


class ChainParts:
    """A tree of pinocchio and loops beside it: joints, what they move, and where loops close."""

    def __init__(self, tree: pin.Model, helper: float = HELPER) -> None:
        """Take a tree.

        Args:
            helper: inertia of each joint that a massless part turns about [kg m^2].
        """
        self.tree, self.helper = tree, helper
        self.parts: list[Part] = []
        for j in range(1, tree.njoints):
            joint = tree.joints[j]
            armature = tree.armature[joint.idx_v : joint.idx_v + joint.nv]
            where = (tree.names[j], tree.names[tree.parents[j]], joint, tree.jointPlacements[j], tree.inertias[j])
            self.parts.append(Part(*where, armature))
        self.ends: list[tuple[str, np.ndarray, str, np.ndarray]] = []

    def add_knee(
        self,
        thigh: str,
        shank: str,
        r_b: np.ndarray,
        r_a: np.ndarray,
        axis: np.ndarray,
        rest: np.ndarray,
        ratio: float,
        shaft: Shaft,
        unit: pin.Inertia | None = None,
    ) -> None:
        """A screw between hinge B on the thigh and pivot A on the shank.

        Args:
            thigh, shank: joints that move them. r_b, r_a (3,): in their frames [m].
            axis: of the knee; rest: from B to A at some posture (3,), both in the thigh's frame, at a right angle.
            ratio: 2 pi / lead [1/m].
            unit: of the part that tilts but does not spin, in the thigh's axes at rest, about B.
        """
        light = self.helper if unit is None else 0.0
        k = self._add(thigh, pin.JointModelRevoluteUnaligned(axis), r_b, armature=light)
        k = self._add(
            k, pin.JointModelRevoluteUnaligned(np.cross(axis, rest / np.linalg.norm(rest))), None, unit, light
        )
        k = self._screw(k, None, rest, ratio, shaft)
        self.ends.append((k, np.asarray(rest, float), shank, np.asarray(r_a, float)))

    def add_coupler(
        self,
        shank: str,
        foot: str,
        carriage: np.ndarray,
        direction: np.ndarray,
        r_bot: np.ndarray,
        rest: np.ndarray,
        ratio: float,
        shaft: Shaft,
    ) -> None:
        """A screw along a direction of the shank, whose carriage holds a foot by a coupler.

        Args:
            shank, foot: joints that move them. r_bot (3,): in the foot's frame [m].
            carriage: where it is at some posture, direction: of its travel (3,), in the shank's frame.
            rest: from r_bot to the carriage at that posture (3,), in the foot's axes; its length is the coupler's [m].
            ratio: 2 pi / lead [1/m].
        """
        along = rest / np.linalg.norm(rest)
        first = np.cross(along, np.eye(3)[np.argmin(np.abs(along))])
        first /= np.linalg.norm(first)
        k = self._add(foot, pin.JointModelRevoluteUnaligned(first), r_bot, armature=self.helper)
        rod = self._add(k, pin.JointModelRevoluteUnaligned(np.cross(along, first)), None, armature=self.helper)
        screw = self._screw(shank, carriage, direction, ratio, shaft)
        self.ends.append((screw, np.zeros(3), rod, np.asarray(rest, float)))

    def _screw(self, parent: str, at: np.ndarray | None, direction: np.ndarray, ratio: float, shaft: Shaft) -> str:
        axis = direction / np.linalg.norm(direction)
        inertia = pin.Inertia(0.0, np.zeros(3), shaft.about(axis))
        return self._add(parent, pin.JointModelHelicalUnaligned(axis, 1.0 / ratio), at, inertia)

    def _add(
        self,
        parent: str,
        joint: pin.JointModel,
        at: np.ndarray | None,
        inertia: pin.Inertia | None = None,
        armature: float = 0.0,
    ) -> str:
        place = pin.SE3(np.eye(3), np.zeros(3) if at is None else np.asarray(at, float))
        name = f"loop{len(self.parts)}"
        self.parts.append(Part(name, parent, joint, place, inertia or pin.Inertia.Zero(), np.array([armature])))
        return name
