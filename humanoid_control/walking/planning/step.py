"""Footstep, step styles and step limits."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from humanoid_control.errors import ConfigError
from humanoid_control.walking.plane_geometry import planar_exp, polygon_distance, yaw_of
from humanoid_control.walking.swing_foot import LEVEL, SwingShape

PASSING = (0.25, 0.5, 0.75)  # shares of a swing at which the foot distance is checked
LEAST = 1e-4  # [m, rad] step size of a robot too slow to step in a given time
WIDE = 0.12  # [m] sole width of an adult-size robot, which allows sway at the nominal step time
EXACT, SHARE_EXACT = 1e-3, 5e-3  # [m] tolerance of a gap, tolerance of a reach: soles on felt slopes are not level


@dataclass(frozen=True)
class StepStyle:
    """Manner of a step.

    Attributes:
        double_support: share of a calm step's double support, as `lift` and `crouch`.
        shape: swing over level ground.
        late: tolerated lag of the foot before landing [m].
    """

    double_support: float = 1.0
    lift: float = 1.0
    crouch: float = 1.0
    shape: SwingShape = LEVEL
    late: float = 0.0


CALM = StepStyle()
BRISK = StepStyle(0.5, 0.5, 0.0, SwingShape(0.0, 0.93, 0.55), 0.012)
"""Longer swing, lower lift and straighter knees: all joints turn slower."""
EVEN = StepStyle(0.5, 0.35, 2.0, SwingShape(0.0, 0.97, ramps=(0.25, 0.35)), 0.009)
"""The foot moves at constant speed, for joints without speed reserve; the hips need more torque."""


class Pace(NamedTuple):
    """Step time [s] and style."""

    time: float
    style: StepStyle = CALM


@dataclass(frozen=True)
class Footstep:
    """Step of a foot.

    Attributes:
        foot: 0 left, 1 right.
        X: sole pose in the world after the step.
        swing: time in the air [s].
        double: double support afterwards [s].
        lift: height at mid-swing above the higher end [m].
        limited: shorter than the requested step or speed.
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
    """Limits of a step; `step_limits.step_limits_of` computes them for a robot.

    The pose relative to the other foot must lie in an ellipsoid with half-axes `forward` or `backward`, `spread` beyond
    the neutral width, and `turn_out` or `turn_in`. Below the step time `nominal`, they shrink linearly to the shares
    `quick` at `shortest`.

    Attributes:
        forward: displacement of the middle of the feet [m].
        backward: likewise [m].
        sideways: likewise [m].
        turn_out: yaw away from the other foot [rad].
        turn_in: yaw toward the other foot [rad].
        quick: shares of `forward`, `backward`, `sideways` and turns at `shortest`.
        nominal: step time [s].
        shortest: step time [s].
        change: (3,) between steps of 0.8 s: forward, sideways [m], turn [rad].
        width: neutral distance of the soles [m].
        gap: least distance of the sole centre lines [m].
        rise: height difference of the soles [m].
        lift: maximum [m].
        outlines: (4, 2) sole corners in each sole frame, counter-clockwise [m].
        clearance: least distance of the foot outlines [m].
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
        """Return the limits for a style, else these."""
        return next((x for x in self.faster if x.style is style), self)

    @property
    def spread(self) -> float:
        """Extra sole distance after the greatest sideways step [m]."""
        return self.spread_of(self.sideways)

    def spread_of(self, sideways: float) -> float:
        """Return the extra sole distance after a sideways step that opens the feet [m]."""
        return max(0.0, self.gap + sideways - self.width) + sideways

    @property
    def possible(self) -> np.ndarray:
        """Possible directions (3,): forward or back, sideways, turning."""
        greatest = (max(self.forward, self.backward), self.sideways, max(self.turn_out, self.turn_in))
        return np.array([x > LEAST for x in greatest])

    def most(self, d: np.ndarray, T: float, out: bool) -> np.ndarray:
        """Return the greatest displacement (3,) of a step in the direction of d (3,).

        Args:
            d: forward, sideways [m], turn [rad].
            T: step time [s].
            out: whether the foot turns outward.
        """
        s = 1.0 if self.nominal <= T else max(T - self.shortest, 0.0) / (self.nominal - self.shortest)
        back = d[0] < 0
        share = [s + (1 - s) * self.quick[k] for k in (1 if back else 0, 2, 3)]
        if self.shortest > T:
            share = [x * T / self.shortest for x in share]
        turn = self.turn_out if out else self.turn_in
        return np.maximum(np.array([self.backward if back else self.forward, self.sideways, turn]) * share, LEAST)

    def beside(self, turn: float) -> float:
        """Return the lateral distance at which a foot turned by `turn` is clear of the other in any position [m]."""
        if self.outlines is None:
            return self.gap
        R = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
        left, right = self.outlines  # either foot may turn: the left to the left or the right to the right
        a = float(left[:, 1].max() - (right @ R)[:, 1].min())
        b = float((left @ R.T)[:, 1].max() - right[:, 1].min())
        return max(self.gap, a + self.clearance, b + self.clearance)

    def half_width(self, d: np.ndarray) -> float:
        """Return half the sole distance for steps by d (3,), so that the closing foot stays clear [m]."""
        aside = abs(float(planar_exp(d).translation[1]))
        return max(0.5 * self.width, (self.beside(abs(d[2])) + aside) / (1 + np.cos(d[2])))

    def refusal(self, step: Footstep, X_stance: pin.SE3, X_from: pin.SE3 | None = None) -> str:
        """Return why a step is not possible; empty if it is.

        Args:
            X_stance: pose of the other sole.
            X_from: initial pose of the stepping sole; None: the swing is not checked.
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
                return "the feet would pass too closely"
        return ""

    def _pose_refusal(self, X: pin.SE3, side: float, pace: Pace) -> str:
        (T, style), (x, y, z) = pace, X.translation
        yaw = yaw_of(X)
        if side * y < self.gap - EXACT:
            return f"the feet would be closer than {self.gap:.3f} m or cross"
        if self._near(X, side):
            return f"the soles would be closer than {self.clearance:.3f} m"
        if abs(z) > self.rise + 1e-9:
            return f"{z:+.2f} m is too high or too low for the legs"
        out = side * yaw > 0
        most = self.of(style).most(np.array([x, y, yaw]), T, out)
        if abs(yaw) > most[2] + 1e-9:
            can = np.degrees(most[2])
            return f"a foot would turn by {np.degrees(yaw):.0f} deg against the other, {can:.0f} are possible"
        neutral = max(0.5 * self.width * (1 + np.cos(yaw)), self.beside(abs(yaw)))
        excess = max(0.0, side * y - neutral)
        x += side * neutral / (1 + np.cos(yaw)) * np.sin(yaw)  # displacement of the middle of the feet, not of the foot
        share = (x / most[0]) ** 2 + (excess / self.spread_of(most[1])) ** 2 + (yaw / most[2]) ** 2
        if share > 1 + SHARE_EXACT:
            turn = np.degrees(yaw)
            return f"{x:+.2f} m ahead, {excess:.2f} m aside, {turn:.0f} deg in {T:.2f} s are too far for the legs"
        return ""

    def _near(self, X: pin.SE3, side: float) -> bool:
        """Return whether the outlines are too close, with one foot at X in the frame of the other."""
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
        nominal: step time up to `comfortable`, on soles of at least WIDE [s].
        shortest: least step time [s].
        double_support: share of the step time.
        comfortable: displacement above which steps become quicker [m].
        lift: height of the swing foot [m].
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
        """Return the times for a sole width [m]."""
        quicker = min(1.0, float(np.sqrt(width / WIDE)))
        return replace(self, nominal=max(quicker * self.nominal, self.shortest))

    def of_speed(self, speed: float, effort: float = 0.0) -> float:
        """Return the step time [s]: nominal for comfortable steps, shorter for faster ones.

        Args:
            speed: [m/s].
            effort: displacement at the nominal time over the greatest.
        """
        return max(self.nominal / max(1.0, effort, speed * self.nominal / self.comfortable), self.shortest)
