"""A body and its joint, as a model is written down."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from humanoid_control.errors import RobotError
from humanoid_control.multibody.angle import (
    COUPLER_SCREW,
    FOUR_BAR,
    HINGE_SCREW,
    HINGE_TILT,
    IDENTITY,
    LINEAR,
    QUADRATIC,
)
from humanoid_control.multibody.layout import FREE, FREE_EULER, PRISMATIC, REVOLUTE
from humanoid_control.multibody.lever_couplings import FOUR_BAR_SIZE, LINEAR_SIZE
from humanoid_control.multibody.screw_couplings import COUPLER_SIZE, HINGE_SIZE

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
        x, y, z = com
        r = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
        return cls(mass, np.asarray(com, float), np.asarray(inertia, float) - mass * r @ r)


@dataclass(frozen=True)
class Joint:
    """How a body moves relative to its parent: eq. (2.38)-(2.49).

    The z axis of the joint's frame is the axis. Two bodies may name the same coordinate: that is a small kinematic
    loop, and the model puts them into one sub-system.

    Attributes:
        motion: REVOLUTE, PRISMATIC, FREE (quaternion) or FREE_EULER (angles Z-X-Z).
        coordinates: names of the velocity coordinates.
        coupling: how the angle (or displacement) follows from them; IDENTITY for a joint of its own.
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
    """A shaft geared to a joint: angle = ratio q + offset, eq. (3.1)."""
    return Joint(REVOLUTE, (coordinate,), LINEAR, (float(ratio), float(offset)))


def free(name: str, euler: bool = False) -> Joint:
    """Six coordinates. With a quaternion: q = [x y z, x y z w], v = [linear, angular] in the body's axes."""
    if euler:
        return Joint(FREE_EULER, tuple(f"{name}.{c}" for c in ("phi", "theta", "psi", "x", "y", "z")))
    return Joint(FREE, tuple(f"{name}.{c}" for c in ("vx", "vy", "vz", "wx", "wy", "wz")))


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
        name: unique. parent: name of another body, or `ENVIRONMENT`.
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
