"""A first swept-sphere volume for a link that has none, from its mass and inertia."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import numpy as np

from humanoid_control.collision.ssv_fit import fit_ssv, inertia_points
from humanoid_control.collision.ssv_segments import Segment
from humanoid_control.errors import RobotError, UnknownNameError
from humanoid_control.robots.robot import Robot
from humanoid_control.robots.urdf_tree import placement


def fit_link(robot: Robot, link: str, shape: str = "auto") -> Segment:
    """The segment of the volume around the ellipsoid of uniform density that has the link's mass and inertia.

    Args:
        robot: whose URDF gives the inertia.
        link: to be held.
        shape: of `fit_ssv`.

    Raises:
        UnknownNameError: no such link, with the nearest names; or shape.
        RobotError: a link without mass, or with an inertia that no body has.
    """
    links = {e.get("name", ""): e for e in ET.fromstring(robot.urdf.split("?>", 1)[-1]).findall("link")}
    if link not in links:
        raise UnknownNameError("link", link, links, hint=f"(robot {robot.name})")
    found = [links[link].find(f"inertial/{part}") for part in ("mass", "inertia")]
    mass = float(found[0].get("value", "0")) if found[0] is not None else 0.0
    if mass <= 0.0 or found[1] is None:
        raise RobotError(f"{robot.name}: link '{link}' has no mass to fit a volume to: draw it by hand")
    xx, yy, zz, xy, xz, yz = (float(found[1].get(k, "0")) for k in ("ixx", "iyy", "izz", "ixy", "ixz", "iyz"))
    X = placement(links[link].find("inertial/origin"))
    inertia = X.rotation @ np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) @ X.rotation.T
    return Segment(link, link, fit_ssv(inertia_points(mass, X.translation, inertia), shape, link))
