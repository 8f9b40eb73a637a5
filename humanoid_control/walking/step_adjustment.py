"""Step adjustment after a push: foothold and time that return the divergent component to the plan.

At touch-down in a time r, xi is p + (xi - p) s with s = exp(w r). The planned offset of xi from the new foothold is b.
The foothold u, s and b (Khadiv, Herzog, Moosavian, Righetti 2016, 2020) minimise

    a_u |u - u_plan|^2 + a_s (s - s_plan)^2 + a_b |b - b_plan|^2   with   u + b = p + (xi - p) s,

with u in reach and s between the earliest and the latest touch-down.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from humanoid_control.numerics.minimum_jerk import PEAK_SPEED
from humanoid_control.walking.planning.plan import Phase

ROUNDS = 12  # of alternating minimisation over u and s


@dataclass(frozen=True)
class AdjustmentSettings:
    """Conditions and bounds of step adjustment.

    Attributes:
        place: weight a_u.
        time: weight a_s.
        offset: weight a_b.
        threshold: error of the DCM that triggers [m].
        cut: distance of the desired ZMP outside the support that triggers [m].
        earliest: minimum time in the air [s].
        stretch: greatest relative extension of a swing.
        falling: greatest descent speed of an earlier landing [m/s].
        latest_phase: swing phase after which nothing changes.
        speed: largest speed of a foothold's motion [m/s].
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
    """Input of the adjustment, in stance-foot axes.

    Attributes:
        xi: (2,) DCM [m].
        zmp: (2,) ZMP until touch-down [m].
        foothold: (2,) planned [m].
        offset: (2,) planned xi - foothold at touch-down [m].
        remaining: planned time to touch-down [s].
        soonest: lower bound of the time [s].
        latest: upper bound of the time [s].
        lower: (2,) lower corner of the reach [m]; `upper`: likewise.
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
    """Return the foothold (2,) [m] and the time to touch-down [s]."""
    w, d = settings, c.xi - c.zmp
    s_plan = float(np.exp(c.omega * c.remaining))
    low, high = float(np.exp(c.omega * c.soonest)), float(np.exp(c.omega * c.latest))
    s, u = s_plan, c.foothold
    for _ in range(ROUNDS):
        u = (w.place * c.foothold + w.offset * (c.zmp + d * s - c.offset)) / (w.place + w.offset)
        u = np.clip(u, c.lower, c.upper)
        rest = u + c.offset - c.zmp  # target of d s
        s = (w.time * s_plan + w.offset * float(d @ rest)) / (w.time + w.offset * float(d @ d))
        s = min(max(s, low), high)
    return u, float(np.log(s) / c.omega)


def falling_time(phase: Phase, t: float, settings: AdjustmentSettings) -> float:
    """Return the shortest descent time of the swing foot at `falling` speed [s]."""
    high = float(phase.swing.at(t).translation[2] - phase.step.X.translation[2])
    return PEAK_SPEED * max(high, 0.0) / settings.falling
