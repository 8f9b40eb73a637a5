"""Feet that roll: over the toes before they lift off, and from the heel when they land (robots with toe joints).

The toes stay flat on the ground while the foot turns about their axis, heel up, from when the weight has begun to go
over to the other foot until a tenth of the swing; the toe joint turns against it. A foot lands on the edge of its heel
and is flat before the weight is on it. A leg that rolls reaches further back: the centre of mass stays higher, or the
steps are longer, by the same joints.
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

BEGIN = 0.35  # share of the time on both feet after which the rear foot begins to roll: the weight is leaving it
ON, BACK = 0.1, 0.5  # shares of the swing until which it rolls on, and is flat again
PITCH = 0.6  # share of the swing from which a foot pitches to land
FLAT = 0.6  # share of the time on both feet until which it is flat
SHORT, LONG = 0.2, 0.6  # way of a foot [m] up to which it does not roll, and from which it rolls as far as asked
LEVEL = 0.03  # [m] of rise from which a foot lands flat: edges of stairs are near
HEEL = 0.02  # [m] of the sole that carries while it stands on its heel
FLAT_ENOUGH = 0.003  # [rad] up to which a foot counts as flat: what is left of a roll must not choose its pivot
ROLLED = 0.01  # [rad] from which a foot carries on toes or heel only
TURN = 0.9  # share of the toes' range that is used
CLOSING = 30.0  # [1/s] with which a roll goes over to that of a plan that has changed


@dataclass(frozen=True)
class RollSettings:
    """Angles by which feet roll in long steps.

    Attributes:
        off: greatest angle before a lift-off, heel up [rad]. strike: angle at touch-down, toes up [rad].
    """

    off: float = math.radians(15.0)
    strike: float = math.radians(2.0)

    def __post_init__(self) -> None:
        if not (0 <= self.off <= 0.6 and 0 <= self.strike <= 0.3):
            raise ConfigError(
                f"a foot lifts off at 0..0.6 rad and lands at 0..0.3 rad, got {self.off:g}, {self.strike:g}"
            )


class Toe(NamedTuple):
    """Joint between a foot and its toes.

    Attributes:
        joint: its index. sign: of the motion that lifts the toes against the foot. axis: (3,) of its middle in S [m].
    """

    joint: int
    sign: float
    axis: np.ndarray


class ToeRoll:
    """Roll of both feet of a robot with toe joints, by the phases of its plan.

    Attributes:
        angles: (2,) of now, positive: heel up about the toes' axis, negative: toes up about the heel [rad].
        joints: (2,) indices of the toe joints. sign: (2,) of their motion that lifts the toes against the foot.
        axis, heel: (2, 3) points of both axes in the frames of the soles [m].
    """

    def __init__(self, robot: Robot, feet: Feet, settings: RollSettings, toes: Sequence[Toe]) -> None:
        """Make it of the toe joints of both feet; `of` finds them."""
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
        """The roll of a robot's feet; None where it is not asked for, or a foot has no toe joint."""
        found = [] if settings is None else [_toe(robot, feet, side) for side in (0, 1)]
        if settings is None or any(toe is None for toe in found):
            return None
        return cls(robot, feet, settings, [toe for toe in found if toe is not None])

    def reset(self) -> None:
        """Both feet are flat."""
        self.angles, self._rate = np.zeros(2), np.zeros(2)
        self._gap, self._gap_rate = np.zeros(2), np.zeros(2)
        self._plan: WalkPlan | None = None
        self._turned = [(0.0, pin.SE3.Identity()), (0.0, pin.SE3.Identity())]

    def planned(self, plan: WalkPlan, t: float) -> np.ndarray:
        """Angles (2,) that a plan asks for at a time [rad].

        The last step is made flat: to come to rest, the weight must be able to stay on the rear foot.
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
        # Down stairs the ankle of the rear foot would come to its end before the front foot carries: its heel rises.
        if share == 0.0 or rise > LEVEL:
            return 0.0
        time, double = phase.land - phase.lift, phase.step.double
        up = _rise(t, phase.lift - (1 - BEGIN) * double, phase.lift + ON * time)
        down = _rise(t, phase.lift + ON * time, phase.lift + BACK * time)
        pitch = _rise(t, phase.lift + PITCH * time, phase.land) - _rise(t, phase.land, phase.land + FLAT * double)
        strike = 0.0 if rise < -LEVEL else self.settings.strike
        return share * (self.most * (up - down) - strike * pitch)

    def advance(self, plan: WalkPlan, t: float, dt: float) -> None:
        """Go on to the angles of a plan at a time; where it is a new one, angles and rates do not jump [s]."""
        goal = self.planned(plan, t)
        if plan is not self._plan:  # after a push that is every tick
            before = self.planned(plan, t - dt)
            self._gap = self.angles - before
            self._gap_rate = self._rate - (before - self.planned(plan, t - 2 * dt)) / dt
            self._plan = plan
        self._gap_rate = self._gap_rate - dt * CLOSING * (2 * self._gap_rate + CLOSING * self._gap)
        self._gap = self._gap + dt * self._gap_rate
        self._rate = (goal + self._gap - self.angles) / dt
        self.angles = goal + self._gap

    def rolled(self, soles: Sequence[pin.SE3], angles: np.ndarray) -> list[pin.SE3]:
        """Poses of both soles, flat ones turned by angles (2,) about the toes' axis or the heel."""
        return [X * self._turn(k, a) if a else X for k, (X, a) in enumerate(zip(soles, angles.tolist(), strict=True))]

    def flat(self, soles: Sequence[pin.SE3]) -> list[pin.SE3]:
        """Poses that both soles would have without the roll of now."""
        turns = enumerate(zip(soles, self.angles.tolist(), strict=True))
        return [X * self._turn(k, a).inverse() if a else X for k, (X, a) in turns]

    def pivots(self) -> np.ndarray:
        """Points (2, 3) of both feet that stand still, in the frames of the soles [m]: while they roll, of their axes.

        Of a flat foot it is the origin: a sole that is pushed turns and rocks about what presses, not about its toes.
        """
        out = np.zeros((2, 3))
        for k, angle in enumerate(self.angles.tolist()):
            if abs(angle) > FLAT_ENOUGH:
                out[k] = self.axis[k] if angle > 0 else self.heel[k]
        return out

    def toes(self) -> np.ndarray:
        """Angles (2,) of the toe joints at which the toes are flat on the ground [rad]."""
        return self._flat + self.sign * np.maximum(self.angles, 0.0)

    def carrying(self) -> tuple[np.ndarray, np.ndarray, list[bool]]:
        """What each foot stands on, the whole sole, its toes or its heel.

        Returns:
            corners (2, 2), (2, 2) in the frames of the soles [m]; which feet (2,) do not stand on the whole sole.
        """
        lower, upper, angles = self._feet.lower.copy(), self._feet.upper.copy(), self.angles.tolist()
        for k, angle in enumerate(angles):
            if angle > ROLLED:
                lower[k, 0] = self.axis[k, 0]
            elif angle < -ROLLED:
                upper[k, 0] = lower[k, 0] + HEEL
        return lower, upper, [abs(angle) > ROLLED for angle in angles]

    def _turn(self, foot: int, angle: float) -> pin.SE3:
        """A foot turned by an angle; that of the last call is kept, since a tick asks for the same one again."""
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
    """The toe joint of a foot; None where it has none."""
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
    # A turn about y lowers what lies ahead: the toes rise against the foot by a negative one.
    return Toe(int(model.joints[joint].idx_v - robot.iv), -float(np.sign(axis[1])), place)
