"""Sole paths of a plan: stances, toe rolls, swings in the dancer's style.

A swing is a blend between places plus the retargeted foot's deviation from its own blend. It starts and ends at rest
and descends above its place. Its height limit grows with time squared.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.spatial.transform import Rotation

from humanoid_control.numerics.minimum_jerk import minimum_jerk
from humanoid_control.performing.contact_plan import ContactPlan, Stance
from humanoid_control.performing.source_motion import (
    RigidSoles,
    SourceMotion,
    rotations_z,
    smoothed,
    wrapped,
    yaw_of,
)

WAIT, ARRIVE = 0.04, 0.85  # shares of a swing at which the way begins and ends
RISE, FALL, DOWN = 0.35, 0.87, 0.35  # shares of a swing: deviation fades in until RISE, out before FALL, over DOWN
CLEARANCE, LIFT_SPEED = 0.045, 0.25  # [m] of a step; [m/s] of its duration, for short steps
TOP, TOP_TIME = 0.045, 0.4  # [m] largest height of a step of TOP_TIME [s]; grows with time squared
SMOOTH = 8.0  # [Hz] filter of the height
TURN_SHARE = 0.7  # share of the retargeted rotation deviation
NEAR, BEND, HIGHEST = 0.56, 0.24, 0.35  # of the leg: free distance from the standing sole, bend beyond it, height limit
ASIDE, FUNNEL, PASSING = 0.2, 1.5, 0.015  # share of a swing; slope over the distance ahead; [m] between passing soles
# Bounds of a swing's acceleration, within which the deviation is kept: [m/s^2], share of the planned way's, [rad/s^2].
CALM, CALM_SHARE, CALM_TURN, HALVINGS = 12.0, 1.2, 60.0, 8
SOFT = 0.01  # [m] transition of the lowest corner from toe to heel


class SolePaths(NamedTuple):
    """Sole poses over time: R (T, 2, 3, 3), p (T, 2, 3) [m]."""

    R: np.ndarray
    p: np.ndarray

    @classmethod
    def of(cls, source: SourceMotion, plan: ContactPlan) -> SolePaths:
        """Return paths over a plan with reachable stances."""
        T = len(source)
        paths = cls(np.empty((T, 2, 3, 3)), np.zeros((T, 2, 3)))
        for f in (0, 1):
            for stance in plan.stances[f]:
                paths._stand(source.soles, stance)
        for before, landing in plan.swings():
            paths._swing(source, plan, before, landing)
        return paths

    def _stand(self, soles: RigidSoles, stance: Stance) -> None:
        """Fill a stance: flat, then about the toe edge."""
        f, frames = stance.foot, np.arange(stance.first, stance.end)
        share = np.clip((frames - stance.rolls + 1) / max(1, stance.end - stance.rolls), 0.0, 1.0)
        pitch = stance.pitch * minimum_jerk(share)
        flat = rotations_z(np.full(len(frames), stance.yaw))
        roll = np.zeros_like(flat)
        roll[:, 0, 0] = roll[:, 2, 2] = np.cos(pitch)
        roll[:, 0, 2], roll[:, 2, 0], roll[:, 1, 1] = np.sin(pitch), -np.sin(pitch), 1.0
        R = flat @ roll
        toe = np.array([*stance.place, 0.0]) + soles.toe[f] * flat[:, :, 0]
        self.R[stance.first : stance.end, f] = R
        self.p[stance.first : stance.end, f] = toe - soles.toe[f] * R[:, :, 0]

    def _swing(self, source: SourceMotion, plan: ContactPlan, before: Stance, landing: Stance) -> None:
        f, a, b = landing.foot, before.end - 1, landing.first
        if b - a < 2:
            return
        L, rate, corners = source.soles.length, source.rate, source.soles.corners[f]
        frames = np.arange(a + 1, b)
        u, seconds = (frames - a) / (b - a), (b - a) / rate
        s, w = _share((u - WAIT) / (ARRIVE - WAIT)), _share(u / RISE) * _share((FALL - u) / DOWN)
        # along the floor: the plan's way plus the retargeted foot's deviation
        base = _between(self.p[a, f, :2], self.p[b, f, :2], s)
        own = source.sole_p[a : b + 1, f, :2]
        deviation = own[1:-1] - _between(own[0], own[-1], s)
        yaw = yaw_of(source.sole_R[[a, b], f])
        turns = wrapped(np.array([before.yaw, landing.yaw]) - yaw)
        turn = turns[0] + s * float(wrapped(turns[1] - turns[0]))
        turned = np.einsum("tij,tj->ti", rotations_z(turn)[:, :2, :2], deviation)
        way = np.vstack([self.p[a, f, :2], base, self.p[b, f, :2]])
        bound = max(CALM, CALM_SHARE * _peak_acceleration(way, rate))
        xy = base + _calmed(w[:, None] * turned, way, bound, rate)
        # height of the lowest corner
        theirs = np.einsum("tij,kj->tki", source.sole_R[a + 1 : b, f], corners) + source.sole_p[a + 1 : b, f][:, None]
        lift = min(CLEARANCE, LIFT_SPEED * seconds)
        height = np.maximum(w * np.maximum(theirs[..., 2].min(axis=1), 0.0), 16 * lift * u**2 * (1 - u) ** 2)
        round_ = np.minimum(1.0, np.minimum(u, 1 - u) * seconds * SMOOTH)
        height = (1 - round_) * height + round_ * smoothed(np.concatenate([[0.0], height, [0.0]]), SMOOTH, rate)[1:-1]
        scale = min(1.0, TOP * (seconds / TOP_TIME) ** 2 / max(float(height.max()), 1e-9))
        height = np.minimum(scale * np.maximum(height, 0.0), HIGHEST * L)
        # reach from the standing foot
        stands = plan.stance_at(1 - f, (a + b) // 2)
        if stands is not None:
            xy = _near(stands.place, xy, base, L)
            xy = _beside(source.soles, stands, xy, _share(u / ASIDE) * _share((1 - u) / ASIDE))
        # rotation, and the frame height above the lowest corner it implies
        first, last = Rotation.from_matrix(self.R[a, f]), Rotation.from_matrix(self.R[b, f])
        blend = first * Rotation.from_rotvec(s[:, None] * (first.inv() * last).as_rotvec())
        seen = Rotation.from_matrix(source.sole_R[a : b + 1, f])
        theirs_blend = seen[0] * Rotation.from_rotvec(s[:, None] * (seen[0].inv() * seen[-1]).as_rotvec())
        off = (theirs_blend.inv() * seen[1:-1]).as_rotvec()
        off = _calmed((TURN_SHARE * scale * w)[:, None] * off, np.zeros((b - a + 1, 3)), CALM_TURN, rate)
        R = (blend * Rotation.from_rotvec(off)).as_matrix()
        self.R[a + 1 : b, f] = R
        self.p[a + 1 : b, f, :2] = xy
        self.p[a + 1 : b, f, 2] = height + _drop(R, corners, SOFT * 16 * u**2 * (1 - u) ** 2)


def _peak_acceleration(path: np.ndarray, rate: float) -> float:
    """Return the largest acceleration of a path (T, m) that rests before and after."""
    rest = np.vstack([path[:1], path, path[-1:]])
    return float(np.linalg.norm(np.diff(rest, 2, axis=0), axis=1).max()) * rate**2


def _calmed(deviation: np.ndarray, way: np.ndarray, bound: float, rate: float) -> np.ndarray:
    """Scale a deviation (T, m) from a way (T + 2, m) until their sum keeps an acceleration bound.

    Faster swings shake the trunk: in long steps, G1 and HRP-2 fell by the reaction of a foot at 34 m/s^2.
    """
    full = np.vstack([0 * way[:1], deviation, 0 * way[:1]])
    low, high = (1.0, 1.0) if _peak_acceleration(way + full, rate) <= bound else (0.0, 1.0)
    for _ in range(HALVINGS if low < high else 0):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if _peak_acceleration(way + middle * full, rate) <= bound else (low, middle)
    return low * deviation


def _share(u: np.ndarray) -> np.ndarray:
    """Return the minimum-jerk share at a time share u."""
    return minimum_jerk(np.clip(u, 0.0, 1.0))


def _between(a: np.ndarray, b: np.ndarray, s: np.ndarray) -> np.ndarray:
    return np.asarray(a + s[:, None] * (b - a))


def _near(stands: np.ndarray, xy: np.ndarray, base: np.ndarray, L: float) -> np.ndarray:
    """Limit places (T, 2) to the reach of the standing leg."""
    free = np.maximum(NEAR * L, np.linalg.norm(base - stands, axis=1))
    off = xy - stands
    far = np.linalg.norm(off, axis=1)
    bent = free + BEND * L * np.tanh(np.maximum(far - free, 0.0) / (BEND * L))
    return np.asarray(stands + off * (np.minimum(far, bent) / np.maximum(far, 1e-9))[:, None])


def _beside(soles: RigidSoles, stands: Stance, xy: np.ndarray, share: np.ndarray) -> np.ndarray:
    """Move places (T, 2) to their own side of the standing leg, by a share (T,)."""
    side, forward = 2.0 * stands.foot - 1.0, np.array([np.cos(stands.yaw), np.sin(stands.yaw)])
    left = np.array([-forward[1], forward[0]])
    x, y = (xy - stands.place) @ forward, side * ((xy - stands.place) @ left)
    apart = min(soles.breadth + PASSING, soles.width)
    least = apart - FUNNEL * np.maximum(np.abs(x) - 0.5 * float((soles.toe + soles.heel).mean()), 0.0)
    lacking = PASSING * np.logaddexp(0.0, (least - y) / PASSING - 1.0)
    return np.asarray(xy + (side * share * lacking)[:, None] * left)


def _drop(R: np.ndarray, corners: np.ndarray, soft: np.ndarray) -> np.ndarray:
    """Return the frame height (T,) above the lowest corner, smooth over `soft` (T,)."""
    depth = -np.einsum("tj,kj->tk", R[:, 2], corners)
    most = depth.max(axis=1)
    width = np.maximum(soft, 1e-9)
    # both corners of an edge are lowest together and count once
    total = np.exp((depth - most[:, None]) / width[:, None]).sum(axis=1)
    return np.asarray(most + width * np.log(total / len(corners)))
