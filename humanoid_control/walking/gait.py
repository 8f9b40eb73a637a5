"""Gait: a steady walk as references for inverse kinematics, soles and the centre of mass of a linear pendulum.

One step lasts T, moves the robot on by D and to the left by S, and turns it by phi. It begins with double support,
while the zero-moment point passes from the rear sole to the front one; then the rear foot swings past along smooth
quintics. The centre of mass stays at one height z and obeys the linear pendulum c'' = w^2 (c - p), w^2 = g / z,
for the zero-moment point p: of all its motions the one that repeats with the steps, found harmonic by harmonic,
C_n = P_n w^2 / (w^2 + (Omega + 2 pi n / period)^2), with Omega = phi / T about the pole of the curve. So the horizontal
force on the ground points from p to c: it has no moment about the vertical through p, and the vertical contact torque
about p is exactly the rate of the vertical momentum.
"""

from __future__ import annotations

from cmath import exp
from dataclasses import dataclass

import numpy as np

from humanoid_control.errors import ConfigError
from humanoid_control.numerics.minimum_jerk import minimum_jerk

GRAVITY = 9.81  # [m/s^2]
SAMPLES = 1024  # of the zero-moment point over one period
HARMONICS = 150  # of the motion of the centre of mass; their weight falls with the square, and more by smooth steps


@dataclass(frozen=True)
class GaitSettings:
    """Lengths and times of a step.

    Attributes:
        step_length: advance with each step, D [m].
        step_time: duration of a step, T [s].
        double_support: share of a step during which both feet stand, 0..1.
        lift: height of the swinging foot at mid-swing [m].
        side_step: advance to the left with each step, S [m].
        turn: to the left with each step, phi [rad].
    """

    step_length: float = 0.4
    step_time: float = 0.8
    double_support: float = 0.2
    lift: float = 0.05
    side_step: float = 0.0
    turn: float = 0.0

    def __post_init__(self) -> None:
        if not self.step_time > 0:
            raise ConfigError(f"step_time must be positive, got {self.step_time:g} s")
        if not 0 < self.double_support < 1:
            raise ConfigError(f"double_support must lie between 0 and 1, got {self.double_support:g}")
        lengths = np.isfinite([self.step_length, self.side_step])
        if not (lengths.all() and self.lift >= 0):
            raise ConfigError(
                f"step_length {self.step_length:g} m, side_step {self.side_step:g} m or lift {self.lift:g} m is no "
                "length of a step"
            )
        if not abs(self.turn) < 1.0:
            raise ConfigError(f"turn must be less than 1 rad a step, got {self.turn:g}")


@dataclass(frozen=True)
class GaitPoint:
    """References at one moment, world frame.

    Attributes:
        soles: (2, 3) left and right foot [m]; they stay flat.
        headings: (3,) of left foot, right foot and chest, about the vertical [rad].
        center: (3,) centre of mass [m].
        acceleration: (3,) of the centre of mass [m/s^2].
        zmp: (2,) zero-moment point on the floor [m].
        support: feet that stand: 'left', 'right' or 'both'.
    """

    soles: np.ndarray
    headings: np.ndarray
    center: np.ndarray
    acceleration: np.ndarray
    zmp: np.ndarray
    support: str


class Gait:
    """The walk, steady from the first moment: at t = 0 the right foot is a step ahead, and the left one swings next.

    Points of the floor are complex numbers x + i y inside: a turn is a product.

    Attributes:
        cycle: duration of a gait cycle, two steps [s].
    """

    def __init__(self, settings: GaitSettings, width: float, height: float, start: tuple[float, float, float]) -> None:
        """Prepare the walk.

        Args:
            settings: the step. Side steps widen the stance, so that the soles never come nearer than `width`.
            width: lateral distance of the soles [m].
            height: of the centre of mass above the soles [m].
            start: (3,) middle between the soles at t = 0 [m].

        Raises:
            ConfigError: a height that is not positive.
        """
        if not height > 0:
            raise ConfigError(f"the centre of mass must be above the soles, got {height:g} m")
        s = settings
        self.settings, self.width, self.height = s, float(width) + abs(s.side_step), float(height)
        self.start = np.array(start, dtype=float)
        self.cycle = 2 * s.step_time
        self._step = complex(s.step_length, s.side_step)
        turning = s.turn / s.step_time
        t = np.arange(SAMPLES) * self.cycle / SAMPLES
        sway = np.array([complex(*self.zmp(x)) - self._still(x) for x in t]) * np.exp(-1j * turning * t)
        n = np.arange(-HARMONICS, HARMONICS + 1)
        self._omega = turning + 2 * np.pi * n / self.cycle
        pendulum = GRAVITY / height
        self._C = np.fft.fft(sway)[n] / SAMPLES * pendulum / (pendulum + self._omega**2)

    @property
    def _middle(self) -> complex:
        return complex(self.start[0], self.start[1])

    @property
    def _pole(self) -> complex:
        """The centre of a curve."""
        return self._middle + 1j * self._step / self.settings.turn

    def _still(self, t: float) -> complex:
        """The point about which the centre of mass sways: it moves evenly straight on, or is the pole of the curve."""
        return self._pole if self.settings.turn else self._middle + self._step * t / self.settings.step_time

    def phase(self, t: float) -> tuple[int, float, float]:
        """Number of the step, and the progress of its double support and of its swing, each 0..1."""
        s = self.settings
        step = int(np.floor(t / s.step_time + 1e-9))
        into = t / s.step_time - step
        both = s.double_support
        return step, min(max(into / both, 0.0), 1.0), min(max((into - both) / (1 - both), 0.0), 1.0)

    def zmp(self, t: float) -> np.ndarray:
        """The zero-moment point (2,) at time t [m]."""
        step, passed, _ = self.phase(t)
        return _between(self._foothold(step - 1)[0], self._foothold(step)[0], passed)

    def _foothold(self, step: int) -> tuple[complex, float]:
        """Sole and heading of the foot that stands during a step: the right one during even steps."""
        k, phi = step + 0.5, self.settings.turn
        aside = (-0.5j if step % 2 == 0 else 0.5j) * self.width
        if not phi:
            return self._middle + k * self._step + aside, 0.0
        turned, pole = exp(1j * phi * k), self._pole
        return pole + turned * (self._middle - pole) + aside * turned, phi * k

    def at(self, t: float) -> GaitPoint:
        """All references at time t [s]."""
        step, passed, swung = self.phase(t)
        (stance, ahead), (rear, before), (goal, after) = (self._foothold(k) for k in (step, step - 1, step + 1))
        swing, turned = rear + minimum_jerk(swung) * (goal - rear), before + minimum_jerk(swung) * (after - before)
        z = self.start[2]
        feet = [[swing.real, swing.imag, z + self.settings.lift * bump(swung)], [stance.real, stance.imag, z]]
        left_swings, chest = step % 2 == 0, self.settings.turn * t / self.settings.step_time
        soles = np.array(feet if left_swings else feet[::-1])
        headings = np.array([turned, ahead, chest] if left_swings else [ahead, turned, chest])
        wave = self._C * np.exp(1j * self._omega * t)
        c, bend = self._still(t) + wave.sum(), -(self._omega**2 * wave).sum()
        center, acceleration = np.array([c.real, c.imag, z + self.height]), np.array([bend.real, bend.imag, 0.0])
        support = "both" if swung <= 0 or swung >= 1 else "right" if left_swings else "left"
        return GaitPoint(soles, headings, center, acceleration, _between(rear, stance, passed), support)


def _between(rear: complex, front: complex, passed: float) -> np.ndarray:
    p = rear + minimum_jerk(passed) * (front - rear)
    return np.array([p.real, p.imag])


def bump(s: float) -> float:
    """The sextic from 0 up to 1 in the middle and back to 0, with neither speed nor acceleration at the ends."""
    return float(64 * (s * (1 - s)) ** 3)
