"""Joints commanded with gains: limited in torque only."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from humanoid_control.errors import ConfigError
from humanoid_control.hardware.commands.command_stream import JointCommand
from humanoid_control.hardware.commands.gained_command import DESCENT, SILENCE, GainedCommand, Gains
from humanoid_control.hardware.commands.setpoint import Setpoint
from humanoid_control.hardware.power import MOVING, PowerState
from humanoid_control.hardware.transmission import JointReading
from humanoid_control.hardware.transport import Mode

TAKE_OVER = 0.3  # [s] transition from the holding gains to commanded gains
DAMPING = 2.0  # [N m s/rad] default damping while lowering
SLOWEST = 0.0025  # [s] longest driver period that closes the loop of torque drives

# (targets q, v, tau, kp, kd (5, n); measured q, v (2, n)) -> permitted torque (n,) [N m]
TorqueLimit = Callable[[np.ndarray, np.ndarray], np.ndarray]


class GainedJoints:
    """Joints of one driver under gains.

    Impedance drives get targets and gains, or the limited torque around the measured state. For torque drives the
    driver closes the loop. Others take no gains.

    Attributes:
        limit: torque limit; None: effort limits.
        acted: cycles changed by the limit.
    """

    def __init__(
        self, names: Sequence[str], modes: Sequence[Mode], setpoint: Setpoint, joints: JointReading, effort: np.ndarray,
        period: float,
    ) -> None:  # fmt: skip
        self._names, self._setpoint, self._joints, self._effort = tuple(names), setpoint, joints, effort
        self._by_torque = np.array([m is Mode.EFFORT for m in modes], dtype=bool)
        self._takes = np.array([m is Mode.IMPEDANCE for m in modes], dtype=bool)
        if period <= SLOWEST:
            self._takes |= self._by_torque
        self.command = GainedCommand(len(names), np.full(len(names), DAMPING))
        self.limit: TorqueLimit | None = None
        self._since: float | None = None  # start of motion under gains [s]
        self.acted = self.cycles = 0

    @property
    def any(self) -> bool:
        """True if joints are under gains."""
        return self.command.any

    @property
    def takes_any(self) -> bool:
        """True if a drive takes gains."""
        return bool(self._takes.any())

    def set_damping(self, damping: np.ndarray) -> None:
        """Set the damping while lowering (n,) [N m s/rad]."""
        self.command = GainedCommand(len(self._names), damping, SILENCE)

    def check(self, gains: Gains) -> None:
        """Check that the drives take gains.

        Raises:
            ConfigError: naming the first joint without.
        """
        wrong = np.flatnonzero(np.isfinite(gains.kp) & ~self._takes)
        if len(wrong):
            raise ConfigError(
                f"joint_gains: the drive of {self._names[wrong[0]]} does not accept gains: it needs mode impedance, "
                "or effort "
                "with a driver of 400 Hz or more"
            )

    def take(self, command: JointCommand, gains: Gains | None, now: float) -> JointCommand:
        """Take joints under gains out of a command."""
        if gains is None:
            self.command.release()
            return command
        which = self.command.take(command, gains, now)
        q, v, tau = (np.where(which, np.nan, values) for values in command)
        return JointCommand(q, v, tau)

    def release(self, joints: np.ndarray) -> None:
        """Release joints that stopped alone (n,)."""
        self.command.which &= ~joints
        self.command.any = bool(self.command.which.any())

    def entered(self, state: PowerState, now: float) -> None:
        """Follow the power state: lower in STOPPING, release without motion."""
        if state is PowerState.STOPPING and self.any:
            self.command.last = min(self.command.last, now - self.command.silence)
        elif state not in MOVING:
            self.command.release()

    def comes_down(self, now: float) -> bool:
        """Return True while joints are lowered; the driver waits."""
        return self.any and now < self.command.last + self.command.silence + DESCENT

    def fill(self, now: float, moving: bool) -> None:
        """Fill the output; `now` [s]."""
        c, s, j = self.command, self._setpoint, self._joints
        if not c.any or not (moving or self._since is not None):
            self._since = None
            return
        c.update(now)
        self._since = now if self._since is None else self._since
        share = min((now - self._since) / TAKE_OVER, 1.0)
        held, given = (s.q, s.v, s.tau, s.kp, s.kd), (c.q, c.v, c.tau, c.kp, c.kd)
        target = np.array(given) if share >= 1.0 else blend(held, given, share)
        q, v, tau, kp, kd = target
        known = np.isfinite(j.q) & np.isfinite(j.v)
        measured = np.where(known, j.q, q), np.where(known, j.v, v)
        raw = kp * (q - measured[0]) + kd * (v - measured[1]) + tau
        if self.limit is None:
            allowed = np.clip(raw, -self._effort, self._effort)
        else:
            allowed = self.limit(target, np.array(measured))
        changed = c.which & known & (allowed != raw)
        self.cycles += 1
        self.acted += bool(changed.any())
        lost = c.which & ~known  # position unknown: damping only
        rows = c.which
        s.q[rows] = np.where(changed, measured[0], q)[rows]
        s.v[rows] = np.where(lost, 0.0, np.where(changed, measured[1], v))[rows]
        s.tau[rows] = np.where(lost, 0.0, np.where(changed | self._by_torque, allowed, tau))[rows]
        s.kp[rows], s.kd[rows] = np.where(lost, 0.0, kp)[rows], kd[rows]
        follows = rows & known
        s.reference.q[follows], s.reference.v[rows] = j.q[follows], 0.0  # start of the next motion when commands cease


def blend(a: Sequence[np.ndarray], b: Sequence[np.ndarray], share: float) -> np.ndarray:
    """Blend targets q, v, tau, kp, kd (5, n) so that torques blend linearly."""
    (qa, va, ta, pa, da), (qb, vb, tb, pb, db) = a, b
    # the torque of stiffness and damping is linear in kp q and kd v
    kp, kd = (1.0 - share) * pa + share * pb, (1.0 - share) * da + share * db
    with np.errstate(divide="ignore", invalid="ignore"):
        q = np.where(kp > 0, ((1.0 - share) * pa * qa + share * pb * qb) / kp, qb)
        v = np.where(kd > 0, ((1.0 - share) * da * va + share * db * vb) / kd, vb)
    return np.array((q, v, (1.0 - share) * ta + share * tb, kp, kd))
