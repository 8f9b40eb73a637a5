"""Balance feedback: zero-moment point, foot forces and foot positions.

* Divergent component (DCM, capture point): p = p_ref + (1 + k / w)(xi - xi_ref) + integral, clipped to the support
  polygon.
* Foot forces: each sole turns until its moment gives the desired pressure point; feet are lowered and raised until each
  carries its share (Kajita 2010).
* Foot positions: the swing foot is moved to its planned place in the world.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pinocchio as pin

from humanoid_control.compiled.packed import Packed
from humanoid_control.estimation.floating_base import BaseEstimate
from humanoid_control.numerics.minimum_jerk import minimum_jerk
from humanoid_control.walking.feet import Feet
from humanoid_control.walking.gait import GRAVITY
from humanoid_control.walking.planning.plan import References
from humanoid_control.walking.support import BOTH, Soles, ZmpRequest, ask_for_zmp, left_share, support_polygon

SOLE = (0.06, 0.09)  # half width and half length [m] of the reference sole, compliant about x and y
# [s] swing times between which the height correction fades in. The loaded leg yields, so a slow swing foot lands late
# without it. In quick swings the body bounces, and its height does not predict the landing.
QUICK, CALM = 0.45, 0.55


@dataclass(frozen=True)
class StabilizerGains:
    """Gains of the loops.

    Attributes:
        dcm: proportional gain k of the DCM error [1/s].
        integral: integral gain of the DCM error [1/s].
        integral_limit: largest shift of the ZMP by the integral [m].
        margin: distance of the ZMP from the support edge [m].
        ankle: sole rotation per moment error, for soles of size SOLE or larger [rad/(N m s)]; compliant smaller soles
            scale it by the inverse square of their size.
        ankle_leak: return rate under load [1/s].
        ankle_return: return rate in the air [1/s].
        ankle_limit: largest rotation of a sole [rad].
        height: per force-difference error [m/(N s)].
        height_leak: return rate in double support [1/s].
        height_return: return rate in single support [1/s].
        height_limit: largest height correction of a foot [m].
        landing: time constant of the swing foot correction [s].
        upright: return rate of stance foot rotations, which straightens the trunk [1/s].
        force_cutoff: cut-off frequency of the measured forces [Hz].
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
    """Result of the stabilizer in a tick.

    Attributes:
        error: (2,) xi - xi_ref, world axes [m].
        zmp: (2,) desired ZMP [m].
        cut: distance by which it was clipped [m].
        margin: its distance from the support edge [m].
        wrenches: (2, 3) desired normal force [N] and moments about x, y of the sole frames [N m].
    """

    error: np.ndarray
    zmp: np.ndarray
    cut: float
    margin: float
    wrenches: np.ndarray


class Stabilizer:
    """Feedback of a walk.

    Attributes:
        ankles: (2, 2) rotation of each sole about its x and y [rad].
        height: commanded height of the right foot above the left [m].
        offsets: (2, 3) offset of each commanded sole from its plan [m].
        turns: (2, 3) likewise, rotation vectors [rad].
        rolling: (2,) whether a foot stands on toes or heel only: its pitch does not move the pressure.
    """

    def __init__(self, feet: Feet, mass: float, gains: StabilizerGains | None = None) -> None:
        """Allocate the state.

        Args:
            mass: robot mass [kg].
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
        """Reset all corrections."""
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
        """Return the ZMP and foot wrenches that lead back to the plan."""
        g, r = self.gains, self._request.record
        r.xi[:] = now.center[:2] + now.center_velocity[:2] / omega
        r.xi_ref[:], r.zmp_ref[:] = ref.dcm, ref.zmp
        at = self._place(ref)
        zmp, cut, margin, wrenches = ask_for_zmp(
            *at, self._request.table, 1.0 + g.dcm / omega, dt * g.integral, self.weight
        )
        return Balance(r.xi - ref.dcm, zmp, cut, margin + g.margin, wrenches)

    def polygon(self, ref: References) -> np.ndarray:
        """Return corners (k, 2) of the support polygon, less the margin."""
        return support_polygon(*self._place(ref))

    def _place(self, ref: References) -> tuple[Any, int]:
        soles = self._soles.record
        for k, X in enumerate(ref.soles):
            soles.R[k], soles.p[k] = X.rotation, X.translation
        return self._soles.table, BOTH if ref.swinging is None else ref.swinging

    def stand_on(self, lower: np.ndarray, upper: np.ndarray, rolling: list[bool]) -> None:
        """Restrict the soles of rolling feet to their loaded part."""
        soles = self._soles.record
        soles.lower[:], soles.upper[:], self.rolling = lower, upper, rolling

    # -- forces of the feet -------------------------------------------------------------------------------------

    def press(self, desired: np.ndarray, measured: np.ndarray, swinging: int | None, dt: float) -> None:
        """Turn and shift the soles toward the desired forces.

        Args:
            desired: (2, 3) as in `Balance`.
            measured: (2, 6) as in `Feet.wrenches`.
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
        """Move the swing foot to its planned place in the world, and straighten the trunk by the stance feet.

        Args:
            X_world_command: pose of the command world in the estimated world.
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
        """Remove the common offset of the loaded soles, which slip accumulates.

        Returns:
            Horizontal shift (3,) to subtract from all commands [m].
        """
        along = self._along(ref)
        along[2] = 0.0
        self.offsets -= along
        self._start_offset -= along
        return along

    def _along(self, ref: References) -> np.ndarray:
        left = left_share(*self._place(ref), ref.zmp)
        return np.asarray(left * self.offsets[0] + (1.0 - left) * self.offsets[1])

    def commanded(self, ref: References) -> tuple[list[pin.SE3], np.ndarray]:
        """Return sole poses for the inverse kinematics, and the common shift (3,) of the CoM [m]."""
        out = []
        for k, (X, sign) in enumerate(zip(ref.soles, (-1.0, 1.0), strict=True)):
            p = X.translation + self.offsets[k]
            p[2] += sign * 0.5 * self.height
            R = pin.exp3(self.turns[k]) @ X.rotation @ pin.exp3(np.array([*self.ankles[k], 0.0]))
            out.append(pin.SE3(R, p))
        return out, self._along(ref)
