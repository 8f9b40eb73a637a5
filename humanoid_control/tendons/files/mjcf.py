"""Spatial tendons of MuJoCo models: <tendon><spatial> over sites, spheres, cylinders and pulleys."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np

from humanoid_control.errors import HumanoidError, RobotError, UnknownNameError
from humanoid_control.tendons.files.mjcf_bodies import Bodies, BodyReader
from humanoid_control.tendons.files.mjcf_text import label, numbers, read_mjcf_tree
from humanoid_control.tendons.files.tendon_model import TendonModel
from humanoid_control.tendons.tendon import Point, Pulley, Tendon, TendonSet, Vec3, Wrap


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
