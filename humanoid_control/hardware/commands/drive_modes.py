"""Joints whose drives follow velocities or torques, and commands that are velocities or torques.

The reference of every joint is a position inside the limits, whatever its drive follows: a commanded velocity moves
it, a commanded torque lets it go along with the joint. So a joint comes to rest, holds, and is supervised in one way.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from humanoid_control.hardware.commands.command_stream import DirectCommands
from humanoid_control.hardware.commands.limiter import CommandLimits, Impedance, LimiterReference
from humanoid_control.hardware.transport import Mode

HOLD_RATE = 5.0  # [1/s] at which a drive that follows velocities is led back to its reference
SOFT_BAND = 0.1  # share of the speed limit over which a torque that would exceed it turns round
RETURN_RATE = 10.0  # [1/s] at which a joint that is pushed beyond its range must come back


class DriveModes:
    """The part of a driver for joints that are not position controlled by their drives.

    Attributes:
        by_velocity, by_torque: (n,) True where the drive of a joint follows velocities, torques.
        any: there are such joints.
    """

    def __init__(self, modes: Sequence[Mode], limits: CommandLimits, gains: Impedance) -> None:
        """Prepare.

        Args:
            modes: of n joints. limits: of them, live. gains: with which a joint is held whose drive follows torques.
        """
        self.by_velocity = np.array([m is Mode.VELOCITY for m in modes], dtype=bool)
        self.by_torque = np.array([m is Mode.EFFORT for m in modes], dtype=bool)
        self.any = bool(self.by_velocity.any() or self.by_torque.any())
        self._limits, self._gains = limits, gains
        self._pushed = np.zeros(len(self.by_velocity), dtype=bool)
        self._torque = np.zeros(len(self.by_velocity))

    def aim(
        self, direct: DirectCommands, now: float, share: float, ref: LimiterReference, step: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Targets (n,) [rad] and their speeds (n,) [rad/s] of joints that are commanded velocities; else NaN.

        Args:
            direct: commands without positions. now: monotonic time [s]. share: of the commands, while blending.
            ref: of the last cycle. step: of the cycle [s].
        """
        v, tau = direct.at(now)
        self._pushed[:] = np.isfinite(tau)
        self._torque[:] = np.where(self._pushed, share * tau, 0.0)
        return ref.q + share * v * step, share * v

    def release(self) -> None:
        """No joint is commanded a torque."""
        self._pushed[:] = False

    def follow(self, q: np.ndarray, v: np.ndarray, ref: LimiterReference) -> None:
        """Let the reference of joints that are commanded torques go along with them, inside limits.

        Args:
            q, v: (n,) measured [rad], [rad/s]. ref: changed in place.
        """
        rows = self._pushed & np.isfinite(q) & np.isfinite(v)
        if rows.any():
            most = self._limits.velocity[rows]
            ref.q[rows], ref.v[rows], ref.clipped[rows] = q[rows], np.clip(v[rows], -most, most), False

    def outputs(
        self, q: np.ndarray, v: np.ndarray, ref: LimiterReference, tau: np.ndarray, shares: tuple[float, float]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Velocities (n,) [rad/s] and torques (n,) [N m] for all drives.

        A drive that follows velocities gets v_ref + k (q_ref - q), one that follows torques the commanded torque, or
        tau + kp (q_ref - q) + kd (v_ref - v); each inside its limits.

        Args:
            q, v: (n,) measured [rad], [rad/s]; NaN: not measured. ref: of this cycle.
            tau: (n,) feed-forward [N m]. shares: of kp and kd.
        """
        away, slower = np.nan_to_num(ref.q - q, nan=0.0), np.nan_to_num(ref.v - v, nan=0.0)
        most = self._limits.velocity
        speed = np.where(self.by_velocity, np.clip(ref.v + HOLD_RATE * away, -most, most), ref.v)
        held = tau + shares[0] * self._gains.kp * away + shares[1] * self._gains.kd * slower
        torque = np.where(self._pushed, self._torque, held)
        low, high = torque_bounds(q, v, self._limits)
        return speed, np.where(self.by_torque, np.clip(torque, low, high), tau)


def torque_bounds(q: np.ndarray, v: np.ndarray, limits: CommandLimits) -> tuple[np.ndarray, np.ndarray]:
    """Least and greatest torque (n,) [N m] that keep joints inside effort, speed and range.

    The bounds of a soft joint limit: the torque that drives a joint on falls to zero at the speed from which the joint
    can brake before the end of its range, and turns round above it. Beyond its range a joint must come back.

    Args:
        q, v: (n,) measured [rad], [rad/s]; NaN: not measured, and only the effort is limited.
        limits: of the joints.
    """
    most, fastest = limits.effort, limits.velocity
    band = SOFT_BAND * fastest

    def allowed(room: np.ndarray) -> np.ndarray:
        braking = np.sqrt(2 * limits.acceleration * np.maximum(room, 0.0))
        return np.clip(np.where(room >= 0, braking, RETURN_RATE * room), -fastest, fastest)

    up = most * (allowed(limits.upper - q) - v) / band
    down = most * (-allowed(q - limits.lower) - v) / band
    unknown = ~(np.isfinite(up) & np.isfinite(down))
    low, high = np.clip(down, -most, most), np.clip(up, -most, most)
    return np.where(unknown, -most, np.minimum(low, high)), np.where(unknown, most, np.maximum(low, high))
