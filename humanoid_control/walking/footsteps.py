"""Footsteps: where and when the feet stand next, from a velocity that is asked for or from a list."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pinocchio as pin

from humanoid_control.errors import ConfigError

HALVINGS = 12  # of a step that is out of reach
Check = Callable[["Footstep", pin.SE3], str]


@dataclass(frozen=True)
class Footstep:
    """One step: which foot, where its sole comes down, and how long it takes.

    Attributes:
        foot: 0 the left one, 1 the right one. X: pose of its sole frame in the world after the step.
        swing: time in the air [s]. double: time on both feet afterwards [s].
        lift: height at mid-swing above the higher end [m].
        limited: the step that was asked for was not possible, this one is shorter.
    """

    foot: int
    X: pin.SE3
    swing: float
    double: float
    lift: float
    limited: bool = False


@dataclass(frozen=True)
class StepLimits:
    """What the legs can do: bounds of a step.

    Attributes:
        forward, backward, sideways: greatest displacement of the middle of the feet in one step [m].
        turn: greatest turn in one step [rad].
        change: (3,) greatest change from one step to the next: forward, sideways [m], turn [rad].
        width: neutral distance of the soles [m]. gap: least distance of their middle lines [m].
        reach: longest distance from a hip to a sole [m]; hips: (2, 2) x, y of both hips before the middle of the feet.
        height: of the hips above the ground while walking [m].
        turn_out, turn_in: greatest yaw of a foot against the other, away from it and toward it [rad].
    """

    forward: float = 0.5
    backward: float = 0.3
    sideways: float = 0.15
    turn: float = 0.35
    change: tuple[float, float, float] = (0.15, 0.10, 0.15)
    width: float = 0.2
    gap: float = 0.15
    reach: float = 1.0
    height: float = 0.9
    turn_out: float = 0.35
    turn_in: float = 0.2


@dataclass(frozen=True)
class StepTimes:
    """Times of a step.

    Attributes:
        nominal: time of a step up to the displacement `comfortable` [s]. shortest: least time of a step [s].
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
            raise ConfigError(
                f"times of a step must be 0 < shortest <= nominal, got {self.shortest:g}, {self.nominal:g} s"
            )
        if not 0.05 <= self.double_support <= 0.6:
            raise ConfigError(f"double_support must lie in 0.05..0.6, got {self.double_support:g}")

    def of_speed(self, speed: float) -> float:
        """Time of a step at a speed [m/s]: the nominal one while steps are comfortable, then quicker ones [s]."""
        if speed * self.nominal <= self.comfortable:
            return self.nominal
        return max(self.comfortable / speed, self.shortest)


class VelocityPlanner:
    """Footsteps that follow a velocity: forward, to the left, and turning.

    Attributes:
        limits, times: of the steps.
        command: (3,) velocity that is asked for [m/s, m/s, rad/s].
    """

    def __init__(self, limits: StepLimits, times: StepTimes) -> None:
        """Make a planner that stands still."""
        self.limits, self.times = limits, times
        self.command = np.zeros(3)

    def next_steps(self, stance: Footstep, before: np.ndarray, count: int) -> tuple[list[Footstep], np.ndarray]:
        """The coming steps, the first with the foot that does not stand.

        Args:
            stance: the foot that stands, and where.
            before: (3,) displacement of the step before: forward, sideways [m], turn [rad].
            count: of steps.

        Returns:
            The steps, and the displacement (3,) of the first of them.
        """
        out: list[Footstep] = []
        first, d = np.zeros(3), np.asarray(before, dtype=float)
        for k in range(count):
            wanted, duration = self._displacement(d)
            step, d = self._step(stance, wanted, duration)
            first = d if k == 0 else first
            out.append(step)
            stance = step
        return out, first

    def closing_steps(self, stance: Footstep, count: int) -> list[Footstep]:
        """Steps beside the foot that stands, the first with the other one."""
        out: list[Footstep] = []
        for _ in range(count):
            stance = self._make(stance, np.zeros(3), self.times.nominal)
            out.append(stance)
        return out

    def _displacement(self, before: np.ndarray) -> tuple[np.ndarray, float]:
        """Displacement (3,) of the coming step within the limits and near the last one, and its time [s]."""
        m = self.limits
        speed = float(np.hypot(self.command[0], self.command[1]))
        T = self.times.of_speed(speed)
        most = np.array([m.forward if self.command[0] >= 0 else m.backward, m.sideways, m.turn])
        d = np.clip(self.command * T, -most, most)
        d /= max(1.0, float(np.sqrt(((d / most) ** 2).sum())))
        change = np.asarray(m.change)
        return before + np.clip(d - before, -change, change), T

    def _step(self, stance: Footstep, d: np.ndarray, T: float) -> tuple[Footstep, np.ndarray]:
        """The step by a displacement, or by as much of it as is in reach."""
        step = self._make(stance, d, T)
        if not self.refusal(step, stance.X):
            return step, d
        low, high = 0.0, 1.0
        for _ in range(HALVINGS):
            s = 0.5 * (low + high)
            if self.refusal(self._make(stance, s * d, T), stance.X):
                high = s
            else:
                low = s
        return replace(self._make(stance, low * d, T), limited=True), low * d

    def _make(self, stance: Footstep, d: np.ndarray, T: float) -> Footstep:
        m, side = self.limits, 1.0 if stance.foot == 1 else -1.0  # the side of the foot that swings
        half = 0.5 * max(m.width, m.gap + abs(d[1]))
        middle = stance.X * pin.SE3(np.eye(3), np.array([0.0, side * half, 0.0]))
        X = middle * planar_exp(d) * pin.SE3(np.eye(3), np.array([0.0, side * half, 0.0]))
        t = self.times
        return Footstep(1 - stance.foot, X, (1 - t.double_support) * T, t.double_support * T, t.lift)

    def refusal(self, step: Footstep, X_stance: pin.SE3) -> str:
        """Why a step is not possible from where the other foot stands; empty where it is."""
        m = self.limits
        X = X_stance.actInv(step.X)
        side = 1.0 if step.foot == 0 else -1.0
        x, y, z = X.translation
        yaw = float(np.arctan2(X.rotation[1, 0], X.rotation[0, 0]))
        if not np.isfinite([x, y, z, yaw]).all():
            return "its pose is not finite"
        if side * y < m.gap - 1e-9:
            return f"the feet would come nearer than {m.gap:.2f} m or cross"
        out = side * yaw
        if not -m.turn_in - 1e-9 <= out <= m.turn_out + 1e-9:
            return f"a foot would turn by {np.degrees(yaw):.0f} deg against the other"
        spread = float(np.hypot(x, abs(y) - m.width))
        stretched = float(np.sqrt(max(m.reach**2 - (m.height + 0.5 * abs(z)) ** 2, 0.0)))
        if 0.5 * spread > stretched:
            return f"{spread:.2f} m is too far for the legs"
        return ""


def check_list(planner: VelocityPlanner, steps: Sequence[Footstep], feet: Sequence[pin.SE3]) -> None:
    """Refuse a list of footsteps of which one is not possible.

    Args:
        planner: whose limits count. steps: in their order. feet: poses of both soles before.

    Raises:
        ConfigError: with the index of the first bad step, and why.
    """
    at = list(feet)
    for k, step in enumerate(steps):
        if k and step.foot == steps[k - 1].foot:
            raise ConfigError(f"footstep {k}: the same foot steps twice")
        why = planner.refusal(step, at[1 - step.foot])
        if why:
            raise ConfigError(f"footstep {k}: {why}")
        at[step.foot] = step.X


def planar_exp(d: np.ndarray) -> pin.SE3:
    """The planar motion that a constant velocity makes, d (3,) forward, sideways [m], turn [rad]: along an arc."""
    x, y, a = float(d[0]), float(d[1]), float(d[2])
    s, c = (np.sin(a) / a, (1 - np.cos(a)) / a) if abs(a) > 1e-9 else (1.0, 0.5 * a)
    R = np.array([[np.cos(a), -np.sin(a), 0.0], [np.sin(a), np.cos(a), 0.0], [0.0, 0.0, 1.0]])
    return pin.SE3(R, np.array([s * x - c * y, c * x + s * y, 0.0]))
