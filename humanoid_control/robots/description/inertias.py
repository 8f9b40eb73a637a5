"""Inertias in a URDF: completion and physical plausibility."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from collections.abc import Iterable

import numpy as np

from humanoid_control.errors import first_few, shown

TENSOR = ("ixx", "ixy", "ixz", "ixy", "iyy", "iyz", "ixz", "iyz", "izz")
ROUNDING = 1e-3  # of the largest moment: rounding in the digits of a URDF
NEARLY = 0.05  # of the largest moment: tolerated violation of the triangle inequality in published data


def complete_inertia(link: ET.Element) -> None:
    """Add missing elements of a link's inertia; without them pinocchio would drop the mass."""
    inertial = link.find("inertial")
    if inertial is None:
        return
    mass, tensor = inertial.find("mass"), inertial.find("inertia")
    if mass is None or mass.get("value") is None:
        link.remove(inertial)
        return
    if tensor is None:
        tensor = ET.SubElement(inertial, "inertia")
    for key in dict.fromkeys(TENSOR):
        if tensor.get(key) is None:
            tensor.set(key, "0")


def inertia_fault(inertial: ET.Element) -> str:
    """Return the fault of an <inertial> as words after the link name, or an empty string.

    Moments of a body satisfy I1 + I2 >= I3.
    """
    mass, tensor = inertial.find("mass"), inertial.find("inertia")
    try:
        m = float(mass.get("value", "nan")) if mass is not None else 0.0
        values = [float(tensor.get(k, "0")) for k in TENSOR] if tensor is not None else [0.0] * 9
    except ValueError:
        m, values = math.nan, [0.0] * 9
    if not np.isfinite([m, *values]).all():
        return "has a non-numeric mass or inertia"
    if m < 0:
        return f"has mass {m:g} kg; it must not be negative"
    low, middle, high = np.linalg.eigvalsh(np.reshape(values, (3, 3)))
    moments = f"principal moments {low:.3g}, {middle:.3g}, {high:.3g} kg m^2"
    if low < -ROUNDING * max(high, 0.0) or high < 0:
        return f"has a negative inertia ({moments}), which is physically impossible"
    if low + middle < high * (1 - NEARLY):
        return f"has {moments}: one exceeds the sum of the other two, which is physically impossible"
    return ""


def impossible_note(links: Iterable[ET.Element], where: str) -> tuple[str, ...]:
    """Return a line about links with impossible inertias, if any."""
    found = {e.get("name", ""): inertial for e in links for inertial in e.findall("inertial")}
    bad = [shown(name) for name, inertial in found.items() if inertia_fault(inertial)]
    if not bad:
        return ()
    them = f"{len(bad)} link(s) with physically impossible inertias ({first_few(bad)})"
    return (f"{where}: {them}: usable for kinematics, rejected by the simulator",)
