"""A world in which tendons hold the robot at constant tensions, so that it can be moved by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pinocchio as pin

from humanoid_control.robots import Robot
from humanoid_control.simulation.drives.position_control import DriveGains, default_gains
from humanoid_control.simulation.drives.tendon_plant import TendonPlant, TendonStates
from humanoid_control.simulation.settings import WorldSettings
from humanoid_control.simulation.worlds.multibody_world import MultibodyWorld

SWING = 5.0  # [rad/s] natural frequency for which damping ratio 1 is critical; a choice, for nothing pulls a joint back


class TensionWorld(MultibodyWorld):
    """One robot whose tendons pull with constant tensions T: joint torques -G(q)^T T; nothing holds a posture.

    Joints that no tendon crosses keep their ideal drives. The tendons' torques are those at the beginning of a step;
    damping and the stops at the ends of the ranges are implicit, as in `MultibodyWorld`.

    Attributes:
        plant: the tendons. tensions: (M,) [N], in the order of `plant.names`, to be changed at any time.
    """

    tensions: np.ndarray

    def __init__(self, robot: Robot, settings: WorldSettings | None = None, gains: DriveGains | None = None) -> None:
        """Build the world.

        Args:
            settings: `tension` of every tendon; 0: of each the smallest that together hold the neutral posture.
            gains: default: `tension_gains`.

        Raises:
            RobotError, UnknownNameError: the robot has no tendons, or a file of them with an error.
        """
        given = settings or WorldSettings()
        self.plant = TendonPlant(robot, given.moment_arm_error, given.seed)
        super().__init__(robot, given, gains or tension_gains(robot))
        self.uncommanded = self.plant.joints
        self.set_tension(given.tension)

    def set_tension(self, tension: float) -> None:
        """See `engine.Engine.set_tension`."""
        super().set_tension(tension)
        same = np.full(len(self.plant.names), tension)
        self.tensions = same if tension else self.holding(self.robot.postures["neutral"])

    def holding(self, joints: np.ndarray) -> np.ndarray:
        """The smallest tensions (M,) [N] that hold a posture (n,) [rad] against gravity, or come as near to it as any.

        The balance may be an unstable one; then the robot leaves it at the slightest push.
        """
        weight = pin.computeGeneralizedGravity(self.model, self.data, self.robot.q(joints))
        return self.plant.states(joints, weight[self.robot.iv :]).tensions

    def step(self, steps: int = 1) -> None:
        """Advance by a number of integration steps; nothing happens while `diverged`."""
        moved = self.plant.joints
        for _ in range(steps):
            if self.diverged:
                return
            pull = self.plant.torques(self.joints, self.tensions)
            self.drives.effort[moved] = pull
            super().step(1)
            self.torque[moved] = pull

    def tendon_states(self) -> TendonStates:
        """See `engine.Engine.tendon_states`."""
        return TendonStates(self.plant.names, self.plant.measure(self.joints)[0].copy(), self.tensions.copy())


def tension_gains(robot: Robot, stiffness: float = 60.0, damping_ratio: float = 1.0) -> DriveGains:
    """`default_gains`, but joints that tendons cross have neither motor nor rotor, only damping and their stops.

    Their damping is 2 * damping_ratio * inertia * 5 rad/s, with the inertia that each moves in the neutral posture.

    Raises:
        RobotError, UnknownNameError: the robot has no tendons, or a file of them with an error.
    """
    gains = default_gains(robot, stiffness, damping_ratio)
    free = TendonPlant(robot).joints
    inertia = np.diag(pin.crba(robot.model, robot.model.createData(), robot.q("neutral")))[robot.iv :]
    kp, kd, rotor, effort = gains.kp.copy(), gains.kd.copy(), gains.rotor.copy(), gains.effort.copy()
    kp[free], kd[free], rotor[free], effort[free] = 0.0, 2 * damping_ratio * SWING * inertia[free], 0.0, np.inf
    return replace(gains, kp=kp, kd=kd, rotor=rotor, effort=effort)
