"""Torque gate in a robot driver, which knows only the driven joints."""

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
    """Torque limit of commands with gains, for `GainedJoints.limit`.

    Attributes:
        gate: gate of the whole robot.
        rows: indices of the driven joints.
    """

    def __init__(self, robot: Robot, names: Sequence[str], posture: np.ndarray, may_touch: str = "") -> None:
        """Create the gate and load compiled code.

        Args:
            robot: floating base.
            posture: positions of all joints [rad], used for joints without drives.
            may_touch: ignored link pairs, see `named_pairs`.

        Raises:
            ConfigError: if a pair is invalid.
            UnknownNameError: if a link is unknown.
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
        """Return allowed torques (n,) [N m]; see `gained_joints.TorqueLimit`."""
        self._targets[:, self.rows] = target
        self._q[self.rows], self._v[self.rows] = measured
        return self.gate.torque(PolicyTargets(*self._targets), self._q, self._v)[self.rows]


def install_gate(driver: Driver, robot: str, posture: np.ndarray, gate: bool, may_touch: str = "") -> str:
    """Install the gate for commands with gains, and the whole-body damping.

    Args:
        posture: positions of all joints [rad], for joints without drives.
        may_touch: ignored link pairs.

    Returns:
        Reason of a missing gate; empty: installed or not needed.

    Raises:
        ConfigError: if a pair is invalid.
        UnknownNameError: if a link is unknown.
    """
    if not driver.gained.takes_any:
        named_pairs(may_touch, driver.hardware.robot)  # reports a typing error anyway
        return ""
    try:
        whole = load_robot(robot, "floating")
    except HumanoidError as e:
        return f"commands with gains bypass the gate: {e}"
    limit = DriverGate(whole, driver.hardware.names, posture, may_touch)
    driver.gained.set_damping(damping_gains(whole)[limit.rows])
    driver.gained.limit = limit if gate else None
    return ""
