"""PD loops of simulated joints commanded with gains, at 500 Hz or more, behind the gate."""

from __future__ import annotations

from typing import Any

import numpy as np
from sensor_msgs.msg import JointState

from humanoid_control.errors import ConfigError
from humanoid_control.hardware.commands.gained_command import GainedCommand, GainsReader
from humanoid_control.nodes.base.joint_gains import gains_of
from humanoid_control.policy import Limiter, PolicyTargets, TorqueGate, Unlimited
from humanoid_control.policy.gate import GateSettings, named_pairs
from humanoid_control.policy.supervision import damping_gains
from humanoid_control.simulation import Engine

LOOP = 0.002  # [s] period of the PD loops, or the node period if shorter
FARTHEST = 100.0  # [rad] bound of a plausible target


class GainedDrives:
    """Torques of joints under gains, updated while the engine steps.

    Attributes:
        gate: torque gate; None if unused or before the first command.
    """

    def __init__(self, engine: Engine, gate: bool, silence: float, may_touch: str = "") -> None:
        """Create the loops without a command.

        Args:
            silence: see `GainedCommand` [s].
            may_touch: link pairs that the gate ignores, see `named_pairs`.

        Raises:
            ConfigError: if a pair is invalid.
            UnknownNameError: if a link is unknown.
        """
        self._exempt = named_pairs(may_touch, engine.robot)
        robot = engine.robot
        self._engine, self._robot = engine, robot
        self.command = GainedCommand(robot.n, damping_gains(robot), silence)
        self._reader, self._gated = GainsReader(robot.joint_names), gate
        self._limiter: Limiter = Unlimited(robot)
        self.gate: TorqueGate | None = None
        self._steps = max(1, round(LOOP / engine.settings.step))
        self._free = np.ones(robot.n, dtype=bool)
        self._free[engine.uncommanded] = False

    def release(self) -> None:
        """Hold all joints under gains at their positions."""
        if self.command.any:
            self._engine.drives.hold(self.command.which, self._engine.joints)
        self.command.release()

    def take(self, position: np.ndarray | None, velocity: Any, effort: Any, gains: JointState) -> np.ndarray:
        """Accept a command; return the mask (n,) of joints under gains.

        Args:
            position: positions (n,) [rad]; NaN: not commanded.
            velocity: velocities (n,) [rad/s], or None.
            effort: torques (n,) [N m], or None.
            gains: message with kp and kd.

        Raises:
            HumanoidError: if positions are missing or gains invalid; nothing changes.
        """
        if position is None:
            raise ConfigError("joint_gains apply to commands with positions: ignored")
        found, nothing = self._reader.read(*gains_of(gains)), np.full(self._robot.n, np.nan)
        q = np.where(self._free & (np.abs(position) < FARTHEST), position, np.nan)
        v, tau = (nothing if x is None else x for x in (velocity, effort))
        before = self.command.which.copy()
        if self._gated and self.gate is None:
            self._limiter = self.gate = TorqueGate(
                self._robot, self._engine.gains.rotor, GateSettings(exempt=self._exempt)
            )
        now = self.command.take((q, v, tau), found, self._engine.time)
        if (before & ~now).any():
            self._engine.drives.hold(before & ~now, self._engine.joints)
        return now

    def step(self, steps: int) -> None:
        """Advance the engine by a number of its steps."""
        e, c = self._engine, self.command
        while steps > 0 and not e.diverged:
            n = min(self._steps, steps) if c.any else steps
            if c.any:
                c.update(e.time)
                targets = PolicyTargets(c.q, c.v, c.tau, c.kp, c.kd)
                e.drives.push(c.which, self._limiter.torque(targets, e.joints, e.joint_velocity))
                np.copyto(e.drives.q_ref, c.q, where=c.which)  # shows the applied command to observers
            e.step(n)
            steps -= n

    def values(self) -> dict[str, Any]:
        a = self.gate.activity if self.gate is not None else None
        shares = {} if a is None else {"gate_active_percent": round(100.0 * a.share, 2), "gate_steps": a.steps}
        return {"joints_with_gains": int(self.command.which.sum()), **shares}
