"""World in MuJoCo (optional extra): its dynamics, contact solver and joint stops with our drives and commands."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterable
from typing import Any

import numpy as np
import pinocchio as pin

from humanoid_control.errors import ConfigError, EnvironmentProblem, RobotError
from humanoid_control.kinematics.forward_kinematics import joint_axis
from humanoid_control.robots import Robot
from humanoid_control.robots.description.urdf import WIDE
from humanoid_control.simulation.contact.ground import PLANE, Ground
from humanoid_control.simulation.contact.points import ContactPoints
from humanoid_control.simulation.drives.position_control import (
    ACCELERATION,
    FORCE,
    INERTIA,
    JOINT,
    SPEED,
    TORQUE,
    DriveGains,
    begin_drive_step,
    default_gains,
    drive_table,
    switch_drive_step,
    switching_rule,
)
from humanoid_control.simulation.settings import WorldSettings
from humanoid_control.simulation.worlds.base import EngineBase

POINT_RADIUS = 0.002  # [m] of spheres with their lowest points at the sole corners
CONTACT_TIME = 0.005  # [s] time constant of a contact, critically damped
STOP_TIME = 0.005  # [s] time constant of the return into the range
IMPEDANCE = "0.95 0.99 0.001"


def mjcf_text(robot: Robot, settings: WorldSettings, gains: DriveGains) -> str:
    """Return the model as MJCF, with names of pinocchio joints and torque actuators."""
    top = ET.Element("mujoco", model=robot.name)
    ET.SubElement(top, "compiler", angle="radian", inertiafromgeom="false", autolimits="false")
    option = ET.SubElement(top, "option", timestep=repr(settings.step), gravity=_text((0, 0, -settings.gravity)))
    option.attrib.update(integrator="Euler", cone="elliptic", impratio="20", solver="Newton", tolerance="1e-10")
    ET.SubElement(option, "flag", autoreset="disable")
    world = ET.SubElement(top, "worldbody")
    bodies = {0: world}
    for joint in range(1, robot.model.njoints):
        bodies[joint] = _body(bodies[robot.model.parents[joint]], robot, joint, gains)
    if robot.base == "floating":
        _contact(bodies, robot, settings)
    actuators = ET.SubElement(top, "actuator")
    for name in robot.joint_names:
        ET.SubElement(actuators, "motor", name=name, joint=name)
    return ET.tostring(top, encoding="unicode")


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
    axis, slides = joint_axis(model, joint)
    e = ET.SubElement(body, "joint", name=name, type="slide" if slides else "hinge", axis=_text(axis))
    low, high = (end[k] for end in robot.range_within(WIDE))
    endless = bool(np.isinf([robot.lower[k], robot.upper[k]]).all())
    e.attrib.update({"limited": "false"} if endless else {"limited": "true", "range": _text((low, high))})
    e.attrib.update(armature=repr(float(gains.rotor[k])))
    e.attrib.update(solreflimit=f"{STOP_TIME} 1", solimplimit=IMPEDANCE)
    return body


def ground_points(robot: Robot, settings: WorldSettings) -> ContactPoints:
    """Return the contact points in pinocchio joint frames; the k-th becomes the geom `point_k`."""
    return ContactPoints(robot, None, settings.touching)


def _contact(bodies: dict[int, ET.Element], robot: Robot, settings: WorldSettings) -> None:
    ground = ET.SubElement(bodies[0], "geom", name="ground", type="plane", size="0 0 1", condim="3")
    ground.attrib.update(contype="1", conaffinity="0", solref=f"{CONTACT_TIME} 1", solimp=IMPEDANCE)
    ground.attrib.update(friction=f"{settings.contact.friction!r} 0 0", priority="1", **_plane(settings.ground))
    points = ground_points(robot, settings)
    for k in range(len(points)):
        _ball(bodies[int(points.body[k])], robot, points, k)


def _ball(body: ET.Element, robot: Robot, points: ContactPoints, k: int) -> None:
    centre, radius = points.points[k, :3], float(points.points[k, 3])
    if points.sole[k] >= 0:  # lifted: the lowest point of the sphere is the corner
        link = robot.model.getFrameId(robot.feet[points.sole[k]].link, pin.FrameType.BODY)
        centre = centre + POINT_RADIUS * robot.model.frames[link].placement.rotation[:, 2]
    size = max(radius, POINT_RADIUS)
    e = ET.SubElement(body, "geom", name=f"point_{k}", type="sphere", size=repr(size), pos=_text(centre))
    e.attrib.update(contype="0", conaffinity="1", condim="3")


def _plane(ground: Ground) -> dict[str, str]:
    if ground.array[0] != PLANE:
        raise ConfigError(f"the engine 'mujoco' supports only a plane as ground, not '{ground.name}': use 'multibody'")
    _, height, dx, dy = ground.array
    return {"pos": _text((0, 0, height)), "zaxis": _text((-dx, -dy, 1))}


def _quaternion(R: np.ndarray) -> str:
    x, y, z, w = pin.Quaternion(R).coeffs()
    return _text((w, x, y, z))


def _text(values: Iterable[float]) -> str:
    return " ".join(repr(float(v)) for v in values)


# -------- The world

CHUNK = 20  # steps between two checks for a finite state


class MujocoWorld(EngineBase):
    """Robot in MuJoCo; see `engine.Engine`.

    MuJoCo solves contact (spheres on a plane, friction of the settings, own stiffness) and joint stops, softer than in
    `MultibodyWorld`.

    The drives are those of `MultibodyWorld`: the acceleration term of their law becomes joint inertia, and MuJoCo
    solves again until no piece changes.

    Attributes:
        mj_model: MuJoCo's model.
        mj_data: MuJoCo's data.
    """

    _substeps = 1  # of MuJoCo per step of the settings

    def __init__(self, robot: Robot, settings: WorldSettings | None = None, gains: DriveGains | None = None) -> None:
        self.settings = settings or WorldSettings()
        self.settings.check()
        super().__init__(robot, gains or default_gains(robot), self.settings.gravity, self.settings.coast)
        self.mujoco = mj = _import_mujoco()
        try:
            self.mj_model = mj.MjModel.from_xml_string(self._mjcf())
        except ValueError as e:
            raise RobotError(f"{robot.name}: MuJoCo rejects the model: {' '.join(str(e).split())}") from None
        self.mj_data = mj.MjData(self.mj_model)
        m = self.mj_model
        self._iq = np.array([m.joint(n).qposadr[0] for n in robot.joint_names])
        self._iv = np.array([m.joint(n).dofadr[0] for n in robot.joint_names])
        sole = ground_points(robot, self.settings).sole if robot.base == "floating" else ()
        self._corner = {m.geom(f"point_{k}").id: (int(i), k % 4) for k, i in enumerate(sole) if i >= 0}
        self._body = [m.body(name).id if k else 0 for k, name in enumerate(robot.model.names)]
        self._drives = drive_table(robot, self.drives, self.gains, stops=False)
        self._rows = np.zeros((6, robot.n))
        self.reset()

    def _mjcf(self) -> str:
        """Return the model; a subclass extends it."""
        return mjcf_text(self.robot, self.settings, self.gains)

    # -- state ------------------------------------------------------------------------------------------------

    def _place(self) -> None:
        """Copy the state to MuJoCo: quaternion w x y z, linear velocity in world axes, angular in body axes."""
        mj, d, r = self.mujoco, self.mj_data, self.robot
        mj.mj_resetData(self.mj_model, d)
        self._rows[ACCELERATION] = 0.0
        d.qpos[self._iq], d.qvel[self._iv] = self.q[r.iq :], self.v[r.iv :]
        if r.base == "floating":
            d.qpos[:3], d.qpos[3:7] = self.q[:3], self.q[[6, 3, 4, 5]]
            R = pin.Quaternion(self.q[3:7]).toRotationMatrix()
            d.qvel[:3], d.qvel[3:6] = R @ self.v[:3], self.v[3:6]
        mj.mj_forward(self.mj_model, d)

    def _read(self) -> tuple[np.ndarray, np.ndarray]:
        d, r = self.mj_data, self.robot
        q, v = np.empty(r.nq), np.empty(r.nv)
        q[r.iq :], v[r.iv :] = d.qpos[self._iq], d.qvel[self._iv]
        if r.base == "floating":
            q[:3], q[3:7] = d.qpos[:3], d.qpos[[4, 5, 6, 3]]
            if np.isfinite(q[3:7]).all():
                v[:3] = pin.Quaternion(q[3:7]).toRotationMatrix().T @ d.qvel[:3]
            v[3:6] = d.qvel[3:6]
        return q, v

    # -- stepping -----------------------------------------------------------------------------------------------

    def step(self, steps: int = 1) -> None:
        """See `engine.Engine.step`."""
        h, time, steps = self.settings.step / self._substeps, self.time, steps * self._substeps
        while steps > 0 and not self.diverged:
            n, before = min(steps, CHUNK), self.v
            for k in range(1, n + 1):
                if k == n > 1:  # acceleration of the last step only
                    before = self._read()[1]
                self._advance(h)
                self.time = time + k * h
            (q, v), self.time = self._read(), time
            if self._fails(q, v):
                return
            self.q, self.v, self.acceleration = q, v, (v - before) / h
            self.torque = self._rows[TORQUE].copy()
            time += n * h
            self.time, steps = time, steps - n
            self._moved()

    def _advance(self, h: float) -> None:
        """Advance MuJoCo by one step: accelerations until the drives' pieces hold, then semi-implicit Euler."""
        mj, m, d, rows = self.mujoco, self.mj_model, self.mj_data, self._rows
        if self.pushes:
            self._set_pushes()
        self._set_forces(h)
        self._set_drives(h)
        rounds, again = 0, True
        while again:
            d.ctrl[: rows.shape[1]] = rows[FORCE]
            m.dof_armature[self._iv] = rows[INERTIA]
            mj.mj_forward(m, d)
            np.take(d.qacc, self._iv, out=rows[ACCELERATION], mode="clip")
            rounds += 1
            again = switch_drive_step(self._drives.table, rows, h, switching_rule(rounds))
        mj.mj_Euler(m, d)

    def _set_forces(self, h: float) -> None:
        """Apply forces other than drives; for subclasses."""

    def _set_drives(self, h: float) -> None:
        d, rows = self.mj_data, self._rows
        np.take(d.qpos, self._iq, out=rows[JOINT], mode="clip")
        np.take(d.qvel, self._iv, out=rows[SPEED], mode="clip")
        if self.drives.moving:
            self.drives.advance(self.time, rows[JOINT], h)
        begin_drive_step(self._drives.table, rows, h)

    def _set_pushes(self) -> None:
        d = self.mj_data
        d.xfrc_applied[:] = 0.0
        self.mujoco.mj_kinematics(self.mj_model, d)  # else link poses lag by one step
        for p in self.pushes.active(self.time):
            frame = self.model.frames[self.pushes.frame(p.link)]
            body = self._body[frame.parentJoint]
            R = d.xmat[body].reshape(3, 3)
            arm = d.xpos[body] + R @ frame.placement.act(p.point) - d.xipos[body]
            d.xfrc_applied[body, :3] += p.wrench[:3]
            d.xfrc_applied[body, 3:] += p.wrench[3:] + np.cross(arm, p.wrench[:3])

    # -- sensors --------------------------------------------------------------------------------------------------

    def foot_wrenches(self) -> dict[str, np.ndarray]:
        """See `engine.Engine.foot_wrenches`; of the last step."""
        d, local = self.mj_data, np.zeros(6)
        forces = np.zeros((len(self.soles.names), 4, 3))
        for k in range(d.ncon):
            contact = d.contact[k]
            corner = self._corner.get(int(contact.geom2))
            if corner is not None:
                self.mujoco.mj_contactForce(self.mj_model, d, k, local)
                forces[corner] += contact.frame.reshape(3, 3).T @ local[:3]
        pin.forwardKinematics(self.model, self.data, self.q)
        return self.soles.wrenches(self.data, forces)


def _import_mujoco() -> Any:
    try:
        import mujoco
    except ImportError:
        raise EnvironmentProblem(
            "the engine 'mujoco' needs MuJoCo: pip install 'humanoid_control[mujoco]' (or pip install mujoco)"
        ) from None
    # Else MuJoCo writes MUJOCO_LOG.TXT to the working directory; `_fails` detects divergence.
    mujoco.set_mju_user_warning(lambda message: None)
    return mujoco
