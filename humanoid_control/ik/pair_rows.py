"""Rows of the safe solver's quadratic program: how fast near pairs of shapes may close, and must separate."""

from __future__ import annotations

import numpy as np

from humanoid_control.ik.way_out import FREE, HOME, THROUGH
from humanoid_control.jit import kernel

SHARE = 0.5  # of what all joints of a pair could brake together that its own row counts on
SMALL = 0.1  # scale of the rows of pairs that are inside: their slack costs a hundredth, so that others come first


@kernel
def fill_reach(
    lever: np.ndarray,
    previous: np.ndarray,
    acceleration: float,
    margin: float,
    activation: float,
    approach: float,
    reach: np.ndarray,
) -> None:
    """How near each pair has to be to become a row: so far that its row allows the present velocity.

    The allowed closing speed at x above the margin is that of `closing_speed`. It exceeds every speed at which the
    pair may be closing now where x >= sum_c lever_c (|v_c| / approach + v_c^2 / (2 SHARE a)), because a pair's own
    deceleration is SHARE a sum |g_c| and its speed at most sum |g_c v_c|, with |g_c| <= lever_c. So a row that appears
    does not ask for a jump.

    Args:
        lever: (P, nv) from `pair_levers`. previous: (nv,) velocity.
        acceleration, margin, activation, approach: of IkSettings.
        reach: (P,) filled [m].
    """
    nv = previous.shape[0]
    need = np.empty(nv)
    for c in range(nv):
        v = abs(previous[c])
        need[c] = v / approach + v * v / (2.0 * SHARE * acceleration)
    for k in range(lever.shape[0]):
        s = 0.0
        for c in range(nv):
            s += lever[k, c] * need[c]
        reach[k] = max(activation, margin + s)


@kernel
def closing_speed(x: float, approach: float, deceleration: float) -> float:
    """How fast a pair may close at x > 0 above its margin: approach x, but never more than it can brake.

    Where approach^2 x exceeds the deceleration it goes on as the speed from which a constant deceleration ends at the
    linear part; value and slope are continuous.
    """
    knee = deceleration / (approach * approach)
    return approach * x if x <= knee else np.sqrt(2.0 * deceleration * (x - 0.5 * knee))


@kernel
def fill_pair_rows(
    count: int,
    pair: np.ndarray,
    distance: np.ndarray,
    normal: np.ndarray,
    x1: np.ndarray,
    x2: np.ndarray,
    joint_1: np.ndarray,
    joint_2: np.ndarray,
    J6: np.ndarray,
    support: np.ndarray,
    margin: float,
    approach: float,
    recovery_speed: float,
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
        count: of near pairs. pair, distance, normal, x1, x2: of PairWatch.
        joint_1, joint_2: (P,) which joints carry the shapes.
        J6: (6, nv) every joint's columns at the world origin. support: (N, nv).
        margin, approach, recovery_speed, acceleration: of IkSettings.
        stage: of WayOut, which says what is let through.
        column_of, factor: (nv,) of Moving. low, high: (k,) bounds of u.
        A, b, scale: (> count, k), (> count,) filled; a row is scale times what it says.

    Returns:
        how many rows are filled.
    """
    nv, k, row = J6.shape[1], low.shape[0], 0
    inside = np.zeros(support.shape[0], dtype=np.bool_)
    for r in range(count):
        if distance[r] < 0.0:
            inside[joint_1[pair[r]]] = inside[joint_2[pair[r]]] = True
    for r in range(count):
        p = pair[r]
        i, j = joint_1[p], joint_2[p]
        if stage >= HOME and (distance[r] < 0.0 or (stage >= THROUGH and inside[i] and inside[j]) or stage >= FREE):
            continue
        n0, n1, n2 = normal[r, 0], normal[r, 1], normal[r, 2]
        a0, a1, a2 = x1[r, 1] * n2 - x1[r, 2] * n1, x1[r, 2] * n0 - x1[r, 0] * n2, x1[r, 0] * n1 - x1[r, 1] * n0
        b0, b1, b2 = x2[r, 1] * n2 - x2[r, 2] * n1, x2[r, 2] * n0 - x2[r, 0] * n2, x2[r, 0] * n1 - x2[r, 1] * n0
        A[row, :] = 0.0
        for c in range(nv):
            s1, s2, to = support[i, c], support[j, c], column_of[c]
            if s1 == s2 or to < 0:
                continue
            g = (s2 - s1) * (n0 * J6[0, c] + n1 * J6[1, c] + n2 * J6[2, c])
            o0, o1, o2 = J6[3, c], J6[4, c], J6[5, c]
            g += s2 * (b0 * o0 + b1 * o1 + b2 * o2) - s1 * (a0 * o0 + a1 * o1 + a2 * o2)
            A[row, to] += factor[c] * g
        least = lever = 0.0
        for c in range(k):
            a = A[row, c]
            least += a * low[c] if a > 0.0 else a * high[c]
            lever += abs(a)
        x = distance[r] - margin
        if x <= 0.0:
            bound = min(-approach * x, recovery_speed)
        else:
            bound = -closing_speed(x, approach, SHARE * acceleration * lever)
        if least >= bound:
            continue
        scale[row] = SMALL if distance[r] < 0.0 else 1.0
        b[row] = scale[row] * bound
        for c in range(k):
            A[row, c] *= scale[row]
        row += 1
    return row


@kernel
def worst_miss(A: np.ndarray, b: np.ndarray, scale: np.ndarray, rows: int, x: np.ndarray) -> float:
    """By how much x misses the worst of the rows A x >= b, unscaled; 0 where it meets all."""
    worst = 0.0
    for r in range(rows):
        s = b[r]
        for c in range(x.shape[0]):
            s -= A[r, c] * x[c]
        worst = max(worst, s / scale[r])
    return worst
