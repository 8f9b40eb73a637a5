"""The pieces of the safe solver's quadratic program, compiled: cost, bounds of the free velocities, braking.

Also here:

* Out of a collision that the distances alone do not lead out of: home, by the neutral posture.
* Rows of the safe solver's quadratic program: how fast near pairs of shapes may close, and must separate.
"""

from __future__ import annotations

import numpy as np

from humanoid_control.collision.pair_distance import PairJoints, PairsFound, distance_rate
from humanoid_control.jit import kernel
from humanoid_control.kinematics.limits import fill_velocity_bounds, keep_acceleration
from humanoid_control.numerics.vec3 import cross, row

# -------- The pieces of the safe solver's quadratic program, compiled: cost, bounds of the free velocities, braking

ROUNDING = 1e-9  # [rad] by which a joint may be outside its range for no reason


@kernel
def fill_cost(
    J: np.ndarray,
    desired: np.ndarray,
    diagonal: np.ndarray,
    linear: np.ndarray,
    column_of: np.ndarray,
    factor: np.ndarray,
    H: np.ndarray,
    g: np.ndarray,
) -> None:
    """Lower triangle of H = J^T J + S^T diag(diagonal) S, and g = S^T linear - J^T desired.

    Args:
        J: (m, k) weighted rows of the tasks by the free velocities. desired: (m,).
        diagonal, linear: (nv,) by all velocities v = S u.
        column_of, factor: (nv,) of DofSelection, which are S.
        H, g: (k, k), (k,) filled.
    """
    m, k = J.shape
    for i in range(k):
        g[i] = 0.0
        for j in range(i + 1):
            H[i, j] = 0.0
    for r in range(m):
        for i in range(k):
            s = J[r, i]
            if s == 0.0:
                continue
            g[i] -= s * desired[r]
            for j in range(i + 1):
                H[i, j] += s * J[r, j]
    for c in range(diagonal.shape[0]):
        i, f = column_of[c], factor[c]
        if i >= 0:
            H[i, i] += f * f * diagonal[c]
            g[i] += f * linear[c]


@kernel
def add_rows(
    J: np.ndarray,
    desired: np.ndarray,
    weight: float,
    column_of: np.ndarray,
    factor: np.ndarray,
    H: np.ndarray,
    g: np.ndarray,
) -> None:
    """Add the rows of one more task, J (m, nv) by all velocities, to the lower triangle of H and to g."""
    k = g.shape[0]
    a = np.empty(k)
    for r in range(J.shape[0]):
        a[:] = 0.0
        for c in range(J.shape[1]):
            if column_of[c] >= 0:
                a[column_of[c]] += weight * factor[c] * J[r, c]
        for i in range(k):
            s = a[i]
            if s == 0.0:
                continue
            g[i] -= s * weight * desired[r]
            for j in range(i + 1):
                H[i, j] += s * a[j]


@kernel
def fill_bounds(
    joints: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
    speed: np.ndarray,
    dt: float,
    joint_recovery_speed: float,
    previous: np.ndarray,
    acceleration: float,
    base_speed: float,
    recovery_joint_speed: float,
    inside: bool,
    column_of: np.ndarray,
    factor: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
) -> float:
    """Bounds (k,) of the free velocities, from those of the joints that each of them moves.

    Args:
        joints, lower, upper, speed: (n,) [rad], [rad/s].
        dt: [s]. joint_recovery_speed: [rad/s].
        previous: (nv,) velocity of the last tick. acceleration: [rad/s^2]. base_speed: bound for a floating base.
        recovery_joint_speed: bound while shapes are `inside` each other or a joint is outside its range [rad/s].
        column_of, factor: (nv,) of DofSelection.
        low, high: (k,) filled, low <= high.

    Returns:
        how far the worst joint is outside its range [rad].
    """
    n, nv = joints.shape[0], previous.shape[0]
    down, up = np.empty(n), np.empty(n)
    outside = 0.0
    for i in range(n):
        outside = max(outside, lower[i] - joints[i], joints[i] - upper[i])
    most = recovery_joint_speed if inside or outside > ROUNDING else np.inf
    limit = np.empty(n)
    for i in range(n):
        limit[i] = min(speed[i], most)
    before, step = previous[nv - n :], acceleration * dt
    fill_velocity_bounds(joints, lower, upper, limit, dt, joint_recovery_speed, before, acceleration, down, up, 0.0)
    keep_acceleration(down, up, before, step)
    low[:], high[:] = -base_speed, base_speed
    for i in range(n):
        c = column_of[nv - n + i]
        if c < 0:
            continue
        f = factor[nv - n + i]
        a, b = (down[i] / f, up[i] / f) if f > 0.0 else (up[i] / f, down[i] / f)
        if f == 1.0 and low[c] == -base_speed and high[c] == base_speed:
            low[c], high[c] = a, b
        else:  # a joint and what mimics it: both, or where that cannot be the one that came first
            a, b = min(max(a, low[c]), high[c]), min(max(b, low[c]), high[c])
            low[c], high[c] = a, b
    return outside


@kernel
def fill_braking(
    v: np.ndarray,
    iv: int,
    step: float,
    column_of: np.ndarray,
    factor: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    out: np.ndarray,
) -> None:
    """The velocity (nv,) within the bounds that brakes hardest: every joint by step, a base in the same proportion.

    Args:
        v: (nv,) velocity of the last tick. iv: where joints begin. step: [rad/s].
        column_of, factor: (nv,) of DofSelection. low, high: (k,) bounds of the free velocities.
        out: (nv,) filled.
    """
    nv, fastest = v.shape[0], 0.0
    u = np.zeros(low.shape[0])
    for c in range(iv, nv):
        fastest = max(fastest, abs(v[c]))
    share = max(0.0, 1.0 - step / fastest) if fastest > 0.0 else 0.0
    for c in range(nv - 1, -1, -1):  # a joint that others mimic comes before them, so it is the last to be written
        k = column_of[c]
        if k >= 0:
            least = share * v[c] if c < iv else np.sign(v[c]) * max(abs(v[c]) - step, 0.0)
            u[k] = min(max(least / factor[c], low[k]), high[k])
    for c in range(nv):
        out[c] = factor[c] * u[column_of[c]] if column_of[c] >= 0 else 0.0


@kernel
def keep_range(before: np.ndarray, lower: np.ndarray, upper: np.ndarray, joints: np.ndarray) -> None:
    """Keep joints (n,) that rounding has put outside inside; one that was outside before does not go farther out."""
    for i in range(joints.shape[0]):
        joints[i] = min(max(joints[i], min(lower[i], before[i])), max(upper[i], before[i]))


# -------- Out of a collision that the distances alone do not lead out of: home, by the neutral posture

SHALLOWER = 1e-3  # [m] and
NEARER = 0.05  # [rad]: progress that keeps a stage from being given up
GRADIENT, HOMING, HOMING_THROUGH_PAIRS, HOMING_FREE = range(4)


class CollisionRecovery:
    """Watches whether shapes inside each other come apart, and goes home where they do not.

    The gradient of a distance is local: an arm through the torso is pushed to both sides at once. Then all joints go
    straight to the neutral posture, slowly, until no pair is inside any more. What gets in the way of that is let
    through step by step, each after `recovery_timeout` without progress.

    Attributes:
        stage: GRADIENT: along the gradients, with the tasks; HOMING: to the neutral posture, pairs that are inside are
            let through and the others kept apart; HOMING_THROUGH_PAIRS: so are pairs that are apart, but whose two
            links both are inside something; HOMING_FREE: all are.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget what was."""
        self.stage, self._best, self._left, self._since = GRADIENT, -np.inf, np.inf, 0.0

    def update(self, closest: float, from_home: float, recovery_timeout: float, dt: float) -> None:
        """Take note of a tick.

        Args:
            closest: signed distance of the deepest pair [m].
            from_home: how far the farthest joint is from the neutral posture [rad].
            recovery_timeout: [s]. dt: [s].
        """
        if closest >= 0:
            self.reset()
            return
        better = closest > self._best + SHALLOWER if self.stage == GRADIENT else from_home < self._left - NEARER
        self._since += dt
        if better:
            self._best, self._left, self._since = closest, from_home, 0.0
        elif self._since > recovery_timeout:
            self.stage, self._left, self._since = min(self.stage + 1, HOMING_FREE), from_home, 0.0


# -------- Rows of the safe solver's quadratic program: how fast near pairs of shapes may close, and must separate

SHARE = 0.5  # of what all joints of a pair could brake together that its own row counts on
SMALL = 0.1  # scale of the rows of pairs that are inside: their slack costs a hundredth, so that others come first


@kernel
def fill_activation_distances(
    motion_bound: np.ndarray,
    previous: np.ndarray,
    acceleration: float,
    margin: float,
    activation: float,
    barrier_gain: float,
    reach: np.ndarray,
) -> None:
    """How near each pair has to be to become a row: so far that its row allows the present velocity.

    The allowed closing speed at x above the margin is that of `max_closing_speed`. It exceeds every speed at which the
    pair may be closing now where x >= sum_c bound_c (|v_c| / barrier_gain + v_c^2 / (2 SHARE a)), because a pair's own
    deceleration is SHARE a sum |g_c| and its speed at most sum |g_c v_c|, with |g_c| <= bound_c. So a row that appears
    does not ask for a jump.

    Args:
        motion_bound: (P, nv) from `motion_bounds`. previous: (nv,) velocity.
        acceleration, margin, activation, barrier_gain: of IkSettings.
        reach: (P,) filled [m].
    """
    nv = previous.shape[0]
    need = np.empty(nv)
    for c in range(nv):
        v = abs(previous[c])
        need[c] = v / barrier_gain + v * v / (2.0 * SHARE * acceleration)
    for k in range(motion_bound.shape[0]):
        s = 0.0
        for c in range(nv):
            s += motion_bound[k, c] * need[c]
        reach[k] = max(activation, margin + s)


@kernel
def max_closing_speed(x: float, barrier_gain: float, deceleration: float) -> float:
    """How fast a pair may close at x > 0 above its margin: barrier_gain x, but never more than it can brake.

    Where barrier_gain^2 x exceeds the deceleration it goes on as the speed from which a constant deceleration ends at
    the linear part; value and slope are continuous.
    """
    knee = deceleration / (barrier_gain * barrier_gain)
    return barrier_gain * x if x <= knee else np.sqrt(2.0 * deceleration * (x - 0.5 * knee))


@kernel
def fill_pair_rows(
    found: PairsFound,
    joints: PairJoints,
    J6: np.ndarray,
    margin: float,
    barrier_gain: float,
    pair_recovery_speed: float,
    acceleration: float,
    stage: int,
    column_of: np.ndarray,
    factor: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    A: np.ndarray,
    b: np.ndarray,
    scale: np.ndarray,
) -> int:
    """Rows A u >= b of the near pairs: A u is how fast each pair separates.

    A row that no velocity within the bounds could miss is left out, which changes nothing but the time.

    Args:
        found, joints: of NearPairs.
        J6: (6, nv) every joint's columns at the world origin.
        margin, barrier_gain, pair_recovery_speed, acceleration: of IkSettings.
        stage: of CollisionRecovery, which says what is let through.
        column_of, factor: (nv,) of DofSelection. low, high: (k,) bounds of u.
        A, b, scale: (> rows of found, k), (> rows of found,) filled; a row is scale times what it says.

    Returns:
        how many rows are filled.
    """
    nv, k, rows = J6.shape[1], low.shape[0], 0
    pair, distance, joint_1, joint_2, moves = (
        found.pair,
        found.distance,
        joints.first,
        joints.second,
        joints.ancestor_mask,
    )
    inside = np.zeros(moves.shape[0], dtype=np.bool_)
    for r in range(pair.shape[0]):
        if distance[r] < 0.0:
            inside[joint_1[pair[r]]] = inside[joint_2[pair[r]]] = True
    for r in range(pair.shape[0]):
        p = pair[r]
        i, j = joint_1[p], joint_2[p]
        both = stage >= HOMING_THROUGH_PAIRS and inside[i] and inside[j]
        if stage >= HOMING and (distance[r] < 0.0 or both or stage >= HOMING_FREE):
            continue
        n = row(found.normal, r)
        moment_1, moment_2 = cross(row(found.point_1, r), n), cross(row(found.point_2, r), n)
        A[rows, :] = 0.0
        for c in range(nv):
            s1, s2, to = moves[i, c], moves[j, c], column_of[c]
            if s1 == s2 or to < 0:
                continue
            A[rows, to] += factor[c] * distance_rate(n, moment_1, moment_2, s1, s2, J6, c)
        least = gradient_sum = 0.0
        for c in range(k):
            a = A[rows, c]
            least += a * low[c] if a > 0.0 else a * high[c]
            gradient_sum += abs(a)
        x = distance[r] - margin
        if x <= 0.0:
            bound = min(-barrier_gain * x, pair_recovery_speed)
        else:
            bound = -max_closing_speed(x, barrier_gain, SHARE * acceleration * gradient_sum)
        if least >= bound:
            continue
        scale[rows] = SMALL if distance[r] < 0.0 else 1.0
        b[rows] = scale[rows] * bound
        for c in range(k):
            A[rows, c] *= scale[rows]
        rows += 1
    return rows


@kernel
def largest_slack(A: np.ndarray, b: np.ndarray, scale: np.ndarray, rows: int, x: np.ndarray) -> float:
    """By how much x misses the worst of the rows A x >= b, unscaled; 0 where it meets all."""
    worst = 0.0
    for r in range(rows):
        s = b[r]
        for c in range(x.shape[0]):
            s -= A[r, c] * x[c]
        worst = max(worst, s / scale[r])
    return worst
