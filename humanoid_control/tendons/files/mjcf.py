"""A MuJoCo model file as a tree of XML: files it includes, default classes, numbers, poses.

Also here:

* The bodies of a MuJoCo model as a pinocchio model: joints, their ranges, and where sites and solids are.
* A mechanism with its tendons, wherever they were read from.
* Spatial tendons of MuJoCo models: <tendon><spatial> over sites, spheres, cylinders and pulleys.
"""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pinocchio as pin

from humanoid_control.errors import HumanoidError, RobotError, UnknownNameError
from humanoid_control.tendons.routing.geometry import TendonGeometry
from humanoid_control.tendons.tendon import Point, Pulley, Tendon, TendonSet, Vec3, Wrap

# -------- A MuJoCo model file as a tree of XML: files it includes, default classes, numbers, poses

DEEPEST = 20  # files that include each other


def read_xml(path: Path, what: str) -> ET.Element:
    """The outermost element of an XML file.

    Raises:
        RobotError: not readable, not XML.
    """
    try:
        return ET.fromstring(path.read_text())
    except (OSError, UnicodeDecodeError) as e:
        raise RobotError(f"{path}: cannot be read as {what}: {e.__class__.__name__}") from None
    except ET.ParseError as e:
        raise RobotError(f"{path}: not {what}, XML error: {e}") from None


def read_mjcf_tree(path: Path) -> ET.Element:
    """The <mujoco> element, with the content of included files in the place of <include>.

    Raises:
        RobotError: a file is not readable, not a MuJoCo model, or includes itself.
    """
    return _included(path, path.parent, 0)


def _included(path: Path, folder: Path, depth: int) -> ET.Element:
    if depth > DEEPEST:
        raise RobotError(f"{path}: includes itself")
    root = read_xml(path, "a MuJoCo model")
    if depth == 0 and root.tag != "mujoco":
        raise RobotError(f"{path}: not a MuJoCo model: the outermost element is <{root.tag}>, expected <mujoco>")
    for parent in list(root.iter()):
        for e in list(parent):
            if e.tag == "include":
                at = list(parent).index(e)
                parent.remove(e)
                for k, child in enumerate(_included(folder / e.get("file", ""), folder, depth + 1)):
                    parent.insert(at + k, child)
    return root


class Defaults:
    """The default classes of a model: attributes that an element has when it does not say otherwise."""

    def __init__(self, root: ET.Element, where: str) -> None:
        self.where = where
        self._classes: dict[str, dict[str, dict[str, str]]] = {"main": {}}
        for e in root.findall("default"):
            self._read(e, e.get("class", "main"), {})

    def _read(self, e: ET.Element, name: str, above: dict[str, dict[str, str]]) -> None:
        own = {tag: dict(values) for tag, values in above.items()}
        for tag, values in self._classes.get(name, {}).items():
            own.setdefault(tag, {}).update(values)
        for child in e:
            if child.tag != "default":
                own.setdefault(child.tag, {}).update(child.attrib)
        self._classes[name] = own
        for child in e.findall("default"):
            self._read(child, child.get("class", ""), own)

    def of(self, e: ET.Element, childclass: str) -> dict[str, str]:
        """All attributes of an element: its own over those of its class.

        Raises:
            UnknownNameError: no such class.
        """
        name = e.get("class", childclass)
        if name not in self._classes:
            raise UnknownNameError("default class", name, self._classes, hint=f"({label(e)} in {self.where})")
        return {**self._classes[name].get(e.tag, {}), **e.attrib}


def label(e: ET.Element) -> str:
    """How an element is called in a message."""
    return f"{e.tag} '{e.get('name')}'" if e.get("name") else f"<{e.tag}> without a name"


def numbers(values: dict[str, str], key: str, count: int, default: list[float] | None, where: str) -> np.ndarray:
    """`count` finite numbers of an attribute; more are cut off.

    Raises:
        RobotError: missing without a default, too few, not finite numbers.
    """
    if key not in values:
        if default is None:
            raise RobotError(f"{where}: lacks the attribute '{key}'")
        return np.array(default, dtype=float)
    try:
        out = np.array([float(v) for v in values[key].split()], dtype=float)
    except ValueError:
        out = np.array([np.nan])
    if len(out) < count or not np.isfinite(out).all():
        raise RobotError(f"{where}: '{key}' must be {count} finite number(s), got '{values[key]}'")
    return out[:count]


class Angles:
    """How a model writes orientations: degrees or radians, and in what order Euler angles follow."""

    def __init__(self, root: ET.Element, where: str) -> None:
        compiler: dict[str, str] = {}
        for e in root.findall("compiler"):
            compiler.update(e.attrib)
        if compiler.get("coordinate", "local") != "local":
            raise RobotError(f"{where}: models with global coordinates are not read; convert it with MuJoCo 2.2 first")
        self.unit = 1.0 if compiler.get("angle", "degree") == "radian" else math.pi / 180
        self.sequence = compiler.get("eulerseq", "xyz")
        self.autolimits = compiler.get("autolimits", "true") == "true"

    def rotation(self, values: dict[str, str], where: str) -> np.ndarray:
        """The rotation (3, 3) that an element's quat, axisangle, euler, xyaxes or zaxis tells."""
        readers: dict[str, tuple[int, Callable[[np.ndarray], np.ndarray]]] = {
            "quat": (4, lambda v: pin.Quaternion(*(v / np.linalg.norm(v))).matrix()),
            "axisangle": (4, lambda v: pin.AngleAxis(v[3] * self.unit, v[:3] / np.linalg.norm(v[:3])).matrix()),
            "euler": (3, lambda v: self._euler(v * self.unit)),
            "xyaxes": (6, _from_xy),
            "zaxis": (3, lambda v: upright(v)),
        }
        for key, (count, reader) in readers.items():
            if key in values:
                v = numbers(values, key, count, None, where)
                if not np.linalg.norm(v[:3] if count != 4 or key == "axisangle" else v) > 1e-9 and key != "euler":
                    raise RobotError(f"{where}: '{key}' is zero")
                return reader(v)
        return np.eye(3)

    def pose(self, values: dict[str, str], where: str) -> pin.SE3:
        """The pose that an element's pos and orientation tell."""
        return pin.SE3(self.rotation(values, where), numbers(values, "pos", 3, [0, 0, 0], where))

    def _euler(self, v: np.ndarray) -> np.ndarray:
        R = np.eye(3)
        for letter, angle in zip(self.sequence, v, strict=False):
            turn = pin.AngleAxis(angle, np.eye(3)["xyz".index(letter.lower())]).matrix()
            R = R @ turn if letter.islower() else turn @ R
        return R


def upright(z: np.ndarray) -> np.ndarray:
    """The least rotation (3, 3) that brings the z axis into a direction."""
    return pin.Quaternion.FromTwoVectors(np.eye(3)[2], z / np.linalg.norm(z)).matrix()


def _from_xy(v: np.ndarray) -> np.ndarray:
    x = v[:3] / np.linalg.norm(v[:3])
    y = v[3:] - (v[3:] @ x) * x
    y /= np.linalg.norm(y)
    return np.column_stack([x, y, np.cross(x, y)])


# -------- The bodies of a MuJoCo model as a pinocchio model: joints, their ranges, and where sites and solids are

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


# -------- A mechanism with its tendons, wherever they were read from


@dataclass(frozen=True)
class TendonModel:
    """A pinocchio model (of a foreign file: kinematics only) and the tendons on its links."""

    name: str
    model: pin.Model
    tendons: TendonSet

    def geometry(self, joints: Iterable[str] | None = None) -> TendonGeometry:
        """Lengths and moment arms over some joints; default: all that the tendons cross."""
        return TendonGeometry(self.model, self.tendons, joints)


# -------- Spatial tendons of MuJoCo models: <tendon><spatial> over sites, spheres, cylinders and pulleys


def read_mjcf(path: str | Path) -> TendonModel:
    """The bodies and the spatial tendons of a MuJoCo model (MJCF).

    Joint values are MuJoCo's `qpos` of hinges and slides, lengths are its `ten_length`. Fixed tendons, which have no
    path, are passed over; masses, contacts and actuators are not read.

    Raises:
        RobotError, UnknownNameError: one line that names the file and the element.
    """
    path = Path(path)
    root = read_mjcf_tree(path)
    bodies = BodyReader(root, str(path)).bodies
    rows = [e for section in root.findall("tendon") for e in section.findall("spatial")]
    if not rows:
        raise RobotError(f"{path}: the model has no <spatial> tendons")
    tendons = [_tendon(e, f"tendon_{k}", bodies, str(path)) for k, e in enumerate(rows)]
    return TendonModel(bodies.model.name, bodies.model, TendonSet(tuple(tendons), where=str(path)))


def _tendon(e: ET.Element, default: str, bodies: Bodies, where: str) -> Tendon:
    where = f"{where}: {label(e)}"
    path: list[Point | Wrap | Pulley] = []
    for step in e:
        if step.tag == "site":
            body, x = _known("site", step, bodies.sites, where)
            path.append(Point(body, _vec(x)))
        elif step.tag == "geom":
            path.append(_wrap(step, bodies, where))
        elif step.tag == "pulley":
            path.append(Pulley(float(numbers(dict(step.attrib), "divisor", 1, None, where)[0])))
        else:
            raise UnknownNameError("step of a path", step.tag, ("site", "geom", "pulley"), hint=f"({where})")
    try:
        return Tendon(e.get("name", default), tuple(path))
    except HumanoidError as error:
        raise RobotError(f"{where}: {error}") from None


def _wrap(step: ET.Element, bodies: Bodies, where: str) -> Wrap:
    body, kind, centre, axis, radius = _known("geom", step, bodies.solids, where)
    side = None
    if "sidesite" in step.attrib:
        carrier, x = _known("sidesite", step, bodies.sites, where, "site")
        if carrier != body:
            raise RobotError(
                f"{where}: the side site '{step.get('sidesite')}' is on body '{carrier}', its geom on '{body}'; "
                "both must be on the same body"
            )
        side = _vec(x)
    return Wrap(kind, body, _vec(centre), radius, _vec(axis), side)


def _known(attribute: str, step: ET.Element, table: dict, where: str, kind: str = "") -> tuple:
    name = step.get(attribute, "")
    if name not in table:
        what = kind or ("sphere or cylinder" if attribute == "geom" else attribute)
        raise UnknownNameError(what, name, table, hint=f"({where})")
    found: tuple = table[name]
    return found


def _vec(x: np.ndarray) -> Vec3:
    return (float(x[0]), float(x[1]), float(x[2]))
