"""Inverse-kinematics task of a steady gait: soles, centre of mass, chest and held joints."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from humanoid_control.errors import ConfigError, UnknownNameError, check_time_step
from humanoid_control.ik.null_space.weighted_step import resolved_rate
from humanoid_control.ik.tasks.points import WORLD_AXES
from humanoid_control.ik.tasks.task import Task, prepare
from humanoid_control.kinematics.centroidal import centroidal_momentum_map
from humanoid_control.numerics.rotation import rotation_error
from humanoid_control.robots.joint_groups import JointGroups
from humanoid_control.robots.robot import Robot
from humanoid_control.walking.gait import Gait, GaitPoint, GaitSettings

FREE = {
    "arms": "both arms",
    "arms+waist": "arms and waist",
    "all": "every joint outside the legs",
}
"""Joints without task rows, which may reduce momentum. Redundancy within a leg is always free."""
EXTENSION = 0.985  # greatest hip-ankle distance over the stretched one, to keep the knee bent
LEG_ROWS = 6


class WalkTask(Task):
    """Task vector of a walk (Schwienbacher 2014, table 4.2, without arms): J v = xdot at time `t`.

    Rows: poses of both soles (12), CoM (3), chest orientation (3), each held joint. References are fed
    forward over the tick; errors decay with the gain. The walk starts from rest in mid-swing; its clock accelerates
    during the first cycle.

    Attributes:
        t: start of the tick [s].
        comfortable: indices of joints that the rows leave open: free ones, and legs with redundant joints.
    """

    def __init__(
        self,
        robot: Robot,
        gait: GaitSettings | None = None,
        free: str = "arms",
        dt: float = 0.004,
        weight: float = 30.0,
    ) -> None:
        """Create the walk from the neutral posture.

        Args:
            free: joints without rows, one of FREE.
            weight: weight of all rows, relative to other tasks.

        Raises:
            UnknownNameError: if `free` is unknown.
            RobotError: if arms or legs are missing, or the base is fixed.
            ConfigError: if `dt` is not positive and finite, or steps are too long for the legs.
        """
        if free not in FREE:
            raise UnknownNameError("choice of free joints", free, FREE)
        check_time_step(dt, "walk")
        super().__init__("walk", weight, gain=min(50.0, 0.5 / dt))
        self.groups, self.t, self.dt = JointGroups.of(robot), 0.0, float(dt)
        g = self.groups
        sets = {"arms": [g.arms], "arms+waist": [g.arms, g.waist], "all": [g.arms, g.waist, g.rest]}
        self.free = np.sort(np.concatenate(sets[free]))
        self.comfortable = np.sort(np.concatenate([self.free, g.legs])) if len(g.l_leg) > LEG_ROWS else self.free
        self.held = np.setdiff1d(np.arange(robot.n), np.concatenate([self.free, g.legs]))
        self.posture = robot.postures["neutral"].copy()
        self._soles = [robot.points[f"{side}_foot_tcp"] for side in "lr"]
        self._chest = robot.points["sternum"]
        q = robot.q("neutral")
        center = centroidal_momentum_map(robot.model, robot.data, q).center
        soles = robot.frame_positions(q, self._soles)
        self._upright = [np.array(robot.data.oMf[f].rotation) for f in (*self._soles, self._chest)]
        self.mass = robot.mass
        middle, width = soles.mean(axis=0), float(soles[0, 1] - soles[1, 1])
        settings, height = gait or GaitSettings(), float(center[2] - middle[2])
        lower = _crouch(robot, Gait(settings, width, height, middle), center)
        self.gait = Gait(settings, width, height - lower, middle)
        self._held_rows = np.zeros((len(self.held), robot.nv))
        self._held_rows[np.arange(len(self.held)), robot.iv + self.held] = 1.0

    def clock(self, t: float) -> float:
        """Return the gait time at time t of the walk [s]."""
        s, ramp = self.gait.settings, self.gait.cycle
        middle = 0.5 * s.step_time * (1 + s.double_support)
        x = min(t / ramp, 1.0)
        return middle + ramp * x**4 * (2.5 + x * (x - 3)) + max(t - ramp, 0.0)

    def error(self, robot: Robot, data: pin.Data, q: np.ndarray) -> np.ndarray:
        """Return desired minus actual of all rows at time t [m, rad]."""
        point = self.gait.at(self.clock(self.t))
        return self._error(robot, data, q, point, centroidal_momentum_map(robot.model, data, q).center)

    def _error(self, robot: Robot, data: pin.Data, q: np.ndarray, point: GaitPoint, center: np.ndarray) -> np.ndarray:
        desired = [yaw_rotation(h) @ R for h, R in zip(point.headings, self._upright, strict=True)]
        parts = []
        for X, sole, R in zip((data.oMf[f] for f in self._soles), point.soles, desired, strict=False):
            parts += [sole - X.translation, rotation_error(X.rotation, R)]
        parts += [point.center - center, rotation_error(data.oMf[self._chest].rotation, desired[2])]
        return np.concatenate([*parts, self.posture[self.held] - q[robot.iq + self.held]])

    def rows(self, robot: Robot, data: pin.Data, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        now, after = self.gait.at(self.clock(self.t)), self.gait.at(self.clock(self.t + self.dt))
        m = centroidal_momentum_map(robot.model, data, q)
        feet = [pin.getFrameJacobian(robot.model, data, f, WORLD_AXES) for f in self._soles]
        chest = pin.getFrameJacobian(robot.model, data, self._chest, WORLD_AXES)[3:]
        J = np.vstack([*feet, m.linear / self.mass, chest, self._held_rows])
        xdot = self.gain * self._error(robot, data, q, now, m.center)
        xdot[0:3] += (after.soles[0] - now.soles[0]) / self.dt
        xdot[6:9] += (after.soles[1] - now.soles[1]) / self.dt
        xdot[12:15] += (after.center - now.center) / self.dt
        xdot[[5, 11, 17]] += (after.headings - now.headings) / self.dt
        return J, xdot

    def foot_errors(self, data: pin.Data, point: GaitPoint) -> np.ndarray:
        """Return distances (2,) of the soles to their references [m]."""
        off = [data.oMf[f].translation - s for f, s in zip(self._soles, point.soles, strict=True)]
        return np.array([np.sqrt(d @ d) for d in off])

    def start(self, robot: Robot) -> np.ndarray:
        """Return a configuration (nq,) that meets all rows at t = 0, with free joints in their posture.

        Raises:
            ConfigError: if the legs do not reach.
        """
        q, data, self.t = robot.q(self.posture), robot.data, 0.0
        for _ in range(200):
            prepare(robot, data, q)
            J, _ = self.rows(robot, data, q)
            e = self.error(robot, data, q)
            if np.abs(e).max() < 1e-10:
                return q
            q = pin.integrate(robot.model, q, 0.8 * resolved_rate(J, e, np.ones(robot.nv), np.zeros(robot.nv)))
        raise ConfigError(f"{robot.name} cannot take the first posture of this walk: a step too long or too high")


def leg_length(robot: Robot) -> float:
    """Return the hip-to-sole length of the stretched leg [m]."""
    first = robot.joint_names[JointGroups.of(robot).l_leg[0]]
    sole = robot.point_positions(robot.q("zero"), ["l_foot_tcp"])[0]
    hip = robot.data.oMi[robot.model.getJointId(first)].translation
    return float(np.linalg.norm(hip - sole))


def _crouch(robot: Robot, gait: Gait, center: np.ndarray) -> float:
    """Return how far the hips must be lowered from the neutral posture to keep the knees bent [m]."""
    g = JointGroups.of(robot)
    lower = 0.0
    for foot, (side, leg) in enumerate((("l", g.l_leg), ("r", g.r_leg))):
        sole = robot.points[f"{side}_foot_tcp"]
        ends = [robot.model.getJointId(robot.joint_names[leg[0]]), robot.model.frames[sole].parentJoint]
        at = robot.frame_positions(robot.q("zero"), [sole])[0]
        hip, ankle = (np.array(robot.data.oMi[k].translation) for k in ends)
        length = EXTENSION * float(np.linalg.norm(hip - ankle))
        at = robot.frame_positions(robot.q("neutral"), [sole])[0]
        hip, ankle = (np.array(robot.data.oMi[k].translation) for k in ends)
        for t in np.linspace(0.0, gait.cycle, 80, endpoint=False):
            point = gait.at(t)
            turned, chest = yaw_rotation(point.headings[foot]), yaw_rotation(point.headings[2])
            leg_vector = point.soles[foot] + turned @ (ankle - at) - (point.center + chest @ (hip - center))
            height_squared = length**2 - leg_vector[0] ** 2 - leg_vector[1] ** 2
            if height_squared <= (0.5 * length) ** 2:
                raise ConfigError(f"{robot.name}: steps of {gait.settings.step_length:g} m are too long for its legs")
            lower = max(lower, float(-leg_vector[2] - np.sqrt(height_squared)))
    return lower


def yaw_rotation(angle: float) -> np.ndarray:
    """Return the rotation (3, 3) about the vertical."""
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
