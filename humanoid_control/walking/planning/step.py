"""One footstep: where and when a sole comes down, the ways in which it is made, and what the legs can do of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from humanoid_control.errors import ConfigError
from humanoid_control.walking.plane_geometry import planar_exp, polygon_distance, yaw_of
from humanoid_control.walking.swing_foot import LEVEL, SwingShape

PASSING = (0.25, 0.5, 0.75)  # shares of a swing at which the feet are looked at
LEAST = 1e-4  # size of a step: a robot too slow to step at some time has steps as small as this [m, rad]
WIDE = 0.12  # sole of an adult-size robot, on which it may sway in a step of the nominal time [m]
EXACT, SHARE_EXACT = 1e-3, 5e-3  # [m] of a gap, share of a reach: soles on ground that is felt to slope are not level


@dataclass(frozen=True)
class StepStyle:
    """A way to make a step.

    Attributes:
        double_support, lift, crouch: of a step, as shares of what a calm one has.
        shape: of its swing over level ground. late: how far its foot may be behind its path before it lands [m].
    """

    double_support: float = 1.0
    lift: float = 1.0
    crouch: float = 1.0
    shape: SwingShape = LEVEL
    late: float = 0.0


CALM = StepStyle()
BRISK = StepStyle(0.5, 0.5, 0.0, SwingShape(0.0, 0.93, 0.55), 0.012)
"""More of a step's time is for the swing, the foot is lifted less and the knees bend less: all joints turn slower."""
EVEN = StepStyle(0.5, 0.35, 2.0, SwingShape(0.0, 0.97, ramps=(0.25, 0.35)), 0.009)
"""The foot goes ahead at one speed, for joints that have none to spare; hips hold more torque for it."""


class Pace(NamedTuple):
    """Time of a step [s], and how it is made."""

    time: float
    style: StepStyle = CALM


@dataclass(frozen=True)
class Footstep:
    """One step: which foot, where its sole comes down, and how long it takes.

    Attributes:
        foot: 0 the left one, 1 the right one. X: pose of its sole frame in the world after the step.
        swing: time in the air [s]. double: time on both feet afterwards [s].
        lift: height at mid-swing above the higher end [m].
        limited: the step or the speed that was asked for was not possible, this one is shorter. style: how it is made.
    """

    foot: int
    X: pin.SE3
    swing: float
    double: float
    lift: float
    limited: bool = False
    style: StepStyle = CALM


@dataclass(frozen=True)
class StepLimits:
    """What the legs can do: bounds of a step. `step_limits.step_limits_of` computes them from a robot.

    The pose of a foot against the other one must lie in an ellipsoid: `forward` or `backward`, `spread` beyond the
    neutral width, `turn_out` or `turn_in`. At a step time below `nominal` all shrink evenly down to `quick` of
    them at `shortest`, because the joints have their speeds.

    Attributes:
        forward, backward, sideways: greatest displacement of the middle of the feet in one step [m].
        turn_out, turn_in: greatest yaw of a foot against the other, away from it and toward it [rad].
        quick: shares of `forward`, `backward`, `sideways` and the turns in a step of the time `shortest`.
        nominal, shortest: times of a step [s].
        change: (3,) greatest change from one step to the next of 0.8 s: forward, sideways [m], turn [rad].
        width: neutral distance of the soles [m]. gap: least distance of their middle lines [m].
        rise: greatest difference of height between both soles [m]. lift: of a swing, at most [m].
        outlines: of both soles, (4, 2) corners each in the frame of the sole, counter-clockwise [m].
        clearance: that the outlines keep from each other [m].
        style: of the steps. faster: limits of steps of other styles, for speeds that these do not reach.
    """

    forward: float = 0.4
    backward: float = 0.3
    sideways: float = 0.15
    turn_out: float = 0.35
    turn_in: float = 0.2
    quick: tuple[float, float, float, float] = (1.0, 1.0, 1.0, 1.0)
    nominal: float = 0.8
    shortest: float = 0.5
    change: tuple[float, float, float] = (0.15, 0.10, 0.15)
    width: float = 0.2
    gap: float = 0.15
    rise: float = 0.2
    lift: float = 0.1
    outlines: tuple[np.ndarray, np.ndarray] | None = None
    clearance: float = 0.02
    style: StepStyle = CALM
    faster: tuple[StepLimits, ...] = ()

    def of(self, style: StepStyle) -> StepLimits:
        """The limits of steps of a style; where there are none, these."""
        return next((x for x in self.faster if x.style is style), self)

    @property
    def spread(self) -> float:
        """How far beyond the neutral width the soles are apart after the greatest step sideways [m]."""
        return self.spread_of(self.sideways)

    def spread_of(self, sideways: float) -> float:
        """How far beyond the neutral width the soles are apart after a step sideways [m], the feet having opened."""
        return max(0.0, self.gap + sideways - self.width) + sideways

    @property
    def possible(self) -> np.ndarray:
        """Directions (3,) in which the legs can step at all: forward or back, sideways, turning."""
        greatest = (max(self.forward, self.backward), self.sideways, max(self.turn_out, self.turn_in))
        return np.array([x > LEAST for x in greatest])

    def most(self, d: np.ndarray, T: float, out: bool) -> np.ndarray:
        """Greatest displacement (3,) of a step in the direction of d (3,).

        Args:
            d: forward, sideways [m], turn [rad]. T: time of the step [s]. out: the foot turns away from the other.
        """
        s = 1.0 if self.nominal <= T else max(T - self.shortest, 0.0) / (self.nominal - self.shortest)
        back = d[0] < 0
        share = [s + (1 - s) * self.quick[k] for k in (1 if back else 0, 2, 3)]
        if self.shortest > T:
            share = [x * T / self.shortest for x in share]
        turn = self.turn_out if out else self.turn_in
        return np.maximum(np.array([self.backward if back else self.forward, self.sideways, turn]) * share, LEAST)

    def beside(self, turn: float) -> float:
        """How far aside a foot that turns against the other is clear of it, wherever it is ahead or behind [m]."""
        if self.outlines is None:
            return self.gap
        R = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
        left, right = self.outlines  # either may be the one that turns, the left to the left and the right to the right
        a = float(left[:, 1].max() - (right @ R)[:, 1].min())
        b = float((left @ R.T)[:, 1].max() - right[:, 1].min())
        return max(self.gap, a + self.clearance, b + self.clearance)

    def half_width(self, d: np.ndarray) -> float:
        """Half the distance of the soles for steps by d (3,), so that the foot that closes stays clear [m]."""
        aside = abs(float(planar_exp(d).translation[1]))
        return max(0.5 * self.width, (self.beside(abs(d[2])) + aside) / (1 + np.cos(d[2])))

    def refusal(self, step: Footstep, X_stance: pin.SE3, X_from: pin.SE3 | None = None) -> str:
        """Why a step is not possible; empty where it is.

        Args:
            step: which. X_stance: pose of the other sole. X_from: of the sole that steps, before; None: not looked at.
        """
        side = 1.0 if step.foot == 0 else -1.0
        X = X_stance.actInv(step.X)
        if not (np.isfinite(step.X.homogeneous).all() and np.isfinite([step.swing, step.double, step.lift]).all()):
            return "its pose or its times are not finite"
        if step.swing < 0.2 or not 0.02 <= step.double < 10 or step.swing > 10 or not 0 <= step.lift < 1:
            return f"it cannot take {step.swing:.2f} + {step.double:.2f} s with a lift of {step.lift:.2f} m"
        X_up = X.rotation[2, 2]
        if X_up < np.cos(np.radians(30.0)):
            return f"the sole would be tilted by {np.degrees(np.arccos(np.clip(X_up, -1, 1))):.0f} deg"
        why = self._pose_refusal(X, side, Pace(step.swing + step.double, step.style))
        if why or X_from is None:
            return why
        start = X_stance.actInv(X_from)
        for u in PASSING:
            p, turn = (1 - u) * start.translation + u * X.translation, u * yaw_of(X) + (1 - u) * yaw_of(start)
            if self._near(pin.SE3(pin.exp3(np.array([0, 0, turn])), p), side):
                return "the feet would come too near while they pass"
        return ""

    def _pose_refusal(self, X: pin.SE3, side: float, pace: Pace) -> str:
        """Why a foot cannot stand there against the other."""
        (T, style), (x, y, z) = pace, X.translation
        yaw = yaw_of(X)
        if side * y < self.gap - EXACT:
            return f"the feet would come nearer than {self.gap:.3f} m or cross"
        if self._near(X, side):
            return f"the soles would come nearer than {self.clearance:.3f} m"
        if abs(z) > self.rise + 1e-9:
            return f"{z:+.2f} m is too high or too low for the legs"
        out = side * yaw > 0
        most = self.of(style).most(np.array([x, y, yaw]), T, out)
        if abs(yaw) > most[2] + 1e-9:
            can = np.degrees(most[2])
            return f"a foot would turn by {np.degrees(yaw):.0f} deg against the other, {can:.0f} are possible"
        neutral = max(0.5 * self.width * (1 + np.cos(yaw)), self.beside(abs(yaw)))
        excess = max(0.0, side * y - neutral)
        x += side * neutral / (1 + np.cos(yaw)) * np.sin(yaw)  # of the middle of the feet, not of the foot
        share = (x / most[0]) ** 2 + (excess / self.spread_of(most[1])) ** 2 + (yaw / most[2]) ** 2
        if share > 1 + SHARE_EXACT:
            turn = np.degrees(yaw)
            return f"{x:+.2f} m ahead, {excess:.2f} m aside, {turn:.0f} deg in {T:.2f} s are too far for the legs"
        return ""

    def _near(self, X: pin.SE3, side: float) -> bool:
        """Whether the outlines come nearer than the clearance, with the one foot at X in the frame of the other."""
        yaw = yaw_of(X)
        if self.outlines is None or side * X.translation[1] >= max(self.beside(yaw), self.beside(-yaw)):
            return False
        swing, stance = self.outlines if side > 0 else self.outlines[::-1]
        moved = swing @ X.rotation[:2, :2].T + X.translation[:2]
        return polygon_distance(moved, stance) < self.clearance - 1e-9


@dataclass(frozen=True)
class StepTimes:
    """Times of a step.

    Attributes:
        nominal: time of a step up to the displacement `comfortable`, on soles of WIDE or wider [s].
        shortest: least time of a step [s].
        double_support: share of it on both feet. comfortable: displacement beyond which steps get quicker [m].
        lift: of the swing foot [m].
    """

    nominal: float = 0.8
    shortest: float = 0.5
    double_support: float = 0.2
    comfortable: float = 0.4
    lift: float = 0.06

    def __post_init__(self) -> None:
        if not 0 < self.shortest <= self.nominal < 10:
            raise ConfigError(f"step times must be 0 < shortest <= nominal, got {self.shortest:g}, {self.nominal:g} s")
        if not 0.05 <= self.double_support <= 0.6:
            raise ConfigError(f"double_support must lie in 0.05..0.6, got {self.double_support:g}")

    def on(self, width: float) -> StepTimes:
        """The times for soles of a width [m]: sway grows by the square of the time, narrow soles hold less of it."""
        quicker = min(1.0, float(np.sqrt(width / WIDE)))
        return replace(self, nominal=max(quicker * self.nominal, self.shortest))

    def of_speed(self, speed: float, effort: float = 0.0) -> float:
        """Time of a step [s]: the nominal one while steps are comfortable, then quicker ones.

        Args:
            speed: [m/s]. effort: the displacement in a step of the nominal time, as a share of the greatest.
        """
        return max(self.nominal / max(1.0, effort, speed * self.nominal / self.comfortable), self.shortest)
