"""Tendons of CARDSflow robots: `cardsflow.xml` and a URDF."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pinocchio as pin

from humanoid_control.documents import parse_xml, read_xml_text
from humanoid_control.errors import HumanoidError, RobotError, UnknownNameError, first_line
from humanoid_control.files import FARTHEST, why
from humanoid_control.tendons.files.mjcf import TendonModel
from humanoid_control.tendons.routing.geometry import link_frame
from humanoid_control.tendons.tendon import Tendon, TendonSet, Vec3, ViaPoint

ROUTING_FILE, URDF_FILE = "cardsflow.xml", "model.urdf"
STRAIGHT = "FIXPOINT"
LONGEST = 3.0  # [m] no humanoid link extends farther from its frame


def read_cardsflow(path: str | Path, urdf: str | Path | None = None) -> TendonModel:
    """Read the robot and the tendons of a CARDSflow folder or `cardsflow.xml`; default URDF: `model.urdf` there.

    Raises:
        RobotError: if a file is invalid.
        UnknownNameError: if a link or type of via point is unknown.
    """
    path = Path(path)
    path = path / ROUTING_FILE if path.is_dir() else path
    urdf = path.with_name(URDF_FILE) if urdf is None else Path(urdf)
    root = parse_xml(_content(path, "a CARDSflow routing"), str(path), "a CARDSflow routing")
    if root.tag != "cardsflow":
        raise RobotError(
            f"{path}: not a CARDSflow routing: the outermost element is <{root.tag}>, expected <cardsflow>"
        )
    model = _model(urdf)
    tendons = tuple(_tendon(e, model, f"{path}: myoMuscle '{e.get('name', '')}'") for e in root.findall("myoMuscle"))
    if not tendons:
        raise RobotError(f"{path}: it has no <myoMuscle>")
    return TendonModel(model.name, model, TendonSet(tendons, where=str(path)))


def refuse_millimetres(points: Sequence[Vec3], where: str) -> None:
    """Check that link coordinates are in metres.

    Raises:
        RobotError: if a coordinate is too large.
    """
    largest = float(np.abs(np.array(points, dtype=float)).max()) if len(points) else 0.0
    if largest > LONGEST:
        raise RobotError(f"{where}: a coordinate of {largest:g} on a link looks like millimetres; give metres")


def _content(path: Path, what: str) -> str:
    try:
        return read_xml_text(path)
    except (OSError, UnicodeDecodeError) as e:
        raise RobotError(f"{path}: cannot be read as {what}: {why(e)}") from None


def _model(urdf: Path) -> pin.Model:
    root = parse_xml(_content(urdf, "a URDF"), str(urdf), "a URDF")
    for link in root.findall("link"):
        for e in link.findall("visual") + link.findall("collision"):
            link.remove(e)
    try:
        model = pin.buildModelFromXML(ET.tostring(root, encoding="unicode"))
    except (ValueError, RuntimeError) as e:
        raise RobotError(f"{urdf}: pinocchio cannot build a model: {first_line(e)}") from None
    for joint, X in zip(model.names, model.jointPlacements, strict=True):
        if not np.abs(X.homogeneous).max() <= FARTHEST:  # also False for NaN
            raise RobotError(f"{urdf}: joint '{joint}': its position must be three numbers within {FARTHEST:g} m")
    return model


def _tendon(e: ET.Element, model: pin.Model, where: str) -> Tendon:
    path: list[ViaPoint] = []
    for link in e.findall("link"):
        name = link.get("name", "")
        link_frame(model, name, where)
        for via in link.findall("viaPoint"):
            if (kind := via.get("type", STRAIGHT)) != STRAIGHT:
                raise UnknownNameError("type of via point", kind, (STRAIGHT,), hint=f"({where})")
            path.append(ViaPoint(name, _xyz(via, where)))
    refuse_millimetres([p.xyz for p in path], where)
    try:
        return Tendon(e.get("name", ""), tuple(path))
    except HumanoidError as error:
        raise RobotError(f"{where}: {error}") from None


def _xyz(via: ET.Element, where: str) -> Vec3:
    try:
        x = np.array([float(v) for v in (via.text or "").split()])
    except ValueError:
        x = np.array([np.nan])
    if x.shape != (3,) or not np.isfinite(x).all():
        raise RobotError(f"{where}: a via point must be 'x y z' in metres, got '{(via.text or '').strip()}'")
    return float(x[0]), float(x[1]), float(x[2])
