"""Stopping path of a robot: the motion of its shapes until it stops, and the proof that it is clear."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from humanoid_control.collision.convex_distance import Solid
from humanoid_control.collision.pair_bounds import UNSEEN, fill_travel
from humanoid_control.collision.pair_distance import boxed_distance, pair_distance, shape_pose
from humanoid_control.collision.penetration_depth import separation
from humanoid_control.collision.shapes import BOX, CAPSULE, ShapeArrays
from humanoid_control.compiled.array_types import B1, F1, F2, F3, I1
from humanoid_control.compiled.jit import inlined, kernel
from humanoid_control.compiled.packed import Packed, Table, unpack
from humanoid_control.kinematics.forward_kinematics import WorldPoses, place_joint
from humanoid_control.numerics.cholesky import dot
from humanoid_control.numerics.vec3 import Vec, cross, rotate, row, sub, unrotate
from humanoid_control.numerics.vec3 import dot as dot3
from humanoid_control.robots.robot import Robot
from humanoid_control.robots.self_collision import MonitorArrays, ShapePairs

MAX_DEPTH = 16  # largest number of halvings of a path segment
MAX_POSTURES = 24  # largest number of measured postures, after which the path counts as blocked
MAX_BISECTIONS = 4  # of the speed, in search of the fastest safe speed
SHRINKING = 0.999  # share of its distance that a pair below the floor keeps
REST_SHARE = 0.9  # largest floor of a pair, as a share of its distance in the neutral posture
GUARANTEED = 0.95  # proven share of the floor
LATER = 0.25  # [ticks] delay of tick-wise braking behind steady braking
NO_MOTION, FULL_MOTION = 0.0, 1.0


class StoppingPathCheck:
    """Check of the path through this tick at v, followed by braking of every joint.

    Two lower bounds hold between postures a and b on a path without reversals. First, a pair's distance is at least
    (d_a + d_b - T) / 2, with the travel T = sum_i m_i |q_b - q_a|_i and the motion bounds m_i. Second, the gap along a
    direction n fixed to the last common joint is at most the distance. Its derivatives are at most m_i by angle i, and
    m_j by angles i and j, j being the more distal joint. With Theta = sum_i |q_b - q_a|_i and the deviations e_i from
    linear motion, the distance is at least

        min(d_a, gap_b(n)) - T Theta / 8 - sum_i m_i e_i,

    n being the normal at a; likewise with a and b exchanged. A path is halved until it is proven or a posture is too
    close.

    A separated pair keeps at least 95 % of its floor: the lowest of the given one, a share of the neutral distance, and
    nearly the present distance. A pair in contact may continue: the rows separate it.
    """

    def __init__(self, robot: Robot, monitor: ShapePairs) -> None:
        """Prepare for the pairs of a monitor, which must be updated at q before each call."""
        self._robot, self.motion_bound = robot, monitor.motion_bound
        scratch = ProofMemory.of(robot.model.njoints, robot.n, len(monitor.R), len(monitor.pairs))
        at_rest = monitor.largest_margins(robot)
        nearest = np.where(at_rest > 0.0, REST_SHARE * at_rest, np.inf)
        self.packed = Packed(PathArrays(monitor.arrays, scratch, nearest))

    def max_safe_scale(
        self, q: np.ndarray, brake: np.ndarray, v: np.ndarray, dt: float, acceleration: np.ndarray, floor: float
    ) -> float:
        """Return the largest tested s with a clear path at brake + s (v - brake); 0 if none.

        Args:
            brake: hardest braking (nv,), the continuation of the proven path.
            acceleration: deceleration (nv,) [rad/s^2].
        """
        iv = self._robot.iv
        braking = Braking(dt, acceleration[iv:], floor)
        return float(max_safe_scale(self.packed.table, q, brake[iv:], v[iv:], braking))


class Braking(NamedTuple):
    """Parameters of a path: tick length [s], joint deceleration (n,) [rad/s^2], kept distance [m]."""

    dt: float
    acceleration: F1
    floor: float


class ProofMemory(NamedTuple):
    """Memory of the proof for P pairs.

    Attributes:
        start: distances at the start of open segments (MAX_DEPTH, P) [m].
        start_normal: normals at the start, in the axes of the common joints (MAX_DEPTH, P, 3).
        chord: lower gap of both ends along one of the normals (MAX_DEPTH, P) [m].
        carries: number of the shapes of the pairs at risk on each joint (njoints,).
        joints: joints with some of the shapes but not all (njoints,).
        lever: their motion bounds (P, njoints).
        lost: speed that each joint loses in a tick of braking (n,) [rad/s].
        moved: travel of each joint to its stop (n,) [rad].
        travelled: travel of each joint in a segment (n,) [rad].
        deviation: largest deviation from linear motion in a segment (n,) [rad].
    """

    world: WorldPoses
    R: F3
    p: F2
    start: F2
    end: F2
    start_normal: F3
    end_normal: F3
    chord: F2
    distance: F1
    floor: F1
    pair: I1
    normal: F2
    carries: I1
    joints: I1
    column: I1
    lever: F2
    turns: F2
    shapes: I1
    used: B1
    trial: F1
    lost: F1
    moved: F1
    travelled: F1
    deviation: F1
    begin: F1
    end_time: F1

    @classmethod
    def of(cls, joints: int, velocities: int, shapes: int, pairs: int) -> ProofMemory:
        """Allocate memory; `velocities` counts joint velocities only."""
        return cls(
            WorldPoses.of(joints, joints),
            np.tile(np.eye(3), (shapes, 1, 1)),
            np.zeros((shapes, 3)),
            np.empty((MAX_DEPTH, pairs)),
            np.empty((MAX_DEPTH, pairs)),
            np.empty((MAX_DEPTH, pairs, 3)),
            np.empty((MAX_DEPTH, pairs, 3)),
            np.empty((MAX_DEPTH, pairs)),
            np.empty(pairs),
            np.empty(pairs),
            np.empty(pairs, dtype=np.int64),
            np.empty((pairs, 3)),
            np.empty(joints, dtype=np.int64),
            np.empty(joints, dtype=np.int64),
            np.empty(joints, dtype=np.int64),
            np.empty((pairs, joints)),
            np.empty((pairs, joints)),
            np.empty(shapes, dtype=np.int64),
            np.zeros(shapes, dtype=np.bool_),
            *(np.empty(velocities) for _ in range(5)),
            *(np.empty(MAX_DEPTH) for _ in range(2)),
        )


class PathArrays(NamedTuple):
    """Arrays of `max_safe_scale`: monitor, memory, and the highest floors of the pairs (P,) [m]."""

    monitor: MonitorArrays
    scratch: ProofMemory
    nearest: F1


@kernel
def braking_distance(speed: float, step: float, ticks: float) -> float:
    """Return the travel of a joint: one tick at its speed, then braking by step [per tick].

    Tick-wise braking lags behind steady braking by half a tick at the lost speed. Since later ticks may be shorter or
    longer, the result is the mean of infinitesimal and equal ticks.
    """
    begin = max(speed - LATER * step, 0.0)
    braking = min(max(ticks - 1.0, 0.0), begin / step)
    return speed * min(ticks, 1.0) + begin * braking - 0.5 * step * braking * braking


@kernel
def max_safe_scale(
    table: Table[PathArrays], q: np.ndarray, brake: np.ndarray, v: np.ndarray, braking: Braking
) -> float:
    """Compute `StoppingPathCheck.max_safe_scale` for joint velocities (n,)."""
    u = unpack(table, PathArrays).scratch.trial
    for i in range(v.shape[0]):
        u[i] = v[i]
    if _is_clear(table, q, u, braking):
        return FULL_MOTION
    # Bisection: low is always proven (or braking itself), high is not.
    low, high = NO_MOTION, FULL_MOTION
    for _ in range(MAX_BISECTIONS):
        s = 0.5 * (low + high)
        for i in range(u.shape[0]):
            u[i] = brake[i] + s * (v[i] - brake[i])
        if _is_clear(table, q, u, braking):
            low = s
        else:
            high = s
    return low


@kernel
def speed_after(speed: float, step: float, ticks: float) -> float:
    """Return the speed after some ticks of `braking_distance`; it never grows."""
    return speed if ticks < 1.0 else max(speed - LATER * step - step * (ticks - 1.0), 0.0)


@kernel
def chord_deviation(speed: float, step: float, begin: float, end: float) -> float:
    """Return the largest deviation of `braking_distance` from its chord between two times [ticks].

    The curvature is 0 in the first tick and in [-step, 0] afterwards. The deviation is largest if all braking happens
    at once in the middle; it is also at most the travel at the first speed after the first tick.
    """
    if end <= 1.0:
        return 0.0
    length = end - begin
    slowed = 0.25 * length * (speed_after(speed, step, begin) - speed_after(speed, step, end))
    if begin >= 1.0:
        return min(slowed, 0.125 * step * length * length)
    return min(slowed, speed * (end - 1.0))


@inlined
def least_by_travel(start: float, end: float, travel: float) -> float:
    """Return the lower bound of a distance [m] between two values, if it changes by at most `travel`."""
    return 0.5 * (start + end - travel)


@inlined
def least_by_gap(chord: float, travel: float, turned: float, deviation: float) -> float:
    """Return the lower bound of a distance [m] by the gaps at both ends along one normal.

    Args:
        chord: lower gap [m].
        travel: sum of motion bounds times angles [m].
        turned: sum of angles [rad].
        deviation: sum of motion bounds times deviations from linear motion [m].
    """
    return chord - 0.125 * travel * turned - deviation


@kernel
def _is_clear(table: Table[PathArrays], q: np.ndarray, v: np.ndarray, braking: Braking) -> bool:
    # Here and below: a call that passes the record itself copies 500 words, and some calls are made for every pair.
    w = unpack(table, PathArrays).scratch
    dt, n, last = braking.dt, v.shape[0], 1.0
    step = w.lost
    start, end, d, floors = w.start, w.end, w.distance, w.floor
    travelled, deviation, moved, begins, ends = w.travelled, w.deviation, w.moved, w.begin, w.end_time
    # The path ends when the slowest joint to brake has stopped.
    for i in range(n):
        step[i] = dt * braking.acceleration[i]
        last = max(last, 1.0 + abs(v[i]) / step[i])
    for i in range(n):
        way = dt * braking_distance(abs(v[i]), step[i], last)
        moved[i] = way if v[i] >= 0.0 else -way
    count = _pairs_at_risk(table, moved, braking.floor)
    if count == 0:
        return True
    moving = _begin_path(table, q.shape[0] - n, count)
    # Zero requests a measurement; infinity marks pairs that need none.
    for k in range(count):
        d[k] = 0.0
    _measure(table, q, v, braking, last, count, moving)
    begins[0], ends[0], depth, postures = 0.0, last, 1, 1
    # The end posture first: it rules out most blocked paths at once.
    for k in range(count):
        if d[k] < floors[k]:
            return False
        end[0, k] = d[k]
        _copy(w.normal[k], w.end_normal[0, k])
        w.chord[0, k] = min(start[0, k], _gap(table, k, w.start_normal[0, k]))
    # Stack of open segments, the last one (top) next.
    while depth > 0:
        t0, t1, top = begins[depth - 1], ends[depth - 1], depth - 1
        for m in range(moving.joints):
            # Travel of the joints within the segment, and its deviation from linear motion.
            i = w.column[m]
            speed, lost = abs(v[i]), step[i]
            travelled[m] = dt * (braking_distance(speed, lost, t1) - braking_distance(speed, lost, t0))
            deviation[m] = dt * chord_deviation(speed, lost, t0, t1)
        proven = True
        for k in range(count):
            d[k], least = np.inf, GUARANTEED * floors[k]
            travel = dot(w.lever[k], travelled, moving.joints)
            # The linear bound is cheap; the quadratic one is needed only if it fails.
            if least_by_travel(start[top, k], end[top, k], travel) >= least:
                continue
            turned, off = dot(w.turns[k], travelled, moving.joints), dot(w.lever[k], deviation, moving.joints)
            if least_by_gap(w.chord[top, k], travel, turned, off) < least:
                d[k], proven = 0.0, False
        if proven:
            depth -= 1
            continue
        if depth == MAX_DEPTH or postures == MAX_POSTURES:
            return False
        postures += 1
        # Split at a whole tick if possible, so that the halves are as long in space as in time.
        middle = np.floor(0.5 * (t0 + t1)) if t1 - t0 >= 2.0 else 0.5 * (t0 + t1)
        if middle <= t0:
            middle = 0.5 * (t0 + t1)
        _measure(table, q, v, braking, middle, count, moving)
        # Replace the top segment by its two halves: the later one on top.
        for k in range(count):
            if d[k] < floors[k]:
                return False
            end[top + 1, k], start[top + 1, k] = end[top, k], d[k]
            _copy(w.end_normal[top, k], w.end_normal[top + 1, k])
            _copy(w.normal[k], w.start_normal[top + 1, k])
            if d[k] < np.inf:
                w.chord[top + 1, k] = min(end[top, k], _gap(table, k, w.end_normal[top, k]))
                w.chord[top, k] = min(start[top, k], _gap(table, k, w.start_normal[top, k]))
            end[top, k] = d[k]
            _copy(w.normal[k], w.end_normal[top, k])
        begins[top + 1], ends[top + 1], ends[top] = middle, t1, middle
        depth += 1
    return True


@kernel
def _gap(table: Table[PathArrays], k: int, normal: np.ndarray) -> float:
    path = unpack(table, PathArrays)
    a, w = path.monitor, path.scratch
    i, j = a.bounds.pairs[w.pair[k], 0], a.bounds.pairs[w.pair[k], 1]
    n = rotate(w.world.R[a.bounds.common[w.pair[k]]], (normal[0], normal[1], normal[2]))
    first = Solid(a.shapes.kinds[i], a.shapes.sizes[i], w.R[i], (w.p[i, 0], w.p[i, 1], w.p[i, 2]))
    second = Solid(a.shapes.kinds[j], a.shapes.sizes[j], w.R[j], (w.p[j, 0], w.p[j, 1], w.p[j, 2]))
    return separation(first, second, n)


@inlined
def _copy(given: np.ndarray, out: np.ndarray) -> None:
    """Copy a row (3,) by elements, several times faster than a slice."""
    out[0], out[1], out[2] = given[0], given[1], given[2]


@kernel
def _keep_normal(R: np.ndarray, n: tuple, out: np.ndarray) -> None:
    out[0], out[1], out[2] = unrotate(R, n)


@kernel
def _pairs_at_risk(table: Table[PathArrays], moved: np.ndarray, highest: float) -> int:
    """Store the pairs that may fall below their floors, and return their number."""
    path = unpack(table, PathArrays)
    a, w = path.monitor, path.scratch
    count, lower, pairs = 0, a.bounds.lower, a.bounds.pairs
    fill_travel(a.bounds.motion_bound, moved, a.bounds.travel)
    for k in range(pairs.shape[0]):
        travel, floor = a.bounds.travel[k], min(highest, path.nearest[k])
        # Cheapest test first: the known lower bound, then boxes around the shapes, then the exact distance.
        if lower[k] - travel >= floor:
            continue
        n = row(a.bounds.normal, k)
        if a.bounds.state[k] == UNSEEN:
            least = boxed_distance(a.shapes, a.R, a.p, pairs[k, 0], pairs[k, 1])
            if least - travel >= floor:
                lower[k] = least
                continue
            lower[k], n, _, _ = pair_distance(a.shapes, a.R, a.p, pairs[k, 0], pairs[k, 1])
        # Shapes in contact, and pairs that provably keep their floor, are not at risk.
        keep = min(floor, SHRINKING * lower[k])
        if lower[k] <= 0.0 or lower[k] - travel >= keep or least_distance_on_path(table, k, n, moved) >= keep:
            continue
        w.pair[count], w.floor[count], w.start[0, count] = k, keep, lower[k]
        _keep_normal(a.world.R[a.bounds.common[k]], n, w.start_normal[0, count])
        count += 1
    return count


@inlined
def _extent(shapes: ShapeArrays, R: np.ndarray, s: int, u: Vec) -> float:
    v, x, y, z, half = unrotate(R[s], u), shapes.sizes[s, 0], shapes.sizes[s, 1], shapes.sizes[s, 2], shapes.sizes[s, 3]
    if shapes.kinds[s] == BOX:
        return x * abs(v[0]) + y * abs(v[1]) + z * abs(v[2])
    return half * abs(v[2]) + np.sqrt((x * v[0]) ** 2 + (y * v[1]) ** 2 + (z * v[2]) ** 2)


@kernel
def least_distance_on_path(table: Table[PathArrays], k: int, n: Vec, moved: np.ndarray) -> float:
    """Return the lowest possible distance [m] of a pair while all joints move.

    The gap along a direction n fixed to the common joint is at most the distance. To first order, a joint moves a point
    along n by lever times angle; separating motions do not count. Higher orders are at most T Theta / 2, with the
    pair's travel T and the sum Theta of all angles. Points are the axis ends of spheres and capsules, otherwise the
    point with the largest lever.
    """
    a = unpack(table, PathArrays).monitor
    shapes, world, tree = a.shapes, a.world, a.tree
    # Floating-base configurations have 7 numbers before the joints.
    first, turned, least = 7 if tree.floating else 0, 0.0, a.bounds.lower[k]
    for side in range(2):
        s, toward = a.bounds.pairs[k, side], 1.0 if side == 0 else -1.0  # n points from the first to the second shape
        half, p, swept = shapes.sizes[s, 3], row(a.p, s), shapes.kinds[s] <= CAPSULE
        end = (half * a.R[s, 0, 2], half * a.R[s, 1, 2], half * a.R[s, 2, 2])
        far = 2.0 * toward * dot3(n, end)  # by which one end is nearer than the other one
        ahead, behind = (max(-far, 0.0), max(far, 0.0)) if swept else (0.0, 0.0)
        j, closer, closer_behind = shapes.joint[s], 0.0, 0.0
        # Walk up the chain from the shape to the common joint.
        while j != a.bounds.common[k]:
            way, axis = moved[tree.idx_q[j] - first], row(world.axes, j)
            if tree.joints.slides[j]:
                rate, more = toward * way * dot3(n, axis), 0.0
            else:
                u = cross(n, axis)
                rate = toward * way * dot3(u, sub(p, row(world.p, j)))
                more = toward * way * dot3(u, end) if swept else abs(way) * _extent(shapes, a.R, s, u)
                turned += abs(way)
            # Approach of the nearer and the farther end of the axis.
            closer += max(rate + more, 0.0)
            closer_behind += max(rate - more, 0.0)
            j = tree.parent[j]
        least -= max(closer - ahead, closer_behind - behind)
    return least - 0.5 * a.bounds.travel[k] * turned


class Moving(NamedTuple):
    """Numbers of joints that move the pairs at risk, and of their shapes."""

    joints: int
    shapes: int


@kernel
def _begin_path(table: Table[PathArrays], iq: int, count: int) -> Moving:
    """Find the joints that move the pairs at risk; joints that carry all of their shapes, or none, keep their pose."""
    path = unpack(table, PathArrays)
    a, w = path.monitor, path.scratch
    parent, first, total, joints = a.tree.parent, 2 if a.tree.floating else 1, 0, 0
    for j in range(parent.shape[0]):
        w.carries[j] = 0
    # Count the shapes of these pairs that each joint carries, each shape once.
    for k in range(count):
        for side in range(2):
            s = a.bounds.pairs[w.pair[k], side]
            if not w.used[s]:
                w.used[s], w.shapes[total] = True, s
                total += 1
                j = a.shapes.joint[s]
                while j > 0:
                    w.carries[j] += 1
                    j = parent[j]
    for m in range(total):
        w.used[w.shapes[m]] = False
    for j in range(parent.shape[0]):
        if j >= first and 0 < w.carries[j] < total:
            w.joints[joints], w.column[joints] = j, a.tree.idx_q[j] - iq
            for k in range(count):
                w.lever[k, joints] = a.bounds.motion_bound[w.column[joints], w.pair[k]]
                w.turns[k, joints] = 1.0 if w.lever[k, joints] > 0.0 else 0.0
            joints += 1
        else:
            _copy(a.world.p[j], w.world.p[j])
            for c in range(3):
                _copy(a.world.R[j, c], w.world.R[j, c])
    return Moving(joints, total)


@kernel
def _measure(
    table: Table[PathArrays],
    q: np.ndarray,
    v: np.ndarray,
    braking: Braking,
    ticks: float,
    count: int,
    moving: Moving,
) -> None:
    """Measure pairs after some ticks; infinite distances are skipped."""
    path = unpack(table, PathArrays)
    a, w = path.monitor, path.scratch
    iq, world = q.shape[0] - v.shape[0], w.world
    for m in range(moving.joints):
        j, i = w.joints[m], w.column[m]
        gone = braking.dt * braking_distance(abs(v[i]), braking.dt * braking.acceleration[i], ticks)
        value = q[iq + i] + (gone if v[i] >= 0.0 else -gone)
        place_joint(a.tree.joints, j, value, a.tree.parent[j], j, world.R, world.p, world.axes)
    for m in range(moving.shapes):
        shape_pose(world.R, world.p, a.shapes, w.shapes[m], w.R, w.p)
    for k in range(count):
        if w.distance[k] == np.inf:
            continue
        i, j = a.bounds.pairs[w.pair[k], 0], a.bounds.pairs[w.pair[k], 1]
        w.distance[k], n, _, _ = pair_distance(a.shapes, w.R, w.p, i, j)
        _keep_normal(world.R[a.bounds.common[w.pair[k]]], n, w.normal[k])
