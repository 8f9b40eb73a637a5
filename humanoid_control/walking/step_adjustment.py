"""Where and when to step after a push: the foothold and the time that lead the divergent component back to the plan.

At touch-down, after the time r from now on, xi is p + (xi - p) s with s = exp(w r). The plan wants it at the offset b
from the new foot. So choose the foothold u, s and b (Khadiv, Herzog, Moosavian, Righetti 2016, 2020) that minimise

    a_u |u - u_plan|^2 + a_s (s - s_plan)^2 + a_b |b - b_plan|^2   with   u + b = p + (xi - p) s,

u in reach and s between the earliest and the latest touch-down.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from humanoid_control.numerics.minimum_jerk import PEAK_SPEED
from humanoid_control.walking.planning.plan import Phase

ROUNDS = 12  # of descent along u and s in turn


@dataclass(frozen=True)
class AdjustmentSettings:
    """When and how far steps are adjusted.

    Attributes:
        place, time, offset: weights a_u, a_s, a_b.
        threshold: error of the divergent component from which on steps move [m]; cut: the same for the way by which the
            zero-moment point that is asked for lies outside the support [m].
        earliest: time in the air before which no foot comes down [s]. stretch: share of its time by which a swing may
            become longer. falling: greatest speed at which a foot comes down sooner [m/s].
        latest_phase: of the swing from which on nothing changes any more.
        speed: at which a foothold moves [m/s].
    """

    place: float = 1.0
    time: float = 5.0
    offset: float = 1000.0
    threshold: float = 0.04
    cut: float = 0.02
    earliest: float = 0.3
    stretch: float = 0.15
    falling: float = 0.7
    latest_phase: float = 0.85
    speed: float = 3.0


@dataclass(frozen=True)
class SwingChoice:
    """What there is to choose from, in the axes of the standing foot.

    Attributes:
        xi, zmp: (2,) divergent component, and the zero-moment point that acts until touch-down [m].
        omega: [1/s].
        foothold, offset: (2,) planned foothold, and xi less it at touch-down [m].
        remaining: planned time to touch-down [s]; soonest, latest: bounds of it.
        lower, upper: (2,) corners of where the foot can stand [m].
    """

    xi: np.ndarray
    zmp: np.ndarray
    omega: float
    foothold: np.ndarray
    offset: np.ndarray
    remaining: float
    soonest: float
    latest: float
    lower: np.ndarray
    upper: np.ndarray


def adjust(c: SwingChoice, settings: AdjustmentSettings) -> tuple[np.ndarray, float]:
    """The foothold (2,) [m] and the time to touch-down [s].

    The problem is convex with a box, so descent along the foothold and the time in turn finds its only minimum.
    """
    w, d = settings, c.xi - c.zmp
    s_plan = float(np.exp(c.omega * c.remaining))
    low, high = float(np.exp(c.omega * c.soonest)), float(np.exp(c.omega * c.latest))
    s, u = s_plan, c.foothold
    for _ in range(ROUNDS):
        u = (w.place * c.foothold + w.offset * (c.zmp + d * s - c.offset)) / (w.place + w.offset)
        u = np.clip(u, c.lower, c.upper)
        rest = u + c.offset - c.zmp  # what d s should be
        s = (w.time * s_plan + w.offset * float(d @ rest)) / (w.time + w.offset * float(d @ d))
        s = min(max(s, low), high)
    return u, float(np.log(s) / c.omega)


def falling_time(phase: Phase, t: float, settings: AdjustmentSettings) -> float:
    """Time in which a swinging foot can come down from where it is at a time [s], by its greatest speed [s]."""
    high = float(phase.swing.at(t).translation[2] - phase.step.X.translation[2])
    return PEAK_SPEED * max(high, 0.0) / settings.falling
