"""Footholds within reach of the legs.

A step keeps its distance from the standing foot, not its world position: shortened steps would lag behind. Yaw is
absolute, so later steps recover a clipped turn.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from humanoid_control.performing.contact_plan import Change, ContactPlan, Stance
from humanoid_control.performing.settings import FeasibilitySettings
from humanoid_control.performing.source_motion import RigidSoles, wrapped

CLEAR = 0.015  # [m] between soles side by side
FORWARD, BACKWARD, OUTWARD = 0.72, 0.8, 0.45  # of the leg; of the forward reach; of the leg beyond the neutral width
# of the leg beyond the neutral width: reach per sideways tilt of the ankle [1/rad]; least reach
TILT_SHARE, LEAST_OUTWARD = 0.8, 0.05
HIP_SHARE, INWARD, OUT_TURN = 0.6, 0.5, 1.2  # of the hip range; [rad] largest inward and outward turn of a step
RAMPS = 0.06  # [s] of a swing with little foot motion
TOLD, TOLD_TURN = 0.005, np.radians(1.0)  # [m], [rad] from which a changed step is reported
WAY = 0.3  # [m] of steps below which the kept way is not evaluated


def reachable_footholds(
    plan: ContactPlan,
    soles: RigidSoles,
    settings: FeasibilitySettings,
    shares: Mapping[tuple[int, int], float] | None = None,
) -> ContactPlan:
    """Move stances within reach, in landing order; record changes.

    Args:
        shares: share of its way that a step takes, by foot and number of the stance; default: 1.
    """
    reach = StepReach(soles, settings)
    own = plan.stances
    planned: tuple[list[Stance], list[Stance]] = (list(own[0]), list(own[1]))
    planned[0][0], planned[1][0] = reach.first(own[0][0], own[1][0])
    changes = list(plan.changes)
    order = sorted((s.first, f, k) for f in (0, 1) for k, s in enumerate(own[f]) if k > 0)
    for first, f, k in order:
        # Without double support the other foot's stance ends as this one begins: the latest one counts.
        i = max((i for i, s in enumerate(own[1 - f]) if s.first <= first), default=0)
        seconds = (first - own[f][k - 1].end) / settings.rate
        place, yaw, moved, turned = reach.land(
            own[f][k],
            own[1 - f][i],
            planned[1 - f][i],
            planned[f][k - 1].place,
            seconds,
            (shares or {}).get((f, k), 1.0),
        )
        planned[f][k] = replace(own[f][k], place=place, yaw=yaw)
        what = f"step of the {('left', 'right')[f]} foot"
        if moved > TOLD:
            changes.append(Change(first / settings.rate, f"{what} moved", 1000 * moved, "mm"))
        if abs(turned) > TOLD_TURN:
            changes.append(Change(first / settings.rate, f"{what} turned", float(np.degrees(turned)), "deg"))
    return ContactPlan(plan.stands, plan.toe_only, planned, changes, plan.filled)


def way_kept(plan: ContactPlan, planned: ContactPlan) -> float:
    """Return the kept share of the feet's way; 1 for short ways."""
    ways = []
    for stances in (plan.stances, planned.stances):
        steps = sorted((s.first, f, k) for f in (0, 1) for k, s in enumerate(stances[f]))
        place = [stances[0][0].place, stances[1][0].place]
        middles = []
        for _, f, k in steps:
            place[f] = stances[f][k].place
            middles.append(0.5 * (place[0] + place[1]))
        ways.append(float(np.linalg.norm(np.diff(middles, axis=0), axis=1).sum()))
    return min(1.0, ways[1] / ways[0]) if ways[0] > WAY else 1.0


class StepReach:
    """Reach of a step from the standing foot.

    Attributes:
        narrowest: smallest ankle distance [m].
        neutral: ankle distance [m].
        length: leg length [m].
        outward: reach beyond the neutral width [m].
        turn: yaw range of left, right foot, outward positive (2, 2) [rad].
    """

    def __init__(self, soles: RigidSoles, settings: FeasibilitySettings) -> None:
        self.soles, self.length, self.neutral = soles, soles.length, soles.width
        self.narrowest = max(soles.breadth + CLEAR, min(settings.narrowest, self.neutral))
        # a leg that reaches farther out than its ankle tilts lands on the edge of its sole, and the trunk bends instead
        self.outward = min(OUTWARD, max(LEAST_OUTWARD, TILT_SHARE * soles.tilt)) * self.length
        self.speed = settings.swing_speed * self.length
        yaw = soles.legs.yaw
        both = np.array([yaw[0] - yaw[1][::-1], -(yaw[1] - yaw[0][::-1])[::-1]])
        self.turn = np.clip(HIP_SHARE * both, -INWARD, OUT_TURN)

    def land(
        self, own: Stance, stood: Stance, stands: Stance, last: np.ndarray, seconds: float, share: float = 1.0
    ) -> tuple[np.ndarray, float, float, float]:
        """Return a reachable landing.

        Args:
            own: retargeted.
            stood: other foot, retargeted.
            stands: other foot, planned.
            last: start of the swing (2,) [m].
            seconds: swing duration [s].
            share: share of the way from `last`.

        Returns:
            Place (2,), yaw, corrections [m], [rad].
        """
        side = 1.0 - 2.0 * own.foot
        wanted = float(side * wrapped(own.yaw - stands.yaw))
        outward = float(np.clip(wanted, *self.turn[own.foot]))
        own_step = _turned(own.place - stood.place, -stood.yaw)
        step = self._within(own_step, side, outward)
        place = stands.place + _turned(step, stands.yaw)
        way = place - last
        far = float(np.linalg.norm(way))
        most = min(self.speed * max(seconds - RAMPS, 0.0), share * far)
        if far > most:
            step = self._within(_turned(last + most / far * way - stands.place, -stands.yaw), side, outward)
            place = stands.place + _turned(step, stands.yaw)
        moved = float(np.linalg.norm(step - own_step))
        return place, stands.yaw + side * outward, moved, outward - wanted

    def first(self, left: Stance, right: Stance) -> tuple[Stance, Stance]:
        """Bring both initial stances within reach, each by half."""
        middle, yaw = 0.5 * (left.place + right.place), right.yaw + 0.5 * float(wrapped(left.yaw - right.yaw))
        outward = float(np.clip(wrapped(left.yaw - right.yaw), *self.turn[0]))
        step = self._within(_turned(left.place - right.place, -yaw), 1.0, outward)
        half = 0.5 * _turned(step, yaw)
        return (
            replace(left, place=middle + half, yaw=yaw + 0.5 * outward),
            replace(right, place=middle - half, yaw=yaw - 0.5 * outward),
        )

    def _within(self, step: np.ndarray, side: float, outward: float) -> np.ndarray:
        """Clip a step (2,), forward and left, to the reach."""
        toes = float((self.soles.toe + self.soles.heel).mean())
        narrow = self.narrowest + 0.5 * toes * abs(np.sin(outward))
        wide = self.neutral + self.outward
        y = float(np.clip(side * step[1], min(narrow, wide), wide))
        out = max(0.0, (y - self.neutral) / self.outward)
        x = FORWARD * self.length * np.sqrt(max(0.0, 1.0 - out**2))
        return np.array([np.clip(step[0], -BACKWARD * x, x), side * y])


def _turned(v: np.ndarray, yaw: float) -> np.ndarray:
    """Rotate a vector (2,)."""
    c, s = np.cos(yaw), np.sin(yaw)
    return np.array([c * v[0] - s * v[1], s * v[0] + c * v[1]])
