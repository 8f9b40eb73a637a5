"""Elements of models of a person: frames, bodies, functional joints, coordinates, couplings, markers."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from humanoid_control.human.functions import Function

GROUND = "ground"


@dataclass(frozen=True, eq=False)
class OffsetFrame:
    """A constant frame: rotation R (3, 3) and origin p (3,) [m] in the axes of what it is fixed to."""

    R: np.ndarray = field(default_factory=lambda: np.eye(3))
    p: np.ndarray = field(default_factory=lambda: np.zeros(3))

    def __matmul__(self, other: OffsetFrame) -> OffsetFrame:
        return OffsetFrame(self.R @ other.R, self.p + self.R @ other.p)

    def inverse(self) -> OffsetFrame:
        """Of what it is fixed to, in its own axes."""
        return OffsetFrame(self.R.T, -self.R.T @ self.p)


@dataclass(frozen=True, eq=False)
class PersonBody:
    """A rigid body: mass [kg], centre of mass (3,) [m] in its axes, inertia (3, 3) about that [kg m^2]."""

    name: str
    mass: float
    com: np.ndarray
    inertia: np.ndarray


@dataclass(frozen=True, eq=False)
class CoordinateAxis:
    """One axis of a joint: unit vector (3,), function, and the name of its coordinate ("" for a constant function)."""

    vector: np.ndarray
    function: Function
    coordinate: str = ""


@dataclass(frozen=True, eq=False)
class AnatomicalJoint:
    """A functional joint between a body and its parent.

    Args:
        name: of the joint.
        parent, child: names of bodies; the parent may be "ground".
        P, C: its frames in the parent and in the child.
        rotations, translations: axes, in order; axes that do not move may be left out.
    """

    name: str
    parent: str
    child: str
    P: OffsetFrame = field(default_factory=OffsetFrame)
    C: OffsetFrame = field(default_factory=OffsetFrame)
    rotations: tuple[CoordinateAxis, ...] = ()
    translations: tuple[CoordinateAxis, ...] = ()


@dataclass(frozen=True)
class Coordinate:
    """A generalised coordinate [rad or m].

    Args:
        name: of the coordinate.
        rotational: an angle; else a length.
        default: where a person at rest has it.
        lower, upper: its range.
        clamped: the range is a bound.
        locked: it stays where it is by default.
    """

    name: str
    rotational: bool = True
    default: float = 0.0
    lower: float = -np.inf
    upper: float = np.inf
    clamped: bool = False
    locked: bool = False


@dataclass(frozen=True, eq=False)
class Marker:
    """A marker on a body: place (3,) [m] in its axes. Anatomical ones sit on a bone that was felt, others anywhere."""

    name: str
    body: str
    place: np.ndarray
    anatomical: bool = False


@dataclass(frozen=True)
class Coupling:
    """A coordinate that is a function of another."""

    dependent: str
    independent: str
    function: Function
