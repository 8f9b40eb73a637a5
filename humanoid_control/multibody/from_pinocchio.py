"""The bodies of a pinocchio model, with every joint's axis turned to z."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from humanoid_control.errors import RobotError
from humanoid_control.multibody.body import ENVIRONMENT, Body, Inertia, Joint, free, prismatic, revolute

AXES = {"X": np.array([1.0, 0.0, 0.0]), "Y": np.array([0.0, 1.0, 0.0]), "Z": np.array([0.0, 0.0, 1.0])}


@dataclass(frozen=True)
class Tree:
    """Bodies named after pinocchio's joints, and how their frames are turned.

    Attributes:
        bodies: one a joint, in pinocchio's order; q and v then have pinocchio's order too.
        turn: name -> (3, 3) from the body's axes to those of pinocchio's joint frame; the origins are the same.
    """

    bodies: tuple[Body, ...]
    turn: dict[str, np.ndarray]


def bodies_of(model: pin.Model) -> Tree:
    """The tree of a pinocchio model with revolute, prismatic and free joints.

    Raises:
        RobotError: a joint of another kind.
    """
    turn: dict[str, np.ndarray] = {ENVIRONMENT: np.eye(3)}
    names = [ENVIRONMENT, *list(model.names)[1:]]
    bodies = []
    for j in range(1, model.njoints):
        name, parent = names[j], names[model.parents[j]]
        joint, Q = _joint(model.joints[j].shortname(), model.joints[j], name)
        X, inertia = model.jointPlacements[j], model.inertias[j]
        turn[name] = Q
        own = Inertia.about_com(inertia.mass, Q.T @ inertia.lever, Q.T @ inertia.inertia @ Q)
        A = Q.T @ X.rotation.T @ turn[parent]
        bodies.append(Body(name, parent, joint, own, A, turn[parent].T @ X.translation))
    del turn[ENVIRONMENT]
    return Tree(tuple(bodies), turn)


def _joint(kind: str, joint: pin.JointModel, name: str) -> tuple[Joint, np.ndarray]:
    kind = kind.removeprefix("JointModel")
    if kind == "FreeFlyer":
        return free(name), np.eye(3)
    for prefix, make in (("R", revolute), ("P", prismatic)):
        if kind in (f"{prefix}{a}" for a in AXES):
            return make(name), axis_to_z(AXES[kind[-1]])
    if kind in ("RevoluteUnaligned", "PrismaticUnaligned"):
        make = revolute if kind.startswith("Revolute") else prismatic
        return make(name), axis_to_z(np.asarray(joint.extract().axis if hasattr(joint, "extract") else joint.axis))
    raise RobotError(f"joint '{name}': {kind} joints cannot be simulated; use revolute, prismatic or fixed ones")


def axis_to_z(axis: np.ndarray) -> np.ndarray:
    """A right-handed frame (columns) whose third axis is the given unit vector."""
    z = axis / np.linalg.norm(axis)
    x = np.cross([0.0, 1.0, 0.0], z) if abs(z[1]) < 0.9 else np.cross([1.0, 0.0, 0.0], z)
    x /= np.linalg.norm(x)
    return np.column_stack([x, np.cross(z, x), z])
