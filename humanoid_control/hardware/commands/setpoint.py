"""Setpoint of all joints in each cycle: commands, blend, limits, output.

Compiled and allocation-free.
"""

from __future__ import annotations

import enum
from typing import NamedTuple

import numpy as np

from humanoid_control.compiled.array_types import F1, F2
from humanoid_control.compiled.jit import kernel
from humanoid_control.compiled.packed import Packed, Table, unpack
from humanoid_control.hardware.commands.command_stream import CommandInterpolator
from humanoid_control.hardware.commands.limiter import (
    CommandLimits,
    Impedance,
    LimiterReference,
    limit_effort,
    limit_step,
)
from humanoid_control.hardware.transmission import JointReading


class Aim(enum.IntEnum):
    """Goal of the reference."""

    MEASURED = 0  # follow measured positions, without power
    REST = 1  # decelerate to rest
    TARGET = 2  # follow commands


MEASURED, TARGET = int(Aim.MEASURED), int(Aim.TARGET)


class SetpointColumns(NamedTuple):
    """Arrays (n,) of n joints: q [rad], v [rad/s], tau [N m].

    Attributes:
        commanded: present commands (2, n) [rad], [rad/s].
        target: last target [rad]; NaN: none.
        goal: position and velocity goal of the limiter (2, n) [rad], [rad/s].
        feed: commanded torque.
        sent: reference of the last cycle [rad].
        clipped: time at limits [s].
        behind: distance to a goal that counts as clipped [rad].
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
    """Set the goal from commands; True without changes if the target would step.

    Target: commands if running, else hold + share (commands - hold).

    Args:
        hold: start of the blend (n,) [rad].
        step: limit [rad].
    """
    s = unpack(table, SetpointColumns)
    q, target = s.commanded[0], s.target
    # first pass: test all joints before any change, as a step must leave the state untouched
    for i in range(q.shape[0]):
        if running:
            if abs(q[i] - s.reference.q[i]) > step:
                return True
        elif abs((hold[i] + share * (q[i] - hold[i]) if np.isfinite(q[i]) else hold[i]) - target[i]) > step:
            return True
    # second pass: apply
    for i in range(q.shape[0]):
        if running:
            target[i], s.goal[1, i] = q[i], s.commanded[1, i]
        else:
            blended = hold[i] + share * (q[i] - hold[i]) if np.isfinite(q[i]) else hold[i]
            # while blending, the velocity is that of the blended target
            s.goal[1, i] = (blended - target[i]) / s.period
            target[i] = blended
        s.goal[0, i] = target[i]
    return False


@kernel
def advance_reference(table: Table[SetpointColumns], aim: int) -> None:
    """Advance the reference by one cycle within limits."""
    s = unpack(table, SetpointColumns)
    ref = s.reference
    for i in range(ref.q.shape[0]):
        # the samples of the next cycle belong to this reference
        s.sent[i] = ref.q[i]
        # without power the reference follows the joints: no jump at power-on
        if aim == MEASURED:
            ref.v[i], ref.clipped[i] = 0.0, False
            if np.isfinite(s.q[i]):
                ref.q[i] = s.q[i]
        # a NaN goal lets the limiter decelerate to rest
        if aim != TARGET:
            s.target[i] = s.goal[0, i] = s.goal[1, i] = np.nan
    if aim != MEASURED:
        limit_step(s.goal[0], s.goal[1], ref, s.limits, s.period)


@kernel
def fill_setpoint(table: Table[SetpointColumns], feed: float, kp: float, kd: float) -> None:
    """Fill the output; `feed`, `kp`, `kd`: shares of torque and gains."""
    s = unpack(table, SetpointColumns)
    ref = s.reference
    for i in range(ref.q.shape[0]):
        far = abs(s.goal[0, i] - ref.q[i]) > s.behind  # a shorter distance is the range margin, not a clipped command
        s.clipped[i] = s.clipped[i] + s.period if ref.clipped[i] and far else 0.0
        s.tau[i] = feed * s.feed[i] if np.isfinite(s.feed[i]) else 0.0
        s.v_out[i], s.kp[i], s.kd[i] = ref.v[i], kp * s.gains.kp[i], kd * s.gains.kd[i]
    # moves q_out towards the measured position where the torque limit requires it
    limit_effort(ref.q, s.tau, (s.q, s.v), ref.v, s.gains, s.limits, s.q_out)


class Setpoint:
    """Setpoint of n joints.

    Attributes:
        q: to send (n,), as v, tau, kp, kd.
        clipped: time at limits (n,) [s].
        max_step: between commands [rad]; larger steps are blended.
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
        """Track present commands; False if one steps."""
        self._commands.fill(now, self._commanded)
        return not follow_commands(self._packed.table, self._commanded[0], 1.0, True, self.max_step)

    def blend(self, now: float, hold: np.ndarray, share: float) -> bool:
        """Track a share of the way to the commands; False on a step."""
        self._commands.fill(now, self._commanded)
        return not follow_commands(self._packed.table, hold, share, False, self.max_step)

    def aim_at(self, q: np.ndarray) -> None:
        """Set targets q (n,) [rad] at any distance, without velocity."""
        self._target[:] = self.goal[0] = q
        self.goal[1] = np.nan

    def advance(self, aim: Aim) -> None:
        """Advance the reference by one cycle."""
        advance_reference(self._packed.table, int(aim))

    def fill(self, feed: float, kp: float, kd: float) -> None:
        """Fill the output; feed, kp, kd: shares of torque and gains."""
        fill_setpoint(self._packed.table, feed, kp, kd)
