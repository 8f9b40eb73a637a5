"""The simulated world: one robot, its drives, the ground, gravity, and a fixed-step integrator."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pinocchio as pin

from humanoid_control.errors import ConfigError
from humanoid_control.robots import Robot
from humanoid_control.simulation.contact import GroundContact, GroundSettings
from humanoid_control.simulation.drives import DriveGains, DriveStep, default_gains, drive_step
from humanoid_control.simulation.engine_base import EngineBase


@dataclass(frozen=True)
class WorldSettings:
    """What the world is like.

    Attributes:
        step: length of an integration step [s].
        gravity: [m/s^2], downward.
        coast: how long the position reference moves on with the commanded velocity until the next command [s].
        ground: of the floor; it acts on the feet of robots whose base floats.
    """

    step: float = 0.001
    gravity: float = 9.81
    coast: float = 0.01
    ground: GroundSettings = field(default_factory=GroundSettings)

    def check(self) -> None:
        """Make sure of the step.

        Raises:
            ConfigError: it makes no sense.
        """
        if not 0 < self.step <= 0.01:
            raise ConfigError(f"simulation step must be between 0 and 0.01 s, got {self.step:g}")


class World(EngineBase):
    """Integrates one robot under position-controlled drives (semi-implicit Euler, drives implicit).

    Attributes:
        q (nq,), v (nv,): state. time [s]. torque: (n,) motor torques of the last step [N m].
        acceleration: (nv,) of the last step.
        diverged: the state stopped being a number; the world then keeps its last good state until `reset`.
    """

    def __init__(self, robot: Robot, settings: WorldSettings | None = None, gains: DriveGains | None = None) -> None:
        self.settings = settings or WorldSettings()
        self.settings.check()
        super().__init__(robot, gains or default_gains(robot), self.settings.gravity, self.settings.coast)
        self.contact = GroundContact(robot, self.settings.ground) if robot.base == "floating" else None
        self._f_ext = pin.StdVec_Force()
        for _ in range(self.model.njoints):
            self._f_ext.append(pin.Force.Zero())
        self._tau = np.zeros(robot.nv)
        self._armature = np.zeros(robot.nv)
        self.reset()

    def _place(self) -> None:
        if self.contact is not None:
            self.contact.reset()

    def step(self, steps: int = 1) -> None:
        """Advance by a number of integration steps."""
        for _ in range(steps):
            if self.diverged:
                return
            self._step()

    def _step(self) -> None:
        r, h = self.robot, self.settings.step
        d = self.drives
        d.advance(self.time, self.joints, h)
        motors, stops = drive_step(self.gains, self.joints, self.joint_velocity, d.q_ref, d.v_ref, r.lower, r.upper, h)
        gain = d.driven * motors.gain
        motors = DriveStep(d.driven * motors.torque + d.effort, gain, self.gains.rotor + gain)
        if self.contact is not None or self.pushes:
            pin.forwardKinematics(self.model, self.data, self.q, self.v)
        if self.contact is not None:
            self.contact.apply(self.data, self._f_ext)
        self._all_ext = self._with_pushes() if self.pushes else self._f_ext
        torque, armature = motors.torque + stops.torque, motors.armature + stops.armature
        a = self._forward_dynamics(torque, armature)
        reached = motors.reached(a[r.iv :])
        limit = self.gains.effort
        over = np.abs(reached) > limit
        if over.any():  # those motors give their limit instead, whatever the velocity does
            clipped = np.clip(reached, -limit, limit)
            torque = np.where(over, clipped + stops.torque, torque)
            armature = np.where(over, self.gains.rotor + stops.armature, armature)
            a = self._forward_dynamics(torque, armature)
            reached = np.where(over, clipped, motors.reached(a[r.iv :]))
        v = self.v + h * a
        q = pin.integrate(self.model, self.q, h * v)
        if self._fails(q, v):
            return
        self.q, self.v, self.acceleration = q, v, a
        self.torque = np.clip(reached, -limit, limit)
        self.time += h

    def _forward_dynamics(self, torque: np.ndarray, armature: np.ndarray) -> np.ndarray:
        iv = self.robot.iv
        self._tau[iv:], self._armature[iv:] = torque, armature
        self.model.armature = self._armature
        return pin.aba(self.model, self.data, self.q, self.v, self._tau, self._all_ext).copy()

    def _with_pushes(self) -> pin.StdVec_Force:
        total = pin.StdVec_Force(self._f_ext)
        for p in self.pushes.active(self.time):
            total[p.joint] = total[p.joint] + p.in_joint(self.data.oMi[p.joint].rotation)
        return total

    def foot_wrenches(self) -> dict[str, np.ndarray]:
        """See `engine.Engine.foot_wrenches`."""
        if self.contact is None:
            return self.soles.no_wrenches()
        pin.forwardKinematics(self.model, self.data, self.q)
        points = [
            self.data.oMi[j].act(c) for j, foot in zip(self.soles.joints, self.soles.corners, strict=True) for c in foot
        ]
        forces = self.contact.force
        return self.soles.wrenches(self.data, ((k // 4, points[k], forces[k]) for k in range(len(points))))
