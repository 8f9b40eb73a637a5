"""Whole-body retargeting: root, trunk, arms and legs of a floating robot with foot contacts.

The upper-body solver (`frame_solver`) with six base coordinates relative to the previous frame. Feet are locked and
released in the compiled loop, from the actual sole poses.
"""

from __future__ import annotations

import contextlib
import csv
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin

from humanoid_control.compiled.packed import BoundRecord
from humanoid_control.errors import ClipError, check_time_step
from humanoid_control.files import whole_file
from humanoid_control.retargeting.frame_solver import (
    A_LONG_TIME,
    FAR,
    ITERATIONS,
    STILL,
    TRUST,
    UNSOLVED,
    FrameBefore,
    FrameGoal,
    SolverConstants,
    StepBounds,
    clearance,
    fit_first_frame,
    gauss_newton,
    sole_error,
)
from humanoid_control.retargeting.problem import imitation_points, mean_error, place_points, problem_with, scratch_for
from humanoid_control.retargeting.retargeter import CHUNK, JointTrajectory, RetargetSettings
from humanoid_control.retargeting.scaling import POINTS
from humanoid_control.retargeting.whole_body.contacts import (
    EDGES,
    ContactRules,
    FootMemory,
    FootTargets,
    foot_targets,
    sole_corners,
)
from humanoid_control.retargeting.whole_body.extremities import LEVER, extremities
from humanoid_control.retargeting.whole_body.extremities import WEIGHTS as DIRECTION_WEIGHTS
from humanoid_control.retargeting.whole_body.frames import (
    BASE,
    LEFT,
    OTHERS,
    RIGHT,
    ErrorMemory,
    FootWork,
    FrameInputs,
    FrameResults,
    FrameTables,
    move_base,
    solve_packed_frames,
    solve_whole_body_frames,
)
from humanoid_control.retargeting.whole_body.scaling import (
    BODY_POINTS,
    WHOLE_BODY_POINTS,
    Legs,
    WholeBodyTargets,
)
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


@dataclass(frozen=True)
class WholeBodyTrajectory(JointTrajectory):
    """Joint angles and root motion over time; `errors` is (T, 20), of `point_names`.

    Attributes:
        root_position: (T, 3) in the world [m].
        root_quaternion: (T, 4) x, y, z, w.
        contacts: (T, 4) locked sole edges, in the order of `contacts.EDGES`.
    """

    root_position: np.ndarray
    root_quaternion: np.ndarray
    contacts: np.ndarray
    point_names: tuple[str, ...] = WHOLE_BODY_POINTS

    def q(self) -> np.ndarray:
        """Return configurations (T, nq) of the floating-base pinocchio model."""
        return np.hstack([self.root_position, self.root_quaternion, self.positions])

    def write_csv(self, path: str | Path) -> None:
        """Write time [s], root position [m] and quaternion, contacts (0, 1), and joints [rad] as columns.

        Raises:
            ConfigError: if the file cannot be written.
        """
        head = ["time", *(f"root_{a}" for a in ("x", "y", "z", "qx", "qy", "qz", "qw"))]
        with whole_file(Path(path)) as part, part.open("w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow([*head, *(f"contact_{e}" for e in EDGES), *self.joint_names])
            for k, q in enumerate(self.q()):
                values = [*q[:7], *self.contacts[k].astype(int), *q[7:]]
                rows.writerow([f"{k / self.rate:.6f}", *(f"{v:.6f}" if isinstance(v, float) else v for v in values)])

    def _arrays(self) -> dict[str, Any]:
        return {
            **super()._arrays(),
            "point_names": np.array(self.point_names),
            "root_position": self.root_position,
            "root_quaternion": self.root_quaternion,
            "contacts": self.contacts,
            "contact_names": np.array(EDGES),
        }


def followed_settings() -> RetargetSettings:
    """Return settings for motions that a tracker or robot follows live: the root accelerates less."""
    return replace(WholeBodyRetargeter.SETTINGS, root_acceleration=FOLLOWED_ROOT)


class WholeBodyRetargeter:
    """Frame-by-frame solver of root and joints of a floating robot.

    Attributes:
        root: last pose of the root link in the world.
        contacts: (4,) locked sole edges, in the order of `contacts.EDGES`.
        clearance: as in JointTrajectory, of the last frame [m], like `used_fallback`.
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
        self.robot, self.settings = robot, settings or self.SETTINGS
        self.legs = Legs.of(robot)
        s = self.settings
        followers = [follower for follower, *_ in robot.mimic]  # NAO's hips share a motor
        turned = [e for name, e in extremities(robot).items() if name in directions]
        self.directions = tuple(e.name for e in turned)
        moving = [self.legs.moving, robot.imitation_joints, *(e.moving for e in turned)]
        self.moving = np.setdiff1d(np.unique(np.concatenate(moving)), followers)
        seven = imitation_points(robot, s.forearms if forearms else 0.0)
        self.lever = s.forearms if len(seven) > len(POINTS) else 0.0
        legs = self.legs.points(robot)
        self.levers = len(seven) - len(POINTS)
        self.corners = CORNERS + self.levers + len(turned)
        points = seven[:7] + legs[:5] + seven[7:] + [e.followed() for e in turned] + legs[5:]
        p = problem_with(robot, self.moving, points)
        weight = np.ones(len(points))
        for name, value in WEIGHTS.items():
            weight[BODY_POINTS.index(name)] = value
        weight[CORNERS + self.levers : self.corners] = [DIRECTION_WEIGHTS[name] for name in self.directions]
        velocity = np.minimum(s.velocity_scale * p.velocity, 1e6)
        velocity[: p.base] = BASE_SPEED
        soles = np.arange(self.corners, len(points))
        self.problem = p._replace(velocity=velocity, weight=weight, soles=soles)
        self.constants = SolverConstants(
            s.damping,
            s.posture,
            s.smoothing,
            *self._accelerations(),
            s.margin,
            max(s.activation, ROOM * s.margin),
            s.barrier_gain,
            s.pair_recovery_speed,
            SLACK_WEIGHT,
            YIELDING,
            s.iterations,
        )
        self.scratch = scratch_for(self.problem)
        self.rules = rules or ContactRules()
        self.joints = robot.postures["neutral"].copy()
        self.root = robot.X_world_root
        self.contacts = np.zeros(4, dtype=bool)
        self.clearance, self.used_fallback = FAR, 0
        d = len(self.problem.rest)
        self._before = FrameBefore(np.zeros(d), np.zeros(d), FAR)
        self._feet, self._one = self._new_feet(), self._results(1)
        self._given = FrameInputs(np.zeros((1, len(points), 3)), np.zeros((1, 2, 5)), np.zeros((1, 4), dtype=np.bool_))
        self._packed = BoundRecord(FrameTables)

    @classmethod
    def following(
        cls, targets: WholeBodyTargets, robot: Robot, settings: RetargetSettings | None = None
    ) -> WholeBodyRetargeter:
        """Return a solver for all that the targets show: forearms, head, hands.

        Raises:
            RobotError: if the base is fixed, or legs or soles are missing.
        """
        return cls(robot, settings, None, targets.forearms is not None, tuple(targets.directions))

    def _accelerations(self) -> tuple[np.ndarray, np.ndarray]:
        """Return acceleration and braking limits (D,): the joints' own, which assume a fixed pelvis, except for base
        and legs.
        """
        s, base = self.settings, self.problem.base
        most = self.robot.accelerations_within(s.acceleration, s.acceleration_scale)
        found, root = [], np.repeat([s.root_acceleration, BASE_TURN_ACCELERATION], 3)
        for limits in most:
            own = limits.copy()
            own[self.legs.moving] = s.acceleration
            found.append(np.concatenate([root[:base], own[self.moving]]))
        return found[0], found[1]

    def _new_feet(self) -> FootWork:
        out = FootTargets(np.zeros((8, 3)), np.ones(8), np.zeros((8, 3)), np.zeros(4, dtype=np.bool_))
        groups, base = JointGroups.of(self.robot), self.problem.base
        whose = np.full(base + len(self.moving), OTHERS)
        whose[:base] = BASE
        for part, leg in ((LEFT, groups.l_leg), (RIGHT, groups.r_leg)):
            whose[base:][np.isin(self.moving, leg)] = part
        errors = ErrorMemory.new(len(self.problem.point))
        return FootWork(self.rules, self.legs.soles, FootMemory.new(), out, errors, whose)

    def inputs(self, targets: WholeBodyTargets) -> FrameInputs:
        """Return the solver inputs of targets.

        Raises:
            ClipError: if the targets lack forearms or directions that the solver tracks.
        """
        points = np.zeros((len(targets), len(self.problem.point), 3))
        points[:, :CORNERS] = targets.positions
        if self.levers:
            if targets.forearms is None:
                raise ClipError(f"{targets.name}: does not show the forearm rotation")
            points[:, CORNERS : CORNERS + self.levers] = targets.positions[:, 5:7] + self.lever * targets.forearms
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
        self._feet = feet = self._new_feet()
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
        self._before = FrameBefore(x, v, distance)
        self._feet.errors.begin(self.scratch.points, *self._first_targets(frames))
        self.contacts = self._feet.out.contact.copy()
        self._publish(distance, 0)

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
            feet = self._feet = self._new_feet()
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
        b, one = self._before, self._given
        one.points[0], one.soles[0], one.contact[0] = frames.points[k], frames.soles[k], frames.contact[k]
        table = self._packed.table(self.problem, self.constants, one, self._feet, b.x, b.v, self._one, self.scratch)
        self._end(solve_packed_frames(table, dt, b.clearance), self._one)
        return self.joints.copy()

    def sole_corners(self) -> np.ndarray:
        """Return the last sole corners (8, 3) in the order of SOLE_POINTS [m]."""
        return self.scratch.points[self.corners :].copy()

    def error(self, targets: np.ndarray) -> float:
        """Return the mean distance to targets (12, 3) of BODY_POINTS at the last frame [m]."""
        return float(np.linalg.norm(self.scratch.points[:CORNERS] - targets, axis=1).mean())

    def _results(self, T: int) -> FrameResults:
        d, K = len(self.problem.rest), len(self.problem.point)
        return FrameResults(
            np.empty((T, d)),
            np.empty((T, 3, 3)),
            np.empty((T, 3)),
            np.empty((T, K)),
            np.empty(T),
            np.zeros(T, dtype=np.int64),
            np.zeros((T, 4), dtype=np.bool_),
        )

    def _solve(self, frames: FrameInputs, dt: float, out: FrameResults) -> None:
        before = self._before
        last = solve_whole_body_frames(self.problem, self.constants, frames, self._feet, before, dt, out, self.scratch)
        self._end(last, out)

    def _end(self, last: float, out: FrameResults) -> None:
        self._before = self._before._replace(clearance=last)
        self.contacts = out.contact[-1].copy()
        self._publish(last, int(out.used_fallback[-1]))

    def _publish(self, distance: float, used_fallback: int) -> None:
        self.joints[self.moving] = self._before.x[6:]
        self.robot.follow(self.joints)
        frames = self.problem.tree.joints
        self.root = pin.SE3(frames.R[0].copy(), frames.p[0].copy())
        self.clearance = distance if distance < FAR else np.inf
        self.used_fallback = used_fallback

    def solve(
        self, targets: WholeBodyTargets, progress: Callable[[int, int], None] | None = None
    ) -> WholeBodyTrajectory:
        """Solve a whole clip from its own first posture.

        Raises:
            ClipError: if the first posture does not converge.
        """
        frames, T, dt = self.inputs(targets), len(targets), 1.0 / targets.rate
        out = self._begin(frames, targets)
        for k in range(1, T, CHUNK):
            last = min(k + CHUNK, T)
            self._solve_part(frames, k, last, dt, out)
            if progress is not None:
                progress(last, T)
        return self._trajectory(targets, out)

    def _begin(self, frames: FrameInputs, targets: WholeBodyTargets) -> FrameResults:
        out = self._results(len(targets))
        self.start(frames, float(targets.heading[0]), targets.name)
        out.x[0], out.clearance[0], out.contact[0] = self._before.x, self._before.clearance, self.contacts
        out.R[0], out.p[0] = self.root.rotation, self.root.translation
        first = frames.points[0].copy()
        first[self.corners :] = self._feet.out.target
        mean_error(self.scratch, first, out.errors[0])
        return out

    def _solve_part(self, frames: FrameInputs, first: int, last: int, dt: float, out: FrameResults) -> None:
        self._solve(FrameInputs(*(a[first:last] for a in frames)), dt, FrameResults(*(a[first:last] for a in out)))

    def _trajectory(self, targets: WholeBodyTargets, out: FrameResults) -> WholeBodyTrajectory:
        T, dt = len(targets), 1.0 / targets.rate
        q = np.tile(self.robot.postures["neutral"], (T, 1))
        q[:, self.moving] = out.x[:, 6:]
        for row in q if self.robot.mimic else ():
            self.robot.follow(row)
        v = np.zeros_like(q)
        v[:-1] = np.diff(q, axis=0) * targets.rate
        moved = np.abs(np.diff(out.x[:, 6:], axis=0, prepend=out.x[:1, 6:]))
        named = [k for k in range(len(self.problem.point)) if not CORNERS <= k < self.corners]
        return WholeBodyTrajectory(
            self.robot.joint_names,
            targets.rate,
            q,
            v,
            out.errors[:, named],
            np.mean(moved >= self.problem.velocity[6:] * dt - 1e-9, axis=1),
            np.where(out.clearance < FAR, out.clearance, np.inf),
            out.used_fallback,
            out.p,
            np.array([pin.Quaternion(R).coeffs() for R in out.R]),
            out.contact,
        )
