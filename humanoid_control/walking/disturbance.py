"""Observer of unmodelled disturbances: a steady push, a load, mass errors.

A steady force f, or a CoM off by d, adds a bias b to the pendulum,

    c'' = w^2 F_z / (m g) (c - p - b) - w^2 (L_y, -L_x)' / (m g),

with b = -f z / (m g) for a force at height z, or b = d. Joints and IMU give c and c', the foot forces p and F_z, the
commands the angular momentum L about the CoM. With u = c' + w^2 (L_y, -L_x) / (m g), the mean satisfies

    b mean(s) = mean(s (c - p)) - mean(u') / w^2,    s = F_z / (m g).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from humanoid_control.walking.feet import Reaction
from humanoid_control.walking.gait import GRAVITY

CARRIED = 0.3  # minimum share of the weight on the soles for a valid zero-moment point


@dataclass(frozen=True)
class ObserverSettings:
    """Time constants and bounds of the observer.

    Attributes:
        window: averaging time [s].
        delay: time constant of the bias [s].
        most: bound of each bias component [m].
        glance: bound of each observation; larger values are transient pushes [m].
        speed: bound of the bias rate [m/s].
    """

    window: float = 0.4
    delay: float = 1.2
    most: float = 0.07
    glance: float = 0.09
    speed: float = 0.03


class MeasuredMotion(NamedTuple):
    """Measured motion of the pendulum.

    Attributes:
        momentum: (3,) angular, about the CoM [N m s].
    """

    center: np.ndarray
    velocity: np.ndarray
    momentum: np.ndarray
    reaction: Reaction
    omega: float


class DisturbanceObserver:
    """Observer of the bias b of the pendulum.

    Attributes:
        bias: (2,) estimate [m].
    """

    def __init__(self, mass: float, settings: ObserverSettings | None = None) -> None:
        self.settings, self._weight = settings or ObserverSettings(), mass * GRAVITY
        self.reset()

    def reset(self) -> None:
        """Reset the bias and the averages."""
        self.bias, self.seen = np.zeros(2), np.zeros(2)
        self._mean: list[float] | None = None  # means of s (c - p), u, s
        self._age = 0.0

    def update(self, m: MeasuredMotion, dt: float) -> np.ndarray:
        """Update the observer and return the bias (2,) [m]."""
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
        # mean(u') = (u - mean(u)) / window for an exponential window
        lag = [(arm - (a - b) / (w2 * g.window)) / carried for arm, a, b in zip(arms, u, mean_u, strict=True)]
        self.seen = np.array([_within(x, g.glance) for x in lag])
        self._age += dt
        if self._age > g.window:
            step = ((1.0 - math.exp(-dt / g.delay)) * (self.seen - self.bias)).tolist()
            slow = [b + _within(x, g.speed * dt) for b, x in zip(self.bias.tolist(), step, strict=True)]
            self.bias = np.array([_within(b, g.most) for b in slow])
        return self.bias


def _within(x: float, most: float) -> float:
    return min(max(x, -most), most)
