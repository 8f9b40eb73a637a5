"""Setpoint of a robot's joints: from commands through blend and limits to what the drives are told, every cycle.

Compiled and without new arrays: a cycle of a fast robot has no time for them.
"""

from __future__ import annotations

import enum
from typing import NamedTuple

import numpy as np

from humanoid_control.hardware.commands.command_stream import CommandInterpolator
from humanoid_control.hardware.commands.limiter import (
    CommandLimits,
    Impedance,
    LimiterReference,
    limit_effort,
    limit_step,
)
from humanoid_control.hardware.transmission import JointReading
from humanoid_control.jit import kernel
from humanoid_control.numerics.array_types import F1, F2
from humanoid_control.numerics.packed import Packed, Table, unpack


class Aim(enum.IntEnum):
    """Aim of the reference in a cycle."""

    MEASURED = 0  # where the joints are: they have no power
    REST = 1  # to stand still, at the acceleration limit
    TARGET = 2  # commands


MEASURED, TARGET = int(Aim.MEASURED), int(Aim.TARGET)


class SetpointColumns(NamedTuple):
    """Arrays of n joints.

    Attributes:
        commanded: (2, n) commands now [rad], [rad/s]. target: (n,) made of them last [rad]; NaN: none.
        goal: (2, n) of the limiter in this cycle [rad], [rad/s].
        reference: state of the limiter. limits: of the joints. gains: of impedance drives.
        q, v: (n,) measured. feed: (n,) torque of the commands [N m].
        sent: (n,) reference of the last cycle [rad]. clipped: (n,) time for which limits have been met [s].
        q_out, v_out: (n,) position and velocity to send [rad], [rad/s]. tau: (n,) torque to send [N m].
        kp, kd: (n,) gains to send.
        period: of the cycle [s]. behind: distance to a goal that is no clipped command yet [rad].
    """

    commanded: F2
    target: F1
    goal: F2
    reference: LimiterReference
    limits: CommandLimits
    gains: Impedance
    q: F1
    v: F1
    feed: F1
    sent: F1
    clipped: F1
    q_out: F1
    v_out: F1
    tau: F1
    kp: F1
    kd: F1
    period: float
    behind: float


@kernel
def follow_commands(table: Table[SetpointColumns], hold: np.ndarray, share: float, running: bool, step: float) -> bool:
    """Goal and its velocity from commands; True, and nothing is changed, where the target would step.

    Running, commands are the target; else hold + share (commands - hold), of joints that are commanded.

    Args:
        hold: (n,) where the blend begins [rad]. share: of the commands. step: that is too far [rad].
    """
    s = unpack(table, SetpointColumns)
    q, target = s.commanded[0], s.target
    for i in range(q.shape[0]):
        if running:
            if abs(q[i] - s.reference.q[i]) > step:
                return True
        elif abs((hold[i] + share * (q[i] - hold[i]) if np.isfinite(q[i]) else hold[i]) - target[i]) > step:
            return True
    for i in range(q.shape[0]):
        if running:
            target[i], s.goal[1, i] = q[i], s.commanded[1, i]
        else:
            blended = hold[i] + share * (q[i] - hold[i]) if np.isfinite(q[i]) else hold[i]
            s.goal[1, i] = (blended - target[i]) / s.period
            target[i] = blended
        s.goal[0, i] = target[i]
    return False


@kernel
def advance_reference(table: Table[SetpointColumns], aim: int) -> None:
    """Advance the reference by one cycle, inside all limits, to what it aims at."""
    s = unpack(table, SetpointColumns)
    ref = s.reference
    for i in range(ref.q.shape[0]):
        s.sent[i] = ref.q[i]
        if aim == MEASURED:
            ref.v[i], ref.clipped[i] = 0.0, False
            if np.isfinite(s.q[i]):
                ref.q[i] = s.q[i]
        if aim != TARGET:
            s.target[i] = s.goal[0, i] = s.goal[1, i] = np.nan
    if aim != MEASURED:
        limit_step(s.goal[0], s.goal[1], ref, s.limits, s.period)


@kernel
def fill_setpoint(table: Table[SetpointColumns], feed: float, kp: float, kd: float) -> None:
    """Fill what the drives are told: shares of the torques of the commands and of the gains."""
    s = unpack(table, SetpointColumns)
    ref = s.reference
    for i in range(ref.q.shape[0]):
        far = abs(s.goal[0, i] - ref.q[i]) > s.behind  # else it is kept off the end of its range by the margin
        s.clipped[i] = s.clipped[i] + s.period if ref.clipped[i] and far else 0.0
        s.tau[i] = feed * s.feed[i] if np.isfinite(s.feed[i]) else 0.0
        s.v_out[i], s.kp[i], s.kd[i] = ref.v[i], kp * s.gains.kp[i], kd * s.gains.kd[i]
    limit_effort(ref.q, s.tau, (s.q, s.v), ref.v, s.gains, s.limits, s.q_out)


class Setpoint:
    """Setpoint of n joints.

    Attributes:
        reference: of the limiter; see `LimiterReference`.
        sent: (n,) its positions in the last cycle [rad], for which the samples of this one are taken.
        goal: (2, n) to which the reference goes in this cycle [rad], [rad/s].
        q, v, tau, kp, kd: (n,) to send: position [rad], velocity [rad/s], torque [N m], gains.
        clipped: (n,) time for which limits have kept the reference away from its target [s].
        max_step: between commands [rad]; what is farther away is blended to.
    """

    def __init__(
        self,
        joints: JointReading,
        commands: CommandInterpolator,
        limits: CommandLimits,
        gains: Impedance,
        max_step: float,
        period: float,
        behind: float,
    ) -> None:
        """Prepare.

        Args:
            joints: measured. commands: taken from outside. limits, gains: of the joints.
            max_step: as above. period: of the cycle [s].
            behind: distance to a goal that is no clipped command yet [rad].
        """
        n = len(joints.q)
        self.reference = LimiterReference(np.zeros(n), np.zeros(n), np.zeros(n, dtype=bool))
        self.sent, self.clipped, self.q, self.v, self.tau, self.kp, self.kd = np.zeros((7, n))
        self.max_step, self._commands = max_step, commands
        self._commanded, self.goal = np.full((2, 2, n), np.nan)
        self._target = np.full(n, np.nan)
        self._packed = Packed(
            SetpointColumns(
                self._commanded, self._target, self.goal, self.reference, limits, gains, joints.q, joints.v,
                commands.tau, self.sent, self.clipped, self.q, self.v, self.tau, self.kp, self.kd, period, behind,
            )
        )  # fmt: skip

    def run(self, now: float) -> bool:
        """Take the commands of this time as the target; False where one has stepped away from the reference."""
        self._commands.fill(now, self._commanded)
        return not follow_commands(self._packed.table, self._commanded[0], 1.0, True, self.max_step)

    def blend(self, now: float, hold: np.ndarray, share: float) -> bool:
        """Take a share of the way from where the robot holds to the commands; False where that would be a step."""
        self._commands.fill(now, self._commanded)
        return not follow_commands(self._packed.table, hold, share, False, self.max_step)

    def aim_at(self, q: np.ndarray) -> None:
        """Take positions (n,) [rad] as the target, however far they are, with no word on their velocity."""
        self._target[:] = self.goal[0] = q
        self.goal[1] = np.nan

    def advance(self, aim: Aim) -> None:
        """Move the reference on by one cycle."""
        advance_reference(self._packed.table, int(aim))

    def fill(self, feed: float, kp: float, kd: float) -> None:
        """Fill what is sent; feed, kp, kd: shares of the torques of the commands and of the gains."""
        fill_setpoint(self._packed.table, feed, kp, kd)
