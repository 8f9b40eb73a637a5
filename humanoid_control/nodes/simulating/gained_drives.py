"""Joints of the simulated robot that are commanded with gains: their PD loops, at 500 Hz or more, behind the gate."""

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

LOOP = 0.002  # [s] period of the PD loops, or the period of the node where that is shorter
FARTHEST = 100.0  # [rad] of a target: beyond it there is a mistake, not a torque


class GainedDrives:
    """Torques of the joints under gains, made anew from what they measure, while the engine is stepped.

    Attributes:
        command: that holds. gate: None where torques pass without it, or before the first command.
    """

    def __init__(self, engine: Engine, gate: bool, silence: float, may_touch: str = "") -> None:
        """Prepare.

        Args:
            engine: whose joints are driven. gate: torques pass the gate. silence: see `GainedCommand` [s].
            may_touch: pairs of links that the gate leaves alone, see `named_pairs`.

        Raises:
            ConfigError, UnknownNameError: pairs with a mistake.
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
        """No joint is under gains; those that were are held where they are."""
        if self.command.any:
            self._engine.drives.hold(self.command.which, self._engine.joints)
        self.command.release()

    def take(self, position: np.ndarray | None, velocity: Any, effort: Any, gains: JointState) -> np.ndarray:
        """Take a command with gains; returns which joints (n,) are under gains now.

        Args:
            position, velocity, effort: (n,) or None; NaN: not commanded.

        Raises:
            HumanoidError: no positions, or gains with a mistake: nothing is changed.
        """
        if position is None:
            raise ConfigError("joint_gains belong to commands with positions: passed over")
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
                np.copyto(e.drives.q_ref, c.q, where=c.which)  # for those who look at what is applied
            e.step(n)
            steps -= n

    def values(self) -> dict[str, Any]:
        """For diagnostics."""
        a = self.gate.activity if self.gate is not None else None
        shares = {} if a is None else {"gate_active_percent": round(100.0 * a.share, 2), "gate_steps": a.steps}
        return {"joints_with_gains": int(self.command.which.sum()), **shares}
