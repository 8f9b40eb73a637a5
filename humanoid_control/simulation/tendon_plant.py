"""The tendons of a simulated robot: how long their ways are, and what they pull to give the torques of the drives."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from humanoid_control.ik.box_qp import solve_box_qp
from humanoid_control.robots import Robot
from humanoid_control.robots.tendon_file import tendon_geometry

PRETENSION = 10.0  # [N] of a tendon whose file names no least tension; a wire without tension leaves its pulley
STRONGEST = 1e6  # [N] of a tendon whose file names no greatest tension
PREFERENCE = 1e-6  # weight of small tensions, as a share of the mean squared moment arm


@dataclass(frozen=True)
class TendonStates:
    """What is true of a robot's tendons.

    Attributes:
        names: of M tendons. lengths: (M,) of the whole ways [m]. tensions: (M,) [N].
    """

    names: tuple[str, ...]
    lengths: np.ndarray
    tensions: np.ndarray


class TendonPlant:
    """Tendons that move a robot's joints in place of its drives.

    A tension t pulls its tendon shorter, so that the tendons give the torques -G^T t (virtual work, with the moment
    arms G = dl / dtheta). Of all tensions in their range those are taken which come nearest to the torques of the
    drives, and of these the smallest ones; the least tension keeps every tendon taut.

    Attributes:
        geometry: of the tendons over the joints that they cross. least, most: (M,) range of the tensions [N].
    """

    def __init__(self, robot: Robot) -> None:
        """Prepare.

        Raises:
            RobotError, UnknownNameError: the robot has no tendons, or a file of them with an error.
        """
        self.robot, self.geometry = robot, tendon_geometry(robot)
        self.names = self.geometry.tendon_names
        self._joints = np.array([robot.joint_index(name) for name in self.geometry.joint_names])
        given = np.array([(t.min_tension, t.max_tension) for t in self.geometry.tendons])
        self.least = np.where(given[:, 0] > 0, given[:, 0], np.minimum(PRETENSION, given[:, 1]))
        self.most = np.minimum(given[:, 1], STRONGEST)
        m, d = len(self.names), len(self._joints)
        self._lengths, self._arms = np.zeros(m), np.zeros((m, d))
        self._x, self._multipliers = np.zeros(m), np.zeros(m + 1)
        self._no_rows, self._no_bounds = np.zeros((1, m)), np.zeros(1)

    def states(self, joints: np.ndarray, torque: np.ndarray) -> TendonStates:
        """Lengths and tensions at joint angles (n,) [rad] under torques (n,) of the drives [N m]."""
        self.geometry.raw_into(joints[self._joints], self._lengths, self._arms)
        return TendonStates(self.names, self._lengths.copy(), self.tensions(self._arms, torque[self._joints]))

    def tensions(self, arms: np.ndarray, torque: np.ndarray) -> np.ndarray:
        """Tensions (M,) [N] for torques (D,) [N m] with moment arms (M, D) [m]: argmin |G^T t + torque|^2 in range."""
        H = arms @ arms.T
        weight = PREFERENCE * max(float(np.trace(H)) / len(H), 1e-9)
        H[np.diag_indices(len(H))] += weight
        g = arms @ torque - weight * self.least
        solve_box_qp(H, g, self.least, self.most, self._no_rows, self._no_bounds, 0, 1.0, self._x, self._multipliers)
        return self._x.copy()
