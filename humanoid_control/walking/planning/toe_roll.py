"""Foot roll with toe joints: over the toes before lift-off, from the heel at landing.

The flat toes stay on the ground while the foot turns about their axis, heel up, from the weight transfer until a tenth
of the swing. A foot lands on its heel edge and is flat before it is loaded.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from humanoid_control.errors import ConfigError
from humanoid_control.kinematics.forward_kinematics import joint_axis
from humanoid_control.numerics.minimum_jerk import minimum_jerk
from humanoid_control.robots.robot import Robot
from humanoid_control.walking.feet import ACROSS, Feet
from humanoid_control.walking.planning.plan import Phase, WalkPlan

BEGIN = 0.35  # share of double support after which the rear foot begins to roll: it is being unloaded
ON, BACK = 0.1, 0.5  # shares of the swing at which the roll peaks and ends
PITCH = 0.6  # share of the swing at which the landing pitch begins
FLAT = 0.6  # share of double support at which the foot is flat
SHORT, LONG = 0.2, 0.6  # [m] foot travel up to which the foot stays flat, and of the full roll
LEVEL = 0.03  # [m] rise above which a foot lands flat, because stair edges are near
HEEL = 0.02  # [m] length of the loaded heel
FLAT_ENOUGH = 0.003  # [rad] angle treated as flat: a residual roll must not choose the pivot
ROLLED = 0.01  # [rad] angle above which only toes or heel carry
TURN = 0.9  # usable share of the toe range
CLOSING = 30.0  # [1/s] gain of the transition to a changed plan


@dataclass(frozen=True)
class RollSettings:
    """Roll angles of long steps.

    Attributes:
        off: greatest angle before lift-off, heel up [rad].
        strike: angle at touch-down, toes up [rad].
    """

    off: float = math.radians(15.0)
    strike: float = math.radians(2.0)

    def __post_init__(self) -> None:
        if not (0 <= self.off <= 0.6 and 0 <= self.strike <= 0.3):
            raise ConfigError(
                f"a foot lifts off at 0..0.6 rad and lands at 0..0.3 rad, got {self.off:g}, {self.strike:g}"
            )


class Toe(NamedTuple):
    """Toe joint of a foot.

    Attributes:
        sign: sign of the toe motion that lifts the toes relative to the foot.
        axis: (3,) axis point in S [m].
    """

    joint: int
    sign: float
    axis: np.ndarray


class ToeRoll:
    """Roll of both feet along a plan.

    Attributes:
        angles: (2,) positive: heel up about the toe axis; negative: toes up about the heel [rad].
        axis: (2, 3) points of the toe axes in S [m].
        heel: (2, 3) points of the heel axes in S [m].
    """

    def __init__(self, robot: Robot, feet: Feet, settings: RollSettings, toes: Sequence[Toe]) -> None:
        self.settings, self._feet = settings, feet
        self.joints = [toe.joint for toe in toes]
        self.sign = np.array([toe.sign for toe in toes])
        self.axis = np.array([toe.axis for toe in toes])
        self.heel = np.array([[low[0], 0.0, 0.0] for low in feet.lower])
        self._flat = robot.postures["neutral"][self.joints].copy()
        ends = np.where(self.sign > 0, robot.upper[self.joints], robot.lower[self.joints])
        self.most = min(settings.off, TURN * float(np.abs(ends - self._flat).min()))
        self.reset()

    @classmethod
    def of(cls, robot: Robot, feet: Feet, settings: RollSettings | None) -> ToeRoll | None:
        """Return the roll of a robot's feet; None without settings or toe joints."""
        found = [] if settings is None else [_toe(robot, feet, side) for side in (0, 1)]
        if settings is None or any(toe is None for toe in found):
            return None
        return cls(robot, feet, settings, [toe for toe in found if toe is not None])

    def reset(self) -> None:
        """Set both feet flat."""
        self.angles, self._rate = np.zeros(2), np.zeros(2)
        self._gap, self._gap_rate = np.zeros(2), np.zeros(2)
        self._plan: WalkPlan | None = None
        self._turned = [(0.0, pin.SE3.Identity()), (0.0, pin.SE3.Identity())]

    def planned(self, plan: WalkPlan, t: float) -> np.ndarray:
        """Return the planned angles (2,) at a time [rad].

        The last step is flat.
        """
        out = np.zeros(2)
        for phase in plan.phases[:-1]:
            if phase.lift - phase.step.double > t:
                break
            out[phase.step.foot] += self._angle(phase, t)
        return out

    def _angle(self, phase: Phase, t: float) -> float:
        ahead, _, rise = phase.swing.start.actInv(phase.swing.end).translation.tolist()
        share = min(max((ahead - SHORT) / (LONG - SHORT), 0.0), 1.0)
        # Feet stay flat going up. Going down, the rear heel must rise, or its ankle would reach its limit before the
        # front foot carries.
        if share == 0.0 or rise > LEVEL:
            return 0.0
        time, double = phase.land - phase.lift, phase.step.double
        up = _rise(t, phase.lift - (1 - BEGIN) * double, phase.lift + ON * time)
        down = _rise(t, phase.lift + ON * time, phase.lift + BACK * time)
        pitch = _rise(t, phase.lift + PITCH * time, phase.land) - _rise(t, phase.land, phase.land + FLAT * double)
        strike = 0.0 if rise < -LEVEL else self.settings.strike
        return share * (self.most * (up - down) - strike * pitch)

    def advance(self, plan: WalkPlan, t: float, dt: float) -> None:
        """Advance to the planned angles; angles and rates stay continuous when the plan changes."""
        goal = self.planned(plan, t)
        if plan is not self._plan:  # after a push, in every tick
            before = self.planned(plan, t - dt)
            self._gap = self.angles - before
            self._gap_rate = self._rate - (before - self.planned(plan, t - 2 * dt)) / dt
            self._plan = plan
        self._gap_rate = self._gap_rate - dt * CLOSING * (2 * self._gap_rate + CLOSING * self._gap)
        self._gap = self._gap + dt * self._gap_rate
        self._rate = (goal + self._gap - self.angles) / dt
        self.angles = goal + self._gap

    def rolled(self, soles: Sequence[pin.SE3], angles: np.ndarray) -> list[pin.SE3]:
        """Return sole poses turned by angles (2,) about the toe axis or heel."""
        return [X * self._turn(k, a) if a else X for k, (X, a) in enumerate(zip(soles, angles.tolist(), strict=True))]

    def flat(self, soles: Sequence[pin.SE3]) -> list[pin.SE3]:
        """Return the sole poses without the current roll."""
        turns = enumerate(zip(soles, self.angles.tolist(), strict=True))
        return [X * self._turn(k, a).inverse() if a else X for k, (X, a) in turns]

    def pivots(self) -> np.ndarray:
        """Return points (2, 3) at rest on both feet, in sole frames [m]: the roll axes, or the origin of flat feet."""
        out = np.zeros((2, 3))
        for k, angle in enumerate(self.angles.tolist()):
            if abs(angle) > FLAT_ENOUGH:
                out[k] = self.axis[k] if angle > 0 else self.heel[k]
        return out

    def toes(self) -> np.ndarray:
        """Return toe joint angles (2,) that keep the toes flat on the ground [rad]."""
        return self._flat + self.sign * np.maximum(self.angles, 0.0)

    def carrying(self) -> tuple[np.ndarray, np.ndarray, list[bool]]:
        """Return the loaded part of each foot: whole sole, toes or heel.

        Returns:
            Lower and upper corners (2, 2) in the sole frames [m]; whether a foot stands on a part only (2,).
        """
        lower, upper, angles = self._feet.lower.copy(), self._feet.upper.copy(), self.angles.tolist()
        for k, angle in enumerate(angles):
            if angle > ROLLED:
                lower[k, 0] = self.axis[k, 0]
            elif angle < -ROLLED:
                upper[k, 0] = lower[k, 0] + HEEL
        return lower, upper, [abs(angle) > ROLLED for angle in angles]

    def _turn(self, foot: int, angle: float) -> pin.SE3:
        known = self._turned[foot]
        if known[0] != angle:
            known = self._turned[foot] = angle, self._turn_by(foot, angle)
        return known[1]

    def _turn_by(self, foot: int, angle: float) -> pin.SE3:
        about = self.axis[foot] if angle > 0 else self.heel[foot]
        c, s = math.cos(angle), math.sin(angle)
        R = np.array([[c, 0.0, s], [0.0, 1.0, 0.0], [-s, 0.0, c]])
        return pin.SE3(R, about - R @ about)


def _rise(t: float, begin: float, end: float) -> float:
    return minimum_jerk(min(max((t - begin) / max(end - begin, 1e-6), 0.0), 1.0))


def _toe(robot: Robot, feet: Feet, side: int) -> Toe | None:
    model, carrier = robot.model, int(robot.model.frames[feet.frames[side]].parentJoint)
    joints = {sole.joint for sole in feet.soles[side]} - {carrier}
    if len(joints) != 1:
        return None
    joint = joints.pop()
    pin.framesForwardKinematics(model, robot.data, robot.q("neutral"))
    X_sole = robot.data.oMf[feet.frames[side]]
    axis = X_sole.rotation.T @ robot.data.oMi[joint].rotation @ joint_axis(model, joint)[0]
    if int(model.parents[joint]) != carrier or abs(axis[1]) < ACROSS:
        return None
    place = X_sole.actInv(robot.data.oMi[joint].translation)
    place[1] = 0.0
    # A positive rotation about y lowers the front: toes rise by a negative one.
    return Toe(int(model.joints[joint].idx_v - robot.iv), -float(np.sign(axis[1])), place)
