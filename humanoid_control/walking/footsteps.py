"""Footstep planning from a velocity, from a list, or toward a goal pose."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pinocchio as pin

from humanoid_control.errors import ConfigError
from humanoid_control.numerics.bisection import bisect
from humanoid_control.walking.ground.terrain import Terrain
from humanoid_control.walking.plane_geometry import (
    arc_of,
    at_height_of,
    middle_of,
    planar,
    planar_exp,
    yaw_of,
)
from humanoid_control.walking.planning.step import CALM, LEAST, Footstep, Pace, StepLimits, StepStyle, StepTimes

HALVINGS = 12  # of the bisection that shortens a step out of reach
MOST_STEPS = 1000  # in a list
CHANGE_TIME = 0.8  # [s] step time for which `StepLimits.change` is specified
STAY = 1e-6  # velocity or displacement treated as zero
SHIFT, SHIFTS = 0.005, 36  # [m] increment, and number of increments, of a foothold shift to good ground
SLOWER = 1.05  # effort relative to the leg limits that still counts as feasible
TIMES = 5  # number of step times compared
INSIDE = 6  # shifts by which a foothold keeps extra distance from an edge
NEAR, NEARLY = 0.015, 0.03  # [m], [rad] accepted final error of a footstep list to a goal
RETRIES = 3  # extensions of a list that ends away from its goal
EDGE_ROOM = 0.015  # [m] extra distance of a foothold from an edge, where possible


class VelocityPlanner:
    """Footsteps that follow a velocity; a list of footsteps has priority.

    Attributes:
        command: (3,) forward, left, turn [m/s, m/s, rad/s]; ignored while a list is active.
        queue: unfinished footsteps of the list, including the step in the air.
        goal: goal pose of the list, which is extended if it ends elsewhere; None: no goal.
    """

    def __init__(self, limits: StepLimits, times: StepTimes, terrain: Terrain | None = None) -> None:
        self.limits, self.times, self.terrain = limits, times, terrain
        self.command, self.queue = np.zeros(3), list[Footstep]()
        self._handed: Footstep | None = None  # first step of the queue that was returned: it is in execution or will be
        self.goal: pin.SE3 | None = None
        self._retries = 0

    @property
    def moving(self) -> bool:
        """Whether a list or a velocity is active."""
        return bool(self.queue) or bool(np.abs(self.command).max() > STAY)

    @property
    def first_foot(self) -> int:
        """Foot of the first step: of the list, or on the side of the motion."""
        if self.queue:
            return self.queue[0].foot
        return 0 if self.command[1] > 0 or self.command[2] > 0 else 1

    def next_steps(self, stance: Footstep, before: np.ndarray, count: int) -> tuple[list[Footstep], np.ndarray]:
        """Return the coming steps, beginning with the swing foot.

        Args:
            before: (3,) displacement of the previous step: forward, sideways [m], turn [rad].

        Returns:
            The steps, and the displacement (3,) of the first.
        """
        if self.queue and self.queue[0] is self._handed and self.queue[0].foot == stance.foot:
            self.queue.pop(0)
        out: list[Footstep] = []
        begin, first, d = stance, np.zeros(3), np.asarray(before, dtype=float)
        listed = self.queue if not self.queue or self.queue[0].foot != stance.foot else []
        self._handed = listed[0] if listed else None
        for k in range(count):
            if k < len(listed):
                step = self._in_reach(listed[k], stance)
                d = self._displacement_of(step, stance.X) if k + 1 < len(listed) else np.zeros(3)
            else:
                wanted, pace = self._displacement(d, 1 - stance.foot)
                step, d = self._step(stance, wanted, pace)
                effort = _effort(self.limits.of(pace.style), self._possible(self.command), pace.time)
                unmade = bool((self._possible(self.command) != self.command).any())
                if (effort > SLOWER or unmade) and not self.queue:
                    step = replace(step, limited=True)
            first = d if k == 0 else first
            out.append(step)
            stance = step
        if self.goal is not None and len(listed) == 1:
            self._extend(begin, out[0])
        return out, first

    def _extend(self, stance: Footstep, last: Footstep) -> None:
        """Extend a list that ends away from its goal, after slip or shortened steps."""
        assert self.goal is not None
        feet = (stance.X, last.X) if stance.foot == 0 else (last.X, stance.X)
        left = middle_of(feet).actInv(planar(self.goal))
        near = float(np.hypot(*left.translation[:2])) < NEAR and abs(yaw_of(left)) < NEARLY
        if near or not self._retries:
            return
        self._retries -= 1
        with contextlib.suppress(ConfigError):
            self.queue += self.walk_to(self.goal, feet, last.foot)

    def closing_steps(self, stance: Footstep, count: int) -> list[Footstep]:
        """Return steps next to the stance foot, beginning with the other foot."""
        out: list[Footstep] = []
        for _ in range(count):
            stance = self.make(stance, np.zeros(3), self.times.nominal)
            out.append(stance)
        return out

    # -- velocity -----------------------------------------------------------------------------------------------

    def _displacement(self, before: np.ndarray, foot: int) -> tuple[np.ndarray, Pace]:
        """Return the next displacement (3,), within the limits, and its pace."""
        command = np.zeros(3) if self.queue else self._possible(self.command)
        out = (command[2] > 0) == (foot == 0)
        m, T = self._pace(command, before)
        most = m.most(command, T, out)
        d = command * T / max(1.0, _effort(m, command, T))
        # A foot turns less inward than outward: the outer foot compensates the inner one.
        other = float(m.most(command, T, not out)[2])
        d[2] = np.sign(d[2]) * min(abs(d[2]) + max(abs(d[2]) - other, 0.0), most[2])
        d /= max(1.0, float(np.sqrt(((d / most) ** 2).sum())))
        change = np.asarray(m.change) * T / CHANGE_TIME
        change[2] += abs(d[2] - np.sign(d[2]) * min(abs(d[2]), other))
        return before + np.clip(d - before, -change, change), Pace(T, m.style)

    def _possible(self, command: np.ndarray) -> np.ndarray:
        return np.where(self.limits.possible, command, 0.0)

    def _pace(self, command: np.ndarray, before: np.ndarray) -> tuple[StepLimits, float]:
        """Return limits of the calmest step style that reaches a velocity (3,), and the step time [s].

        Args:
            before: (3,) previous displacement, which bounds the return to a calmer style.
        """
        m, t = self.limits, self.times
        T = t.of_speed(float(np.hypot(command[0], command[1])), _effort(m, command, t.nominal))
        if _effort(m, command, T) > max(1.0, _effort(m, command, t.nominal)):
            T = t.nominal  # the joints are too slow: shorter steps do not increase the speed
        best, least = (m, T), max(_effort(m, command, T), _effort(m, before / T, T))
        level = self.terrain is None or self.terrain.map.as_plane() is not None
        for limits in m.faster if level else ():
            if least <= SLOWER:
                break
            efforts = {T: _effort(limits, command, T) for T in np.linspace(t.shortest, t.nominal, TIMES).tolist()}
            T = min(efforts, key=lambda T: (round(efforts[T], 3), -T))
            effort = max(efforts[T], _effort(limits, before / T, T))
            if effort < least:
                best, least = (limits, T), effort
        return best

    def _step(self, stance: Footstep, d: np.ndarray, pace: Pace) -> tuple[Footstep, np.ndarray]:
        step = self.make(stance, d, *pace)
        if not self.refusal(step, stance.X):
            return self._off_edges(stance, step, d, pace)
        if self.terrain is not None and not self.limits.refusal(step, stance.X):
            found = self._shifted(stance, d, pace)
            if found is not None:
                return found
        d = d * bisect(lambda s: not self.refusal(self.make(stance, s * d, *pace), stance.X), 1.0, HALVINGS)
        return replace(self.make(stance, d, *pace), limited=True), d

    def _off_edges(self, stance: Footstep, step: Footstep, d: np.ndarray, pace: Pace) -> tuple[Footstep, np.ndarray]:
        if self.terrain is None or self.terrain.map.as_plane() is not None:
            return step, d
        away = np.array([EDGE_ROOM, 0.0, 0.0])
        ahead, back = (self.make(stance, d + s * away, *pace) for s in (1, -1))
        good = [not self.terrain.foothold(s.X, s.foot).why for s in (ahead, back)]
        if good[0] == good[1]:
            return step, d
        other, way = (ahead, d + away) if good[0] else (back, d - away)
        return (step, d) if self.refusal(other, stance.X) else (other, way)

    def _shifted(self, stance: Footstep, d: np.ndarray, pace: Pace) -> tuple[Footstep, np.ndarray] | None:
        def moved(k: int) -> tuple[Footstep, np.ndarray, bool]:
            away = d + [k * SHIFT, 0.0, 0.0]
            step = self.make(stance, away, *pace)
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
        """Return why legs or ground forbid a step; empty if possible."""
        why = self.limits.refusal(step, X_stance)
        return why or ("" if self.terrain is None else self.terrain.foothold(step.X, step.foot).why)

    def placed(self, X: pin.SE3, foot: int) -> pin.SE3:
        """Return the sole pose on the known ground, or unchanged."""
        return X if self.terrain is None else self.terrain.foothold(X, foot).X

    def make(self, stance: Footstep, d: np.ndarray, T: float, style: StepStyle = CALM) -> Footstep:
        """Return the step by a displacement d (3,) in a time T [s], without checks."""
        side = 1.0 if stance.foot == 1 else -1.0  # side of the swing foot
        half = self.limits.half_width(d)
        start = stance.X if self.terrain is None else planar(stance.X)
        middle = start * pin.SE3(np.eye(3), np.array([0.0, side * half, 0.0]))
        X = middle * planar_exp(d) * pin.SE3(np.eye(3), np.array([0.0, side * half, 0.0]))
        X = self.placed(X, 1 - stance.foot)
        t = self.times
        lift, both = min(t.lift, self.limits.of(style).lift), style.double_support * t.double_support
        return Footstep(1 - stance.foot, X, (1 - both) * T, both * T, lift, style=style)

    def _in_reach(self, step: Footstep, stance: Footstep) -> Footstep:
        if not self.limits.refusal(step, stance.X):
            return step
        beside = self.make(stance, np.zeros(3), self.times.nominal).X
        away = planar(beside).actInv(planar(step.X))
        way = np.array([*away.translation[:2], yaw_of(away)])

        def part(share: float) -> Footstep:
            X = beside * pin.SE3(pin.exp3(np.array([0.0, 0.0, share * way[2]])), share * np.array([*way[:2], 0.0]))
            return replace(step, X=self.placed(X, step.foot), limited=True)

        return part(bisect(lambda s: not self.limits.refusal(part(s), stance.X), 1.0, HALVINGS))

    def _displacement_of(self, step: Footstep, X_stance: pin.SE3) -> np.ndarray:
        X = X_stance.actInv(step.X)
        side = 1.0 if step.foot == 0 else -1.0
        return np.array([X.translation[0], X.translation[1] - side * self.limits.width, yaw_of(X)])

    # -- lists --------------------------------------------------------------------------------------------------

    def follow(
        self, steps: Sequence[Footstep], feet: Sequence[pin.SE3], swinging: int | None = None, append: bool = False
    ) -> None:
        """Set the list of footsteps, accepted or rejected as a whole; the robot then stands.

        Args:
            feet: sole poses after the step in the air, if any.
            swinging: swing foot; its step is always finished.
            append: else replace steps that have not begun.

        Raises:
            ConfigError: if a step is not possible, with its index and the reason.
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
        self.command, self.goal = np.zeros(3), None

    def clear(self) -> None:
        """Discard the list except the step that was already returned."""
        self.queue = [s for s in self.queue[:1] if s is self._handed]
        self.goal = None

    def arrives(self) -> bool:
        """Return whether the last returned step reaches the goal; if so, end the list."""
        if self.goal is None or len(self.queue) != 1 or self.queue[0] is not self._handed:
            return False
        self.queue, self.goal, self._handed = [], None, None
        return True

    def aim(self, X_goal: pin.SE3) -> None:
        """Set the goal of the list."""
        self.goal, self._retries = X_goal.copy(), RETRIES

    def walk_to(self, X_goal: pin.SE3, feet: Sequence[pin.SE3], swinging: int | None = None) -> list[Footstep]:
        """Return footsteps to a pose of the middle of the feet, ending side by side.

        Far from the goal, the robot turns toward it and walks an arc; near it, it steps in any direction.

        Args:
            X_goal: only position and heading count; other arguments as in `follow`.

        Raises:
            ConfigError: if the goal is too far, not finite, or needs a turn that the legs cannot make.
        """
        if not np.isfinite(X_goal.homogeneous).all():
            raise ConfigError("the goal pose is not finite")
        goal = planar(X_goal)
        offset = [0.0, 0.5 * self.limits.width]
        ends = [goal * pin.SE3(np.eye(3), np.array([0.0, s * offset[1], 0.0])) for s in (1.0, -1.0)]
        turn = yaw_of(middle_of(feet).actInv(goal))
        if not self.limits.possible[2] and abs(turn) > LEAST:
            raise ConfigError(f"the goal pose is rotated by {np.degrees(turn):.0f} deg: the legs cannot turn")
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
        raise ConfigError(f"the goal pose is {far:.1f} m away: more than {MOST_STEPS} footsteps")

    def _velocity_to(self, goal: pin.SE3, feet: Sequence[pin.SE3]) -> np.ndarray:
        m, T = self.limits, self.times.nominal
        X = middle_of(feet).actInv(goal)
        x, y = X.translation[:2]
        far, bearing, turn = float(np.hypot(x, y)), float(np.arctan2(y, x)), yaw_of(X)
        if far > 2.5 * m.forward and m.possible[2]:
            if abs(bearing) > 0.6:
                return np.array([0.0, 0.0, np.sign(bearing) * max(m.turn_out, m.turn_in) / T])
            slow = max(0.2, 1.0 - abs(bearing))
            return np.array([slow * min(m.forward, 0.5 * far), 0.0, bearing]) / T
        # Near the goal: the longest component sets the number of steps; all components advance evenly along an arc.
        left = np.array([x, y, turn])
        left[:2] = arc_of(left)
        return 0.5 * left / T


def _effort(limits: StepLimits, velocity: np.ndarray, T: float) -> float:
    """Return the displacement of a velocity (3,) in time T over the greatest one; turns average both feet."""
    a, b = limits.most(velocity, T, True).tolist(), limits.most(velocity, T, False).tolist()
    return math.hypot(*(v * T / (0.5 * (x + y)) for v, x, y in zip(velocity.tolist(), a, b, strict=True)))


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
    """Reject a list of footsteps with an impossible step.

    Args:
        feet: initial poses of both soles.

    Raises:
        ConfigError: if a step is not possible, with its index and the reason.
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
