"""Footsteps: where and when the feet stand next, from a velocity, from a list, or on the way to a goal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pinocchio as pin

from humanoid_control.errors import ConfigError
from humanoid_control.walking.ground.terrain import Terrain
from humanoid_control.walking.plane_geometry import (
    arc_of,
    at_height_of,
    middle_of,
    planar,
    planar_exp,
    polygon_distance,
    yaw_of,
)

HALVINGS = 12  # of a step that is out of reach
MOST_STEPS = 1000  # in a list
CHANGE_TIME = 0.8  # time of the step that `StepLimits.change` is meant for [s]
PASSING = (0.25, 0.5, 0.75)  # shares of a swing at which the feet are looked at
LEAST = 1e-4  # size of a step: a robot too slow to step at some time has steps as small as this [m, rad]
STAY = 1e-6  # of a velocity, or of a displacement: none
SHIFT, SHIFTS = 0.005, 36  # [m] by which a foothold is moved ahead or back until the ground is good, and how often
INSIDE = 6  # of these shifts by which a foothold keeps farther off an edge than it must
EDGE_ROOM = 0.015  # [m] that a foothold keeps farther off an edge than it must, where it can


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

    @property
    def spread(self) -> float:
        """How far beyond the neutral width the soles are apart after the greatest step sideways [m]."""
        return self.spread_of(self.sideways)

    def spread_of(self, sideways: float) -> float:
        """How far beyond the neutral width the soles are apart after a step sideways [m], the feet having opened."""
        return max(0.0, self.gap + sideways - self.width) + sideways

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
        why = self._pose_refusal(X, side, step.swing + step.double)
        if why or X_from is None:
            return why
        start = X_stance.actInv(X_from)
        for u in PASSING:
            p, turn = (1 - u) * start.translation + u * X.translation, u * yaw_of(X) + (1 - u) * yaw_of(start)
            if self._near(pin.SE3(pin.exp3(np.array([0, 0, turn])), p), side):
                return "the feet would come too near while they pass"
        return ""

    def _pose_refusal(self, X: pin.SE3, side: float, T: float) -> str:
        """Why a foot cannot stand there against the other."""
        x, y, z = X.translation
        yaw = yaw_of(X)
        if side * y < self.gap - 1e-9:
            return f"the feet would come nearer than {self.gap:.3f} m or cross"
        if self._near(X, side):
            return f"the soles would come nearer than {self.clearance:.3f} m"
        if abs(z) > self.rise + 1e-9:
            return f"{z:+.2f} m is too high or too low for the legs"
        out = side * yaw > 0
        most = self.most(np.array([x, y, yaw]), T, out)
        if abs(yaw) > most[2] + 1e-9:
            can = np.degrees(most[2])
            return f"a foot would turn by {np.degrees(yaw):.0f} deg against the other, {can:.0f} are possible"
        neutral = max(0.5 * self.width * (1 + np.cos(yaw)), self.beside(abs(yaw)))
        excess = max(0.0, side * y - neutral)
        x += side * neutral / (1 + np.cos(yaw)) * np.sin(yaw)  # of the middle of the feet, not of the foot
        share = (x / most[0]) ** 2 + (excess / self.spread_of(most[1])) ** 2 + (yaw / most[2]) ** 2
        if share > 1 + 1e-9:
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
            raise ConfigError(f"step times must be 0 < shortest <= nominal, got {self.shortest:g}, {self.nominal:g} s")
        if not 0.05 <= self.double_support <= 0.6:
            raise ConfigError(f"double_support must lie in 0.05..0.6, got {self.double_support:g}")

    def of_speed(self, speed: float, effort: float = 0.0) -> float:
        """Time of a step [s]: the nominal one while steps are comfortable, then quicker ones.

        Args:
            speed: [m/s]. effort: the displacement in a step of the nominal time, as a share of the greatest.
        """
        return max(self.nominal / max(1.0, effort, speed * self.nominal / self.comfortable), self.shortest)


class VelocityPlanner:
    """Footsteps that follow a velocity: forward, to the left, and turning. A list of footsteps goes before it.

    Attributes:
        limits, times: of the steps.
        command: (3,) velocity that is asked for [m/s, m/s, rad/s]; not used while there is a list.
        queue: footsteps of the list that have not been made, the one in the air among them.
        terrain: the ground, where it is known; else it is the plane through the foot that stands.
    """

    def __init__(self, limits: StepLimits, times: StepTimes, terrain: Terrain | None = None) -> None:
        """Make a planner that stands still."""
        self.limits, self.times, self.terrain = limits, times, terrain
        self.command, self.queue = np.zeros(3), list[Footstep]()
        self._handed: Footstep | None = None  # the step of the queue that was given out first: it is, or will be, made

    @property
    def moving(self) -> bool:
        """Whether there is something to walk for."""
        return bool(self.queue) or bool(np.abs(self.command).max() > STAY)

    @property
    def first_foot(self) -> int:
        """The foot that begins: of the list, or the one on the side to go to."""
        if self.queue:
            return self.queue[0].foot
        return 0 if self.command[1] > 0 or self.command[2] > 0 else 1

    def next_steps(self, stance: Footstep, before: np.ndarray, count: int) -> tuple[list[Footstep], np.ndarray]:
        """The coming steps, the first with the foot that does not stand.

        Args:
            stance: the foot that stands, and where.
            before: (3,) displacement of the step before: forward, sideways [m], turn [rad].
            count: of steps.

        Returns:
            The steps, and the displacement (3,) of the first of them.
        """
        if self.queue and self.queue[0] is self._handed and self.queue[0].foot == stance.foot:
            self.queue.pop(0)
        out: list[Footstep] = []
        first, d = np.zeros(3), np.asarray(before, dtype=float)
        listed = self.queue if not self.queue or self.queue[0].foot != stance.foot else []
        self._handed = listed[0] if listed else None
        for k in range(count):
            if k < len(listed):
                step = listed[k]
                d = self._displacement_of(step, stance.X) if k + 1 < len(listed) else np.zeros(3)
            else:
                wanted, duration = self._displacement(d, 1 - stance.foot)
                step, d = self._step(stance, wanted, duration)
            first = d if k == 0 else first
            out.append(step)
            stance = step
        return out, first

    def closing_steps(self, stance: Footstep, count: int) -> list[Footstep]:
        """Steps beside the foot that stands, the first with the other one."""
        out: list[Footstep] = []
        for _ in range(count):
            stance = self.make(stance, np.zeros(3), self.times.nominal)
            out.append(stance)
        return out

    # -- velocity -----------------------------------------------------------------------------------------------

    def _displacement(self, before: np.ndarray, foot: int) -> tuple[np.ndarray, float]:
        """Displacement (3,) of the coming step within the limits and near the last one, and its time [s]."""
        m, t = self.limits, self.times
        command = np.zeros(3) if self.queue else self.command
        out = (command[2] > 0) == (foot == 0)

        def effort(T: float) -> float:
            """The displacement asked for, as a share of the greatest in steps of a time; turns as in two steps."""
            a, b = m.most(command, T, True), m.most(command, T, False)
            return float(np.sqrt(((command * T / (0.5 * (a + b))) ** 2).sum()))

        T = t.of_speed(float(np.hypot(command[0], command[1])), effort(t.nominal))
        if effort(T) > max(1.0, effort(t.nominal)):  # its joints are too slow for quicker steps to lead farther
            T = t.nominal
        most = m.most(command, T, out)
        d = command * T / max(1.0, effort(T))
        # A foot turns less toward the other than away from it: the one makes up for what the other cannot.
        other = float(m.most(command, T, not out)[2])
        d[2] = np.sign(d[2]) * min(abs(d[2]) + max(abs(d[2]) - other, 0.0), most[2])
        d /= max(1.0, float(np.sqrt(((d / most) ** 2).sum())))
        change = np.asarray(m.change) * T / CHANGE_TIME
        change[2] += abs(d[2] - np.sign(d[2]) * min(abs(d[2]), other))
        return before + np.clip(d - before, -change, change), T

    def _step(self, stance: Footstep, d: np.ndarray, T: float) -> tuple[Footstep, np.ndarray]:
        """The step by a displacement, or by as much of it as is in reach; on bad ground by a little more or less."""
        step = self.make(stance, d, T)
        if not self.refusal(step, stance.X):
            return self._off_edges(stance, step, d, T)
        if self.terrain is not None and not self.limits.refusal(step, stance.X):
            found = self._shifted(stance, d, T)
            if found is not None:
                return found
        low, high = 0.0, 1.0
        for _ in range(HALVINGS):
            s = 0.5 * (low + high)
            if self.refusal(self.make(stance, s * d, T), stance.X):
                high = s
            else:
                low = s
        return replace(self.make(stance, low * d, T), limited=True), low * d

    def _off_edges(self, stance: Footstep, step: Footstep, d: np.ndarray, T: float) -> tuple[Footstep, np.ndarray]:
        """The step, moved a little away from where bad ground begins in front of it or behind it."""
        if self.terrain is None or self.terrain.map.as_plane() is not None:
            return step, d
        away = np.array([EDGE_ROOM, 0.0, 0.0])
        ahead, back = (self.make(stance, d + s * away, T) for s in (1, -1))
        good = [not self.terrain.foothold(s.X, s.foot).why for s in (ahead, back)]
        if good[0] == good[1]:
            return step, d
        other, way = (ahead, d + away) if good[0] else (back, d - away)
        return (step, d) if self.refusal(other, stance.X) else (other, way)

    def _shifted(self, stance: Footstep, d: np.ndarray, T: float) -> tuple[Footstep, np.ndarray] | None:
        """The step a little longer or shorter, so that the ground is good; not just at an edge."""

        def moved(k: int) -> tuple[Footstep, np.ndarray, bool]:
            away = d + [k * SHIFT, 0.0, 0.0]
            step = self.make(stance, away, T)
            return replace(step, limited=True), away, not self.refusal(step, stance.X)

        for k in range(1, SHIFTS + 1):
            for side in (-1, 1):
                if moved(side * k)[2]:
                    room = 0
                    while room < 2 * INSIDE and moved(side * (k + room + 1))[2]:
                        room += 1
                    return moved(side * (k + room // 2))[:2]
        return None

    def refusal(self, step: Footstep, X_stance: pin.SE3) -> str:
        """Why a step is not possible, by the legs or by the ground; empty where it is."""
        why = self.limits.refusal(step, X_stance)
        return why or ("" if self.terrain is None else self.terrain.foothold(step.X, step.foot).why)

    def placed(self, X: pin.SE3, foot: int) -> pin.SE3:
        """The pose of a sole on the ground where it is known, else as it is."""
        return X if self.terrain is None else self.terrain.foothold(X, foot).X

    def make(self, stance: Footstep, d: np.ndarray, T: float) -> Footstep:
        """The step by a displacement d (3,) in a time T [s], possible or not."""
        side = 1.0 if stance.foot == 1 else -1.0  # of the foot that swings
        half = self.limits.half_width(d)
        start = stance.X if self.terrain is None else planar(stance.X)
        middle = start * pin.SE3(np.eye(3), np.array([0.0, side * half, 0.0]))
        X = middle * planar_exp(d) * pin.SE3(np.eye(3), np.array([0.0, side * half, 0.0]))
        X = self.placed(X, 1 - stance.foot)
        t = self.times
        lift = min(t.lift, self.limits.lift)
        return Footstep(1 - stance.foot, X, (1 - t.double_support) * T, t.double_support * T, lift)

    def _displacement_of(self, step: Footstep, X_stance: pin.SE3) -> np.ndarray:
        """Displacement (3,) that a step of a list makes, as if its feet were apart by the neutral width."""
        X = X_stance.actInv(step.X)
        side = 1.0 if step.foot == 0 else -1.0
        return np.array([X.translation[0], X.translation[1] - side * self.limits.width, yaw_of(X)])

    # -- lists --------------------------------------------------------------------------------------------------

    def follow(
        self, steps: Sequence[Footstep], feet: Sequence[pin.SE3], swinging: int | None = None, append: bool = False
    ) -> None:
        """Make these footsteps, then stand. The whole list is taken, or none of it.

        Args:
            steps: in their order.
            feet: poses of both soles, after the step in the air if there is one.
            swinging: the foot in the air; its step is made in any case.
            append: after those of the last list; else in place of those that have not begun.

        Raises:
            ConfigError: with the index of the first bad step, and why.
        """
        begun = [s for s in self.queue[:1] if s is self._handed and s.foot == swinging]
        kept = self.queue if append else begun
        at, last = list(feet), swinging
        for step in kept:
            at[step.foot], last = step.X, step.foot
        if len(kept) + len(steps) > MOST_STEPS:
            raise ConfigError(f"{len(kept) + len(steps)} footsteps: at most {MOST_STEPS} are possible")
        check_list(self.limits, steps, at, last, self.terrain)
        self.queue = [*kept, *steps]
        self.command = np.zeros(3)

    def clear(self) -> None:
        """Forget the list but for the step that has been given out."""
        self.queue = [s for s in self.queue[:1] if s is self._handed]

    def walk_to(self, X_goal: pin.SE3, feet: Sequence[pin.SE3], swinging: int | None = None) -> list[Footstep]:
        """Footsteps to a pose of the middle of the feet, on which both feet end beside each other.

        Far from it the robot turns to it and walks there in an arc; near it, it steps in any direction.

        Args:
            X_goal: only its place and heading count. feet, swinging: as of `follow`, which takes the result.

        Raises:
            ConfigError: it is too far away, or not finite.
        """
        if not np.isfinite(X_goal.homogeneous).all():
            raise ConfigError("the pose to walk to is not finite")
        goal = planar(X_goal)
        offset = [0.0, 0.5 * self.limits.width]
        ends = [goal * pin.SE3(np.eye(3), np.array([0.0, s * offset[1], 0.0])) for s in (1.0, -1.0)]
        far = float(np.hypot(*(goal.translation - 0.5 * (feet[0].translation + feet[1].translation))[:2]))
        scout = VelocityPlanner(self.limits, self.times, self.terrain)
        at, d, out = list(feet), np.zeros(3), list[Footstep]()
        foot = 1 - swinging if swinging is not None else _foot_toward(goal, feet)
        while len(out) < MOST_STEPS:
            nominal = self.make(Footstep(1 - foot, at[1 - foot], 0.0, 0.0, 0.0), np.zeros(3), self.times.nominal)
            close = replace(nominal, X=self.placed(at_height_of(ends[foot], at[foot]), foot))
            other = at[1 - foot]
            if not self.limits.refusal(close, other, at[foot]):
                last = replace(close, foot=1 - foot, X=self.placed(at_height_of(ends[1 - foot], other), 1 - foot))
                if not self.limits.refusal(last, close.X, other):
                    return [*out, close, last]
            scout.command = self._velocity_to(goal, at)
            stance = Footstep(1 - foot, other, 0.0, 0.0, 0.0)
            steps, d = scout.next_steps(stance, d, 1)
            out.append(steps[0])
            at[foot] = steps[0].X
            foot = 1 - foot
        raise ConfigError(f"the pose to walk to is {far:.1f} m away: more than {MOST_STEPS} footsteps")

    def _velocity_to(self, goal: pin.SE3, feet: Sequence[pin.SE3]) -> np.ndarray:
        """Velocity (3,) in the frame of the middle of the feet that leads to the goal."""
        m, T = self.limits, self.times.nominal
        X = middle_of(feet).actInv(goal)
        x, y = X.translation[:2]
        far, bearing, turn = float(np.hypot(x, y)), float(np.arctan2(y, x)), yaw_of(X)
        if far > 2.5 * m.forward:
            if abs(bearing) > 0.6:
                return np.array([0.0, 0.0, np.sign(bearing) * m.turn_out / T])
            slow = max(0.2, 1.0 - abs(bearing))
            return np.array([slow * min(m.forward, 0.5 * far), 0.0, bearing]) / T
        # What is left is made in as many steps as its longest part needs, all parts evenly, along an arc.
        left = np.array([x, y, turn])
        left[:2] = arc_of(left)
        return 0.5 * left / T


def _foot_toward(goal: pin.SE3, feet: Sequence[pin.SE3]) -> int:
    X = middle_of(feet).actInv(goal)
    return 0 if X.translation[1] + 0.3 * yaw_of(X) > 0 else 1


def check_list(
    limits: StepLimits,
    steps: Sequence[Footstep],
    feet: Sequence[pin.SE3],
    last: int | None = None,
    terrain: Terrain | None = None,
) -> None:
    """Refuse a list of footsteps of which one is not possible.

    Args:
        limits: that count. steps: in their order. feet: poses of both soles before. last: the foot that stepped before.
        terrain: the ground under the steps, where it is known.

    Raises:
        ConfigError: with the index of the first bad step, and why.
    """
    if len(steps) > MOST_STEPS:
        raise ConfigError(f"{len(steps)} footsteps: at most {MOST_STEPS} are possible")
    at = list(feet)
    for k, step in enumerate(steps):
        if step.foot not in (0, 1):
            raise ConfigError(f"footstep {k}: foot must be 0 (left) or 1 (right), got {step.foot!r}")
        if step.foot == last:
            raise ConfigError(f"footstep {k}: the same foot steps twice")
        why = limits.refusal(step, at[1 - step.foot], at[step.foot])
        if not why and terrain is not None and terrain.known:
            why = terrain.refusal(step.X, step.foot)
        if why:
            raise ConfigError(f"footstep {k}: {why}")
        at[step.foot], last = step.X, step.foot
