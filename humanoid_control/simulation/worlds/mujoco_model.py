"""A robot as a MuJoCo model, written from its pinocchio model: the same bodies, joints, inertias and drives."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterable

import numpy as np
import pinocchio as pin

from humanoid_control.errors import ConfigError
from humanoid_control.robots import Robot
from humanoid_control.simulation.contact.ground import PLANE, Ground
from humanoid_control.simulation.contact.points import ContactPoints
from humanoid_control.simulation.drives.gains import DriveGains
from humanoid_control.simulation.settings import WorldSettings

POINT_RADIUS = 0.002  # [m] of the balls whose lowest points are the corners of the soles
CONTACT_TIME = 0.005  # [s] in which a contact settles, critically damped
STOP_TIME = 0.005  # [s] in which a joint is driven back into its range
IMPEDANCE = "0.95 0.99 0.001"


def mjcf_text(robot: Robot, settings: WorldSettings, gains: DriveGains) -> str:
    """The model as MJCF.

    A body is called as the pinocchio joint that carries it, and so are joints and actuators. Each actuator gives
    gain * ctrl + bias, with bias = -kp q - (kd + h kp) v: with the implicitfast integrator, which takes the part in v
    at the end of the step, that is the drive of `position_drives.drive_terms`, implicit in position and velocity.
    """
    top = ET.Element("mujoco", model=robot.name)
    ET.SubElement(top, "compiler", angle="radian", inertiafromgeom="false", autolimits="false")
    option = ET.SubElement(top, "option", timestep=repr(settings.step), gravity=_text((0, 0, -settings.gravity)))
    option.attrib.update(integrator="implicitfast", cone="elliptic", impratio="20", solver="Newton", tolerance="1e-10")
    ET.SubElement(option, "flag", autoreset="disable")
    world = ET.SubElement(top, "worldbody")
    bodies = {0: world}
    for joint in range(1, robot.model.njoints):
        bodies[joint] = _body(bodies[robot.model.parents[joint]], robot, joint, gains)
    if robot.base == "floating":
        _contact(bodies, robot, settings)
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


def ground_points(robot: Robot, settings: WorldSettings) -> ContactPoints:
    """Where the robot can touch the ground, in the frames of its pinocchio joints; the k-th is the geom `point_k`."""
    return ContactPoints(robot, None, settings.touching)


def _contact(bodies: dict[int, ET.Element], robot: Robot, settings: WorldSettings) -> None:
    """The ground, fixed to the world, and the balls that meet it."""
    ground = ET.SubElement(bodies[0], "geom", name="ground", type="plane", size="0 0 1", condim="3")
    ground.attrib.update(contype="1", conaffinity="0", solref=f"{CONTACT_TIME} 1", solimp=IMPEDANCE)
    ground.attrib.update(friction=f"{settings.contact.friction!r} 0 0", priority="1", **_plane(settings.ground))
    points = ground_points(robot, settings)
    for k in range(len(points)):
        _ball(bodies[int(points.body[k])], robot, points, k)


def _ball(body: ET.Element, robot: Robot, points: ContactPoints, k: int) -> None:
    centre, radius = points.points[k, :3], float(points.points[k, 3])
    if points.sole[k] >= 0:  # lifted, so that the ball's lowest point is the corner
        link = robot.model.getFrameId(robot.feet[points.sole[k]].link)
        centre = centre + POINT_RADIUS * robot.model.frames[link].placement.rotation[:, 2]
    size = max(radius, POINT_RADIUS)
    e = ET.SubElement(body, "geom", name=f"point_{k}", type="sphere", size=repr(size), pos=_text(centre))
    e.attrib.update(contype="0", conaffinity="1", condim="3")


def _plane(ground: Ground) -> dict[str, str]:
    if ground.array[0] != PLANE:
        raise ConfigError(f"the engine 'mujoco' knows the ground as a plane, not as '{ground.name}': use 'multibody'")
    _, height, dx, dy = ground.array
    return {"pos": _text((0, 0, height)), "zaxis": _text((-dx, -dy, 1))}


def _quaternion(R: np.ndarray) -> str:
    x, y, z, w = pin.Quaternion(R).coeffs()
    return _text((w, x, y, z))


def _text(values: Iterable[float]) -> str:
    return " ".join(repr(float(v)) for v in values)
