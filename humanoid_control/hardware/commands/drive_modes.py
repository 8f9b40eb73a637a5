"""Velocity and torque commands.

References are always positions inside the limits: a commanded velocity moves them, a commanded torque lets them follow
the joint. So every joint stops, holds and is supervised alike.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from humanoid_control.hardware.commands.command_stream import DirectCommands
from humanoid_control.hardware.commands.limiter import CommandLimits, Impedance, LimiterReference
from humanoid_control.hardware.transport import Mode

HOLD_RATE = 5.0  # [1/s] position feedback of a velocity drive
SOFT_BAND = 0.1  # share of the speed limit over which a torque that would exceed it reverses
RETURN_RATE = 10.0  # [1/s] return rate of a joint beyond its range


class DriveModes:
    """Joints with drives that do not control positions."""

    def __init__(self, modes: Sequence[Mode], limits: CommandLimits, gains: Impedance) -> None:
        """Set up.

        Args:
            gains: hold joints of torque drives.
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
        """Return targets (n,) [rad] and speeds (n,) [rad/s] of velocity commands; else NaN.

        Args:
            share: share of the commands while blending.
        """
        v, tau = direct.at(now)
        self._pushed[:] = np.isfinite(tau)
        self._torque[:] = np.where(self._pushed, share * tau, 0.0)
        return ref.q + share * v * step, share * v

    def release(self) -> None:
        """Drop all torque commands."""
        self._pushed[:] = False

    def follow(self, q: np.ndarray, v: np.ndarray, ref: LimiterReference) -> None:
        """Let references under torque follow measured q (n,) [rad], v (n,) [rad/s]."""
        rows = self._pushed & np.isfinite(q) & np.isfinite(v)
        if rows.any():
            most = self._limits.velocity[rows]
            ref.q[rows], ref.v[rows], ref.clipped[rows] = q[rows], np.clip(v[rows], -most, most), False

    def outputs(
        self, q: np.ndarray, v: np.ndarray, ref: LimiterReference, tau: np.ndarray, shares: tuple[float, float]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return velocities (n,) [rad/s] and torques (n,) [N m] of all drives, within limits.

        Velocity drives: v_ref + k (q_ref - q). Torque drives: the command, or tau + kp (q_ref - q) + kd (v_ref - v).

        Args:
            q: measured (n,) [rad].
            v: measured (n,) [rad/s].
            shares: shares of kp and kd.
        """
        away, slower = np.nan_to_num(ref.q - q, nan=0.0), np.nan_to_num(ref.v - v, nan=0.0)
        most = self._limits.velocity
        speed = np.where(self.by_velocity, np.clip(ref.v + HOLD_RATE * away, -most, most), ref.v)
        held = tau + shares[0] * self._gains.kp * away + shares[1] * self._gains.kd * slower
        torque = np.where(self._pushed, self._torque, held)
        low, high = torque_bounds(q, v, self._limits)
        return speed, np.where(self.by_torque, np.clip(torque, low, high), tau)


def torque_bounds(q: np.ndarray, v: np.ndarray, limits: CommandLimits) -> tuple[np.ndarray, np.ndarray]:
    """Return torque bounds (n,) [N m] for effort, speed and range.

    Soft limits: the outward bound is zero at the speed from which the joint can brake within its range, and reverses
    above. Beyond its range a joint must return.

    Args:
        q: measured (n,) [rad]; NaN: effort limit only.
        v: measured (n,) [rad/s]; NaN: effort limit only.
    """
    most, fastest = limits.effort, limits.velocity
    band = SOFT_BAND * fastest

    def allowed(room: np.ndarray) -> np.ndarray:
        # v^2 = 2 a d inside the range; a proportional return speed outside
        braking = np.sqrt(2 * limits.acceleration * np.maximum(room, 0.0))
        return np.clip(np.where(room >= 0, braking, RETURN_RATE * room), -fastest, fastest)

    up = most * (allowed(limits.upper - q) - v) / band
    down = most * (-allowed(q - limits.lower) - v) / band
    unknown = ~(np.isfinite(up) & np.isfinite(down))
    low, high = np.clip(down, -most, most), np.clip(up, -most, most)
    return np.where(unknown, -most, np.minimum(low, high)), np.where(unknown, most, np.maximum(low, high))
