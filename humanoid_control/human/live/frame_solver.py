"""Compiled fit of one live frame with Huber weights."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from humanoid_control.compiled.array_types import B1, F1, F2
from humanoid_control.compiled.jit import kernel
from humanoid_control.compiled.packed import Table, unpack
from humanoid_control.human.marker_solver import (
    NOTHING_SEEN,
    TOO_MANY_STEPS,
    FitMemory,
    FitRecord,
    factored_root_covariance,
    fit_frame,
    root_covariance,
)

PASSES = 3  # rounds of reweighting in a frame with outliers
DRIFT = 1.02  # change of the usual residual a frame
MOST_USUAL = 1.0  # [m] largest usual residual


class LiveRecord(NamedTuple):
    """Arrays of a live frame, and state for the next.

    Attributes:
        given: (M,) weights of visible markers.
        usual: (M,) usual residuals [m].
        outlier: threshold in usual residuals.
        least: smallest threshold [m].
        fitted: (M, 3) markers.
        std: (n,).
        covariance: (6, 6) of the root.
        far: (M,) True: reduced weight.
    """

    fit: FitRecord
    memory: FitMemory
    given: F1
    usual: F1
    outlier: float
    least: float
    fitted: F2
    std: F1
    covariance: F2
    far: B1


@kernel
def arrange(at: np.ndarray, rows: np.ndarray, columns: np.ndarray, farthest: float, out: np.ndarray) -> None:
    """Copy positions (K, 3) to the person's marker order.

    Args:
        rows: indices in `at`.
        columns: indices in `out`.
        farthest: larger coordinates are invalid [m].
        out: (M, 3); NaN: not visible or exactly (0, 0, 0).
    """
    out[:] = np.nan
    for k in range(len(rows)):
        x, y, z = at[rows[k], 0], at[rows[k], 1], at[rows[k], 2]
        # NaN fails these comparisons; exactly (0, 0, 0) stands for a hidden marker.
        near = abs(x) < farthest and abs(y) < farthest and abs(z) < farthest
        if near and (x != 0.0 or y != 0.0 or z != 0.0):
            out[columns[k], 0], out[columns[k], 1], out[columns[k], 2] = x, y, z


@kernel(allocates=True)
def fit_live(table: Table[LiveRecord], markers: np.ndarray, turn: np.ndarray) -> float:
    """Fit a frame from the state; return the RMS residual [m].

    Args:
        markers: (M, 3), NaN: not visible; turned in place.
        turn: (3, 3) to person axes.
    """
    live = unpack(table, LiveRecord)
    fit, rest = live.fit, live.fit.problem.rest
    target, weight, residual = fit.data.markers[0], fit.data.weights[0], fit.results.residual[0]
    held = np.zeros(len(fit.problem.layout.entry), dtype=np.bool_)
    work = (rest.copy(), rest.copy(), np.zeros(3), held)
    for m in range(len(markers)):
        x, y, z = markers[m, 0], markers[m, 1], markers[m, 2]
        seen = np.isfinite(x)
        weight[m] = live.given[m] if seen else 0.0
        for i in range(3):
            markers[m, i] = turn[i, 0] * x + turn[i, 1] * y + turn[i, 2] * z
            target[m, i] = markers[m, i] if seen else 0.0
    first, anew = np.int64(0), np.bool_(True)  # variables: literals would compile another version
    fit_frame(fit, live.memory, first, anew, work)
    # Iteratively reweighted least squares: each round updates the Huber weights from the last residuals.
    for _ in range(PASSES):
        if not weigh(live, weight, residual):
            break
        fit_frame(fit, live.memory, first, anew, work)
    follow_usual(live, weight, residual)
    fill_frame_statistics(live)
    total, count = 0.0, 0
    for m in range(len(residual)):
        if np.isfinite(residual[m]):
            total, count = total + residual[m] ** 2, count + 1
    return np.sqrt(total / max(count, 1))


@kernel
def weigh(live: LiveRecord, weight: np.ndarray, residual: np.ndarray) -> bool:
    """Update Huber weights (M,) by residuals (M,) [m]; False: all unreduced."""
    changed = False
    for m in range(len(weight)):
        if weight[m] == 0.0:
            continue
        # Huber: weight limit / r beyond the limit, 1 within.
        limit = max(live.outlier * live.usual[m], live.least)
        new = live.given[m] * (limit / residual[m] if residual[m] > limit else 1.0)
        changed = changed or residual[m] > limit or weight[m] != live.given[m]
        weight[m] = new
    return changed


@kernel
def follow_usual(live: LiveRecord, weight: np.ndarray, residual: np.ndarray) -> None:
    """Mark outliers and update the usual residuals."""
    for m in range(len(weight)):
        r = residual[m] if residual[m] >= 0.0 else 0.0
        live.far[m] = r > max(live.outlier * live.usual[m], live.least)
        if weight[m] > 0.0:
            # Running median: a fixed factor up or down a frame.
            grown = live.usual[m] * DRIFT if r > live.usual[m] else live.usual[m] / DRIFT
            live.usual[m] = min(max(grown, live.least / live.outlier), MOST_USUAL)


@kernel(allocates=True)
def fill_frame_statistics(live: LiveRecord) -> None:
    """Fill fitted markers, standard deviations and root covariance."""
    fit = live.fit
    layout, pose = fit.problem.layout, fit.pose
    for m in range(len(layout.body)):
        R, p, r = pose.R[layout.body[m]], pose.p[layout.body[m]], layout.place[m]
        for i in range(3):
            live.fitted[m, i] = p[i] + R[i, 0] * r[0] + R[i, 1] * r[1] + R[i, 2] * r[2]
    live.std[:] = 0.0
    for r in range(len(layout.entry)):
        live.std[layout.entry[r]] = np.sqrt(fit.results.variance[0, r])
    live.covariance[:] = np.nan
    # Without convergence H may belong to another posture: rebuild and factorise it.
    if fit.results.info[0, 1] in (TOO_MANY_STEPS, NOTHING_SEEN):
        root_covariance(fit, np.int64(0), live.covariance)
    elif not np.isinf(fit.results.variance[0]).all():
        factored_root_covariance(fit, np.int64(0), live.covariance)
