"""The way through a tick and on to the stop, and the proof that it is clear; see StoppingPathCheck.

Also here:

* Swept safety: what a robot's shapes pass through in this tick, and from there until its joints have stopped.
"""

from __future__ import annotations

import numpy as np

from humanoid_control.collision.pair_distance import pair_distance, shape_poses
from humanoid_control.collision.shapes import ShapeArrays
from humanoid_control.jit import kernel
from humanoid_control.kinematics.tree import ModelTree, WorldPoses, joint_poses
from humanoid_control.robots.robot import Robot
from humanoid_control.robots.self_collision import ShapePairs

# -------- The way through a tick and on to the stop, and the proof that it is clear; see StoppingPathCheck

MAX_DEPTH = 16  # halvings of a part of the way, and
MAX_POSTURES = 24  # postures in all, after which the way counts as blocked
MAX_BISECTIONS = 4  # of the speed, in search of the fastest that is safe
SHRINKING, GUARANTEED = 0.99, 0.75
NO_MOTION, FULL_MOTION = 0.0, 1.0


@kernel
def braking_distance(speed: float, step: float, ticks: float) -> float:
    """How far a joint gets in some ticks, the first at its speed, each further one slower by step [per tick]."""
    full = np.floor(ticks)
    most = np.ceil(speed / step)
    if full >= most:
        return most * speed - 0.5 * step * most * (most - 1.0)
    return full * speed - 0.5 * step * full * (full - 1.0) + (ticks - full) * (speed - full * step)


@kernel
def max_safe_scale(
    q: np.ndarray,
    iq: int,
    brake: np.ndarray,
    v: np.ndarray,
    dt: float,
    acceleration: float,
    floor: float,
    lever: np.ndarray,
    lower: np.ndarray,
    tree: ModelTree,
    shapes: ShapeArrays,
    pairs: np.ndarray,
    now: tuple,
    placed: tuple,
    rows: tuple,
    pair: np.ndarray,
) -> float:
    """As `StoppingPathCheck.scale`; brake and v are those of the joints (n,)."""
    u = v.copy()
    if _clear(q, iq, u, dt, acceleration, floor, lever, lower, tree, shapes, pairs, now, placed, rows, pair):
        return FULL_MOTION
    low, high = NO_MOTION, FULL_MOTION
    for _ in range(MAX_BISECTIONS):
        s = 0.5 * (low + high)
        for i in range(u.shape[0]):
            u[i] = brake[i] + s * (v[i] - brake[i])
        if _clear(q, iq, u, dt, acceleration, floor, lever, lower, tree, shapes, pairs, now, placed, rows, pair):
            low = s
        else:
            high = s
    return low


@kernel
def _clear(
    q: np.ndarray,
    iq: int,
    v: np.ndarray,
    dt: float,
    acceleration: float,
    floor: float,
    lever: np.ndarray,
    lower: np.ndarray,
    tree: ModelTree,
    shapes: ShapeArrays,
    pairs: np.ndarray,
    now: tuple,
    placed: tuple,
    rows: tuple,
    pair: np.ndarray,
) -> bool:
    """Whether the way at v is proven to be clear; `lower` gets exact where that was not enough."""
    A, B, d, floors = rows
    n = v.shape[0]
    step, last = acceleration * dt, 1.0
    total = np.empty(n)
    for i in range(n):
        last = max(last, np.ceil(abs(v[i]) / step))
    for i in range(n):
        total[i] = dt * braking_distance(abs(v[i]), step, last)
    count = 0
    for k in range(pairs.shape[0]):
        travel = 0.0
        for i in range(n):
            travel += lever[k, i] * total[i]
        if lower[k] - travel >= floor:
            continue
        lower[k] = pair_distance(shapes, now[0], now[1], pairs[k, 0], pairs[k, 1])[0]
        keep = min(floor, SHRINKING * lower[k])
        if lower[k] <= 0.0 or lower[k] - travel >= keep:
            continue
        pair[count], floors[count], A[0, count] = k, keep, lower[k]
        count += 1
    if count == 0:
        return True
    at = q.copy()
    start, end = np.empty(MAX_DEPTH), np.empty(MAX_DEPTH)
    d[:count] = 0.0
    _measure(q, iq, v, dt, step, last, tree, shapes, pairs, placed, pair, count, at, d)
    start[0], end[0], depth, looked = 0.0, last, 1, 1
    for k in range(count):
        B[0, k] = d[k]
        if d[k] < floors[k]:
            return False
    while depth > 0:
        a, b, top = start[depth - 1], end[depth - 1], depth - 1
        proven = True
        for i in range(n):
            total[i] = dt * (braking_distance(abs(v[i]), step, b) - braking_distance(abs(v[i]), step, a))
        for k in range(count):
            travel = 0.0
            for i in range(n):
                travel += lever[pair[k], i] * total[i]
            d[k] = np.inf
            if A[top, k] + B[top, k] - travel < 2.0 * GUARANTEED * floors[k]:
                d[k], proven = 0.0, False
        if proven:
            depth -= 1
            continue
        if depth == MAX_DEPTH or looked == MAX_POSTURES:
            return False
        looked += 1
        # At a whole tick while there is one between, so that the halves are as long in space as in time.
        middle = np.floor(0.5 * (a + b)) if b - a >= 2.0 else 0.5 * (a + b)
        if middle <= a:
            middle = 0.5 * (a + b)
        _measure(q, iq, v, dt, step, middle, tree, shapes, pairs, placed, pair, count, at, d)
        for k in range(count):
            if d[k] < floors[k]:
                return False
            B[top + 1, k], A[top + 1, k] = B[top, k], d[k]
            B[top, k] = d[k]
        start[top + 1], end[top + 1], end[top] = middle, b, middle
        depth += 1
    return True


@kernel
def _measure(
    q: np.ndarray,
    iq: int,
    v: np.ndarray,
    dt: float,
    step: float,
    ticks: float,
    tree: ModelTree,
    shapes: ShapeArrays,
    pairs: np.ndarray,
    placed: tuple,
    pair: np.ndarray,
    count: int,
    at: np.ndarray,
    d: np.ndarray,
) -> None:
    """Distances d (count,) of some pairs after some ticks of the way; those that are infinite stay so."""
    for i in range(v.shape[0]):
        gone = dt * braking_distance(abs(v[i]), step, ticks)
        at[iq + i] = q[iq + i] + (gone if v[i] >= 0.0 else -gone)
    world, R, p = placed
    joint_poses(tree, at, world)
    shape_poses(world.R, world.p, shapes, R, p)
    for k in range(count):
        if d[k] == np.inf:
            continue
        i, j = pairs[pair[k], 0], pairs[pair[k], 1]
        d[k] = pair_distance(shapes, R, p, i, j)[0]


# -------- Swept safety: what a robot's shapes pass through in this tick, and from there until its joints have stopped


class StoppingPathCheck:
    """Is the way clear: through this tick at v, then on while every joint brakes, in ticks of the same length?

    Between two postures a and b of such a way, in which no joint turns back, a pair's distance is at least
    (d_a + d_b - travel) / 2, where travel is the sum of the pair's levers times the angles between a and b. So a few
    postures prove all those between them: pairs that are farther than their whole travel need none, for the others the
    way is halved until it is proven or a posture on it is too close.

    A pair that is apart keeps at least three quarters of its floor, which is the given one or, where it is closer
    now, nearly its present distance. A pair that touches already is not looked at: leaving is the business of the rows.
    """

    def __init__(self, robot: Robot, watch: ShapePairs) -> None:
        """Prepare for the pairs of a watch, which must have looked at q before each call."""
        self._robot, self._watch = robot, watch
        count, P = len(watch.R), len(watch.pairs)
        self._R, self._p = np.tile(np.eye(3), (count, 1, 1)), np.zeros((count, 3))
        n = robot.model.njoints
        self._world = WorldPoses.of(n, n)
        self._lever = np.ascontiguousarray(watch.motion_bound[:, robot.iv :])
        self._a, self._b, self._d = np.empty((MAX_DEPTH, P)), np.empty((MAX_DEPTH, P)), np.empty(P)
        self._floor, self._pair = np.empty(P), np.empty(P, dtype=np.int64)

    def scale(
        self, q: np.ndarray, brake: np.ndarray, v: np.ndarray, dt: float, acceleration: float, floor: float
    ) -> float:
        """The largest s, of a few, for which the way at brake + s (v - brake) is clear; 0 where none is.

        Args:
            q: (nq,) where the robot is.
            brake: (nv,) the velocity that brakes hardest: the end of the way that was proven a tick ago.
            v: (nv,) the velocity that is wanted.
            dt: [s]. acceleration: with which joints brake [rad/s^2].
            floor: distance that pairs keep [m].
        """
        w, r = self._watch, self._robot
        return float(
            max_safe_scale(
                q,
                r.iq,
                brake[r.iv :],
                v[r.iv :],
                dt,
                acceleration,
                floor,
                self._lever,
                w.lower,
                w.poses.tree,
                w.shapes,
                w.pairs,
                (w.R, w.p),
                (self._world, self._R, self._p),
                (self._a, self._b, self._d, self._floor),
                self._pair,
            )
        )
