"""Limits of joints: speed, range with room to brake, acceleration; and the velocity that brakes hardest."""

from __future__ import annotations

import numpy as np

from humanoid_control.ik.free_velocities import Bounds, DofMap
from humanoid_control.ik.limits.limit import IkState, Limit
from humanoid_control.jit import kernel
from humanoid_control.kinematics.joint_limits import (
    JointLimits,
    StepRules,
    clamp_to_speed,
    keep_acceleration,
    keep_range,
)

ROUNDING = 1e-9  # [rad] by which a joint may be outside its range for no reason


class VelocityLimit(Limit):
    """Speed limits: the share `velocity_scale` of those of the joints, and `base_velocity` of a floating base."""

    def tighten(self, state: IkState, lower: np.ndarray, upper: np.ndarray) -> None:
        iv, s = state.robot.iv, state.settings
        clamp_to_speed(lower[iv:], upper[iv:], s.velocity_scale * state.robot.velocity)
        if iv:
            np.clip(lower[:iv], -s.base_velocity, s.base_velocity, out=lower[:iv])
            np.clip(upper[:iv], -s.base_velocity, s.base_velocity, out=upper[:iv])


class ConfigurationLimit(Limit):
    """Joint ranges: no joint leaves its own, and each is only as fast as it can still brake before the end of it.

    From outside (a bad start) a joint returns at `joint_recovery_speed` at the most, and meanwhile none is faster than
    `recovery_joint_speed`. Earlier limits on speed are kept.

    Attributes:
        violation: how far the worst joint is outside its range [rad], 0 where none is.
    """

    def __init__(self) -> None:
        self.violation = 0.0

    def tighten(self, state: IkState, lower: np.ndarray, upper: np.ndarray) -> None:
        r, s = state.robot, state.settings
        rules = StepRules(state.dt, 0.0, s.joint_recovery_speed, s.acceleration)
        self.violation = keep_configuration(
            state.q[r.iq :],
            JointLimits(r.lower, r.upper, r.velocity),
            rules,
            state.v[r.iv :],
            s.recovery_joint_speed,
            lower[r.iv :],
            upper[r.iv :],
        )


class AccelerationLimit(Limit):
    """No joint changes its velocity by more than `acceleration` dt in a tick; before all limits that come earlier."""

    def tighten(self, state: IkState, lower: np.ndarray, upper: np.ndarray) -> None:
        iv = state.robot.iv
        keep_acceleration(lower[iv:], upper[iv:], state.v[iv:], state.settings.acceleration * state.dt)


@kernel
def keep_configuration(
    joints: np.ndarray,
    limits: JointLimits,
    rules: StepRules,
    previous: np.ndarray,
    slow: float,
    low: np.ndarray,
    high: np.ndarray,
) -> float:
    """Tighten speed bounds (n,) to the range; all to `slow` [rad/s] while a joint is outside its range.

    Args:
        joints, previous: (n,) [rad], velocities of the last tick [rad/s].

    Returns:
        how far the worst joint is outside its range [rad].
    """
    violation = 0.0
    for i in range(joints.shape[0]):
        violation = max(violation, limits.lower[i] - joints[i], joints[i] - limits.upper[i])
    if violation > ROUNDING:
        for i in range(joints.shape[0]):
            low[i], high[i] = min(max(low[i], -slow), slow), min(max(high[i], -slow), slow)
    keep_range(joints, limits, rules, previous, low, high)
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
