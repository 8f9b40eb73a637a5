"""The simulated world: one robot, its drives, the ground, gravity, and a fixed-step integrator."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pinocchio as pin

from humanoid_control.errors import ConfigError
from humanoid_control.robots import Robot
from humanoid_control.simulation.contact import GroundContact, GroundSettings
from humanoid_control.simulation.drives import DriveGains, default_gains, drive_step


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


class World:
    """Integrates one robot under position-controlled drives (semi-implicit Euler, drives implicit).

    Attributes:
        q (nq,), v (nv,): state. time [s]. torque: (n,) motor torques of the last step [N m].
        acceleration: (nv,) of the last step.
        diverged: the state stopped being a number; the world then keeps its last good state until `reset`.
    """

    def __init__(self, robot: Robot, settings: WorldSettings | None = None, gains: DriveGains | None = None) -> None:
        self.robot, self.settings = robot, settings or WorldSettings()
        if not 0 < self.settings.step <= 0.01:
            raise ConfigError(f"simulation step must be between 0 and 0.01 s, got {self.settings.step:g}")
        self.model = robot.model.copy()
        self.model.gravity.linear = np.array([0.0, 0.0, -self.settings.gravity])
        self.data = self.model.createData()
        self.gains = gains or default_gains(robot)
        self.contact = GroundContact(robot, self.settings.ground) if robot.base == "floating" else None
        self._f_ext = pin.StdVec_Force()
        for _ in range(self.model.njoints):
            self._f_ext.append(pin.Force.Zero())
        self._tau = np.zeros(robot.nv)
        self._armature = np.zeros(robot.nv)
        self.reset()

    def reset(self, joints: np.ndarray | str = "neutral") -> None:
        """Put the robot at rest in a posture, standing where it floats, commanded to stay there."""
        r = self.robot
        self.q, self.v = r.q(joints), np.zeros(r.nv)
        self.q_ref, self.v_ref = r.joints(self.q).copy(), np.zeros(r.n)
        self.time, self.diverged, self._commanded = 0.0, False, 0.0
        self.torque, self.acceleration = np.zeros(r.n), np.zeros(r.nv)
        if self.contact is not None:
            self.contact.reset()

    @property
    def joints(self) -> np.ndarray:
        """Joint angles (n,) [rad]."""
        return self.q[self.robot.iq :]

    @property
    def joint_velocity(self) -> np.ndarray:
        """Joint velocities (n,) [rad/s]."""
        return self.v[self.robot.iv :]

    def command(self, positions: np.ndarray, velocities: np.ndarray | None = None) -> None:
        """Set what the drives aim at from now on; values outside the limits are clipped, NaN entries change nothing.

        Between commands the reference moves on with the commanded velocity, for at most `coast`.

        Args:
            positions: (n,) [rad].
            velocities: (n,) [rad/s], default 0.
        """
        r = self.robot
        velocities = np.zeros(r.n) if velocities is None else velocities
        good = np.isfinite(positions) & np.isfinite(velocities)
        self.q_ref = np.where(good, np.clip(positions, r.lower, r.upper), self.q_ref)
        self.v_ref = np.where(good, np.clip(velocities, -r.velocity, r.velocity), 0.0)
        self._commanded = self.time

    def step(self, steps: int = 1) -> None:
        """Advance by a number of integration steps."""
        for _ in range(steps):
            if self.diverged:
                return
            self._step()

    def _step(self) -> None:
        r, h = self.robot, self.settings.step
        if self.time - self._commanded < self.settings.coast:
            self.q_ref = np.clip(self.q_ref + h * self.v_ref, r.lower, r.upper)
        else:
            self.v_ref = np.zeros(r.n)
        motors, stops = drive_step(
            self.gains, self.joints, self.joint_velocity, self.q_ref, self.v_ref, r.lower, r.upper, h
        )
        if self.contact is not None:
            pin.forwardKinematics(self.model, self.data, self.q, self.v)
            self.contact.apply(self.data, self._f_ext)
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
        if not (np.isfinite(q).all() and np.abs(v).max() < 1e4):
            self.diverged = True
            return
        self.q, self.v, self.acceleration = q, v, a
        self.torque = np.clip(reached, -limit, limit)
        self.time += h

    def _forward_dynamics(self, torque: np.ndarray, armature: np.ndarray) -> np.ndarray:
        iv = self.robot.iv
        self._tau[iv:], self._armature[iv:] = torque, armature
        self.model.armature = self._armature
        return pin.aba(self.model, self.data, self.q, self.v, self._tau, self._f_ext).copy()

    def stored_energy(self) -> float:
        """Kinetic plus potential energy of the links [J]."""
        pin.computeAllTerms(self.model, self.data, self.q, self.v)
        kinetic = float(pin.computeKineticEnergy(self.model, self.data))
        return kinetic + float(pin.computePotentialEnergy(self.model, self.data))
