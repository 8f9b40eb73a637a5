"""The same world in MuJoCo: its own dynamics, contact solver and joint stops, our drives. The second engine."""

from __future__ import annotations

from typing import Any

import numpy as np
import pinocchio as pin

from humanoid_control.errors import EnvironmentProblem, RobotError
from humanoid_control.robots import Robot
from humanoid_control.simulation.drives.gains import DriveGains, default_gains
from humanoid_control.simulation.settings import WorldSettings
from humanoid_control.simulation.worlds.engine_base import EngineBase
from humanoid_control.simulation.worlds.mujoco_model import actuator_gains, ground_points, mjcf_text

CHUNK = 20  # steps after which is looked whether the state is still one


class MujocoWorld(EngineBase):
    """One robot in MuJoCo. Attributes and methods: see `engine.Engine`.

    Contact is MuJoCo's own: the corners of the soles, and the points of other links that may touch the ground, are
    balls on a plane, with the friction of the settings; the settings' stiffness and damping do not apply to it.

    Attributes:
        mj_model, mj_data: MuJoCo's own objects.
    """

    def __init__(self, robot: Robot, settings: WorldSettings | None = None, gains: DriveGains | None = None) -> None:
        self.settings = settings or WorldSettings()
        self.settings.check()
        super().__init__(robot, gains or default_gains(robot), self.settings.gravity, self.settings.coast)
        self.mujoco = mj = _import_mujoco()
        try:
            self.mj_model = mj.MjModel.from_xml_string(mjcf_text(robot, self.settings, self.gains))
        except ValueError as e:
            raise RobotError(f"{robot.name}: MuJoCo refuses the model: {' '.join(str(e).split())}") from None
        self.mj_data = mj.MjData(self.mj_model)
        m = self.mj_model
        self._iq = np.array([m.joint(n).qposadr[0] for n in robot.joint_names])
        self._iv = np.array([m.joint(n).dofadr[0] for n in robot.joint_names])
        sole = ground_points(robot, self.settings).sole if robot.base == "floating" else ()
        self._corner = {m.geom(f"point_{k}").id: (int(i), k % 4) for k, i in enumerate(sole) if i >= 0}
        self._body = [m.body(name).id if k else 0 for k, name in enumerate(robot.model.names)]
        self._driven = np.full(robot.n, np.nan)
        self.reset()

    # -- state ------------------------------------------------------------------------------------------------

    def _place(self) -> None:
        """MuJoCo's free joint: quaternion w x y z, linear velocity in world axes, angular in the body's."""
        mj, d, r = self.mujoco, self.mj_data, self.robot
        mj.mj_resetData(self.mj_model, d)
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
        """Advance by a number of integration steps; one call of MuJoCo for many where nothing changes between."""
        while steps > 0 and not self.diverged:
            alone = self.drives.moving or bool(self.pushes)
            n = 1 if alone else min(steps, CHUNK)
            if n > 1:
                self._advance(n - 1)
                steps -= n - 1
            if not self.diverged:
                self._advance(1)
                steps -= 1

    def _advance(self, n: int) -> None:
        h, before = self.settings.step, self.v
        self.drives.advance(self.time, self.joints, h)
        self._set_controls()
        self._set_pushes()
        self.mujoco.mj_step(self.mj_model, self.mj_data, n)
        q, v = self._read()
        if self._fails(q, v):
            return
        self.q, self.v, self.time = q, v, self.time + n * h
        self.acceleration = (v - before) / h if n == 1 else self.acceleration
        d, limit = self.drives, self.gains.effort
        torque = self.gains.kp * (d.q_ref - self.joints) + self.gains.kd * (d.v_ref - self.joint_velocity)
        self.torque = np.clip(d.driven * torque + d.effort, -limit, limit)

    def _set_controls(self) -> None:
        d, m, g = self.drives, self.mj_model, self.gains
        if not np.array_equal(d.driven, self._driven):
            position, velocity = actuator_gains(g, d.driven, self.settings.step)
            m.actuator_biasprm[:, 1], m.actuator_biasprm[:, 2] = -position, -velocity
            self._driven = d.driven.copy()
        self.mj_data.ctrl[:] = d.driven * (g.kp * d.q_ref + g.kd * d.v_ref) + d.effort

    def _set_pushes(self) -> None:
        d = self.mj_data
        if not self.pushes:
            return
        d.xfrc_applied[:] = 0.0
        for p in self.pushes.active(self.time):
            frame = self.model.frames[self.pushes.frame(p.link)]
            body = self._body[frame.parentJoint]
            R = d.xmat[body].reshape(3, 3)
            arm = d.xpos[body] + R @ frame.placement.act(p.point) - d.xipos[body]
            d.xfrc_applied[body, :3] += p.wrench[:3]
            d.xfrc_applied[body, 3:] += p.wrench[3:] + np.cross(arm, p.wrench[:3])

    # -- what it is asked -----------------------------------------------------------------------------------------

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
            "the engine 'mujoco' needs MuJoCo: pip install 'humanoid_control[simulation]' (or pip install mujoco)"
        ) from None
    mujoco.set_mju_user_warning(
        lambda message: None
    )  # else it writes MUJOCO_LOG.TXT wherever we are; we look ourselves
    return mujoco
