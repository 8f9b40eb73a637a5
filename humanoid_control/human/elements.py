"""Elements of a person model."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from humanoid_control.human.functions import Function

GROUND = "ground"


@dataclass(frozen=True, eq=False)
class OffsetFrame:
    """Constant frame: R (3, 3), p (3,) [m] in its carrier."""

    R: np.ndarray = field(default_factory=lambda: np.eye(3))
    p: np.ndarray = field(default_factory=lambda: np.zeros(3))

    def __matmul__(self, other: OffsetFrame) -> OffsetFrame:
        return OffsetFrame(self.R @ other.R, self.p + self.R @ other.p)

    def inverse(self) -> OffsetFrame:
        """Return the carrier's pose in this frame."""
        return OffsetFrame(self.R.T, -self.R.T @ self.p)


@dataclass(frozen=True, eq=False)
class PersonBody:
    """Rigid body: mass [kg], centre of mass (3,) [m], inertia (3, 3) about it [kg m^2], body axes."""

    name: str
    mass: float
    com: np.ndarray
    inertia: np.ndarray


@dataclass(frozen=True, eq=False)
class CoordinateAxis:
    """Joint axis: vector (3,), function, coordinate ("": constant)."""

    vector: np.ndarray
    function: Function
    coordinate: str = ""


@dataclass(frozen=True, eq=False)
class AnatomicalJoint:
    """Functional joint between a body and its parent.

    Attributes:
        parent: body name or "ground".
        child: body name.
        P: joint frame in the parent.
        C: joint frame in the child.
        rotations: axes in order.
        translations: axes in order.
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
    """Generalised coordinate [rad or m].

    Attributes:
        rotational: angle, else length.
        default: at rest.
        lower: end of the range.
        upper: end of the range.
        clamped: the range is a bound.
        locked: fixed at its default.
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
    """Marker at place (3,) [m], body axes; anatomical: on a palpated bone."""

    name: str
    body: str
    place: np.ndarray
    anatomical: bool = False


@dataclass(frozen=True)
class Coupling:
    """Coordinate that is a function of another."""

    dependent: str
    independent: str
    function: Function
