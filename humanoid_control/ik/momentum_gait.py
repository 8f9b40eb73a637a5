"""A straight, steady walk as references for inverse kinematics: soles, and the centre of mass of a linear pendulum.

One step lasts T and moves the robot on by D. It begins with double support, while the zero-moment point passes from
the rear sole to the front one; then the rear foot swings past, 2 D far, along smooth quintics. The centre of mass stays
at one height z and obeys the linear inverted pendulum c'' = w^2 (c - p), w^2 = g / z, for the zero-moment point p: of
all its motions the one that repeats with the steps, found harmonic by harmonic,
C_n = P_n w^2 / (w^2 + (2 pi n / period)^2). So the horizontal force on the ground points from p to c: it has no moment
about the vertical through p, and the vertical contact torque about p is exactly the rate of the vertical momentum.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from humanoid_control.errors import ConfigError

GRAVITY = 9.81  # [m/s^2]
SAMPLES = 1024  # of the zero-moment point over one period
HARMONICS = (
    150  # kept of the motion of the centre of mass; their weight falls with the square, and more by smooth steps
)


@dataclass(frozen=True)
class GaitSettings:
    """What the walk is like.

    Attributes:
        step_length: how far the robot gets with each step, D [m].
        step_time: duration of a step, T [s].
        double_support: share of a step during which both feet stand, 0..1.
        lift: height of the swinging foot at the middle of its way [m].
    """

    step_length: float = 0.4
    step_time: float = 0.8
    double_support: float = 0.2
    lift: float = 0.05

    def __post_init__(self) -> None:
        if not self.step_time > 0:
            raise ConfigError(f"step_time must be positive, got {self.step_time:g} s")
        if not 0 < self.double_support < 1:
            raise ConfigError(f"double_support must lie between 0 and 1, got {self.double_support:g}")
        if not (np.isfinite(self.step_length) and self.lift >= 0):
            raise ConfigError(f"step_length {self.step_length:g} m or lift {self.lift:g} m is no length of a step")


@dataclass(frozen=True)
class GaitPoint:
    """References at one moment, world frame.

    Attributes:
        soles: (2, 3) left and right foot [m]; they stay flat and point ahead.
        center: (3,) centre of mass [m].
        acceleration: (3,) of the centre of mass [m/s^2].
        zmp: (2,) zero-moment point on the floor [m].
        support: 'left', 'right' or 'both': which feet stand.
    """

    soles: np.ndarray
    center: np.ndarray
    acceleration: np.ndarray
    zmp: np.ndarray
    support: str


class Gait:
    """The walk, steady from the first moment: at t = 0 the right foot is a step ahead, and the left one swings next.

    Attributes:
        cycle: duration of a gait cycle, two steps [s].
        speed: [m/s].
    """

    def __init__(self, settings: GaitSettings, width: float, height: float, start: tuple[float, float, float]) -> None:
        """Prepare the walk.

        Args:
            settings: the step.
            width: lateral distance of the soles [m].
            height: of the centre of mass above the soles [m].
            start: where the middle between the soles is at t = 0 [m].
        """
        if not height > 0:
            raise ConfigError(f"the centre of mass must be above the soles, got {height:g} m")
        self.settings, self.width, self.height = settings, float(width), float(height)
        self.start = np.array(start, dtype=float)
        self.cycle = 2 * settings.step_time
        self.speed = settings.step_length / settings.step_time
        t = np.arange(SAMPLES) * self.cycle / SAMPLES
        sway = np.array([self.zmp(s) - (self.start[0] + self.speed * s, self.start[1]) for s in t])
        n = np.arange(HARMONICS)
        omega = 2 * np.pi * n / self.cycle
        pendulum = GRAVITY / height
        P = np.fft.rfft(sway, axis=0)[:HARMONICS] * (np.where(n > 0, 2.0, 1.0) / SAMPLES)[:, None]
        self._omega = omega
        self._C = P * (pendulum / (pendulum + omega**2))[:, None]

    def phase(self, t: float) -> tuple[int, float, float]:
        """Number of the step, how far its double support and how far its swing are, each 0..1."""
        s = self.settings
        step = int(np.floor(t / s.step_time + 1e-9))
        into = t / s.step_time - step
        both = s.double_support
        return step, min(max(into / both, 0.0), 1.0), min(max((into - both) / (1 - both), 0.0), 1.0)

    def zmp(self, t: float) -> np.ndarray:
        """The zero-moment point (2,) at time t [m]."""
        step, passed, _ = self.phase(t)
        rear, front = self._foothold(step - 1), self._foothold(step)
        return (rear + smooth(passed) * (front - rear))[:2]

    def _foothold(self, step: int) -> np.ndarray:
        """Where the foot that stands during a step has its sole: right during even steps."""
        y = -self.width / 2 if step % 2 == 0 else self.width / 2
        return self.start + [(step + 0.5) * self.settings.step_length, y, 0.0]

    def at(self, t: float) -> GaitPoint:
        """All references at time t [s]."""
        step, _, swung = self.phase(t)
        stance, rear, goal = self._foothold(step), self._foothold(step - 1), self._foothold(step + 1)
        swing = rear + smooth(swung) * (goal - rear)
        swing[2] += self.settings.lift * bump(swung)
        left_swings = step % 2 == 0
        soles = np.array([swing, stance] if left_swings else [stance, swing])
        turn = np.exp(1j * self._omega * t)[:, None]
        sway, bend = (self._C * turn).real.sum(axis=0), -(self._C * turn * self._omega[:, None] ** 2).real.sum(axis=0)
        ahead = [self.start[0] + self.speed * t, self.start[1]] + sway
        center = np.array([*ahead, self.start[2] + self.height])
        support = "both" if swung <= 0 or swung >= 1 else "right" if left_swings else "left"
        return GaitPoint(soles, center, np.array([*bend, 0.0]), self.zmp(t), support)


def smooth(s: float) -> float:
    """From 0 to 1 with neither speed nor acceleration at the ends."""
    return float(s * s * s * (10 + s * (6 * s - 15)))


def bump(s: float) -> float:
    """From 0 up to 1 in the middle and back to 0, with neither speed nor acceleration at the ends."""
    return float(64 * (s * (1 - s)) ** 3)
