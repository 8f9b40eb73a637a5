"""Upper body of a standing or walking robot: chest lean and arm points.

The input is seven points, tracked with a fixed pelvis. The trunk rotation becomes a bounded chest offset; the arms are
tracked in chest axes.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
import pinocchio as pin

from humanoid_control.errors import ClipError
from humanoid_control.ik.target_filter import TargetFilter, TargetFilterSettings
from humanoid_control.mocap.body_points import torso_axes
from humanoid_control.numerics.minimum_jerk import minimum_jerk
from humanoid_control.robots.joint_groups import JointGroups
from humanoid_control.robots.robot import Robot

ARM_POINTS = ("l_gh", "r_gh", "l_elbow", "r_elbow", "l_wrist", "r_wrist")
TRUNK_POINTS = 1 + len(ARM_POINTS)  # with the sternum, which is first
MOST_TILT, MOST_TWIST = np.radians(15.0), np.radians(30.0)  # [rad] bounds of the chest rotation relative to the heading
PELVIS_ROLL = np.radians(6.0)  # [rad] hip roll reserved for robots without waist roll
GUESS = 0.2  # [s] extrapolation horizon of a live motion
LEAD = 1.5  # [s] from rest to a motion, and back
RISING, RISE = 0.2, 0.01  # [s] time constant of the centre-of-mass rise with the arms; [m] smallest change
SAMPLE = 0.01  # [s] sampling of a recorded motion


class UpperGoal(NamedTuple):
    """Goal of the upper body at one time.

    Attributes:
        chest: (3, 3) rotation from upright, in heading axes.
        points: (6, 3) ARM_POINTS from the sternum, in chest axes [m].
        velocity: (6, 3) rates of `points` [m/s].
    """

    chest: np.ndarray
    points: np.ndarray
    velocity: np.ndarray


class UpperMotion(Protocol):
    """Goals of the upper body over time."""

    @property
    def known(self) -> bool:
        """Whether the future is known, not extrapolated."""

    def advance(self, t: float, dt: float) -> None:
        """Advance by a tick that ends at `t` [s]."""

    def at(self, t: float) -> UpperGoal:
        """Return the goal at a present or future walker time [s]."""


class UpperBody:
    """Conversion of seven points with a fixed pelvis to a chest rotation and arm points.

    Attributes:
        rest: (21,) row of the neutral posture: chest rotation vector, then six points.
        roll: bound of the sideways lean [rad].
    """

    def __init__(self, robot: Robot) -> None:
        """Measure the robot.

        Raises:
            RobotError: if the robot lacks imitation points.
        """
        robot.require_imitation_points()
        self.robot = robot
        names = ("sternum", *ARM_POINTS)
        self._mid_hip = robot.point_positions(robot.q("neutral"), ["mid_hip"])[0]
        mid_hip, sternum, left, right = robot.point_positions(robot.q("zero"), ["mid_hip", "sternum", "l_gh", "r_gh"])
        self._upright = _torso(sternum - mid_hip, left - right)
        self.roll = min(MOST_TILT, max(waist_roll(robot), PELVIS_ROLL))
        points = robot.point_positions(robot.q("neutral"), names)
        self.rest = np.concatenate([np.zeros(3), (points[1:] - points[0]).ravel()])

    def rows(self, positions: np.ndarray) -> np.ndarray:
        """Return rows (T, 21) of points (T, 7, 3): sternum and ARM_POINTS with a fixed pelvis [m].

        Raises:
            ClipError: if the shape is wrong, or a value is not finite.
        """
        p = np.asarray(positions, dtype=float)
        if p.ndim != 3 or p.shape[1:] != (TRUNK_POINTS, 3) or not np.isfinite(p).all():
            raise ClipError(f"an upper body follows finite points of shape (frames, 7, 3), got {p.shape}")
        spine, across = p[:, 0] - self._mid_hip, p[:, 1] - p[:, 2]
        out = np.empty((len(p), len(self.rest)))
        for k in range(len(p)):
            R = _torso(spine[k], across[k]) @ self._upright.T
            out[k, :3] = pin.log3(bounded_turn(R, self.roll))
            out[k, 3:] = ((p[k, 1:] - p[k, 0]) @ R).ravel()
        return out


def waist_roll(robot: Robot) -> float:
    """Return sideways chest lean within reach of the waist joints alone [rad]."""
    groups, model, data = JointGroups.of(robot), robot.model, robot.data
    waist, pelvis = groups.waist, model.parents[model.getJointId(robot.joint_names[groups.l_leg[0]])]
    pin.computeJointJacobians(model, data, robot.q("neutral"))
    chest = model.frames[robot.points["sternum"]].parentJoint
    turning = [pin.getJointJacobian(model, data, j, pin.LOCAL_WORLD_ALIGNED)[3] for j in (chest, pelvis)]
    about_forward = np.abs(turning[0] - turning[1])[robot.iv + waist] > 0.7
    neutral, joints = robot.postures["neutral"], waist[about_forward]
    low, high = robot.range_within(np.pi)
    room = np.maximum(np.minimum(high - neutral, neutral - low)[joints], 0.0)
    return float(room.sum())


def bounded_turn(R: np.ndarray, roll: float = MOST_TILT) -> np.ndarray:
    """Return a chest rotation (3, 3) with smoothly bounded tilt and vertical twist.

    An angle becomes b tanh(angle / b) with its bound b; small angles are unchanged.

    Args:
        roll: bound of the sideways tilt [rad]; forward and back it is MOST_TILT.
    """
    axis = np.cross([0.0, 0.0, 1.0], R[:, 2])
    sine = float(np.linalg.norm(axis))
    tilt = float(np.arctan2(sine, R[2, 2]))
    axis = axis / sine if sine > 1e-9 else np.zeros(3)
    twist = float(pin.log3(pin.exp3(-tilt * axis) @ R)[2])
    most = 1.0 / float(np.hypot(axis[0] / roll, axis[1] / MOST_TILT)) if sine > 1e-9 else MOST_TILT
    tilt, twist = most * np.tanh(tilt / most), MOST_TWIST * np.tanh(twist / MOST_TWIST)
    return pin.exp3(tilt * axis) @ pin.exp3(np.array([0.0, 0.0, twist]))


def _torso(spine: np.ndarray, across: np.ndarray) -> np.ndarray:
    return torso_axes((spine / np.linalg.norm(spine))[None], across[None])[0]


def _goal(row: np.ndarray, velocity: np.ndarray) -> UpperGoal:
    return UpperGoal(pin.exp3(row[:3]), row[3:].reshape(-1, 3), velocity[3:].reshape(-1, 3))


class CenterRise:
    """Rise of the CoM due to chest and arms, with legs in the neutral posture."""

    def __init__(self, robot: Robot, stand: float) -> None:
        """Start with the arms at rest.

        Args:
            stand: constant extra height [m].
        """
        self._robot, self._data = robot, robot.model.createData()
        groups = JointGroups.of(robot)
        self._legs = np.concatenate([groups.l_leg, groups.r_leg])
        self._rest = self._height(robot.postures["neutral"])
        self._stand, self._smooth, self.height = stand, 0.0, stand

    def update(self, joints: np.ndarray, dt: float) -> float:
        """Return the CoM rise at constant leg bend [m], low-pass filtered, in steps of RISE."""
        self._smooth += min(dt / RISING, 1.0) * (self._height(joints) - self._rest - self._smooth)
        if abs(self._stand + self._smooth - self.height) > RISE:
            self.height = self._stand + self._smooth
        return self.height

    def _height(self, joints: np.ndarray) -> float:
        posture = joints.copy()
        posture[self._legs] = self._robot.postures["neutral"][self._legs]
        return float(pin.centerOfMass(self._robot.model, self._data, self._robot.q(posture))[2])


# -------- Motions


class ClipMotion:
    """Recorded motion: from rest into a clip, through it, and back to rest.

    Attributes:
        begin: departure from rest [s].
        end: return to rest [s].
    """

    known = True

    def __init__(
        self,
        rest: np.ndarray,
        rows: np.ndarray,
        rate: float,
        begin: float,
        clock: tuple[np.ndarray, np.ndarray] | None = None,
        lead: float = LEAD,
    ) -> None:
        """Resample the clip.

        Args:
            begin: walker time of the departure from rest [s].
            clock: rising times since the clip began (k,) and in the clip (k,) [s]; default: as recorded.
            lead: time from rest to the clip, and back [s].

        Raises:
            ClipError: if there are fewer than two rows, or the clock does not rise.
        """
        if len(rows) < 2:
            raise ClipError("a motion of the upper body needs at least two frames")
        duration = (len(rows) - 1) / rate
        t, s = clock if clock is not None else (np.array([0.0, duration]), np.array([0.0, duration]))
        if len(t) != len(s) or len(t) < 2 or (np.diff(t) <= 0).any() or (np.diff(s) < 0).any():
            raise ClipError("the times of a clip must increase")
        from scipy.interpolate import CubicSpline  # slow to import, and seldom needed

        inside = CubicSpline(np.arange(len(rows)) / rate, rows)
        x = np.arange(0.0, float(t[-1] - t[0]) + SAMPLE, SAMPLE)
        played = inside(np.interp(np.minimum(x + t[0], t[-1]), t, s))
        first = _lead(rest, played[0], (played[1] - played[0]) / SAMPLE, lead)
        last = _lead(rest, played[-1], (played[-2] - played[-1]) / SAMPLE, lead)[::-1]
        self._rows = np.concatenate([first, played, last, rest[None]])
        self._rates = np.gradient(self._rows, SAMPLE, axis=0)
        self.begin, self.first = begin, begin + SAMPLE * len(first)
        self.last, self.end = self.first + SAMPLE * len(played), begin + SAMPLE * (len(self._rows) - 1)

    def advance(self, t: float, dt: float) -> None:
        """Do nothing."""

    def at(self, t: float) -> UpperGoal:
        """Return the goal at a time, cubic between samples; at rest before and after."""
        x = min(max((t - self.begin) / SAMPLE, 0.0), len(self._rows) - 1.000001)
        k = int(x)
        u = x - k
        a, b, va, vb = self._rows[k], self._rows[k + 1], SAMPLE * self._rates[k], SAMPLE * self._rates[k + 1]
        # cubic Hermite polynomial from values and rates at both samples
        d = b - a
        c2, c3 = 3 * d - 2 * va - vb, va + vb - 2 * d
        row = a + u * (va + u * (c2 + u * c3))
        return _goal(row, (va + u * (2 * c2 + 3 * u * c3)) / SAMPLE)


def _lead(rest: np.ndarray, row: np.ndarray, rate: np.ndarray, duration: float) -> np.ndarray:
    """Return rows (k, 21) from rest to `row` with continuous position and velocity."""
    u = np.arange(0.0, 1.0, SAMPLE / max(duration, SAMPLE))[:, None]
    left = 1.0 - u
    return rest + minimum_jerk(u) * (row - left * duration * u**3 * rate - rest)


class LiveMotion:
    """Live motion: filtered samples, extrapolated for GUESS seconds; holds its goal when samples stop."""

    known = False

    def __init__(self, body: UpperBody, settings: TargetFilterSettings | None = None, lead: float = LEAD) -> None:
        """Start at rest.

        Args:
            lead: blend time from rest to the samples [s].
        """
        self._body, self._lead, self._since = body, lead, -1.0
        self._filter = TargetFilter(settings)
        for row in body.rest.reshape(-1, 3):
            self._filter.add(row)
        self._t, self._row, self._rate = 0.0, body.rest.copy(), np.zeros(len(body.rest))

    def take(self, positions: np.ndarray, t: float) -> bool:
        """Add a sample (7, 3) [m] at walker time `t` [s]; return False if the filter rejected a point.

        Raises:
            ClipError: if a value is not finite, or the shape is wrong.
        """
        row = self._body.rows(np.asarray(positions, dtype=float)[None])[0].reshape(-1, 3)
        if self._since < 0:
            self._since = t
        return not self._filter.update(np.arange(len(row)), row, t).any()

    def advance(self, t: float, dt: float) -> None:
        """Filter up to the end of the tick."""
        x, v = (a.ravel().copy() for a in self._filter.step(t, dt))
        share = minimum_jerk(min((t - self._since) / self._lead, 1.0)) if self._since >= 0 else 0.0
        row = self._body.rest + share * (x - self._body.rest)
        self._rate = v if share >= 1.0 else (row - self._row) / dt
        self._t, self._row = t, row

    def at(self, t: float) -> UpperGoal:
        """Return the goal, extrapolated if `t` is in the future."""
        ahead = t - self._t
        row = self._row + min(max(ahead, 0.0), GUESS) * self._rate
        return _goal(row, self._rate if ahead < GUESS else np.zeros(len(row)))


# -------- Scores


class Gestures(NamedTuple):
    """Mean wrist and elbow distances to the goals of a run, in chest axes [m]."""

    wrist: float
    elbow: float


class GestureScore:
    """Error statistics of arm points relative to the sternum, in chest axes."""

    def __init__(self, robot: Robot) -> None:
        self._robot, self._data = robot, robot.model.createData()
        self._frames = [robot.points[p] for p in ARM_POINTS]
        self._chest = robot.points["sternum"]
        robot.point_positions(robot.q("neutral"), ["sternum"])
        self._R_upright = robot.data.oMf[self._chest].rotation.copy()
        self.errors: list[np.ndarray] = []

    def add(self, q: np.ndarray, goal: UpperGoal) -> np.ndarray:
        """Add and return distances (6,) of ARM_POINTS to a goal at q (nq,) [m]."""
        pin.framesForwardKinematics(self._robot.model, self._data, q)
        X = self._data.oMf[self._chest]
        p = np.array([self._data.oMf[f].translation for f in self._frames]) - X.translation
        self.errors.append(np.linalg.norm(p @ X.rotation @ self._R_upright.T - goal.points, axis=1))
        return self.errors[-1]

    def result(self) -> Gestures:
        """Return the mean errors."""
        e = np.mean(self.errors, axis=0) if self.errors else np.full(len(ARM_POINTS), np.nan)
        return Gestures(float(e[4:6].mean()), float(e[2:4].mean()))
