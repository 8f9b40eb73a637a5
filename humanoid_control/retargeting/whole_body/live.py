"""Live whole-body retargeting: markers move root, legs and arms of a robot.

The person first stands upright on both feet, which calibrates scaling, floor and foot heights. Each frame then gives
targets, soles and contacts, and a solver step. Holding, fading and bounds are as in `live`.
"""

from __future__ import annotations

import numpy as np

from humanoid_control.errors import ClipError
from humanoid_control.mocap import BodyPoints
from humanoid_control.retargeting.live import LiveSettings, LiveTargets
from humanoid_control.retargeting.player import bone_ends
from humanoid_control.retargeting.problem import place_points
from humanoid_control.retargeting.whole_body.contacts import (
    ContactMemory,
    ContactSoles,
    feet_points,
    find_contacts,
    level,
    sole_pitch,
    sole_pose,
)
from humanoid_control.retargeting.whole_body.frames import FrameInputs
from humanoid_control.retargeting.whole_body.retargeter import WholeBodyRetargeter, followed_settings
from humanoid_control.retargeting.whole_body.scaling import BODY_POINTS, WholeBodyScaler, shows_legs
from humanoid_control.robots import Robot

SHORTEST, LONGEST = 1e-3, 0.1  # [s] bounds of a solver step
EDGE_POINTS = 4  # rows after the points: middles of heel and toe, left and right


class LiveWholeBody(LiveTargets):
    """Whole-body targets from live markers, and the robot that follows them.

    Attributes:
        solver: `joints`, `root`, `contacts` of the robot, in the neutral posture before calibration.
        targets: (K + 4, 3) solver points without sole corners, then heel and toe middles; None before calibration.
        contact: (4,) the person's edges in contact, in the order of `contacts.EDGES`.
    """

    def __init__(self, robot: Robot, settings: LiveSettings | None = None) -> None:
        """Create and compile the solver, and start the calibration.

        Raises:
            RobotError: if the base is fixed, or legs or soles are missing.
            UnknownNameError: as LiveTargets.
            ClipError: as LiveTargets.
        """
        self.solver = WholeBodyRetargeter(robot, followed_settings())
        self.contact = np.ones(4, dtype=bool)
        self._followed = 0.0
        super().__init__(robot, settings)
        self._stand()

    def begin_standing(self) -> None:
        """Restart the calibration, with the robot in its neutral posture at its initial place."""
        self.targets, self.contact = None, np.ones(4, dtype=bool)
        self.calibrate()
        self._stand()

    def _stand(self) -> None:
        rest, frames = self._points_at_rest(), self.solver.problem.tree.joints
        X = self.robot.X_world_root
        frames.R[0], frames.p[0] = X.rotation, X.translation
        self.solver.start(self._inputs(rest), 0.0, "the neutral posture")

    def _points_at_rest(self) -> np.ndarray:
        s = self.solver
        X, x = self.robot.X_world_root, s.problem.rest.copy()
        base = s.problem.tree.joints
        base.R[0], base.p[0] = X.rotation, X.translation
        place_points(s.problem, x, s.scratch)
        corners, poses = s.scratch.points[s.corners :], np.empty((2, 5))
        for f in (0, 1):
            sole_pose(s.legs.soles, f, corners[4 * f : 4 * f + 4], poses[f])
        return np.vstack([s.scratch.points[: s.corners], edge_points(s.legs.soles, poses)])

    def _scale_by(self, calibration: BodyPoints, now: float) -> None:
        if not shows_legs(calibration):
            raise ClipError("the markers show no knees, ankles and toes: the whole body needs legs")
        scaler = WholeBodyScaler(calibration, self.robot, hands=False)  # hands need look-ahead, which live input lacks
        if not scaler.floor.rests:
            raise ClipError("the feet are never slow: no ground found under them, stand still")
        self._body_scaler = scaler
        targets = self._body_scaler.targets(calibration)
        solver = WholeBodyRetargeter.following(targets, self.robot)
        if self.targets is None or solver.problem.free.tolist() != self.solver.problem.free.tolist():
            self.solver, self.targets = solver, None
            self._rest = self._points_at_rest()
            self._stand()
        self._followed = now
        self._contacts, self._before = ContactMemory.new(), calibration.positions[-1]
        self._place = float(calibration.heading[-1]), calibration.mid_hip[-1]
        self._X_robot_person = _onto(targets.positions[-1], self._rest if self.targets is None else self.targets)

    def _scaled(self, points: np.ndarray, dt: float) -> np.ndarray:
        """Return the rows of `targets` for body points (P, 3) in the world; NaN while paused, which holds."""
        assert self._body is not None
        names = self._body.names
        here = BodyPoints("live markers", 1.0, names, points[None].copy(), np.zeros(len(names)))
        guarded = self._guard.check(here.in_pelvis()[0])
        if not any("hips" in text for text in self._guard.problems):
            self._place = float(here.heading[0]), here.mid_hip[0]
        now, before = _placed(guarded, *self._place), self._before
        nothing = np.full((self.solver.corners + EDGE_POINTS, 3), np.nan)
        if not self._playing or not np.isfinite(now).all():
            return nothing
        dt, self._before = max(dt, SHORTEST), now
        two = BodyPoints("live markers", 1.0 / dt, names, np.stack([before, now]), np.zeros(len(names)))
        self.body = now
        try:
            targets = self._body_scaler.targets(two)
            rows = self.solver.inputs(targets).points[1, : self.solver.corners]
        except ClipError:  # a zero-length segment, or a head without direction
            return nothing
        floor = self._body_scaler.floor
        feet = feet_points(level(two, floor))[1, :4].copy()
        feet[:, 2] -= floor.level[:4]
        find_contacts(self._body_scaler.rules, feet, dt, self._contacts)
        self.contact = self._contacts.contact.copy()
        out = np.vstack([rows, edge_points(self.solver.legs.soles, targets.soles[1])])
        R, shift = self._X_robot_person
        placed = np.append(~self.solver.problem.free[: len(rows)], np.ones(EDGE_POINTS, dtype=bool))
        return out @ R.T + placed[:, None] * shift

    def follow(self) -> float:
        """Take one solver step toward the targets and return the time since the previous one [s]; 0 without a step."""
        passed = self._last_update - self._followed
        if self.targets is None or not passed >= SHORTEST:
            return 0.0
        self._followed = self._last_update
        passed = min(passed, LONGEST)
        self.solver.step(self._inputs(self.targets), 0, passed)
        return passed

    def _inputs(self, rows: np.ndarray) -> FrameInputs:
        s = self.solver
        points = np.zeros((1, len(s.problem.point), 3))
        points[0, : s.corners] = rows[: s.corners]
        poses = sole_poses(rows[s.corners :])
        return FrameInputs(points, poses[None], self.contact[None].copy())

    def skeleton(self) -> np.ndarray | None:
        """Return bone end points (2 B, 3) of the targets [m]; None before calibration."""
        if self.targets is None:
            return None
        p = {name.replace("_gh", "_shoulder"): self.targets[k] for k, name in enumerate(BODY_POINTS)}
        edges = self.targets[self.solver.corners :]
        p |= {"l_ankle": edges[0], "l_toe": edges[1], "r_ankle": edges[2], "r_toe": edges[3]}
        return bone_ends(p)


def edge_points(soles: ContactSoles, poses: np.ndarray) -> np.ndarray:
    """Return the heel and toe middles (4, 3) of both soles [m] with poses (2, 5) as in `FootMemory`."""
    out = np.empty((EDGE_POINTS, 3))
    for f, (x, y, yaw, heel, toe) in enumerate(poses):
        reach = soles.length[f] * sole_pitch(soles.length[f], heel, toe)[1]
        out[2 * f] = x, y, heel
        out[2 * f + 1] = x + reach * np.cos(yaw), y + reach * np.sin(yaw), toe
    return out


def sole_poses(edges: np.ndarray) -> np.ndarray:
    """Return sole poses (2, 5) from edge middles (4, 3): inverse of `edge_points`."""
    heel, toe = edges[::2], edges[1::2]
    yaw = np.arctan2(toe[:, 1] - heel[:, 1], toe[:, 0] - heel[:, 0])
    return np.column_stack([heel[:, :2], yaw, np.maximum(heel[:, 2], 0.0), np.maximum(toe[:, 2], 0.0)])


def _onto(person: np.ndarray, robot: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the rotation about the vertical (3, 3) and horizontal shift (3,) from a person's hips to a robot's [m]."""
    left, right = BODY_POINTS.index("l_hip"), BODY_POINTS.index("r_hip")
    across = [p[left] - p[right] for p in (person, robot)]
    turn = np.arctan2(across[1][1], across[1][0]) - np.arctan2(across[0][1], across[0][0])
    c, s = np.cos(turn), np.sin(turn)
    R = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
    shift = 0.5 * (robot[left] + robot[right]) - R @ (0.5 * (person[left] + person[right]))
    return R, np.array([shift[0], shift[1], 0.0])


def _placed(p: np.ndarray, heading: float, mid_hip: np.ndarray) -> np.ndarray:
    """Return body points (P, 3) of the pelvis frame in the world [m]."""
    c, s = np.cos(heading), np.sin(heading)
    return p @ np.array([[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]]) + mid_hip
