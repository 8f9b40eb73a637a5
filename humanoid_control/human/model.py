"""Model of a person: rigid bodies, functional joints, markers and coordinates.

A joint moves its body along six axes, each by a function of one coordinate (OpenSim's `CustomJoint`; Seth et al. 2018):

    X_b = X_p X_P [ Trans(f4 a4 + f5 a5 + f6 a6) Rot(a1, f1) Rot(a2, f2) Rot(a3, f3) ] X_C^-1

Translation axes are fixed in frame P of the parent; rotations are body-fixed. Axes and joints may share a coordinate,
and a coordinate may be a function of another.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from humanoid_control.compiled.packed import Packed
from humanoid_control.errors import RobotError, SizeError, UnknownNameError
from humanoid_control.human.elements import (
    GROUND,
    AnatomicalJoint,
    Coordinate,
    Coupling,
    Marker,
    OffsetFrame,
    PersonBody,
)
from humanoid_control.human.kinematics import Chain, body_velocities, lay_out, marker_positions, place_clip


@dataclass(frozen=True, eq=False)
class Person:
    """Model of a person; bodies and joints are sorted parents first.

    Attributes:
        gravity: (3,) [m/s^2], ground axes.
        notes: omissions and assumptions of the reader.
        sizes: body -> size group of a calibration; empty: from markers.

    Raises:
        RobotError: if names, tree, ranges, masses or inertias are invalid.
    """

    name: str
    bodies: tuple[PersonBody, ...]
    joints: tuple[AnatomicalJoint, ...]
    all_coordinates: tuple[Coordinate, ...]
    markers: tuple[Marker, ...] = ()
    couplings: tuple[Coupling, ...] = ()
    gravity: np.ndarray = field(default_factory=lambda: np.array([0.0, -9.80665, 0.0]))
    notes: tuple[str, ...] = ()
    sizes: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _check(self)
        order = _parents_first(self)
        by_name, joint_of = {b.name: b for b in self.bodies}, {j.child: j for j in self.joints}
        object.__setattr__(self, "bodies", tuple(by_name[name] for name in order))
        object.__setattr__(self, "joints", tuple(joint_of[name] for name in order))

    # -------- Coordinates

    @cached_property
    def coordinates(self) -> tuple[Coordinate, ...]:
        """Independent coordinates, in the order of q."""
        dependent = {c.dependent for c in self.couplings}
        return tuple(c for c in self.all_coordinates if c.name not in dependent)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of `coordinates`."""
        return tuple(c.name for c in self.coordinates)

    @property
    def n(self) -> int:
        """Number of independent coordinates."""
        return len(self.coordinates)

    @cached_property
    def rest(self) -> np.ndarray:
        """(n,) defaults [rad or m]."""
        return np.array([c.default for c in self.coordinates])

    @cached_property
    def rotational(self) -> np.ndarray:
        """(n,) True for angles."""
        return np.array([c.rotational for c in self.coordinates], dtype=bool)

    def index(self, coordinate: str) -> int:
        """Return the index in q, or raise UnknownNameError."""
        try:
            return self.names.index(coordinate)
        except ValueError:
            raise UnknownNameError("coordinate", coordinate, self.names) from None

    def with_dependent(self, q: np.ndarray) -> dict[str, np.ndarray]:
        """Return coordinate -> values (...) from q (..., n)."""
        q = np.asarray(q, dtype=float)
        out = {name: q[..., k] for k, name in enumerate(self.names)}
        functions = {c.dependent: c for c in self.couplings}
        for coordinate in self.all_coordinates:
            if coordinate.name in functions:
                coupling = functions[coordinate.name]
                out[coordinate.name] = coupling.function(out[coupling.independent])
        return {c.name: out[c.name] for c in self.all_coordinates}

    # -------- Poses

    @cached_property
    def chain(self) -> Packed[Chain]:
        """Flat arrays for kernels."""
        return lay_out(self.bodies, self.joints, self.names, self.couplings, self.gravity)

    @property
    def mass(self) -> float:
        """Mass of all bodies [kg]."""
        return sum(b.mass for b in self.bodies)

    @cached_property
    def body_names(self) -> tuple[str, ...]:
        """Names of the bodies, parents first."""
        return tuple(b.name for b in self.bodies)

    def body_index(self, body: str) -> int:
        """Return the index, or raise UnknownNameError."""
        try:
            return self.body_names.index(body)
        except ValueError:
            raise UnknownNameError("body", body, self.body_names) from None

    def body_poses(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return rotations (T, bodies, 3, 3) and origins (T, bodies, 3) [m], ground frame."""
        return place_clip(self.chain.table, self.check(q))

    def body_twists(self, q: np.ndarray, qd: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return angular [rad/s] and linear velocities [m/s] (T, bodies, 3), ground frame."""
        return body_velocities(self.chain.table, self.check(q), self.check(qd, "qd"))

    def marker_positions(self, q: np.ndarray) -> np.ndarray:
        """Return (T, markers, 3) [m], ground frame."""
        bodies = np.array([self.body_index(m.body) for m in self.markers], dtype=np.int64)
        places = np.array([m.place for m in self.markers], dtype=float).reshape(-1, 3)
        return marker_positions(self.chain.table, self.check(q), bodies, places)

    def check(self, q: np.ndarray, what: str = "q") -> np.ndarray:
        """Return (T, n) or (n,) as contiguous (T, n), or raise SizeError."""
        q = np.ascontiguousarray(np.atleast_2d(np.asarray(q, dtype=float)))
        if q.ndim != 2 or q.shape[1] != self.n:
            raise SizeError(f"{what} must be (frames, {self.n} coordinates of {self.name}), got {q.shape}")
        return q

    # -------- Copies

    def with_markers(self, markers: Sequence[Marker]) -> Person:
        """Return a copy with other markers."""
        return replace(self, markers=tuple(markers))

    def with_mass(self, mass: float) -> Person:
        """Return a copy with another total mass > 0 [kg]."""
        if not (np.isfinite(mass) and mass > 0 and self.mass > 0):
            raise RobotError(f"{self.name}: cannot have a mass of {mass} kg: give a positive one")
        s = mass / self.mass
        return replace(self, bodies=tuple(PersonBody(b.name, s * b.mass, b.com, s * b.inertia) for b in self.bodies))

    def scaled(self, factors: Mapping[str, float]) -> Person:
        """Return a copy with uniformly scaled bodies; masses stay, inertias grow with s^2.

        Args:
            factors: body -> factor > 0; default: 1.
        """
        for name, s in factors.items():
            self.body_index(name)
            if not (np.isfinite(s) and s > 0):
                raise RobotError(f"{self.name}: '{name}' cannot be scaled by {s}: give a positive factor")
        s_of = {name: float(factors.get(name, 1.0)) for name in self.body_names} | {GROUND: 1.0}
        bodies = [PersonBody(b.name, b.mass, s_of[b.name] * b.com, s_of[b.name] ** 2 * b.inertia) for b in self.bodies]
        markers = [replace(m, place=s_of[m.body] * np.asarray(m.place)) for m in self.markers]
        joints = [_scaled_joint(j, s_of[j.parent], s_of[j.child], self) for j in self.joints]
        return replace(self, bodies=tuple(bodies), joints=tuple(joints), markers=tuple(markers))


def _scaled_joint(joint: AnatomicalJoint, s_parent: float, s_child: float, person: Person) -> AnatomicalJoint:
    """Scale a joint; translations along length coordinates stay."""
    lengths = {c.name for c in person.all_coordinates if not c.rotational}
    translations = tuple(
        a if a.coordinate in lengths else replace(a, function=a.function.scaled(s_parent)) for a in joint.translations
    )
    P, C = OffsetFrame(joint.P.R, s_parent * joint.P.p), OffsetFrame(joint.C.R, s_child * joint.C.p)
    return replace(joint, P=P, C=C, translations=translations)


def _check(person: Person) -> None:
    """Raise RobotError for inconsistent names, ranges or inertias."""
    where = person.name
    named: dict[str, Sequence[str]] = {
        "body": [b.name for b in person.bodies],
        "joint of body": [j.child for j in person.joints],
        "coordinate": [c.name for c in person.all_coordinates],
        "marker": [m.name for m in person.markers],
        "coupling of": [c.dependent for c in person.couplings],
    }
    for kind, names in named.items():
        twice = [name for name, count in Counter(names).items() if count > 1]
        if twice:
            raise RobotError(f"{where}: the {kind} '{twice[0]}' occurs more than once: keep one of them")
    bodies, coordinates = set(named["body"]), set(named["coordinate"])
    if not bodies:
        raise RobotError(f"{where}: contains no bodies: give a model with bodies and joints")
    for joint in person.joints:
        for name in (joint.parent, joint.child):
            if name not in bodies and name != GROUND:
                raise RobotError(f"{where}: joint '{joint.name}' names the body '{name}', which does not exist")
        for axis in (*joint.rotations, *joint.translations):
            if axis.coordinate not in coordinates and not (axis.coordinate == "" and axis.function.constant):
                raise RobotError(f"{where}: joint '{joint.name}' moves with '{axis.coordinate}', which does not exist")
    for marker in person.markers:
        if marker.body not in bodies:
            raise RobotError(f"{where}: marker '{marker.name}' is on '{marker.body}', which does not exist")
        if not np.isfinite(marker.place).all():
            raise RobotError(f"{where}: marker '{marker.name}' has no finite position")
    for coordinate in person.all_coordinates:
        if not coordinate.lower <= coordinate.upper:
            lower, upper = coordinate.lower, coordinate.upper
            raise RobotError(f"{where}: the range of '{coordinate.name}' is {lower} to {upper}: swap them")
        if not np.isfinite(coordinate.default):
            raise RobotError(f"{where}: the default of '{coordinate.name}' is not a number")
    _check_couplings(person, coordinates)
    for body in person.bodies:
        finite = np.isfinite(body.com).all() and np.isfinite(body.inertia).all() and np.isfinite(body.mass)
        if not finite or body.mass < 0:
            raise RobotError(f"{where}: body '{body.name}' has a mass of {body.mass} kg, or a non-numeric inertia")


def _check_couplings(person: Person, coordinates: set[str]) -> None:
    dependent = {c.dependent for c in person.couplings}
    for coupling in person.couplings:
        for name in (coupling.dependent, coupling.independent):
            if name not in coordinates:
                raise RobotError(f"{person.name}: a coupling names the coordinate '{name}', which does not exist")
        if coupling.independent in dependent:
            raise RobotError(
                f"{person.name}: '{coupling.dependent}' follows '{coupling.independent}', which follows another: "
                "let both follow the same"
            )


def _parents_first(person: Person) -> list[str]:
    """Return the body names, each after its parent."""
    parent = {j.child: j.parent for j in person.joints}
    lonely = [b.name for b in person.bodies if b.name not in parent]
    if lonely:
        raise RobotError(f"{person.name}: body '{lonely[0]}' has no joint: join it to its parent, or to the ground")
    order: list[str] = []
    waiting = [b.name for b in person.bodies]
    while waiting:
        ready = [name for name in waiting if parent[name] == GROUND or parent[name] in order]
        if not ready:
            raise RobotError(f"{person.name}: the joints of '{waiting[0]}' form a loop: a body has one parent")
        order.append(ready[0])
        waiting.remove(ready[0])
    return order
