"""Whole-body retargeting: root, trunk, arms and legs of a floating robot with foot contacts.

The upper-body solver (`frame_solver`) with six base coordinates relative to the previous frame. Feet are locked and
released in the compiled loop, from the actual sole poses.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection
from dataclasses import replace

import numpy as np
import pinocchio as pin

from humanoid_control.errors import ClipError, check_time_step
from humanoid_control.retargeting.frame_solver import (
    A_LONG_TIME,
    ITERATIONS,
    STILL,
    TRUST,
    UNSOLVED,
    FrameGoal,
    StepBounds,
    clearance,
    fit_first_frame,
    gauss_newton,
    sole_error,
)
from humanoid_control.retargeting.posture_solver import FASTEST, PostureSolver
from humanoid_control.retargeting.problem import imitation_points, place_points, problem_with
from humanoid_control.retargeting.scaling import POINTS
from humanoid_control.retargeting.settings import RetargetSettings
from humanoid_control.retargeting.trajectory import WholeBodyTrajectory
from humanoid_control.retargeting.whole_body.contacts import ContactRules, foot_targets, sole_corners
from humanoid_control.retargeting.whole_body.extremities import LEVER, extremities
from humanoid_control.retargeting.whole_body.extremities import WEIGHTS as DIRECTION_WEIGHTS
from humanoid_control.retargeting.whole_body.frames import (
    BASE,
    LEFT,
    OTHERS,
    RIGHT,
    FootWork,
    FrameInputs,
    FrameResults,
    move_base,
)
from humanoid_control.retargeting.whole_body.scaling import BODY_POINTS, Legs, WholeBodyTargets
from humanoid_control.robots import Robot
from humanoid_control.robots.joint_groups import JointGroups

WEIGHTS = {"l_hip": 2.0, "r_hip": 2.0, "pelvis_top": 0.1, "l_knee": 0.3, "r_knee": 0.3}
CORNERS = len(BODY_POINTS)
SMOOTHING = 0.2  # [m/rad] cost of a velocity change: legs have more inertia, and kinks at every contact
ACTIVATION = 0.05  # [m] activation distance of pairs: two hands have a hundred pairs within 0.1 m
ROOM = 2.0  # least activation in margins, or a pair would be stopped abruptly
SLACK_WEIGHT = 1e5  # of a violated distance or floor height
# At its margin, a pair has 1 % of that weight, and the full weight at contact. Otherwise jumping nearest points of
# adjacent legs would push locked feet.
YIELDING = 0.1
BASE_SPEED = 10.0  # [m/s, rad/s] faster than any person: bounds jumps of clips and solver steps
FOLLOWED_ROOT = 15.0  # [m/s^2] root limit for motions that a tracker or robot follows live
BASE_TURN_ACCELERATION = 150.0  # [rad/s^2] against base jerks: a foot that needs more lands later
APART = (0.0, 0.03, 0.06, 0.1)  # [m] outward shifts of the feet to try in the first posture
FIRST_FEET, STANDS = 3.0, 4  # foot weight in the first fit; number of landing attempts


def followed_settings() -> RetargetSettings:
    """Return settings for motions that a tracker or robot follows live: the root accelerates less."""
    return replace(WholeBodyRetargeter.SETTINGS, root_acceleration=FOLLOWED_ROOT)


class WholeBodyRetargeter(PostureSolver[WholeBodyTargets, WholeBodyTrajectory]):
    """Frame-by-frame solver of root and joints of a floating robot.

    Attributes:
        root: last pose of the root link in the world.
        contacts: (4,) locked sole edges, in the order of `contacts.EDGES`.
        SETTINGS: defaults: upper-body settings with more smoothing and fewer near pairs.
    """

    SETTINGS = RetargetSettings(smoothing=SMOOTHING, activation=ACTIVATION)

    def __init__(
        self,
        robot: Robot,
        settings: RetargetSettings | None = None,
        rules: ContactRules | None = None,
        forearms: bool = False,
        directions: Collection[str] = (),
    ) -> None:
        """Create the solver.

        Args:
            directions: head and hands of the targets; those the robot cannot turn are ignored.

        Raises:
            RobotError: if the base is fixed, or legs or soles are missing.
        """
        s, self.legs, self.rules = settings or self.SETTINGS, Legs.of(robot), rules or ContactRules()
        followers = [follower for follower, *_ in robot.mimic]  # NAO's hips share a motor
        turned = [e for name, e in extremities(robot).items() if name in directions]
        self.directions = tuple(e.name for e in turned)
        joints = [self.legs.moving, robot.imitation_joints, *(e.moving for e in turned)]
        moving = np.setdiff1d(np.unique(np.concatenate(joints)), followers)
        seven = imitation_points(robot, s.forearms if forearms else 0.0)
        self.lever = s.forearms if len(seven) > len(POINTS) else 0.0
        legs = self.legs.points(robot)
        self.levers = len(seven) - len(POINTS)
        self.corners = CORNERS + self.levers + len(turned)
        points = seven[:7] + legs[:5] + seven[7:] + [e.followed() for e in turned] + legs[5:]
        p = problem_with(robot, moving, points)
        weight = np.ones(len(points))
        for name, value in WEIGHTS.items():
            weight[BODY_POINTS.index(name)] = value
        weight[CORNERS + self.levers : self.corners] = [DIRECTION_WEIGHTS[name] for name in self.directions]
        velocity = np.minimum(s.velocity_scale * p.velocity, FASTEST)
        velocity[: p.base] = BASE_SPEED
        p = p._replace(velocity=velocity, weight=weight, soles=np.arange(self.corners, len(points)))
        self._point_bodies = _parts(robot, moving, p.base)
        super().__init__(robot, s, moving, self._new_feet(len(points)))
        limits = _accelerations(robot, s, self.legs.moving, moving, p.base)
        self._prepare(p, limits, max(s.activation, ROOM * s.margin), SLACK_WEIGHT, YIELDING)
        self.root = robot.X_world_root
        self.contacts = np.zeros(4, dtype=bool)

    @classmethod
    def following(
        cls, targets: WholeBodyTargets, robot: Robot, settings: RetargetSettings | None = None
    ) -> WholeBodyRetargeter:
        """Return a solver for all that the targets show: forearms, head, hands.

        Raises:
            RobotError: if the base is fixed, or legs or soles are missing.
        """
        return cls(robot, settings, None, targets.forearms is not None, tuple(targets.directions))

    def _new_feet(self, points: int) -> FootWork:
        return FootWork.new(self.rules, self.legs.soles, points, self._point_bodies)

    def inputs(self, targets: WholeBodyTargets) -> FrameInputs:
        """Return the solver inputs of targets.

        Raises:
            ClipError: if the targets lack forearms or directions that the solver tracks.
        """
        points = np.zeros((len(targets), len(self.problem.point), 3))
        points[:, :CORNERS] = targets.positions
        points[:, CORNERS : CORNERS + self.levers] = self._lever_ends(targets)
        for k, name in enumerate(self.directions, CORNERS + self.levers):
            if name not in targets.directions:
                raise ClipError(f"{targets.name}: does not show the direction of the {name}")
            points[:, k] = LEVER * targets.directions[name]
        return FrameInputs(points, targets.soles, targets.contacts)

    def start(self, frames: FrameInputs, heading: float, name: str = "clip") -> None:
        """Start at the first posture of `frames`: a converged fit from several starts, feet in contact locked.

        Raises:
            ClipError: if no first posture converges.
        """
        p, goal = self.problem, frames.points[0].copy()
        self._feet = feet = self._new_feet(len(p.point))
        none = np.zeros(4, dtype=np.bool_)
        foot_targets(feet.rules, feet.soles, frames.soles[0], none, np.zeros((8, 3)), 0.0, feet.memory, feet.out)
        goal[self.corners :], p.weight[self.corners :] = feet.out.target, FIRST_FEET
        yaw = pin.SE3(pin.rpy.rpyToMatrix(0.0, 0.0, heading), 0.5 * (goal[7] + goal[8]))
        X = yaw * pin.SE3(np.eye(3), self.legs.hips.mean(axis=0)).inverse() * self.robot.X_world_root
        p.tree.joints.R[0], p.tree.joints.p[0] = X.rotation, X.translation
        x = self._first_fit(goal, heading, name)
        x = self._stand(frames, goal, x)
        distance = clearance(p, x, self.scratch)
        v = np.zeros(len(x))
        move_base(p, self.scratch, x, v)
        self._x, self._v = x, v
        self._feet.errors.begin(self.scratch.points, *self._first_targets(frames))
        self._publish(distance, 0)

    def _start(self, frames: FrameInputs, targets: WholeBodyTargets) -> None:
        self.start(frames, float(targets.heading[0]), targets.name)

    def _first_fit(self, goal: np.ndarray, heading: float, name: str) -> np.ndarray:
        """Return the first fit (D,) to targets (K, 3); feet are moved apart if the legs collide."""
        left = np.array([-np.sin(heading), np.cos(heading), 0.0])
        side = np.zeros((len(goal), 1))
        side[self.corners : self.corners + 4], side[self.corners + 4 :] = 1.0, -1.0
        side[BODY_POINTS.index("l_knee")], side[BODY_POINTS.index("r_knee")] = 0.5, -0.5
        for apart in APART[:-1]:
            with contextlib.suppress(ClipError):
                return fit_first_frame(self.problem, self.constants, goal + apart * side * left, self.scratch, name)
        return fit_first_frame(self.problem, self.constants, goal + APART[-1] * side * left, self.scratch, name)

    def _first_targets(self, frames: FrameInputs) -> tuple[np.ndarray, np.ndarray]:
        both = []
        for k in (0, min(1, len(frames.points) - 1)):
            target = frames.points[k].copy()
            for f in (0, 1):
                first = self.corners + 4 * f
                sole_corners(self.legs.soles, f, frames.soles[k, f], target[first : first + 4])
            both.append(target)
        return both[0], both[1]

    def _stand(self, frames: FrameInputs, goal: np.ndarray, x: np.ndarray) -> np.ndarray:
        """Return the first posture (D,) with contact feet flat on the floor, at their fitted places."""
        p, feet, w = self.problem, self._feet, self.scratch
        patient = self.constants._replace(iterations=ITERATIONS, smoothing=0.0)
        bounds = StepBounds(p.lower, p.upper)
        for _ in range(STANDS):
            feet = self._feet = self._new_feet(len(p.point))
            place_points(p, x, w)
            corners = w.points[self.corners :].copy()
            for _ in range(2):
                foot_targets(
                    feet.rules, feet.soles, frames.soles[0], frames.contact[0], corners, 0.0, feet.memory, feet.out
                )
                feet.memory.edge_age[:], feet.memory.age[:] = np.inf, np.inf
            goal[self.corners :], p.weight[self.corners :] = feet.out.target, feet.out.weight
            trial = x.copy()
            solved = gauss_newton(p, patient, FrameGoal(goal, x.copy(), p.rest), bounds, A_LONG_TIME, TRUST, trial, w)
            if solved == UNSOLVED or not np.isfinite(trial).all() or clearance(p, trial, w) < 0.0:
                break
            x = trial
            if (feet.out.contact == feet.memory.edge).all() and sole_error(p, goal, w) <= STILL:
                break
        place_points(p, x, w)
        return x

    def step(self, frames: FrameInputs, k: int, dt: float) -> np.ndarray:
        """Return the posture (n,) of frame k, from the previous one; update `root` and `contacts`.

        Raises:
            ConfigError: if `dt` is not positive and finite; the state is unchanged.
        """
        check_time_step(dt, "retargeting")
        one = self._given
        one.points[0], one.soles[0], one.contact[0] = frames.points[k], frames.soles[k], frames.contact[k]
        self._solve_one(dt)
        return self.joints.copy()

    def sole_corners(self) -> np.ndarray:
        """Return the last sole corners (8, 3) in the order of SOLE_POINTS [m]."""
        return self.scratch.points[self.corners :].copy()

    def error(self, targets: np.ndarray) -> float:
        """Return the mean distance to targets (12, 3) of BODY_POINTS at the last frame [m]."""
        return float(np.linalg.norm(self.scratch.points[:CORNERS] - targets, axis=1).mean())

    def _end(self, distance: float, out: FrameResults) -> None:
        self._publish(distance, int(out.used_fallback[-1]))

    def _publish(self, distance: float, used_fallback: int) -> None:
        """Update posture, root and contacts from the state."""
        self.joints[self.moving] = self._x[self.problem.base :]
        self.robot.follow(self.joints)
        frames = self.problem.tree.joints
        self.root = pin.SE3(frames.R[0].copy(), frames.p[0].copy())
        self.contacts = self._feet.out.contact.copy()
        self._set_distance(distance, used_fallback)

    def _trajectory(self, targets: WholeBodyTargets, out: FrameResults) -> WholeBodyTrajectory:
        named = [k for k in range(len(self.problem.point)) if not CORNERS <= k < self.corners]
        return WholeBodyTrajectory(
            **self._tracks(targets.rate, out.x, out, named),
            root_position=out.p,
            root_quaternion=np.array([pin.Quaternion(R).coeffs() for R in out.R]),
            contacts=out.contact,
        )


def _accelerations(
    robot: Robot, s: RetargetSettings, legs: np.ndarray, moving: np.ndarray, base: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return acceleration and braking limits (D,): the joints' own, which assume a fixed pelvis, except for base and
    legs.
    """
    most = robot.accelerations_within(s.acceleration, s.acceleration_scale)
    found, root = [], np.repeat([s.root_acceleration, BASE_TURN_ACCELERATION], 3)
    for limits in most:
        own = limits.copy()
        own[legs] = s.acceleration
        found.append(np.concatenate([root[:base], own[moving]]))
    return found[0], found[1]


def _parts(robot: Robot, moving: np.ndarray, base: int) -> np.ndarray:
    """Return the part (D,) that each coordinate belongs to, see `FootWork`."""
    groups = JointGroups.of(robot)
    whose = np.full(base + len(moving), OTHERS)
    whose[:base] = BASE
    for part, leg in ((LEFT, groups.l_leg), (RIGHT, groups.r_leg)):
        whose[base:][np.isin(moving, leg)] = part
    return whose
