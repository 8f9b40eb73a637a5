"""Limit of idle joints, which move no target: they return slowly to a posture and stay there."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, NamedTuple

import numpy as np

from humanoid_control.collision.pair_distance import NearPairs, PairsFound
from humanoid_control.compiled.array_types import B1, F1
from humanoid_control.compiled.jit import kernel
from humanoid_control.compiled.packed import Packed, Table, unpack
from humanoid_control.ik.limits.limit import IkState, Limit
from humanoid_control.ik.limits.self_collision import SelfCollisionLimit
from humanoid_control.ik.solver import IkSettings
from humanoid_control.robots.robot import Robot

RELEASE = 5e-3  # [m] above the margin: below this distance idle joints are free to move around each other
NEARER = 1e-3  # [m] minimum approach relative to the posture; otherwise the posture itself brings the shapes close
HOME = 5e-3  # [rad] distance from the posture below which an idle joint counts as back
ARRIVED = 1e-12  # [rad] distance from the posture below which it rests
START = 2.0  # [rad/s^2] initial acceleration of the return


class IdleJointLimit(Limit):
    """Limit that holds joints which move no followed frame, or returns them to a posture.

    The velocity is bounded by 0 and by the return velocity gain (posture - q), at most `joint_recovery_speed`, with a
    gentle start.

    All joints are free during penetration and homing. Idle joints that alone bring a pair close (crossed legs) are free
    until the pair is apart or they are back.

    Attributes:
        idle: joints that move no frame (n,). A mimicking joint is bounded by its leader.
        self_collision: source of the near pairs.
    """

    def __init__(
        self, robot: Robot, posture: np.ndarray, gain: float = 2.0, self_collision: SelfCollisionLimit | None = None
    ) -> None:
        """Start with no frames, so that every joint is idle."""
        self.enabled, self.gain = True, gain
        self._robot, self.self_collision = robot, self_collision
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
        """Set the followed frames (ids of pinocchio)."""
        r = self._robot
        carriers = np.array([r.model.frames[f].parentJoint for f in frames], dtype=int)
        serves = r.ancestor_mask[carriers].any(axis=0)
        # A leader serves a target if a follower does, and conversely.
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
        """Discard earlier ticks."""
        self.packed.record.away[0] = np.inf

    def tighten(self, state: IkState, lower: np.ndarray, upper: np.ndarray) -> None:
        apart = self.self_collision
        if not self.enabled or (apart is not None and (apart.penetration_depth > 0.0 or apart.recovery.is_homing)):
            return
        found = NOTHING if apart is None else apart.near.found
        rule = self.rule(state.settings, state.dt)
        hold_joints(self.packed.table, state.q, state.v, rule, found, lower, upper)

    def rule(self, settings: IkSettings, dt: float) -> ReturnRule:
        """Return rule of a tick of length dt [s]."""
        gain = min(self.gain, settings.max_gain / dt)
        return ReturnRule(gain, settings.joint_recovery_speed, START * dt, settings.margin)


NOTHING = NearPairs.none().found


class IdleJoints(NamedTuple):
    """State of n joints and P pairs.

    Attributes:
        away: largest distance of an idle joint from the posture (1,) [rad].
        moved: velocities that move each pair (P, nv).
        only_idle: pairs moved by idle joints only (P,).
        at_posture: distances in the posture (P,) [m].
    """

    posture: F1
    bounded: B1
    held: B1
    away: F1
    moved: Annotated[np.ndarray, np.bool_, 2]
    only_idle: B1
    at_posture: F1


class ReturnRule(NamedTuple):
    """Rule of the return: gain [1/s], speed [rad/s], its increase in a tick [rad/s], margin of pairs [m]."""

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
    """Tighten velocity bounds (nv,) of idle joints to rest, or to the return to the posture.

    Joints that alone move a near pair are left out.
    """
    joints, farthest, blocked = unpack(table, IdleJoints), 0.0, False
    n = joints.posture.shape[0]
    iq, iv = q.shape[0] - n, lower.shape[0] - n
    for i in range(n):
        joints.held[i] = joints.bounded[i]
    # Release joints only while some joint is still away from the posture.
    if joints.away[0] > HOME:
        for r in range(found.pair.shape[0]):
            k = found.pair[r]
            # A distance that the posture itself requires is no reason for release.
            if joints.only_idle[k] and found.distance[r] < min(rule.margin + RELEASE, joints.at_posture[k] - NEARER):
                for i in range(n):
                    if joints.moved[k, iv + i]:
                        joints.held[i], blocked = False, True
    for i in range(n):
        if not joints.held[i]:
            continue
        left, c = joints.posture[i] - q[iq + i], iv + i
        farthest = max(farthest, abs(left))
        # Speed up by at most `step` a tick, and slow down in proportion to the rest of the way.
        speed = 0.0 if abs(left) < ARRIVED else min(rule.speed, abs(previous[c]) + rule.step)
        back = min(max(rule.gain * left, -speed), speed)
        # Allow the interval between rest and return; earlier limits keep precedence.
        a, b = min(back, 0.0), max(back, 0.0)
        lower[c], upper[c] = min(max(lower[c], a), b), min(max(upper[c], a), b)
    # Released joints count as away, so that they stay free until they are back.
    joints.away[0] = np.inf if blocked else farthest
