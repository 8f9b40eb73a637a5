"""Models: bodies, joints, inertias and automatic sub-systems; import from pinocchio."""

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
# Name, coordinates and parameters of each coupling; the last four follow a gear.
COUPLINGS = {
    LINEAR: ("linear", 1, LINEAR_SIZE),
    HINGE_SCREW: ("hinge screw", 1, LINEAR_SIZE + HINGE_SIZE),
    HINGE_TILT: ("hinge tilt", 1, LINEAR_SIZE + HINGE_SIZE),
    COUPLER_SCREW: ("coupler screw", 2, LINEAR_SIZE + COUPLER_SIZE),
    FOUR_BAR: ("four-bar", 1, LINEAR_SIZE + FOUR_BAR_SIZE),
}


@dataclass(frozen=True)
class Inertia:
    """Mass [kg], centre of gravity (3,) [m], inertia (3, 3) about the origin [kg m^2], in body axes."""

    mass: float = 0.0
    com: np.ndarray = field(default_factory=lambda: np.zeros(3))
    about_origin: np.ndarray = field(default_factory=lambda: np.zeros((3, 3)))

    @classmethod
    def about_com(cls, mass: float, com: np.ndarray, inertia: np.ndarray) -> Inertia:
        """Convert from the inertia about the centre of gravity: I_O = I_C - m r~ r~."""
        r = pin.skew(np.asarray(com, float))
        return cls(mass, np.asarray(com, float), np.asarray(inertia, float) - mass * r @ r)


@dataclass(frozen=True)
class Joint:
    """Motion of a body relative to its parent, about or along z (Schwienbacher 2014, eq. (2.38) to (2.49)).

    Bodies that name the same coordinate form a small kinematic loop.

    Attributes:
        motion: REVOLUTE, PRISMATIC, FREE (quaternion) or FREE_EULER (Z-X-Z).
        coordinates: velocity coordinates.
        coupling: function from coordinates to the angle.
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
            raise RobotError(f"joint of '{names}': unknown coupling: {self.coupling}")
        if (n, got) != (coordinates, size):
            need = f"{coordinates} coordinate{'s' * (coordinates > 1)} and {size} parameters"
            raise RobotError(f"joint of '{names}': a {kind} coupling has {need}, not {n} and {got}")
        if not np.isfinite(np.asarray(self.parameters, float)).all():
            raise RobotError(f"joint of '{names}': a parameter of its coupling is not a number")


def revolute(coordinate: str) -> Joint:
    """Return a joint about z [rad]."""
    return Joint(REVOLUTE, (coordinate,))


def prismatic(coordinate: str) -> Joint:
    """Return a joint along z [m]."""
    return Joint(PRISMATIC, (coordinate,))


def rotor(coordinate: str, ratio: float, offset: float = 0.0) -> Joint:
    """Return a geared shaft: angle = ratio q + offset (Schwienbacher 2014, eq. (3.1))."""
    return Joint(REVOLUTE, (coordinate,), LINEAR, (float(ratio), float(offset)))


def free(name: str, euler: bool = False) -> Joint:
    """Return a joint with six coordinates; quaternion: q = [x y z, x y z w], v = [linear, angular] in body axes."""
    if euler:
        return Joint(FREE_EULER, tuple(f"{name}.{c}" for c in ("phi", "theta", "psi", "x", "y", "z")))
    return Joint(FREE, tuple(f"{name}.{c}" for c in ("vx", "vy", "vz", "wx", "wy", "wz")))


def spline(
    coordinate: str, x: Vector, y: Vector, motion: int = REVOLUTE, ratio: float = 1.0, offset: float = 0.0
) -> Joint:
    """Return a measured motion: angle = ratio s(q) + offset, s a cubic spline through (x, y), x increasing.

    End conditions of Forsythe, Malcolm and Moler 1977; linear outside.
    """
    numbers = (float(ratio), float(offset), *spline_parameters(x, y).tolist())
    return Joint(motion, (coordinate,), SPLINE, numbers)


def polynomial(coordinate: str, coefficients: Vector, motion: int = REVOLUTE) -> Joint:
    """Return a joint with angle = c_0 + c_1 q + c_2 q^2 ..., at least two coefficients."""
    numbers = (1.0, 0.0, *polynomial_parameters(coefficients).tolist())
    return Joint(motion, (coordinate,), POLYNOMIAL, numbers)


def quadratic(
    coordinates: Sequence[str], constant: float, gradient: Sequence[float], hessian: np.ndarray, motion: int = REVOLUTE
) -> Joint:
    """Return a joint with angle = c + g^T q + q^T H q / 2: any loop near a posture."""
    h = np.asarray(hessian, float)
    lower = [float(h[a, b]) for a in range(len(h)) for b in range(a + 1)]
    return Joint(motion, tuple(coordinates), QUADRATIC, (float(constant), *map(float, gradient), *lower))


@dataclass(frozen=True)
class Body:
    """Rigid body.

    Attributes:
        name: unique.
        parent: body name or `ENVIRONMENT`.
        joint: to the parent.
        inertia: about the body origin.
        A: (3, 3) constant rotation A_k'p from parent axes to joint axes.
        r: (3,) joint origin in the parent [m].
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
    """Sub-system: bodies and their shared coordinates."""

    bodies: tuple[str, ...]
    coordinates: tuple[str, ...]


class Model:
    """Bodies in minimal coordinates, which bodies may share (Schwienbacher 2014, section 2.6).

    Attributes:
        bodies: parents first.
        index: place in `bodies` by name.
        coordinates: (nv,) names.
        nv: velocities.
        nq: size of q.
        parents: (bodies,), -1 for the environment.
        coords: coordinates of each body.
        qpos: (nv,) entry of q; for a free joint its first.
        nodes: tree with sub-systems, parents first.
        loops: sub-systems.
    """

    def __init__(self, bodies: Sequence[Body], coordinates: Sequence[str] | None = None) -> None:
        """Create a model; `coordinates` default to their order of first use.

        Raises:
            RobotError: if names repeat, a loop has no common parent, or a free joint shares coordinates.
            UnknownNameError: if a parent does not come before its child.
        """
        self.bodies = tuple(bodies)
        self.index: dict[str, int] = {}
        self.parents = np.zeros(len(bodies), dtype=np.int64)
        for k, body in enumerate(self.bodies):
            if body.name in self.index or body.name == ENVIRONMENT:
                raise RobotError(f"two bodies are named '{body.name}'")
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
        """Return the configuration (nq,) with zero angles and unrotated free bodies."""
        q = np.zeros(self.nq)
        for at, _ in self.free:
            q[at + 6] = 1.0
        return q

    def body(self, name: str) -> int:
        """Return the index of a body.

        Raises:
            UnknownNameError: if it is unknown.
        """
        try:
            return self.index[name]
        except KeyError:
            raise UnknownNameError("body", name, self.index) from None

    @property
    def mass(self) -> float:
        """Total mass [kg]."""
        return float(sum(b.inertia.mass for b in self.bodies))


# -------- From pinocchio

ONE_AXIS = re.compile("(R|P)[XYZ]|(Revolute|Prismatic)Unaligned")  # joints along one fixed axis


@dataclass(frozen=True)
class PinocchioBodies:
    """Bodies of pinocchio joints, with joint axes along z.

    Attributes:
        bodies: in pinocchio's order.
        turn: rotation (3, 3) from body axes to pinocchio's joint frame, by name.
    """

    bodies: tuple[Body, ...]
    turn: dict[str, np.ndarray]


def from_pinocchio(model: pin.Model) -> PinocchioBodies:
    """Return the bodies of a pinocchio model with revolute, prismatic and free joints.

    Raises:
        RobotError: if a joint is of another kind.
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
    name, kind = model.names[j], model.joints[j].shortname().removeprefix("JointModel")
    if kind == "FreeFlyer":
        return free(name), np.eye(3)
    if ONE_AXIS.fullmatch(kind):
        axis, slides = joint_axis(model, j)
        return (prismatic if slides else revolute)(name), axis_to_z(axis)
    raise RobotError(f"joint '{name}': {kind} joints cannot be simulated; use revolute, prismatic or fixed ones")


def axis_to_z(axis: np.ndarray) -> np.ndarray:
    """Return a right-handed frame (columns) with the given third axis."""
    z = axis / np.linalg.norm(axis)
    x = np.cross([0.0, 1.0, 0.0], z) if abs(z[1]) < 0.9 else np.cross([1.0, 0.0, 0.0], z)
    x /= np.linalg.norm(x)
    return np.column_stack([x, np.cross(z, x), z])
