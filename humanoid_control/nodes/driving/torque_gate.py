"""The gate on torques in the driver of a robot: joints of the drives to those of the whole robot, and back."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from humanoid_control.errors import HumanoidError
from humanoid_control.hardware.driver import Driver
from humanoid_control.policy import PolicyTargets, TorqueGate
from humanoid_control.policy.gate import GateSettings, named_pairs
from humanoid_control.policy.supervision import damping_gains
from humanoid_control.robots import Robot, load_robot
from humanoid_control.simulation import quasi_direct_armature


class DriverGate:
    """Limit of the torques of commands with gains, for `GainedJoints.limit`.

    Attributes:
        gate: of the robot with all of its joints. rows: of the driven joints in it.
    """

    def __init__(self, robot: Robot, names: Sequence[str], posture: np.ndarray, may_touch: str = "") -> None:
        """Prepare, and load what is compiled.

        Args:
            robot: with a base that floats. names: of n driven joints. posture: (all joints,) of the others [rad].
            may_touch: pairs of links that are left alone, see `named_pairs`.

        Raises:
            ConfigError, UnknownNameError: pairs with a mistake.
        """
        settings = GateSettings(exempt=named_pairs(may_touch, robot))
        self.gate = TorqueGate(robot, quasi_direct_armature(robot), settings)
        self.rows = np.array([robot.index[name] for name in names], dtype=int)
        self._targets, self._q, self._v = np.zeros((5, robot.n)), posture.copy(), np.zeros(robot.n)
        self._targets[0] = posture
        n = len(self.rows)
        self(np.zeros((5, n)), np.array([posture[self.rows], np.zeros(n)]))
        self.gate.reset()

    def __call__(self, target: np.ndarray, measured: np.ndarray) -> np.ndarray:
        """Torque (n,) allowed [N m]; see `gained_joints.TorqueLimit`."""
        self._targets[:, self.rows] = target
        self._q[self.rows], self._v[self.rows] = measured
        return self.gate.torque(PolicyTargets(*self._targets), self._q, self._v)[self.rows]


def install_gate(driver: Driver, robot: str, posture: np.ndarray, gate: bool, may_touch: str = "") -> str:
    """Let commands with gains pass the gate, and joints come down with the damping of the whole robot.

    Args:
        robot: name or path of it. posture: (all joints,) of joints that are not driven [rad]. gate: use it.
        may_touch: pairs of links that it leaves alone.

    Returns:
        Why there is no gate; empty: there is one, or none was wanted, or no drive takes gains.

    Raises:
        ConfigError, UnknownNameError: pairs with a mistake.
    """
    if not driver.gained.takes_any:
        named_pairs(may_touch, driver.hardware.robot)  # a typo is refused all the same
        return ""
    try:
        whole = load_robot(robot, "floating")
    except HumanoidError as e:
        return f"commands with gains pass no gate: {e}"
    limit = DriverGate(whole, driver.hardware.names, posture, may_touch)
    driver.gained.set_damping(damping_gains(whole)[limit.rows])
    driver.gained.limit = limit if gate else None
    return ""
