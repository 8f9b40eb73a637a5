"""Idle joints, those that move no target: they return to a posture, slowly, and leave it for nothing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from humanoid_control.ik.limits.limit import IkState, Limit
from humanoid_control.ik.limits.self_collision import SelfCollisionLimit
from humanoid_control.jit import kernel
from humanoid_control.numerics.array_types import B1, F1
from humanoid_control.numerics.packed import Packed, unpack
from humanoid_control.robots.robot import Robot

RELEASE = 5e-3  # [m] above the margin: idle joints whose own shapes come that near may go round each other
NEARER = 1e-3  # [m] by which they are nearer than in the posture, or it is the posture that brings them so near
HOME = 5e-3  # [rad] from the posture: an idle joint that is no farther counts as back
ARRIVED = 1e-12  # [rad] from the posture: it stands
START = 2.0  # [rad/s^2] with which it sets out


class IdleJointLimit(Limit):
    """Joints that move none of the frames which are followed stand still, or return to a posture.

    Such a joint serves no target, so only the rows of other limits move it: a hand that comes near a thigh would push
    the leg away, as far as the leg goes, since nothing but a weak pull to the posture is in the way. Here the velocity
    of an idle joint is bounded by 0 and that of its return: gain (posture - q), but no faster than
    `joint_recovery_speed`, and it sets out gently. A joint that becomes idle while it moves brakes as hard as the limit
    on acceleration lets it, which comes later. What comes near has to go round.

    All joints are free while shapes are inside each other, and while the robot homes. Where a pair that none but idle
    joints move comes near (legs that start crossed), its joints are free too until it is apart or they are back.

    Attributes:
        enabled: False: no joint is bounded.
        gain: of the return [1/s].
        idle: (n,) True for joints that move no frame. One that mimics another is bounded by what that does.
    """

    def __init__(
        self, robot: Robot, posture: np.ndarray, gain: float = 2.0, self_collision: SelfCollisionLimit | None = None
    ) -> None:
        """Make the limit for no frames: every joint is idle.

        Args:
            robot: whose.
            posture: (n,) to which idle joints return [rad].
            gain: [1/s].
            self_collision: the limit of the same solver that keeps shapes apart, if there is one.
        """
        self.enabled, self.gain = True, gain
        self._robot, self._apart = robot, self_collision
        self._joints = Packed(IdleJoints(np.array(posture, dtype=float), np.zeros(robot.n, dtype=np.bool_)))
        if self_collision is not None:
            monitor, joints = self_collision.monitor, self_collision.monitor.joints.record
            self._moved = joints.ancestor_mask[joints.first] != joints.ancestor_mask[joints.second]
            self._at_posture = np.full(monitor.count, np.inf)
            near = monitor.update(robot.q(self._joints.record.posture), np.inf)
            self._at_posture[near.pair] = near.distance
        self.follow(())

    def follow(self, frames: Iterable[int]) -> None:
        """Take these frames, pinocchio's ids, for all that are followed."""
        r = self._robot
        carriers = np.array([r.model.frames[f].parentJoint for f in frames], dtype=int)
        serves = r.ancestor_mask[carriers].any(axis=0)
        for follower, leader, *_ in r.mimic:
            serves[r.iv + leader] |= serves[r.iv + follower]
        for follower, leader, *_ in r.mimic:
            serves[r.iv + follower] = serves[r.iv + leader]
        self.idle = ~serves[r.iv :]
        self._bounded = self.idle.copy()
        self._bounded[[follower for follower, *_ in r.mimic]] = False
        if self._apart is not None:
            self._only_idle = self._moved.any(axis=1) & ~(self._moved & serves).any(axis=1)
        self.reset()

    def reset(self) -> None:
        """Forget earlier ticks."""
        self._away = np.inf  # how far the farthest idle joint was from the posture [rad]

    def tighten(self, state: IkState, lower: np.ndarray, upper: np.ndarray) -> None:
        apart, s = self._apart, state.settings
        if not self.enabled:
            return
        joints, blocked = self._joints.record, False
        joints.held[:] = self._bounded
        if apart is not None:
            if apart.penetration_depth > 0.0 or apart.recovery.is_homing:
                return
            if self._away > HOME:
                going_round = self._going_round(apart, s.margin)
                joints.held[going_round], blocked = False, bool(going_round.any())
        rule = ReturnRule(min(self.gain, s.max_gain / state.dt), s.joint_recovery_speed, START * state.dt)
        away = hold_joints(self._joints.table, state.q, state.v, rule, lower, upper)
        self._away = np.inf if blocked else away

    def _going_round(self, apart: SelfCollisionLimit, margin: float) -> np.ndarray:
        """Idle joints (n,) that must get round each other: they move a pair that is near, and no other joint does."""
        pair = apart.near.pair
        near = apart.near.distance < np.minimum(margin + RELEASE, self._at_posture[pair] - NEARER)
        moved: np.ndarray = self._moved[pair[near & self._only_idle[pair]]].any(axis=0)
        return moved[self._robot.iv :]


class IdleJoints(NamedTuple):
    """Posture (n,) of the joints [rad], and which of them are held, (n,)."""

    posture: F1
    held: B1


class ReturnRule(NamedTuple):
    """Rule of the return: gain [1/s], greatest speed [rad/s], gain of speed in a tick [rad/s]."""

    gain: float
    speed: float
    step: float


@kernel
def hold_joints(
    table: np.ndarray, q: np.ndarray, previous: np.ndarray, rule: ReturnRule, lower: np.ndarray, upper: np.ndarray
) -> float:
    """Tighten velocity bounds of the joints that are held to rest, or return to the posture.

    Args:
        table: of the packed IdleJoints. q: (nq,). previous: (nv,) velocity of the last tick.
        lower, upper: (nv,), lower <= upper.

    Returns:
        how far the farthest of them is from the posture [rad].
    """
    joints, farthest = unpack(table, IdleJoints), 0.0
    n = joints.posture.shape[0]
    iq, iv = q.shape[0] - n, lower.shape[0] - n
    for i in range(n):
        if not joints.held[i]:
            continue
        left, c = joints.posture[i] - q[iq + i], iv + i
        farthest = max(farthest, abs(left))
        speed = 0.0 if abs(left) < ARRIVED else min(rule.speed, abs(previous[c]) + rule.step)
        back = min(max(rule.gain * left, -speed), speed)
        a, b = min(back, 0.0), max(back, 0.0)
        lower[c], upper[c] = min(max(lower[c], a), b), min(max(upper[c], a), b)
    return farthest
