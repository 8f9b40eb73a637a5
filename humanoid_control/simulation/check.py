"""Whether a robot can be simulated at all: masses and inertias that a body can have."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import numpy as np
import pinocchio as pin

from humanoid_control.errors import RobotError
from humanoid_control.robots import Robot

ROUNDING = 1e-3  # of the largest moment: what the digits of a URDF may take away from the triangle inequality
TENSOR = ("ixx", "ixy", "ixz", "ixy", "iyy", "iyz", "ixz", "iyz", "izz")


def check_model(robot: Robot) -> None:
    """Make sure that every moving link has mass and that every inertia is one of a body.

    Raises:
        RobotError: naming the first link that moves without mass, whose mass or inertia is negative or not a number,
            or whose principal moments break the triangle inequality (no body has I1 + I2 < I3).
    """
    for link in ET.fromstring(robot.urdf).findall("link"):
        inertial = link.find("inertial")
        if inertial is not None:
            _check_inertial(inertial, link.get("name", ""), robot.name)
    model = robot.model
    for joint in range(1, model.njoints):
        if not model.inertias[joint].mass > 0:
            bodies = [f.name for f in model.frames if f.parentJoint == joint and f.type == pin.FrameType.BODY]
            raise RobotError(
                f"{robot.name}: link '{bodies[0] if bodies else model.names[joint]}' moves and has no mass: give it an "
                "<inertial>, or make its joint fixed"
            )


def _check_inertial(inertial: ET.Element, link: str, robot: str) -> None:
    where = f"{robot}: link '{link}'"
    mass, tensor = inertial.find("mass"), inertial.find("inertia")
    try:
        m = float(mass.get("value", "nan")) if mass is not None else 0.0
        values = [float(tensor.get(k, "0")) for k in TENSOR] if tensor is not None else [0.0] * 9
    except ValueError:
        raise RobotError(f"{where}: mass or inertia is not a number") from None
    if not np.isfinite([m, *values]).all():
        raise RobotError(f"{where}: mass or inertia is not a number")
    if m < 0:
        raise RobotError(f"{where} has mass {m:g} kg; it must not be negative")
    low, middle, high = np.linalg.eigvalsh(np.reshape(values, (3, 3)))
    moments = f"principal moments {low:.3g}, {middle:.3g}, {high:.3g} kg m^2"
    if low < -ROUNDING * max(high, 0.0) or high < 0:
        raise RobotError(f"{where} has a negative inertia ({moments}): no body has that")
    if low + middle < high * (1 - ROUNDING):
        raise RobotError(f"{where} has {moments}: one exceeds the sum of the others, no body has that")
