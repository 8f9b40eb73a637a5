"""Self-collision as a limit: near pairs separate, or close only slowly."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from humanoid_control.collision.pair_distance import NearPairs, PairJoints, PairsFound, distance_rate
from humanoid_control.compiled.array_types import F1
from humanoid_control.compiled.jit import kernel
from humanoid_control.compiled.packed import Table, unpack
from humanoid_control.ik.free_velocities import Bounds, DofMap, DofSelection
from humanoid_control.ik.limits.collision_recovery import (
    GRADIENT,
    HOMING,
    HOMING_FREE,
    HOMING_THROUGH_PAIRS,
    CollisionRecovery,
)
from humanoid_control.ik.limits.limit import (
    AccelerationLimit,
    ConfigurationLimit,
    Limit,
    SoftRows,
    VelocityLimit,
)
from humanoid_control.ik.limits.stopping_path import StoppingPathCheck
from humanoid_control.ik.solver import IkSettings
from humanoid_control.numerics.vec3 import cross, row
from humanoid_control.robots.robot import Robot
from humanoid_control.robots.self_collision import (
    CollisionMonitor,
    MonitorArrays,
    ShapePairs,
    find_faster_shapes,
    monitor_moving_shapes,
)

BRAKING_SHARE = 0.5  # share of a pair's joint braking capacity that its row uses
INSIDE_SCALE = 0.1  # scale of the rows of pairs in penetration: their slack costs a hundredth of other slack
PATH_SHARE = 0.9  # share of the margin that the path to the stop always keeps


class SelfCollisionLimit(Limit):
    """Control barrier on the distance of every near pair of shapes.

    A pair at x above its margin closes at most at `barrier_gain` x, or as fast as it can brake; below it must separate.
    Pairs nearer in the neutral posture keep their neutral distance. The rows are soft. The path to the stop is checked.
    In penetration all joints are slow, until the recovery is over.

    The tick computes all this (`ik/tick.py`); a subclass may add bounds, and rows if it returns a larger `max_rows`. A
    solver has one such limit at most.

    Attributes:
        monitor: source of the near pairs.
        path: check of the path to the stop; None if the monitor is not exact.
        recovery: way out of a collision.
        penetration_depth: depth of the worst pair in the last tick [m].
    """

    def __init__(self, robot: Robot, monitor: CollisionMonitor | None = None) -> None:
        """Start the monitor and the path check.

        Args:
            monitor: default: exact shapes, which the path check requires.
        """
        self.monitor = ShapePairs(robot) if monitor is None else monitor
        self._near: Callable[[], NearPairs] | NearPairs = NearPairs.none()
        self.penetration_depth, self.recovery = 0.0, CollisionRecovery(robot)
        self._at_rest = self.monitor.largest_margins(robot)
        self.path = StoppingPathCheck(robot, self.monitor) if isinstance(self.monitor, ShapePairs) else None

    @property
    def exact(self) -> bool:
        """True if the monitor measures exact shapes."""
        return self.path is not None

    @property
    def near(self) -> NearPairs:
        """Near pairs of the last tick; for custom limits those of the present one."""
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

    def active_pairs(
        self, q: np.ndarray, v: np.ndarray, s: IkSettings, acceleration: np.ndarray, after: np.ndarray, dt: float
    ) -> NearPairs:
        """Return the active pairs of exact shapes at q (nq,) for the previous velocity and this one."""
        assert isinstance(self.monitor, ShapePairs)
        pairs, iv = self.monitor, 6 if len(q) > len(v) else 0
        law = CollisionLaw(s.margin, s.barrier_gain, s.pair_recovery_speed, acceleration, GRADIENT)
        count = watch_pairs(pairs.packed.table, q, v, law, s.activation)
        count = watch_faster_pairs(pairs.packed.table, iv, after, law, s.activation, dt, count)
        return NearPairs(pairs.arrays.found.first(count), pairs.joints)

    def deferred_near(self, *tick: Any) -> Callable[[], NearPairs]:
        """Return a function for the `near` of this tick; for exact shapes it computes `active_pairs` on access."""
        if self.path is None:
            measured = self.near
            return lambda: measured
        self._near = near = partial(self.active_pairs, *tick)
        return near

    def pair_rows(self, dofs: DofSelection, bounds: Bounds, out: SoftRows) -> PairRows:
        """Build the arguments of `fill_pair_rows`."""
        return PairRows(self.monitor.joints.record, self._at_rest, dofs.map, bounds, out)


def default_limits(robot: Robot, self_collision: bool = True) -> list[Limit]:
    """Return the limits in order: speed, self-collision (with shapes only), range, acceleration."""
    apart: list[Limit] = [SelfCollisionLimit(robot)] if self_collision and len(robot.pairs) else []
    return [VelocityLimit(), *apart, ConfigurationLimit(), AccelerationLimit()]


# -------- Rows of the near pairs


class CollisionLaw(NamedTuple):
    """Law of the approach of pairs.

    Attributes:
        acceleration: deceleration [rad/s^2] by velocity (nv,) or free velocity (k,).
    """

    margin: float
    barrier_gain: float
    recovery_speed: float
    acceleration: F1
    stage: int


@kernel(allocates=True)
def watch_pairs(
    monitor: Table[MonitorArrays], q: np.ndarray, previous: np.ndarray, law: CollisionLaw, activation: float
) -> int:
    """Measure the pairs that matter at q and the velocity of the last tick, and return their number.

    The activation distance is such that a new row allows the present velocity and causes no jump. A pair closes at most
    at s = sum_c |g_c v_c|, and brakes with BRAKING_SHARE sum_c a_c |g_c| >= s / T, T = max_c |v_c| / (BRAKING_SHARE
    a_c). `max_closing_speed` then allows s from x = s `distance_per_speed(gain, T)`, with s <= sum_c bound_c |v_c|.
    """
    iv = 6 if q.shape[0] > previous.shape[0] else 0
    need, per_speed = np.empty(previous.shape[0] - iv), _distance_for(previous, iv, law)
    # A pair needs the sum of its motion bounds times these distances.
    for c in range(need.shape[0]):
        need[c] = per_speed * abs(previous[iv + c])
    return monitor_moving_shapes(monitor, q, previous, need, (activation, law.margin, per_speed))


@kernel
def watch_faster_pairs(
    monitor: Table[MonitorArrays], iv: int, v: np.ndarray, law: CollisionLaw, activation: float, dt: float, count: int
) -> int:
    """Add pairs that matter at the new velocity v (nv,), and return the total number."""
    return find_faster_shapes(monitor, v, (activation, law.margin, _distance_for(v, iv, law) + dt), count)


@kernel
def _distance_for(v: np.ndarray, iv: int, law: CollisionLaw) -> float:
    """`distance_per_speed` for joints that move at v (nv,)."""
    longest = 0.0
    # Longest stopping time of a joint.
    for c in range(iv, v.shape[0]):
        longest = max(longest, abs(v[c]) / (BRAKING_SHARE * law.acceleration[c]))
    return distance_per_speed(law.barrier_gain, longest)


@kernel
def max_closing_speed(x: float, barrier_gain: float, deceleration: float) -> float:
    """Return the closing speed [m/s] of a pair at x > 0 above its margin: barrier_gain x, limited by braking.

    For barrier_gain^2 x > deceleration it follows a constant deceleration, with continuous value and slope.
    """
    # At the knee, following the linear law takes exactly the deceleration: v' = gain^2 x.
    knee = deceleration / (barrier_gain * barrier_gain)
    return barrier_gain * x if x <= knee else np.sqrt(2.0 * deceleration * (x - 0.5 * knee))


@kernel
def distance_per_speed(barrier_gain: float, stop: float) -> float:
    """Return the distance above the margin for each m/s of closing speed, for pairs that stop within `stop` [s]."""
    if stop * barrier_gain <= 1.0:  # below the knee
        return 1.0 / barrier_gain
    # Solve v^2 = 2 a (x - knee / 2) with a = v / stop for x / v.
    return 0.5 * stop + 0.5 / (stop * barrier_gain * barrier_gain)


class PairRows(NamedTuple):
    """Arrays of `fill_pair_rows`.

    Attributes:
        at_rest: neutral distances of the pairs (P,) [m], their largest margins.
    """

    joints: PairJoints
    at_rest: F1
    dofs: DofMap
    bounds: Bounds
    out: SoftRows


@kernel(allocates=True)
def fill_pair_rows(table: Table[PairRows], found: PairsFound, J6: np.ndarray, law: CollisionLaw, first: int) -> int:
    """Fill rows A u >= b of the near pairs, A u being their separation speed, and return the number of all rows.

    Rows that the bounds satisfy anyway are dropped. Fixed joints have no part in a row.

    Args:
        first: number of rows that are filled already.
    """
    joints, at_rest, dofs, bounds, out = unpack(table, PairRows)
    A, nv, k, rows = out.A, J6.shape[1], bounds.lower.shape[0], first
    pair, distance, moves = found.pair, found.distance, joints.ancestor_mask
    inside = np.zeros(moves.shape[0], dtype=np.bool_)
    # Links in penetration with any other one.
    for r in range(pair.shape[0]):
        if distance[r] < 0.0:
            inside[joints.first[pair[r]]] = inside[joints.second[pair[r]]] = True
    for r in range(pair.shape[0]):
        i, j = joints.first[pair[r]], joints.second[pair[r]]
        both = law.stage >= HOMING_THROUGH_PAIRS and inside[i] and inside[j]
        # While homing, rows of pairs in penetration would block the way; later stages ignore more pairs.
        if law.stage >= HOMING and (distance[r] < 0.0 or both or law.stage >= HOMING_FREE):
            continue
        n = row(found.normal, r)
        moment_1, moment_2 = cross(row(found.point_1, r), n), cross(row(found.point_2, r), n)
        A[rows, :] = 0.0
        for c in range(nv):
            # Velocities that move both links, or neither, do not change the distance.
            s1, s2, to = moves[i, c], moves[j, c], dofs.column[c]
            if s1 == s2 or to < 0 or (bounds.lower[to] == 0.0 and bounds.upper[to] == 0.0):
                continue
            A[rows, to] += dofs.factor[c] * distance_rate(n, moment_1, moment_2, s1, s2, J6, c)
        least = deceleration = 0.0
        for c in range(k):
            a = A[rows, c]
            # `least`: lowest A u within the bounds; `deceleration`: braking capacity of all joints together.
            least += a * bounds.lower[c] if a > 0.0 else a * bounds.upper[c]
            deceleration += abs(a) * law.acceleration[c]
        # Pairs that are closer in the neutral posture keep only that distance, or they would push at rest.
        x = distance[r] - min(law.margin, at_rest[pair[r]])
        if x <= 0.0:
            bound = min(-law.barrier_gain * x, law.recovery_speed)
        else:
            bound = -max_closing_speed(x, law.barrier_gain, BRAKING_SHARE * deceleration)
        # No velocity within the bounds can violate the row.
        if least >= bound:
            continue
        out.scale[rows] = INSIDE_SCALE if distance[r] < 0.0 else 1.0
        out.b[rows] = out.scale[rows] * bound
        for c in range(k):
            A[rows, c] *= out.scale[rows]
        rows += 1
    return rows
