"""Self-collision as a limit: near pairs separate or close only slowly, and collisions are recovered from."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from humanoid_control.collision.pair_distance import NearPairs, PairJoints, PairsFound, distance_rate
from humanoid_control.ik.free_velocities import Bounds, DofMap, DofSelection
from humanoid_control.ik.limits.limit import (
    AccelerationLimit,
    ConfigurationLimit,
    IkState,
    Limit,
    SoftRows,
    VelocityLimit,
)
from humanoid_control.ik.limits.stopping_path import StoppingPathCheck
from humanoid_control.ik.solver import IkSettings
from humanoid_control.ik.tasks.joints import PostureTask
from humanoid_control.jit import kernel
from humanoid_control.kinematics.joint_limits import clamp_to_speed
from humanoid_control.numerics.array_types import F1
from humanoid_control.numerics.packed import Packed, Table, unpack
from humanoid_control.numerics.vec3 import cross, row
from humanoid_control.robots.robot import Robot, joint_columns
from humanoid_control.robots.self_collision import (
    CollisionMonitor,
    MonitorArrays,
    ShapePairs,
    find_faster_shapes,
    monitor_moving_shapes,
)

BRAKING_SHARE = 0.5  # of what all joints of a pair could brake together that its own row counts on
INSIDE_SCALE = 0.1  # of the rows of pairs that are inside: their slack costs a hundredth, so that others come first
DISTANCE_PROGRESS = 1e-3  # [m] and
HOMING_PROGRESS = 0.05  # [rad]: progress that keeps a stage of a recovery from being given up
PATH_SHARE = 0.9  # of the margin: what the path to the stop keeps, whatever is asked for
NEAR_HOME = 0.1  # [rad] from which on homing slows down
GRADIENT, HOMING, HOMING_THROUGH_PAIRS, HOMING_FREE = range(4)


class SelfCollisionLimit(Limit):
    """Shapes of the robot keep their margin: a control barrier on the distance of every pair that is near.

    A pair at x above its margin may close at `barrier_gain` x, or as fast as it can brake; one below it must separate.
    A pair that is nearer than the margin in the neutral posture keeps what it has there, or it would push at rest. The
    rows are soft, and `safe_scale` checks besides that the path to the stop is clear. Where shapes are inside each
    other, `recovery` says how they come apart.

    Attributes:
        monitor: of the pairs.
        path: check of the path to the stop; None where the monitor measures no exact shapes.
        penetration_depth: of the deepest pair [m], 0 where none is inside.
        recovery: out of a collision.
    """

    def __init__(self, robot: Robot, monitor: CollisionMonitor | None = None) -> None:
        """Make the limit.

        Args:
            robot: the robot.
            monitor: of its pairs; default: its exact shapes. The path to the stop is checked for exact shapes only.
        """
        self.monitor = ShapePairs(robot) if monitor is None else monitor
        self._near: Callable[[], NearPairs] | NearPairs = NearPairs.none()
        self.penetration_depth, self.recovery = 0.0, CollisionRecovery()
        self._activation = np.zeros(self.monitor.count)
        self._at_rest = self.monitor.largest_margins(robot)
        self.path = StoppingPathCheck(robot, self.monitor) if isinstance(self.monitor, ShapePairs) else None
        self._home = PostureTask(robot, weight=1.0, gain=1.0)
        self._rows: Packed[PairRows] | None = None
        self._limits = self._free_limits = np.empty(0)

    @property
    def exact(self) -> bool:
        """True where the monitor measures exact shapes."""
        return isinstance(self.monitor, ShapePairs)

    @property
    def near(self) -> NearPairs:
        """Pairs that were found near at the last tick."""
        if not isinstance(self._near, NearPairs):
            self._near = self._near()
        return self._near

    @near.setter
    def near(self, value: NearPairs | Callable[[], NearPairs]) -> None:
        self._near = value

    def max_rows(self, robot: Robot) -> int:
        return self.monitor.count

    def reset(self) -> None:
        self.recovery.reset()

    def update(self, state: IkState) -> None:
        """Measure the pairs that matter at the velocity of the last tick."""
        s = state.settings
        if not isinstance(self.monitor, ShapePairs):
            self._activation[:] = s.activation
            self.near = self.monitor.update(state.q, self._activation)
        else:
            self.near = self.look(state.q, state.v, s, state.acceleration, state.v, 0.0)
        closest = float(self.near.distance.min()) if len(self.near) else np.inf
        self.penetration_depth = max(0.0, -closest)
        if closest < 0:
            self.recovery.update(closest, self._from_home(state), s.recovery_timeout, state.dt)
        else:
            self.recovery.reset()

    def look(
        self, q: np.ndarray, v: np.ndarray, s: IkSettings, acceleration: np.ndarray, after: np.ndarray, dt: float
    ) -> NearPairs:
        """Return the active pairs of exact shapes at q (nq,), for the velocity of the previous or of this tick.

        Args:
            v: (nv,) of the tick before.
            s: settings.
            acceleration: (nv,) limits.
            after: (nv,) of this tick.
            dt: its length [s].
        """
        assert isinstance(self.monitor, ShapePairs)
        pairs, law, iv = self.monitor, self._law(s, acceleration), 6 if len(q) > len(v) else 0
        count = watch_pairs(pairs.packed.table, q, v, law, s.activation)
        count = watch_faster_pairs(pairs.packed.table, iv, after, law, s.activation, dt, count)
        return NearPairs(pairs.arrays.found.first(count), pairs.joints)

    def near_later(self, *tick: Any) -> Callable[[], NearPairs]:
        """Result of `look` at the end of a tick, computed on access: the `near` of that tick."""
        self._near = near = partial(self.look, *tick)
        return near

    def look_again(self, near: NearPairs, state: IkState, v: np.ndarray) -> NearPairs:
        """Return the active pairs, including pairs that become active at the velocity v (nv,) of this tick."""
        pairs = self.monitor
        if not isinstance(pairs, ShapePairs) or self.recovery.is_homing:
            return near
        s, law = state.settings, self._law(state.settings, state.acceleration)
        more = watch_faster_pairs(pairs.packed.table, state.robot.iv, v, law, s.activation, state.dt, len(near))
        return near if more == len(near) else NearPairs(pairs.arrays.found.first(more), pairs.joints)

    def _law(self, s: IkSettings, acceleration: np.ndarray) -> CollisionLaw:
        return CollisionLaw(s.margin, s.barrier_gain, s.pair_recovery_speed, acceleration, GRADIENT)

    def _from_home(self, state: IkState) -> float:
        """Distance of the farthest joint from the neutral posture [rad]."""
        return float(np.abs(self._home.posture - state.q[state.robot.iq :]).max())

    def homing_task(self, state: IkState) -> PostureTask | None:
        """Task instead of all others while it homes out of a collision."""
        if not self.recovery.is_homing:
            return None
        self._home.gain = state.settings.joint_recovery_speed / max(self._from_home(state), NEAR_HOME)
        return self._home

    def tighten(self, state: IkState, lower: np.ndarray, upper: np.ndarray) -> None:
        """Slow all joints while shapes are inside each other."""
        if self.penetration_depth > 0.0:
            r, slow = state.robot, state.settings.recovery_joint_speed
            clamp_to_speed(lower[r.iv :], upper[r.iv :], np.full(r.n, slow))

    def free_rows(self, state: IkState, bounds: Bounds, out: SoftRows) -> int:
        """Rows of the near pairs that a velocity within the bounds could miss."""
        s = state.settings
        free = self._free_accelerations(state)
        law = CollisionLaw(s.margin, s.barrier_gain, s.pair_recovery_speed, free, self.recovery.stage)
        if self._rows is None or self._rows.record.out is not out or self._rows.record.bounds is not bounds:
            self._rows = Packed(self.pair_rows(state.dofs, bounds, out))
        return int(fill_pair_rows(self._rows.table, self.near.found, joint_columns(state.data), law))

    def pair_rows(self, dofs: DofSelection, bounds: Bounds, out: SoftRows) -> PairRows:
        """Arguments of `fill_pair_rows` for these free velocities, their bounds and these rows."""
        return PairRows(self.monitor.joints.record, self._at_rest, dofs.map, bounds, out)

    def _free_accelerations(self, state: IkState) -> np.ndarray:
        """Limits (k,) of the free velocities, made again where those of the joints are others."""
        if state.acceleration is not self._limits:
            self._limits, self._free_limits = state.acceleration, state.dofs.reduce_limits(state.acceleration)
        return self._free_limits

    def safe_scale(self, state: IkState, brake: np.ndarray, v: np.ndarray) -> float:
        """The largest s, of a few, for which the path to the stop at brake + s (v - brake) is clear; 0 where none is.

        Args:
            brake: (nv,) the velocity that brakes hardest.
            v: (nv,) the velocity that is desired.
        """
        s = state.settings
        if self.path is None or not s.swept or self.recovery.stage > HOMING:
            return 1.0
        return self.path.max_safe_scale(state.q, brake, v, state.dt, state.acceleration, PATH_SHARE * s.margin)


def default_limits(robot: Robot, self_collision: bool = True) -> list[Limit]:
    """The limits of a robot in their order: speed, shapes apart (where it has any), range, acceleration."""
    apart: list[Limit] = [SelfCollisionLimit(robot)] if self_collision and len(robot.pairs) else []
    return [VelocityLimit(), *apart, ConfigurationLimit(), AccelerationLimit()]


class CollisionRecovery:
    """Stages of the way out of a collision, which distances alone do not always lead out of.

    The gradient of a distance is local: an arm through the torso is pushed to both sides at once. Then all joints go
    straight to the neutral posture, slowly, until no pair is inside any more. What is in the way of that is let
    through stage by stage, each after a time-out without progress.

    Attributes:
        stage: GRADIENT: along the gradients, with the tasks; HOMING: to the neutral posture, pairs that are inside are
            let through and the others kept apart; HOMING_THROUGH_PAIRS: so are pairs that are apart, but whose two
            links both are inside something; HOMING_FREE: all are.
    """

    def __init__(self) -> None:
        self.reset()

    @property
    def is_homing(self) -> bool:
        """The robot goes to the neutral posture instead of its tasks."""
        return self.stage != GRADIENT

    def reset(self) -> None:
        """Forget what was."""
        self.stage, self._best, self._left, self._since = GRADIENT, -np.inf, np.inf, 0.0

    def update(self, closest: float, from_home: float, timeout: float, dt: float) -> None:
        """Take note of a tick in collision; `reset` follows it.

        Args:
            closest: signed distance of the deepest pair, below 0 [m].
            from_home: how far the farthest joint is from the neutral posture [rad].
            timeout: [s].
            dt: [s].
        """
        deep, far = closest > self._best + DISTANCE_PROGRESS, from_home < self._left - HOMING_PROGRESS
        self._since += dt
        if deep if self.stage == GRADIENT else far:
            self._best, self._left, self._since = closest, from_home, 0.0
        elif self._since > timeout:
            self.stage, self._left, self._since = min(self.stage + 1, HOMING_FREE), from_home, 0.0


# -------- Rows of the near pairs


class CollisionLaw(NamedTuple):
    """Law of a pair: margin [m], gain [1/s], speed of separation [m/s], deceleration of each joint [rad/s^2].

    Decelerations are (nv,) of all velocities or (k,) of the free ones, as the kernel says. The stage is that of the
    recovery, which says what is let through.
    """

    margin: float
    barrier_gain: float
    recovery_speed: float
    acceleration: F1
    stage: int


@kernel
def watch_pairs(
    monitor: Table[MonitorArrays], q: np.ndarray, previous: np.ndarray, law: CollisionLaw, activation: float
) -> int:
    """Measure the pairs that matter at q and the velocity of the last tick: how many were found.

    A pair is a row from so far that its row allows the present velocity, and the next one: `watch_faster_pairs` looks
    at that when it is known. So one that appears asks for no jump, but what its normal has turned. The allowed closing
    speed at x above the margin is that of `max_closing_speed`. A pair closes at s = sum_c |g_c v_c| at most, its
    own deceleration is BRAKING_SHARE sum_c a_c |g_c|: at least s / T, with the longest time
    T = max_c |v_c| / (BRAKING_SHARE a_c) in which a joint could stop so. With that one its law allows s from
    x = s `distance_per_speed(gain, T)` on, and s is no more than sum_c bound_c |v_c|.

    Args:
        monitor: table of the packed MonitorArrays.
        q: (nq,).
        previous: (nv,) velocity.
        law: with decelerations (nv,).
        activation: the least distance [m].
    """
    iv = 6 if q.shape[0] > previous.shape[0] else 0
    need, per_speed = np.empty(previous.shape[0] - iv), _distance_for(previous, iv, law)
    for c in range(need.shape[0]):
        need[c] = per_speed * abs(previous[iv + c])
    return monitor_moving_shapes(monitor, q, previous, need, (activation, law.margin, per_speed))


@kernel
def watch_faster_pairs(
    monitor: Table[MonitorArrays], iv: int, v: np.ndarray, law: CollisionLaw, activation: float, dt: float, count: int
) -> int:
    """After `watch_pairs` found so many: how many with those that were passed over, but matter at a velocity for dt.

    A program without their rows has that solution, which is the same with them, where there are none.

    Args:
        iv: how many velocities the base has.
        v: (nv,) for the tick of length dt [s]. Others as of `watch_pairs`.
    """
    return find_faster_shapes(monitor, v, (activation, law.margin, _distance_for(v, iv, law) + dt), count)


@kernel
def _distance_for(v: np.ndarray, iv: int, law: CollisionLaw) -> float:
    """`distance_per_speed` where joints move at v (nv,)."""
    longest = 0.0
    for c in range(iv, v.shape[0]):
        longest = max(longest, abs(v[c]) / (BRAKING_SHARE * law.acceleration[c]))
    return distance_per_speed(law.barrier_gain, longest)


@kernel
def max_closing_speed(x: float, barrier_gain: float, deceleration: float) -> float:
    """Speed at which a pair may close at x > 0 above its margin: barrier_gain x, but never more than it can brake.

    Where barrier_gain^2 x exceeds the deceleration it continues as the speed from which a constant deceleration ends at
    the linear part; value and slope are continuous.
    """
    knee = deceleration / (barrier_gain * barrier_gain)
    return barrier_gain * x if x <= knee else np.sqrt(2.0 * deceleration * (x - 0.5 * knee))


@kernel
def distance_per_speed(barrier_gain: float, stop: float) -> float:
    """Distance [m] above its margin for each m/s at which a pair may close that could stop in a time [s] or less."""
    if stop * barrier_gain <= 1.0:  # below the knee
        return 1.0 / barrier_gain
    return 0.5 * stop + 0.5 / (stop * barrier_gain * barrier_gain)


class PairRows(NamedTuple):
    """Arrays of `fill_pair_rows`: of the pairs and of the solver; the rows are filled, more of them than pairs.

    `at_rest` (P,) are the largest margins of the pairs: their distances in the neutral posture.
    """

    joints: PairJoints
    at_rest: F1
    dofs: DofMap
    bounds: Bounds
    out: SoftRows


@kernel
def fill_pair_rows(table: Table[PairRows], found: PairsFound, J6: np.ndarray, law: CollisionLaw) -> int:
    """Rows A u >= b of the near pairs: A u is how fast each pair separates.

    A row that no velocity within the bounds could miss is left out, which changes nothing but the time. A joint that
    is held still has no part in a row: it can neither move nor brake.

    Args:
        table: of the packed PairRows.
        found: of NearPairs.
        J6: (6, nv) every joint's columns at the world origin.
        law: with decelerations (k,) of the free velocities.

    Returns:
        how many rows are filled.
    """
    joints, at_rest, dofs, bounds, out = unpack(table, PairRows)
    A, nv, k, rows = out.A, J6.shape[1], bounds.lower.shape[0], 0
    pair, distance, moves = found.pair, found.distance, joints.ancestor_mask
    inside = np.zeros(moves.shape[0], dtype=np.bool_)
    for r in range(pair.shape[0]):
        if distance[r] < 0.0:
            inside[joints.first[pair[r]]] = inside[joints.second[pair[r]]] = True
    for r in range(pair.shape[0]):
        i, j = joints.first[pair[r]], joints.second[pair[r]]
        both = law.stage >= HOMING_THROUGH_PAIRS and inside[i] and inside[j]
        if law.stage >= HOMING and (distance[r] < 0.0 or both or law.stage >= HOMING_FREE):
            continue
        n = row(found.normal, r)
        moment_1, moment_2 = cross(row(found.point_1, r), n), cross(row(found.point_2, r), n)
        A[rows, :] = 0.0
        for c in range(nv):
            s1, s2, to = moves[i, c], moves[j, c], dofs.column[c]
            if s1 == s2 or to < 0 or (bounds.lower[to] == 0.0 and bounds.upper[to] == 0.0):
                continue
            A[rows, to] += dofs.factor[c] * distance_rate(n, moment_1, moment_2, s1, s2, J6, c)
        least = deceleration = 0.0
        for c in range(k):
            a = A[rows, c]
            least += a * bounds.lower[c] if a > 0.0 else a * bounds.upper[c]
            deceleration += abs(a) * law.acceleration[c]
        x = distance[r] - min(law.margin, at_rest[pair[r]])
        if x <= 0.0:
            bound = min(-law.barrier_gain * x, law.recovery_speed)
        else:
            bound = -max_closing_speed(x, law.barrier_gain, BRAKING_SHARE * deceleration)
        if least >= bound:
            continue
        out.scale[rows] = INSIDE_SCALE if distance[r] < 0.0 else 1.0
        out.b[rows] = out.scale[rows] * bound
        for c in range(k):
            A[rows, c] *= out.scale[rows]
        rows += 1
    return rows
