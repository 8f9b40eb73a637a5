"""Swept safety: what a robot's shapes pass through in this tick, and from there until its joints have stopped."""

from __future__ import annotations

import numpy as np

from humanoid_control.ik.swept_way import DEEPEST, fastest_clear
from humanoid_control.robots import Robot
from humanoid_control.robots.pair_watch import PairWatch


class SweptCheck:
    """Is the way clear: through this tick at v, then on while every joint brakes, in ticks of the same length?

    Between two postures a and b of such a way, in which no joint turns back, a pair's distance is at least
    (d_a + d_b - travel) / 2, where travel is the sum of the pair's levers times the angles between a and b. So a few
    postures prove all those between them: pairs that are farther than their whole travel need none, for the others the
    way is halved until it is proven or a posture on it is too close.

    A pair that is apart keeps at least three quarters of its floor, which is the given one or, where it is closer
    now, nearly its present distance. A pair that touches already is not looked at: leaving is the business of the rows.
    """

    def __init__(self, robot: Robot, watch: PairWatch) -> None:
        """Prepare for the pairs of a watch, which must have looked at q before each call."""
        self._robot, self._watch = robot, watch
        count, P = len(watch.shapes), len(watch.pairs)
        self._R, self._p = np.tile(np.eye(3), (count, 1, 1)), np.zeros((count, 3))
        n = robot.model.njoints
        self._joint_R, self._joint_p = np.tile(np.eye(3), (n, 1, 1)), np.zeros((n, 3))
        self._lever = np.ascontiguousarray(watch.lever[:, robot.iv :])
        self._a, self._b, self._d = np.empty((DEEPEST, P)), np.empty((DEEPEST, P)), np.empty(P)
        self._floor, self._pair = np.empty(P), np.empty(P, dtype=np.int64)

    def scale(
        self, q: np.ndarray, brake: np.ndarray, v: np.ndarray, dt: float, acceleration: float, floor: float
    ) -> float:
        """The largest s, of a few, for which the way at brake + s (v - brake) is clear; 0 where none is.

        Args:
            q: (nq,) where the robot is.
            brake: (nv,) the velocity that brakes hardest: the end of the way that was proven a tick ago.
            v: (nv,) the velocity that is wanted.
            dt: [s]. acceleration: with which joints brake [rad/s^2].
            floor: distance that pairs keep [m].
        """
        w, poses, r = self._watch, self._watch.poses, self._robot
        s = w.shapes
        return float(
            fastest_clear(
                q,
                r.iq,
                brake[r.iv :],
                v[r.iv :],
                dt,
                acceleration,
                floor,
                self._lever,
                w.lower,
                poses.arrays,
                poses.floating,
                (s.joint, s.R, s.p, s.kinds, s.sizes),
                w.pairs,
                (w.R, w.p),
                (self._joint_R, self._joint_p, self._R, self._p),
                (self._a, self._b, self._d, self._floor),
                self._pair,
            )
        )
