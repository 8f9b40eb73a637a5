"""Models: bodies, their joints and inertias, and the sub-systems that shared coordinates make; also from pinocchio."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pinocchio as pin

from humanoid_control.errors import RobotError, UnknownNameError
from humanoid_control.kinematics.forward_kinematics import joint_axis
from humanoid_control.multibody.couplings import (
    COUPLER_SCREW,
    COUPLER_SIZE,
    FOUR_BAR,
    FOUR_BAR_SIZE,
    HINGE_SCREW,
    HINGE_SIZE,
    HINGE_TILT,
    IDENTITY,
    LINEAR,
    LINEAR_SIZE,
    POLYNOMIAL,
    QUADRATIC,
    SPLINE,
    Vector,
    polynomial_parameters,
    spline_parameters,
)
from humanoid_control.multibody.layout import FREE, FREE_EULER, MAX_COORDINATES, PRISMATIC, REVOLUTE
from humanoid_control.multibody.subsystems import TreeNode, pointer_tree, with_subsystems
from humanoid_control.numerics.spline import spline_size

ENVIRONMENT = ""
# Coordinates and parameters of each coupling, the last four behind a gear; its name for messages.
COUPLINGS = {
    LINEAR: ("linear", 1, LINEAR_SIZE),
    HINGE_SCREW: ("hinge screw", 1, LINEAR_SIZE + HINGE_SIZE),
    HINGE_TILT: ("hinge tilt", 1, LINEAR_SIZE + HINGE_SIZE),
    COUPLER_SCREW: ("coupler screw", 2, LINEAR_SIZE + COUPLER_SIZE),
    FOUR_BAR: ("four-bar", 1, LINEAR_SIZE + FOUR_BAR_SIZE),
}


@dataclass(frozen=True)
class Inertia:
    """Mass [kg], centre of gravity (3,) [m] and inertia (3, 3) [kg m^2] about the body's origin O, in its frame."""

    mass: float = 0.0
    com: np.ndarray = field(default_factory=lambda: np.zeros(3))
    about_origin: np.ndarray = field(default_factory=lambda: np.zeros((3, 3)))

    @classmethod
    def about_com(cls, mass: float, com: np.ndarray, inertia: np.ndarray) -> Inertia:
        """From the inertia about the centre of gravity: I_O = I_C - m r~ r~."""
        r = pin.skew(np.asarray(com, float))
        return cls(mass, np.asarray(com, float), np.asarray(inertia, float) - mass * r @ r)


@dataclass(frozen=True)
class Joint:
    """The motion of a body relative to its parent (Schwienbacher 2014, eq. (2.38) to (2.49)).

    The z axis of the joint's frame is the axis. Two bodies may name the same coordinate: that is a small kinematic
    loop, and the model puts them into one sub-system.

    Attributes:
        motion: REVOLUTE, PRISMATIC, FREE (quaternion) or FREE_EULER (angles Z-X-Z).
        coordinates: names of the velocity coordinates.
        coupling: the function by which the angle (or displacement) follows from them; IDENTITY for a joint of its own.
        parameters: of the coupling.
    """

    motion: int
    coordinates: tuple[str, ...]
    coupling: int = IDENTITY
    parameters: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        names, n, got = ", ".join(self.coordinates), len(self.coordinates), len(self.parameters)
        if self.coupling == QUADRATIC:
            kind, coordinates, size = "quadratic", n, 1 + n + n * (n + 1) // 2
        elif self.coupling in (SPLINE, POLYNOMIAL):
            count = int(np.nan_to_num(self.parameters[2])) if got > 2 else 0
            kind, coordinates = "spline" if self.coupling == SPLINE else "polynomial", 1
            size = 1 + LINEAR_SIZE + max(2, spline_size(count) if self.coupling == SPLINE else count)
        elif self.coupling in COUPLINGS:
            kind, coordinates, size = COUPLINGS[self.coupling]
        elif self.coupling == IDENTITY:
            kind, coordinates, size = "identity", n, 0
        else:
            raise RobotError(f"joint of '{names}': no such coupling: {self.coupling}")
        if (n, got) != (coordinates, size):
            need = f"{coordinates} coordinate{'s' * (coordinates > 1)} and {size} parameters"
            raise RobotError(f"joint of '{names}': a {kind} coupling has {need}, not {n} and {got}")
        if not np.isfinite(np.asarray(self.parameters, float)).all():
            raise RobotError(f"joint of '{names}': a parameter of its coupling is not a number")


def revolute(coordinate: str) -> Joint:
    """One angle about z [rad]."""
    return Joint(REVOLUTE, (coordinate,))


def prismatic(coordinate: str) -> Joint:
    """One displacement along z [m]."""
    return Joint(PRISMATIC, (coordinate,))


def rotor(coordinate: str, ratio: float, offset: float = 0.0) -> Joint:
    """A shaft geared to a joint: angle = ratio q + offset (Schwienbacher 2014, eq. (3.1))."""
    return Joint(REVOLUTE, (coordinate,), LINEAR, (float(ratio), float(offset)))


def free(name: str, euler: bool = False) -> Joint:
    """Six coordinates. With a quaternion: q = [x y z, x y z w], v = [linear, angular] in the body's axes."""
    if euler:
        return Joint(FREE_EULER, tuple(f"{name}.{c}" for c in ("phi", "theta", "psi", "x", "y", "z")))
    return Joint(FREE, tuple(f"{name}.{c}" for c in ("vx", "vy", "vz", "wx", "wy", "wz")))


def spline(
    coordinate: str, x: Vector, y: Vector, motion: int = REVOLUTE, ratio: float = 1.0, offset: float = 0.0
) -> Joint:
    """A measured motion: angle = ratio s(q) + offset, s the cubic spline through the points (x, y), x rising.

    Its ends are those of Forsythe, Malcolm and Moler 1977; outside of the points it continues straight.

    Raises:
        RobotError: points that make no spline.
    """
    numbers = (float(ratio), float(offset), *spline_parameters(x, y).tolist())
    return Joint(motion, (coordinate,), SPLINE, numbers)


def polynomial(coordinate: str, coefficients: Vector, motion: int = REVOLUTE) -> Joint:
    """angle = c_0 + c_1 q + c_2 q^2 ... with at least two coefficients, the constant first.

    Raises:
        RobotError: fewer, or one that is not a number.
    """
    numbers = (1.0, 0.0, *polynomial_parameters(coefficients).tolist())
    return Joint(motion, (coordinate,), POLYNOMIAL, numbers)


def quadratic(
    coordinates: Sequence[str], constant: float, gradient: Sequence[float], hessian: np.ndarray, motion: int = REVOLUTE
) -> Joint:
    """Any loop near a posture: angle = c + g^T q + q^T H q / 2."""
    h = np.asarray(hessian, float)
    lower = [float(h[a, b]) for a in range(len(h)) for b in range(a + 1)]
    return Joint(motion, tuple(coordinates), QUADRATIC, (float(constant), *map(float, gradient), *lower))


@dataclass(frozen=True)
class Body:
    """One rigid body.

    Attributes:
        name: unique.
        parent: name of another body, or `ENVIRONMENT`.
        joint: to the parent.
        inertia: about the body's origin.
        A: (3, 3) constant turn A_k'p from the parent's axes to the joint's.
        r: (3,) the joint's origin in the parent [m].
    """

    name: str
    parent: str
    joint: Joint
    inertia: Inertia = field(default_factory=Inertia)
    A: np.ndarray = field(default_factory=lambda: np.eye(3))
    r: np.ndarray = field(default_factory=lambda: np.zeros(3))

    def __post_init__(self) -> None:
        if not np.allclose(self.A @ self.A.T, np.eye(3), atol=1e-9) or np.linalg.det(self.A) < 0:
            raise RobotError(f"body '{self.name}': its turn from the parent is not a rotation")
        about = self.inertia.about_origin
        numbers: dict[str, Any] = {
            "mass": self.inertia.mass,
            "centre of gravity": self.inertia.com,
            "inertia": about,
            "r": self.r,
        }
        for what, value in numbers.items():
            if not np.isfinite(value).all():
                raise RobotError(f"body '{self.name}': its {what} is not a number")
        if np.abs(about - about.T).max() > 1e-9 * np.abs(about).max():
            raise RobotError(f"body '{self.name}': its inertia is not symmetric")
        if self.inertia.mass < 0 or np.linalg.eigvalsh(about).min() < -1e-12:
            raise RobotError(f"body '{self.name}': mass and inertia must not be negative")


# -------- Models


@dataclass(frozen=True)
class Loop:
    """One sub-system that the model needed: its bodies, and the coordinates they share."""

    bodies: tuple[str, ...]
    coordinates: tuple[str, ...]


class Model:
    """Bodies with joints in minimal coordinates, which bodies may share (Schwienbacher 2014, section 2.6).

    Attributes:
        bodies: each after its parent.
        index: name -> place in `bodies`.
        coordinates: names of the velocity coordinates.
        nv: number of velocities.
        nq: number of entries of q.
        parents: (bodies,) place of the parent, -1 for the environment.
        coords: the coordinates of each body as indices.
        qpos: (nv,) entry of q; of a free joint, its first entry.
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

    def _subsystems(self) -> tuple[list[TreeNode], tuple[Loop, ...]]:
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


# -------- From pinocchio

ONE_AXIS = re.compile("(R|P)[XYZ]|(Revolute|Prismatic)Unaligned")  # kinds of joints that move along one fixed axis


@dataclass(frozen=True)
class PinocchioBodies:
    """Bodies named after pinocchio's joints, with every joint's axis turned to z.

    Attributes:
        bodies: one a joint, in pinocchio's order; q and v then have pinocchio's order too.
        turn: name -> (3, 3) from the body's axes to those of pinocchio's joint frame; the origins are the same.
    """

    bodies: tuple[Body, ...]
    turn: dict[str, np.ndarray]


def from_pinocchio(model: pin.Model) -> PinocchioBodies:
    """Bodies of a pinocchio model with revolute, prismatic and free joints.

    Raises:
        RobotError: a joint of another kind.
    """
    turn: dict[str, np.ndarray] = {ENVIRONMENT: np.eye(3)}
    names = [ENVIRONMENT, *list(model.names)[1:]]
    bodies = []
    for j in range(1, model.njoints):
        name, parent = names[j], names[model.parents[j]]
        joint, Q = _joint(model, j)
        X, inertia = model.jointPlacements[j], model.inertias[j]
        turn[name] = Q
        own = Inertia.about_com(inertia.mass, Q.T @ inertia.lever, Q.T @ inertia.inertia @ Q)
        A = Q.T @ X.rotation.T @ turn[parent]
        bodies.append(Body(name, parent, joint, own, A, turn[parent].T @ X.translation))
    del turn[ENVIRONMENT]
    return PinocchioBodies(tuple(bodies), turn)


def _joint(model: pin.Model, j: int) -> tuple[Joint, np.ndarray]:
    """Joint of a body, and the turn (3, 3) from its axes to those of pinocchio's joint j."""
    name, kind = model.names[j], model.joints[j].shortname().removeprefix("JointModel")
    if kind == "FreeFlyer":
        return free(name), np.eye(3)
    if ONE_AXIS.fullmatch(kind):
        axis, slides = joint_axis(model, j)
        return (prismatic if slides else revolute)(name), axis_to_z(axis)
    raise RobotError(f"joint '{name}': {kind} joints cannot be simulated; use revolute, prismatic or fixed ones")


def axis_to_z(axis: np.ndarray) -> np.ndarray:
    """A right-handed frame (columns) whose third axis is the given unit vector."""
    z = axis / np.linalg.norm(axis)
    x = np.cross([0.0, 1.0, 0.0], z) if abs(z[1]) < 0.9 else np.cross([1.0, 0.0, 0.0], z)
    x /= np.linalg.norm(x)
    return np.column_stack([x, np.cross(z, x), z])
