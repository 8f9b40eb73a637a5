"""Final limits of every command: speed, acceleration, range, effort."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from humanoid_control.compiled.array_types import B1, F1
from humanoid_control.compiled.jit import kernel
from humanoid_control.kinematics.joint_limits import braking_speed


class CommandLimits(NamedTuple):
    """Limits (n,) of n joints: lower, upper [rad], velocity [rad/s], acceleration [rad/s^2], effort [N m]."""

    lower: F1
    upper: F1
    velocity: F1
    acceleration: F1
    effort: F1


class SpeedRamp:
    """Variable speed limits; a lower limit is reached at the braking rate.

    Attributes:
        goal: limits to reach (n,) [rad/s].
    """

    def __init__(self, limits: CommandLimits, period: float) -> None:
        self.goal, self._limits, self._period = limits.velocity.copy(), limits, period

    def advance(self) -> None:
        """Advance by one cycle; higher limits apply at once."""
        speed, step = self._limits.velocity, self._limits.acceleration * self._period
        np.maximum(self.goal, speed - step, out=speed)


class Impedance(NamedTuple):
    """Gains (n,) of drives that close the loop; kp 0: position control.

    Attributes:
        kp: [N m/rad].
        kd: [N m s/rad].
    """

    kp: F1
    kd: F1


class LimiterReference(NamedTuple):
    """Limiter state (n,), changed in place by `limit_step`.

    Attributes:
        clipped: a limit keeps the reference from its target.
    """

    q: F1
    v: F1
    clipped: B1


@kernel
def limit_step(target: np.ndarray, speed: np.ndarray, ref: LimiterReference, limits: CommandLimits, dt: float) -> None:
    """Advance the reference towards a target by one cycle, inside all limits.

    v = (target - q) / dt is clipped to the speed limit, to the speed from which the joint can brake within its range,
    and to the acceleration limit. An unclipped target becomes the reference bit for bit; a clipped one is caught up
    with at a speed that allows braking to the target's velocity. Outside its range a joint moves only inwards.

    Args:
        target: (n,) [rad]; not finite: come to rest.
        speed: target speed (n,) [rad/s].
        ref: changed in place.
        dt: cycle [s].
    """
    for i in range(target.shape[0]):
        q, v_max, a = ref.q[i], limits.velocity[i], limits.acceleration[i]
        below, above = max(q - limits.lower[i], 0.0), max(limits.upper[i] - q, 0.0)
        # below and above are 0 outside the range: only inward motion remains
        slowest = max(-v_max, -braking_speed(below, a, dt, dt), -below / dt)
        fastest = min(v_max, braking_speed(above, a, dt, dt), above / dt)
        # the outer clip lets range and speed win over acceleration
        low = min(max(ref.v[i] - a * dt, slowest), fastest)
        high = max(min(ref.v[i] + a * dt, fastest), slowest)
        if not np.isfinite(target[i]):
            # no target: decelerate to rest within the bounds
            v, inside, ref.clipped[i] = 0.0, False, False
        else:
            v = (target[i] - q) / dt
            # feed-forward of the target velocity; NaN means unknown
            along = speed[i] if np.isfinite(speed[i]) else 0.0
            # after clipping, resume exact tracking only if the velocities match within one step
            inside = low <= v <= high and (not ref.clipped[i] or abs(v - along) <= a * dt)
            ref.clipped[i] = not inside
            if not inside:
                # gap that one cycle at the target's velocity leaves
                v = along + catch_up_speed(target[i] - q - along * dt, a, dt)
        if inside:
            ref.q[i] = target[i]
        else:
            v = min(max(v, low), high)
            # a joint outside its range must not jump back to the limit
            ref.q[i] = min(max(q + v * dt, min(limits.lower[i], q)), max(limits.upper[i], q))
        ref.v[i] = v


@kernel
def catch_up_speed(gap: float, a: float, dt: float) -> float:
    """Return the speed [rad/s] relative to a target that still allows braking at it.

    Args:
        gap: remaining at the target's velocity [rad].
        a: acceleration limit [rad/s^2].
        dt: cycle [s].
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
    """Bound the torque that a command can request.

    Feed-forward is clipped. For an impedance drive, the commanded position moves towards the measured one until |tau| +
    kd |v_ref - v| + kp |q_ref - q| is within the limit; the reference stays.

    Args:
        tau: feed-forward, changed in place (n,) [N m].
        measured: q [rad] and v [rad/s], (n,) each.
        q_out: position to send (n,) [rad].
    """
    q, v = measured
    for i in range(q_ref.shape[0]):
        most = limits.effort[i]
        tau[i] = min(max(tau[i], -most), most) if np.isfinite(tau[i]) else 0.0
        q_out[i] = q_ref[i]
        kp = gains.kp[i]
        # without a measured position the stiffness torque is unknown: no bound
        if kp > 0.0 and np.isfinite(q[i]):
            damping = gains.kd[i] * abs(v_ref[i] - v[i]) if np.isfinite(v[i]) else 0.0
            # torque left for stiffness, as a distance from the measured position
            reach = max(most - abs(tau[i]) - damping, 0.0) / kp
            q_out[i] = min(max(q_ref[i], q[i] - reach), q[i] + reach)
