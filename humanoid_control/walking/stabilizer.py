"""Balance by feedback: where the zero-moment point must be, what each foot must press, how the soles turn for it.

Three loops, each slower than what it acts through:

* the divergent component: p = p_ref + (1 + k / w)(xi - xi_ref) + integral, held inside the support polygon;
* the force of each foot: its sole turns against the body until it has the moment that puts the pressure there, and one
  foot reaches down and the other one draws up until each carries its share (Kajita 2010);
* the place of each foot: a robot that leans does not stand where its model believes, so the swinging foot is led to
  where the plan wants it in the world, and keeps that correction while it stands.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pinocchio as pin

from humanoid_control.estimation.floating_base import BaseEstimate
from humanoid_control.numerics.minimum_jerk import minimum_jerk
from humanoid_control.numerics.packed import Packed
from humanoid_control.walking.feet import Feet
from humanoid_control.walking.gait import GRAVITY
from humanoid_control.walking.planning.plan import References
from humanoid_control.walking.support import BOTH, Soles, ZmpRequest, ask_for_zmp, left_share, support_polygon

SOLE = (0.06, 0.09)  # half of its width and length [m], which give way about its x and its y
# [s] of a swing from which on its foot is led in height too, and fully: the leg that carries gives way, and the foot
# comes down too late for it. In a quick swing the body goes up and down as well: where it is says nothing of the end.
QUICK, CALM = 0.45, 0.55


@dataclass(frozen=True)
class StabilizerGains:
    """Gains of the loops.

    Attributes:
        dcm: k of the divergent component [1/s]. integral: [1/s]; at most `integral_limit` [m].
        margin: that the zero-moment point keeps from the edge of the support [m].
        ankle: turn of a sole as large as SOLE, or larger, for a missing moment [rad/(N m s)]; a smaller one yields more
            to the same moment, by the square of its size, and turns as much more. ankle_leak, ankle_return: how fast it
            goes back under load, and in the air [1/s]; at most `ankle_limit` [rad].
        height: for a missing difference of forces [m/(N s)]; height_leak, height_return: as of the ankles;
            at most `height_limit` [m].
        landing: time constant with which a swinging foot is led to its place [s].
        upright: how fast a standing foot's correction in orientation goes back, which brings the trunk upright [1/s].
        force_cutoff: of the measured forces [Hz].
    """

    dcm: float = 3.0
    integral: float = 0.3
    integral_limit: float = 0.03
    margin: float = 0.01
    ankle: float = 0.006
    ankle_leak: float = 0.2
    ankle_return: float = 12.0
    ankle_limit: float = 0.15
    height: float = 4e-5
    height_leak: float = 0.5
    height_return: float = 6.0
    height_limit: float = 0.04
    landing: float = 0.03
    upright: float = 4.0
    force_cutoff: float = 50.0


@dataclass
class Balance:
    """What the stabilizer saw and did in a tick.

    Attributes:
        error: (2,) xi - xi_ref [m]. zmp: (2,) that is asked for [m].
        cut: how far it had to be moved into the support [m].
        margin: of the zero-moment point that is asked for, from the edge of the support [m].
        wrenches: (2, 3) desired normal force [N] and moments about x, y of the sole frames [N m].
    """

    error: np.ndarray
    zmp: np.ndarray
    cut: float
    margin: float
    wrenches: np.ndarray


class Stabilizer:
    """The feedback of a walk.

    Attributes:
        gains: of the loops. integral: (2,) [m].
        ankles: (2, 2) turn of each sole about its x and y [rad]. height: half of it the left foot is lower [m].
        offsets: (2, 3) how far each sole is commanded off its plan [m].
        turns: (2, 3) the same as rotation vectors [rad].
        rolling: (2,) which feet stand on their toes or their heel only: their ankles do not move the pressure.
    """

    def __init__(self, feet: Feet, mass: float, gains: StabilizerGains | None = None) -> None:
        """Make it.

        Args:
            feet: geometry. mass: of the robot [kg].
        """
        self.feet, self.weight, self.gains = feet, mass * GRAVITY, gains or StabilizerGains()
        half = 0.5 * np.ptp(feet.outlines, axis=1).min(axis=0)[::-1]
        self._ankle = (self.gains.ankle * np.maximum(1.0, np.square(np.array(SOLE) / half))).tolist()
        lower, upper, middle = (np.array(a, dtype=float, order="C") for a in (feet.lower, feet.upper, feet.middle))
        self._soles = Packed(Soles(lower, upper, middle, np.zeros((2, 3, 3)), np.zeros((2, 3)), self.gains.margin))
        xi, xi_ref, zmp_ref, integral = np.zeros((4, 2))
        self._request = Packed(ZmpRequest(xi, xi_ref, zmp_ref, integral, self.gains.integral_limit))
        self.integral = self._request.record.integral
        self.reset()

    def reset(self) -> None:
        """Forget everything: the robot stands as it is commanded."""
        self.integral[:] = 0.0
        self.ankles, self.height = np.zeros((2, 2)), 0.0
        self.offsets, self.turns = np.zeros((2, 3)), np.zeros((2, 3))
        self.rolling = [False, False]
        self._start_offset, self._start_turn = np.zeros(3), np.zeros(3)
        self._swinging: int | None = None
        self._forces = np.zeros((2, 6))
        self._filtered = False

    # -- divergent component of motion --------------------------------------------------------------------------

    def balance(self, ref: References, now: BaseEstimate, omega: float, dt: float) -> Balance:
        """The zero-moment point and the wrenches of the feet that lead back to the plan.

        Args:
            ref: of the plan. now: the robot. omega: of the pendulum [1/s]. dt: of the ticks [s].
        """
        g, r = self.gains, self._request.record
        r.xi[:] = now.center[:2] + now.center_velocity[:2] / omega
        r.xi_ref[:], r.zmp_ref[:] = ref.dcm, ref.zmp
        at = self._place(ref)
        zmp, cut, margin, wrenches = ask_for_zmp(
            *at, self._request.table, 1.0 + g.dcm / omega, dt * g.integral, self.weight
        )
        return Balance(r.xi - ref.dcm, zmp, cut, margin + g.margin, wrenches)

    def polygon(self, ref: References) -> np.ndarray:
        """Corners (k, 2) of where the zero-moment point may be: the hull of the standing soles, less the margin."""
        return support_polygon(*self._place(ref))

    def _place(self, ref: References) -> tuple[Any, int]:
        """Arguments of the kernels of the support: the soles where a plan has them, and the foot in the air."""
        soles = self._soles.record
        for k, X in enumerate(ref.soles):
            soles.R[k], soles.p[k] = X.rotation, X.translation
        return self._soles.table, BOTH if ref.swinging is None else ref.swinging

    def stand_on(self, lower: np.ndarray, upper: np.ndarray, rolling: list[bool]) -> None:
        """Let feet that roll stand on part of their soles.

        Args:
            lower, upper: (2, 2) corners of what each stands on, in the frames of the soles [m].
            rolling: (2,) which feet do not stand on the whole sole.
        """
        soles = self._soles.record
        soles.lower[:], soles.upper[:], self.rolling = lower, upper, rolling

    # -- forces of the feet -------------------------------------------------------------------------------------

    def press(self, desired: np.ndarray, measured: np.ndarray, swinging: int | None, dt: float) -> None:
        """Turn the soles and shift their heights toward the desired forces.

        Args:
            desired: (2, 3) of `Balance`. measured: (2, 6) of `Feet.wrenches`. swinging: the foot in the air. dt: [s].
        """
        g = self.gains
        a = 1.0 - math.exp(-2 * math.pi * g.force_cutoff * dt) if self._filtered else 1.0
        self._forces, self._filtered = self._forces + a * (measured - self._forces), True
        wanted, felt = desired.tolist(), self._forces.tolist()
        for k in (0, 1):
            if k == swinging:
                self.ankles[k] *= math.exp(-g.ankle_return * dt)
                continue
            if self.rolling[k]:
                self.ankles[k, 1] *= math.exp(-g.ankle_return * dt)
            for i, ankle in enumerate(self.ankles[k, : 1 if self.rolling[k] else 2].tolist()):
                missing = wanted[k][1 + i] - felt[k][3 + i]
                turn = ankle - dt * (self._ankle[i] * missing + g.ankle_leak * ankle)
                self.ankles[k, i] = min(max(turn, -g.ankle_limit), g.ankle_limit)
        if swinging is None:
            missing = (wanted[0][0] - wanted[1][0]) - (felt[0][2] - felt[1][2])
            height = self.height + dt * (g.height * missing - g.height_leak * self.height)
            self.height = min(max(height, -g.height_limit), g.height_limit)
        else:
            self.height *= math.exp(-g.height_return * dt)

    # -- places of the feet -------------------------------------------------------------------------------------

    def lead(self, ref: References, now: BaseEstimate, X_world_command: pin.SE3, dt: float) -> None:
        """Lead the swinging foot to its planned place in the world, and let standing feet bring the trunk upright.

        Args:
            ref: of the plan. now: the robot. dt: of the ticks [s].
            X_world_command: pose, in the estimated world, of the world of the commands.
        """
        g, k = self.gains, ref.swinging
        if k is not None:
            if self._swinging != k:
                self._start_offset, self._start_turn = self.offsets[k].copy(), self.turns[k].copy()
            planned = ref.soles[k]
            X = X_world_command.actInv(planned)
            s = minimum_jerk(min(ref.u / 0.6, 1.0))
            place = X.translation - planned.translation
            place[2] *= min(max((ref.swing - QUICK) / (CALM - QUICK), 0.0), 1.0)
            turn = pin.log3(X.rotation @ planned.rotation.T)
            a = 1.0 - math.exp(-dt / g.landing)
            begin, (x, y, z) = self._start_turn, self._start_offset.tolist()
            goal, goal_turn = np.array([x, y, z]), begin + s * (turn - begin)
            goal += s * (place - (x, y, z))
            self.offsets[k] += a * (goal - self.offsets[k])
            self.turns[k] += a * (goal_turn - self.turns[k])
        fade = math.exp(-g.upright * dt)
        for j in (0, 1):
            if j != k:
                self.turns[j] *= fade
                self.offsets[j, 2] *= fade
        self._swinging = k

    def drop_drift(self, ref: References) -> np.ndarray:
        """Take out of the offsets what is common to the soles that carry: the way that they crept on the ground.

        Without it the soles would be commanded further from their plan with every step, and what goes on from the
        commanded posture along the plan (the dynamics filter) would begin with a leap over all of that way.

        Returns:
            the horizontal way (3,) by which everything commanded must be moved back [m].
        """
        along = self._along(ref)
        along[2] = 0.0
        self.offsets -= along
        self._start_offset -= along
        return along

    def _along(self, ref: References) -> np.ndarray:
        """Offset (3,) of the soles that carry, by their shares [m]."""
        left = left_share(*self._place(ref), ref.zmp)
        return np.asarray(left * self.offsets[0] + (1.0 - left) * self.offsets[1])

    def commanded(self, ref: References) -> tuple[list[pin.SE3], np.ndarray]:
        """Poses of both soles for the inverse kinematics, and how far the centre of mass moves along (3,) [m]."""
        out = []
        for k, (X, sign) in enumerate(zip(ref.soles, (-1.0, 1.0), strict=True)):
            p = X.translation + self.offsets[k]
            p[2] += sign * 0.5 * self.height
            R = pin.exp3(self.turns[k]) @ X.rotation @ pin.exp3(np.array([*self.ankles[k], 0.0]))
            out.append(pin.SE3(R, p))
        return out, self._along(ref)
