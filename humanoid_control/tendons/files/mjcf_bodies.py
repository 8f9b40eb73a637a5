"""The bodies of a MuJoCo model as a pinocchio model: joints, their ranges, and where sites and solids are."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import dataclass, field

import numpy as np
import pinocchio as pin

from humanoid_control.errors import RobotError
from humanoid_control.tendons.files.mjcf_text import Angles, Defaults, label, numbers, upright

WORLD = "world"
WIDE = 1.0e3  # [rad, m] stands for "no limit"
REFUSED = ("composite", "flexcomp", "replicate", "attach")


@dataclass
class Bodies:
    """What the bodies of a model hold.

    Attributes:
        model: kinematics only; its links are the bodies, the outermost one is 'world'.
        sites: name to (body, position (3,)). solids: name to (body, kind, position, axis (3,), radius), of spheres and
            cylinders.
    """

    model: pin.Model
    sites: dict[str, tuple[str, np.ndarray]] = field(default_factory=dict)
    solids: dict[str, tuple[str, str, np.ndarray, np.ndarray, float]] = field(default_factory=dict)


class BodyReader:
    """Walks down <worldbody>."""

    def __init__(self, root: ET.Element, where: str) -> None:
        self.where, self.defaults, self.angles = where, Defaults(root, where), Angles(root, where)
        model = pin.Model()
        model.name = root.get("model", "mujoco")
        model.addFrame(pin.Frame(WORLD, 0, 0, pin.SE3.Identity(), pin.FrameType.BODY), False)
        self.bodies = Bodies(model)
        self._unnamed = 0
        for e in root.findall("worldbody"):
            self._inside(e, WORLD, 0, pin.SE3.Identity(), pin.SE3.Identity(), e.get("childclass", "main"))

    def _inside(self, e: ET.Element, body: str, joint: int, X_joint_body: pin.SE3, X: pin.SE3, cls: str) -> None:
        """Read what is in a body or in a <frame> in it.

        Args:
            joint: of the model that carries the body. X_joint_body: pose of the body in that joint's frame.
            X: pose of the frame in the body.
        """
        for child in e:
            where = f"{self.where}: {label(child)}"
            if child.tag in REFUSED:
                raise RobotError(
                    f"{where}: <{child.tag}> is not read; save the compiled model from MuJoCo and use that"
                )
            if child.tag == "site":
                self._site(child, body, X, cls, where)
            elif child.tag == "geom":
                self._solid(child, body, X, cls, where)
            elif child.tag == "frame":
                inner = child.get("childclass", cls)
                self._inside(child, body, joint, X_joint_body, X * self.angles.pose(child.attrib, where), inner)
            elif child.tag == "body":
                self._body(child, joint, X_joint_body * X, cls, where)

    def _body(self, e: ET.Element, parent: int, X_parent: pin.SE3, cls: str, where: str) -> None:
        """Add a body with its joints."""
        name = e.get("name")
        if name is None:
            self._unnamed += 1
            name = f"body_{self._unnamed}"
        model, cls = self.bodies.model, e.get("childclass", cls)
        if model.existFrame(name, pin.FrameType.BODY):
            raise RobotError(f"{where}: the name is used twice")
        joint, X = parent, X_parent * self.angles.pose(e.attrib, where)
        for k, j in enumerate(c for c in e if c.tag in ("joint", "freejoint")):
            joint, X = self._joint(j, joint, X, cls, f"{name}_joint_{k}")
        model.addFrame(pin.Frame(name, joint, 0, X, pin.FrameType.BODY), False)
        self._inside(e, name, joint, X, pin.SE3.Identity(), cls)

    def _joint(self, e: ET.Element, parent: int, X: pin.SE3, cls: str, name: str) -> tuple[int, pin.SE3]:
        """Add a joint; its index, and the pose of the body in its frame."""
        where, model = f"{self.where}: {label(e)}", self.bodies.model
        name = e.get("name", name)
        if model.existJointName(name):
            raise RobotError(f"{where}: the name is used twice")
        values = self.defaults.of(e, cls) if e.tag == "joint" else {"type": "free"}
        kind = values.get("type", "hinge")
        if kind == "free":
            return model.addJoint(parent, pin.JointModelFreeFlyer(), X, name), pin.SE3.Identity()
        anchor = pin.SE3(np.eye(3), numbers(values, "pos", 3, [0, 0, 0], where))
        if kind == "ball":
            return model.addJoint(parent, pin.JointModelSpherical(), X * anchor, name), anchor.inverse()
        if kind not in ("hinge", "slide"):
            raise RobotError(f"{where}: its type is '{kind}'; known: hinge, slide, ball, free")
        axis = numbers(values, "axis", 3, [0, 0, 1], where)
        if not np.linalg.norm(axis) > 1e-9:
            raise RobotError(f"{where}: its axis is zero")
        axis = axis / np.linalg.norm(axis)
        hinge, unit = kind == "hinge", self.angles.unit if kind == "hinge" else 1.0
        at = float(numbers(values, "ref", 1, [0], where)[0]) * unit
        back = pin.SE3(pin.AngleAxis(-at, axis).matrix(), np.zeros(3)) if hinge else pin.SE3(np.eye(3), -at * axis)
        low, high = self._range(values, unit, where)
        make = pin.JointModelRevoluteUnaligned if hinge else pin.JointModelPrismaticUnaligned
        effort, speed = np.array([100.0]), np.array([3.0])
        limits = (effort, speed, np.array([low]), np.array([high]))
        index = model.addJoint(parent, make(*axis), X * anchor * back, name, *limits)
        return index, anchor.inverse()

    def _range(self, values: dict[str, str], unit: float, where: str) -> tuple[float, float]:
        low, high = numbers(values, "range", 2, [0, 0], where) * unit
        limited = values.get("limited", "auto")
        if limited == "false" or (limited == "auto" and not (self.angles.autolimits and "range" in values)):
            return -WIDE, WIDE
        if not low < high:
            raise RobotError(f"{where}: its range {low:g} .. {high:g} is empty")
        return float(low), float(high)

    def _site(self, e: ET.Element, body: str, X: pin.SE3, cls: str, where: str) -> None:
        values = self.defaults.of(e, cls)
        ends = numbers(values, "fromto", 6, None, where) if "fromto" in values else None
        at = numbers(values, "pos", 3, [0, 0, 0], where) if ends is None else (ends[:3] + ends[3:]) / 2
        if name := e.get("name"):
            if name in self.bodies.sites:
                raise RobotError(f"{where}: the name is used twice")
            self.bodies.sites[name] = (body, X.act(at))

    def _solid(self, e: ET.Element, body: str, X: pin.SE3, cls: str, where: str) -> None:
        values = self.defaults.of(e, cls)
        kind, name = values.get("type", "sphere"), e.get("name")
        if name is None or kind not in ("sphere", "cylinder"):
            return
        if "fromto" in values:
            ends = numbers(values, "fromto", 6, None, where)
            pose = pin.SE3(upright(ends[3:] - ends[:3]), (ends[:3] + ends[3:]) / 2)
        else:
            pose = self.angles.pose(values, where)
        pose, radius = X * pose, float(numbers(values, "size", 1, None, where)[0])
        self.bodies.solids[name] = (body, kind, pose.translation.copy(), pose.rotation[:, 2].copy(), radius)
