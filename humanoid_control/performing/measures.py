"""Measures of feasibility over a clip without its held ends."""

from __future__ import annotations

import numpy as np

from humanoid_control.performing.dynamic_motion import DynamicMotion

BEYOND = 1e-3  # [m] of the zero-moment point outside the support that counts
MISSING, LEVER = 0.05, 0.5  # share of the weight; [m] lever that converts a moment to a force
SECOND = 1.0  # [s] window of the worst part


def lacking(missing: np.ndarray, weight: float) -> np.ndarray:
    """Return frames (T,) that lack 5 % of the weight, or of its moment at half a metre.

    Args:
        missing: force [N] and moment [N m] (T, 6).
        weight: [N].
    """
    force, moment = np.linalg.norm(missing[:, :3], axis=1), np.linalg.norm(missing[:, 3:], axis=1)
    return np.asarray((force > MISSING * weight) | (moment > MISSING * LEVER * weight))


def worst_part(flags: np.ndarray, rate: float, seconds: float = SECOND) -> tuple[float, float]:
    """Return the largest share of flags (T,) within a window, and its start [s]."""
    window = int(np.clip(round(seconds * rate), 1, max(len(flags), 1)))
    if not len(flags):
        return 0.0, 0.0
    total = np.concatenate([[0], np.cumsum(flags)])
    share = (total[window:] - total[:-window]) / window
    first = int(np.argmax(share))
    return float(share[first]), first / rate


def inner_pace(motion: DynamicMotion) -> np.ndarray:
    """Return the pace of the frames (T',) that show the clip, without its eased start and stop if it is long."""
    on = motion.playing if motion.playing.any() else np.ones(len(motion), dtype=bool)
    pace = np.asarray(np.gradient(motion.clock)[on] * motion.rate)
    ease = round(1.3 * motion.rate)
    return pace[ease:-ease] if len(pace) > 3 * ease else pace


def feasibility_row(motion: DynamicMotion, weight: float) -> dict[str, float | str]:
    """Return measures for tables and JSON; `weight` [N].

    infeasible_: zero-moment point outside the support; missing_: a wrench is missing; worst_second_: either; moved_:
    mean distance of seven points from the retargeted motion; way_: kept share of the feet's way; filled_s: filled
    flight.
    """
    on = motion.playing if motion.playing.any() else np.ones(len(motion), dtype=bool)
    missing = lacking(motion.missing, weight)
    both = missing | (motion.infeasible > BEYOND)
    worst, at = worst_part(both, motion.rate)
    steps = np.diff(motion.stands.astype(int), axis=0)
    return {
        "infeasible_percent": round(100 * float(np.mean(motion.infeasible[on] > BEYOND)), 2),
        "infeasible_mm": round(1000 * float(motion.infeasible.max()), 2),
        "missing_percent": round(100 * float(np.mean(missing[on])), 2),
        "worst_second_percent": round(100 * worst, 1),
        "worst_second_s": round(at, 2),
        "torque_beyond_percent": round(100 * float(np.mean(motion.torque_share[on] > 1.0)), 2),
        "torque_share": round(float(motion.torque_share[on].max()), 3),
        "speed_share": round(float(motion.speed_share[on].max()), 3),
        "moved_root_cm": round(100 * float(motion.moved[on, 1].mean()), 2),
        "moved_world_cm": round(100 * float(motion.moved[on, 0].mean()), 2),
        "way_percent": round(100 * motion.way, 1),
        "slowest_pace": round(float(min(1.0, np.percentile(inner_pace(motion), 1))), 2),
        "filled_s": round(motion.filled, 2),
        "steps": int((steps > 0).sum()),
        "center_error_mm": round(1000 * motion.center_error, 2),
        "fallback": motion.fallback,
    }
