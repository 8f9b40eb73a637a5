"""Stopping path of a robot: what its shapes pass through until it stops, and the proof that it is clear."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from humanoid_control.collision.pair_bounds import fill_travel
from humanoid_control.collision.pair_distance import pair_distance, shape_poses
from humanoid_control.jit import kernel
from humanoid_control.kinematics.forward_kinematics import WorldPoses, joint_poses
from humanoid_control.numerics.array_types import F1, F2, F3, I1
from humanoid_control.numerics.packed import Packed, unpack
from humanoid_control.robots.robot import Robot
from humanoid_control.robots.self_collision import MonitorArrays, ShapePairs

MAX_DEPTH = 16  # halvings of a part of the path, and
MAX_POSTURES = 24  # postures in all, after which the path counts as blocked
MAX_BISECTIONS = 4  # of the speed, in search of the fastest that is safe
SHRINKING = 0.999  # of its distance that a pair keeps which is closer than the floor
REST_SHARE = 0.9  # of its distance in the neutral posture: the most that the floor of a pair can be
GUARANTEED = 0.95  # of its floor that every pair is proven to keep
LATER = 0.25  # of a tick, by which the path is behind one that brakes steadily
NO_MOTION, FULL_MOTION = 0.0, 1.0


class StoppingPathCheck:
    """Check of the path through this tick at v, then on while every joint brakes.

    Between two postures a and b of such a path, in which no joint turns back, a pair's distance is at least
    (d_a + d_b - travel) / 2, where travel is the sum of the pair's motion bounds times the angles between a and b. So a
    few postures prove all those between them: pairs that are farther than their whole travel need none, for the others
    the path is halved until it is proven or a posture on it is too close.

    A pair that is apart keeps at least 95 % of its floor, which is the given one, a share of its distance in the
    neutral posture or, where it is closer now, nearly its present distance. A pair that touches already is let go on:
    separating is the business of the rows.

    Attributes:
        motion_bound: (P, nv) of the pairs. packed: what `max_safe_scale` takes.
    """

    def __init__(self, robot: Robot, monitor: ShapePairs) -> None:
        """Prepare for the pairs of a monitor, which must have been updated at q before each call."""
        self._robot, self.motion_bound = robot, monitor.motion_bound
        scratch = ProofMemory.of(robot.model.njoints, len(monitor.R), len(monitor.pairs), robot.nq)
        at_rest = monitor.largest_margins(robot)
        nearest = np.where(at_rest > 0.0, REST_SHARE * at_rest, np.inf)
        self.packed = Packed(PathArrays(monitor.arrays, scratch, nearest))

    def max_safe_scale(
        self, q: np.ndarray, brake: np.ndarray, v: np.ndarray, dt: float, acceleration: np.ndarray, floor: float
    ) -> float:
        """The largest s, of a few, for which the path at brake + s (v - brake) is clear; 0 where none is.

        Args:
            q: (nq,) where the robot is.
            brake: (nv,) the velocity that brakes hardest: the end of the path that was proven a tick ago.
            v: (nv,) the velocity that is desired.
            dt: [s]. acceleration: (nv,) with which joints brake [rad/s^2].
            floor: distance that pairs keep [m].
        """
        iv = self._robot.iv
        braking = Braking(dt, acceleration[iv:], floor)
        return float(max_safe_scale(self.packed.table, q, brake[iv:], v[iv:], braking))


class Braking(NamedTuple):
    """A path: length of its ticks [s], how each joint brakes (n,) [rad/s^2], distance that pairs keep [m]."""

    dt: float
    acceleration: F1
    floor: float


class ProofMemory(NamedTuple):
    """Memory of the proof for P pairs.

    Attributes:
        world: poses of the joints. R, p: (S, 3, 3), (S, 3) of the shapes. q: (nq,).
        start, end: (MAX_DEPTH, P) distances at both ends of the parts of the path that wait for their proof.
        distance, floor, pair: (P,) of the pairs that may come too close.
    """

    world: WorldPoses
    R: F3
    p: F2
    q: F1
    start: F2
    end: F2
    distance: F1
    floor: F1
    pair: I1

    @classmethod
    def of(cls, joints: int, shapes: int, pairs: int, nq: int) -> ProofMemory:
        """Memory for so many."""
        return cls(
            WorldPoses.of(joints, joints),
            np.tile(np.eye(3), (shapes, 1, 1)),
            np.zeros((shapes, 3)),
            np.empty(nq),
            np.empty((MAX_DEPTH, pairs)),
            np.empty((MAX_DEPTH, pairs)),
            np.empty(pairs),
            np.empty(pairs),
            np.empty(pairs, dtype=np.int64),
        )


class PathArrays(NamedTuple):
    """Arrays of `max_safe_scale`: those of the monitor, memory, and the highest floors of the pairs (P,) [m]."""

    monitor: MonitorArrays
    scratch: ProofMemory
    nearest: F1


@kernel
def braking_distance(speed: float, step: float, ticks: float) -> float:
    """Distance of a joint in some ticks, in the first at its speed, then braking by step [per tick].

    What brakes in ticks, each at the speed of its end, stays behind what brakes steadily, by the way of half a tick at
    the speed that it has lost. As the next ticks may be shorter than the first, or longer, this is the middle between
    ticks however short and ticks like the first.
    """
    begin = max(speed - LATER * step, 0.0)
    braking = min(max(ticks - 1.0, 0.0), begin / step)
    return speed * min(ticks, 1.0) + begin * braking - 0.5 * step * braking * braking


@kernel
def max_safe_scale(table: np.ndarray, q: np.ndarray, brake: np.ndarray, v: np.ndarray, braking: Braking) -> float:
    """As `StoppingPathCheck.max_safe_scale`; brake and v are those of the joints (n,), the table of PathArrays."""
    path = unpack(table, PathArrays)
    u = v.copy()
    if _is_clear(path, q, u, braking):
        return FULL_MOTION
    low, high = NO_MOTION, FULL_MOTION
    for _ in range(MAX_BISECTIONS):
        s = 0.5 * (low + high)
        for i in range(u.shape[0]):
            u[i] = brake[i] + s * (v[i] - brake[i])
        if _is_clear(path, q, u, braking):
            low = s
        else:
            high = s
    return low


@kernel
def _is_clear(path: PathArrays, q: np.ndarray, v: np.ndarray, braking: Braking) -> bool:
    """True where the path at v is proven to be clear; the monitor's bounds get exact where they were not enough."""
    a, w = path.monitor, path.scratch
    dt, n, last = braking.dt, v.shape[0], 1.0
    step = dt * braking.acceleration
    start, end, d, floors = w.start, w.end, w.distance, w.floor
    travelled = np.empty(n)
    for i in range(n):
        last = max(last, 1.0 + abs(v[i]) / step[i])
    for i in range(n):
        travelled[i] = dt * braking_distance(abs(v[i]), step[i], last)
    count = _pairs_at_risk(path, travelled, braking.floor)
    if count == 0:
        return True
    w.q[:] = q
    d[:count] = 0.0
    _measure(a, q, v, braking, last, count, w)
    begins, ends = np.empty(MAX_DEPTH), np.empty(MAX_DEPTH)
    begins[0], ends[0], depth, postures = 0.0, last, 1, 1
    for k in range(count):
        end[0, k] = d[k]
        if d[k] < floors[k]:
            return False
    while depth > 0:
        t0, t1, top = begins[depth - 1], ends[depth - 1], depth - 1
        for i in range(n):
            speed, lost = abs(v[i]), step[i]
            travelled[i] = dt * (braking_distance(speed, lost, t1) - braking_distance(speed, lost, t0))
        proven = True
        for k in range(count):
            d[k] = np.inf
            if start[top, k] + end[top, k] - _travel(a, w.pair[k], travelled) < 2.0 * GUARANTEED * floors[k]:
                d[k], proven = 0.0, False
        if proven:
            depth -= 1
            continue
        if depth == MAX_DEPTH or postures == MAX_POSTURES:
            return False
        postures += 1
        # At a whole tick while there is one between, so that the halves are as long in space as in time.
        middle = np.floor(0.5 * (t0 + t1)) if t1 - t0 >= 2.0 else 0.5 * (t0 + t1)
        if middle <= t0:
            middle = 0.5 * (t0 + t1)
        _measure(a, q, v, braking, middle, count, w)
        for k in range(count):
            if d[k] < floors[k]:
                return False
            end[top + 1, k], start[top + 1, k] = end[top, k], d[k]
            end[top, k] = d[k]
        begins[top + 1], ends[top + 1], ends[top] = middle, t1, middle
        depth += 1
    return True


@kernel
def _travel(a: MonitorArrays, pair: int, travelled: np.ndarray) -> float:
    """Bound on the change of a pair's distance [m] while the joints travel (n,) [rad]."""
    s = 0.0
    for i in range(travelled.shape[0]):
        s += a.bounds.motion_bound[i, pair] * travelled[i]
    return s


@kernel
def _pairs_at_risk(path: PathArrays, travelled: np.ndarray, highest: float) -> int:
    """Number of pairs that may come closer than their floors; pairs, floors and present distances are in the memory."""
    a, w = path.monitor, path.scratch
    count, lower, pairs = 0, a.bounds.lower, a.bounds.pairs
    fill_travel(a.bounds.motion_bound, travelled, a.bounds.travel)
    for k in range(pairs.shape[0]):
        travel, floor = a.bounds.travel[k], min(highest, path.nearest[k])
        if lower[k] - travel >= floor:
            continue
        lower[k] = pair_distance(a.shapes, a.R, a.p, pairs[k, 0], pairs[k, 1])[0]
        keep = min(floor, SHRINKING * lower[k])
        if lower[k] <= 0.0 or lower[k] - travel >= keep:
            continue
        w.pair[count], w.floor[count], w.start[0, count] = k, keep, lower[k]
        count += 1
    return count


@kernel
def _measure(
    a: MonitorArrays, q: np.ndarray, v: np.ndarray, braking: Braking, ticks: float, count: int, w: ProofMemory
) -> None:
    """Distances (count,) of some pairs after some ticks of the path; those that are infinite stay so."""
    iq = q.shape[0] - v.shape[0]
    for i in range(v.shape[0]):
        gone = braking.dt * braking_distance(abs(v[i]), braking.dt * braking.acceleration[i], ticks)
        w.q[iq + i] = q[iq + i] + (gone if v[i] >= 0.0 else -gone)
    joint_poses(a.tree, w.q, w.world)
    shape_poses(w.world.R, w.world.p, a.shapes, w.R, w.p)
    for k in range(count):
        if w.distance[k] == np.inf:
            continue
        i, j = a.bounds.pairs[w.pair[k], 0], a.bounds.pairs[w.pair[k], 1]
        w.distance[k] = pair_distance(a.shapes, w.R, w.p, i, j)[0]
