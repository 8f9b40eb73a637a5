"""Posture of best marker fit, by Newton and Levenberg-Marquardt steps within bounds.

A step solves (H + lambda diag H) step = g without coordinates at active bounds.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from humanoid_control.compiled.array_types import B1, F1, F2, F3, I1, I2
from humanoid_control.compiled.jit import kernel
from humanoid_control.compiled.packed import Table, unpack
from humanoid_control.human.kinematics import Chain, Pose
from humanoid_control.human.marker_equations import Equations, MarkerLayout, Prior, build
from humanoid_control.numerics.cholesky import inverse_diagonal, skyline_cholesky, solve_skyline

CONVERGED, NO_DECREASE, TOO_MANY_STEPS, NOTHING_SEEN = 0, 1, 2, 3
NEAR = 0.3  # [rad] smaller steps use the exact Hessian
FAINT, FIRST_DAMPING, MOST_DAMPING = 1e-7, 1e-3, 1e8
LOOSE, LOOSE_STEPS = 1e-2, 8  # limits of a search among starts
BETTER = 0.999  # share of the cost that a better start must reach
JUMP = 3.0  # of the running median: larger costs trigger a restart
CALM = 0.5e-6  # [m^2] cost per unit of weight that is never a jump: 1 mm
PATIENCE = 10  # frames until the next restart after an unsuccessful one
KNOWN, WAIT = 0, 1  # indices in `FitMemory.counts`
DRIFT = 1.05  # change of the running median a frame


class FitProblem(NamedTuple):
    """Data common to all frames.

    Attributes:
        u: (nf,) weights of targets.
        hold: weight of undetermined coordinates.
        tolerance: last step [rad, m].
        most: steps of a frame.
        rest: (n,) also of fixed coordinates.
        root: (nf,) True: root.
        turning: (n,) True: varied by random starts.
        headings: (K, n) first postures.
        offsets: (S, n) random.
        triples: (j, 3) axes of joints with three rotations.
    """

    layout: MarkerLayout
    u: F1
    hold: float
    tolerance: float
    most: int
    rest: F1
    root: B1
    turning: B1
    headings: F2
    offsets: F2
    triples: I2


class FrameData(NamedTuple):
    """Measured data.

    Attributes:
        markers: (T, M, 3) [m].
        weights: (T, M) 0: not visible.
        reference: (T or 1, nf) target values.
    """

    markers: F3
    weights: F2
    reference: F2


class MarkerFrameResults(NamedTuple):
    """Results of frames.

    Attributes:
        q: (T, n) [rad, m].
        cost: (T,).
        marker_cost: (T,).
        variance: (T, nf) [rad^2, m^2].
        residual: (T, M) [m].
        volume: (T, j) of joint axes; 0 at gimbal lock.
        info: (T, 4) steps, stop reason, restarted, determined coordinates.
    """

    q: F2
    cost: F1
    marker_cost: F1
    variance: F2
    residual: F2
    volume: F2
    info: I2


class FitRecord(NamedTuple):
    """Inputs, outputs and work memory of a fit."""

    chain: Chain
    problem: FitProblem
    data: FrameData
    results: MarkerFrameResults
    pose: Pose
    equations: Equations


class FitMemory(NamedTuple):
    """State from frame to frame.

    Attributes:
        hold: (n,) last posture.
        before: (n,) the one before.
        counts: (2,) frames since a start, frames until the next restart.
        usual: (1,) running median of cost per weight.
    """

    hold: F1
    before: F1
    counts: I1
    usual: F1


@kernel
def centre_of(markers: np.ndarray, weight: np.ndarray, centre: np.ndarray) -> float:
    """Fill the mean of visible markers; return the sum of weights."""
    total, count = 0.0, 0
    centre[:] = 0.0
    for m in range(len(weight)):
        if weight[m] > 0.0:
            total += weight[m]
            count += 1
            for i in range(3):
                centre[i] += markers[m, i]
    if count > 0:
        centre /= count
    return total


@kernel
def find_step(problem: FitProblem, eq: Equations, q: np.ndarray, held: np.ndarray, damping: float) -> bool:
    """Fill the step of coordinates neither held nor pushed against a bound; False: H is indefinite."""
    layout, n = problem.layout, len(problem.layout.entry)
    for r in range(n):
        c = layout.entry[r]
        outward = (q[c] <= layout.lower[r] and eq.g[r] < 0.0) or (q[c] >= layout.upper[r] and eq.g[r] > 0.0)
        # Identity row and column: the step of a held coordinate is zero and does not affect the others.
        if held[r] or outward:
            for k in range(layout.skyline[r], r):
                eq.H[r, k] = 0.0
            for k in range(r + 1, n):
                if layout.skyline[k] <= r:
                    eq.H[k, r] = 0.0
            eq.H[r, r], eq.step[r] = 1.0, 0.0
        else:
            # Marquardt damping scales with the diagonal, so angles and lengths need no common unit.
            eq.H[r, r] *= 1.0 + damping
            eq.step[r] = eq.g[r]
    if not skyline_cholesky(eq.H, layout.skyline, n, eq.L):
        return False
    solve_skyline(eq.L, layout.skyline, n, eq.step)
    return True


@kernel(allocates=True)
def apply_step(layout: MarkerLayout, step: np.ndarray, q: np.ndarray, out: np.ndarray) -> float:
    """Fill out with q + step within bounds; return the largest change."""
    largest = 0.0
    out[:] = q
    for r in range(len(layout.entry)):
        c = layout.entry[r]
        out[c] = min(max(q[c] + step[r], layout.lower[r]), layout.upper[r])
        # After clipping: a step into a bound counts as small.
        largest = max(largest, abs(out[c] - q[c]))
    return largest


@kernel(allocates=True)
def solve_frame(
    chain: Chain,
    problem: FitProblem,
    work: tuple[Pose, Equations],
    measured: tuple[np.ndarray, np.ndarray, np.ndarray],
    prior: Prior,
    held: np.ndarray,
    q: np.ndarray,
    limits: tuple[float, int, bool],
) -> tuple[float, float, int, int]:
    """Improve q in place; if converged, H is then Gauss-Newton.

    Args:
        held: (nf,) True: fixed.
        q: (n,) within bounds.
        limits: step tolerance, maximum steps, True for a near start.

    Returns:
        Cost, marker cost, steps, stop reason.
    """
    layout, eq = problem.layout, work[1]
    tolerance, most, exact = limits
    trial = np.empty_like(q)
    damping, last = 0.0, 0.0 if exact else 1.0
    cost, markers = build(chain, layout, work, q, measured, prior, exact)
    for count in range(1, most + 1):
        if not find_step(problem, eq, q, held, damping):
            # Indefinite: an exact Hessian is replaced by Gauss-Newton first, a Gauss-Newton one gets more damping.
            damping = damping if exact else max(10.0 * damping, FIRST_DAMPING)
            exact, last = False, 1.0
            if damping > MOST_DAMPING:
                return cost, markers, count, NO_DECREASE
            build(chain, layout, work, q, measured, prior, exact)
            continue
        size = apply_step(layout, eq.step, q, trial)
        # Two small steps in succession: the quadratic model holds, so the exact Hessian converges quadratically.
        exact = size < NEAR and last < NEAR and size > tolerance
        new_cost, new_markers = build(chain, layout, work, trial, measured, prior, exact)
        if size <= tolerance:
            # The last build is Gauss-Newton (exact is False here), as the covariance needs it.
            if new_cost <= cost:
                q[:] = trial
                return new_cost, new_markers, count, CONVERGED
            build(chain, layout, work, q, measured, prior, np.bool_(False))
            return cost, markers, count, CONVERGED
        if new_cost <= cost:
            q[:] = trial
            cost, markers, last = new_cost, new_markers, size
            damping = 0.1 * damping if damping > FAINT else 0.0
            continue
        # Cost rose: more damping from the same q, with the positive semidefinite Gauss-Newton Hessian.
        damping, exact, last = max(10.0 * damping, FIRST_DAMPING), False, 1.0
        if damping > MOST_DAMPING:
            build(chain, layout, work, q, measured, prior, exact)
            return cost, markers, count, NO_DECREASE
        build(chain, layout, work, q, measured, prior, exact)
    return cost, markers, most, TOO_MANY_STEPS


@kernel
def clip_to_bounds(layout: MarkerLayout, rest: np.ndarray, q: np.ndarray) -> None:
    """Clip free coordinates to their bounds; set the others to rest."""
    for c in range(len(q)):
        trial = q[c]
        q[c] = rest[c]
        for r in range(len(layout.entry)):
            if layout.entry[r] == c:
                q[c] = min(max(trial, layout.lower[r]), layout.upper[r])


@kernel(allocates=True)
def try_starts(
    chain: Chain,
    problem: FitProblem,
    work: tuple[Pose, Equations],
    measured: tuple[np.ndarray, np.ndarray, np.ndarray],
    prior: Prior,
    start: np.ndarray,
    best: tuple[np.ndarray, float],
) -> float:
    """Try random postures around a start; keep the best in place.

    Args:
        start: (n,).
        best: posture (n,), cost.
    """
    q_best, cost_best = best
    held, q = np.zeros(len(problem.layout.entry), dtype=np.bool_), np.empty_like(start)
    for k in range(len(problem.offsets)):
        for c in range(len(q)):
            q[c] = start[c] + (problem.offsets[k, c] if problem.turning[c] else 0.0)
        clip_to_bounds(problem.layout, problem.rest, q)
        cost, _, _, _ = solve_frame(chain, problem, work, measured, prior, held, q, _loosely())
        if cost < BETTER * cost_best:
            cost_best = cost
            q_best[:] = q
    return cost_best


@kernel
def _loosely() -> tuple[float, Any, Any]:
    """Return search limits as variables: literals compile another version."""
    return LOOSE, np.int64(LOOSE_STEPS), np.bool_(False)


@kernel(allocates=True)
def first_posture(
    chain: Chain,
    problem: FitProblem,
    work: tuple[Pose, Equations],
    measured: tuple[np.ndarray, np.ndarray, np.ndarray],
    prior: Prior,
    q: np.ndarray,
) -> None:
    """Find a first posture: the root from many headings, then all."""
    held = ~problem.root
    trial, start, least = np.empty_like(q), np.empty_like(q), np.inf
    for k in range(len(problem.headings)):
        trial[:] = problem.headings[k]
        clip_to_bounds(problem.layout, problem.rest, trial)
        cost, _, _, _ = solve_frame(chain, problem, work, measured, prior, held, trial, _loosely())
        if cost < BETTER * least:
            least = cost
            start[:] = trial
    held[:] = False
    q[:] = start
    cost, _, _, _ = solve_frame(chain, problem, work, measured, prior, held, q, _loosely())
    try_starts(chain, problem, work, measured, prior, start, (q, cost))


@kernel
def fill_statistics(
    chain: Chain,
    problem: FitProblem,
    work: tuple[Pose, Equations],
    measured: tuple[np.ndarray, np.ndarray, np.ndarray],
    results: MarkerFrameResults,
    t: int,
) -> None:
    """Fill variances and residuals of a solved frame."""
    pose, eq = work
    layout, n, (target, weight, _) = problem.layout, len(problem.layout.entry), measured
    seen, count = 0, 0
    # Volume a x b . c of three joint axes: near zero the first and third angle are interchangeable.
    for j in range(len(problem.triples)):
        a, b, c = pose.W[problem.triples[j, 0]], pose.W[problem.triples[j, 1]], pose.W[problem.triples[j, 2]]
        x, y, z = a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]
        results.volume[t, j] = x * c[0] + y * c[1] + z * c[2]
    for m in range(len(layout.body)):
        results.residual[t, m] = np.nan
        if weight[m] > 0.0:
            count += 1
            R, p, r, total = pose.R[layout.body[m]], pose.p[layout.body[m]], layout.place[m], 0.0
            for i in range(3):
                e = target[m, i] - p[i] - R[i, 0] * r[0] - R[i, 1] * r[1] - R[i, 2] * r[2]
                total += e * e
            results.residual[t, m] = np.sqrt(total)
    # Curvature without the target's weight: above 10 hold the markers determine the coordinate.
    for r in range(n):
        eq.g[r] = eq.H[r, r] - problem.u[r]
        if eq.g[r] > 10.0 * problem.hold:
            seen += 1
    results.info[t, 3] = seen
    # Variance of a marker = 2 cost / freedom (cost is half the sum of squares), with 3 equations a marker.
    freedom = 3 * count - seen
    if freedom <= 0 or not skyline_cholesky(eq.H, layout.skyline, n, eq.L):
        results.variance[t] = np.inf
        return
    inverse_diagonal(eq.L, layout.skyline, n, eq.step, results.variance[t])
    for r in range(n):
        told = eq.g[r] > 10.0 * problem.hold or problem.u[r] > 0.0
        results.variance[t, r] *= 2.0 * results.marker_cost[t] / freedom if told else np.inf


@kernel(allocates=True)
def start_memory(rest: np.ndarray) -> FitMemory:
    """Return the memory of a new fit; rest (n,)."""
    return FitMemory(rest.copy(), rest.copy(), np.zeros(2, dtype=np.int64), np.zeros(1))


@kernel(allocates=True)
def fit_frame(record: FitRecord, memory: FitMemory, t: int, anew: bool | np.bool_, work: tuple[F1, F1, F1, B1]) -> None:
    """Fit one frame and update the memory.

    Args:
        anew: start from previous frames, in the first from many starts; else from its own q in `results`.
        work: q (n,), trial (n,), centre (3,), all-False held (nf,).
    """
    chain, problem, data, results = record.chain, record.problem, record.data, record.results
    layout, solving = problem.layout, (record.pose, record.equations)
    q, trial, centre, held = work
    q_hold, count, usual = memory.hold, memory.counts, memory.usual
    reference = data.reference[min(t, len(data.reference) - 1)]
    total = centre_of(data.markers[t], data.weights[t], centre)
    measured = (data.markers[t], data.weights[t], centre)
    if not anew:
        q_hold[:] = results.q[t]
        count[KNOWN] = 1
    prior = Prior(problem.u, reference, problem.hold, q_hold)
    # No marker: keep the last posture. The next frame then starts there, without extrapolation.
    if total == 0.0:
        results.q[t] = q_hold
        results.variance[t], results.residual[t] = np.inf, np.nan
        results.cost[t], results.marker_cost[t], results.info[t, 0], results.info[t, 1] = np.nan, np.nan, 0, 3
        count[KNOWN] = min(count[KNOWN], 1)
        return
    if count[KNOWN] == 0:
        first_posture(chain, problem, solving, measured, prior, q)
        q_hold[:] = q
    elif count[KNOWN] == 1:
        q[:] = q_hold
    # Constant velocity: q_t = 2 q_{t-1} - q_{t-2}.
    else:
        q[:] = 2.0 * q_hold - memory.before
    clip_to_bounds(layout, problem.rest, q)
    limits = (problem.tolerance, problem.most, count[KNOWN] > 0)
    cost, markers, steps, why = solve_frame(chain, problem, solving, measured, prior, held, q, limits)
    results.info[t, 2] = 1 if count[KNOWN] == 0 else 0
    # A jump of the cost suggests a wrong local minimum: restart from the last posture and random ones around it.
    share = cost / total
    if count[KNOWN] > 0 and anew and count[WAIT] == 0 and share > JUMP * usual[0] and share > CALM:
        was = cost
        trial[:] = q_hold
        if solve_frame(chain, problem, solving, measured, prior, held, trial, limits)[0] < BETTER * cost:
            q[:] = trial
        cost = try_starts(chain, problem, solving, measured, prior, q_hold, (q, cost))
        cost, markers, steps, why = solve_frame(chain, problem, solving, measured, prior, held, q, limits)
        results.info[t, 2] = 1
        if cost < BETTER * was:
            count[WAIT] = count[KNOWN] = 0
        else:
            count[WAIT] = PATIENCE
        share = cost / total
    for c in layout.entry:  # the reported cost excludes the hold term
        cost -= 0.5 * problem.hold * (q_hold[c] - q[c]) ** 2
    count[WAIT] = max(0, count[WAIT] - 1)
    # Running median: a fixed factor up or down a frame is robust against single bad frames.
    usual[0] = share if usual[0] == 0.0 else (usual[0] * DRIFT if share > usual[0] else usual[0] / DRIFT)
    count[KNOWN] += 1
    memory.before[:] = q_hold
    q_hold[:] = q
    results.q[t], results.cost[t], results.marker_cost[t] = q, cost, markers
    results.info[t, 0], results.info[t, 1] = steps, why
    fill_statistics(chain, problem, solving, measured, results, t)


@kernel(allocates=True)
def fit_frames(table: Table[FitRecord], frames: np.ndarray, anew: bool) -> None:
    """Fit frames one after the other; `anew` as in `fit_frame`."""
    record = unpack(table, FitRecord)
    memory, n = start_memory(record.problem.rest), len(record.problem.rest)
    held = np.zeros(len(record.problem.layout.entry), dtype=np.bool_)
    work = (record.problem.rest.copy(), np.empty(n), np.zeros(3), held)
    for t in frames:
        fit_frame(record, memory, t, anew, work)


@kernel
def root_covariances(table: Table[FitRecord], out: np.ndarray) -> None:
    """Fill the covariances (T, 6, 6) of the root coordinates; NaN: undetermined."""
    record = unpack(table, FitRecord)
    for t in range(len(out)):
        root_covariance(record, t, out[t])


@kernel(allocates=True)
def root_covariance(record: FitRecord, t: int, out: np.ndarray) -> None:
    """Fill the root covariance (6, 6) of a solved frame; NaN: undetermined."""
    chain, problem, data, results = record.chain, record.problem, record.data, record.results
    layout, eq, work = problem.layout, record.equations, (record.pose, record.equations)
    centre = np.zeros(3)
    out[:] = np.nan
    if centre_of(data.markers[t], data.weights[t], centre) == 0.0:
        return
    reference = data.reference[min(t, len(data.reference) - 1)]
    prior = Prior(problem.u, reference, problem.hold, results.q[t])
    measured = (data.markers[t], data.weights[t], centre)
    build(chain, layout, work, results.q[t], measured, prior, np.bool_(False))
    if skyline_cholesky(eq.H, layout.skyline, len(layout.entry), eq.L):
        factored_root_covariance(record, t, out)


@kernel(allocates=True)
def factored_root_covariance(record: FitRecord, t: int, out: np.ndarray) -> None:
    """Fill the root covariance (6, 6) from the present factor.

    A full matrix, because angle errors correlate with the heading.
    """
    problem, data, results, eq = record.problem, record.data, record.results, record.equations
    layout = problem.layout
    n, rows = len(layout.entry), np.flatnonzero(problem.root)
    place = np.argsort(layout.entry[rows])
    freedom = 3 * np.sum(data.weights[t] > 0.0) - results.info[t, 3]
    if len(rows) != len(out) or freedom <= 0:
        return
    # Column of H^-1 for each root coordinate, times the variance of a marker.
    for i in range(len(rows)):
        eq.step[:] = 0.0
        eq.step[rows[place[i]]] = 1.0
        solve_skyline(eq.L, layout.skyline, n, eq.step)
        for j in range(len(rows)):
            out[i, j] = eq.step[rows[place[j]]] * 2.0 * results.marker_cost[t] / freedom
