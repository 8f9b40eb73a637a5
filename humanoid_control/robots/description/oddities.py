"""Implausible numbers of a URDF, such as other units or missing limits: one line per kind."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from collections.abc import Iterator

from humanoid_control.errors import first_few, shown

MOVING = ("revolute", "continuous", "prismatic")
UNLIMITED = 1.0e3  # [rad/s], [m/s] larger speed limits count as none
SPEED, EFFORT = 3.0, 100.0  # [rad/s], [N m] of a joint whose limit is 0, infinite or missing
FARTHEST_TURN, IN_DEGREES = 3 * math.pi, 720.0  # [rad] ends of ranges between are probably degrees
FASTEST = 50.0  # [rad/s] faster is probably degrees per second; the fastest fingers reach 40
NARROW = 0.1  # [rad] of a range: if most joints have less, the unit is probably wrong
FULL_TURN = 2 * math.pi + 0.01  # [rad] larger angles of a placement are probably degrees
FAR = 5.0  # [m] between consecutive joints: longer than any limb
HEAVY, LIGHT = 1000.0, 0.05  # [kg] of a whole robot
FEW, FEEBLE = 6, 0.1  # joints; [N m/kg] of the strongest joint, too weak to carry an arm
WIDE = 3.0  # [m] radius of gyration of a link


def oddities(document: ET.Element, where: str) -> tuple[str, ...]:
    """Return lines about implausible numbers of a checked document, named `where`."""
    joints = [j for j in document.findall("joint") if j.get("type") in MOVING]
    found = (*_limits(joints), *_placements(document, joints), *_masses(document, joints))
    return tuple(f"{where}: {text}" for text in found)


def _limits(joints: list[ET.Element]) -> Iterator[str]:
    slow, turning, fast, weak, small = list[str](), list[str](), list[str](), list[str](), list[str]()
    for joint in joints:
        limit, name = joint.find("limit"), shown(joint.get("name"))
        if limit is None:
            continue
        lower, upper, velocity, effort = (_number(limit, key) for key in ("lower", "upper", "velocity", "effort"))
        turns = joint.get("type") != "prismatic"
        if not 0 < velocity < UNLIMITED:
            slow.append(name)
        elif velocity > FASTEST and turns:
            fast.append(f"{name}: {velocity:g} rad/s")
        if effort == math.inf:
            weak.append(name)
        if joint.get("type") == "revolute" and 0.0 < upper - lower < NARROW:
            small.append(f"{name}: {lower:.3g} .. {upper:.3g} rad")
        if joint.get("type") == "revolute" and FARTHEST_TURN < max(abs(lower), abs(upper)) <= IN_DEGREES:
            turning.append(f"{name}: {lower:g} .. {upper:g} rad")
    if slow:
        yield f"{len(slow)} joint(s) without a speed limit ({first_few(slow)}): {SPEED:g} rad/s is assumed"
    if weak:
        yield f"{len(weak)} joint(s) without an effort limit ({first_few(weak)}): {EFFORT:g} N m is assumed"
    if fast:
        yield f"{len(fast)} fast joint(s) ({first_few(fast)}): speeds are in rad/s; are these degrees?"
    if len(small) > max(1, len(joints) // 2):
        them = f"{len(small)} of {len(joints)} joints turn by less than 6 degrees ({first_few(small)})"
        yield f"{them}: were radians read as degrees, the default of MJCF?"
    if turning:
        them = f"{len(turning)} joint(s) with a range above 1.5 turns ({first_few(turning)})"
        yield f"{them}: limits are in radians; are these degrees?"


def _placements(document: ET.Element, joints: list[ET.Element]) -> Iterator[str]:
    far = []
    for joint in joints:
        size = math.hypot(*_three(joint.find("origin"), "xyz"))
        if size > FAR:
            far.append(f"{shown(joint.get('name'))}: {size:.4g} m")
    if far:
        them = f"{len(far)} joint(s) far from the previous joint ({first_few(far)})"
        yield f"{them}: lengths are in metres; are these millimetres?"
    origins = list(document.iter("origin"))
    turned = [o.get("rpy", "") for o in origins if max(map(abs, _three(o, "rpy"))) > FULL_TURN]
    if turned:
        them = f"{len(turned)} placement(s) turned by more than a full turn (rpy '{shown(turned[0])}')"
        yield f"{them}: angles are in radians; are these degrees?"


def _masses(document: ET.Element, joints: list[ET.Element]) -> Iterator[str]:
    total, wide = 0.0, list[str]()
    for link in document.findall("link"):
        mass, tensor = link.find("inertial/mass"), link.find("inertial/inertia")
        if mass is None:
            continue
        m = _number(mass, "value")
        total += m
        moment = (
            max((_number(tensor, key) for key in ("ixx", "iyy", "izz")), default=0.0) if tensor is not None else 0.0
        )
        if m > 0 and moment > m * WIDE**2:
            wide.append(f"{shown(link.get('name'))}: {moment:.3g} kg m^2 at {m:.3g} kg")
    strongest = max((_number(limit, "effort") for j in joints if (limit := j.find("limit")) is not None), default=0.0)
    if len(joints) > FEW and 0 < strongest < FEEBLE * total:
        them = f"no joint has more than {strongest:.3g} N m, and the links weigh {total:.3g} kg"
        yield f"{them}: the robot cannot carry its own weight; are efforts in other units?"
    if total > HEAVY:
        yield f"the links weigh {total:.4g} kg: masses are in kilograms; are these grams?"
    elif joints and total == 0:
        yield "no link has a mass: usable for kinematics only"
    elif len(joints) > 1 and total < LIGHT:
        yield f"the links weigh {total:.3g} kg: masses are in kilograms; are these tonnes?"
    if wide:
        yield f"{len(wide)} link(s) with inertias of a much larger body ({first_few(wide)}): are they in kg mm^2?"


def _number(e: ET.Element, key: str) -> float:
    return float(e.get(key, "0") or 0)


def _three(e: ET.Element | None, key: str) -> list[float]:
    text = e.get(key) if e is not None else None
    return [float(v) for v in (text or "0 0 0").split()]
