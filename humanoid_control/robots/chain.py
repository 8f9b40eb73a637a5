"""The serial chain of joints between two links of a URDF: constant transforms and axes, read from the XML alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from humanoid_control.errors import UnknownNameError
from humanoid_control.robots.urdf_root import rooted_at
from humanoid_control.robots.urdf_tree import UrdfTree, link_of, placement


@dataclass(frozen=True)
class ChainJoint:
    """One moving joint of a chain.

    Attributes:
        name: of the joint.
        kind: 'revolute' or 'prismatic'.
        X: (4, 4) constant pose of the joint's frame at angle 0 in the frame behind the joint before (or in the base).
        axis: (3,) unit vector in the joint's frame.
    """

    name: str
    kind: str
    X: np.ndarray
    axis: np.ndarray


@dataclass(frozen=True)
class Chain:
    """The moving joints from a base link to a tip link.

    The pose of the tip in the base is X_1 M_1(q_1) X_2 M_2(q_2) ... X_tip, where M_i turns about (or slides along) the
    axis of joint i; fixed joints are contained in the constant X (4, 4).
    """

    base: str
    tip: str
    joints: tuple[ChainJoint, ...]
    X_tip: np.ndarray


def serial_chain(tree: UrdfTree, base: str, tip: str) -> Chain:
    """The chain between two links, wherever the tree is rooted.

    Joints on the way up from the base to a common ancestor are turned round, with the same angle for the same posture.

    Raises:
        UnknownNameError: a link that does not exist.
    """
    for link in (base, tip):
        if link not in tree.links:
            raise UnknownNameError("link", link, tree.links, hint=f"({tree.where})")
    rooted = rooted_at(tree, base)
    above = {link_of(j, "child"): j for j in rooted.joints}
    elements, link = [], tip
    while link != base:
        elements.append(above[link])
        link = link_of(above[link], "parent")
    joints: list[ChainJoint] = []
    X = np.eye(4)
    for element in reversed(elements):
        X = X @ placement(element.find("origin")).homogeneous
        kind = element.get("type", "")
        if kind == "fixed":
            continue
        e = element.find("axis")
        axis = np.array([float(v) for v in (e.get("xyz", "1 0 0") if e is not None else "1 0 0").split()])
        joints.append(ChainJoint(element.get("name", ""), kind, X, axis / np.linalg.norm(axis)))
        X = np.eye(4)
    return Chain(base, tip, tuple(joints), X)
