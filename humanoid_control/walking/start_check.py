"""Checks before the first step: rest on both feet, and consistent sensors.

At rest, the ground carries the weight, presses below the centre of mass, and the soles are level; swapped, inverted or
misaligned sensors violate this. The first weight shift detects swapped feet and a wrong IMU heading.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from humanoid_control.estimation.floating_base import FloatingBaseEstimator
from humanoid_control.kinematics.joint_state import Measurement
from humanoid_control.robots.robot import Robot
from humanoid_control.walking.feet import SIDES, Feet
from humanoid_control.walking.gait import GRAVITY
from humanoid_control.walking.ground.terrain import Terrain

# share of the weight by which forces differ in the wrong direction; duration of that [s]
SHIFTED, SWAPPED_TIME = 0.3, 0.05
ENOUGH = 0.01  # [m^2/s^3] integral of the squared commanded acceleration needed to determine a direction
LATE, MOST_LATE = 2.5, 0.1  # ticks between stamps that count as late; share of late ticks that invalidates the check
TURNED = float(np.radians(45.0))  # [rad] heading error of an IMU
# Correlation of felt and commanded acceleration after the best rotation: 0.9 for a weight shift with any IMU heading,
# at most 0.4 for a robot that is pushed.
ALIKE = 0.7


@dataclass(frozen=True)
class StartLimits:
    """Limits for rest and sensor consistency.

    Attributes:
        weight: error of the vertical force over the weight.
        foot: least share of the weight on a foot.
        pressure: horizontal distance of pressure and mass centres [m].
        level: tilt of soles and trunk [rad].
        joint_speed: RMS over the joints [rad/s].
        steady: required duration [s].
        drift: largest change of a foot force meanwhile, over the weight.
    """

    weight: float = 0.1
    foot: float = 0.2
    pressure: float = 0.03
    level: float = float(np.radians(5.0))
    joint_speed: float = 0.1
    turning: float = 0.1
    steady: float = 0.3
    drift: float = 0.05


class StartCheck:
    """Check that a robot stands still with consistent sensors.

    Attributes:
        problems: problems found by the last measurement, one line each.
    """

    def __init__(
        self, robot: Robot, feet: Feet, limits: StartLimits | None = None, terrain: Terrain | None = None
    ) -> None:
        """Create the check.

        Args:
            terrain: ground, with its origin below the root link.
        """
        self.terrain = terrain
        self.robot, self.feet, self.limits = robot, feet, limits or StartLimits()
        self._estimator, self._weight = FloatingBaseEstimator(robot, feet.frames), robot.mass * GRAVITY
        self.restart()

    def restart(self) -> None:
        """Restart the wait."""
        self.problems: list[str] = ["nothing measured yet"]
        self._steady, self._forces = 0.0, np.zeros(2)

    def ready(self, measured: Measurement, dt: float) -> bool:
        """Return True after `steady` seconds without problems; `measured` must be finite."""
        forces = self._look(measured)
        moved = np.abs(forces - self._forces).max() > self.limits.drift * self._weight
        if self._steady == 0.0 or moved or self.problems:
            self._steady, self._forces = 0.0, forces
        if not self.problems:
            self._steady += dt
        return self._steady > self.limits.steady

    def _look(self, measured: Measurement) -> np.ndarray:
        """Update the problems; return vertical forces (2,) of both feet [N]."""
        e, m, lim = self._estimator, measured, self.limits
        e.kinematics(m.joints.q, m.joints.v, m.imu)
        wrenches = self.feet.wrenches(e.data, m.foot_wrenches)
        soles = [e.data.oMf[f] for f in self.feet.frames]
        forces = np.array([X.rotation @ w[:3] for X, w in zip(soles, wrenches, strict=True)])
        up, total, out = forces[:, 2], float(forces[:, 2].sum()), []
        light = [f"{s}_foot" for s, f in zip(SIDES, up, strict=True) if f < lim.foot * self._weight]
        if len(light) == 2:
            out.append(f"no ground under the feet: they carry {total:.0f} N of {self._weight:.0f} N")
        elif light:
            out.append(f"{light[0]} carries {up.min():.0f} N: both feet must stand")
        elif abs(total / self._weight - 1) > lim.weight:
            out.append(f"the feet carry {total:.0f} N, the robot weighs {self._weight:.0f} N: check wrench/*")
        else:
            out += self._off_balance(wrenches, total)
        tilts = [float(np.arccos(np.clip(self._normal(X, k) @ X.rotation[:, 2], -1, 1))) for k, X in enumerate(soles)]
        if max(tilts) > lim.level:
            side = SIDES[int(np.argmax(tilts))]
            out.append(
                f"{side}_foot is tilted by {np.degrees(max(tilts)):.0f} deg against the IMU: steep ground, or a "
                "wrongly mounted IMU"
            )
        out += self._moving(m)
        self.problems = out
        return up

    def _normal(self, X: pin.SE3, foot: int) -> np.ndarray:
        if self.terrain is None or not self.terrain.known:
            return np.array([0.0, 0.0, 1.0])
        return self.terrain.foothold(X, foot).X.rotation[:, 2]

    def _off_balance(self, wrenches: np.ndarray, total: float) -> list[str]:
        e = self._estimator
        moments = np.zeros(2)
        for f, w in zip(self.feet.frames, wrenches, strict=True):
            X = e.data.oMf[f]
            force, at = X.rotation @ w[:3], X.translation
            tau = X.rotation @ w[3:]
            moments += [at[0] * force[2] - tau[1], at[1] * force[2] + tau[0]]
        off = moments / total - e.data.com[0][:2]
        if np.hypot(*off) <= self.limits.pressure:
            return []
        return [
            f"the wrenches press {1e3 * np.hypot(*off):.0f} mm off the centre of mass: feet swapped, a wrong sign, or "
            "a wrong mass"
        ]

    def _moving(self, m: Measurement) -> list[str]:
        lim, out = self.limits, []
        speed, turning = float(np.sqrt(np.mean(m.joints.v**2))), float(np.linalg.norm(m.imu.angular_velocity))
        if speed > lim.joint_speed or turning > lim.turning:
            out.append(f"not at rest: joints move at {speed:.2f} rad/s, the root turns at {turning:.2f} rad/s")
        R = self._estimator.data.oMi[1].rotation @ self.robot.X_world_root.rotation.T
        tilt = float(np.arccos(np.clip(R[2, 2], -1, 1)))
        if tilt > lim.level:
            out.append(f"the trunk is tilted by {np.degrees(tilt):.0f} deg")
        return out


class ShiftCheck:
    """Comparison of sensors with commands during the first weight shift, in double support.

    Attributes:
        problem: why the first step is forbidden; empty: allowed.
    """

    def __init__(self, weight: float) -> None:
        """Start the check.

        Args:
            weight: robot weight [N].
        """
        self.weight = weight
        self.restart()

    def restart(self) -> None:
        """Restart the check."""
        self.problem, self._swapped = "", 0.0
        self._dot_integral, self._cross_integral, self._commanded_energy, self._measured_energy = 0.0, 0.0, 0.0, 0.0
        self._stamp, self._late, self._samples = math.nan, 0, 0

    def update(self, m: Measurement, asked: np.ndarray, forces: np.ndarray, wanted: np.ndarray, dt: float) -> None:
        """Add a tick of the shift; directions are not judged if many ticks are late, or the robot is pushed.

        Args:
            asked: (2,) commanded CoM acceleration, in the estimated world [m/s^2].
            forces: (2,) measured normal forces [N].
            wanted: (2,) commanded normal forces [N].
        """
        apart = (wanted[0] - wanted[1]) * (forces[0] - forces[1]) / self.weight**2
        self._swapped = self._swapped + dt if apart < -(SHIFTED**2) else 0.0
        a = (pin.Quaternion(*np.roll(m.imu.orientation, 1)).matrix() @ m.imu.linear_acceleration)[:2]
        self._dot_integral += dt * float(a @ asked)
        self._cross_integral += dt * float(asked[0] * a[1] - asked[1] * a[0])
        self._commanded_energy += dt * float(asked @ asked)
        self._measured_energy += dt * float(a @ a)
        if self._swapped > SWAPPED_TIME:
            self.problem = "the weight shifts to the wrong foot: the wrenches of the feet are swapped"
            return
        turned = float(np.arctan2(self._cross_integral, self._dot_integral))
        self._late += m.joints.stamp - self._stamp > LATE * dt
        self._samples, self._stamp = self._samples + 1, m.joints.stamp
        if self._late > MOST_LATE * self._samples:
            return
        both = math.hypot(self._dot_integral, self._cross_integral)
        alike = both > 0.4 * self._commanded_energy and both > ALIKE * math.sqrt(
            self._commanded_energy * self._measured_energy
        )
        if self._commanded_energy > ENOUGH and alike and abs(turned) > TURNED:
            self.problem = (
                f"the weight shifts {np.degrees(turned):.0f} deg away from the direction that the IMU measures: the "
                "IMU is rotated"
            )
