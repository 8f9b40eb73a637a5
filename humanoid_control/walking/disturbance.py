"""What a robot's model does not know: a push that stays, a load in a hand, masses that are elsewhere.

A steady force f on the body, or a centre of mass that is off by d, bends the pendulum by the same bias b,

    c'' = w^2 F_z / (m g) (c - p - b) - w^2 (L_y, -L_x)' / (m g),

with b = -f z / (m g) for a force that acts at the height z, and b = d for a model that puts the centre of mass d off.
Everything but b is measured: c and c' by joints and IMU, p and F_z by the forces under the soles; L, the angular
momentum about the centre of mass, is that of the commands. With u = c' + w^2 (L_y, -L_x) / (m g) it holds on the mean

    b mean(s) = mean(s (c - p)) - mean(u') / w^2,    s = F_z / (m g),

and the mean of u' over a window is the change of u: nothing is differentiated. A robot that leans by b where it walks
keeps its zero-moment point in the middle of its soles.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from humanoid_control.walking.feet import Reaction
from humanoid_control.walking.gait import GRAVITY

CARRIED = 0.3  # share of the weight that the soles must carry for the zero-moment point to say something


@dataclass(frozen=True)
class ObserverSettings:
    """How quickly and how far a disturbance is believed.

    Attributes:
        window: over which the motion is averaged [s]. delay: with which the bias follows what is seen there [s].
        most: of each component of the bias [m]. glance: of what is seen, beyond which it is taken for a push that
            does not stay [m].
        speed: of the bias, most [m/s].
    """

    window: float = 0.4
    delay: float = 1.2
    most: float = 0.07
    glance: float = 0.09
    speed: float = 0.03


class MeasuredMotion(NamedTuple):
    """What an observer looks at.

    Attributes:
        center, velocity: (2,) of the centre of mass, horizontal [m], [m/s]. momentum: (3,) angular [N m s].
        reaction: of the ground on both soles. omega: of the pendulum [1/s].
    """

    center: np.ndarray
    velocity: np.ndarray
    momentum: np.ndarray
    reaction: Reaction
    omega: float


class DisturbanceObserver:
    """Observer of the bias b of the pendulum.

    Attributes:
        settings: of it. bias: (2,) that is believed [m]. seen: (2,) of the last window [m].
    """

    def __init__(self, mass: float, settings: ObserverSettings | None = None) -> None:
        """Make it; mass of the robot [kg]."""
        self.settings, self._weight = settings or ObserverSettings(), mass * GRAVITY
        self.reset()

    def reset(self) -> None:
        """Nothing is known."""
        self.bias, self.seen = np.zeros(2), np.zeros(2)
        self._mean: list[float] | None = None  # of s (c - p), u, s
        self._age = 0.0

    def look(self, m: MeasuredMotion, dt: float) -> np.ndarray:
        """The bias (2,) [m], after another look.

        Args:
            m: the motion now. dt: since the last look [s].
        """
        g, s = self.settings, float(m.reaction.force[2]) / self._weight
        if s < CARRIED:
            return self.bias
        w2, (Lx, Ly, _) = m.omega**2, m.momentum.tolist()
        (vx, vy), arm, share = m.velocity.tolist(), (s * (m.center - m.reaction.zmp)).tolist(), w2 / self._weight
        u = [vx + share * Ly, vy - share * Lx]
        now, a = [*arm, *u, s], 1.0 - math.exp(-dt / g.window)
        before = now if self._mean is None else self._mean
        self._mean = [old + a * (new - old) for old, new in zip(before, now, strict=True)]
        arms, mean_u, carried = self._mean[:2], self._mean[2:4], self._mean[4]
        lag = [(arm - (a - b) / (w2 * g.window)) / carried for arm, a, b in zip(arms, u, mean_u, strict=True)]
        self.seen = np.array([_within(x, g.glance) for x in lag])
        self._age += dt
        if self._age > g.window:
            step = ((1.0 - math.exp(-dt / g.delay)) * (self.seen - self.bias)).tolist()
            slow = [b + _within(x, g.speed * dt) for b, x in zip(self.bias.tolist(), step, strict=True)]
            self.bias = np.array([_within(b, g.most) for b in slow])
        return self.bias


def _within(x: float, most: float) -> float:
    """The number, of at most that size."""
    return min(max(x, -most), most)
