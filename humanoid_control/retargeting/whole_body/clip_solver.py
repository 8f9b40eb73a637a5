"""Trajectory optimisation of a whole body over many frames at once.

minimise  sum_t sum_k w_tk |p_k(x_t) - target_tk|^2 + posture^2 |x_t - rest|^2 + smoothing^2 |x_t - 2 x_t-1 + x_t-2|^2
          + penalties of: a sole in contact off its place, a joint beyond its range or speed, an acceleration beyond its
            limit, shapes nearer than their margin, a sole below the floor

by Gauss-Newton with linearised points and distances. Violated rows are quadratic penalties, which rise from step to
step. The matrix is block-banded. `feasible_frames` then enforces every limit.

Base coordinates are a translation and a rotation vector in the world, about the pose of each iteration.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from humanoid_control.compiled.jit import kernel
from humanoid_control.numerics.cholesky import BandedFactor, BlockWork, factor_block_row, solve_banded
from humanoid_control.numerics.rotation import rotation_vector
from humanoid_control.retargeting.frame_solver import LOCKED
from humanoid_control.retargeting.problem import (
    RetargetingProblem,
    Scratch,
    distance_rows,
    near_pairs,
    place_points,
    point_jacobian,
)
from humanoid_control.retargeting.whole_body.contacts import ContactSoles, sole_corners

INSIDE = 1e-3  # [rad] margin inside the joint ranges; share of the speed limit
ABOVE = 3e-4  # [m] target height of free soles


class ClipRules(NamedTuple):
    """Parameters of the optimisation.

    Attributes:
        smoothing: (D,) cost of a squared second difference.
        posture: cost of a squared distance from rest.
        damping: cost of a squared step [1, m^2/rad^2].
        caution: share of a frame's cost added to its damping (Sugihara 2011), for nearly stretched legs far from their
            goal.
        speed: (D,) largest first difference [rad, m].
        acceleration: (D,) largest second difference [rad, m].
        apart: penalty of distance and floor violations [1/m^2].
        margin: shape distance [m].
    """

    smoothing: np.ndarray
    posture: float
    damping: float
    caution: float
    speed: np.ndarray
    acceleration: np.ndarray
    hard: float
    effort: float
    apart: float
    margin: float


class ClipPostures(NamedTuple):
    """Postures of W frames: coordinates x (W, D), 0 for the base; root rotation R (W, 3, 3) and position p (W, 3)."""

    x: np.ndarray
    R: np.ndarray
    p: np.ndarray


class ClipGoal(NamedTuple):
    """Goal of W frames: point targets (W, K, 3) [m] and their weights (W, K)."""

    target: np.ndarray
    weight: np.ndarray


class ClipWork(NamedTuple):
    """Work memory of the optimisation.

    Attributes:
        step: (W, D) right-hand side, then solution.
        own: (W, D) diagonal of block [t, t] from frame differences.
        one: (W, D) diagonal of block [t, t - 1].
        two: (W, D) diagonal of block [t, t - 2].
        columns: (K, D) coordinates that move each point.
    """

    factor: BandedFactor
    block: BlockWork
    cost: np.ndarray
    step: np.ndarray
    own: np.ndarray
    one: np.ndarray
    two: np.ndarray
    difference: np.ndarray
    columns: np.ndarray
    moving: np.ndarray
    A: np.ndarray
    J: np.ndarray
    G: np.ndarray

    @classmethod
    def room(cls, problem: RetargetingProblem, frames: int) -> ClipWork:
        """Allocate memory for a problem and a number of frames."""
        d, k, tree = len(problem.rest), len(problem.point), problem.tree
        columns, moving = np.zeros((k, d), dtype=np.int64), np.zeros(k, dtype=np.int64)
        for i, body in enumerate(problem.point_body):
            found = np.unique(tree.coordinate[tree.moves[body] != 0.0])
            columns[i, : len(found)], moving[i] = found, len(found)
        step, own, one, two, difference = (np.zeros((frames, d)) for _ in range(5))
        return cls(
            BandedFactor.room(frames, d),
            BlockWork(np.empty((d, d)), np.empty((d, d))),
            np.zeros(frames),
            step,
            own,
            one,
            two,
            difference,
            columns,
            moving,
            np.empty((d, d)),
            np.empty((3 * k, d)),
            np.empty((max(len(problem.pairs), 1), d)),
        )


# -------- differences of frames


@kernel
def add_difference(weight: float, r: float, t: int, i: int, order: int, work: ClipWork) -> float:
    """Add weight/2 r^2 of a first or second difference at frame t of coordinate i; return its cost."""
    own, one, two, g = work.own, work.one, work.two, work.step
    # r = x_t - x_(t-1): coefficients (1, -1)
    if order == 1:
        own[t, i] += weight
        own[t - 1, i] += weight
        one[t, i] -= weight
        g[t, i] -= weight * r
        g[t - 1, i] += weight * r
    else:
        # r = x_t - 2 x_(t-1) + x_(t-2): coefficients (1, -2, 1)
        own[t, i] += weight
        own[t - 1, i] += 4.0 * weight
        own[t - 2, i] += weight
        one[t, i] -= 2.0 * weight
        one[t - 1, i] -= 2.0 * weight
        two[t, i] += weight
        g[t, i] -= weight * r
        g[t - 1, i] += 2.0 * weight * r
        g[t - 2, i] -= weight * r
    return 0.5 * weight * r * r


@kernel
def beyond(value: float, most: float) -> float:
    """Return the signed excess of a value over +-`most`."""
    if value > most:
        return value - most
    return value + most if value < -most else 0.0


@kernel
def beyond_range(problem: RetargetingProblem, i: int, value: float) -> float:
    """Return the signed excess of a coordinate over its range, less a margin."""
    inside = min(INSIDE, 0.1 * (problem.upper[i] - problem.lower[i]))
    below, above = value - problem.lower[i] - inside, value - problem.upper[i] + inside
    return above if above > 0.0 else min(below, 0.0)


@kernel
def difference_before(problem: RetargetingProblem, state: ClipPostures, t: int, out: np.ndarray) -> None:
    """Compute the difference (D,) of frame t from the previous one; of the base in the world."""
    for i in range(out.shape[0]):
        out[i] = state.x[t, i] - state.x[t - 1, i]
    if problem.base > 0:
        for i in range(3):
            out[i] = state.p[t, i] - state.p[t - 1, i]
        rotation_vector(state.R[t - 1], state.R[t], out[3:6])


@kernel
def difference_rows(problem: RetargetingProblem, rules: ClipRules, state: ClipPostures, work: ClipWork) -> None:
    """Add smoothness, speed and acceleration limits, range and rest: diagonals, right-hand side, frame costs."""
    W, d = state.x.shape
    x, diff = state.x, work.difference
    for a in (work.own, work.one, work.two, work.step):
        a[:W] = 0.0
    for t in range(W):
        if t > 0:
            difference_before(problem, state, t, diff[t])
        cost = 0.0
        for i in range(d):
            if t > 0:
                # limits are one-sided penalties: active only beyond the limit
                r = beyond(diff[t, i], (1.0 - INSIDE) * rules.speed[i])
                if r != 0.0:
                    cost += add_difference(rules.hard, r, t, i, 1, work)
            # second difference: smoothness always, the limit only beyond it
            if t > 1:
                r = diff[t, i] - diff[t - 1, i]
                cost += add_difference(rules.smoothing[i], r, t, i, 2, work)
                r = beyond(r, rules.acceleration[i])
                if r != 0.0:
                    cost += add_difference(rules.effort, r, t, i, 2, work)
            if i >= problem.base:
                off = x[t, i] - problem.rest[i]
                cost += 0.5 * rules.posture * off * off
                work.own[t, i] += rules.posture
                work.step[t, i] -= rules.posture * off
                r = beyond_range(problem, i, x[t, i])
                if r != 0.0:
                    cost += 0.5 * rules.hard * r * r
                    work.own[t, i] += rules.hard
                    work.step[t, i] -= rules.hard * r
            # damping acts on the step only, not on the cost
            work.own[t, i] += rules.damping
        work.cost[t] = cost


# -------- one frame


@kernel(allocates=True)
def place_frame(problem: RetargetingProblem, state: ClipPostures, t: int, w: Scratch) -> None:
    """Compute bodies and points of a frame."""
    if problem.base > 0:
        problem.tree.joints.R[0] = state.R[t]
        problem.tree.joints.p[0] = state.p[t]
    place_points(problem, state.x[t], w)


@kernel
def frame_rows(
    problem: RetargetingProblem,
    rules: ClipRules,
    goal: ClipGoal,
    t: int,
    w: Scratch,
    work: ClipWork,
    rows: bool,
) -> float:
    """Add a frame's points, distances and floor to the upper triangle of A and the right-hand side; return the cost.

    Call after `place_frame`.
    """
    A, J, G, g = work.A, work.J, work.G, work.step[t]
    base = w.bodies.p[6] if problem.base > 0 else w.bodies.p[0]
    cost = 0.0
    if rows:
        point_jacobian(problem, w, J)
    for k in range(problem.point.shape[0]):
        weight, columns, n = goal.weight[t, k], work.columns[k], work.moving[k]
        for c in range(3):
            e = goal.target[t, k, c] - w.points[k, c]
            cost += 0.5 * weight * e * e
        if not rows:
            continue
        if problem.base > 0:
            world_rows(w.points[k], base, J[3 * k : 3 * k + 3])
        for c in range(3):
            # right-hand side w J' e, over the coordinates that move the point
            e, row = goal.target[t, k, c] - w.points[k, c], J[3 * k + c]
            for i in range(n):
                g[columns[i]] += weight * e * row[columns[i]]
        # w J' J, upper triangle
        Jx, Jy, Jz = J[3 * k], J[3 * k + 1], J[3 * k + 2]
        for i in range(n):
            a = columns[i]
            ax, ay, az = weight * Jx[a], weight * Jy[a], weight * Jz[a]
            for j in range(i, n):
                b = columns[j]
                A[a, b] += ax * Jx[b] + ay * Jy[b] + az * Jz[b]
    # one-sided: soles below their height
    for k in problem.soles:
        height = ABOVE if goal.weight[t, k] < LOCKED else 0.0
        if w.points[k, 2] < height:
            short = height - w.points[k, 2]
            cost += 0.5 * rules.apart * short * short
            if rows:
                add_row(rules.apart, short, J[3 * k + 2], A, g)
    count = near_pairs(problem, w, rules.margin)
    if rows:
        distance_rows(problem, w, count, G)
    for r in range(count):
        short = min(rules.margin, problem.at_rest[w.near.pair[r]]) - w.near.distance[r]
        if short > 0.0:
            cost += 0.5 * rules.apart * short * short
            if rows:
                # the base moves all shapes together
                G[r, : problem.base] = 0.0
                add_row(rules.apart, short, G[r], A, g)
    return cost


@kernel
def world_rows(point: np.ndarray, base: np.ndarray, rows: np.ndarray) -> None:
    """Set columns 0 to 5 of a point's rows (3, D): translation and rotation of the base in the world."""
    x, y, z = point[0] - base[0], point[1] - base[1], point[2] - base[2]
    for c in range(3):
        for i in range(6):
            rows[c, i] = 0.0
        rows[c, c] = 1.0
    # omega x r for unit rotations about x, y, z
    rows[1, 3], rows[2, 3] = -z, y
    rows[0, 4], rows[2, 4] = z, -x
    rows[0, 5], rows[1, 5] = -y, x


@kernel
def add_row(weight: float, e: float, row: np.ndarray, A: np.ndarray, g: np.ndarray) -> None:
    """Add weight/2 (row . step - e)^2 to the upper triangle of A and the right-hand side."""
    for i in range(row.shape[0]):
        c = weight * row[i]
        if c != 0.0:
            g[i] += c * e
            for j in range(i, row.shape[0]):
                A[i, j] += c * row[j]


# -------- all frames


@kernel
def newton_step(
    problem: RetargetingProblem,
    rules: ClipRules,
    state: ClipPostures,
    goal: ClipGoal,
    fixed: int,
    w: Scratch,
    work: ClipWork,
) -> bool:
    """Compute the Gauss-Newton step (`work.step`) and frame costs (`work.cost`); False unless positive definite."""
    W, d = state.x.shape
    difference_rows(problem, rules, state, work)
    for t in range(W):
        A = work.A
        A[:] = 0.0
        if t < fixed:
            # fixed frames: identity rows, no step
            for i in range(d):
                A[i, i] = 1.0
            work.step[t] = 0.0
        else:
            place_frame(problem, state, t, w)
            off = frame_rows(problem, rules, goal, t, w, work, True)
            work.cost[t] += off
            for i in range(d):
                A[i, i] += work.own[t, i] + rules.caution * off
        # fixed neighbours do not couple: their step is zero
        if t < fixed + 1:
            work.one[t] = 0.0
        if t < fixed + 2:
            work.two[t] = 0.0
        if not factor_block_row(work.factor, t, A, work.one[t], work.two[t], work.block):
            return False
    solve_banded(work.factor, work.step[:W])
    return True


@kernel
def frame_costs(
    problem: RetargetingProblem,
    rules: ClipRules,
    state: ClipPostures,
    goal: ClipGoal,
    fixed: int,
    w: Scratch,
    work: ClipWork,
) -> None:
    """Compute the frame costs (`work.cost`); the step is overwritten."""
    difference_rows(problem, rules, state, work)
    for t in range(fixed, state.x.shape[0]):
        place_frame(problem, state, t, w)
        work.cost[t] += frame_rows(problem, rules, goal, t, w, work, False)


@kernel
def advance(
    problem: RetargetingProblem, state: ClipPostures, step: np.ndarray, share: np.ndarray, to: ClipPostures
) -> None:
    """Fill `to` with the state moved by a share (W,) of a step (W, D)."""
    base = problem.base
    for t in range(state.x.shape[0]):
        s = share[t]
        for i in range(base, state.x.shape[1]):
            to.x[t, i] = min(max(state.x[t, i] + s * step[t, i], problem.lower[i]), problem.upper[i])
        if base > 0:
            for i in range(3):
                to.p[t, i] = state.p[t, i] + s * step[t, i]
            turned(state.R[t], s * step[t, 3], s * step[t, 4], s * step[t, 5], to.R[t])


@kernel
def turned(R: np.ndarray, x: float, y: float, z: float, out: np.ndarray) -> None:
    """Rotate R by a rotation vector in the world [rad] into `out`."""
    angle = np.sqrt(x * x + y * y + z * z)
    # Rodrigues: R + sin(a)/a [v] R + (1 - cos(a))/a^2 [v]^2 R, with (1 - cos a) = 2 sin^2(a/2)
    s = np.sin(angle) / angle if angle > 1e-9 else 1.0
    half = np.sin(0.5 * angle) / angle if angle > 1e-9 else 0.5
    c = 2.0 * half * half
    v = (x, y, z)
    for j in range(3):
        a, b, e = R[0, j], R[1, j], R[2, j]
        along = x * a + y * b + z * e
        square = x * x + y * y + z * z
        cross = (y * e - z * b, z * a - x * e, x * b - y * a)
        for i in range(3):
            r = a if i == 0 else (b if i == 1 else e)
            out[i, j] = r + s * cross[i] + c * (v[i] * along - square * r)


@kernel(allocates=True)
def place_soles(problem: RetargetingProblem, state: ClipPostures, w: Scratch, out: np.ndarray) -> None:
    """Compute the sole corners (W, 8, 3) of all frames [m]."""
    first = problem.soles[0]
    for t in range(state.x.shape[0]):
        place_frame(problem, state, t, w)
        out[t] = w.points[first:]


@kernel
def place_corners(soles: ContactSoles, poses: np.ndarray, out: np.ndarray) -> None:
    """Compute the corners (W, 8, 3) of soles with poses (W, 2, 5) [m]."""
    for t in range(poses.shape[0]):
        for f in range(2):
            sole_corners(soles, f, poses[t, f], out[t, 4 * f : 4 * f + 4])
