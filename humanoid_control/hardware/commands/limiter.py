"""The last limits before a transport: speed, acceleration, range and effort of every command, whoever sent it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from humanoid_control.jit import kernel
from humanoid_control.kinematics.joint_limits import braking_speed
from humanoid_control.numerics.array_types import B1, F1


class CommandLimits(NamedTuple):
    """Limits of n joints.

    Attributes:
        lower, upper: (n,) range [rad]. velocity: (n,) [rad/s]. acceleration: (n,) [rad/s^2]. effort: (n,) [N m].
    """

    lower: F1
    upper: F1
    velocity: F1
    acceleration: F1
    effort: F1


class SpeedRamp:
    """Speed limits that change while joints move: a lower limit is reached as fast as the joints can brake.

    Attributes:
        goal: (n,) limits to reach [rad/s].
    """

    def __init__(self, limits: CommandLimits, period: float) -> None:
        """Prepare.

        Args:
            limits: whose speeds are changed in place. period: of `advance` [s].
        """
        self.goal, self._limits, self._period = limits.velocity.copy(), limits, period

    def advance(self) -> None:
        """Move the limits towards the goal by one cycle; higher ones hold at once."""
        speed, step = self._limits.velocity, self._limits.acceleration * self._period
        np.maximum(self.goal, speed - step, out=speed)


class Impedance(NamedTuple):
    """Gains of n joints whose drives close the loop; kp 0: the joint is position controlled.

    Attributes:
        kp: (n,) [N m/rad]. kd: (n,) [N m s/rad].
    """

    kp: F1
    kd: F1


class LimiterReference(NamedTuple):
    """State of the limiter for n joints, changed in place by `limit_step`.

    Attributes:
        q: (n,) reference [rad]. v: (n,) its velocity in the last cycle [rad/s].
        clipped: (n,) True where a limit keeps the reference away from its target.
    """

    q: F1
    v: F1
    clipped: B1


@kernel
def limit_step(target: np.ndarray, speed: np.ndarray, ref: LimiterReference, limits: CommandLimits, dt: float) -> None:
    """Advance the reference by one cycle towards a target, inside all limits.

    v = (target - q) / dt is clipped to the speed limit, to the speed from which the joint can still brake before the
    end of its range, and to what acceleration allows. A target inside all of these is the next reference, bit for
    bit. One that was clipped is caught up with as fast as the joint can brake to its velocity. Outside its range a
    joint moves inwards only. Range and speed come before acceleration.

    Args:
        target: (n,) [rad]; not finite: the joint comes to rest. speed: (n,) of the target [rad/s].
        ref: of the last cycle, changed in place.
        limits: of the joints. dt: of the cycle [s].
    """
    for i in range(target.shape[0]):
        q, v_max, a = ref.q[i], limits.velocity[i], limits.acceleration[i]
        below, above = max(q - limits.lower[i], 0.0), max(limits.upper[i] - q, 0.0)
        slowest = max(-v_max, -braking_speed(below, a, dt, dt), -below / dt)
        fastest = min(v_max, braking_speed(above, a, dt, dt), above / dt)
        low = min(max(ref.v[i] - a * dt, slowest), fastest)
        high = max(min(ref.v[i] + a * dt, fastest), slowest)
        if not np.isfinite(target[i]):
            v, inside, ref.clipped[i] = 0.0, False, False
        else:
            v = (target[i] - q) / dt
            along = speed[i] if np.isfinite(speed[i]) else 0.0
            inside = low <= v <= high and (not ref.clipped[i] or abs(v - along) <= a * dt)
            ref.clipped[i] = not inside
            if not inside:
                v = along + catch_up_speed(target[i] - q - along * dt, a, dt)
        if inside:
            ref.q[i] = target[i]
        else:
            v = min(max(v, low), high)
            ref.q[i] = min(max(q + v * dt, min(limits.lower[i], q)), max(limits.upper[i], q))
        ref.v[i] = v


@kernel
def catch_up_speed(gap: float, a: float, dt: float) -> float:
    """Speed relative to a target from which the joint can brake until it is there [rad/s].

    Args:
        gap: that would be left at the target's own velocity [rad]. a: acceleration limit [rad/s^2]. dt: cycle [s].
    """
    return np.sign(gap) * min(braking_speed(abs(gap), a, dt, dt), abs(gap) / dt)


@kernel
def limit_effort(
    q_ref: np.ndarray,
    tau: np.ndarray,
    measured: tuple[np.ndarray, np.ndarray],
    v_ref: np.ndarray,
    gains: Impedance,
    limits: CommandLimits,
    q_out: np.ndarray,
) -> None:
    """Bound the torque that a command can ask of its drive.

    A feed-forward torque is clipped to the limit. Of an impedance drive, |tau| + kd |v_ref - v| + kp |q_ref - q| is
    kept below it by moving the commanded position towards the measured one; the reference itself stays.

    Args:
        q_ref: (n,) [rad]. tau: (n,) feed-forward [N m], changed in place.
        measured: q (n,) [rad] and v (n,) [rad/s]. v_ref: (n,) [rad/s].
        gains: of the drives. limits: of the joints.
        q_out: (n,) the position to send [rad].
    """
    q, v = measured
    for i in range(q_ref.shape[0]):
        most = limits.effort[i]
        tau[i] = min(max(tau[i], -most), most) if np.isfinite(tau[i]) else 0.0
        q_out[i] = q_ref[i]
        kp = gains.kp[i]
        if kp > 0.0 and np.isfinite(q[i]):
            damping = gains.kd[i] * abs(v_ref[i] - v[i]) if np.isfinite(v[i]) else 0.0
            reach = max(most - abs(tau[i]) - damping, 0.0) / kp
            q_out[i] = min(max(q_ref[i], q[i] - reach), q[i] + reach)
