"""A robot as a MuJoCo model, written from its pinocchio model: the same bodies, joints, inertias and drives."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterable

import numpy as np
import pinocchio as pin

from humanoid_control.robots import Robot
from humanoid_control.simulation.drives import DriveGains
from humanoid_control.simulation.settings import WorldSettings
from humanoid_control.simulation.soles import Soles

POINT_RADIUS = 0.002  # [m] of the balls whose lowest points are the corners of the soles
CONTACT_TIME = 0.005  # [s] in which a contact settles, critically damped
STOP_TIME = 0.005  # [s] in which a joint is driven back into its range
IMPEDANCE = "0.95 0.99 0.001"


def mjcf_text(robot: Robot, settings: WorldSettings, gains: DriveGains) -> str:
    """The model as MJCF.

    A body is called as the pinocchio joint that carries it, and so are joints and actuators. Each actuator gives
    gain * ctrl + bias, with bias = -kp q - (kd + h kp) v: with the implicitfast integrator, which takes the part in v
    at the end of the step, that is the drive of `drives.drive_terms`, implicit in position and velocity.
    """
    top = ET.Element("mujoco", model=robot.name)
    ET.SubElement(top, "compiler", angle="radian", inertiafromgeom="false", autolimits="false")
    option = ET.SubElement(top, "option", timestep=repr(settings.step), gravity=_text((0, 0, -settings.gravity)))
    option.attrib.update(integrator="implicitfast", cone="elliptic", impratio="20", solver="Newton", tolerance="1e-10")
    ET.SubElement(option, "flag", autoreset="disable")
    world = ET.SubElement(top, "worldbody")
    soles = Soles(robot)
    if robot.base == "floating":
        ground = ET.SubElement(world, "geom", name="ground", type="plane", size="0 0 1", condim="3")
        ground.attrib.update(contype="1", conaffinity="0", solref=f"{CONTACT_TIME} 1", solimp=IMPEDANCE)
        ground.attrib.update(friction=f"{settings.contact.friction!r} 0 0", priority="1")
    bodies = {0: world}
    for joint in range(1, robot.model.njoints):
        bodies[joint] = _body(bodies[robot.model.parents[joint]], robot, joint, gains)
        if robot.base == "floating":
            _points(bodies[joint], soles, joint)
    actuators = ET.SubElement(top, "actuator")
    for k, name in enumerate(robot.joint_names):
        limit = float(gains.effort[k])
        a = ET.SubElement(actuators, "general", name=name, joint=name, biastype="affine", ctrllimited="false")
        a.attrib.update(gainprm="1", biasprm="0 0 0", forcelimited="true", forcerange=_text((-limit, limit)))
    return ET.tostring(top, encoding="unicode")


def actuator_gains(gains: DriveGains, driven: np.ndarray, h: float) -> tuple[np.ndarray, np.ndarray]:
    """Factors (n,) of -q and -v in the actuators' bias, for a step of length h."""
    return driven * gains.kp, driven * (gains.kd + h * gains.kp)


def _body(parent: ET.Element, robot: Robot, joint: int, gains: DriveGains) -> ET.Element:
    model = robot.model
    name, X, inertia = model.names[joint], model.jointPlacements[joint], model.inertias[joint]
    body = ET.SubElement(parent, "body", name=name, pos=_text(X.translation), quat=_quaternion(X.rotation))
    t = inertia.inertia
    full = (t[0, 0], t[1, 1], t[2, 2], t[0, 1], t[0, 2], t[1, 2])
    ET.SubElement(body, "inertial", mass=repr(float(inertia.mass)), pos=_text(inertia.lever), fullinertia=_text(full))
    if model.joints[joint].nv == 6:
        ET.SubElement(body, "freejoint", name=name)
        return body
    k = robot.index[name]
    S = np.asarray(model.createData().joints[joint].S).reshape(6)
    turns = bool(S[3:].any())
    e = ET.SubElement(
        body, "joint", name=name, type="hinge" if turns else "slide", axis=_text(S[3:] if turns else S[:3])
    )
    e.attrib.update(limited="true", range=_text((robot.lower[k], robot.upper[k])), armature=repr(float(gains.rotor[k])))
    e.attrib.update(solreflimit=f"{STOP_TIME} 1", solimplimit=IMPEDANCE)
    return body


def _points(body: ET.Element, soles: Soles, joint: int) -> None:
    for foot, carrier in enumerate(soles.joints):
        if carrier == joint:
            up = POINT_RADIUS * soles.placement[foot].rotation[:, 2]
            for k, corner in enumerate(soles.corners[foot]):
                e = ET.SubElement(body, "geom", name=f"{soles.names[foot]}_{k}", type="sphere", size=repr(POINT_RADIUS))
                e.attrib.update(pos=_text(corner + up), contype="0", conaffinity="1", condim="3")


def _quaternion(R: np.ndarray) -> str:
    x, y, z, w = pin.Quaternion(R).coeffs()
    return _text((w, x, y, z))


def _text(values: Iterable[float]) -> str:
    return " ".join(repr(float(v)) for v in values)
