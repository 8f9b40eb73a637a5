"""Limits of joints: speed, range with room to brake, acceleration; and the velocity that brakes hardest."""

from __future__ import annotations

import numpy as np

from humanoid_control.ik.free_velocities import Bounds, DofMap
from humanoid_control.ik.limits.limit import IkState, Limit
from humanoid_control.jit import kernel
from humanoid_control.kinematics.joint_limits import JointLimits, StepRules, keep_acceleration, keep_range
from humanoid_control.numerics.packed import Packed, unpack
from humanoid_control.robots.robot import Robot

ROUNDING = 1e-9  # [rad] by which a joint may be outside its range for no reason


class VelocityLimit(Limit):
    """Speed limits: the share `velocity_scale` of those of the joints, and `base_velocity` of a floating base."""

    def tighten(self, state: IkState, lower: np.ndarray, upper: np.ndarray) -> None:
        s = state.settings
        keep_speed(state.robot.velocity, s.velocity_scale, s.base_velocity, lower, upper)


class ConfigurationLimit(Limit):
    """Joint ranges: no joint leaves its own, and each is only as fast as it can still brake before the end of it.

    From outside (a bad start) a joint returns at `joint_recovery_speed` at the most, and meanwhile none is faster than
    `recovery_joint_speed`. Earlier limits on speed are kept.

    Attributes:
        violation: how far the worst joint is outside its range [rad], 0 where none is.
    """

    def __init__(self) -> None:
        self.violation = 0.0
        self._robot: Robot | None = None

    def tighten(self, state: IkState, lower: np.ndarray, upper: np.ndarray) -> None:
        r, s = state.robot, state.settings
        if r is not self._robot:
            self._robot, self._limits = r, Packed(JointLimits(r.lower, r.upper, r.velocity))
        rules = StepRules(state.dt, 0.0, s.joint_recovery_speed, s.acceleration)
        self.violation = keep_configuration(
            self._limits.table, state.q, rules, state.v, s.recovery_joint_speed, lower, upper
        )


class AccelerationLimit(Limit):
    """No joint changes its velocity by more than `acceleration` dt in a tick; before all limits that come earlier."""

    def tighten(self, state: IkState, lower: np.ndarray, upper: np.ndarray) -> None:
        iv = state.robot.iv
        keep_acceleration(lower[iv:], upper[iv:], state.v[iv:], state.settings.acceleration * state.dt)


@kernel
def keep_speed(velocity: np.ndarray, share: float, base_velocity: float, lower: np.ndarray, upper: np.ndarray) -> None:
    """Cut bounds (nv,) to a share of the joints' speed limits (n,), of a floating base to that of its own."""
    iv = lower.shape[0] - velocity.shape[0]
    for c in range(lower.shape[0]):
        speed = share * velocity[c - iv] if c >= iv else base_velocity
        lower[c], upper[c] = min(max(lower[c], -speed), speed), min(max(upper[c], -speed), speed)


@kernel
def keep_configuration(
    table: np.ndarray,
    q: np.ndarray,
    rules: StepRules,
    previous: np.ndarray,
    slow: float,
    lower: np.ndarray,
    upper: np.ndarray,
) -> float:
    """Tighten velocity bounds to the range; those of all joints to `slow` [rad/s] while one is outside its range.

    Args:
        table: of the packed JointLimits (n,). q: (nq,). previous: (nv,) velocity of the last tick.
        lower, upper: (nv,).

    Returns:
        how far the worst joint is outside its range [rad].
    """
    limits = unpack(table, JointLimits)
    n, violation = limits.lower.shape[0], 0.0
    iv = lower.shape[0] - n
    joints, low, high = q[q.shape[0] - n :], lower[iv:], upper[iv:]
    for i in range(n):
        violation = max(violation, limits.lower[i] - joints[i], joints[i] - limits.upper[i])
    if violation > ROUNDING:
        for i in range(n):
            low[i], high[i] = min(max(low[i], -slow), slow), min(max(high[i], -slow), slow)
    keep_range(joints, limits, rules, previous[iv:], low, high)
    return violation


@kernel
def fill_braking(v: np.ndarray, iv: int, step: float, dofs: DofMap, bounds: Bounds, out: np.ndarray) -> None:
    """The velocity (nv,) within the bounds that brakes hardest: every joint by step, a base in the same proportion.

    Args:
        v: (nv,) velocity of the last tick. iv: where joints begin. step: [rad/s].
        bounds: of the free velocities.
        out: (nv,) filled.
    """
    nv, fastest, low, high = v.shape[0], 0.0, bounds.lower, bounds.upper
    u = np.zeros(low.shape[0])
    for c in range(iv, nv):
        fastest = max(fastest, abs(v[c]))
    share = max(0.0, 1.0 - step / fastest) if fastest > 0.0 else 0.0
    for c in range(nv - 1, -1, -1):  # a joint that others mimic comes before them, so it is the last to be written
        k = dofs.column[c]
        if k >= 0:
            least = share * v[c] if c < iv else np.sign(v[c]) * max(abs(v[c]) - step, 0.0)
            u[k] = min(max(least / dofs.factor[c], low[k]), high[k])
    for c in range(nv):
        out[c] = dofs.factor[c] * u[dofs.column[c]] if dofs.column[c] >= 0 else 0.0
