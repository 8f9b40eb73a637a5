"""A multibody system, as written down once and run by any solver."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from humanoid_control.errors import RobotError, UnknownNameError
from humanoid_control.multibody.angle import IDENTITY
from humanoid_control.multibody.body import ENVIRONMENT, Body
from humanoid_control.multibody.layout import FREE, MAX_COORDINATES, PRISMATIC
from humanoid_control.multibody.subsystems import Node, pointer_tree, with_subsystems


@dataclass(frozen=True)
class Loop:
    """One sub-system that the model needed: its bodies, and the coordinates they share."""

    bodies: tuple[str, ...]
    coordinates: tuple[str, ...]


class Model:
    """Bodies with joints in minimal coordinates; sets of coordinates of different bodies may overlap (section 2.6).

    Attributes:
        bodies: each after its parent. index: name -> place in `bodies`.
        coordinates: names of the velocity coordinates. nv, nq: number of velocities and of entries of q.
        parents: (bodies,) place of the parent, -1 for the environment.
        coords: the coordinates of each body as indices. qpos: (nv,) entry of q; of a free joint that of its first.
        nodes: the environment and the tree with sub-systems, a parent before its children.
        loops: the sub-systems that shared coordinates made necessary.
    """

    def __init__(self, bodies: Sequence[Body], coordinates: Sequence[str] | None = None) -> None:
        """Check and number a model.

        Args:
            bodies: each after its parent.
            coordinates: order of the coordinates; default: as the bodies first name them.

        Raises:
            RobotError: a name twice, a parent that does not come before, a loop without a common parent, a free joint
                that shares its coordinates.
        """
        self.bodies = tuple(bodies)
        self.index: dict[str, int] = {}
        self.parents = np.zeros(len(bodies), dtype=np.int64)
        for k, body in enumerate(self.bodies):
            if body.name in self.index or body.name == ENVIRONMENT:
                raise RobotError(f"two bodies are called '{body.name}'")
            if body.parent != ENVIRONMENT and body.parent not in self.index:
                raise UnknownNameError("parent", body.parent, self.index, hint=f"(of body '{body.name}')")
            self.parents[k] = -1 if body.parent == ENVIRONMENT else self.index[body.parent]
            self.index[body.name] = k
        named = list(dict.fromkeys(c for body in self.bodies for c in body.joint.coordinates))
        self.coordinates = tuple(coordinates) if coordinates is not None else tuple(named)
        if double := [c for c in named if self.coordinates.count(c) > 1]:
            raise RobotError(f"coordinate '{double[0]}' is listed twice")
        if sorted(self.coordinates) != sorted(named):
            odd = set(self.coordinates) ^ set(named)
            raise RobotError(f"coordinates that no body uses, or that are missing: {', '.join(sorted(odd)[:4])}")
        self.nv = len(self.coordinates)
        number = {c: k for k, c in enumerate(self.coordinates)}
        self.coords = [tuple(number[c] for c in body.joint.coordinates) for body in self.bodies]
        self._check_joints()
        self._number_configuration()
        self.nodes, self.loops = self._subsystems()

    def _check_joints(self) -> None:
        users: dict[int, int] = {}
        for body, own in zip(self.bodies, self.coords, strict=True):
            if not 1 <= len(own) <= MAX_COORDINATES:
                raise RobotError(f"body '{body.name}': a joint has 1 to {MAX_COORDINATES} coordinates, not {len(own)}")
            for k in own:
                users[k] = users.get(k, 0) + 1
            if body.joint.coupling == IDENTITY and body.joint.motion <= PRISMATIC and len(own) != 1:
                raise RobotError(f"body '{body.name}': one axis with {len(own)} coordinates needs a coupling")
        for body, own in zip(self.bodies, self.coords, strict=True):
            if body.joint.motion >= FREE:
                if any(users[k] > 1 for k in own):
                    raise RobotError(f"body '{body.name}': a free joint cannot share its coordinates")
                if list(own) != list(range(own[0], own[0] + 6)):
                    raise RobotError(f"body '{body.name}': the coordinates of a free joint must follow each other")

    def _number_configuration(self) -> None:
        self.qpos = np.zeros(self.nv, dtype=np.int64)
        free = {own[0]: body for body, own in zip(self.bodies, self.coords, strict=True) if body.joint.motion >= FREE}
        at, k = 0, 0
        self.free: list[tuple[int, int]] = []  # first entry in q and in v of each quaternion joint
        while k < self.nv:
            if k in free and free[k].joint.motion == FREE:
                self.qpos[k : k + 6] = at
                self.free.append((at, k))
                at, k = at + 7, k + 6
            elif k in free:
                self.qpos[k : k + 6] = at + np.arange(6)
                at, k = at + 6, k + 6
            else:
                self.qpos[k] = at
                at, k = at + 1, k + 1
        self.nq = at

    def _subsystems(self) -> tuple[list[Node], tuple[Loop, ...]]:
        names = [b.name for b in self.bodies]
        nodes = pointer_tree(names, self.parents.tolist(), self.coords)
        alone = [
            {node}
            for node, body in zip(nodes[1:], self.bodies, strict=True)
            if body.joint.motion >= FREE or body.joint.coupling != IDENTITY
        ]
        out = with_subsystems(nodes, alone)
        loops = []
        for node in out:
            if len(node.members) > 1:
                if any(self.bodies[self.index[m.name]].joint.motion >= FREE for m in node.members):
                    raise RobotError(f"the loop at '{node.name}' passes through a free joint")
                joined = tuple(self.coordinates[k] for k in node.coordinates)
                loops.append(Loop(tuple(m.name for m in node.members), joined))
        return out, tuple(loops)

    def neutral(self) -> np.ndarray:
        """Configuration (nq,) with every angle 0 and unturned free bodies."""
        q = np.zeros(self.nq)
        for at, _ in self.free:
            q[at + 6] = 1.0
        return q

    def body(self, name: str) -> int:
        """Place of a body by its name.

        Raises:
            UnknownNameError: with the nearest names.
        """
        try:
            return self.index[name]
        except KeyError:
            raise UnknownNameError("body", name, self.index) from None

    @property
    def mass(self) -> float:
        """Of all bodies [kg]."""
        return float(sum(b.inertia.mass for b in self.bodies))
