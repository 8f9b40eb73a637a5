"""A MuJoCo model file as a tree of XML: files it includes, default classes, numbers, poses."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pinocchio as pin

from humanoid_control.errors import RobotError, UnknownNameError

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
