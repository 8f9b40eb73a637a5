"""Steady gait: reference soles and centre of mass of a linear pendulum.

A step lasts T, advances by D, moves left by S and turns by phi. In double support, the ZMP passes from rear to front
sole; then the rear foot swings along quintics. The CoM has constant height z and obeys c'' = w^2 (c - p), w^2 = g / z.
Its periodic solution has the harmonics C_n = P_n w^2 / (w^2 + (Omega + 2 pi n / period)^2), Omega = phi / T about the
pole of the curve.
"""

from __future__ import annotations

from cmath import exp
from dataclasses import dataclass

import numpy as np

from humanoid_control.errors import ConfigError
from humanoid_control.numerics.minimum_jerk import minimum_jerk

GRAVITY = 9.81  # [m/s^2]
SAMPLES = 1024  # samples of the zero-moment point over a period
HARMONICS = 150  # of the centre-of-mass motion; amplitudes fall at least with the square


@dataclass(frozen=True)
class GaitSettings:
    """Lengths and times of a step.

    Attributes:
        step_length: advance per step, D [m].
        step_time: duration, T [s].
        double_support: share of a step on both feet, 0..1.
        lift: sole height at mid-swing [m].
        side_step: leftward motion per step, S [m].
        turn: left turn per step, phi [rad].
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
                f"step_length {self.step_length:g} m, side_step {self.side_step:g} m or lift {self.lift:g} m is not a "
                "valid step size"
            )
        if not abs(self.turn) < 1.0:
            raise ConfigError(f"turn must be less than 1 rad a step, got {self.turn:g}")


@dataclass(frozen=True)
class GaitPoint:
    """References at one time, world frame.

    Attributes:
        soles: (2, 3) flat left and right sole [m].
        headings: (3,) of left foot, right foot, chest [rad].
        zmp: (2,) ZMP on the ground [m].
        support: 'left', 'right' or 'both'.
    """

    soles: np.ndarray
    headings: np.ndarray
    center: np.ndarray
    acceleration: np.ndarray
    zmp: np.ndarray
    support: str


class Gait:
    """Gait that is steady from t = 0, when the right foot is a step ahead and the left one swings next.

    Attributes:
        cycle: duration of two steps [s].
    """

    def __init__(self, settings: GaitSettings, width: float, height: float, start: tuple[float, float, float]) -> None:
        """Compute the harmonics of the CoM.

        Args:
            width: lateral distance of the soles, widened by side steps [m].
            height: CoM height above the soles [m].
            start: (3,) middle between the soles at t = 0 [m].

        Raises:
            ConfigError: if `height` is not positive.
        """
        if not height > 0:
            raise ConfigError(f"the centre of mass must be above the soles, got {height:g} m")
        s = settings
        self.settings, self.width, self.height = s, float(width) + abs(s.side_step), float(height)
        self.start = np.array(start, dtype=float)
        self.cycle = 2 * s.step_time
        self._step = complex(s.step_length, s.side_step)
        turning = s.turn / s.step_time
        # Points of the ground are complex numbers x + i y, so that a rotation is a product.
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
        return self._middle + 1j * self._step / self.settings.turn

    def _still(self, t: float) -> complex:
        return self._pole if self.settings.turn else self._middle + self._step * t / self.settings.step_time

    def phase(self, t: float) -> tuple[int, float, float]:
        """Return the step number and the progress of its double support and swing, each 0..1."""
        s = self.settings
        step = int(np.floor(t / s.step_time + 1e-9))
        into = t / s.step_time - step
        both = s.double_support
        return step, min(max(into / both, 0.0), 1.0), min(max((into - both) / (1 - both), 0.0), 1.0)

    def zmp(self, t: float) -> np.ndarray:
        """Return the ZMP (2,) [m]."""
        step, passed, _ = self.phase(t)
        return _between(self._foothold(step - 1)[0], self._foothold(step)[0], passed)

    def _foothold(self, step: int) -> tuple[complex, float]:
        """Return sole and heading of the stance foot of a step: the right foot in even steps."""
        k, phi = step + 0.5, self.settings.turn
        aside = (-0.5j if step % 2 == 0 else 0.5j) * self.width
        if not phi:
            return self._middle + k * self._step + aside, 0.0
        turned, pole = exp(1j * phi * k), self._pole
        return pole + turned * (self._middle - pole) + aside * turned, phi * k

    def at(self, t: float) -> GaitPoint:
        """Return all references at time t [s]."""
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
    """Return a sextic from 0 to 1 at mid-interval and back, with zero speed and acceleration at the ends."""
    return float(64 * (s * (1 - s)) ** 3)
