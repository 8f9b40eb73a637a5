"""Idle joints, those that move no target: they return to a posture, slowly, and leave it for nothing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, NamedTuple

import numpy as np

from humanoid_control.collision.pair_distance import NearPairs, PairsFound
from humanoid_control.ik.limits.limit import IkState, Limit
from humanoid_control.ik.limits.self_collision import SelfCollisionLimit
from humanoid_control.ik.solver import IkSettings
from humanoid_control.jit import kernel
from humanoid_control.numerics.array_types import B1, F1
from humanoid_control.numerics.packed import Packed, Table, unpack
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
    on acceleration allows, which comes later. Approaching shapes have to move around it.

    All joints are free while shapes are inside each other, and while the robot homes. Where a pair that none but idle
    joints move comes near (legs that start crossed), its joints are free too until it is apart or they are back.

    Attributes:
        enabled: False: no joint is bounded.
        gain: of the return [1/s].
        idle: (n,) True for joints that move no frame. A joint that mimics another is bounded by the other joint.
    """

    def __init__(
        self, robot: Robot, posture: np.ndarray, gain: float = 2.0, self_collision: SelfCollisionLimit | None = None
    ) -> None:
        """Make the limit for no frames: every joint is idle.

        Args:
            robot: the robot.
            posture: (n,) to which idle joints return [rad].
            gain: [1/s].
            self_collision: the limit of the same solver that keeps shapes apart, if there is one.
        """
        self.enabled, self.gain = True, gain
        self._robot, self._apart = robot, self_collision
        count = 0 if self_collision is None else self_collision.monitor.count
        self.packed = Packed(
            IdleJoints(
                posture=np.array(posture, dtype=float),
                bounded=np.zeros(robot.n, dtype=np.bool_),
                held=np.zeros(robot.n, dtype=np.bool_),
                away=np.full(1, np.inf),
                moved=np.zeros((count, robot.nv), dtype=np.bool_),
                only_idle=np.zeros(count, dtype=np.bool_),
                at_posture=np.full(count, np.inf),
            )
        )
        if self_collision is not None:
            monitor, pairs, own = self_collision.monitor, self_collision.monitor.joints.record, self.packed.record
            own.moved[:] = pairs.ancestor_mask[pairs.first] != pairs.ancestor_mask[pairs.second]
            near = monitor.update(robot.q(own.posture), np.inf)
            own.at_posture[near.pair] = near.distance
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
        own = self.packed.record
        own.bounded[:] = self.idle
        own.bounded[[follower for follower, *_ in r.mimic]] = False
        own.only_idle[:] = own.moved.any(axis=1) & ~(own.moved & serves).any(axis=1)
        self.reset()

    def reset(self) -> None:
        """Forget earlier ticks."""
        self.packed.record.away[0] = np.inf

    def tighten(self, state: IkState, lower: np.ndarray, upper: np.ndarray) -> None:
        apart = self._apart
        if not self.enabled or (apart is not None and (apart.penetration_depth > 0.0 or apart.recovery.is_homing)):
            return
        found = NOTHING if apart is None else apart.near.found
        rule = self.rule(state.settings, state.dt)
        hold_joints(self.packed.table, state.q, state.v, rule, found, lower, upper)

    def rule(self, settings: IkSettings, dt: float) -> ReturnRule:
        """The rule of the return in a tick of length dt [s]."""
        gain = min(self.gain, settings.max_gain / dt)
        return ReturnRule(gain, settings.joint_recovery_speed, START * dt, settings.margin)


NOTHING = NearPairs.none().found


class IdleJoints(NamedTuple):
    """State of n joints and P pairs.

    Attributes:
        posture: (n,) [rad].
        bounded: (n,) idle joints that mimic none.
        held: (n,) those of them that are held now.
        away: (1,) how far the farthest idle joint was from the posture [rad].
        moved: (P, nv) which velocities move each pair.
        only_idle: (P,) moved by idle joints only.
        at_posture: (P,) distances in the posture [m].
    """

    posture: F1
    bounded: B1
    held: B1
    away: F1
    moved: Annotated[np.ndarray, np.bool_, 2]
    only_idle: B1
    at_posture: F1


class ReturnRule(NamedTuple):
    """Rule of the return: gain [1/s], greatest speed [rad/s], gain of speed in a tick [rad/s], margin of pairs [m]."""

    gain: float
    speed: float
    step: float
    margin: float


@kernel
def hold_joints(
    table: Table[IdleJoints],
    q: np.ndarray,
    previous: np.ndarray,
    rule: ReturnRule,
    found: PairsFound,
    lower: np.ndarray,
    upper: np.ndarray,
) -> None:
    """Tighten velocity bounds of idle joints to rest, or to the return to the posture.

    Joints that must get round each other are left out: they move a pair that is near, and no other joint does.

    Args:
        table: of the packed IdleJoints.
        q: (nq,).
        previous: (nv,) velocity of the last tick.
        found: pairs that are near.
        lower: (nv,) lower bounds, lower <= upper.
        upper: (nv,) upper bounds.
    """
    joints, farthest, blocked = unpack(table, IdleJoints), 0.0, False
    n = joints.posture.shape[0]
    iq, iv = q.shape[0] - n, lower.shape[0] - n
    for i in range(n):
        joints.held[i] = joints.bounded[i]
    if joints.away[0] > HOME:
        for r in range(found.pair.shape[0]):
            k = found.pair[r]
            if joints.only_idle[k] and found.distance[r] < min(rule.margin + RELEASE, joints.at_posture[k] - NEARER):
                for i in range(n):
                    if joints.moved[k, iv + i]:
                        joints.held[i], blocked = False, True
    for i in range(n):
        if not joints.held[i]:
            continue
        left, c = joints.posture[i] - q[iq + i], iv + i
        farthest = max(farthest, abs(left))
        speed = 0.0 if abs(left) < ARRIVED else min(rule.speed, abs(previous[c]) + rule.step)
        back = min(max(rule.gain * left, -speed), speed)
        a, b = min(back, 0.0), max(back, 0.0)
        lower[c], upper[c] = min(max(lower[c], a), b), min(max(upper[c], a), b)
    joints.away[0] = np.inf if blocked else farthest
