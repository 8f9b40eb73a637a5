"""Functional joints: up to three translations and three rotations as functions of shared coordinates.

As `CustomJoint` of OpenSim, body b is placed relative to its parent p by

    X_b = X_p X_P Trans(f_4 a_4 + f_5 a_5 + f_6 a_6) Rot(a_1, f_1) Rot(a_2, f_2) Rot(a_3, f_3) X_C^-1

with constant frames P, C, axes a_k, and functions f_k of one coordinate each, or constants.

```python
import numpy as np

from humanoid_control.multibody import Axis, ForwardDynamics, FunctionalTree, Model, revolute, spline

tree = FunctionalTree()
tree.add("femur", "", rotations=[Axis([0, 0, 1], revolute("hip"))], mass=9.0, com=[0, -0.17, 0], inertia=np.eye(3))
slide = spline("knee", [-2.0, -1.0, -0.3, 0.1], [-0.03, 0.001, 0.004, -0.004])  # [rad] to [m]
tree.add(
    "tibia",
    "femur",
    rotations=[Axis([0, 0, 1], revolute("knee"))],
    translations=[Axis([1, 0, 0], slide), Axis([0, 1, 0], -0.4)],
    mass=3.5,
    com=[0, -0.19, 0],
    inertia=0.05 * np.eye(3),
)
model = Model(tree.bodies)  # two coordinates
dynamics = ForwardDynamics(model, gravity=(0.0, -9.81, 0.0))
print(dynamics(np.array([0.1, -0.6]), np.zeros(2)))
```
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from humanoid_control.errors import RobotError, UnknownNameError
from humanoid_control.multibody.couplings import Vector, checked_vector, unit_vector
from humanoid_control.multibody.layout import FREE, PRISMATIC, REVOLUTE
from humanoid_control.multibody.model import ENVIRONMENT, Body, Inertia, Joint, axis_to_z
from humanoid_control.numerics import rotation_matrix


class Axis(NamedTuple):
    """Axis of a functional joint.

    Attributes:
        direction: (3,), any length.
        moved: joint with coordinate and coupling, or a constant [rad] or [m].
    """

    direction: Vector
    moved: Joint | float


class JointFrame(NamedTuple):
    """Pose of a frame in another: rotation R (3, 3), origin p (3,) [m]."""

    R: np.ndarray
    p: np.ndarray

    def __matmul__(self, other: JointFrame) -> JointFrame:
        return JointFrame(self.R @ other.R, self.p + self.R @ other.p)

    def inverse(self) -> JointFrame:
        return JointFrame(self.R.T, -self.R.T @ self.p)


IDENTITY_FRAME = JointFrame(np.eye(3), np.zeros(3))


class FunctionalTree:
    """Bodies with functional joints, parents first.

    Attributes:
        bodies: for `Model`; the last of a joint's chain has its name and mass.
        frames: body frame relative to the engine's body, by name.
    """

    def __init__(self) -> None:
        self.bodies: list[Body] = []
        self.frames: dict[str, JointFrame] = {ENVIRONMENT: IDENTITY_FRAME}

    def add(
        self,
        name: str,
        parent: str,
        rotations: Sequence[Axis] = (),
        translations: Sequence[Axis] = (),
        *,
        mass: float = 0.0,
        com: Vector = (0.0, 0.0, 0.0),
        inertia: np.ndarray | None = None,
        frames: tuple[JointFrame, JointFrame] = (IDENTITY_FRAME, IDENTITY_FRAME),
    ) -> None:
        """Append a body and its joint.

        Args:
            parent: name.
            rotations: up to three, about successively rotated axes.
            translations: up to three, along axes of the parent's joint frame.
            mass: [kg].
            com: (3,) in the body frame [m].
            inertia: (3, 3) about com [kg m^2].
            frames: P and C.

        Raises:
            UnknownNameError: if the parent is unknown.
            RobotError: if there are too many axes, one is zero, or none moves.
        """
        if parent not in self.frames:
            raise UnknownNameError("parent", parent, self.frames, hint=f"(of body '{name}')")
        if len(rotations) > 3 or len(translations) > 3:
            n = len(rotations), len(translations)
            raise RobotError(f"body '{name}': a joint has up to 3 rotations and 3 translations, not {n[0]} and {n[1]}")
        steps = [(PRISMATIC, axis) for axis in translations] + [(REVOLUTE, axis) for axis in rotations]
        moving = sum(isinstance(axis.moved, Joint) for _, axis in steps)
        if moving == 0:
            raise RobotError(f"body '{name}': none of its axes moves: make it a part of its parent")
        carrier, at, count = parent, self.frames[parent] @ frames[0], 0
        new: list[Body] = []
        for motion, axis in steps:
            direction = unit_vector(axis.direction, f"body '{name}': an axis")
            if not isinstance(axis.moved, Joint):
                at = at @ _constant(motion, direction, float(axis.moved))
                continue
            count += 1
            link = name if count == moving else f"{name}.{count}"
            if axis.moved.motion >= FREE:
                raise RobotError(f"body '{name}': an axis needs a motion along or about it, not a free joint")
            Q = axis_to_z(direction)
            new.append(Body(link, carrier, replace(axis.moved, motion=motion), A=(at.R @ Q).T, r=at.p))
            carrier, at = link, JointFrame(Q.T, np.zeros(3))
        own = at @ frames[1].inverse()
        about = np.zeros((3, 3)) if inertia is None else own.R @ np.asarray(inertia, float) @ own.R.T
        centre = own.R @ checked_vector(com, f"body '{name}': its centre of gravity") + own.p
        self.bodies += [*new[:-1], replace(new[-1], inertia=Inertia.about_com(mass, centre, about))]
        self.frames[name] = own

    def point(self, name: str, r: Vector) -> np.ndarray:
        """Return a point of a body frame relative to the engine's body (3,) [m]."""
        if name not in self.frames:
            raise UnknownNameError("body", name, self.frames)
        own = self.frames[name]
        return own.R @ np.asarray(r, float) + own.p


def _constant(motion: int, direction: np.ndarray, value: float) -> JointFrame:
    if motion == PRISMATIC:
        return JointFrame(np.eye(3), value * direction)
    return JointFrame(rotation_matrix(value * direction), np.zeros(3))
