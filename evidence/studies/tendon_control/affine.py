"""MuJoCo's affine actuators on the tendons, which users of MuJoCo have without winches: T = f + kp (l - l_ref)."""

from __future__ import annotations

import numpy as np

from humanoid_control.robots import Robot
from humanoid_control.robots.tendons import tendon_geometry
from humanoid_control.simulation.settings import WorldSettings
from humanoid_control.simulation.worlds.mujoco_winches import MujocoWinchWorld
from humanoid_control.tendons.control.holdable import HoldableSet, tension_range

BIAS = 10.0  # [N] of every tendon, where no distribution says more


class AffineTendonWorld(MujocoWinchWorld):
    """A robot in MuJoCo whose tendons are pulled by affine actuators, from rest in its neutral posture.

    Attributes:
        kp: [N/m]. forward: (M,) f [N]. lengths: (M,) l_ref of the whole paths [m].
    """

    def __init__(self, robot: Robot, kp: float) -> None:
        """Create the world; kp: of all actuators [N/m]."""
        super().__init__(robot, WorldSettings(drives="winches", step=1e-3))
        self.kp, self.geometry = kp, tendon_geometry(robot)
        self.joints_crossed = np.array([robot.joint_index(n) for n in self.geometry.joint_names])
        self.most = tension_range(self.geometry)[1]
        m, d = len(self.geometry.tendon_names), len(self.joints_crossed)
        self.forward, self.lengths, self._arms = np.full(m, BIAS), np.zeros(m), np.zeros((m, d))
        self.lead(robot.postures["neutral"][self.joints_crossed])

    def lead(self, theta: np.ndarray) -> None:
        """Set the reference lengths to those at joint angles theta (D,) [rad]."""
        self.geometry.raw_into(np.ascontiguousarray(theta), self.lengths, self._arms)

    def _set_forces(self, h: float) -> None:
        d = self.mj_data
        self.mujoco.mj_fwdPosition(self.mj_model, d)
        pull = np.clip(self.forward + self.kp * (d.ten_length - self.lengths), 0.0, self.most)
        d.ctrl[self.robot.n :] = pull


def hold_by_affine(robot: Robot, goal: np.ndarray, kp: float, distributed: bool) -> dict[str, float]:
    """Errors of a posture that is led to in 1 s and held for 1 s.

    Args:
        robot: with tendons and a fixed base. goal: (D,) [rad]. kp: of the actuators [N/m].
        distributed: f is the distribution that holds the posture against gravity, not `BIAS` alone.

    Returns:
        hold: median over the joints of the last half second, worst: of any joint [deg].
    """
    world = AffineTendonWorld(robot, kp)
    held = HoldableSet(robot.model, world.geometry, held=robot.q("neutral"))
    begin, errors = robot.postures["neutral"][world.joints_crossed], []
    for tick in range(500):
        x = min(tick / 250, 1.0)
        reference = begin + (goal - begin) * x**3 * (10 - 15 * x + 6 * x**2)
        world.lead(reference)
        if distributed:
            world.forward[:] = held.margin(reference).tensions
        world.step(4)
        if tick >= 375:
            errors.append(np.degrees(np.abs(world.joints[world.joints_crossed] - reference)))
    return {"hold": float(np.median(errors)), "worst": float(np.max(errors))}
