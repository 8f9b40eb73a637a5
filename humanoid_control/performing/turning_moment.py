"""Turning moment about the vertical that standing soles hold by friction.

A swinging leg and a turning trunk need a moment about the vertical. A single sole holds about friction times weight
times the distance of its corners. Beyond it, the friction of all corners is used up, and nothing is left for balance.
"""

from __future__ import annotations

import numpy as np

from humanoid_control.performing.clip_dynamics import Loads
from humanoid_control.performing.contact_plan import Stance
from humanoid_control.retargeting.whole_body.contacts import runs

FRICTION = 0.5  # of the evaluated contacts: below the controller's 0.6, which leaves friction for feedback
LACKING = 0.003  # [m] tolerated lack of moment per weight
SEVERE = 0.0025  # [m s] impulse of a lack per weight that the controller does not recover from
AROUND = 0.5  # [s] before and after a severe lack
LEAST_SHARE = 0.4  # of a step's way, in one round
QUICK = 0.5  # [s] of a swing whose leg needs the moment; in slower swings the trunk does


def held_share(loads: Loads, momentum_rate: np.ndarray, weight: float) -> np.ndarray:
    """Return the share (F,) of the turning moment that the contacts hold; 1 within the tolerance.

    Args:
        loads: with `FRICTION`.
        momentum_rate: about the centre of mass (T, 3) [N m].
        weight: robot weight [N].
    """
    lack = np.abs(loads.missing[:, 5])
    needed = np.maximum(np.abs(momentum_rate[loads.frames, 2]), lack)
    return np.asarray(np.where(lack > LACKING * weight, 1.0 - lack / np.maximum(needed, 1e-9), 1.0))


def severe_lacks(loads: Loads, rate: float, weight: float) -> np.ndarray:
    """Return whether the moment lacks severely at or around each frame (F,).

    Args:
        loads: with `FRICTION`.
        rate: frame rate [Hz].
        weight: robot weight [N].
    """
    lack, out = np.abs(loads.missing[:, 5]), np.zeros(len(loads.frames), dtype=bool)
    around = round(AROUND * rate)
    for a, b in runs(lack > LACKING * weight):
        if lack[a:b].sum() / rate > SEVERE * weight:
            out[max(0, a - around) : b + around] = True
    return out


def shorter_steps(
    held: np.ndarray, rate: float, stances: tuple[list[Stance], list[Stance]], before: dict[tuple[int, int], float]
) -> dict[tuple[int, int], float]:
    """Return the shares of the way of all steps (foot, number) whose quick swing needs a moment that is not held.

    The moment of a swinging leg grows with its way.

    Args:
        held: held share of the turning moment at each frame (T,).
        rate: [Hz].
        before: present shares.
    """
    shares = dict(before)
    for f in (0, 1):
        for k in range(1, len(stances[f])):
            swing = held[stances[f][k - 1].end : stances[f][k].first]
            least = float(swing.min(initial=1.0))
            if least < 1.0 and len(swing) < QUICK * rate:
                shares[f, k] = shares.get((f, k), 1.0) * max(least, LEAST_SHARE)
    return shares
